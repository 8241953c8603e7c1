//! What befalls the cluster, the connections and the host's clock; and how it passes.

use std::collections::{BTreeMap, BTreeSet};

use candor_core::rules::Rules;

use super::link::Phase;
use super::mark;
use super::meddle::Spell;
use super::neighbour::Neighbour;
use super::rows::Trouble;
use super::scenario::{Dice, MS, SECOND, TopicPlan};
use super::world::{Event, NODES, World};
use crate::broker::{NodeId, Partition};
use crate::codec::Batch;
use crate::judge::{Excuse, ExcuseKind, Fact, Lane, LogBatch};
use crate::serve::Upset;

/// What strikes from outside, rather than on a connection or in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Strike {
    CutLink,
    Lead(Way),
    Part(Parting),
    Node(Failure),
    ClockBack,
    HostStall,
    /// One partition answers one of these codes for a while.
    Spell(&'static [i16]),
    /// One broker answers errors only for a while.
    Storm,
    MaxBytes,
    MorePartitions,
    Recreate,
    Delete,
}

/// How a leader moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Away,
    AndBack,
}

/// What a broker is parted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parting {
    /// From the controller and the other brokers.
    CutOff,
    /// From its leaders: it does not fetch.
    Asleep,
    /// The same of two brokers, which leave the ISR.
    Shrinks,
}

/// What fails at a broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failure {
    Restart,
    Crash,
    Down,
    LogDir,
}

const STRIKES: [(Trouble, Strike); 20] = [
    (Trouble::CutBetween, Strike::CutLink),
    (Trouble::MemorySpell, Strike::Spell(&[45, 59])),
    (Trouble::PermanentSpell, Strike::Spell(&[29, 42, 44, 17, 21, 2])),
    (Trouble::FencedCode, Strike::Spell(&[47, 90])),
    (Trouble::ErrorStorm, Strike::Storm),
    (Trouble::LeaderMove, Strike::Lead(Way::Away)),
    (Trouble::ThereAndBack, Strike::Lead(Way::AndBack)),
    (Trouble::ZombieLeader, Strike::Part(Parting::CutOff)),
    (Trouble::RestartClean, Strike::Node(Failure::Restart)),
    (Trouble::RestartCrash, Strike::Node(Failure::Crash)),
    (Trouble::NodeDown, Strike::Node(Failure::Down)),
    (Trouble::IsrShrinks, Strike::Part(Parting::Shrinks)),
    (Trouble::Stalled, Strike::Part(Parting::Asleep)),
    (Trouble::DirFails, Strike::Node(Failure::LogDir)),
    (Trouble::MaxBytes, Strike::MaxBytes),
    (Trouble::Recreated, Strike::Recreate),
    (Trouble::Partitions, Strike::MorePartitions),
    (Trouble::Deleted, Strike::Delete),
    (Trouble::ClockBack, Strike::ClockBack),
    (Trouble::HostStall, Strike::HostStall),
];

/// How something passes.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Relief {
    /// A broker that was cut off is back.
    Reconnect(u8),
    /// A broker that slept is awake.
    Wake(u8),
    Start(u8),
    Restart(u8),
    MaxBytes(String),
    Lead(String, i32, u8),
    Create(TopicPlan),
    ClockRight,
}

/// What befell the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Nemesis {
    reliefs: BTreeMap<u64, Relief>,
    next: u64,
    /// Batches below the logs' starts, by partition and offset.
    pub(super) deleted: BTreeMap<(u32, i32), BTreeMap<i64, LogBatch>>,
    /// Logs of topics that are gone.
    pub(super) retired: Vec<(u32, i32, Vec<LogBatch>)>,
    pub(super) excuses: Vec<Excuse>,
    /// Brokers that are down or cut off. One at least always stays.
    away: BTreeSet<u8>,
}

impl<R: Rules> World<R> {
    /// Something befalls the cluster, maybe.
    pub(super) fn strike(&mut self) {
        if !self.rough {
            return;
        }
        let after = self.rng.about(self.scenario.nemesis_every);
        self.schedule(after, Event::Nemesis);
        let possible: Vec<(Trouble, Strike)> =
            STRIKES.iter().copied().filter(|(trouble, _)| self.scenario.has(*trouble)).collect();
        if let Some((trouble, strike)) = self.rng.pick(&possible)
            && self.befalls(trouble)
        {
            self.strike_with(trouble, strike);
            self.net.tick(self.clock.now);
        }
    }

    fn strike_with(&mut self, trouble: Trouble, strike: Strike) {
        match strike {
            Strike::CutLink => self.cut_some_link(),
            Strike::Lead(way) => self.move_leader(trouble, way),
            Strike::Part(parting) => self.part(trouble, parting),
            Strike::Node(failure) => self.strike_node(trouble, failure),
            Strike::ClockBack => self.set_clock_back(),
            Strike::HostStall => self.stall_host(),
            Strike::Spell(codes) => self.cast_spell(trouble, codes),
            Strike::Storm => self.storm(),
            Strike::MaxBytes => self.lower_max_bytes(),
            Strike::MorePartitions => self.add_partitions(),
            Strike::Recreate => self.recreate(),
            Strike::Delete => self.delete_records(),
        }
    }

    /// It passes by itself after a while.
    fn relief(&mut self, after: u64, relief: Relief) {
        self.nemesis.next += 1;
        let number = self.nemesis.next;
        self.nemesis.reliefs.insert(number, relief);
        self.schedule(after, Event::Relief(number));
    }

    /// Something is over.
    pub(super) fn relieve(&mut self, number: u64) {
        let Some(relief) = self.nemesis.reliefs.remove(&number) else { return };
        let now = self.clock.now;
        self.book.line(now, format_args!("# over: {relief:?}"));
        match relief {
            Relief::Reconnect(node) => {
                self.nemesis.away.remove(&node);
                self.net.cluster_mut().reconnect(NodeId(node));
            }
            Relief::Wake(node) if self.nemesis.away.contains(&node) => {}
            Relief::Wake(node) => self.net.cluster_mut().reconnect(NodeId(node)),
            Relief::Start(node) => {
                self.nemesis.away.remove(&node);
                self.net.start_node(now, node);
            }
            Relief::Restart(node) => self.restart(node, false),
            Relief::MaxBytes(topic) => {
                self.net.cluster_mut().configure(&topic, |c| c.max_message_bytes = 1_048_588);
            }
            Relief::Lead(topic, partition, to) => {
                self.net.upset(now, &Upset::MoveLeader { topic, partition, to });
            }
            // A topic gets its replicas on the brokers that are there.
            Relief::Create(plan) if self.nemesis.away.is_empty() => self.create(&plan),
            Relief::Create(plan) => self.relief(100 * MS, Relief::Create(plan)),
            Relief::ClockRight => {
                // To the host this is a jump, as after a sleep.
                let from = self.clock.believed();
                self.clock.set_back(0);
                self.book.fact(now, from, Fact::Stall { from, to: now });
                self.touch();
            }
        }
        self.net.tick(now);
    }

    /// Everything is over.
    pub(super) fn relieve_all(&mut self) {
        self.meddler.rest();
        self.end_long_silences();
        self.nemesis.away.clear();
        for node in 1..=NODES {
            self.net.cluster_mut().reconnect(NodeId(node));
            self.net.start_node(self.clock.now, node);
        }
        let numbers: Vec<u64> = self.nemesis.reliefs.keys().copied().collect();
        numbers.into_iter().for_each(|number| self.relieve(number));
        self.net.tick(self.clock.now);
    }

    fn cut_some_link(&mut self) {
        let up: Vec<_> =
            self.links.values().filter(|link| link.phase == Phase::Up).map(|l| l.conn).collect();
        if let Some(conn) = self.rng.pick(&up) {
            self.cut_between(conn);
        }
    }

    /// Some partition: topic, number in the ledgers, index, leader.
    pub(super) fn some_partition(&mut self) -> Option<(String, u32, i32, Option<u8>)> {
        let all: Vec<(String, usize, Option<u8>)> = self
            .net
            .cluster()
            .partitions()
            .map(|(name, at, one)| (name.to_owned(), at, one.leader().map(|node| node.0)))
            .collect();
        if all.is_empty() {
            return None;
        }
        let (name, at, leader) = all[self.rng.usize(0..all.len())].clone();
        let topic = self.topic_index(&name)?;
        Some((name, topic, i32::try_from(at).ok()?, leader))
    }

    fn move_leader(&mut self, trouble: Trouble, way: Way) {
        let Some((topic, _, partition, Some(leader))) = self.some_partition() else { return };
        let at = usize::try_from(partition).unwrap_or(0);
        let Some(one) = self.net.cluster().partition(&topic, at) else { return };
        let heirs: Vec<u8> = one.isr().iter().map(|node| node.0).filter(|n| *n != leader).collect();
        let Some(to) = self.rng.pick(&heirs) else { return };
        self.trouble(trouble, format_args!("{topic}-{partition} from {leader} to {to}"));
        let now = self.clock.now;
        self.net.upset(now, &Upset::MoveLeader { topic: topic.clone(), partition, to });
        if way == Way::AndBack {
            let after = if self.rng.bool() { 0 } else { self.rng.about(20 * MS) };
            self.relief(after, Relief::Lead(topic, partition, leader));
        }
    }

    fn part(&mut self, trouble: Trouble, parting: Parting) {
        let node = self.rng.u8(1..=NODES);
        let after = self.rng.about(2 * SECOND);
        let mut asleep = vec![node];
        match parting {
            Parting::CutOff if !self.may_go(node) => return,
            Parting::CutOff => {
                self.net.cluster_mut().cut_off(NodeId(node));
                self.relief(after, Relief::Reconnect(node));
            }
            Parting::Asleep => self.lull(node, after),
            Parting::Shrinks => {
                let other = node % NODES + 1;
                asleep.push(other);
                asleep.iter().for_each(|node| self.lull(*node, after));
                self.leave_isr(&asleep);
            }
        }
        self.trouble(trouble, format_args!("nodes {asleep:?}"));
    }

    fn lull(&mut self, node: u8, for_long: u64) {
        self.net.cluster_mut().stall(NodeId(node));
        self.relief(for_long, Relief::Wake(node));
    }

    /// Whether a broker may go away, so that another stays. If so it counts as gone.
    fn may_go(&mut self, node: u8) -> bool {
        let may = !self.nemesis.away.contains(&node) && self.nemesis.away.len() + 1 < NODES.into();
        if may {
            self.nemesis.away.insert(node);
        }
        may
    }

    /// A topic of the plan comes into being after a while.
    pub(super) fn create_later(&mut self, after: u64, plan: TopicPlan) {
        self.relief(after, Relief::Create(plan));
    }

    fn leave_isr(&mut self, nodes: &[u8]) {
        let all: Vec<(String, usize)> =
            self.net.cluster().partitions().map(|(name, at, _)| (name.to_owned(), at)).collect();
        for (name, at) in all {
            let Some(partition) = self.net.cluster_mut().partition_mut(&name, at) else { continue };
            for node in nodes {
                // Refused for the leader and for those that are out already.
                let _ = partition.leave_isr(NodeId(*node));
            }
        }
    }

    fn restart(&mut self, node: u8, crash: bool) {
        self.net.upset(self.clock.now, &Upset::Restart { node, crash });
    }

    fn strike_node(&mut self, trouble: Trouble, failure: Failure) {
        let node = self.rng.u8(1..=NODES);
        if failure == Failure::Down && !self.may_go(node) {
            return;
        }
        self.trouble(trouble, format_args!("node {node}"));
        match failure {
            Failure::Restart => self.restart(node, false),
            Failure::Crash => self.restart(node, true),
            Failure::LogDir => {
                self.net.cluster_mut().fail_log_dir(NodeId(node));
                let after = self.rng.about(2 * SECOND);
                self.relief(after, Relief::Restart(node));
            }
            Failure::Down => {
                let crash = self.rng.bool();
                self.net.upset(self.clock.now, &Upset::Stop { node, crash });
                let after = self.rng.about(2 * SECOND);
                self.relief(after, Relief::Start(node));
            }
        }
    }

    fn set_clock_back(&mut self) {
        if self.clock.is_behind() {
            return;
        }
        let by = self.rng.about(SECOND);
        self.trouble(Trouble::ClockBack, format_args!("{by} us"));
        self.clock.set_back(by);
        let after = self.rng.about(2 * SECOND);
        self.relief(after, Relief::ClockRight);
    }

    fn stall_host(&mut self) {
        let now = self.clock.now;
        if now < self.clock.asleep_until {
            return;
        }
        let for_long = self.rng.about(SECOND);
        self.trouble(Trouble::HostStall, format_args!("{for_long} us"));
        let from = self.clock.believed();
        self.clock.asleep_until = now + for_long;
        self.book.fact(now, from, Fact::Stall { from, to: from.max(now) + for_long });
    }

    fn cast_spell(&mut self, trouble: Trouble, codes: &[i16]) {
        let Some((name, topic, partition, _)) = self.some_partition() else { return };
        let Some(code) = self.rng.pick(codes) else { return };
        // Whoever is fenced twice stops for good: that is not to be the end of every run.
        if trouble == Trouble::FencedCode && self.rng.permille(600) {
            return;
        }
        let until = self.clock.now + self.rng.about(2 * SECOND);
        self.trouble(trouble, format_args!("{name}-{partition}: {code} until {until}"));
        let spell = Spell { code, until, log_start: -1 };
        self.meddler.spells.insert((topic, partition), spell);
    }

    fn storm(&mut self) {
        let node = self.rng.u8(1..=NODES);
        let until = self.clock.now + self.rng.about(2 * SECOND);
        self.trouble(Trouble::ErrorStorm, format_args!("node {node} until {until}"));
        self.meddler.storms.insert(node, until);
    }

    fn lower_max_bytes(&mut self) {
        let Some((name, ..)) = self.some_partition() else { return };
        let bytes = self.rng.i32(80..600);
        self.trouble(Trouble::MaxBytes, format_args!("{name}: {bytes}"));
        self.net.cluster_mut().configure(&name, |c| c.max_message_bytes = bytes);
        let after = self.rng.about(3 * SECOND);
        self.relief(after, Relief::MaxBytes(name));
    }

    fn add_partitions(&mut self) {
        let Some((name, ..)) = self.some_partition() else { return };
        let have = self.net.cluster().partitions().filter(|(n, ..)| *n == name).count();
        if have < 6 && self.nemesis.away.is_empty() {
            self.trouble(Trouble::Partitions, format_args!("{name}: one more"));
            self.net.cluster_mut().add_partitions(&name, 1, usize::from(NODES));
        }
    }

    /// The batches of a partition as they can be read now, but for those of neighbours.
    pub(super) fn read_log(&self, name: &str, topic: u32, partition: i32) -> Vec<LogBatch> {
        let batches = self.batches(name, partition).into_iter();
        let mine = batches.filter(|batch| !self.is_neighbours(topic, batch));
        mine.map(|batch| read_batch(self.run, topic, &batch)).collect()
    }

    /// The batches of a partition that this neighbour wrote.
    pub(super) fn read_log_of(
        &self,
        one: &Neighbour<R>,
        name: &str,
        topic: u32,
        partition: i32,
    ) -> Vec<LogBatch> {
        let batches = self.batches(name, partition).into_iter();
        let theirs = batches.filter(|batch| one.wrote(topic, batch));
        theirs.map(|batch| read_batch(one.run, topic, &batch)).collect()
    }

    fn batches(&self, name: &str, partition: i32) -> Vec<Batch> {
        self.net.log(name, usize::try_from(partition).unwrap_or(usize::MAX))
    }

    /// The leader of a partition restarts after a while.
    pub(super) fn restart_leader_later(&mut self, lane: Lane, after: u64) {
        let Some(plan) = self.scenario.topics.get(lane.topic as usize) else { return };
        let at = usize::try_from(lane.partition).unwrap_or(usize::MAX);
        let leader = self.net.cluster().partition(&plan.name, at).and_then(Partition::leader);
        if let Some(leader) = leader {
            self.relief(after, Relief::Restart(leader.0));
        }
    }

    /// All brokers forget a producer on one partition.
    pub(super) fn forget(&mut self, lane: Lane, producer_id: i64) {
        let Some(plan) = self.scenario.topics.get(lane.topic as usize) else { return };
        let at = usize::try_from(lane.partition).unwrap_or(usize::MAX);
        let Some(partition) = self.net.cluster_mut().partition_mut(&plan.name, at) else { return };
        (1..=NODES).for_each(|node| partition.forget(NodeId(node), producer_id));
    }

    fn delete_records(&mut self) {
        let Some((name, topic, partition, Some(leader))) = self.some_partition() else { return };
        let at = usize::try_from(partition).unwrap_or(0);
        let readable = self.read_log(&name, topic, partition);
        let Some(one) = self.net.cluster().partition(&name, at) else { return };
        let end = one.high_watermark(NodeId(leader)).unwrap_or(0);
        if end > 0 {
            let offset = self.rng.i64(1..=end);
            self.delete_before(&name, (topic, partition), offset, readable);
        }
    }

    fn delete_before(
        &mut self,
        name: &str,
        (topic, partition): (u32, i32),
        offset: i64,
        readable: Vec<LogBatch>,
    ) {
        let at = usize::try_from(partition).unwrap_or(0);
        let Some(one) = self.net.cluster_mut().partition_mut(name, at) else { return };
        if one.delete_records(offset).is_err() {
            return;
        }
        let known = (1..=NODES).filter_map(|node| one.high_watermark(NodeId(node)));
        let to = known.max().unwrap_or(offset);
        self.trouble(Trouble::Deleted, format_args!("{name}-{partition} before {offset}"));
        let deleted = self.nemesis.deleted.entry((topic, partition)).or_default();
        for batch in readable.into_iter().filter(|batch| batch.base_offset < offset) {
            deleted.insert(batch.base_offset, batch);
        }
        let (kind, since, until) = (ExcuseKind::Purge, self.clock.now, u64::MAX);
        let excuse = Excuse { kind, topic, partition, from: offset, to, since, until };
        self.nemesis.excuses.push(excuse);
    }

    /// Deletes everything that a partition holds; gives where its log starts then.
    pub(super) fn purge(&mut self, lane: Lane) -> Option<i64> {
        let name = self.scenario.topics.get(lane.topic as usize)?.name.clone();
        let at = usize::try_from(lane.partition).ok()?;
        let one = self.net.cluster().partition(&name, at)?;
        let leader = one.leader()?;
        let end = one.high_watermark(leader)?;
        let readable = self.read_log(&name, lane.topic, lane.partition);
        self.delete_before(&name, (lane.topic, lane.partition), end, readable);
        Some(end)
    }

    fn recreate(&mut self) {
        let Some((name, topic, ..)) = self.some_partition() else { return };
        let Some(mut plan) = self.scenario.topics.get(topic as usize).cloned() else { return };
        let count = self.net.cluster().partitions().filter(|(n, ..)| *n == name).count();
        // With fewer partitions nobody could ever answer for those that are gone.
        plan.partitions = count;
        self.trouble(Trouble::Recreated, format_args!("{name}"));
        for partition in 0..i32::try_from(count).unwrap_or(0) {
            let log = self.whole_log(&name, topic, partition);
            self.nemesis.retired.push((topic, partition, log));
            self.nemesis.deleted.remove(&(topic, partition));
        }
        self.net.cluster_mut().delete_topic(&name);
        if self.rng.bool() && self.nemesis.away.is_empty() {
            return self.create(&plan);
        }
        let after = self.rng.about(300 * MS);
        self.relief(after, Relief::Create(plan));
    }

    /// Everything that a partition ever held, also what was deleted.
    pub(super) fn whole_log(&self, name: &str, topic: u32, partition: i32) -> Vec<LogBatch> {
        let mut all = self.nemesis.deleted.get(&(topic, partition)).cloned().unwrap_or_default();
        for batch in self.read_log(name, topic, partition) {
            all.insert(batch.base_offset, batch);
        }
        all.into_values().collect()
    }
}

fn read_batch(run: u32, topic: u32, batch: &Batch) -> LogBatch {
    LogBatch::read(batch, |record| mark::read(run, topic, record))
}
