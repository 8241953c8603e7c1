//! A payload that is only a list of numbers, for searches, tests and examples.

use alloc::vec::Vec;

use crate::ids::{Identity, Offset, Sequence};
use crate::payload::{Frozen, Payload};

/// Records are small numbers, each of size 1; a batch is their list.
///
/// ```
/// use candor_core::{Payload, testing::Counted};
/// let mut batch = Counted::empty();
/// batch.push(1_000, 7);
/// assert_eq!((batch.count(), batch.records()), (1, vec![7]));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Counted {
    records: Vec<(i64, u16)>,
}

impl Counted {
    /// The numbers in it.
    pub fn records(&self) -> Vec<u16> {
        self.records.iter().map(|&(_, number)| number).collect()
    }
}

impl Payload for Counted {
    type Record<'r> = u16;
    type Frozen = Self;

    fn empty() -> Self {
        Self::default()
    }

    fn size_with(&self, _: i64, _: &u16) -> usize {
        self.records.len() + 1
    }

    fn push(&mut self, timestamp: i64, record: u16) {
        self.records.push((timestamp, record));
    }

    fn remove(&mut self, index: u32) {
        self.records.remove(index as usize);
    }

    fn remove_all(&mut self, indexes: &[u32]) {
        let (mut place, mut leaving) = (0, indexes.iter().peekable());
        self.records.retain(|_| {
            let leaves = leaving.next_if_eq(&&place).is_some();
            place += 1;
            !leaves
        });
    }

    fn split_off(&mut self, at: u32) -> Self {
        Self { records: self.records.split_off(at as usize) }
    }

    fn join(&mut self, mut behind: Self) {
        self.records.append(&mut behind.records);
    }

    fn count(&self) -> u32 {
        self.records.len() as u32
    }

    fn bytes(&self) -> usize {
        self.records.len()
    }

    fn max_timestamp(&self) -> i64 {
        self.records.iter().map(|&(timestamp, _)| timestamp).max().unwrap_or(-1)
    }

    fn freeze(self, _: Identity, _: Sequence) -> Self {
        self
    }
}

impl Frozen for Counted {
    type Open = Self;

    fn thaw(self) -> Self {
        self
    }

    fn count(&self) -> u32 {
        Payload::count(self)
    }

    fn bytes(&self) -> usize {
        Payload::bytes(self)
    }

    fn max_timestamp(&self) -> i64 {
        Payload::max_timestamp(self)
    }
}

/// Where a lane starts in the middle of an epoch, the broker holding what came before.
///
/// ```
/// use candor_core::testing::{Counted, Preset};
/// use candor_core::{Identity, Instant, Lane, LaneConfig, Offset, ProducerId, Sequence};
/// let preset = Preset {
///     identity: Identity::fresh(ProducerId::new(7).unwrap()),
///     next: Sequence::new(i32::MAX).unwrap(),
///     last_acknowledged: Offset::new(9).unwrap(),
/// };
/// let lane: Lane<Counted> = Lane::preset(LaneConfig::default(), Instant::EPOCH, preset);
/// assert_eq!(lane.identity(), Some(preset.identity));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// The identity in use, something being acknowledged under it.
    pub identity: Identity,
    /// The next sequence.
    pub next: Sequence,
    /// Offset of the last acknowledged record.
    pub last_acknowledged: Offset,
}
