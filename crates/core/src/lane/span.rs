//! The span (S5): from the oldest unsettled batch to the newest offered, whatever their state.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::ids::Offset;
use crate::payload::Payload;

use super::batch::{SealedBatch, SequencedBatch};

/// The place of a batch in the order of first offers of its lane. Order is position, never a
/// comparison of sequences (S14).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Position(pub(super) u64);

/// What became of the batch at a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Slot<P: Payload> {
    /// Offered, neither written nor given up.
    Unsettled(SequencedBatch<P>),
    /// In the log.
    Written { base: Option<Offset>, count: u32 },
    /// V1: given up as never written; what stays of it goes on in the next epoch.
    Vacated(Vec<SealedBatch<P>>),
    /// S22: overtaken by a broker that lost our state; nothing stays.
    Overtaken,
}

impl<P: Payload> Slot<P> {
    pub(super) fn unsettled(&self) -> Option<&SequencedBatch<P>> {
        match self {
            Self::Unsettled(batch) => Some(batch),
            Self::Written { .. } | Self::Vacated(_) | Self::Overtaken => None,
        }
    }

    pub(super) fn unsettled_mut(&mut self) -> Option<&mut SequencedBatch<P>> {
        match self {
            Self::Unsettled(batch) => Some(batch),
            Self::Written { .. } | Self::Vacated(_) | Self::Overtaken => None,
        }
    }

    /// A 0 passed it: it is written, or will not be.
    pub(super) fn is_passed(&self) -> bool {
        match self {
            Self::Written { .. } | Self::Overtaken => true,
            Self::Unsettled(_) | Self::Vacated(_) => false,
        }
    }

    fn is_vacated(&self) -> bool {
        match self {
            Self::Vacated(_) => true,
            Self::Unsettled(_) | Self::Written { .. } | Self::Overtaken => false,
        }
    }
}

/// The slots of the epoch in use that are not forgotten yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span<P: Payload> {
    base: u64,
    slots: VecDeque<Slot<P>>,
}

impl<P: Payload> Span<P> {
    pub(super) fn new() -> Self {
        Self { base: 0, slots: VecDeque::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Where the next new batch will stand.
    pub(super) fn end(&self) -> Position {
        Position(self.base + self.slots.len() as u64)
    }

    pub(super) fn push(&mut self, batch: SequencedBatch<P>) -> Position {
        let position = self.end();
        self.slots.push_back(Slot::Unsettled(batch));
        position
    }

    fn index(&self, position: Position) -> Option<usize> {
        position.0.checked_sub(self.base).map(|index| index as usize)
    }

    pub(super) fn get(&self, position: Position) -> Option<&Slot<P>> {
        self.slots.get(self.index(position)?)
    }

    pub(super) fn get_mut(&mut self, position: Position) -> Option<&mut Slot<P>> {
        let index = self.index(position)?;
        self.slots.get_mut(index)
    }

    pub(super) fn batch_mut(&mut self, position: Position) -> Option<&mut SequencedBatch<P>> {
        self.get_mut(position)?.unsettled_mut()
    }

    /// Puts another slot in its place and returns the one that stood there.
    pub(super) fn replace(&mut self, position: Position, slot: Slot<P>) -> Option<Slot<P>> {
        self.get_mut(position).map(|place| core::mem::replace(place, slot))
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (Position, &Slot<P>)> {
        let base = self.base;
        self.slots.iter().enumerate().map(move |(i, slot)| (Position(base + i as u64), slot))
    }

    pub(super) fn unsettled(
        &self,
    ) -> impl DoubleEndedIterator<Item = (Position, &SequencedBatch<P>)> {
        self.iter().filter_map(|(position, slot)| Some((position, slot.unsettled()?)))
    }

    pub(super) fn unsettled_mut(&mut self) -> impl Iterator<Item = &mut SequencedBatch<P>> {
        self.slots.iter_mut().filter_map(Slot::unsettled_mut)
    }

    pub(super) fn vacated_mut(&mut self) -> impl Iterator<Item = &mut Vec<SealedBatch<P>>> {
        self.slots.iter_mut().filter_map(|slot| match slot {
            Slot::Vacated(kept) => Some(kept),
            Slot::Unsettled(_) | Slot::Written { .. } | Slot::Overtaken => None,
        })
    }

    /// What stays of vacated batches.
    pub(super) fn kept(&self) -> impl Iterator<Item = &SealedBatch<P>> {
        self.slots.iter().flat_map(|slot| match slot {
            Slot::Vacated(kept) => kept.as_slice(),
            Slot::Unsettled(_) | Slot::Written { .. } | Slot::Overtaken => &[],
        })
    }

    /// V2: the lowest vacated slot.
    pub(super) fn vacated(&self) -> Option<Position> {
        self.iter().find(|(_, slot)| slot.is_vacated()).map(|(position, _)| position)
    }

    /// Forgets settled slots at the front; returns where the newest written one of them ended.
    pub(super) fn trim(&mut self) -> Option<Offset> {
        let mut end = None;
        while let Some(Slot::Written { .. } | Slot::Overtaken) = self.slots.front() {
            if let Some(Slot::Written { base: Some(base), count }) = self.slots.pop_front() {
                end = Some(base.after(count));
            }
            self.base += 1;
        }
        end
    }

    /// S8: the epoch is over.
    pub(super) fn drain(&mut self) -> Vec<(Position, Slot<P>)> {
        let base = self.base;
        self.base += self.slots.len() as u64;
        let slots = self.slots.drain(..).enumerate();
        slots.map(|(i, slot)| (Position(base + i as u64), slot)).collect()
    }
}
