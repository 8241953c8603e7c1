//! The client's side: connections, metadata, ids, records and wishes.

use super::brokers::brief;
use super::*;

impl<R: Rules> World<R> {
    pub(super) fn connect(&mut self, broker: usize) -> u64 {
        let up = self.conns.iter().find(|(_, conn)| conn.up && conn.broker == broker);
        if let Some((route, _)) = up {
            return *route;
        }
        let route = self.next_route;
        self.next_route += 1;
        let (sent, answers, open) = (VecDeque::new(), VecDeque::new(), Vec::new());
        self.conns.insert(route, Conn { broker, up: true, sent, answers, open });
        route
    }

    pub(super) fn lead(
        &mut self,
        k: usize,
        broker: Option<usize>,
        epoch: i32,
    ) -> Result<(), Fault> {
        let route = broker.map(|broker| self.connect(broker));
        self.seats[k].route = route;
        self.seats[k].told_epoch = epoch;
        say!(self, "lane {k}: leader is {broker:?} by route {route:?} at epoch {epoch}");
        self.handle(k, Event::Leader { route: route.map(RouteId), epoch: LeaderEpoch(epoch) })
    }

    /// Metadata arrives.
    pub(super) fn metadata(&mut self, k: usize) -> Result<(), Fault> {
        let stale = !self.quiet && self.menu.stale && self.dice.one_in(5);
        let partition = &self.seats[k].partition;
        if stale {
            let believes: Vec<(usize, i32)> = (0..BROKERS)
                .filter_map(|it| partition.copies[it].leads.map(|epoch| (it, epoch)))
                .collect();
            if !believes.is_empty() {
                let (broker, epoch) = self.dice.of(&believes);
                return self.lead(k, Some(broker), epoch);
            }
        }
        if self.seats[k].told_topic != partition.topic {
            self.seats[k].told_topic = partition.topic;
            self.seats[k].seen_start = -1;
            self.seats[k].acknowledged = false;
            say!(self, "lane {k}: topic was made anew");
            self.handle(k, Event::TopicRecreated)?;
        }
        let partition = &self.seats[k].partition;
        let (leader, epoch) = (partition.leader.filter(|it| self.alive[*it]), partition.epoch);
        let route = self.seats[k].route.and_then(|route| self.conns.get(&route));
        let same = route.is_some_and(|conn| conn.up && Some(conn.broker) == leader);
        if same && self.seats[k].told_epoch == epoch {
            if std::mem::take(&mut self.seats[k].needs_leader) {
                say!(self, "lane {k}: leader confirmed");
                return self.handle(k, Event::LeaderConfirmed { epoch: LeaderEpoch(epoch) });
            }
            return Ok(());
        }
        self.lead(k, leader, epoch)
    }

    pub(super) fn transmit(&mut self, k: usize) -> Result<bool, Fault> {
        let Some(route) = self.seats[k].route else { return Ok(false) };
        if !self.conns.get(&route).is_some_and(|conn| conn.up) {
            return Ok(false);
        }
        let max = if self.quiet || !self.dice.one_in(8) { 1 << 20 } else { 2 };
        let now = self.instant();
        let Some(offer) = self.seats[k].lane.offer(now, RouteId(route), max) else {
            return Ok(false);
        };
        let records = offer.batch.records();
        let append = Append {
            id: offer.identity.id.get(),
            epoch: offer.identity.epoch.get(),
            first: offer.first.get().into(),
            stamp: candor_core::Frozen::max_timestamp(&offer.batch),
            records: records.clone(),
        };
        say!(
            self,
            "lane {k} offers attempt {} on {route}: {}/{} {} {records:?}{} stamp {}",
            offer.attempt.0,
            append.id,
            append.epoch,
            append.first,
            if offer.replacement { " (replacement)" } else { "" },
            append.stamp - self.millis(),
        );
        self.count(if offer.replacement { "replacement" } else { "offer" });
        let seat = &mut self.seats[k];
        let count = records.len() as u32;
        let topic = seat.told_topic;
        let key = (topic, append.id, append.epoch, offer.first.get(), count);
        let offers = seat.offers_now.entry(key).or_default();
        *offers += 1;
        if *offers > 6 {
            return fault("busy", "offers without end at one moment");
        }
        let before = seat.contents.insert(key, records.clone());
        if before.as_ref().is_some_and(|before| *before != records) {
            return fault("two contents", format!("{before:?} and {records:?}"));
        }
        let told = |it: &u16| seat.stories.get(it).is_some_and(|it| it.verdict.is_some());
        if offer.replacement && before.is_none() && records.iter().any(told) {
            return fault("replacement", "carries what has a verdict");
        }
        let sent = Sent { lane: k, attempt: offer.attempt, append, topic, stored: None };
        let conn = self.conns.get_mut(&route).expect("it is up");
        conn.sent.push_back(sent);
        conn.open.push((k, offer.attempt));
        if self.dice.one_in(3) {
            self.handle(k, Event::Handed { attempt: offer.attempt })?;
        }
        Ok(true)
    }

    pub(super) fn hear(&mut self, route: u64) -> Result<bool, Fault> {
        let Some(conn) = self.conns.get_mut(&route).filter(|conn| conn.up) else {
            return Ok(false);
        };
        let Some((k, attempt, answer)) = conn.answers.pop_front() else { return Ok(false) };
        conn.open.retain(|open| *open != (k, attempt));
        if let Answer::Response(response) = &answer {
            let seat = &mut self.seats[k];
            if seat.told_topic == seat.partition.topic {
                seat.seen_start = seat.seen_start.max(response.log_start_offset);
            }
        }
        say!(self, "lane {k} hears of attempt {}: {}", attempt.0, brief(&answer));
        self.handle(k, Event::Answered { attempt, answer })?;
        Ok(true)
    }

    pub(super) fn lose(&mut self, route: u64) -> Result<(), Fault> {
        let Some(conn) = self.conns.get_mut(&route).filter(|conn| conn.up) else { return Ok(()) };
        conn.up = false;
        conn.answers.clear();
        let open = std::mem::take(&mut conn.open);
        let whole = self.dice.index(conn.sent.len() + 1);
        let first_whole = conn.sent.iter().take_while(|it| it.stored.is_some()).count();
        let whole = whole.max(first_whole);
        let gone: Vec<Sent> = conn.sent.split_off(whole).into_iter().collect();
        say!(self, "route {route} is lost, {} requests not handed over", gone.len());
        self.count("connection lost");
        let vouches = self.dice.one_in(2);
        for (k, attempt) in open {
            let partly = vouches && gone.iter().any(|it| (it.lane, it.attempt) == (k, attempt));
            let handed = if partly { HandedOver::Partly } else { HandedOver::PerhapsWhole };
            self.handle(k, Event::Ended { attempt, handed })?;
        }
        for k in 0..self.seats.len() {
            if self.seats[k].route == Some(route) {
                let epoch = self.seats[k].told_epoch;
                self.lead(k, None, epoch)?;
            }
        }
        Ok(())
    }

    pub(super) fn give_id(&mut self, k: usize) -> Result<(), Fault> {
        if !self.seats[k].wants_id {
            return Ok(());
        }
        if self.pool.next(self.seats[k].index).is_none() {
            self.next_id += 1;
            self.pool.add(ProducerId::new(self.next_id).expect("an id"));
        }
        let Some((index, identity)) = self.pool.next(self.seats[k].index) else {
            return Ok(());
        };
        say!(self, "lane {k} gets id {}", identity.id.get());
        self.seats[k].index = Some(index);
        self.seats[k].wants_id = false;
        self.handle(k, Event::Identity(identity))
    }

    pub(super) fn append(&mut self, k: usize) -> Result<(), Fault> {
        if self.seats[k].lane.is_stopped() {
            return Ok(());
        }
        let record = self.seats[k].next;
        self.seats[k].next += 1;
        let life = self.dice.of(&[30_000, 120_000, 1_000, 200, 900_000]) * MILLIS;
        let life = if self.quiet { 600 * SECOND } else { life };
        let millis = self.millis();
        let ttl = TTL.as_millis() as i64;
        let timestamp = match self.menu.old_stamps && !self.quiet {
            true => {
                let ages = [0, ttl / 2, ttl - 1_000, ttl + ttl / 4, ttl * 3, -ttl];
                let stamp = millis - self.dice.of(&ages);
                match self.dice.below(12) {
                    1 => -1,
                    2 => i64::MAX,
                    3 => 0,
                    _ => stamp,
                }
            }
            false => millis,
        };
        if !self.quiet && self.dice.one_in(12) {
            self.seats[k].poison.insert(record);
        }
        let deadline = self.now + life;
        say!(self, "append {record} to lane {k}, {} ms", life / MILLIS);
        self.seats[k].stories.insert(record, Story { deadline, verdict: None, resolution: None });
        let record = Record {
            ticket: Ticket(record.into()),
            born: self.instant(),
            deadline: Instant::from_micros(deadline),
            timestamp,
            record,
        };
        self.handle(k, Event::Append(record))
    }

    pub(super) fn wish(&mut self, k: usize) -> Result<(), Fault> {
        let waiting: Vec<u16> = self.seats[k]
            .stories
            .iter()
            .filter(|(_, story)| !story.is_over())
            .map(|(record, _)| *record)
            .collect();
        if waiting.is_empty() {
            return Ok(());
        }
        let record = self.dice.of(&waiting);
        let ticket = Ticket(record.into());
        let now = self.now;
        let sooner = |seat: &mut Seat<R>| {
            if let Some(story) = seat.stories.get_mut(&record) {
                story.deadline = story.deadline.min(now);
            }
        };
        match self.dice.below(10) {
            0..=2 => {
                say!(self, "lane {k}: cancel {record}");
                sooner(&mut self.seats[k]);
                self.handle(k, Event::Cancel(ticket))
            }
            3..=6 => {
                say!(self, "lane {k}: revoke {record}");
                sooner(&mut self.seats[k]);
                self.handle(k, Event::Revoke(ticket))
            }
            7 => {
                say!(self, "lane {k}: abandon");
                self.handle(k, Event::Abandon)
            }
            8 => {
                say!(self, "lane {k}: shed");
                self.handle(k, Event::Shed)
            }
            _ => {
                self.seats[k].held = !self.seats[k].held;
                let held = self.seats[k].held;
                say!(self, "lane {k}: held {held}");
                self.handle(k, if held { Event::Hold } else { Event::Release })
            }
        }
    }
}
