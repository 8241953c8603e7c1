//! What a 0 settles: its batch, those before it (S22), the gate, the lane's memory.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::cmp::Ordering;

use crate::action::{Action, Notice, Outcome, Settled, Told};
use crate::event::PartitionResponse;
use crate::ids::Offset;
use crate::payload::Payload;
use crate::rules::{
    Bounds, GateFacts, OffsetFacts, PredecessorFacts, ProofFacts, Rules, SettledAs, Standing,
};
use crate::time::Instant;
use crate::verdict::Proof;

use super::attempt::{Attempt, Passage};
use super::batch::Retry;
use super::gate::Gate;
use super::memory::{Acknowledged, Reach};
use super::span::{Position, Slot};
use super::{Adopted, Holding, Lane};

impl<P: Payload, R: Rules> Lane<P, R> {
    /// Code 0 for a batch of the epoch in use.
    pub(super) fn acknowledged(
        &mut self,
        now: Instant,
        attempt: &Attempt,
        base: Option<Offset>,
        response: &PartitionResponse,
    ) {
        let undecided = self.undecided_contest(now, attempt, response);
        let Some(batch) = self.span.batch_mut(attempt.position) else { return };
        let (count, offered) = (batch.count(), batch.tally.offered);
        let max_timestamp = batch.max_timestamp();
        let proved = self.proved(now, attempt);
        if !self.agrees(attempt, base, count, proved.as_deref().unwrap_or_default()) {
            self.tell_in_doubt(attempt.position);
            return self.contradiction(base);
        }
        match proved {
            Some(proved) => self.prove(&proved, base),
            None => self.overtake(attempt.position),
        }
        if R::shows_timestamp_type(offered) {
            self.memory.see_timestamp_type(response.log_append_time);
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
        self.written(attempt.position, base);
        self.open_gate(now, attempt);
        self.begin_pass_anew();
        if let Some((target, reason)) = undecided {
            self.end_undecided_contest(now, target, reason);
        }
        self.after_settling();
    }

    /// 46 for a batch that may well be in the log: it is, but nobody knows where.
    pub(super) fn written_somewhere(&mut self, attempt: &Attempt) {
        self.overtake(attempt.position);
        self.mark_acknowledged();
        self.written(attempt.position, None);
        self.begin_pass_anew();
        self.after_settling();
    }

    /// S13: whether there is room for this batch, and for what its 0 proves, at this offset.
    pub(super) fn agrees(
        &self,
        attempt: &Attempt,
        base: Option<Offset>,
        count: u32,
        proved: &[Position],
    ) -> bool {
        let Some(base) = base else { return true };
        let known = self.bounds(attempt.position);
        let room_before = known.room_before.saturating_add(self.room_for(proved));
        let bounds = Bounds { room_before, ..known };
        attempt.log != self.memory.log || R::offsets_agree(OffsetFacts { bounds, base, count })
    }

    fn room_for(&self, positions: &[Position]) -> u64 {
        let slots = positions.iter().filter_map(|position| self.span.get(*position)?.unsettled());
        slots.map(|batch| u64::from(batch.count())).sum()
    }

    /// S13: the written batches around a position.
    pub(super) fn bounds(&self, position: Position) -> Bounds {
        let written = |(position, slot): (Position, &Slot<P>)| match slot {
            Slot::Written { base, count } => Some((position, *base, *count)),
            Slot::Unsettled(_) | Slot::Replacement(_) | Slot::Vacated { .. } | Slot::Overtaken => {
                None
            }
        };
        let (mut before, mut next_base, mut room_behind) = (self.memory.reach, None, 0);
        for (at, base, count) in self.span.iter().filter_map(written) {
            match at.cmp(&position) {
                Ordering::Less => before.extend(base, count),
                Ordering::Equal => {}
                Ordering::Greater => {
                    next_base = base;
                    if next_base.is_some() {
                        break;
                    }
                    room_behind += u64::from(count);
                }
            }
        }
        let Reach { end: previous_end, concluded: room_before } = before;
        Bounds { previous_end, next_base, room_before, room_behind }
    }

    /// The batch is in the log, at `base` or nobody said where.
    pub(super) fn written(&mut self, position: Position, base: Option<Offset>) {
        self.written_within(position, base, self.bounds(position));
    }

    /// S22, C1: these are in the log, in this order, before what stands at `base`.
    pub(super) fn prove(&mut self, proved: &[Position], base: Option<Offset>) {
        for (index, position) in proved.iter().enumerate() {
            let known = self.bounds(*position);
            let bounds = match base {
                Some(_) => {
                    let room_behind = self.room_for(&proved[index + 1..]);
                    Bounds { next_base: base, room_behind, ..known }
                }
                None => known,
            };
            self.written_within(*position, None, bounds);
        }
    }

    fn written_within(&mut self, position: Position, base: Option<Offset>, bounds: Bounds) {
        let count = self.span.batch_mut(position).map_or(0, |batch| batch.count());
        let Some(Slot::Unsettled(batch)) =
            self.span.replace(position, Slot::Written { base, count })
        else {
            return;
        };
        let settled = match base {
            Some(base) => SettledAs::Written { base },
            None => SettledAs::Concluded { bounds, count },
        };
        self.attempts.settle(position, settled);
        self.tell(batch.told(), Outcome::Delivered { base });
    }

    pub(super) fn after_settling(&mut self) {
        let reach = &mut self.memory.reach;
        self.span.trim(|base, count| reach.extend(base, count));
    }

    /// Records in doubt without a verdict are told so, at once.
    pub(super) fn tell_in_doubt(&mut self, position: Position) {
        let last = self.bounds(position).last_before();
        let Some(batch) = self.span.batch_mut(position) else { return };
        let newly = batch.tell(|_| true);
        let doubt = batch.doubt(last);
        self.tell(newly, Outcome::Unknown(doubt));
    }

    /// S22: a 0 proves its predecessors, if there are any; `None`: it tells that the broker lost our
    /// state.
    fn proved(&self, now: Instant, attempt: &Attempt) -> Option<Vec<Position>> {
        let predecessors = self.predecessors(attempt);
        let provable = self.provable(attempt, &predecessors);
        let vacated = self.span.vacated().filter(|vacated| *vacated < attempt.position);
        if predecessors.is_empty() && vacated.is_none() {
            return Some(Vec::new());
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
        proved.then_some(provable)
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

/// Takes back an `Unknown` that nobody has heard yet, if all of its records are settled: what became
/// of them is their verdict. A part of a batch stays `Unknown` only if it is of another batch.
pub(super) fn take_back_unknown(out: &mut VecDeque<Action>, records: &mut [Told]) {
    out.retain(|action| {
        let Action::Settled(Settled { records: untold, outcome: Outcome::Unknown(_) }) = action
        else {
            return true;
        };
        let is_untold =
            |told: &Told| untold.binary_search_by_key(&told.ticket, |it| it.ticket).is_ok();
        let settled = records.iter().filter(|told| is_untold(told)).count();
        if settled < untold.len() {
            return true;
        }
        let heard = records.iter_mut().filter(|told| is_untold(told));
        heard.for_each(|told| told.unknown = false);
        false
    });
}
