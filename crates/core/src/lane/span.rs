//! The span (S5): from the oldest unsettled batch to the newest offered, whatever their state.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::ids::{Offset, Sequence, Ticket};
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
    /// C: offered in the place of others; always the last slot.
    Replacement(Replacement<P>),
    /// V1: given up as never written; what stays of it goes on in the next epoch.
    Vacated { first: Sequence, kept: Vec<SealedBatch<P>> },
    /// S22: overtaken by a broker that lost our state; nothing stays.
    Overtaken,
}

/// C: a batch that shall take the slot of others. What it shares with those that it contests is
/// `Elsewhere` in its entries: they speak for it until this one is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Replacement<P: Payload> {
    pub(super) batch: SequencedBatch<P>,
    /// The oldest batch that it contests; all behind it are contested as well.
    pub(super) target: Position,
}

/// C2, S4: a content that was offered in the place of another in this epoch: all that could be in
/// it then, up to a record. What can be only loses records and gets newer ones, so that a content
/// is the same as long as it has as many up to there; there is one of each size (C2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Contest {
    pub(super) first: Sequence,
    pub(super) count: u32,
    pub(super) last: Ticket,
}

impl<P: Payload> Slot<P> {
    pub(super) fn unsettled(&self) -> Option<&SequencedBatch<P>> {
        match self {
            Self::Unsettled(batch) => Some(batch),
            Self::Replacement(_)
            | Self::Written { .. }
            | Self::Vacated { .. }
            | Self::Overtaken => None,
        }
    }

    fn unsettled_mut(&mut self) -> Option<&mut SequencedBatch<P>> {
        match self {
            Self::Unsettled(batch) => Some(batch),
            Self::Replacement(_)
            | Self::Written { .. }
            | Self::Vacated { .. }
            | Self::Overtaken => None,
        }
    }

    /// Offered, and neither written nor given up, whatever for.
    pub(super) fn offered(&self) -> Option<&SequencedBatch<P>> {
        match self {
            Self::Unsettled(batch) | Self::Replacement(Replacement { batch, .. }) => Some(batch),
            Self::Written { .. } | Self::Vacated { .. } | Self::Overtaken => None,
        }
    }

    fn offered_mut(&mut self) -> Option<&mut SequencedBatch<P>> {
        match self {
            Self::Unsettled(batch) | Self::Replacement(Replacement { batch, .. }) => Some(batch),
            Self::Written { .. } | Self::Vacated { .. } | Self::Overtaken => None,
        }
    }

    /// A 0 passed it: it is written, or will not be.
    pub(super) fn is_passed(&self) -> bool {
        match self {
            Self::Written { .. } | Self::Overtaken => true,
            Self::Unsettled(_) | Self::Replacement(_) | Self::Vacated { .. } => false,
        }
    }

    fn is_vacated(&self) -> bool {
        match self {
            Self::Vacated { .. } => true,
            Self::Unsettled(_) | Self::Replacement(_) | Self::Written { .. } | Self::Overtaken => {
                false
            }
        }
    }
}

/// The slots of the epoch in use that are not forgotten yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span<P: Payload> {
    base: u64,
    slots: VecDeque<Slot<P>>,
    contests: Vec<Contest>,
}

impl<P: Payload> Span<P> {
    pub(super) fn new() -> Self {
        Self { base: 0, slots: VecDeque::new(), contests: Vec::new() }
    }

    pub(super) fn shrink(&mut self) {
        self.slots.shrink_to_fit();
        self.contests.shrink_to_fit();
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
        self.get_mut(position)?.offered_mut()
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

    /// What is unsettled from a position on.
    pub(super) fn unsettled_from(
        &mut self,
        position: Position,
    ) -> impl Iterator<Item = &mut SequencedBatch<P>> {
        let before = position.0.saturating_sub(self.base) as usize;
        self.slots.iter_mut().skip(before).filter_map(Slot::unsettled_mut)
    }

    /// What is unsettled, and the replacement.
    pub(super) fn offered(
        &self,
    ) -> impl DoubleEndedIterator<Item = (Position, &SequencedBatch<P>)> {
        self.iter().filter_map(|(position, slot)| Some((position, slot.offered()?)))
    }

    pub(super) fn offered_mut(&mut self) -> impl Iterator<Item = &mut SequencedBatch<P>> {
        self.slots.iter_mut().filter_map(Slot::offered_mut)
    }

    /// C2: the one replacement, if there is one.
    pub(super) fn replacement(&self) -> Option<(Position, &Replacement<P>)> {
        match self.iter().next_back() {
            Some((position, Slot::Replacement(replacement))) => Some((position, replacement)),
            Some((
                _,
                Slot::Unsettled(_) | Slot::Written { .. } | Slot::Vacated { .. } | Slot::Overtaken,
            ))
            | None => None,
        }
    }

    /// C2: offers this in the place of `target` and all behind it.
    pub(super) fn contest(&mut self, batch: SequencedBatch<P>, target: Position) -> Position {
        let (first, count, position) = (batch.first, batch.count(), self.end());
        let last = batch.entries.last().map(|entry| entry.ticket);
        let contest = last.map(|last| Contest { first, count, last });
        self.contests.extend(contest.filter(|contest| !self.contests.contains(contest)));
        self.slots.push_back(Slot::Replacement(Replacement { batch, target }));
        position
    }

    /// C4: the replacement is not written.
    pub(super) fn take_replacement(&mut self) -> Option<(Position, Replacement<P>)> {
        let position = self.replacement()?.0;
        match self.slots.pop_back()? {
            Slot::Replacement(replacement) => Some((position, replacement)),
            Slot::Unsettled(_) | Slot::Written { .. } | Slot::Vacated { .. } | Slot::Overtaken => {
                None
            }
        }
    }

    /// Contents that were offered in the place of others in this epoch.
    pub(super) fn contests(&self) -> &[Contest] {
        &self.contests
    }

    /// Whether other content was offered at a part of this range (46).
    pub(super) fn is_contested(&self, first: Sequence, count: u32) -> bool {
        let overlaps = |contest: &Contest| {
            first.until(contest.first) < count || contest.first.until(first) < contest.count
        };
        self.contests.iter().any(overlaps)
    }

    /// S8: another epoch counts from 0 again.
    pub(super) fn end_contests(&mut self) {
        self.contests.clear();
    }

    /// What was contested before the oldest slot that is not decided (`next`: there is none) is
    /// forgotten.
    pub(super) fn forget_contests(&mut self, next: Sequence) {
        let oldest = self.slots.iter().find_map(|slot| match slot {
            Slot::Unsettled(batch) => Some(batch.first),
            Slot::Vacated { first, .. } => Some(*first),
            Slot::Replacement(_) | Slot::Written { .. } | Slot::Overtaken => None,
        });
        let oldest = oldest.unwrap_or(next);
        // What begins behind `oldest` is nearly a whole round ahead of it (S14).
        let ahead = |it: &Contest| it.first.until(oldest) > i32::MAX as u32 / 2;
        let reaches = |it: &Contest| it.first.until(oldest) < it.count;
        self.contests.retain(|it| ahead(it) || reaches(it));
    }

    pub(super) fn vacated_mut(&mut self) -> impl Iterator<Item = &mut Vec<SealedBatch<P>>> {
        self.slots.iter_mut().filter_map(|slot| match slot {
            Slot::Vacated { kept, .. } => Some(kept),
            Slot::Unsettled(_) | Slot::Replacement(_) | Slot::Written { .. } | Slot::Overtaken => {
                None
            }
        })
    }

    /// What stays of vacated batches.
    pub(super) fn kept(&self) -> impl Iterator<Item = &SealedBatch<P>> {
        self.slots.iter().flat_map(|slot| match slot {
            Slot::Vacated { kept, .. } => kept.as_slice(),
            Slot::Unsettled(_) | Slot::Replacement(_) | Slot::Written { .. } | Slot::Overtaken => {
                &[]
            }
        })
    }

    /// V2: the lowest vacated slot.
    pub(super) fn vacated(&self) -> Option<Position> {
        self.iter().find(|(_, slot)| slot.is_vacated()).map(|(position, _)| position)
    }

    /// Forgets settled slots at the front; `written` hears of the written ones, in order.
    pub(super) fn trim(&mut self, mut written: impl FnMut(Option<Offset>, u32)) {
        while let Some(Slot::Written { .. } | Slot::Overtaken) = self.slots.front() {
            if let Some(Slot::Written { base, count }) = self.slots.pop_front() {
                written(base, count);
            }
            self.base += 1;
        }
    }

    /// S8: the epoch is over.
    pub(super) fn drain(&mut self) -> Vec<(Position, Slot<P>)> {
        let base = self.base;
        self.base += self.slots.len() as u64;
        let slots = self.slots.drain(..).enumerate();
        slots.map(|(i, slot)| (Position(base + i as u64), slot)).collect()
    }
}
