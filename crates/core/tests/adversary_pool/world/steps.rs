//! A run: steps, and the quiet behind them.

use super::*;

impl<R: Rules> World<R> {
    pub(super) fn wait(&mut self) {
        let short = [0, 1, 10, 100, 200, 200, 1_000, 40_000];
        let mut by = self.dice.of(&short) * MILLIS;
        if self.menu.long_waits && self.dice.one_in(12) {
            by = self.dice.of(&[600 * SECOND, HOUR, 2 * HOUR, 3 * HOUR]);
        }
        if by > 0 {
            self.seats.iter_mut().for_each(|seat| seat.offers_now.clear());
        }
        self.now += by;
    }

    pub(super) fn any_route(&mut self) -> Option<u64> {
        let busy: Vec<u64> = self
            .conns
            .iter()
            .filter(|(_, conn)| !conn.sent.is_empty() || !conn.answers.is_empty())
            .map(|(route, _)| *route)
            .collect();
        (!busy.is_empty()).then(|| self.dice.of(&busy))
    }

    pub(super) fn step(&mut self) -> Result<(), Fault> {
        let k = self.dice.index(self.seats.len());
        if self.dice.one_in(4) {
            self.give_id(k)?;
            if self.seats[k].route.is_none() || self.seats[k].needs_leader {
                self.metadata(k)?;
            }
        }
        match self.dice.below(64) {
            0..=7 => self.append(k)?,
            8..=21 => {
                for _ in 0..=self.dice.below(3) {
                    self.transmit(k)?;
                }
            }
            22..=33 => {
                if let Some(route) = self.any_route() {
                    self.work(route)?;
                }
            }
            34..=41 => {
                if let Some(route) = self.any_route() {
                    self.hear(route)?;
                }
            }
            42..=44 => self.commit(k)?,
            45..=46 => self.metadata(k)?,
            47..=50 => self.wait(),
            51 => self.wish(k)?,
            52 => self.revoke_oldest(k)?,
            53 => {
                let event = if self.dice.one_in(2) { Event::Flush } else { Event::Due };
                self.handle(k, event)?;
            }
            54..=55 => {
                let up: Vec<u64> =
                    self.conns.iter().filter(|(_, it)| it.up).map(|(route, _)| *route).collect();
                if !up.is_empty() {
                    let route = self.dice.of(&up);
                    self.lose(route)?;
                }
            }
            _ => self.befall(k),
        }
        Ok(())
    }

    /// What befalls brokers.
    pub(super) fn befall(&mut self, k: usize) {
        match self.dice.below(9) {
            0 | 1 if self.menu.moves => self.elect(k),
            2 if self.menu.moves => {
                let broker = self.dice.index(BROKERS);
                if self.alive[broker] {
                    let keep = 1 + self.dice.index(5);
                    self.seats[k].partition.replicate(broker, keep);
                }
            }
            3 => self.trouble(k),
            4 => self.seats[k].partition.foreign(),
            5 if self.menu.deletion => self.delete_records(),
            6 if self.menu.recreation && self.dice.one_in(4) => self.recreate(),
            7 => self.look_for_old(),
            8 => match self.dice.below(6) {
                0 => self.kill(),
                1..=3 => {
                    let broker = self.dice.index(BROKERS);
                    self.alive[broker] = true;
                }
                _ => {}
            },
            _ => {}
        }
    }

    pub(super) fn revoke_oldest(&mut self, k: usize) -> Result<(), Fault> {
        let now = self.now;
        let waiting = self.seats[k].stories.iter_mut().find(|(_, story)| !story.is_over());
        let Some((record, story)) = waiting else { return Ok(()) };
        story.deadline = story.deadline.min(now);
        let record = *record;
        say!(self, "lane {k}: revoke {record}");
        self.handle(k, Event::Revoke(Ticket(record.into())))
    }

    pub(super) fn trouble(&mut self, k: usize) {
        match self.dice.below(8) {
            0 => self.denied = true,
            1 => self.seats[k].limit = self.dice.of(&[usize::MAX, 2, 1, 0]),
            2 => {
                let broker = self.dice.index(BROKERS);
                if self.seats[k].partition.leader.is_some_and(|leader| leader != broker) {
                    self.seats[k].partition.in_sync[broker] = false;
                }
            }
            3 => {
                let broker = self.dice.index(BROKERS);
                let partition = &mut self.seats[k].partition;
                if self.alive[broker] && partition.leader.is_some() {
                    partition.replicate(broker, 5);
                    partition.in_sync[broker] = true;
                }
            }
            _ => {
                self.seats[k].poison.clear();
                self.seats[k].limit = usize::MAX;
                self.denied = false;
            }
        }
        let (denied, limit) = (self.denied, self.seats[k].limit);
        say!(self, "trouble: denied {denied}, limit of {k} {limit}");
    }

    pub(crate) fn run(&mut self, steps: u32) -> Result<(), Fault> {
        for _ in 0..steps {
            self.step()?;
            // Some callers hear one thing only before they go on, and some nothing.
            let manner = if self.menu.sluggish { 2 + self.dice.below(4) } else { 0 };
            for k in 0..self.seats.len() {
                match manner {
                    5 => {}
                    4 => _ = self.poll_once(k)?,
                    _ => self.poll(k)?,
                }
            }
        }
        self.calm_down()
    }

    /// Everything works again, and everything has to end.
    pub(super) fn calm_down(&mut self) -> Result<(), Fault> {
        say!(self, "---- quiet");
        self.quiet = true;
        self.denied = false;
        self.alive = [true; BROKERS];
        // Request timeouts end the connections on which nothing will come any more.
        let silent = |conn: &Conn| conn.open.len() > conn.sent.len() + conn.answers.len();
        let silent: Vec<u64> =
            self.conns.iter().filter(|(_, it)| it.up && silent(it)).map(|(it, _)| *it).collect();
        for route in silent {
            self.lose(route)?;
        }
        for k in 0..self.seats.len() {
            self.seats[k].limit = usize::MAX;
            self.poll(k)?;
            if std::mem::take(&mut self.seats[k].held) {
                self.handle(k, Event::Release)?;
            }
            if self.seats[k].partition.leader.is_none() {
                self.elect_any(k);
            }
            for broker in 0..BROKERS {
                self.seats[k].partition.replicate(broker, 5);
                self.seats[k].partition.in_sync[broker] = true;
            }
        }
        self.settle(3_600)?;
        for k in 0..self.seats.len() {
            if !self.seats[k].lane.is_idle() {
                return fault("hang", format!("lane {k} is not idle"));
            }
            let open = self.seats[k].stories.iter().find(|(_, story)| !story.is_over());
            if let Some((record, story)) = open {
                return fault("unresolved", format!("lane {k} record {record}: {story:?}"));
            }
        }
        self.fresh_records()?;
        self.order()?;
        self.close()
    }

    pub(super) fn elect_any(&mut self, k: usize) {
        let partition = &mut self.seats[k].partition;
        let able = (0..BROKERS).find(|it| partition.in_sync[*it]);
        if let Some(broker) = able {
            partition.elect(broker);
        }
    }

    pub(super) fn settle(&mut self, seconds: u64) -> Result<(), Fault> {
        let longest = self.seats.iter().flat_map(|seat| seat.stories.values());
        let longest = longest.filter(|it| it.verdict.is_none()).map(|it| it.deadline).max();
        let end = longest.unwrap_or(0).max(self.now) + seconds * SECOND;
        let mut rounds = 0;
        loop {
            rounds += 1;
            if rounds > 20_000 {
                return fault("busy", "the quiet phase does not end");
            }
            let mut moved = false;
            for k in 0..self.seats.len() {
                self.poll(k)?;
                self.give_id(k)?;
                self.metadata(k)?;
                self.poll(k)?;
                while self.transmit(k)? {
                    moved = true;
                    self.poll(k)?;
                }
            }
            let routes: Vec<u64> = self.conns.keys().copied().collect();
            for k in 0..self.seats.len() {
                self.commit(k)?;
            }
            for route in routes {
                while self.work(route)? {
                    moved = true;
                    for k in 0..self.seats.len() {
                        self.commit(k)?;
                    }
                }
                while self.hear(route)? {
                    moved = true;
                    for k in 0..self.seats.len() {
                        self.poll(k)?;
                    }
                }
            }
            if moved {
                continue;
            }
            let asked = self.seats.iter().any(|it| it.needs_leader && it.route.is_some());
            if self.seats.iter().all(|seat| seat.lane.is_idle()) {
                return Ok(());
            }
            let deadlines = self.seats.iter().filter_map(|seat| seat.lane.deadline());
            match deadlines.map(|deadline| deadline.at.as_micros()).min() {
                Some(at) if at <= end => {
                    self.now = self.now.max(at);
                    self.seats.iter_mut().for_each(|seat| seat.offers_now.clear());
                }
                Some(_) | None if asked => {}
                Some(_) | None => return fault("hang", "nothing to wait for"),
            }
        }
    }

    pub(super) fn fresh_records(&mut self) -> Result<(), Fault> {
        for k in 0..self.seats.len() {
            if self.seats[k].lane.is_stopped() {
                if self.seats[k].excused || self.menu.beyond {
                    continue;
                }
                return fault("stopped", format!("lane {k}"));
            }
            for _ in 0..3 {
                self.append(k)?;
            }
        }
        let fresh: Vec<u16> = self.seats.iter().map(|seat| seat.next).collect();
        self.settle(700)?;
        for (k, next) in fresh.into_iter().enumerate() {
            if self.seats[k].lane.is_stopped() {
                continue;
            }
            for record in next - 3..next {
                if !self.seats[k].stories[&record].is_delivered() {
                    return fault("useless", format!("lane {k} record {record}"));
                }
            }
        }
        Ok(())
    }

    /// Delivered records stand in the order in which they were sent.
    pub(super) fn order(&self) -> Result<(), Fault> {
        for (k, seat) in self.seats.iter().enumerate() {
            if seat.unfenced || self.menu.slander || self.menu.beyond {
                continue;
            }
            let topic = seat.partition.topic;
            let mut last = None;
            for batch in seat.partition.truth.iter().filter(|batch| batch.id >= 0) {
                for record in &batch.records {
                    if !seat.stories[record].is_delivered() {
                        continue;
                    }
                    if last.is_some_and(|last| last >= *record) {
                        return fault("order", format!("lane {k} topic {topic}: {record} late"));
                    }
                    last = Some(*record);
                }
            }
        }
        Ok(())
    }

    pub(super) fn close(&mut self) -> Result<(), Fault> {
        for k in 0..self.seats.len() {
            let deadline = self.instant() + Span::from_secs(1);
            self.handle(k, Event::Close { deadline })?;
            self.poll(k)?;
        }
        self.now += 2 * SECOND;
        for k in 0..self.seats.len() {
            self.poll(k)?;
            if !self.seats[k].lane.is_idle() {
                return fault("close", format!("lane {k} is not idle"));
            }
        }
        Ok(())
    }

    pub(crate) fn drawn(self) -> (Vec<u32>, Vec<String>) {
        (self.dice.drawn, self.log)
    }
}
