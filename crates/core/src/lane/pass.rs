//! Closing the gate, the pass, and what follows when a pass ends without a 0 (S6, S7, K, L4).

use crate::action::{Action, Notice};
use crate::config::OnDataLoss;
use crate::ids::{LeaderEpoch, RouteId};
use crate::payload::Payload;
use crate::rules::{AfterPass, LeaderChange, Loss, LossFacts, Mark, Rules, Stage, StopCause};
use crate::time::Instant;
use crate::verdict::NeverReason;

use super::Lane;
use super::attempt::Attempt;
use super::batch::{SequencedBatch, Wish};
use super::epoch::EpochEnd;
use super::gate::{Confirmation, Gate, Pass};
use super::span::{Position, Slot};

impl<P: Payload, R: Rules> Lane<P, R> {
    /// S6: everything unsettled is asked anew, one by one.
    pub(super) fn start_pass(&mut self, stage: Stage) {
        self.passes += 1;
        self.gate = Gate::Closed(Pass { stage, ..Pass::new(self.passes) });
        self.span.offered_mut().for_each(|batch| batch.mark = Mark::Unasked);
    }

    /// S6: the gate closes whenever an attempt ends otherwise than 0.
    pub(super) fn close_gate_after(&mut self, attempt: &Attempt, appended: bool) {
        match self.gate {
            Gate::Open { .. } if R::closes_gate(appended, attempt.orphaned) => {
                self.start_pass(Stage::First);
            }
            Gate::Open { .. } | Gate::Closed(_) => {}
        }
    }

    /// S6, S20: the gate closes when *known* ends.
    pub(super) fn close_gate_when_forgotten(&mut self, now: Instant) {
        self.memory.check_established::<R>(self.moment(now), &self.config);
        match self.gate {
            Gate::Open { .. } if !self.knows_us(now) => {
                self.start_pass(Stage::First);
            }
            Gate::Open { .. } | Gate::Closed(_) => {}
        }
    }

    /// S7: attempts made before are orphaned at once, and a pass begins.
    pub(super) fn leader_changed(
        &mut self,
        now: Instant,
        route: Option<RouteId>,
        epoch: LeaderEpoch,
    ) {
        let change = self.leader.change(route, epoch);
        if change == LeaderChange::None {
            return;
        }
        // Nobody can be asked at once in an epoch that has no leader, or whose leader is out of reach.
        let at_once = route.is_some() && R::retries_at_once(self.leader.highest, epoch);
        self.leader.route = route;
        self.leader.epoch = epoch;
        if at_once {
            self.leader.highest = epoch;
        }
        self.reschedule(now, at_once);
        if R::orphans(change) {
            self.attempts.orphan_all();
        }
        self.contest_anew(at_once);
        self.start_pass(Stage::First);
    }

    /// L3: one immediate retry for a newer leader epoch, at that leader: if another one follows it, it
    /// is as if it had not been. Else what was under way waits.
    fn reschedule(&mut self, now: Instant, at_once: bool) {
        let positions: alloc::vec::Vec<Position> =
            self.span.offered().map(|(position, _)| position).collect();
        for position in positions {
            let under_way = self.attempts.open_of(position) > 0;
            let Some(batch) = self.span.batch_mut(position) else { continue };
            if let Some(end) = batch.spared.take() {
                batch.retry.not_before = end;
            }
            let retry = batch.retry;
            let wait = if under_way { self.back_off(retry, now, position.0) } else { retry };
            let Some(batch) = self.span.batch_mut(position) else { continue };
            match at_once {
                true => {
                    batch.spared = Some(wait.not_before).filter(|end| *end > now);
                    batch.retry.not_before = now;
                }
                false => batch.retry = wait,
            }
        }
    }

    /// K5, L4: metadata newer than the question names the same leader.
    pub(super) fn leader_confirmed(&mut self, now: Instant, epoch: LeaderEpoch) {
        let Gate::Closed(pass) = self.gate else { return };
        if epoch != self.leader.epoch {
            return;
        }
        match pass.confirmation {
            Confirmation::NotNeeded => {}
            Confirmation::BeforeSecondPass => self.start_pass(Stage::Second),
            Confirmation::BeforeAbandon => self.leave_stuck(now),
        }
    }

    /// L4: a stuck head that no later 0 proved is contested, else abandoned, else asked again.
    fn leave_stuck(&mut self, now: Instant) {
        let stuck = self.asked_batches().find(|(_, batch)| match batch.mark {
            Mark::Refused { .. } => !batch.wish.is_contested(),
            Mark::Unasked | Mark::OutOfOrder | Mark::UnknownProducer => false,
        });
        let stuck = stuck.map(|(position, _)| position).filter(|p| self.may_contest(now, *p));
        if let Some(batch) = stuck.and_then(|position| self.span.batch_mut(position)) {
            batch.wish = Wish::Contest;
        } else if self.may_abandon_stuck(now) {
            return self.abandon(now, NeverReason::Refused);
        } else {
            self.contest_anew(false);
        }
        self.start_pass(Stage::First);
    }

    /// C4: at another leader, or after all was refused, contests start over; L3: as any other attempt.
    fn contest_anew(&mut self, at_once: bool) {
        for batch in self.span.unsettled_mut() {
            let Wish::Contested { not_before } = batch.wish else { continue };
            batch.wish = Wish::Contest;
            if !at_once {
                batch.retry.not_before = batch.retry.not_before.max(not_before);
            }
        }
    }

    /// K5, L4: what a pass asked in vain is out of date once a 0 came, or nothing is unsettled.
    pub(super) fn begin_pass_anew(&mut self) {
        match self.gate {
            Gate::Closed(pass) if pass.is_advanced() => self.start_pass(Stage::First),
            Gate::Closed(_) | Gate::Open { .. } => {}
        }
    }

    /// L4: nobody waits for a verdict, and somebody waits behind or the code came often enough.
    fn may_abandon_stuck(&self, now: Instant) -> bool {
        let spared_from = self.spared_from(now);
        let given_up = |position| spared_from.is_none_or(|spared| position < spared);
        let mut in_doubt = self.in_doubt().filter(|(position, _)| given_up(*position)).peekable();
        let told = |(position, batch): (Position, &SequencedBatch<P>)| {
            let replacement = self.span.replacement().filter(|(place, _)| *place == position);
            replacement.map_or_else(|| batch.all_told(), |(_, it)| self.is_reported(it))
        };
        let all_told = in_doubt.peek().is_some() && in_doubt.all(told);
        let clean = self.span.offered().count() > self.in_doubt().count();
        let waits_behind = clean || !self.intake.is_empty() || self.span.vacated().is_some();
        let refusals = self.span.offered().filter_map(|(_, batch)| batch.permanent.as_ref());
        let in_a_row = refusals.map(|refusal| refusal.in_a_row).max().unwrap_or(0);
        R::abandons_stuck(all_told, waits_behind, in_a_row)
    }

    /// L4, V3: an abandon gives up nothing from here on; what is in doubt there goes on. What a
    /// replacement in doubt carries does not.
    fn spared_from(&self, now: Instant) -> Option<Position> {
        let lowest = self.lowest_refused().filter(|_| self.has_known_us(now))?;
        let replacement = self.span.replacement();
        replacement.is_none_or(|(_, it)| lowest < it.target).then_some(lowest)
    }

    /// Decides what follows when everything unsettled was asked in this pass (K3..K6, L4).
    pub(super) fn finish_pass(&mut self, now: Instant) {
        let Gate::Closed(pass) = self.gate else { return };
        let idle = self.attempts.open() == 0
            && self.leader.route.is_some()
            && pass.confirmation == Confirmation::NotNeeded;
        if !idle || !self.asked_in_vain() {
            return;
        }
        if self.is_beyond_memory(now) {
            return self.abandon(now, NeverReason::Expired);
        }
        let refused = self.asked().any(|mark| matches!(mark, Mark::Refused { .. }));
        let confirmation = match R::after_pass(pass.stage, refused) {
            AfterPass::Confirm => Confirmation::BeforeSecondPass,
            AfterPass::ConfirmStuck => Confirmation::BeforeAbandon,
            AfterPass::StateGone => return self.state_gone(now),
        };
        self.gate = Gate::Closed(Pass { confirmation, ..pass });
        self.out.push_back(Action::NeedLeader);
    }

    /// The batches of a pass: all that is unsettled before a slot that is given up, or will be,
    /// and the replacement.
    fn asked_batches(&self) -> impl Iterator<Item = (Position, &SequencedBatch<P>)> {
        let reduced = self.span.unsettled().find(|(_, batch)| batch.is_reduced());
        let end = reduced.map(|(position, _)| position).into_iter().chain(self.span.vacated());
        let end = end.min().unwrap_or_else(|| self.span.end());
        let replacement = self.span.replacement().map(|(position, _)| position);
        let asked = self.span.offered();
        asked.filter(move |(it, _)| *it < end || Some(*it) == replacement)
    }

    /// What they were answered.
    fn asked(&self) -> impl Iterator<Item = Mark> {
        self.asked_batches().map(|(_, batch)| batch.mark)
    }

    fn asked_in_vain(&self) -> bool {
        self.asked().next().is_some() && self.asked().all(R::pass_goes_on)
    }

    /// K6: the broker's state is gone.
    fn state_gone(&mut self, now: Instant) {
        // K5: what stands behind a vacated slot is not later, and a replacement stands at its target.
        let place = |position| match self.span.replacement() {
            Some((replacement, it)) if replacement == position => it.target,
            Some(_) | None => position,
        };
        let last_asked = self.asked_batches().map(|(position, _)| place(position)).max();
        let later_written = self.span.iter().any(|(position, slot)| {
            Some(position) > last_asked && matches!(slot, Slot::Written { .. })
        });
        let facts = LossFacts {
            last_acknowledged: self.memory.last_acknowledged(),
            log_start: self.memory.log_start(),
            later_written,
            known: self.knows_us(now),
        };
        let loss = R::loss(facts);
        self.end_epoch(now, EpochEnd::Forgotten(NeverReason::StateLost));
        if !later_written {
            self.memory.forget_log();
        }
        match loss {
            Loss::Harmless => {}
            Loss::OfState => self.notice(Notice::StateLost),
            Loss::OfData => self.data_loss(facts),
        }
    }

    fn data_loss(&mut self, facts: LossFacts) {
        let LossFacts { last_acknowledged, log_start, .. } = facts;
        self.notice(Notice::DataLoss { last_acknowledged, log_start });
        match self.config.on_data_loss {
            OnDataLoss::Continue => {}
            OnDataLoss::Stop => {
                self.notice(Notice::Stopped);
                self.stop(StopCause::DataLoss);
            }
        }
    }

    /// K7: somebody else has our id, or the broker refuses local epochs.
    pub(super) fn conflict(&mut self, now: Instant) {
        self.conflicts += 1;
        if R::conflict_stops(self.conflicts) {
            self.notice(Notice::IdentityConflict);
            self.stop(StopCause::Conflict);
        } else {
            self.end_epoch(now, EpochEnd::Conflict);
        }
    }
}
