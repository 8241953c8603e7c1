//! The world of one run: a producer, a cluster, and what lies between, in virtual time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use candor_core::rules::Rules;
use candor_core::{Outcome, Proof, RouteId};
use candor_proto::{ConfigError, Notice, Output, Producer, Settlement};
use fastrand::Rng;

use super::book::{Book, NOWHERE, lane};
use super::clock::Clock;
use super::link::Link;
use super::meddle::Meddler;
use super::neighbour::Neighbour;
use super::nemesis::Nemesis;
use super::routes::Routes;
use super::rows::{Rule, Trouble};
use super::scenario::{BEGIN, SECOND, Scenario, TopicPlan};
use super::steps::Steps;
use super::tally::{Counting, count};
use crate::broker::{NodeId, TimestampType};
use crate::codec::Uuid;
use crate::judge::{Class, Fact, Lane, Noticed};
use crate::serve::{Net, Replication, Settings};
use crate::words;

/// How many brokers there are.
pub(super) const NODES: u8 = 3;
/// More partitions than any topic gets.
pub(super) const MANY: i32 = 12;
/// More turns than this without time passing is a busy loop.
const TURNS_AT_ONCE: u32 = 3_000;
/// And so are more rounds of poll and transmit than this in one turn.
const ROUNDS_AT_ONCE: u32 = 3_000;
/// The same where frames go in pieces: no frame has as many bytes.
const PIECES_AT_ONCE: u32 = 4_000_000;

/// Something that is due at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// A connection is up, or refused.
    Dialled(RouteId, bool),
    /// The socket takes more.
    Drain(RouteId),
    /// Bytes reach the broker.
    Out(RouteId),
    /// Bytes reach the client.
    Back(RouteId),
    /// The producer is told of the end of a connection.
    End(RouteId),
    /// What the network kept of a connection that is gone comes after all, or never.
    Late(RouteId),
    /// The caller does something.
    Caller,
    /// Something befalls the cluster.
    Nemesis,
    /// Something that befell the cluster is over.
    Relief(u64),
    /// Followers fetch.
    Replicate,
    /// All that a partition holds is deleted.
    Purge(Lane),
    /// The host wakes up.
    Wake,
    /// Another producer sends a record.
    NeighbourSends(usize),
    /// Another producer wakes up.
    Neighbour(usize),
}

/// The world.
pub(super) struct World<R: Rules> {
    pub(super) rng: Rng,
    pub(super) steps: Steps,
    pub(super) run: u32,
    pub(super) scenario: Scenario,
    pub(super) clock: Clock,
    pub(super) producer: Producer<Counting<R>>,
    pub(super) net: Net,
    pub(super) links: BTreeMap<RouteId, Link>,
    queue: BinaryHeap<Reverse<(u64, u64, Event)>>,
    queued: u64,
    pub(super) book: Book,
    pub(super) meddler: Meddler,
    pub(super) nemesis: Nemesis,
    pub(super) routes: Routes,
    pub(super) neighbours: Vec<Neighbour<R>>,
    /// Topics by id, those that are gone included.
    pub(super) ids: BTreeMap<Uuid, u32>,
    /// Troubles go on.
    pub(super) rough: bool,
    pub(super) closed: bool,
    pub(super) closing: bool,
    pub(super) stopped: BTreeSet<(u32, i32)>,
    /// Some connection was lost with something on it.
    pub(super) lost_any: bool,
    turns: (u64, u32),
    /// Turns that nothing but the producer's own deadline asked for.
    pub(super) wakes: u64,
    next_wake: u64,
    touched: bool,
    pub(super) left_to_send: u64,
}

impl<R: Rules> World<R> {
    pub(super) fn new(
        scenario: Scenario,
        seed: u64,
        rng: Rng,
        steps: Steps,
        timeline: bool,
    ) -> Result<Self, ConfigError> {
        let clock = Clock::new(BEGIN);
        let start = candor_core::Instant::from_micros(BEGIN);
        let producer = Producer::new(&scenario.config(), seed, start)?;
        let run = (seed ^ (seed >> 32)) as u32;
        let neighbours = (0..scenario.neighbours())
            .map(|place| Neighbour::new(&scenario, seed, place))
            .collect::<Result<_, _>>()?;
        let mut world = Self {
            rng,
            steps,
            run,
            net: cluster(&scenario),
            clock,
            producer,
            links: BTreeMap::new(),
            queue: BinaryHeap::new(),
            queued: 0,
            book: Book::new(BEGIN, timeline),
            meddler: Meddler::default(),
            nemesis: Nemesis::default(),
            routes: Routes::default(),
            neighbours,
            ids: BTreeMap::new(),
            rough: true,
            closed: false,
            closing: false,
            stopped: BTreeSet::new(),
            lost_any: false,
            turns: (0, 0),
            wakes: 0,
            next_wake: 0,
            touched: false,
            left_to_send: scenario.records,
            scenario,
        };
        world.set_up_topics();
        world.schedule(0, Event::Caller);
        world.schedule(world.scenario.nemesis_every, Event::Nemesis);
        for place in 0..world.neighbours.len() {
            if world.befalls(Trouble::Neighbour) {
                world.trouble(Trouble::Neighbour, format_args!("{place}"));
                world.schedule(0, Event::NeighbourSends(place));
            }
        }
        if let Some(every) = world.scenario.replicate_every {
            world.schedule(every, Event::Replicate);
        }
        Ok(world)
    }

    fn set_up_topics(&mut self) {
        let plans = self.scenario.topics.clone();
        for plan in plans {
            if plan.exists {
                self.create(&plan);
            } else {
                let after = self.rng.u64(0..2 * SECOND);
                self.create_later(after, plan);
            }
        }
        let check = self.scenario.expiration.1 / 1_000;
        let now = (self.clock.now / 1_000) as i64;
        self.net.cluster_mut().check_producers_every(check as i64, now);
    }

    /// Makes a topic as it was planned.
    pub(super) fn create(&mut self, plan: &TopicPlan) {
        let cluster = self.net.cluster_mut();
        cluster.create_topic(&plan.name, plan.partitions, usize::from(NODES));
        let expiration = (self.scenario.expiration.0 / 1_000) as i64;
        let (min_insync, log_append_time) = (plan.min_insync, plan.log_append_time);
        let origin = self.scenario.origin;
        cluster.configure(&plan.name, |config| {
            config.min_insync_replicas = min_insync;
            config.producer_expiration_ms = expiration;
            config.first_sequence = origin;
            if log_append_time {
                config.timestamp_type = TimestampType::LogAppendTime;
            }
        });
        self.learn_ids();
    }

    /// Takes in the ids of all topics that there are.
    fn learn_ids(&mut self) {
        for node in 1..=NODES {
            let Some(view) = self.net.cluster().metadata(NodeId(node)) else { continue };
            for topic in view.topics {
                if let Some(index) = self.topic_index(&topic.name) {
                    self.ids.insert(topic.id, index);
                }
            }
        }
    }

    /// A topic's number in the ledgers.
    pub(super) fn topic_index(&self, name: &str) -> Option<u32> {
        let at = self.scenario.topics.iter().position(|plan| plan.name == name)?;
        u32::try_from(at).ok()
    }

    /// A topic's number, by its id.
    pub(super) fn topic_of(&mut self, id: &Uuid) -> Option<u32> {
        if !self.ids.contains_key(id) {
            self.learn_ids();
        }
        self.ids.get(id).copied()
    }

    /// Something is due so many microseconds from now.
    pub(super) fn schedule(&mut self, after: u64, event: Event) {
        self.schedule_at(self.clock.now.saturating_add(after), event);
    }

    pub(super) fn schedule_at(&mut self, at: u64, event: Event) {
        self.queued += 1;
        self.queue.push(Reverse((at, self.queued, event)));
    }

    /// Goes on to the next thing that is due, or to `limit`. False when that is reached.
    pub(super) fn step(&mut self, limit: u64) -> bool {
        let queued = self.queue.peek().map_or(u64::MAX, |Reverse((at, ..))| *at);
        let broker = self.net.deadline().unwrap_or(u64::MAX).min(self.net.housekeeping());
        let next = queued.min(broker).max(self.clock.now);
        if next > limit {
            self.clock.now = limit.max(self.clock.now);
            return false;
        }
        self.clock.now = next;
        if broker <= next {
            self.net.tick(next);
        } else if let Some(Reverse((_, _, event))) = self.queue.pop() {
            self.happen(event);
        }
        self.pump();
        self.neighbours_hear();
        if self.touched {
            self.touched = false;
            self.turn();
        }
        true
    }

    /// The host may act: it is not asleep. Otherwise the event comes when it wakes.
    fn is_awake_for(&mut self, event: Event) -> bool {
        let awake = self.clock.now >= self.clock.asleep_until;
        if !awake {
            self.schedule_at(self.clock.asleep_until, event);
        }
        awake
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Out(conn) => self.reach_broker(conn),
            Event::Late(conn) => self.come_late(conn),
            Event::Nemesis => self.strike(),
            Event::Relief(number) => self.relieve(number),
            Event::Replicate => self.replicate(),
            Event::Purge(lane) => {
                let _start = self.purge(lane);
                self.net.tick(self.clock.now);
            }
            Event::NeighbourSends(place) => self.neighbour_sends(place),
            Event::Neighbour(place) => self.neighbours_turn(place),
            Event::Dialled(..)
            | Event::Drain(_)
            | Event::Back(_)
            | Event::End(_)
            | Event::Caller
            | Event::Wake => {
                if self.is_awake_for(event) {
                    self.happen_to_host(event);
                    self.touched = true;
                }
            }
        }
    }

    fn happen_to_host(&mut self, event: Event) {
        match event {
            Event::Dialled(conn, up) => self.dialled(conn, up),
            Event::Drain(conn) => self.drain(conn),
            Event::Back(conn) => self.reach_client(conn),
            Event::End(conn) => self.end(conn),
            Event::Caller => self.call(),
            Event::Wake => {}
            Event::Out(_)
            | Event::Late(_)
            | Event::Nemesis
            | Event::Relief(_)
            | Event::Replicate
            | Event::Purge(_)
            | Event::NeighbourSends(_)
            | Event::Neighbour(_) => {}
        }
    }

    fn replicate(&mut self) {
        let now = self.clock.now;
        self.net.cluster_mut().replicate((now / 1_000) as i64);
        self.net.tick(now);
        if let Some(every) = self.scenario.replicate_every {
            self.schedule(every, Event::Replicate);
        }
    }

    /// Something was told to the producer outside of an event: it gets its turn at once.
    pub(super) fn touch(&mut self) {
        self.touched = true;
    }

    /// The host's turn: everything that the producer wants done, until it wants nothing more.
    pub(super) fn turn(&mut self) {
        if self.is_busy() {
            return;
        }
        // Most hosts poll first; those that do not are to be told so by an empty hand (D1).
        let eager = self.rough && self.rng.u32(0..20) == 0;
        let mut whole = 0;
        for round in 0_u32.. {
            if !(eager && round == 0) {
                self.drain_outputs();
            }
            let mut moved = false;
            for conn in self.links.keys().copied().collect::<Vec<_>>() {
                moved |= self.transmit(conn);
            }
            if !(moved || eager && round == 0) {
                break;
            }
            // Where few bytes go at once, one frame takes thousands of rounds.
            whole += u32::from(!self.is_amid_a_frame());
            if whole == ROUNDS_AT_ONCE || round == PIECES_AT_ONCE {
                let text = "transmit and poll never come to an end".to_owned();
                self.book.complain(self.clock.now, Class::Busy, None, text);
                break;
            }
        }
        self.check_memory();
        self.check_over();
        let Some(deadline) = self.producer.deadline() else { return };
        if deadline.at.as_micros() <= self.clock.believed() {
            let text = format!("after poll gave None, {deadline:?} does not lie ahead");
            self.book.complain(self.clock.now, Class::Busy, None, text);
            return;
        }
        let at = self.clock.when(deadline.at).max(self.clock.now + 1);
        self.schedule_wake(at);
    }

    /// Whether some connection is to take the rest of a frame.
    fn is_amid_a_frame(&self) -> bool {
        self.links.values().any(|link| link.is_writable() && !link.leaving.is_empty())
    }

    fn schedule_wake(&mut self, at: u64) {
        if self.next_wake <= self.clock.now || at < self.next_wake {
            self.next_wake = at;
            self.wakes += 1;
            self.schedule_at(at, Event::Wake);
        }
    }

    fn is_busy(&mut self) -> bool {
        if self.turns.0 != self.clock.now {
            self.turns = (self.clock.now, 0);
        }
        self.turns.1 += 1;
        let busy = self.turns.1 > TURNS_AT_ONCE;
        if self.turns.1 == TURNS_AT_ONCE {
            let text = format!("{TURNS_AT_ONCE} turns without time passing");
            self.book.complain(self.clock.now, Class::Busy, None, text);
        }
        busy
    }

    /// CHK-17, L5: one bound on all memory, a quarter of it for reported unknowns.
    fn check_memory(&mut self) {
        let stats = self.producer.stats();
        let share = stats.memory_limit / 4;
        if self.book.unknown_bytes > share {
            // What an answer may still come for cannot be let go.
            let open = self.links.values().flat_map(|link| &link.offered);
            let open: BTreeSet<u64> = open.flat_map(|one| one.records.iter().copied()).collect();
            let held = self.book.bytes_unknown(&open);
            if held > share {
                let text = format!("unknowns hold {held} bytes at least");
                self.book.complain(self.clock.now, Class::Contract, None, text);
            }
        }
        if stats.memory > stats.memory_limit {
            let text = format!("{} bytes held, {} allowed", stats.memory, stats.memory_limit);
            self.book.complain(self.clock.now, Class::Contract, None, text);
        }
        if stats.counts.refused_by_lane > 0 {
            let text = "a lane refused what the producer told it".to_owned();
            self.book.complain(self.clock.now, Class::Contract, None, text);
        }
    }

    /// A revoke that came too late did so because the last word was waiting to be told.
    fn check_over(&mut self) {
        for record in std::mem::take(&mut self.book.over) {
            if self.book.untold.contains(&record) || self.book.unresolved.contains(&record) {
                let text = format!("record {record} is said to be over, and is not");
                self.book.complain(self.clock.now, Class::Contract, Some(record), text);
            }
        }
    }

    fn drain_outputs(&mut self) {
        let now = self.clock.tell();
        let mut polls = 0_u32;
        while let Some(output) = self.producer.poll(now) {
            self.output(output);
            polls += 1;
            if polls > 100_000 {
                let text = "poll never gives None".to_owned();
                return self.book.complain(self.clock.now, Class::Busy, None, text);
            }
        }
    }

    fn output(&mut self, output: Output) {
        let now = self.clock.now;
        match output {
            Output::Connect { conn, address } => self.dial(conn, &address),
            Output::Disconnect { conn, abort } => self.leave(conn, abort),
            Output::Settled(settlement) => self.settled(&settlement),
            Output::Notice(notice) => self.noticed(&notice),
            Output::Flushed(id) => {
                count(Rule::Flushed);
                self.book.line(now, format_args!("flushed {}", id.0));
            }
            Output::Closed => {
                self.closed = true;
                self.book.line(now, format_args!("closed"));
            }
        }
    }

    fn settled(&mut self, settlement: &Settlement) {
        let (now, at) = (self.clock.now, self.clock.believed());
        let settled = &settlement.settled;
        for told in &settled.records {
            let Some(record) = self.book.record(told.ticket) else {
                let text = format!("verdict on ticket {}, which nobody has", told.ticket.0);
                self.book.complain(now, Class::Insane, None, text);
                continue;
            };
            self.book.placed(now, record, settlement.partition);
            if self.topic_index(&settlement.topic) != self.book.lane(record).map(|lane| lane.topic)
            {
                let text = format!("record {record} is told of in {}", settlement.topic);
                self.book.complain(now, Class::Misrouted, Some(record), text);
            }
            self.count_settled(&settled.outcome, told.unknown, settlement.partition, record);
        }
        for (ticket, verdict) in settled.verdicts() {
            if let Some(record) = self.book.record(ticket) {
                self.book.verdict(now, at, record, verdict);
            }
        }
        for (ticket, resolution) in settled.resolutions() {
            if let Some(record) = self.book.record(ticket) {
                self.book.resolution(now, at, record, resolution);
            }
        }
    }

    fn count_settled(&mut self, outcome: &Outcome, again: bool, place: Option<i32>, record: u64) {
        let plan = self.book.lane(record).and_then(|lane| {
            self.scenario.topics.get(lane.topic as usize).map(|plan| (lane, plan.partitions))
        });
        if self.is_on_its_way(record) {
            count(Rule::BytesOutlive);
        }
        let revoked = self.book.revoked.contains(&record);
        match outcome {
            Outcome::Delivered { .. } => {
                if revoked {
                    count(Rule::RevokedDelivered);
                }
                if again {
                    count(Rule::ResolvedDelivered);
                }
                if plan.is_some_and(|(lane, partitions)| lane.partition >= partitions as i32) {
                    count(Rule::Grown);
                }
                if self.book.raw.contains(&record) {
                    count(Rule::Routed);
                }
            }
            Outcome::NotDelivered(proof) => {
                if again {
                    count(Rule::ResolvedNotDelivered);
                }
                match proof {
                    Proof::NeverOffered | Proof::TakenBack if place.is_none() => {
                        count(Rule::Unrouted);
                    }
                    Proof::NeverOffered | Proof::NoPartition { .. } | Proof::TakenBack => {
                        count(Rule::NeverOffered);
                    }
                    Proof::Overtaken => count(Rule::Overtaken),
                    Proof::SlotTaken => count(Rule::SlotTaken),
                    Proof::Refused | Proof::Rejected { .. } | Proof::Unreachable => {}
                }
            }
            Outcome::Unknown(_) => {}
            Outcome::Never { reason, .. } => {
                if revoked {
                    count(Rule::RevokedNever);
                }
                self.count_never(*reason, record);
            }
        }
    }

    fn count_never(&mut self, reason: candor_core::NeverReason, record: u64) {
        use candor_core::NeverReason;
        count(Rule::ResolvedNever);
        match reason {
            NeverReason::Closed => count(Rule::ClosedInDoubt),
            NeverReason::MemoryPressure => {
                count(Rule::MemoryPressure);
                // Nothing is given up while all that was ever sent would fit (L5).
                if self.book.sent_bytes < self.scenario.memory / 4 {
                    let text = "given up for want of memory that there is".to_owned();
                    self.book.complain(self.clock.now, Class::Contract, Some(record), text);
                }
            }
            NeverReason::Expired
            | NeverReason::TopicRecreated
            | NeverReason::Refused
            | NeverReason::Abandoned
            | NeverReason::StateLost => {}
        }
    }

    fn noticed(&mut self, notice: &Notice) {
        let (now, at) = (self.clock.now, self.clock.believed());
        self.book.line(now, format_args!("notice: {notice}"));
        match notice {
            Notice::Partition { topic, partition, notice } => {
                let Some(index) = self.topic_index(topic) else { return };
                let (lane, noticed) = (lane(index, *partition), words::notice(*notice));
                if noticed == Noticed::Stopped {
                    count(Rule::LossStops);
                }
                self.check_alarm(lane, noticed);
                if matches!(
                    noticed,
                    Noticed::Stopped | Noticed::Contradiction | Noticed::IdentityConflict
                ) {
                    self.stopped.insert((index, *partition));
                }
                self.book.fact(now, at, Fact::Notice { lane, notice: noticed });
            }
            Notice::TopicRecreated { topic } | Notice::TopicRefused { topic, .. } => {
                let Some(index) = self.topic_index(topic) else { return };
                for partition in NOWHERE..MANY {
                    let lane = lane(index, partition);
                    // Its verdicts came before; what comes now is another log.
                    self.book.hidden.insert((lane, at));
                    self.book.fact(now, at, Fact::Disturbed { lane });
                }
            }
            Notice::NoProducerId { .. } => count(Rule::IdRetried),
            Notice::ConnectionFailed { .. } => {}
        }
    }

    /// An alarm is given only where something happened that may look like it.
    fn check_alarm(&mut self, lane: Lane, noticed: Noticed) {
        let has = |trouble: Trouble| self.book.troubles.get(trouble as usize) > 0;
        let short_memory = self.scenario.state_ttl < super::scenario::HOUR;
        let broken = has(Trouble::Recreated) || has(Trouble::Deleted) || has(Trouble::Forgotten);
        let forged = has(Trouble::OutOfOrderCode)
            || has(Trouble::UnknownProducerCode)
            // In a contested slot it proves nothing.
            || has(Trouble::DuplicateCode) && self.meddler.is_contested(lane)
            || has(Trouble::MemorySpell);
        let forgotten = has(Trouble::OldTimestamps) || short_memory;
        let may_be = match noticed {
            Noticed::Contradiction => broken || has(Trouble::Lie),
            Noticed::IdentityConflict => has(Trouble::FencedCode) || has(Trouble::ConflictCode),
            Noticed::DataLoss | Noticed::StateLost | Noticed::Stopped => {
                broken || forged || forgotten || self.meddler.is_told_by_the_fallen(lane)
            }
            Noticed::Unfenced | Noticed::Fence => true,
        };
        if !may_be {
            let text = format!("{lane} gives a false alarm: {noticed:?}");
            self.book.complain(self.clock.now, Class::Contract, None, text);
        }
    }

    /// Something befell the producer, which goes into the matrix.
    pub(super) fn trouble(&mut self, trouble: Trouble, text: std::fmt::Arguments<'_>) {
        self.book.trouble(self.clock.now, trouble, text);
    }

    /// Whether something is drawn to happen now, of those troubles that belong to the run.
    pub(super) fn draws(&mut self, trouble: Trouble) -> bool {
        self.is_drawn(trouble) && self.befalls(trouble)
    }

    /// The same for what is part of another step.
    pub(super) fn is_drawn(&mut self, trouble: Trouble) -> bool {
        use super::scenario::Dice;
        self.rough && self.scenario.has(trouble) && self.rng.permille(self.scenario.permille)
    }

    /// The next step of its kind: whether it happens. All draws begin anew with it.
    pub(super) fn befalls(&mut self, trouble: Trouble) -> bool {
        let (happens, rng) = self.steps.trouble(trouble);
        self.rng = rng;
        happens
    }

    /// Whether there are events of a kind.
    pub(super) fn awaits(&self, wanted: impl Fn(&Event) -> bool) -> bool {
        self.queue.iter().any(|Reverse((_, _, event))| wanted(event))
    }
}

/// What makes replicas scarce when a topic is made.
const STEADY: [Trouble; 3] = [Trouble::NodeDown, Trouble::ZombieLeader, Trouble::Recreated];

fn cluster(scenario: &Scenario) -> Net {
    let replication = match scenario.replicate_every {
        None => Replication::AtOnce,
        Some(_) => Replication::ByHand,
    };
    let mut net = Net::new(Settings {
        profile: scenario.profile,
        brokers: NODES,
        replicas: usize::from(NODES),
        // Where brokers go away a topic could get too few replicas for ever.
        auto_create: STEADY.iter().all(|trouble| !scenario.has(*trouble)).then_some(2),
        begin: BEGIN,
        replication,
        ..Settings::default()
    });
    net.cluster_mut().defaults_mut().first_sequence = scenario.origin;
    for node in 1..=NODES {
        net.advertise(node, &format!("node-{node}"), 9092);
    }
    net
}
