//! C4: a replacement was written. What it contested is not, if the answer says enough; the epoch
//! ends in any case (C2).

use alloc::vec::Vec;

use crate::action::{Outcome, Told};
use crate::event::PartitionResponse;
use crate::ids::Offset;
use crate::payload::Payload;
use crate::rules::{ConclusionFacts, Contender, Rules, SettledAs, Standing};
use crate::time::Instant;
use crate::verdict::NeverReason;

use super::Lane;
use super::attempt::{Attempt, Passage};
use super::batch::{Entry, Retry, find};
use super::epoch::EpochEnd;
use super::memory::Acknowledged;
use super::span::{Position, Replacement, Slot};

impl<P: Payload, R: Rules> Lane<P, R> {
    /// Code 0 for the replacement.
    pub(super) fn replacement_written(
        &mut self,
        now: Instant,
        attempt: &Attempt,
        base: Option<Offset>,
        response: &PartitionResponse,
    ) {
        let Some((position, replacement)) = self.span.replacement() else { return };
        let (target, count) = (replacement.target, replacement.batch.count());
        let (max_timestamp, offered) =
            (replacement.batch.max_timestamp(), replacement.batch.tally.offered);
        let end = self.end_after(now, attempt, target, response);
        let proved = self.proved_by_replacement(target, end);
        if !self.agrees(attempt, base, count, &proved) {
            self.tell_in_doubt(position);
            return self.contradiction(base);
        }
        if R::shows_timestamp_type(offered) {
            self.memory.see_timestamp_type(response.log_append_time);
        }
        let end_offset = base.map(|base| base.after(count));
        let acknowledged = Acknowledged { position, end: end_offset, max_timestamp };
        self.memory.acknowledge::<R>(self.moment(now), &self.config, acknowledged);
        self.conflicts = 0;
        self.raise_fence(base);
        self.prove(&proved, base);
        self.overtake(target);
        self.claim(position, base);
        self.end_epoch(now, end);
        self.renewal = Retry::AT_ONCE;
    }

    /// C1: how the epoch ends by this 0.
    fn end_after(
        &self,
        now: Instant,
        attempt: &Attempt,
        target: Position,
        response: &PartitionResponse,
    ) -> EpochEnd {
        match self.inconclusive(now, Contender::Replacement, attempt, target, response) {
            None => EpochEnd::Replaced { target },
            Some(reason) => EpochEnd::Forgotten(reason),
        }
    }

    /// C1: why this 0 does not tell that the other contents of the slot at `target` are not written.
    fn inconclusive(
        &self,
        now: Instant,
        written: Contender,
        attempt: &Attempt,
        target: Position,
        response: &PartitionResponse,
    ) -> Option<NeverReason> {
        let resendable = self.remembers_doubt(now);
        let contested = self.span.get(target).and_then(Slot::unsettled);
        let told = Offset::new(response.log_start_offset);
        let conclusive = R::conclusive(&ConclusionFacts {
            written,
            resendable,
            gate_opened_before: match attempt.passage {
                Passage::Gate { opener } => opener < target,
                Passage::Pass(_) => false,
            },
            // A late answer tells less of the log than others that came before it.
            log_start: told.and_then(|_| self.memory.log_start()),
            last_acknowledged: self.memory.last_acknowledged(),
            first_of_epoch: contested.is_some_and(|batch| batch.first == R::first_sequence()),
        });
        // S22: a 0 behind what is certainly not written means that the broker lost our state.
        let lost = self.lowest_refused().is_some_and(|lowest| lowest < target);
        match (conclusive && !lost, resendable) {
            (true, _) => None,
            (false, true) => Some(NeverReason::StateLost),
            (false, false) => Some(NeverReason::Expired),
        }
    }

    /// C4: a 0 came from the slot that a replacement in doubt contests, or from behind it, and does
    /// not tell that the replacement is not written: what was contested there, and why.
    pub(super) fn undecided_contest(
        &self,
        now: Instant,
        attempt: &Attempt,
        response: &PartitionResponse,
    ) -> Option<(Position, NeverReason)> {
        let target = self.doubtful_rival(attempt.position)?.target;
        let contested = Contender::Contested;
        Some((target, self.inconclusive(now, contested, attempt, target, response)?))
    }

    /// C4: the batch in the slot is written, and so may the replacement be: its epoch ends, and with
    /// it all that is in doubt. The batch stands in the span yet: the replacement came before it, if
    /// at all (S13).
    pub(super) fn end_undecided_contest(
        &mut self,
        now: Instant,
        target: Position,
        reason: NeverReason,
    ) {
        if self.span.get(target).and_then(Slot::unsettled).is_none() {
            self.end_epoch(now, EpochEnd::Forgotten(reason));
        }
    }

    /// C1: a conclusive 0 proves what stands before the slot that it took.
    fn proved_by_replacement(&self, target: Position, end: EpochEnd) -> Vec<Position> {
        let before: Vec<Position> = self
            .span
            .unsettled()
            .take_while(|(position, _)| *position < target)
            .filter(|(_, batch)| batch.standing::<R>() == Standing::InDoubt)
            .map(|(position, _)| position)
            .collect();
        let proves = matches!(end, EpochEnd::Replaced { .. }) && !self.is_overtaken(&before);
        if proves { before } else { Vec::new() }
    }

    fn is_overtaken(&self, before: &[Position]) -> bool {
        before.iter().any(|position| self.is_passed(*position))
    }

    /// The replacement is in the log: from now on it speaks for the records that it shares.
    fn claim(&mut self, position: Position, base: Option<Offset>) {
        let Some((_, replacement)) = self.span.replacement() else { return };
        let (target, entries) = (replacement.target, replacement.batch.entries.clone());
        let shared = self.take_over(target, &entries);
        let written = Slot::Written { base, count: entries.len() as u32 };
        let Some(Slot::Replacement(Replacement { mut batch, .. })) =
            self.span.replace(position, written)
        else {
            return;
        };
        // What nobody handed over was written by its own batch, behind this one.
        batch.speak_for(&shared);
        let settled = base.map_or(SettledAs::Forgotten, |base| SettledAs::Written { base });
        self.attempts.settle(position, settled);
        self.tell(batch.told(), Outcome::Delivered { base });
    }

    /// Takes the records of the replacement away from the contested batches that spoke for them.
    fn take_over(&mut self, target: Position, entries: &[Entry]) -> Vec<Told> {
        let contested = self.span.unsettled_from(target);
        contested
            .flat_map(|batch| batch.hand_over(|it| find(entries, it.ticket).is_some()))
            .collect()
    }
}
