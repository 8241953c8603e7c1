//! The log of one replica, the memory that goes with it, and how both survive.
//!
//! Producer state is part of the log: it is rolled back with it, rebuilt from it, and written to
//! snapshots (at a segment's end and at a clean stop) that keep only the newest batch of each
//! producer.

use core::hash::{Hash, Hasher};

use super::producers::{Claim, Producers};

/// A batch in a replica's log.
///
/// ```
/// use candor_sim::broker::{ACKS_ALL, Batch, Call, NodeId, Partition, Profile};
/// let mut partition = Partition::new(Profile::V4_4, &[NodeId(1)]);
/// let call = Call { node: NodeId(1), now: 0, acks: ACKS_ALL, version: 12 };
/// let _ = partition.produce(call, &Batch::new(7, 0, 0, 3, 0, 'a'));
/// let entry = &partition.entries(NodeId(1))[0];
/// assert_eq!((entry.base_offset, entry.last_offset(), entry.content), (0, 2, 'a'));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Entry<C> {
    /// Offset of the first record.
    pub base_offset: i64,
    /// Number of records.
    pub count: i32,
    /// Leader epoch in which it was appended.
    pub leader_epoch: i32,
    /// Producer id; -1 for none.
    pub pid: i64,
    /// Producer epoch.
    pub epoch: i16,
    /// First sequence.
    pub first: i32,
    /// Attributes as stored.
    pub attributes: i16,
    /// Largest timestamp as stored: the broker's own on LogAppendTime topics.
    pub stamp: i64,
    /// The records.
    pub content: C,
}

impl<C> Entry<C> {
    /// Offset of the last record.
    #[must_use]
    pub fn last_offset(&self) -> i64 {
        self.base_offset + i64::from(self.count) - 1
    }

    fn claim(&self) -> Claim {
        Claim { pid: self.pid, epoch: self.epoch, first: self.first, count: self.count }
    }
}

/// One record as a consumer sees it.
///
/// ```
/// use candor_sim::broker::{ACKS_ALL, Batch, Call, NodeId, Partition, Profile};
/// let mut partition = Partition::new(Profile::V4_4, &[NodeId(1)]);
/// let call = Call { node: NodeId(1), now: 0, acks: ACKS_ALL, version: 12 };
/// let _ = partition.produce(call, &Batch::new(7, 0, 0, 2, 0, 'a'));
/// let places: Vec<_> = partition.committed().map(|r| (r.offset, r.index)).collect();
/// assert_eq!(places, [(0, 0), (1, 1)]);
/// ```
#[derive(Debug, PartialEq, Eq)]
pub struct Record<'a, C> {
    /// Its offset.
    pub offset: i64,
    /// Which record of its batch, from 0.
    pub index: i32,
    /// Its batch.
    pub entry: &'a Entry<C>,
}

/// What a snapshot file holds: the memory just before `offset`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Snapshot {
    offset: i64,
    producers: Producers,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Log<C> {
    entries: Vec<Entry<C>>,
    /// Offset of the next record.
    end: i64,
    /// First readable offset.
    start: i64,
    /// The same as last checkpointed: a crash falls back to it.
    durable_start: i64,
    /// Base offsets of segments but the first.
    rolls: Vec<i64>,
    snapshots: Vec<Snapshot>,
    producers: Producers,
}

impl<C: Clone> Log<C> {
    pub(super) fn new() -> Self {
        Self {
            entries: Vec::new(),
            end: 0,
            start: 0,
            durable_start: 0,
            rolls: Vec::new(),
            snapshots: Vec::new(),
            producers: Producers::default(),
        }
    }

    pub(super) fn end(&self) -> i64 {
        self.end
    }

    pub(super) fn start(&self) -> i64 {
        self.start
    }

    pub(super) fn entries(&self) -> &[Entry<C>] {
        &self.entries
    }

    /// Batches that hold a record at or past the log start.
    pub(super) fn readable(&self) -> &[Entry<C>] {
        let from = self.entries.partition_point(|entry| entry.last_offset() < self.start);
        self.entries.get(from..).unwrap_or_default()
    }

    pub(super) fn producers(&self) -> &Producers {
        &self.producers
    }

    /// Feeds what a restart would find into a hasher.
    pub(super) fn disk_fingerprint(&self, into: &mut impl Hasher) {
        (self.durable_start, &self.rolls, &self.snapshots).hash(into);
    }

    pub(super) fn producers_mut(&mut self) -> &mut Producers {
        &mut self.producers
    }

    /// Appends a batch that was judged already, or was judged by the leader it comes from.
    pub(super) fn append(&mut self, entry: Entry<C>) {
        if entry.pid >= 0 {
            self.producers.remember(entry.claim(), entry.base_offset, entry.stamp);
        }
        self.end = entry.last_offset() + 1;
        self.entries.push(entry);
    }

    /// Closes the active segment and writes a snapshot.
    pub(super) fn roll(&mut self) {
        if self.rolls.last() != Some(&self.end) && !self.entries.is_empty() {
            self.rolls.push(self.end);
            self.write_snapshot();
        }
    }

    fn write_snapshot(&mut self) {
        self.snapshots.retain(|snapshot| snapshot.offset < self.end);
        self.snapshots.push(Snapshot { offset: self.end, producers: self.producers.newest_only() });
    }

    /// Moves the log start. The memory stays; what is on disk stays until the next checkpoint.
    pub(super) fn delete_before(&mut self, offset: i64) {
        self.start = self.start.max(offset);
    }

    /// Makes the log start durable; segments wholly below it are gone for good.
    pub(super) fn checkpoint(&mut self) {
        self.durable_start = self.start;
        let Some(&kept) = self.rolls.iter().rfind(|base| **base <= self.start) else { return };
        self.entries.retain(|entry| entry.base_offset >= kept);
        self.rolls.retain(|base| *base >= kept);
        self.snapshots.retain(|snapshot| snapshot.offset >= kept);
    }

    /// Throws everything away and goes on at `offset`: a replica that lies behind its leader's log.
    pub(super) fn restart_at(&mut self, offset: i64) {
        *self = Self { end: offset, start: offset, durable_start: offset, ..Self::new() };
    }

    /// Removes everything from `offset` on, and rebuilds the memory.
    pub(super) fn truncate(&mut self, offset: i64, now: i64, expiration: i64) {
        self.entries.retain(|entry| entry.base_offset < offset);
        self.rolls.retain(|base| *base <= offset);
        self.end = offset;
        self.start = self.start.min(offset);
        self.durable_start = self.durable_start.min(offset);
        self.reload(offset, now, expiration);
    }

    /// What a clean stop leaves on disk.
    pub(super) fn close(&mut self) {
        self.checkpoint();
        self.write_snapshot();
    }

    /// What a start after a crash does first: the active segment is replayed into a temporary
    /// memory, of which a snapshot is written over the one that was there.
    pub(super) fn recover(&mut self, now: i64, expiration: i64) {
        self.start = self.durable_start;
        let active = self.rolls.last().copied().unwrap_or(0);
        self.reload(active, now, expiration);
        // The active segment counts as it lies on disk, records below the log start included.
        for entry in
            self.entries.iter().filter(|entry| entry.pid >= 0 && entry.base_offset >= active)
        {
            self.producers.remember(entry.claim(), entry.base_offset, entry.stamp);
        }
        self.write_snapshot();
    }

    /// Loads the latest usable snapshot, and replays what lies between it and `upto`.
    pub(super) fn reload(&mut self, upto: i64, now: i64, expiration: i64) {
        let start = self.start;
        self.snapshots.retain(|snapshot| snapshot.offset > start && snapshot.offset <= upto);
        let from = match self.snapshots.last() {
            Some(snapshot) => {
                self.producers = snapshot.producers.clone();
                self.producers.expire(now, expiration);
                snapshot.offset
            }
            None => {
                self.producers = Producers::default();
                start
            }
        };
        let replayed = |entry: &&Entry<C>| {
            entry.pid >= 0 && entry.last_offset() >= from && entry.base_offset < upto
        };
        for entry in self.entries.iter().filter(replayed) {
            self.producers.remember(entry.claim(), entry.base_offset, entry.stamp);
        }
    }
}
