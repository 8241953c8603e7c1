//! Arbitrary legal schedules against a small truthful broker. What is checked needs no knowledge
//! of how the lane decides: one verdict by its deadline, one resolution, and no word that the log
//! refutes, also after every late copy has landed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test's helpers

#[path = "adversary_random/broker.rs"]
mod broker;
#[path = "adversary_random/steps.rs"]
mod steps;

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};

use candor_core::testing::{Counted, Preset};
use candor_core::*;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use broker::{Broker, Entry, Frame};
use steps::{Mood, Start, Step, start, step};

#[derive(Clone, Copy, Debug, Default)]
struct Fate {
    deadline: u64,
    verdict: Option<Verdict>,
    resolution: Option<Resolution>,
}

impl Fate {
    /// Nothing more is to be said of it.
    fn is_settled(&self) -> bool {
        match self.verdict {
            None => false,
            Some(Verdict::Unknown(_)) => self.resolution.is_some(),
            Some(Verdict::Delivered { .. } | Verdict::NotDelivered(_)) => true,
        }
    }
}

struct World {
    start: Start,
    lane: Lane<Counted>,
    broker: Broker,
    now: u64,
    frames: Vec<Frame>,
    route: Option<RouteId>,
    routes: u64,
    epoch: i32,
    asked_identity: bool,
    ids: i64,
    asked_leader: bool,
    fates: Vec<Fate>,
    last_delivered: i64,
    unfenced: bool,
    shed: bool,
    abandoned: bool,
    recreated: bool,
    purged: bool,
    conflict: bool,
    closed: Option<u64>,
    offers: u32,
    led_by: (Option<RouteId>, i32),
    era: u32,
    /// In this era a 0 came.
    era_proved: bool,
    /// Every batch that was offered: one content for each place in an epoch.
    contents: BTreeMap<(i64, i16, i32), Vec<u16>>,
    /// Every replacement: one content for each place and size.
    replacements: BTreeMap<(i64, i16, i32, usize), Vec<u16>>,
    /// When each record was offered last in a batch, and at which leader epoch.
    last_offer: BTreeMap<u16, (u64, i32)>,
}

const START: u64 = 1_700_000_000_000;

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

impl World {
    fn new(start: Start) -> Self {
        let config = LaneConfig { batch_size: start.batch_size, ..LaneConfig::default() };
        let mut broker = Broker { kind: start.kind, ..Broker::default() };
        broker.logs.push(vec![None; 10]);
        let lane = match start.preset {
            None => Lane::new(config, at(START)),
            Some((epoch, next)) => {
                let id = ProducerId::new(7).unwrap();
                let identity = Identity { id, epoch: ProducerEpoch::new(epoch).unwrap() };
                let preset = Preset {
                    identity,
                    next: Sequence::new(next).unwrap(),
                    last_acknowledged: Offset::new(9).unwrap(),
                };
                let newest = (Sequence::new(next - 1).unwrap(), 1, 9);
                let batches = VecDeque::from([newest]);
                broker
                    .producers
                    .insert(7, Entry { epoch: identity.epoch, newest: START as i64, batches });
                Lane::preset(config, at(START), preset)
            }
        };
        Self {
            start,
            lane,
            broker,
            now: START,
            frames: Vec::new(),
            route: None,
            routes: 0,
            epoch: 0,
            asked_identity: false,
            ids: 100,
            asked_leader: false,
            fates: Vec::new(),
            last_delivered: -1,
            unfenced: false,
            shed: false,
            abandoned: false,
            recreated: false,
            purged: false,
            conflict: false,
            closed: None,
            offers: 0,
            led_by: (None, 0),
            era: 0,
            era_proved: false,
            contents: BTreeMap::new(),
            replacements: BTreeMap::new(),
            last_offer: BTreeMap::new(),
        }
    }

    fn tell(&mut self, event: Event<'_, Counted>) {
        self.lane.handle(at(self.now), event).expect("a legal event");
    }

    fn is_closed(&self) -> bool {
        self.closed.is_some()
    }

    /// Polls until there is nothing left, and checks what is said.
    fn poll(&mut self) {
        let mut polls = 0;
        while let Some(action) = self.lane.poll(at(self.now)) {
            polls += 1;
            assert!(polls < 200, "a busy loop");
            match action {
                Action::Settled(settled) => self.settled(&settled),
                Action::Notice(notice) => self.notice(notice),
                Action::NeedIdentity => self.asked_identity = true,
                Action::NeedLeader => self.asked_leader = true,
            }
        }
        for (ticket, fate) in self.fates.iter().enumerate() {
            let due = fate.deadline.min(self.closed.unwrap_or(u64::MAX)) <= self.now;
            assert!(!due || fate.verdict.is_some(), "no verdict for {ticket}");
            if self.closed.is_some_and(|closed| closed <= self.now) {
                let unknown = matches!(fate.verdict, Some(Verdict::Unknown(_)));
                assert!(!unknown || fate.resolution.is_some(), "{ticket} unresolved at close");
            }
        }
        if let Some(deadline) = self.lane.deadline() {
            assert!(deadline.at > at(self.now), "a deadline that passed: {deadline:?}");
        }
    }

    fn settled(&mut self, settled: &Settled) {
        for (ticket, verdict) in settled.verdicts() {
            if let Verdict::Delivered { offset: Some(offset) } = verdict {
                let ordered = offset.get() > self.last_delivered || self.recreated;
                assert!(ordered, "Delivered out of offset order (D6)");
                self.last_delivered = offset.get();
            }
            let mut sent = self.frames.iter().filter(|f| f.records.contains(&(ticket.0 as u16)));
            let unknown = matches!(verdict, Verdict::Unknown(_));
            assert!(!unknown || sent.any(|f| !f.refused), "Unknown, and yet all was refused");
            let fate = &mut self.fates[ticket.0 as usize];
            assert!(fate.verdict.is_none(), "two verdicts for {ticket}");
            fate.verdict = Some(verdict);
        }
        for (ticket, resolution) in settled.resolutions() {
            let fate = &self.fates[ticket.0 as usize];
            let unknown = matches!(fate.verdict, Some(Verdict::Unknown(_)));
            assert!(unknown && fate.resolution.is_none(), "a resolution too many for {ticket}");
            if let Resolution::Never { reason, facts } = resolution {
                let caused = match reason {
                    NeverReason::MemoryPressure => self.shed,
                    NeverReason::TopicRecreated => self.recreated,
                    NeverReason::Closed => self.closed.is_some(),
                    NeverReason::Refused => true,
                    // An old duplicate behind which a later batch is written (K6).
                    NeverReason::StateLost => true,
                    NeverReason::Expired => self.purged || self.start.old,
                    NeverReason::Abandoned => self.abandoned,
                };
                let open = |f: &Frame| {
                    let carries = f.records.contains(&(ticket.0 as u16));
                    let here = f.identity == facts.identity && f.first == facts.first;
                    !f.told && carries && here
                };
                let hopeless = self.is_closed() || !self.frames.iter().any(open);
                assert!(hopeless, "Never, and an answer may still come");
                assert!(caused, "Never({reason:?}) without a cause");
            }
            self.fates[ticket.0 as usize].resolution = Some(resolution);
        }
    }

    fn notice(&mut self, notice: Notice) {
        match notice {
            Notice::Fence { .. } => {}
            Notice::Unfenced => {
                let last = self.contents.keys().any(|(_, epoch, _)| *epoch >= 32_766);
                assert!(last || self.conflict, "a fence was to be had");
                self.unfenced = true;
            }
            Notice::IdentityConflict if self.conflict => {}
            Notice::StateLost if self.start.old => {}
            Notice::DataLoss { .. }
            | Notice::StateLost
            | Notice::IdentityConflict
            | Notice::Contradiction { .. }
            | Notice::Stopped => panic!("a truthful broker, and yet: {notice}"),
        }
    }

    fn offer(&mut self) -> bool {
        let Some(route) = self.route else {
            return false;
        };
        let promised = self.lane.offerable(at(self.now));
        let offer = self.lane.offer(at(self.now), route, usize::MAX);
        assert_eq!(promised, offer.is_some(), "offerable and offer disagree");
        let Some(offer) = offer else { return false };
        self.offers += 1;
        self.check_offer(&offer);
        self.frames.push(Frame {
            attempt: offer.attempt,
            route,
            generation: self.broker.generation(),
            identity: offer.identity,
            first: offer.first,
            records: offer.batch.records(),
            max_timestamp: Payload::max_timestamp(&offer.batch),
            answer: None,
            told: false,
            refused: false,
            era: self.era,
        });
        self.tell(Event::Handed { attempt: offer.attempt });
        true
    }

    fn check_offer(&mut self, offer: &Offer<Counted>) {
        let open = self.frames.iter().filter(|f| f.era == self.era && !f.told).count();
        assert!(self.era_proved || open == 0, "two at once through a closed gate (S6)");
        let (records, identity) = (offer.batch.records(), offer.identity);
        let place = (identity.id.get(), identity.epoch.get(), offer.first.get());
        assert!(place.1 < i16::MAX || place.2 == 0, "32767 is a fence only (S10)");
        if offer.replacement {
            return self.check_replacement(place, &records);
        }
        let content = self.contents.entry(place).or_insert_with(|| records.clone());
        assert_eq!(*content, records, "two contents at one place (S2, S4)");
        let clash = self.replacements.get(&(place.0, place.1, place.2, records.len()));
        assert!(clash.is_none_or(|it| *it == records), "two contents at one place (S4)");
        for record in records {
            let told = &self.fates[usize::from(record)];
            assert!(told.resolution.is_none(), "{record} is offered after its end");
            if let Some((when, epoch)) = self.last_offer.insert(record, (self.now, self.epoch)) {
                let rested = self.now >= when + 80 || self.epoch > epoch;
                assert!(rested, "{record} is offered again without backoff (L3, V5)");
            }
        }
    }

    /// C2, S4.
    fn check_replacement(&mut self, place: (i64, i16, i32), records: &[u16]) {
        let (id, epoch, first) = place;
        let contested = &self.contents[&place];
        assert_ne!(contested.len(), records.len(), "an exact match of what it contests (C2)");
        let end = Sequence::new(first).unwrap().after(records.len() as u32).get();
        let taken = |it: &i32| self.contents.contains_key(&(id, epoch, *it));
        // What was written before it is out of the way.
        let before = self.fates[usize::from(contested[0])].verdict;
        assert!(!taken(&end) || end < first, "it ends where another one begins (C2): {before:?}");
        let key = (id, epoch, first, records.len());
        let content = self.replacements.entry(key).or_insert_with(|| records.to_vec());
        assert_eq!(*content, records, "two contents at one place (S4)");
    }

    /// 0 is the route in use, 1 the one before it, and so on; from 7 on any late copy.
    fn nth_route(&self, which: u8) -> Option<RouteId> {
        self.routes.checked_sub(u64::from(which)).map(RouteId)
    }

    fn process(&mut self, which: u8, mood: Mood) {
        let route = self.nth_route(which);
        let open = |f: &Frame| f.answer.is_none() && (which >= 7 || Some(f.route) == route);
        let late = |f: &Frame| which < 7 || f.told;
        let Some(index) = self.frames.iter().position(|f| open(f) && late(f)) else { return };
        let frame = self.frames[index].clone();
        let answer = match mood {
            Mood::Honest => self.broker.append(&frame).into(),
            Mood::Definite(code) => {
                self.conflict |= code == 90;
                self.broker.error(code).into()
            }
            Mood::Names(n) => {
                let named = u32::from(n) % frame.records.len() as u32;
                let response = PartitionResponse::error(87);
                PartitionResponse { record_errors: vec![named], ..response }.into()
            }
            Mood::AppendsBut(error_code) => {
                let response = self.broker.append(&frame);
                match response.error_code {
                    0 => PartitionResponse { error_code, ..response }.into(),
                    _ => response.into(),
                }
            }
            Mood::Doubtful(code) => PartitionResponse::error(code).into(),
            Mood::AppendsWithoutEntry => {
                self.broker.append(&frame);
                Answer::Missing
            }
        };
        self.frames[index].answer = Some(answer);
    }

    fn answer(&mut self, which: u8) {
        let route = self.nth_route(which);
        let next = self.frames.iter_mut().find(|f| Some(f.route) == route && !f.told);
        let Some(frame) = next else { return };
        let Some(answer) = frame.answer.clone() else { return };
        frame.told = true;
        let doubtful =
            [None, Some(0), Some(7), Some(6), Some(3), Some(20), Some(56), Some(-1), Some(999)];
        frame.refused = !doubtful.contains(&answer.code());
        let (attempt, era) = (frame.attempt, frame.era);
        self.era_proved |= era == self.era && answer.code() == Some(0);
        self.tell(Event::Answered { attempt, answer });
    }

    /// A connection is over: the last requests of it that were not processed may not be whole.
    fn end_route(&mut self, route: RouteId, partly: u8) {
        let open: Vec<usize> = (0..self.frames.len())
            .filter(|i| self.frames[*i].route == route && !self.frames[*i].told)
            .collect();
        let unseen = open.iter().rev().take_while(|i| self.frames[**i].answer.is_none()).count();
        let whole = open.len() - unseen.min(usize::from(partly));
        for (n, index) in open.into_iter().enumerate() {
            let frame = &mut self.frames[index];
            frame.told = true;
            let handed = if n < whole { HandedOver::PerhapsWhole } else { HandedOver::Partly };
            if handed == HandedOver::Partly {
                frame.answer = Some(Answer::Missing);
                frame.refused = true;
            }
            let attempt = frame.attempt;
            self.tell(Event::Ended { attempt, handed });
        }
    }

    fn leader(&mut self, route: Option<RouteId>) {
        self.route = route;
        self.asked_leader = false;
        if core::mem::replace(&mut self.led_by, (route, self.epoch)) != (route, self.epoch) {
            self.era += 1;
            self.era_proved = false;
        }
        self.tell(Event::Leader { route, epoch: LeaderEpoch(self.epoch) });
    }

    fn identity(&mut self) {
        if core::mem::take(&mut self.asked_identity) {
            self.ids += 1;
            let id = ProducerId::new(self.ids).unwrap();
            self.tell(Event::Identity(Identity::fresh(id)));
        }
    }

    fn append(&mut self, deadline: u64, flush: bool, old: bool) {
        if self.is_closed() || self.lane.is_stopped() {
            return;
        }
        let ticket = self.fates.len() as u64;
        self.fates.push(Fate { deadline: self.now + deadline, ..Fate::default() });
        self.tell(Event::Append(Append {
            ticket: Ticket(ticket),
            born: at(self.now),
            deadline: at(self.now + deadline),
            timestamp: self.now as i64 - if old { 25 * 3_600_000 } else { 0 },
            record: ticket as u16,
        }));
        if flush {
            self.tell(Event::Flush);
        }
    }

    /// Cancels or revokes the record so many before the newest.
    fn take_back(&mut self, back: u8, event: fn(Ticket) -> Event<'static, Counted>) {
        let Some(ticket) = self.fates.len().checked_sub(1 + usize::from(back)) else { return };
        let fate = &mut self.fates[ticket];
        fate.deadline = fate.deadline.min(self.now);
        self.tell(event(Ticket(ticket as u64)));
    }

    /// What is under way is lost, and the oldest record in doubt, or one behind it, is revoked;
    /// others wait for their turn.
    fn contest(&mut self, behind: u8, end_old: bool, newer: u64) {
        if behind > 0 {
            self.calm();
        }
        self.burst(2);
        self.new_route(true, end_old);
        [newer, 30_000].into_iter().for_each(|deadline| self.append(deadline, true, false));
        let oldest = self.fates.iter().position(|fate| !fate.is_settled()).unwrap_or(0);
        let back = (self.fates.len() - oldest).saturating_sub(1 + usize::from(behind / 4));
        self.take_back(back as u8, Event::Revoke);
        self.poll();
        self.now += 2_000;
        self.poll();
        self.offer();
    }

    fn burst(&mut self, records: u8) {
        (0..records).for_each(|_| self.append(30_000, true, false));
        self.poll();
        while self.offer() {}
    }

    fn calm(&mut self) {
        self.identity();
        while self.offer() || self.pending() {
            self.process(0, Mood::Honest);
            self.answer(0);
            self.poll();
        }
    }

    fn new_route(&mut self, epoch: bool, end_old: bool) {
        if end_old {
            self.end_route(RouteId(self.routes), 0);
        }
        self.routes += 1;
        self.epoch += i32::from(epoch);
        self.leader(Some(RouteId(self.routes)));
    }

    /// Metadata newer than the question; it finds out who does not lead any more.
    fn confirm(&mut self) {
        let Some(route) = self.route.filter(|_| self.asked_leader) else { return };
        self.asked_leader = false;
        if self.broker.stale.contains(&route) {
            return self.new_route(true, false);
        }
        self.tell(Event::LeaderConfirmed { epoch: LeaderEpoch(self.epoch) });
    }

    fn purge(&mut self) {
        self.purged = true;
        self.broker.log_start = self.broker.logs.last().map_or(0, |log| log.len() as i64);
    }

    fn expire(&mut self) {
        let day = self.now as i64 - 24 * 3_600_000;
        // So is the order of a batch that a newer epoch had fenced.
        let fences: BTreeMap<_, _> =
            self.broker.producers.iter().map(|(id, e)| (*id, e.epoch)).collect();
        let fenced = |f: &Frame| {
            let epoch = fences.get(&f.identity.id.get());
            epoch.is_some_and(|epoch| f.identity.epoch.get() < epoch.get())
        };
        self.broker.producers.retain(|_, entry| entry.newest > day);
        // A copy of what is written or whose slot was taken, landing after that, is beyond the
        // assumptions (A3).
        let written = |f: &Frame| {
            let ended = |record: &u16| {
                let fate = self.fates[usize::from(*record)];
                let taken = Proof::SlotTaken;
                !self.broker.places(*record).is_empty()
                    || fate.verdict == Some(Verdict::NotDelivered(taken))
                    || fate.resolution == Some(Resolution::NotDelivered(taken))
            };
            f.records.iter().any(ended)
        };
        let gone = |f: &Frame| f.answer.is_none() && (written(f) || fenced(f));
        for frame in self.frames.iter_mut().filter(|f| gone(f)) {
            frame.answer = Some(Answer::Missing);
        }
    }

    fn forget(&mut self) {
        let sent = |ticket: u16| self.frames.iter().any(|f| f.records.contains(&ticket));
        let quiet = self.frames.iter().all(|f| f.told && f.answer.is_some())
            && (0u16..).zip(&self.fates).all(|(t, fate)| fate.is_settled() || !sent(t));
        if quiet {
            self.purge();
            self.broker.producers.clear();
            self.new_route(true, true);
        }
    }

    fn time_goes_back(&mut self) {
        let past = at(self.now - 5_000);
        let _ = self.lane.handle(past, Event::Flush);
        assert!(!self.lane.offerable(past) || self.lane.offerable(at(self.now)));
    }

    fn close(&mut self, millis: u64) {
        let deadline = self.now + millis;
        self.closed = Some(self.closed.map_or(deadline, |closed| closed.min(deadline)));
        self.tell(Event::Close { deadline: at(deadline) });
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Append { deadline, flush, old } => {
                self.append(deadline, flush, old && self.start.old);
            }
            Step::Cancel(back) => self.take_back(back, Event::Cancel),
            Step::Revoke(back) => self.take_back(back, Event::Revoke),
            Step::Contest { behind, end_old, newer } => self.contest(behind, end_old, newer),
            Step::Abandon => {
                self.abandoned = true;
                self.tell(Event::Abandon);
            }
            Step::Offer => {
                self.offer();
            }
            Step::Process { which, mood } => self.process(which, mood),
            Step::Burst(records) => self.burst(records),
            Step::Calm => self.calm(),
            Step::Answer(which) => self.answer(which),
            Step::Lose { partly } => {
                if let Some(route) = self.route {
                    self.end_route(route, partly);
                    self.leader(None);
                }
            }
            Step::NewRoute { epoch, end_old } => self.new_route(epoch, end_old),
            Step::NoRoute => self.leader(None),
            Step::NewEpoch => {
                self.epoch += 1;
                self.leader(self.route);
            }
            Step::SameRouteBack => self.leader(Some(RouteId(self.routes))),
            Step::StaleLeader => {
                self.broker.stale.insert(RouteId(self.routes + 1));
                self.new_route(true, false);
            }
            Step::Purge => self.purge(),
            Step::Expire => self.expire(),
            Step::Forget => self.forget(),
            Step::Confirm => self.confirm(),
            Step::ConfirmOther => {
                // Metadata older than what the lane knows.
                self.tell(Event::LeaderConfirmed { epoch: LeaderEpoch(self.epoch - 1) });
            }
            Step::Identity => self.identity(),
            Step::Hold => self.tell(Event::Hold),
            Step::Release => self.tell(Event::Release),
            Step::Flush => self.tell(Event::Flush),
            Step::Wait(millis) => self.now += millis,
            Step::TimeGoesBack => self.time_goes_back(),
            Step::Restart => self.broker.restart(),
            Step::Shed => {
                self.shed = true;
                self.tell(Event::Shed);
            }
            Step::Recreate => {
                self.recreated = true;
                self.broker.recreate();
                self.tell(Event::TopicRecreated);
            }
            Step::Close(millis) => self.close(millis),
        }
    }

    /// A request of the connection in use waits for its answer.
    fn pending(&self) -> bool {
        self.frames.iter().any(|f| Some(f.route) == self.route && !f.told)
    }

    /// A quiet environment: one good connection, an honest broker, every question answered.
    fn quiet(&mut self) {
        for route in 0..=self.routes {
            self.end_route(RouteId(route), 0);
        }
        self.routes += 1;
        self.epoch += 1;
        self.leader(Some(RouteId(self.routes)));
        self.tell(Event::Release);
        self.tell(Event::Flush);
        self.poll();
        let before = self.offers;
        for _ in 0..400 {
            self.identity();
            if core::mem::take(&mut self.asked_leader) {
                self.tell(Event::LeaderConfirmed { epoch: LeaderEpoch(self.epoch) });
            }
            self.poll();
            let idle = self.lane.is_idle();
            let mut busy = false;
            while self.offer() {
                busy = true;
            }
            while self.frames.iter().any(|f| f.answer.is_none() && !f.told) {
                self.process(0, Mood::Honest);
                self.answer(0);
                busy = true;
            }
            self.poll();
            if idle && !busy {
                break;
            }
            if !busy && !self.asked_identity && !self.asked_leader {
                let Some(deadline) = self.lane.deadline() else { break };
                self.now = deadline.at.as_micros().div_ceil(1_000);
                self.poll();
            }
        }
        assert!(self.lane.is_idle(), "not idle in a quiet environment: {:?}", self.lane);
        let most = 40 + 4 * self.fates.len() as u32;
        assert!(self.offers - before < most, "{} offers", self.offers - before);
    }

    /// What was said, against the log, once every late copy has landed.
    fn judge(&mut self) {
        for index in (0..self.frames.len()).rev() {
            if self.frames[index].answer.is_none() {
                let frame = self.frames[index].clone();
                self.broker.append(&frame);
            }
        }
        for (ticket, fate) in self.fates.iter().enumerate() {
            let places = self.broker.places(ticket as u16);
            assert!(places.len() <= 1, "{ticket} stands at {places:?}: {fate:?}");
            let (delivered, offset) = match (fate.verdict, fate.resolution) {
                (None, _) => panic!("no verdict for {ticket}"),
                (Some(Verdict::Unknown(_)), None) => panic!("no resolution for {ticket}"),
                (Some(Verdict::Delivered { offset }), None)
                | (_, Some(Resolution::Delivered { offset })) => (true, offset),
                (Some(Verdict::NotDelivered(_)), None) | (_, Some(Resolution::NotDelivered(_))) => {
                    (false, None)
                }
                (_, Some(Resolution::Never { .. })) => continue,
            };
            assert_eq!(delivered, places.len() == 1, "{ticket}: {fate:?}, found at {places:?}");
            assert!(offset.is_none_or(|offset| places == [offset.get()]), "offset of {ticket}");
        }
        if !self.unfenced {
            for log in &self.broker.logs {
                let ours: Vec<u16> = log.iter().copied().flatten().collect();
                assert!(ours.is_sorted(), "order of the log: {ours:?}");
            }
        }
    }
}

/// Tells how many contents were offered in the place of others.
fn run(start: Start, steps: &[Step]) -> usize {
    let mut world = World::new(start);
    world.step(&Step::NewRoute { epoch: true, end_old: false });
    for step in steps {
        world.step(step);
        world.poll();
    }
    world.quiet();
    if !world.is_closed() && !world.lane.is_stopped() {
        world.append(120_000, true, false);
        world.quiet();
        let last = world.fates.last().and_then(|fate| fate.verdict);
        assert!(matches!(last, Some(Verdict::Delivered { .. })), "the lane is dead: {last:?}");
    }
    world.judge();
    world.replacements.len()
}

/// How many schedules; `PROPTEST_CASES` asks for more.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|it| it.parse().ok()).unwrap_or(300)
}

#[test]
fn nothing_said_is_refuted() {
    let config = ProptestConfig {
        cases: cases(),
        failure_persistence: None,
        max_shrink_iters: 20_000,
        ..ProptestConfig::default()
    };
    let (contested, contents) = (Cell::new(0), Cell::new(0));
    let schedules = (start(), prop::collection::vec(step(), 20..200));
    let ran = TestRunner::new(config).run(&schedules, |(start, steps)| {
        let replacements = run(start, &steps);
        contested.set(contested.get() + u32::from(replacements > 0));
        contents.set(contents.get() + replacements);
        Ok(())
    });
    if let Err(error) = ran {
        panic!("{error}");
    }
    let (contested, contents) = (contested.get(), contents.get());
    println!("{contested} of {} schedules contest a slot, with {contents} contents", cases());
    assert!(contested > cases() / 5 * 2, "{contested} of {} schedules contest a slot", cases());
}
