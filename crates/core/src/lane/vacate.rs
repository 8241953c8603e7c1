//! Giving up a slot (V): numbers are never handed back and never reused.

use alloc::vec;
use alloc::vec::Vec;

use crate::action::{Notice, Outcome, Told};
use crate::payload::Payload;
use crate::rules::{Class, Rules, SettledAs, Standing};
use crate::time::Instant;
use crate::verdict::Proof;

use super::Lane;
use super::batch::{Past, Refusal, SealedBatch};
use super::epoch::EpochEnd;
use super::span::{Position, Slot};

/// Why a slot is given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// A permanent code, all attempts being refused.
    Code(Refusal),
    /// Records of it are due.
    Expired(Instant),
    /// V2: a batch behind it gave up its slot. Or D3: all its attempts turned out to be refused
    /// after records of it had been told `Unknown`: their time is up.
    Refused,
}

impl<P: Payload, R: Rules> Lane<P, R> {
    /// V1, V2: gives up what will not be resent unchanged, and what is refused before it.
    pub(super) fn give_up_slots(&mut self) {
        self.pass_over_refused();
        while let Some((position, cause)) = self.next_to_give_up() {
            self.vacate(position, cause);
        }
    }

    /// S22: what turns out refused behind a 0 that passed it keeps its epoch, and ends.
    fn pass_over_refused(&mut self) {
        let written = self.span.iter().rev().find(|(_, slot)| slot.is_passed()).map(|(p, _)| p);
        let refused = self.span.unsettled().find(|(position, batch)| {
            written.is_some_and(|written| *position < written)
                && self.doubtful_rival(*position).is_none()
                && R::vacated_with(batch.standing::<R>(), self.attempts.open_of(*position))
        });
        if let Some(position) = refused.map(|(position, _)| position) {
            self.pass_over(position);
            self.notice(Notice::StateLost);
            self.after_settling();
            self.pass_over_refused();
        }
    }

    fn next_to_give_up(&self) -> Option<(Position, Cause)> {
        let vacated = self.span.vacated();
        let free = self.span.unsettled().filter(|(p, _)| self.doubtful_rival(*p).is_none());
        free.into_iter().find_map(|(position, batch)| {
            let (standing, open) = (batch.standing::<R>(), self.attempts.open_of(position));
            if R::vacates(standing, open, batch.permanent.is_none() && !batch.any_told()) {
                return Some((
                    position,
                    batch.permanent.clone().map_or(Cause::Refused, Cause::Code),
                ));
            }
            let before = vacated.is_some_and(|vacated| position < vacated);
            (before && R::vacated_with(standing, open)).then_some((position, Cause::Refused))
        })
    }

    /// V1: the slot is given up; records go back to batches without a sequence.
    pub(super) fn vacate(&mut self, position: Position, cause: Cause) {
        let Some(first) = self.span.get(position).and_then(Slot::unsettled).map(|it| it.first)
        else {
            return;
        };
        // C: a refused replacement may carry the same records; they go their own way now.
        if self.span.replacement().is_some_and(|(_, it)| it.target <= position) {
            self.dissolve(Past::Refused);
        }
        let vacated = Slot::Vacated { first, kept: Vec::new() };
        let Some(Slot::Unsettled(batch)) = self.span.replace(position, vacated) else { return };
        self.attempts.settle(position, SettledAs::NotWritten);
        let count = batch.count();
        let (mut sealed, told, failed) =
            batch.thaw(Past::Refused, |index, deadline| match &cause {
                Cause::Code(refusal) => {
                    R::record_fails(R::class(refusal.code), count, &refusal.named, index)
                }
                Cause::Expired(now) => R::expired(*now, deadline),
                Cause::Refused => false,
            });
        self.tell(told, Outcome::NotDelivered(Proof::Refused));
        self.tell(failed, Outcome::NotDelivered(proof_of(&cause)));
        let kept = match &cause {
            Cause::Code(refusal) if R::class(refusal.code) == Class::TooLarge => {
                self.split(&mut sealed)
            }
            Cause::Code(_) | Cause::Expired(_) | Cause::Refused => Vec::new(),
        };
        let mut kept_batches = vec![sealed];
        kept_batches.extend(kept);
        kept_batches.retain(|batch| !batch.records.is_empty());
        self.span.replace(position, Slot::Vacated { first, kept: kept_batches });
    }

    /// V4: the second half; new batches are cut to the size of the children.
    fn split(&mut self, sealed: &mut SealedBatch<P>) -> Vec<SealedBatch<P>> {
        let count = sealed.records.entries.len() as u32;
        if count < 2 {
            return Vec::new();
        }
        let records = sealed.records.split_off(count.div_ceil(2));
        let largest = sealed.records.bytes().max(records.bytes());
        self.intake.cut_to(R::cut_size(largest));
        vec![SealedBatch { records, past: sealed.past, retry: sealed.retry }]
    }

    /// V2: once what stands before the slot is settled and what stands behind it was awaited, the
    /// lane goes on under the next epoch.
    pub(super) fn finish_vacating(&mut self, now: Instant) {
        let Some(vacated) = self.span.vacated() else { return };
        let doubt_before = self.span.unsettled().any(|(position, batch)| {
            position < vacated && self.standing_of(position, batch) == Standing::InDoubt
        });
        let successors_open = self
            .span
            .offered()
            .filter(|(position, _)| *position > vacated)
            .map(|(position, _)| self.attempts.open_of(position))
            .sum();
        if R::vacate_is_over(doubt_before, successors_open) {
            self.end_epoch(now, EpochEnd::Vacated);
        }
    }

    /// Tells a batch's records what its past proves.
    pub(super) fn tell_past(&mut self, past: Past, told: Vec<Told>) {
        self.tell(told, Outcome::NotDelivered(past.proof()));
    }
}

fn proof_of(cause: &Cause) -> Proof {
    match cause {
        Cause::Code(refusal) => Proof::Rejected { code: refusal.code },
        Cause::Expired(_) | Cause::Refused => Proof::Refused,
    }
}
