//! What brokers do, and what befalls them.

use super::*;

impl<R: Rules> World<R> {
    /// What was committed just now.
    pub(super) fn committed(&mut self, k: usize, batches: Vec<Batch>) -> Result<(), Fault> {
        for batch in batches {
            if batch.id < 0 {
                continue;
            }
            say!(self, "  lane {k}: committed {batch:?}");
            let seat = &mut self.seats[k];
            let topic = seat.partition.topic;
            let fenced = seat.fences.iter().find(|(of, at, id, epoch)| {
                *of == topic && *at <= batch.base && *id == batch.id && batch.epoch < *epoch
            });
            if let Some(fence) = fenced {
                return fault("fence", format!("{batch:?} behind {fence:?}"));
            }
            for (index, record) in batch.records.iter().enumerate() {
                let places = seat.places.entry(*record).or_default();
                if !self.menu.beyond && places.iter().any(|(of, _)| *of == topic) {
                    return fault("twice", format!("{record} in {batch:?} and at {places:?}"));
                }
                places.push((topic, batch.base + index as i64));
                if seat.stories.get(record).is_some_and(Story::is_refused) {
                    return fault("stored", format!("{record} was told not delivered"));
                }
            }
        }
        Ok(())
    }

    pub(super) fn commit(&mut self, k: usize) -> Result<(), Fault> {
        let alive = self.alive;
        let partition = &mut self.seats[k].partition;
        for (broker, _) in alive.iter().enumerate().filter(|(_, alive)| **alive) {
            if partition.in_sync[broker] {
                partition.replicate(broker, 5);
            }
        }
        let new = partition.commit();
        self.committed(k, new)
    }

    pub(super) fn elect(&mut self, k: usize) {
        let partition = &mut self.seats[k].partition;
        let able: Vec<usize> =
            (0..BROKERS).filter(|it| self.alive[*it] && partition.in_sync[*it]).collect();
        if able.is_empty() {
            return;
        }
        let chosen = self.dice.of(&able);
        if partition.leader == Some(chosen) && self.dice.one_in(2) {
            return;
        }
        // Some of what the old leader has may have reached it.
        if self.dice.one_in(2) {
            partition.replicate(chosen, 5);
        }
        partition.elect(chosen);
        say!(self, "partition {k}: broker {chosen} leads at {}", self.seats[k].partition.epoch);
        self.count("election");
    }

    /// The log's beginning may make a broker forget only once the lane was told (A3).
    pub(super) fn may_forget(&self, k: usize, broker: usize, id: i64) -> bool {
        let seat = &self.seats[k];
        let newest = seat.partition.newest_of(broker, id);
        // To a lane that has no offset of its own the log start tells nothing.
        seat.told_topic == seat.partition.topic
            && seat.acknowledged
            && newest.is_some_and(|newest| newest < seat.seen_start)
    }

    /// Copies on their way that nobody can be protected from, once a broker forgot (A3).
    pub(super) fn forgot(&mut self, k: usize) {
        let seat = &mut self.seats[k];
        seat.forgotten = true;
        let stories = &seat.stories;
        let places = &seat.places;
        let copies = &seat.partition.copies;
        let harmless = |sent: &Sent| {
            sent.lane != k
                || sent.stored.is_some()
                || !(copies.iter().any(|copy| copy.holds(&sent.append.records))
                    || sent.append.records.iter().any(|it| {
                        places.contains_key(it) || stories.get(it).is_some_and(Story::is_over)
                    }))
        };
        for conn in self.conns.values_mut() {
            conn.sent.retain(harmless);
        }
    }

    pub(super) fn kill(&mut self) {
        let broker = self.dice.index(BROKERS);
        self.alive[broker] = false;
        say!(self, "broker {broker} dies");
        let now = self.millis();
        let vanish = self.dice.one_in(2);
        for conn in self.conns.values_mut().filter(|conn| conn.broker == broker) {
            for sent in &mut conn.sent {
                sent.stored = None;
            }
            if vanish {
                conn.sent.clear();
            } else {
                conn.sent.pop_front();
            }
        }
        for k in 0..self.seats.len() {
            let ids: Vec<i64> = (0..self.next_id + 1).filter(|id| *id >= 3_000).collect();
            let forgets: BTreeSet<i64> =
                ids.into_iter().filter(|id| self.may_forget(k, broker, *id)).collect();
            let forgets = if self.dice.one_in(2) { forgets } else { BTreeSet::new() };
            if !forgets.is_empty() {
                self.forgot(k);
            }
            let partition = &mut self.seats[k].partition;
            partition.copies[broker].leads = None;
            partition.restart(broker, now, |id| forgets.contains(&id));
            if partition.leader == Some(broker) {
                partition.leader = None;
            }
            if !partition.newest_known(broker) {
                self.forgot(k);
            }
        }
        self.count("kill");
    }

    pub(super) fn look_for_old(&mut self) {
        let k = self.dice.index(self.seats.len());
        let broker = self.dice.index(BROKERS);
        let now = self.millis();
        let expired = self.seats[k].partition.expire(broker, now);
        if !expired.is_empty() {
            say!(self, "partition {k}: broker {broker} forgets {expired:?}");
            self.forgot(k);
            self.count("expired");
        }
    }

    pub(super) fn delete_records(&mut self) {
        let k = self.dice.index(self.seats.len());
        let partition = &mut self.seats[k].partition;
        let committed = partition.committed();
        let room = (committed - partition.start).max(0) as u32;
        partition.start += i64::from(self.dice.below(room + 1));
        let start = partition.start;
        say!(self, "partition {k}: the log starts at {start}");
        self.count("deletion");
    }

    pub(super) fn recreate(&mut self) {
        let k = self.dice.index(self.seats.len());
        let leader = self.dice.index(BROKERS);
        self.seats[k].partition.recreate(leader);
        if self.dice.one_in(2) {
            let manners = &mut self.seats[k].partition.manners;
            manners.log_append_time = !manners.log_append_time;
        }
        self.seats[k].partition.in_sync = vec![true; BROKERS];
        say!(self, "partition {k}: topic made anew, broker {leader} leads");
        for conn in self.conns.values_mut() {
            for sent in conn.sent.iter_mut().filter(|sent| sent.lane == k) {
                if let Some(stored) = &mut sent.stored {
                    stored.reign = None;
                }
            }
        }
        self.count("topic made anew");
    }

    /// A broker goes on with the oldest request of a connection.
    pub(super) fn work(&mut self, route: u64) -> Result<bool, Fault> {
        let Some(conn) = self.conns.get(&route) else { return Ok(false) };
        let broker = conn.broker;
        if !self.alive[broker] {
            return Ok(false);
        }
        let Some(sent) = conn.sent.front().cloned() else { return Ok(false) };
        let answer = match sent.stored.clone() {
            Some(stored) => self.stored(broker, &sent, &stored),
            None => self.look_at(broker, &sent),
        };
        let conn = self.conns.get_mut(&route).expect("it was there");
        match answer {
            Next::Waits => Ok(false),
            Next::Stored(stored) => {
                conn.sent[0].stored = Some(stored);
                Ok(true)
            }
            Next::Answer(answer) => {
                conn.sent.pop_front();
                let up = conn.up;
                if up {
                    conn.answers.push_back((sent.lane, sent.attempt, answer.clone()));
                }
                say!(
                    self,
                    "broker {broker} answers lane {} attempt {} ({}): {}",
                    sent.lane,
                    sent.attempt.0,
                    if up { "heard" } else { "unheard" },
                    brief(&answer)
                );
                Ok(true)
            }
        }
    }

    pub(super) fn response(
        &self,
        k: usize,
        error_code: i16,
        base_offset: i64,
    ) -> PartitionResponse {
        let log_start_offset = self.seats[k].partition.start;
        PartitionResponse {
            error_code,
            base_offset,
            log_append_time: -1,
            log_start_offset,
            record_errors: Vec::new(),
        }
    }

    pub(super) fn look_at(&mut self, broker: usize, sent: &Sent) -> Next {
        let k = sent.lane;
        if !self.quiet && self.dice.one_in(8) {
            let code = self.dice.of(&[19, 2, 5, 8, 9, 72, 74, 89, 14, 16]);
            return self.refusal(k, code);
        }
        if !self.quiet && self.dice.one_in(14) {
            if self.menu.trust {
                return Next::Answer(self.response(k, self.dice_code(&[3, 6]), -1).into());
            }
            let code = self.dice.of(&[-1, 3, 6, 7, 20, 56, 999, 51]);
            return Next::Answer(self.response(k, code, -1).into());
        }
        if !self.quiet && self.dice.one_in(40) {
            return Next::Answer(Answer::Missing);
        }
        if !self.quiet && self.menu.slander && self.dice.one_in(12) {
            let code = self.dice.of(&[45, 59, 47, 90]);
            return self.refusal(k, code);
        }
        if self.denied {
            return self.refusal(k, 29);
        }
        let partition = &self.seats[k].partition;
        if !self.menu.by_name && sent.topic != partition.topic {
            return self.refusal(k, 100);
        }
        if partition.copies[broker].leads.is_none() {
            return self.refusal(k, 6);
        }
        let in_sync = partition.in_sync.iter().filter(|it| **it).count();
        if partition.leader == Some(broker) && in_sync < 2 {
            return self.refusal(k, 19);
        }
        if sent.append.records.len() > self.seats[k].limit {
            let code = if self.dice.one_in(4) { 18 } else { 10 };
            return self.refusal(k, code);
        }
        let poisoned = |record: &u16| self.seats[k].poison.contains(record);
        if sent.append.records.iter().any(poisoned) {
            let named = sent.append.records.iter().enumerate().filter(|(_, it)| poisoned(it));
            let mut named: Vec<u32> = named.map(|(index, _)| index as u32).collect();
            let mut response = self.response(k, 87, -1);
            match self.dice.below(5) {
                1 => named.clear(),
                2 => named.reverse(),
                3 => named.push(77),
                4 => response.error_code = 32,
                _ => {}
            }
            response.record_errors = named;
            return Next::Answer(response.into());
        }
        let now = self.millis();
        let partition = &mut self.seats[k].partition;
        let topic = partition.topic;
        match partition.append(broker, &sent.append, now) {
            Judged::Code(code) => self.refusal(k, code),
            Judged::Stored { base, end, log_append_time } => {
                let reign = partition.copies[broker].leads;
                say!(
                    self,
                    "broker {broker} has lane {k} attempt {} at {base}..{end}",
                    sent.attempt.0
                );
                Next::Stored(Stored { base, end, log_append_time, reign, topic })
            }
        }
    }

    pub(super) fn dice_code(&self, codes: &[i16]) -> i16 {
        codes[(self.now / MILLIS) as usize % codes.len()]
    }

    pub(super) fn refusal(&self, k: usize, code: i16) -> Next {
        Next::Answer(self.response(k, code, -1).into())
    }

    /// It is in the leader's log, and waits for the others.
    pub(super) fn stored(&mut self, broker: usize, sent: &Sent, stored: &Stored) -> Next {
        let k = sent.lane;
        let partition = &self.seats[k].partition;
        let leads = partition.copies[broker].leads;
        if stored.topic != partition.topic {
            return Next::Answer(self.response(k, 3, stored.base).into());
        }
        if leads.is_none() || leads != stored.reign {
            return Next::Answer(self.response(k, 6, stored.base).into());
        }
        if stored.end <= partition.committed()
            && partition.truth.iter().any(|it| it.base <= stored.base && stored.end <= it.end())
            && self.is_same(k, broker, stored)
        {
            let response = PartitionResponse {
                log_append_time: stored.log_append_time,
                ..self.response(k, 0, stored.base)
            };
            return Next::Answer(response.into());
        }
        if !self.quiet && self.dice.one_in(6) {
            let code = self.dice.of(&[7, 7, 20, 56, -1]);
            let base = if self.menu.trust || self.dice.one_in(2) { stored.base } else { -1 };
            return Next::Answer(self.response(k, code, base).into());
        }
        Next::Waits
    }

    /// What stands there in the leader's own log is what is committed there.
    pub(super) fn is_same(&self, k: usize, broker: usize, stored: &Stored) -> bool {
        let partition = &self.seats[k].partition;
        partition.copies[broker].agrees(&partition.truth, stored.end)
    }
}

/// What a broker does with a request.
pub(super) enum Next {
    Waits,
    Stored(Stored),
    Answer(Answer),
}

/// An answer in a word.
pub(super) fn brief(answer: &Answer) -> String {
    match answer {
        Answer::Missing => "nothing".to_owned(),
        Answer::Response(it) => format!(
            "{} at {} start {}{}",
            it.error_code,
            it.base_offset,
            it.log_start_offset,
            if it.record_errors.is_empty() {
                String::new()
            } else {
                format!(" {:?}", it.record_errors)
            }
        ),
    }
}
