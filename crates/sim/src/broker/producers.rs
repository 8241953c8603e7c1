//! What a replica remembers of producers.

use core::hash::{Hash, Hasher};

use super::batch::last_sequence;
use super::{NoState, code};

/// How many batches of a producer are remembered.
const CACHE: usize = 5;

/// A remembered batch.
///
/// ```
/// use candor_sim::broker::Cached;
/// let batch = Cached { first: 3, count: 2, base_offset: 10, stamp: 99 };
/// assert_eq!(batch.last(), 4);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Cached {
    /// First sequence.
    pub first: i32,
    /// Number of records.
    pub count: i32,
    /// Offset of the first record.
    pub base_offset: i64,
    /// Largest timestamp of the batch as stored.
    pub stamp: i64,
}

impl Cached {
    /// Last sequence.
    #[must_use]
    pub fn last(&self) -> i32 {
        last_sequence(self.first, self.count)
    }
}

/// What one replica knows of one producer: its epoch and at most five batches of that epoch.
///
/// ```
/// use candor_sim::broker::{ACKS_ALL, Batch, Call, NodeId, Partition, Profile};
/// let mut partition = Partition::new(Profile::V4_4, &[NodeId(1)]);
/// let call = Call { node: NodeId(1), now: 0, acks: ACKS_ALL, version: 12 };
/// let _ = partition.produce(call, &Batch::new(7, 2, 0, 3, 0, 'a'));
/// let known = partition.known(NodeId(1), 7).expect("remembered");
/// assert_eq!((known.epoch(), known.batches().len()), (2, 1));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Known {
    pid: i64,
    epoch: i16,
    /// Slots at and past `len` are never read.
    len: u8,
    cache: [Cached; CACHE],
}

impl PartialEq for Known {
    fn eq(&self, other: &Self) -> bool {
        (self.pid, self.epoch) == (other.pid, other.epoch) && self.batches() == other.batches()
    }
}

impl Eq for Known {}

impl Hash for Known {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.pid, self.epoch).hash(state);
        self.batches().hash(state);
    }
}

impl Known {
    fn new(pid: i64, epoch: i16, batch: Cached) -> Self {
        let mut cache = [Cached::default(); CACHE];
        cache[0] = batch;
        Self { pid, epoch, len: 1, cache }
    }

    /// Producer id.
    #[must_use]
    pub fn pid(&self) -> i64 {
        self.pid
    }

    /// Producer epoch.
    #[must_use]
    pub fn epoch(&self) -> i16 {
        self.epoch
    }

    /// The remembered batches, oldest first.
    #[must_use]
    pub fn batches(&self) -> &[Cached] {
        self.cache.get(..usize::from(self.len)).unwrap_or(&self.cache)
    }

    /// The newest one; there always is one.
    #[must_use]
    pub fn newest(&self) -> &Cached {
        self.batches().last().unwrap_or(&self.cache[0])
    }

    fn push(&mut self, batch: Cached) {
        let len = usize::from(self.len);
        match self.cache.get_mut(len) {
            Some(free) => {
                *free = batch;
                self.len += 1;
            }
            None => {
                self.cache.rotate_left(1);
                self.cache[CACHE - 1] = batch;
            }
        }
    }

    fn shrink(&mut self) {
        self.cache[0] = *self.newest();
        self.len = 1;
    }
}

/// The memory of one replica, sorted by producer id.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Producers(Vec<Known>);

/// The part of a batch that the memory judges and keeps.
#[derive(Debug, Clone, Copy)]
pub(super) struct Claim {
    pub(super) pid: i64,
    pub(super) epoch: i16,
    pub(super) first: i32,
    pub(super) count: i32,
}

impl Producers {
    pub(super) fn get(&self, pid: i64) -> Option<&Known> {
        self.0.iter().find(|known| known.pid == pid)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Known> {
        self.0.iter()
    }

    /// A remembered batch with the same first and the same last sequence. Contents are never looked at.
    pub(super) fn repeat_of(&self, claim: Claim) -> Option<Cached> {
        let known = self.get(claim.pid).filter(|known| known.epoch == claim.epoch)?;
        let same = |b: &&Cached| {
            (b.first, b.last()) == (claim.first, last_sequence(claim.first, claim.count))
        };
        known.batches().iter().find(same).copied()
    }

    /// Epoch and sequence rules for a batch that repeats none; `origin` is what epochs start with.
    pub(super) fn check(
        &self,
        claim: Claim,
        rule: NoState,
        virgin: bool,
        origin: i32,
    ) -> Result<(), i16> {
        let Some(known) = self.get(claim.pid) else {
            return match rule {
                NoState::UnknownProducer if claim.first != origin => Err(code::UNKNOWN_PRODUCER_ID),
                NoState::OutOfOrderIfVirgin if claim.first != origin && virgin => {
                    Err(code::OUT_OF_ORDER_SEQUENCE_NUMBER)
                }
                NoState::Accept | NoState::UnknownProducer | NoState::OutOfOrderIfVirgin => Ok(()),
            };
        };
        if claim.epoch < known.epoch {
            return Err(code::INVALID_PRODUCER_EPOCH);
        }
        let due = if claim.epoch > known.epoch {
            origin
        } else {
            last_sequence(known.newest().last(), 2)
        };
        if claim.first == due { Ok(()) } else { Err(code::OUT_OF_ORDER_SEQUENCE_NUMBER) }
    }

    /// Remembers an appended batch; a new epoch forgets the batches of the old one.
    pub(super) fn remember(&mut self, claim: Claim, base_offset: i64, stamp: i64) {
        let batch = Cached { first: claim.first, count: claim.count, base_offset, stamp };
        match self.0.binary_search_by_key(&claim.pid, |known| known.pid) {
            Ok(at) if self.0[at].epoch == claim.epoch => self.0[at].push(batch),
            Ok(at) => self.0[at] = Known::new(claim.pid, claim.epoch, batch),
            Err(at) => self.0.insert(at, Known::new(claim.pid, claim.epoch, batch)),
        }
    }

    /// Forgets producers whose newest batch is stamped `expiration` or longer before `now` (S20).
    pub(super) fn expire(&mut self, now: i64, expiration: i64) {
        self.0.retain(|known| now.saturating_sub(known.newest().stamp) < expiration);
    }

    pub(super) fn forget(&mut self, pid: i64) {
        self.0.retain(|known| known.pid != pid);
    }

    /// What a snapshot keeps: the newest batch of each producer.
    pub(super) fn newest_only(&self) -> Self {
        let mut kept = self.clone();
        kept.0.iter_mut().for_each(Known::shrink);
        kept
    }
}
