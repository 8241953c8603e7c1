//! The end of an epoch on this partition, whatever ends it (S8, S10), and the end of the lane.

use alloc::vec::Vec;

use crate::action::{Notice, Outcome};
use crate::payload::Payload;
use crate::rules::{
    Bounds, GivenUpEnd, NextIdentity, Rules, SettledAs, Stage, Standing, StopCause,
};
use crate::time::Instant;
use crate::verdict::{NeverReason, Proof};

use super::batch::{Entry, Past, SealedBatch, SequencedBatch, index_of};
use super::given_up::{GivenUp, Rival};
use super::span::{Position, Slot};
use super::{Adopted, Holding, Lane, Life};

/// What ends an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EpochEnd {
    /// V2: a slot was vacated, and everything before it is settled.
    Vacated,
    /// C2: a replacement took this slot. What it contested is not written.
    Replaced { target: Position },
    /// What is in doubt is given up; V3 holds where the broker knows us.
    Abandoned(NeverReason),
    /// K6: what is in doubt is given up, and the broker does not know us.
    Forgotten(NeverReason),
    /// K7: a fresh producer id follows.
    Conflict,
    /// L8: the lane stops; the broker cannot be relied upon.
    Stopped,
    /// D5: the lane is closed.
    Closed,
}

impl EpochEnd {
    /// Why what is in doubt is never resolved.
    fn reason(self) -> NeverReason {
        match self {
            Self::Vacated | Self::Replaced { .. } => NeverReason::Expired,
            Self::Conflict | Self::Stopped => NeverReason::StateLost,
            Self::Closed => NeverReason::Closed,
            Self::Abandoned(reason) | Self::Forgotten(reason) => reason,
        }
    }

    /// Whether the broker's memory of the epoch counts for V3.
    fn allows_v3(self) -> bool {
        match self {
            Self::Vacated | Self::Abandoned(_) | Self::Closed => true,
            Self::Replaced { .. } | Self::Forgotten(_) | Self::Conflict | Self::Stopped => false,
        }
    }

    /// C4: whether other content took the slot of this batch.
    fn took(self, position: Position) -> bool {
        match self {
            Self::Replaced { target } => position >= target,
            Self::Vacated
            | Self::Abandoned(_)
            | Self::Forgotten(_)
            | Self::Conflict
            | Self::Stopped
            | Self::Closed => false,
        }
    }
}

impl<P: Payload, R: Rules> Lane<P, R> {
    /// L4, L5, S18, S20: the next epoch, without resending what is in doubt.
    pub(super) fn abandon(&mut self, now: Instant, reason: NeverReason) {
        self.end_epoch(now, EpochEnd::Abandoned(reason));
    }

    /// S20: what would have to be resent, and may not be.
    pub(super) fn forget_unresendable(&mut self, now: Instant) {
        if self.is_beyond_memory(now) {
            self.abandon(now, NeverReason::Expired);
        }
    }

    /// L5, or the caller's wish: what is in doubt is given up, if there is anything.
    pub(super) fn give_up_doubt(&mut self, now: Instant, reason: NeverReason) {
        if self.in_doubt().next().is_some() {
            self.abandon(now, reason);
        }
    }

    /// S18: another log under the same name.
    pub(super) fn topic_recreated(&mut self, now: Instant) {
        self.lift_stop();
        if !R::resend_to_new_topic() && !self.span.is_empty() {
            self.end_epoch(now, EpochEnd::Forgotten(NeverReason::TopicRecreated));
        } else if let Holding::Adopted(adopted) = self.identity
            && adopted.next != R::first_sequence()
        {
            self.renew(false);
        }
        self.memory.forget_topic();
        self.unfenced = false;
        if !R::resend_to_new_topic() {
            self.start_pass(Stage::First);
        }
    }

    /// S13, S18: what the answer contradicted is gone; what was in doubt then went with its log.
    fn lift_stop(&mut self) {
        let Life::Stopped { cause, close } = self.life else { return };
        if !R::recreation_lifts_stop(cause) {
            return;
        }
        self.life = close.map_or(Life::Running, |deadline| Life::Closing { deadline });
        let gone = self.memory.log;
        for given_up in self.given_up.iter_mut().filter(|it| it.log == gone) {
            if given_up.reason == NeverReason::StateLost {
                given_up.reason = NeverReason::TopicRecreated;
            }
        }
    }

    /// S8: each batch of the epoch is written, not written, or will never be resent.
    pub(super) fn end_epoch(&mut self, now: Instant, end: EpochEnd) {
        let known = end.allows_v3() && self.has_known_us(now);
        let lowest = self.lowest_refused();
        let shared = self.part_from_replacement(lowest, known, end);
        let bounds: Vec<_> = self.in_doubt().map(|(p, _)| (p, self.bounds(p))).collect();
        let mut back = Vec::new();
        let mut left_in_doubt = shared;
        for (position, slot) in self.span.drain() {
            match slot {
                Slot::Vacated { kept, .. } => back.extend(kept),
                Slot::Written { base, count } => self.memory.reach.extend(base, count),
                Slot::Overtaken | Slot::Replacement(_) => {}
                Slot::Unsettled(batch) => {
                    let behind = lowest.is_some_and(|lowest| lowest < position);
                    let taken = end.took(position).then_some(Past::SlotTaken);
                    match taken.or_else(|| not_written::<R>(batch.standing::<R>(), behind, known)) {
                        Some(past) => back.push(self.thaw(position, batch, past)),
                        None => {
                            left_in_doubt = true;
                            let bounds = bounds.iter().find(|(p, _)| *p == position);
                            let bounds = bounds.map_or_else(Bounds::default, |(_, it)| *it);
                            self.give_up(position, batch, end.reason(), bounds);
                        }
                    }
                }
            }
        }
        self.span.end_contests();
        self.intake.put_back(back);
        self.unfenced |= left_in_doubt;
        self.follow_epoch(now, end);
    }

    /// V3: the lowest slot that nothing will fill.
    pub(super) fn lowest_refused(&self) -> Option<Position> {
        let refused = |slot: &Slot<P>| match slot {
            Slot::Vacated { .. } => true,
            Slot::Unsettled(batch) => batch.standing::<R>() == Standing::Refused,
            Slot::Replacement(_) | Slot::Written { .. } | Slot::Overtaken => false,
        };
        self.span.iter().find(|(_, slot)| refused(slot)).map(|(p, _)| p)
    }

    /// S8, S10: what comes after an epoch.
    fn follow_epoch(&mut self, now: Instant, end: EpochEnd) {
        match end {
            EpochEnd::Stopped | EpochEnd::Closed => {}
            EpochEnd::Conflict => self.renew_id(),
            EpochEnd::Vacated
            | EpochEnd::Replaced { .. }
            | EpochEnd::Abandoned(_)
            | EpochEnd::Forgotten(_) => {
                let unfenced = self.unfenced;
                self.renew(unfenced);
            }
        }
        self.renewal = self.back_off(self.renewal, now, self.span.end().0);
        self.start_pass(Stage::First);
    }

    /// C: an epoch ends while a replacement is unsettled. If it is in doubt, then so are the
    /// records that it shares, whatever becomes of the batches that it contested. Tells whether
    /// something was left in doubt.
    fn part_from_replacement(
        &mut self,
        lowest_refused: Option<Position>,
        known: bool,
        end: EpochEnd,
    ) -> bool {
        let Some((position, replacement)) = self.span.replacement() else { return false };
        let target = replacement.target;
        let behind = lowest_refused.is_some_and(|lowest| lowest < target);
        if let Some(past) = not_written::<R>(replacement.batch.standing::<R>(), behind, known) {
            self.dissolve(past);
            return false;
        }
        let entries = replacement.batch.entries.clone();
        let bounds = self.bounds(target);
        let contested: Vec<Position> =
            self.span.unsettled().map(|(p, _)| p).filter(|p| *p >= target).collect();
        for contested in contested {
            let behind = lowest_refused.is_some_and(|lowest| lowest < contested);
            let batch = self.span.get(contested).and_then(Slot::unsettled);
            let standing = batch.map(SequencedBatch::standing::<R>);
            match standing.and_then(|standing| not_written::<R>(standing, behind, known)) {
                Some(_) => self.leave_to_replacement(contested, position, &entries),
                None => self.give_up_shared(contested, position, &entries, end.reason()),
            }
        }
        // Its position stays taken: it is the name of what was given up.
        if let Some(Slot::Replacement(replacement)) = self.span.replace(position, Slot::Overtaken) {
            self.give_up(position, replacement.batch, end.reason(), bounds);
        }
        true
    }

    /// A contested batch that is not written itself: only the replacement can have its records in
    /// the log, and speaks for them from now on.
    fn leave_to_replacement(&mut self, position: Position, rival: Position, entries: &[Entry]) {
        let Some(batch) = self.span.batch_mut(position) else { return };
        let records = batch.hand_over(|entry| index_of(entries, entry.ticket).is_some());
        if let Some(replacement) = self.span.batch_mut(rival) {
            replacement.speak_for(&records);
        }
    }

    /// The records of a contested batch that are in the replacement as well: they end with both.
    fn give_up_shared(
        &mut self,
        position: Position,
        rival: Position,
        entries: &[Entry],
        reason: NeverReason,
    ) {
        let bounds = self.bounds(position);
        let last = bounds.last_before();
        let (log, Some(batch)) = (self.memory.log, self.span.batch_mut(position)) else { return };
        let in_rival = |ticket| index_of(entries, ticket);
        let newly = batch.tell(|entry| in_rival(entry.ticket).is_some());
        let doubt = batch.doubt(last);
        let records = batch.hand_over(|entry| in_rival(entry.ticket).is_some());
        if records.is_empty() {
            return;
        }
        let indexes = records.iter().filter_map(|told| in_rival(told.ticket));
        let indexes = indexes.map(|index| index as u32).collect();
        let shared = GivenUp::new(position, &*batch, last, reason, bounds, log);
        let rival = Rival::Waiting { position: rival, indexes };
        self.tell(newly, Outcome::Unknown(doubt));
        self.given_up.push(GivenUp { records, rival, contested: true, ..shared });
    }

    /// What is certainly not written may be offered again; who was told `Unknown` hears now.
    fn thaw(&mut self, position: Position, batch: SequencedBatch<P>, past: Past) -> SealedBatch<P> {
        self.attempts.settle(position, SettledAs::NotWritten);
        let (sealed, told, _) = batch.thaw(past, |_, _| false);
        self.tell_past(past, told);
        sealed
    }

    fn give_up(
        &mut self,
        position: Position,
        mut batch: SequencedBatch<P>,
        reason: NeverReason,
        bounds: Bounds,
    ) {
        let contested = self.span.is_contested(batch.first, batch.count());
        let last = bounds.last_before();
        let newly = batch.tell(|_| true);
        let doubt = batch.doubt(last);
        self.tell(newly, Outcome::Unknown(doubt));
        let log = self.memory.log;
        let given_up = GivenUp::new(position, &batch, last, reason, bounds, log);
        self.given_up.push(GivenUp { contested, ..given_up });
    }

    /// S10: the next epoch, or a fresh producer id.
    fn renew(&mut self, left_in_doubt: bool) {
        let Holding::Adopted(adopted) = self.identity else { return };
        match R::next_identity(adopted.identity.epoch, left_in_doubt) {
            NextIdentity::Epoch(epoch) => {
                let identity = crate::ids::Identity { epoch, ..adopted.identity };
                self.identity = Holding::Adopted(Adopted::new::<R>(identity));
                self.memory.new_identity();
            }
            NextIdentity::Fresh => self.renew_id(),
        }
    }

    /// S10, K7: a fresh producer id; nothing fences what was left in doubt.
    fn renew_id(&mut self) {
        self.identity = Holding::Nothing(self.identity().map(|identity| identity.id));
        self.memory.new_identity();
        if self.unfenced {
            self.unfenced = false;
            self.notice(Notice::Unfenced);
        }
    }

    /// S10: after a 0 at 32767 a fresh id at once.
    pub(super) fn leave_used_up_epoch(&mut self) {
        let Holding::Adopted(adopted) = self.identity else { return };
        let used_up = R::epoch_is_used_up(adopted.identity.epoch, adopted.acknowledged);
        if used_up && self.span.unsettled().next().is_none() && self.span.vacated().is_none() {
            self.span.drain();
            self.span.end_contests();
            self.renew_id();
            self.start_pass(Stage::First);
        }
    }

    /// `Never` follows once every attempt is answered or its connection over.
    pub(super) fn end_given_up(&mut self) {
        let mut index = 0;
        while let Some(given_up) = self.given_up.get(index) {
            let (waiting, standing) = self.doubt_left(given_up);
            match R::given_up_ends(waiting, standing) {
                None => index += 1,
                Some(end) => {
                    let given_up = self.given_up.remove(index);
                    self.resolve(given_up, end);
                }
            }
        }
    }

    /// How many attempts may still be answered, and what is known till then; a replacement that
    /// carries the same records counts.
    fn doubt_left(&self, given_up: &GivenUp) -> (u32, Standing) {
        let own = self.attempts.of(given_up.position).count();
        let (rivals, rival) = match &given_up.rival {
            Rival::None => (0, Standing::Refused),
            Rival::Doubtful => (0, Standing::InDoubt),
            Rival::Waiting { position, .. } => {
                let rival = self.given_up.iter().find(|it| it.position == *position);
                let standing = rival.map_or(Standing::InDoubt, GivenUp::standing::<R>);
                (self.attempts.of(*position).count(), standing)
            }
        };
        let standing = match (given_up.standing::<R>(), rival) {
            (Standing::Refused, Standing::Refused) => Standing::Refused,
            (Standing::InDoubt, Standing::Refused | Standing::InDoubt)
            | (Standing::Refused, Standing::InDoubt) => Standing::InDoubt,
        };
        ((own + rivals) as u32, standing)
    }

    fn resolve(&mut self, given_up: GivenUp, end: GivenUpEnd) {
        let outcome = match end {
            GivenUpEnd::NotDelivered => Outcome::NotDelivered(Proof::Refused),
            GivenUpEnd::Never => Outcome::Never { reason: given_up.reason, facts: given_up.doubt },
        };
        let standing = given_up.standing::<R>();
        self.given_up.iter_mut().for_each(|it| it.rival_ends(given_up.position, standing));
        if !self.given_up.iter().any(|it| it.position == given_up.position) {
            self.attempts.settle(given_up.position, SettledAs::Forgotten);
        }
        self.tell(given_up.records, outcome);
    }

    /// L8: the lane ends truthfully; what is learned of open attempts still counts.
    pub(super) fn stop(&mut self, cause: StopCause) {
        self.end_epoch(self.now, EpochEnd::Stopped);
        for (past, told) in self.intake.take_all() {
            self.tell_past(past, told);
        }
        self.life = match self.life {
            Life::Running => Life::Stopped { cause, close: None },
            Life::Closing { deadline } => Life::Stopped { cause, close: Some(deadline) },
            life @ (Life::Closed | Life::Stopped { .. }) => life,
        };
    }

    /// D5: at its deadline a closing lane tells everything.
    pub(super) fn close_if_due(&mut self, now: Instant) {
        let due = match self.life {
            Life::Closing { deadline } | Life::Stopped { close: Some(deadline), .. } => {
                R::expired(now, deadline)
            }
            Life::Running | Life::Closed | Life::Stopped { close: None, .. } => false,
        };
        if !due {
            return;
        }
        self.end_epoch(now, EpochEnd::Closed);
        for (past, told) in self.intake.take_all() {
            self.tell_past(past, told);
        }
        for given_up in core::mem::take(&mut self.given_up) {
            self.resolve(given_up, GivenUpEnd::Never);
        }
        self.attempts.forget();
        self.life = Life::Closed;
        self.expiry = Instant::NEVER;
    }
}

/// S8, V3: why nothing of a batch is in the log when its epoch ends, if that is known. `behind`: a
/// slot before it will never be filled.
fn not_written<R: Rules>(standing: Standing, behind: bool, known: bool) -> Option<Past> {
    match standing {
        Standing::Refused => Some(Past::Refused),
        Standing::InDoubt => R::unreachable(behind, known).then_some(Past::Unreachable),
    }
}
