//! A lane against one broker that deletes records and forgets producers.

mod broker;

use std::collections::BTreeMap;
use std::fmt;

use candor_core::testing::{Counted, Preset};
use candor_core::*;

use broker::{Broker, Stored};

/// An attempt on its way.
struct Frame {
    topic: u32,
    attempt: AttemptId,
    route: u64,
    identity: Identity,
    first: Sequence,
    records: Vec<u16>,
    batch: usize,
    offered: u32,
    arrived: bool,
    response: Option<PartitionResponse>,
    /// The lane was told how it ended.
    over: bool,
    /// It certainly was not appended, and the lane was told.
    refused: bool,
}

/// What was offered under one identity and sequence.
struct Batch {
    identity: Identity,
    first: Sequence,
    records: Vec<u16>,
    /// The highest log start that was told since it was first offered.
    log_start: i64,
    /// When an answer told that the log had moved past us, it being in doubt.
    told: Option<u32>,
    closed: bool,
}

/// One schedule, and what came of it.
pub(crate) struct Run {
    seed: u64,
    random: u64,
    step: u32,
    now: u64,
    lane: Lane<Counted>,
    broker: Broker,
    frames: Vec<Frame>,
    batches: Vec<Batch>,
    route: u64,
    /// What the broker will not read from, nor answer any more; the lane may not know.
    cut: Vec<u64>,
    dead: Vec<u64>,
    epoch: i32,
    id: i64,
    tickets: u64,
    last_acknowledged: Option<i64>,
    confirms: bool,
    recreates: bool,
    resends: bool,
    closes: bool,
    mix: u64,
    ends: BTreeMap<u64, Vec<String>>,
    proofs: BTreeMap<u64, (Proof, u32)>,
    offsets: BTreeMap<u64, Option<Offset>>,
    last_delivered: i64,
    anomaly: Option<String>,
    story: Vec<String>,
}

impl Run {
    pub(crate) fn of(seed: u64) -> Self {
        let now = 1_700_000_000_000;
        let mut run = Self {
            seed,
            random: seed,
            step: 0,
            now,
            lane: Lane::new(LaneConfig::default(), Instant::from_millis(now)),
            broker: Broker::default(),
            frames: Vec::new(),
            batches: Vec::new(),
            route: 0,
            cut: Vec::new(),
            dead: Vec::new(),
            epoch: 0,
            id: 100,
            tickets: 0,
            last_acknowledged: None,
            confirms: false,
            recreates: false,
            resends: false,
            closes: false,
            mix: 0,
            ends: BTreeMap::new(),
            proofs: BTreeMap::new(),
            offsets: BTreeMap::new(),
            last_delivered: -1,
            anomaly: None,
            story: Vec::new(),
        };
        run.begin();
        if run.mix > 3 {
            run.doubt();
        }
        for _ in 0..30 + run.below(50) {
            run.step();
        }
        run.quiet();
        run.judge();
        run
    }

    pub(crate) fn anomaly(&self) -> Option<&str> {
        self.anomaly.as_deref()
    }

    fn below(&mut self, end: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }

    fn now(&self) -> Instant {
        Instant::from_millis(self.now)
    }

    fn note(&mut self, line: String) {
        self.story.push(format!("{:>3} {line}", self.step));
    }

    fn suspect(&mut self, what: String) {
        self.note(format!("ANOMALY {what}"));
        self.anomaly.get_or_insert(what);
    }

    fn begin(&mut self) {
        self.confirms = self.below(3) == 0;
        self.mix = self.below(7);
        self.recreates = self.below(3) == 0;
        self.resends = self.below(8) == 0;
        self.closes = self.below(4) == 0;
        self.broker.strict = self.below(3) == 0;
        let config = LaneConfig {
            beyond_memory: if self.resends { BeyondMemory::Resend } else { BeyondMemory::Keep },
            on_data_loss: [OnDataLoss::Continue, OnDataLoss::Stop][self.below(2) as usize],
            ..LaneConfig::default()
        };
        self.lane = Lane::new(config.clone(), self.now());
        if self.below(2) == 0 {
            let epoch = if self.below(8) == 0 { 32_766 } else { 3 };
            let identity = Identity {
                id: ProducerId::new(7).unwrap(),
                epoch: ProducerEpoch::new(epoch).unwrap(),
            };
            let last_acknowledged = Offset::new(9).unwrap();
            let preset = Preset { identity, next: Sequence::new(40).unwrap(), last_acknowledged };
            self.lane = Lane::preset(config, self.now(), preset);
            self.broker.end = 10;
            self.broker.memory.insert(7, (epoch, vec![(39, 40, 9)]));
            self.broker.log.push(Stored {
                base: 9,
                id: 7,
                batch: usize::MAX,
                offered: 0,
                first: 39,
                records: vec![u16::MAX],
                epoch,
                topic: 0,
                forgot: false,
            });
            self.last_acknowledged = Some(9);
        }
        self.next_route();
    }

    fn tell(&mut self, event: Event<'_, Counted>) {
        self.lane.handle(self.now(), event).unwrap();
        self.poll();
    }

    fn poll(&mut self) {
        while let Some(action) = self.lane.poll(self.now()) {
            match action {
                Action::Settled(settled) => self.settled(&settled),
                Action::Notice(notice) => {
                    self.note(format!("{notice:?}"));
                    let alarm = matches!(
                        notice,
                        Notice::DataLoss { .. } | Notice::Contradiction { .. } | Notice::StateLost
                    );
                    if matches!(notice, Notice::DataLoss { .. }) || alarm && !self.broker.forgot {
                        self.suspect(format!("false alarm {notice:?}"));
                    }
                }
                Action::NeedIdentity => {
                    self.id += 1;
                    let id = ProducerId::new(self.id).unwrap();
                    self.lane.handle(self.now(), Event::Identity(Identity::fresh(id))).unwrap();
                }
                Action::NeedLeader => {}
            }
        }
        let identity = self.lane.identity();
        for batch in &mut self.batches {
            batch.closed |= Some(batch.identity) != identity;
        }
    }

    fn settled(&mut self, settled: &Settled) {
        for (ticket, verdict) in settled.verdicts() {
            self.note(format!("{ticket:?} {verdict:?}"));
            match verdict {
                Verdict::Delivered { offset } => {
                    if let Some(offset) = offset {
                        if offset.get() <= self.last_delivered && !self.broker.forgot {
                            self.suspect(format!("{ticket:?} out of order"));
                        }
                        self.last_delivered = offset.get();
                    }
                    self.offsets.insert(ticket.0, offset);
                    self.end(ticket.0, "delivered".to_owned());
                }
                Verdict::NotDelivered(proof) => {
                    self.proofs.insert(ticket.0, (proof, self.step));
                    self.end(ticket.0, format!("{proof:?}"));
                }
                Verdict::Unknown(_) => self.end(ticket.0, "unknown".to_owned()),
            }
        }
        for (ticket, resolution) in settled.resolutions() {
            self.note(format!("{ticket:?} -> {resolution:?}"));
            match resolution {
                Resolution::Delivered { offset } => {
                    self.offsets.insert(ticket.0, offset);
                    self.end(ticket.0, "delivered".to_owned());
                }
                Resolution::NotDelivered(proof) => {
                    self.proofs.insert(ticket.0, (proof, self.step));
                    self.end(ticket.0, format!("{proof:?}"));
                }
                Resolution::Never { reason, .. } => self.end(ticket.0, format!("{reason:?}")),
            }
        }
    }

    fn end(&mut self, ticket: u64, what: String) {
        self.ends.entry(ticket).or_default().push(what);
    }

    fn next_route(&mut self) {
        self.route += 1;
        self.leader(Some(self.route));
    }

    fn leader(&mut self, route: Option<u64>) {
        self.note(format!("leader {route:?} epoch {}", self.epoch));
        self.tell(Event::Leader { route: route.map(RouteId), epoch: LeaderEpoch(self.epoch) });
    }

    fn append(&mut self) {
        if self.lane.is_stopped() {
            return;
        }
        let count = 1 + self.below(2);
        for _ in 0..count {
            let deadline = if self.below(4) == 0 { 3_000 } else { 600_000 };
            let ticket = self.tickets;
            self.tickets += 1;
            let now = self.now();
            self.tell(Event::Append(Append {
                ticket: Ticket(ticket),
                born: now,
                deadline: Instant::from_millis(self.now + deadline),
                timestamp: self.now as i64,
                record: ticket as u16,
            }));
        }
        self.tell(Event::Flush);
    }

    fn offer(&mut self) -> bool {
        let Some(offer) = self.lane.offer(self.now(), RouteId(self.route), usize::MAX) else {
            return false;
        };
        let records = offer.batch.records();
        let here = |it: &Batch| {
            (it.identity, it.first) == (offer.identity, offer.first) && it.records == records
        };
        let batch = self.batches.iter().position(here).unwrap_or(self.batches.len());
        let is_new = batch == self.batches.len();
        if is_new {
            self.batches.push(Batch {
                identity: offer.identity,
                first: offer.first,
                records: records.clone(),
                log_start: 0,
                told: None,
                closed: false,
            });
        }
        self.note(format!(
            "offer {:?} {records:?} e{} s{} route {} {}",
            offer.attempt,
            offer.identity.epoch.get(),
            offer.first.get(),
            offer.route.0,
            if offer.replacement { "REPLACEMENT" } else { "" },
        ));
        self.frames.push(Frame {
            topic: self.broker.topic,
            attempt: offer.attempt,
            route: self.route,
            identity: offer.identity,
            first: offer.first,
            records,
            batch,
            offered: self.step,
            arrived: false,
            response: None,
            over: false,
            refused: false,
        });
        true
    }

    fn is_dead(&self, route: u64) -> bool {
        self.dead.contains(&route)
    }

    /// The oldest frame on this connection that did not arrive.
    fn arrive(&mut self, faults: bool) {
        let live: Vec<usize> = (0..self.frames.len())
            .filter(|i| !self.frames[*i].arrived && !self.cut.contains(&self.frames[*i].route))
            .collect();
        let Some(&one) = live.first() else { return };
        let index = if faults && self.below(3) == 0 { live[live.len() - 1] } else { one };
        let route = self.frames[index].route;
        let index = live.into_iter().find(|i| self.frames[*i].route == route).unwrap();
        let fault = if faults { self.below(12) } else { 99 };
        let response = match fault {
            0 => self.broker.answer(19, -1),
            1 => self.broker.answer(87, -1),
            2 => PartitionResponse::error(10),
            3 => {
                self.broker.produce(&self.frames[index]);
                self.broker.answer(7, 0)
            }
            4 => self.broker.answer(6, -1),
            _ => self.broker.produce(&self.frames[index]),
        };
        let frame = &mut self.frames[index];
        let line = format!(
            "arrives {:?}: {} @{} start {}",
            frame.attempt, response.error_code, response.base_offset, response.log_start_offset
        );
        frame.arrived = true;
        frame.response = Some(response);
        self.note(line);
    }

    /// A frame whose connection is over.
    fn arrive_late(&mut self) {
        let late: Vec<usize> = (0..self.frames.len())
            .filter(|i| !self.frames[*i].arrived && self.cut.contains(&self.frames[*i].route))
            .collect();
        if late.is_empty() {
            return;
        }
        let index = late[self.below(late.len() as u64) as usize];
        let response = self.broker.produce(&self.frames[index]);
        self.frames[index].arrived = true;
        let attempt = self.frames[index].attempt;
        self.note(format!("late {attempt:?}: {} @{}", response.error_code, response.base_offset));
    }

    fn deliver(&mut self, faults: bool) {
        let answered: Vec<usize> = (0..self.frames.len())
            .filter(|i| {
                let frame = &self.frames[*i];
                frame.response.is_some() && !frame.over && !self.is_dead(frame.route)
            })
            .collect();
        let Some(&one) = answered.first() else { return };
        let index = if faults && self.below(2) == 0 { answered[answered.len() - 1] } else { one };
        let route = self.frames[index].route;
        let index = answered.into_iter().find(|i| self.frames[*i].route == route).unwrap();
        let response = self.frames[index].response.clone().unwrap();
        self.hear(index, &response);
        let frame = &mut self.frames[index];
        frame.over = true;
        let attempt = frame.attempt;
        self.note(format!("answer {attempt:?}: {} @{}", response.error_code, response.base_offset));
        self.tell(Event::Answered { attempt, answer: response.into() });
    }

    /// S20, word by word.
    fn hear(&mut self, index: usize, response: &PartitionResponse) {
        let start = response.log_start_offset;
        self.frames[index].refused =
            matches!(response.error_code, 10 | 19 | 45 | 47 | 59 | 87 | 100);
        if self.frames[index].topic != self.broker.topic {
            return;
        }
        let moved = self.last_acknowledged.is_some_and(|last| start > last);
        let mut in_doubt = vec![false; self.batches.len()];
        self.frames.iter().filter(|it| !it.refused).for_each(|it| in_doubt[it.batch] = true);
        for (batch, in_doubt) in self.batches.iter_mut().zip(in_doubt) {
            if batch.closed {
                continue;
            }
            batch.log_start = batch.log_start.max(start);
            if moved && in_doubt {
                batch.told.get_or_insert(self.step);
            }
        }
        if response.error_code == 0 {
            let frame = &self.frames[index];
            let last = response.base_offset + frame.records.len() as i64 - 1;
            let same = self.lane.identity().is_none_or(|it| it.id == frame.identity.id);
            if same {
                if self.last_acknowledged.is_none() {
                    for batch in self.batches.iter_mut().filter(|it| !it.closed) {
                        if batch.log_start > last {
                            batch.told.get_or_insert(self.step);
                        }
                    }
                }
                self.last_acknowledged = self.last_acknowledged.max(Some(last));
            }
            let rivals = self.batches.iter_mut().filter(|it| {
                (it.identity, it.first) == (frame.identity, frame.first)
                    && it.records != frame.records
            });
            rivals.for_each(|it| it.closed = true);
        }
    }

    fn kill(&mut self, route: u64) {
        if self.is_dead(route) {
            return;
        }
        self.dead.push(route);
        self.cut.push(route);
        self.note(format!("route {route} is over"));
        let open: Vec<usize> = (0..self.frames.len())
            .filter(|i| self.frames[*i].route == route && !self.frames[*i].over)
            .collect();
        for index in open {
            self.frames[index].over = true;
            let attempt = self.frames[index].attempt;
            let cut = !self.frames[index].arrived && self.below(6) == 0;
            let handed = if cut {
                self.frames[index].arrived = true;
                self.frames[index].refused = true;
                HandedOver::Partly
            } else {
                HandedOver::PerhapsWhole
            };
            self.tell(Event::Ended { attempt, handed });
        }
    }

    fn kill_all(&mut self) {
        for route in 1..=self.route {
            self.kill(route);
        }
    }

    /// An opener, some batches behind it, refused or lost.
    fn doubt(&mut self) {
        self.step += 1;
        self.append();
        self.offer();
        self.arrive(false);
        self.deliver(false);
        for _ in 0..2 + self.below(3) {
            self.append();
            self.offer();
        }
        let from = self.frames.len();
        for index in 0..from {
            if self.frames[index].over {
                continue;
            }
            self.step += 1;
            let attempt = self.frames[index].attempt;
            let code = match self.below(4) {
                0 => 19,
                1 => 87,
                2 => {
                    self.arrive(false);
                    continue;
                }
                _ => continue,
            };
            let response = self.broker.answer(code, -1);
            self.frames[index].arrived = true;
            self.frames[index].response = Some(response.clone());
            self.hear(index, &response);
            self.frames[index].over = true;
            self.note(format!("answer {attempt:?}: {code}"));
            self.tell(Event::Answered { attempt, answer: response.into() });
        }
        if self.below(3) > 0 {
            let route = self.route;
            if self.below(2) == 0 {
                self.kill(route);
            }
            self.next_route();
        }
    }

    fn step(&mut self) {
        self.step += 1;
        let deed = match (self.mix, self.below(4)) {
            (1, 0) => [10, 10, 70, 70, 80, 60][self.below(6) as usize],
            (2, 0) => [10, 64, 70, 84, 84, 99][self.below(6) as usize],
            (3..7, 0..3) => {
                let few = if self.tickets < 5 { 1 } else { 10 };
                [few, 10, 10, 35, 35, 50, 50, 64, 68, 71, 77, 77, 85, 99, 99, 84]
                    [self.below(16) as usize]
            }
            _ => self.below(100),
        };
        match deed {
            0..10 => self.append(),
            10..30 => {
                self.offer();
            }
            30..45 => self.arrive(true),
            45..60 => self.deliver(true),
            60..63 => {
                self.kill(self.route);
                self.next_route();
            }
            63 => {
                let route = 1 + self.below(self.route);
                self.kill(route);
                if route == self.route {
                    self.next_route();
                }
            }
            64..68 => self.next_route(),
            68..70 => {
                self.epoch += 1;
                self.leader(Some(self.route));
            }
            70..76 => self.arrive_late(),
            76..81 => {
                let (start, end) = (self.broker.start, self.broker.end);
                let to = if self.below(3) == 0 {
                    start + self.below((end - start + 1) as u64) as i64
                } else {
                    end
                };
                self.broker.start = to;
                self.note(format!("deleted up to {to}"));
                if self.below(2) == 0 {
                    self.crash();
                }
            }
            81..84 => self.crash(),
            84..89 if self.tickets > 0 => {
                let ticket = self.tickets - 1 - self.below(self.tickets.min(6));
                self.note(format!("revoke {ticket}"));
                self.tell(Event::Revoke(Ticket(ticket)));
            }
            89 => {
                self.note("abandon".to_owned());
                self.tell(Event::Abandon);
            }
            94 if self.recreates => {
                self.note("made anew".to_owned());
                self.broker.recreate();
                (self.last_acknowledged, self.last_delivered) = (None, -1);
                self.tell(Event::TopicRecreated);
            }
            90..=93 if self.confirms => {
                self.tell(Event::LeaderConfirmed { epoch: LeaderEpoch(self.epoch) });
            }
            _ => {
                self.now += [200, 1_100, 2_000][self.below(3) as usize];
                self.poll();
            }
        }
    }

    fn crash(&mut self) {
        self.note("crash".to_owned());
        self.broker.restart();
        if self.below(2) == 0 {
            self.kill_all();
        }
        self.cut.extend(1..=self.route);
        self.next_route();
    }

    fn quiet(&mut self) {
        self.step += 1;
        self.note("quiet".to_owned());
        self.kill_all();
        self.next_route();
        if self.closes {
            let deadline = Instant::from_millis(self.now + self.below(20) * 500);
            self.tell(Event::Close { deadline });
        }
        for _ in 0..800 {
            self.step += 1;
            while self.offer() {}
            for _ in 0..6 {
                self.arrive(false);
                self.deliver(false);
            }
            self.tell(Event::LeaderConfirmed { epoch: LeaderEpoch(self.epoch) });
            if self.lane.is_idle() {
                return;
            }
            self.now += 1_000;
            self.poll();
        }
        self.suspect("stranded".to_owned());
    }

    fn judge(&mut self) {
        for ticket in 0..self.tickets {
            let record = ticket as u16;
            let copies: Vec<&Stored> =
                self.broker.log.iter().filter(|it| it.records.contains(&record)).collect();
            let any_forgot = self.broker.forgot;
            let told = |batch: usize| self.batches.get(batch).and_then(|it| it.told);
            let told_by = |step: u32| {
                let mut batches = self.batches.iter().filter(|it| it.records.contains(&record));
                batches.any(|it| it.told.is_some_and(|told| told <= step))
            };
            let mut found = None;
            for (index, copy) in copies.iter().enumerate().skip(1) {
                let warned = copies[..=index]
                    .iter()
                    .any(|it| told(it.batch).is_some_and(|told| told < copy.offered));
                if !any_forgot || !copy.forgot || (warned && !self.confirms && !self.resends) {
                    found = Some(format!("{ticket} is there twice"));
                }
            }
            let proof = self.proofs.get(&ticket);
            if let Some((proof, step)) = proof
                && !copies.is_empty()
            {
                let offered = self.batches.iter().filter(|it| it.records.contains(&record));
                let by_memory =
                    matches!(proof, Proof::SlotTaken | Proof::Unreachable) || offered.count() > 1;
                if !by_memory
                    || !any_forgot
                    || (copies.iter().any(|it| told(it.batch).is_some_and(|told| told <= *step))
                        && !self.confirms)
                {
                    found = Some(format!("{ticket} is there, {proof:?}"));
                }
            }
            if let Some(offset) = self.offsets.get(&ticket) {
                let there = copies.iter().any(|it| match offset {
                    Some(offset) => {
                        it.base + it.records.iter().position(|r| *r == record).unwrap() as i64
                            == offset.get()
                    }
                    None => true,
                });
                if !there && (offset.is_some() || !any_forgot || told_by(u32::MAX)) {
                    found = Some(format!("{ticket} is not there, {offset:?}"));
                }
            }
            let ends = self.ends.get(&ticket).map_or(0, Vec::len);
            let unknown = self.ends.get(&ticket).is_some_and(|it| it[0] == "unknown");
            if self.lane.is_idle() && ends != 1 + usize::from(unknown) {
                found = Some(format!("{ticket} has {ends} ends"));
            }
            if let Some(found) = found {
                self.suspect(found);
            }
        }
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}", self.seed)?;
        for line in &self.story {
            writeln!(f, "{line}")?;
        }
        for it in &self.broker.log {
            writeln!(f, "log @{} e{} s{} {:?}", it.base, it.epoch, it.first, it.records)?;
        }
        Ok(())
    }
}
