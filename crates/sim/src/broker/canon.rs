//! The canonical form of a partition's state, for searches that compare states: brokers and leader
//! epochs by small names, and nothing that steers nothing.

use std::hash::{Hash, Hasher};

use super::log::Log;
use super::producers::Producers;
use super::replica::{Life, Replica, Role};
use super::{Answer, NodeId, NodeSet, Partition, Stop, Wait};

/// What brokers and leader epochs are called. Both have no meaning but to differ, and leader epochs
/// to come one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    /// The one that leads, or led last, comes first.
    first: Option<NodeId>,
    /// Those that can still be compared with anything, ascending.
    epochs: Vec<i32>,
    /// They keep their numbers.
    plain: bool,
}

impl Names {
    /// Their own.
    pub(crate) const fn plain() -> Self {
        Self { first: None, epochs: Vec::new(), plain: true }
    }

    /// Those of a partition, and of whoever else holds leader epochs of it.
    pub(crate) fn of<C: Clone + PartialEq>(
        partition: &Partition<C>,
        others: impl IntoIterator<Item = i32>,
    ) -> Self {
        let mut epochs: Vec<i32> = others.into_iter().collect();
        epochs.push(partition.leader_epoch);
        for replica in &partition.replicas {
            match replica.life {
                Life::Up(Role::Leader(reign)) => epochs.extend([reign.epoch, reign.since]),
                Life::Up(Role::Follower { epoch, .. }) => epochs.push(epoch),
                Life::DirFailed | Life::Down(_) => {}
            }
        }
        let entries = partition.replicas.iter().flat_map(|replica| replica.log.entries());
        let parted = entries.filter(|entry| !agreed(partition, entry.base_offset));
        epochs.extend(parted.map(|entry| entry.leader_epoch));
        epochs.sort_unstable();
        epochs.dedup();
        Self { first: partition.leader, epochs, plain: false }
    }

    /// A leader epoch: 0 for one that equals no other any more.
    pub(crate) fn epoch(&self, epoch: i32) -> u8 {
        if self.plain {
            return epoch as u8 + 1;
        }
        self.epochs.binary_search(&epoch).map_or(0, |at| at as u8 + 1)
    }

    /// A broker.
    pub(crate) fn node(&self, node: NodeId) -> u8 {
        if Some(node) == self.first { 0 } else { node.0.saturating_add(1) }
    }

    fn set(&self, nodes: NodeSet, of: &[NodeId]) -> u8 {
        of.iter().fold(0, |bits, node| bits << 1 | u8::from(nodes.contains(*node)))
    }
}

/// Whether all replicas have the same batch at this offset, so that its leader epoch tells them
/// apart no more: only batches that one of them lacks are cut off, and what is copied is the same.
fn agreed<C: Clone + PartialEq>(partition: &Partition<C>, base: i64) -> bool {
    let at = |replica: &Replica<C>| {
        let entries = replica.log.entries();
        let found = entries.binary_search_by_key(&base, |entry| entry.base_offset).ok()?;
        Some(entries[found].leader_epoch)
    };
    let mut epochs = partition.replicas.iter().map(at);
    let first = epochs.next().flatten();
    first.is_some() && epochs.all(|epoch| epoch == first)
}

impl<C: Clone + Hash + PartialEq> Partition<C> {
    /// Feeds the state into a hasher.
    pub(crate) fn fingerprint(&self, names: &Names, into: &mut impl Hasher) {
        let mut order: Vec<NodeId> = self.nodes().collect();
        // Stable: the leader comes first, the rest as they are.
        order.sort_by_key(|node| Some(*node) != names.first);
        self.config.hash(into);
        (self.leader.is_some(), names.epoch(self.leader_epoch)).hash(into);
        (names.set(self.isr, &order), &self.refusal).hash(into);
        for node in &order {
            if let Some(replica) = self.replica(*node) {
                self.replica_fingerprint(replica, names, &order, into);
            }
        }
    }

    fn replica_fingerprint(
        &self,
        replica: &Replica<C>,
        names: &Names,
        order: &[NodeId],
        into: &mut impl Hasher,
    ) {
        match replica.life {
            Life::Up(Role::Leader(reign)) => {
                let isr = names.set(reign.isr, order);
                (1_u8, names.epoch(reign.epoch), names.epoch(reign.since), isr).hash(into);
            }
            Life::Up(Role::Follower { epoch, synced }) => {
                (2_u8, names.epoch(epoch), synced).hash(into);
            }
            Life::DirFailed => 3_u8.hash(into),
            Life::Down(Stop::Clean) => 4_u8.hash(into),
            Life::Down(Stop::Crash) => 5_u8.hash(into),
        }
        replica.watermark.hash(into);
        for entry in replica.log.entries() {
            let differs = names.plain || !agreed(self, entry.base_offset);
            let epoch = if differs { names.epoch(entry.leader_epoch) } else { 0 };
            (entry.base_offset, entry.count, epoch, entry.pid, entry.epoch).hash(into);
            (entry.first, entry.stamp).hash(into);
            entry.content.hash(into);
        }
        replica.log.rest_fingerprint(into);
    }

    /// Feeds what matters into a hasher where no election and no restart can come any more and
    /// every follower is in step: the leader's memory, and where its log begins and ends. What
    /// stands in the log was shown to everybody.
    pub(crate) fn still_fingerprint(&self, into: &mut impl Hasher) {
        (&self.config, &self.refusal).hash(into);
        if let Some(leader) = self.leader.and_then(|leader| self.replica(leader)) {
            (leader.log.start(), leader.log.end(), leader.watermark).hash(into);
            leader.log.producers().hash(into);
        }
    }

    /// Whether a batch can never be appended at this broker again: something of its epoch that lies
    /// behind its first sequence, or of a later epoch, is committed there and remembered (S19).
    /// Holds for as long as nothing committed is cut off and the memory is kept.
    pub(crate) fn is_passed(&self, node: NodeId, pid: i64, epoch: i16, first: i32) -> bool {
        let Some(replica) = self.replica(node) else { return false };
        let Some(known) = replica.log.producers().get(pid) else { return false };
        let newer = known.epoch() > epoch;
        let same = known.epoch() == epoch;
        let watermark = self.replicas.iter().map(|it| it.watermark.min(it.log.end())).min();
        known.batches().iter().any(|batch| {
            let end = batch.base_offset + i64::from(batch.count);
            // Half of the circle lies ahead, half behind.
            let ahead = batch.last().wrapping_sub(first) & i32::MAX;
            Some(end) <= watermark && (newer || same && ahead < i32::MAX / 2)
        })
    }
}

impl<C> Log<C> {
    fn rest_fingerprint(&self, into: &mut impl Hasher)
    where
        C: Clone,
    {
        (self.start(), self.end()).hash(into);
        self.disk_fingerprint(into);
        let producers: &Producers = self.producers();
        producers.hash(into);
    }
}

impl Answer {
    /// Feeds what a producer's lane reads into a hasher: text and hints of a leader go elsewhere.
    pub(crate) fn fingerprint(&self, into: &mut impl Hasher) {
        (self.code, self.base_offset, self.log_append_time, self.log_start_offset).hash(into);
        self.record_errors.hash(into);
    }
}

impl Wait {
    /// Feeds it into a hasher.
    pub(crate) fn fingerprint(&self, names: &Names, into: &mut impl Hasher) {
        (names.node(self.node), names.epoch(self.reign), self.needs).hash(into);
        self.success.fingerprint(into);
    }
}
