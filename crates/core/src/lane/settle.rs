//! What a 0 settles: its batch, those before it (S22), the gate, the lane's memory.

use alloc::vec::Vec;

use crate::action::{Notice, Outcome, Settled, Told};
use crate::ids::Offset;
use crate::payload::Payload;
use crate::rules::{
    Bounds, GateFacts, OffsetFacts, PredecessorFacts, ProofFacts, Rules, SettledAs, Standing,
};
use crate::time::Instant;
use crate::verdict::Proof;

use super::attempt::{Attempt, Passage};
use super::batch::{Retry, SequencedBatch};
use super::gate::Gate;
use super::memory::Acknowledged;
use super::span::{Position, Slot};
use super::{Adopted, Holding, Lane};

impl<P: Payload, R: Rules> Lane<P, R> {
    /// Code 0 for a batch of the epoch in use.
    pub(super) fn acknowledged(
        &mut self,
        now: Instant,
        attempt: &Attempt,
        base: Option<Offset>,
        log_append_time: i64,
    ) {
        let Some(batch) = self.span.batch_mut(attempt.position) else { return };
        let (count, offered) = (batch.count(), batch.tally.offered);
        let max_timestamp = batch.max_timestamp();
        if !self.agrees(attempt, base, count) {
            self.tell_in_doubt(attempt.position);
            return self.contradiction(base);
        }
        if !self.settle_predecessors(now, attempt, base) {
            self.tell_in_doubt(attempt.position);
            return self.contradiction(base);
        }
        if R::shows_timestamp_type(offered) {
            self.memory.see_timestamp_type(log_append_time);
        }
        let acknowledged = Acknowledged {
            position: attempt.position,
            end: base.map(|base| base.after(count)),
            max_timestamp,
        };
        self.memory.acknowledge::<R>(self.moment(now), &self.config, acknowledged);
        self.conflicts = 0;
        self.renewal = Retry::AT_ONCE;
        self.raise_fence(base);
        self.written(attempt.position, base, None);
        self.open_gate(now, attempt);
        self.begin_pass_anew();
        self.after_settling();
    }

    /// 46 for a batch that may well be in the log: it is, but nobody knows where.
    pub(super) fn written_somewhere(&mut self, attempt: &Attempt) {
        self.overtake(attempt.position);
        self.mark_acknowledged();
        self.written(attempt.position, None, None);
        self.begin_pass_anew();
        self.after_settling();
    }

    pub(super) fn agrees(&self, attempt: &Attempt, base: Option<Offset>, count: u32) -> bool {
        let Some(base) = base else { return true };
        let bounds = self.bounds(attempt.position);
        attempt.log != self.memory.log || R::offsets_agree(OffsetFacts { bounds, base, count })
    }

    /// S13: the written batches around a position. What was concluded takes room as well.
    pub(super) fn bounds(&self, position: Position) -> Bounds {
        let mut bounds = Bounds { previous_end: self.memory.baseline, next_base: None };
        for (_, slot) in self.span.iter().take_while(|(before, _)| *before < position) {
            bounds.previous_end = slot.end_behind(bounds.previous_end);
        }
        for (_, slot) in self.span.iter().rev().take_while(|(behind, _)| *behind > position) {
            bounds.next_base = slot.base_before(bounds.next_base);
        }
        bounds
    }

    /// S13: whether so many records fit between what is written and this 0.
    pub(super) fn has_room(&self, attempt: &Attempt, base: Option<Offset>, before: u32) -> bool {
        let bounds = self.bounds(attempt.position);
        let previous_end = bounds.previous_end.map(|end| end.after(before));
        let bounds = Bounds { previous_end, ..bounds };
        let agrees = |base| R::offsets_agree(OffsetFacts { bounds, base, count: 0 });
        attempt.log != self.memory.log || base.is_none_or(agrees)
    }

    /// The batch is in the log; if nobody said where, then before `proof`.
    pub(super) fn written(
        &mut self,
        position: Position,
        base: Option<Offset>,
        proof: Option<Offset>,
    ) {
        let bounds = self.bounds(position);
        let count = self.span.batch_mut(position).map_or(0, |batch| batch.count());
        let Some(Slot::Unsettled(batch)) =
            self.span.replace(position, Slot::Written { base, count })
        else {
            return;
        };
        let settled = match base {
            Some(base) => SettledAs::Written { base },
            None => {
                let next_base = proof.or(bounds.next_base);
                SettledAs::Concluded { bounds: Bounds { next_base, ..bounds }, count }
            }
        };
        self.attempts.settle(position, settled);
        self.tell(batch.told(), Outcome::Delivered { base });
    }

    pub(super) fn after_settling(&mut self) {
        self.memory.baseline = self.span.trim(self.memory.baseline);
    }

    /// Records in doubt without a verdict are told so, at once.
    pub(super) fn tell_in_doubt(&mut self, position: Position) {
        let last = self.bounds(position).last_before();
        let Some(batch) = self.span.batch_mut(position) else { return };
        let newly = batch.tell(|_| true);
        let doubt = batch.doubt(last);
        self.tell(newly, Outcome::Unknown(doubt));
    }

    /// S22: a later 0 proves its predecessors, or tells that the broker lost our state. False if it
    /// proves what cannot be: there is no room for them (S13).
    fn settle_predecessors(
        &mut self,
        now: Instant,
        attempt: &Attempt,
        base: Option<Offset>,
    ) -> bool {
        let predecessors = self.predecessors(attempt);
        let provable = self.provable(attempt, &predecessors);
        let vacated = self.span.vacated().filter(|vacated| *vacated < attempt.position);
        if predecessors.is_empty() && vacated.is_none() {
            return true;
        }
        let facts: Vec<_> =
            provable.iter().filter_map(|p| self.predecessor_facts(*p, attempt)).collect();
        let before = self.moment_before(now, attempt.position);
        let proved = R::proves(&ProofFacts {
            known: self.memory.known::<R>(before, &self.config),
            vacated_between: vacated.is_some(),
            through_open_gate: matches!(attempt.passage, Passage::Gate { .. }),
            in_pass: self.is_of_this_pass(attempt) && !attempt.orphaned,
            predecessors: &facts,
        });
        if !proved {
            self.overtake(attempt.position);
            return true;
        }
        if !self.has_room(attempt, base, self.records_in(&provable)) {
            return false;
        }
        for position in provable {
            self.written(position, None, base);
        }
        true
    }

    /// How many records these batches have.
    pub(super) fn records_in(&self, positions: &[Position]) -> u32 {
        let batches = positions.iter().filter_map(|position| self.span.get(*position)?.offered());
        batches.map(SequencedBatch::count).sum()
    }

    /// S22: those that no written or overtaken batch stands behind.
    fn provable(&self, attempt: &Attempt, predecessors: &[Position]) -> Vec<Position> {
        let before = self.span.iter().rev().filter(|(p, _)| *p < attempt.position);
        let passed = before.filter(|(_, slot)| slot.is_passed()).map(|(p, _)| p).next();
        let provable = predecessors.iter().copied();
        provable.filter(|p| R::may_still_be_proved(passed.is_some_and(|last| *p < last))).collect()
    }

    fn predecessor_facts(&self, position: Position, attempt: &Attempt) -> Option<PredecessorFacts> {
        let batch = self.span.get(position)?.unsettled()?;
        let waiting = self
            .attempts
            .of(position)
            .any(|other| other.route == attempt.route && other.id < attempt.id);
        let doubtful = batch.tally.doubt_on(attempt.route).is_some_and(|id| id < attempt.id);
        Some(PredecessorFacts {
            behind_opener: match attempt.passage {
                Passage::Gate { opener } => opener < position,
                Passage::Pass(_) => false,
            },
            attempt_before_on_route: waiting || doubtful,
            not_refused: batch.standing::<R>() == Standing::InDoubt,
            behind_established: self.memory.established().is_some_and(|it| it < position),
            mark: batch.mark,
        })
    }

    /// S22: a 0 behind what is certainly not written means that the broker lost our state. What
    /// is in doubt is told so, and settled on.
    pub(super) fn overtake(&mut self, by: Position) {
        let before: Vec<_> =
            self.span.iter().map(|(position, _)| position).take_while(|p| *p < by).collect();
        let mut lost = false;
        for position in before {
            match self.span.get(position) {
                Some(Slot::Unsettled(batch)) => match self.standing_of(position, batch) {
                    Standing::InDoubt => self.tell_in_doubt(position),
                    Standing::Refused => {
                        lost = true;
                        self.pass_over(position);
                    }
                },
                Some(Slot::Vacated { .. }) => {
                    lost = true;
                    self.pass_over(position);
                }
                Some(Slot::Replacement(_) | Slot::Written { .. } | Slot::Overtaken) | None => {}
            }
        }
        if lost {
            self.notice(Notice::StateLost);
        }
    }

    /// Nothing of this slot is sent behind its successor.
    pub(super) fn pass_over(&mut self, position: Position) {
        let outcome = Outcome::NotDelivered(Proof::Overtaken);
        match self.span.replace(position, Slot::Overtaken) {
            Some(Slot::Unsettled(batch)) => {
                self.attempts.settle(position, SettledAs::NotWritten);
                self.tell(batch.told(), outcome);
            }
            Some(Slot::Vacated { kept, .. }) => {
                for mut batch in kept {
                    let records = batch.records.take(|_, _| true);
                    self.tell(records, outcome);
                }
            }
            Some(Slot::Replacement(_) | Slot::Written { .. } | Slot::Overtaken) | None => {}
        }
    }

    /// Th. 2: the first 0 of a newer epoch is the fence of what was given up before it.
    pub(super) fn raise_fence(&mut self, base: Option<Offset>) {
        self.mark_acknowledged();
        let Some(identity) = self.identity() else { return };
        let Some(offset) = base else { return };
        if !self.unfenced {
            return;
        }
        self.unfenced = false;
        let log = self.memory.log;
        let fenced = self.given_up.iter_mut().filter(|it| {
            it.log == log && it.fence.is_none() && it.doubt.identity.id == identity.id
        });
        fenced.for_each(|given_up| given_up.fence = Some(offset));
        self.notice(Notice::Fence { offset });
    }

    fn mark_acknowledged(&mut self) {
        match self.identity {
            Holding::Adopted(adopted) => {
                self.identity = Holding::Adopted(Adopted { acknowledged: true, ..adopted });
            }
            Holding::Nothing(_) | Holding::Asked(_) => {}
        }
    }

    /// S6: a 0 of this route, leader epoch and identity opens the gate.
    pub(super) fn open_gate(&mut self, now: Instant, attempt: &Attempt) {
        let facts = GateFacts {
            same_route: self.leader.route == Some(attempt.route) && !attempt.orphaned,
            same_leader_epoch: self.leader.epoch == attempt.leader_epoch,
            // Batches of older identities have left the span (S8).
            same_identity: self.span.get(attempt.position).is_some(),
            known: self.knows_us(now),
        };
        match self.gate {
            Gate::Closed(_) if R::opens_gate(facts) => {
                self.gate = Gate::Open { opener: attempt.position };
            }
            Gate::Closed(_) | Gate::Open { .. } => {}
        }
    }
}

/// Turns an `Unknown` that nobody has heard yet into what became of its records since. A part of a
/// batch stays `Unknown` only if it is of another batch.
pub(super) fn replace_unknown(untold: &mut Settled, records: &mut Vec<Told>, outcome: Outcome) {
    match untold.outcome {
        Outcome::Unknown(_) => {}
        Outcome::Delivered { .. } | Outcome::NotDelivered(_) | Outcome::Never { .. } => return,
    }
    let settled = |told: &Told| records.iter().any(|record| record.ticket == told.ticket);
    if !untold.records.iter().all(settled) {
        return;
    }
    untold.outcome = outcome;
    records.retain(|record| untold.records.iter().all(|told| told.ticket != record.ticket));
}
