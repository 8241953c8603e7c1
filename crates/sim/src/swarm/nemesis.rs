//! What befalls the cluster, the connections and the host's clock; and how it passes.

use std::collections::{BTreeMap, BTreeSet};

use candor_core::rules::Rules;

use super::link::Phase;
use super::mark;
use super::rows::Trouble;
use super::scenario::{Dice, MS, SECOND, TopicPlan};
use super::world::{Event, NODES, World};
use crate::broker::{NodeId, Partition};
use crate::judge::{Excuse, ExcuseKind, Fact, Lane, LogBatch};
use crate::serve::Upset;

/// What strikes from outside, rather than on a connection or in an answer.
const STRIKES: [Trouble; 18] = [
    Trouble::CutBetween,
    Trouble::MemorySpell,
    Trouble::PermanentSpell,
    Trouble::LeaderMove,
    Trouble::ThereAndBack,
    Trouble::ZombieLeader,
    Trouble::RestartClean,
    Trouble::RestartCrash,
    Trouble::NodeDown,
    Trouble::IsrShrinks,
    Trouble::Stalled,
    Trouble::DirFails,
    Trouble::MaxBytes,
    Trouble::Recreated,
    Trouble::Partitions,
    Trouble::Deleted,
    Trouble::ClockBack,
    Trouble::HostStall,
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

impl Nemesis {
    /// A broker reloads its memory from what is left of its logs: where records were deleted it may
    /// have forgotten us (A3).
    pub(super) fn restarted(&mut self) {
        for ((topic, partition), batches) in &self.deleted {
            let to = batches.values().map(|b| b.base_offset + b.records.len() as i64).max();
            let excuse = Excuse {
                kind: ExcuseKind::Deletion,
                topic: *topic,
                partition: *partition,
                from: 0,
                to: to.unwrap_or(0),
                since: 0,
                until: u64::MAX,
            };
            if !self.excuses.contains(&excuse) {
                self.excuses.push(excuse);
            }
        }
    }
}

impl<R: Rules> World<R> {
    /// Something befalls the cluster, maybe.
    pub(super) fn strike(&mut self) {
        if !self.rough {
            return;
        }
        let after = self.rng.about(self.scenario.nemesis_every);
        self.schedule(after, Event::Nemesis);
        let possible: Vec<Trouble> =
            STRIKES.iter().copied().filter(|trouble| self.scenario.has(*trouble)).collect();
        if let Some(trouble) = self.rng.pick(&possible) {
            self.strike_with(trouble);
            self.net.tick(self.clock.now);
        }
    }

    fn strike_with(&mut self, trouble: Trouble) {
        match trouble {
            Trouble::CutBetween => self.cut_some_link(),
            Trouble::LeaderMove | Trouble::ThereAndBack => self.move_leader(trouble),
            Trouble::ZombieLeader | Trouble::Stalled | Trouble::IsrShrinks => self.part(trouble),
            Trouble::RestartClean
            | Trouble::RestartCrash
            | Trouble::NodeDown
            | Trouble::DirFails => self.strike_node(trouble),
            Trouble::ClockBack | Trouble::HostStall => self.strike_host(trouble),
            Trouble::Recreated => self.recreate(),
            Trouble::Deleted => self.delete_records(),
            _ => self.strike_topic(trouble),
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
        self.meddler.spells.clear();
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

    fn move_leader(&mut self, trouble: Trouble) {
        let Some((topic, _, partition, Some(leader))) = self.some_partition() else { return };
        let at = usize::try_from(partition).unwrap_or(0);
        let Some(one) = self.net.cluster().partition(&topic, at) else { return };
        let heirs: Vec<u8> = one.isr().iter().map(|node| node.0).filter(|n| *n != leader).collect();
        let Some(to) = self.rng.pick(&heirs) else { return };
        self.trouble(trouble, format_args!("{topic}-{partition} from {leader} to {to}"));
        let now = self.clock.now;
        self.net.upset(now, &Upset::MoveLeader { topic: topic.clone(), partition, to });
        if trouble == Trouble::ThereAndBack {
            let after = if self.rng.bool() { 0 } else { self.rng.about(20 * MS) };
            self.relief(after, Relief::Lead(topic, partition, leader));
        }
    }

    fn part(&mut self, trouble: Trouble) {
        let node = self.rng.u8(1..=NODES);
        let after = self.rng.about(2 * SECOND);
        if trouble == Trouble::ZombieLeader && !self.may_go(node) {
            return;
        }
        let cluster = self.net.cluster_mut();
        match trouble {
            Trouble::ZombieLeader => cluster.cut_off(NodeId(node)),
            _ => cluster.stall(NodeId(node)),
        }
        let relief = match trouble {
            Trouble::ZombieLeader => Relief::Reconnect(node),
            _ => Relief::Wake(node),
        };
        self.relief(after, relief);
        let mut asleep = vec![node];
        if trouble == Trouble::IsrShrinks {
            let other = node % NODES + 1;
            self.net.cluster_mut().stall(NodeId(other));
            self.relief(after, Relief::Wake(other));
            asleep.push(other);
            self.leave_isr(&asleep);
        }
        self.trouble(trouble, format_args!("nodes {asleep:?}"));
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
        self.nemesis.restarted();
        self.net.upset(self.clock.now, &Upset::Restart { node, crash });
    }

    fn strike_node(&mut self, trouble: Trouble) {
        let node = self.rng.u8(1..=NODES);
        if trouble == Trouble::NodeDown && !self.may_go(node) {
            return;
        }
        self.trouble(trouble, format_args!("node {node}"));
        let now = self.clock.now;
        match trouble {
            Trouble::RestartClean => self.restart(node, false),
            Trouble::RestartCrash => self.restart(node, true),
            Trouble::DirFails => {
                self.net.cluster_mut().fail_log_dir(NodeId(node));
                let after = self.rng.about(2 * SECOND);
                self.relief(after, Relief::Restart(node));
            }
            _ => {
                self.nemesis.restarted();
                let crash = self.rng.bool();
                self.net.upset(now, &Upset::Stop { node, crash });
                let after = self.rng.about(2 * SECOND);
                self.relief(after, Relief::Start(node));
            }
        }
    }

    fn strike_host(&mut self, trouble: Trouble) {
        let for_long = self.rng.about(SECOND);
        let busy = match trouble {
            Trouble::ClockBack => self.clock.is_behind(),
            _ => self.clock.now < self.clock.asleep_until,
        };
        if busy {
            return;
        }
        self.trouble(trouble, format_args!("{for_long} us"));
        if trouble == Trouble::ClockBack {
            self.clock.set_back(for_long);
            let after = self.rng.about(2 * SECOND);
            return self.relief(after, Relief::ClockRight);
        }
        let now = self.clock.now;
        let from = self.clock.believed();
        self.clock.asleep_until = now + for_long;
        self.book.fact(now, from, Fact::Stall { from, to: from.max(now) + for_long });
    }

    fn strike_topic(&mut self, trouble: Trouble) {
        let Some((name, topic, partition, _)) = self.some_partition() else { return };
        match trouble {
            Trouble::PermanentSpell | Trouble::MemorySpell => {
                let codes: &[i16] = match trouble {
                    Trouble::MemorySpell => &[45, 59],
                    _ => &[29, 42, 44, 17, 21],
                };
                let Some(code) = self.rng.pick(codes) else { return };
                let until = self.clock.now + self.rng.about(2 * SECOND);
                self.trouble(trouble, format_args!("{name}-{partition}: {code} until {until}"));
                self.meddler.spells.insert((topic, partition), (code, until));
            }
            Trouble::MaxBytes => {
                let bytes = self.rng.i32(80..600);
                self.trouble(trouble, format_args!("{name}: {bytes}"));
                self.net.cluster_mut().configure(&name, |c| c.max_message_bytes = bytes);
                let after = self.rng.about(3 * SECOND);
                self.relief(after, Relief::MaxBytes(name));
            }
            _ => {
                let have = self.net.cluster().partitions().filter(|(n, ..)| *n == name).count();
                if have < 6 && self.nemesis.away.is_empty() {
                    self.trouble(Trouble::Partitions, format_args!("{name}: one more"));
                    let replicas = usize::from(NODES);
                    self.net.cluster_mut().add_partitions(&name, 1, replicas);
                }
            }
        }
    }

    /// The batches of a partition as they can be read now.
    pub(super) fn read_log(&self, name: &str, topic: u32, partition: i32) -> Vec<LogBatch> {
        let at = usize::try_from(partition).unwrap_or(usize::MAX);
        let batches = self.net.log(name, at);
        let read = |batch: &crate::codec::Batch| LogBatch {
            base_offset: batch.header.base_offset,
            producer_id: batch.header.producer_id,
            epoch: batch.header.producer_epoch,
            first: batch.header.base_sequence,
            records: mark::read_batch(self.run, topic, batch),
        };
        batches.iter().map(read).collect()
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
        let Some(one) = self.net.cluster_mut().partition_mut(&name, at) else { return };
        let end = one.high_watermark(NodeId(leader)).unwrap_or(0);
        if end == 0 {
            return;
        }
        let offset = self.rng.i64(1..=end);
        if one.delete_records(offset).is_err() {
            return;
        }
        self.trouble(Trouble::Deleted, format_args!("{name}-{partition} before {offset}"));
        let deleted = self.nemesis.deleted.entry((topic, partition)).or_default();
        for batch in readable.into_iter().filter(|batch| batch.base_offset < offset) {
            deleted.insert(batch.base_offset, batch);
        }
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
