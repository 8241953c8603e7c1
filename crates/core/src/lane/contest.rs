//! Contesting a slot (C): a batch in doubt is not resent; other content is offered at its first
//! sequence, and the answer tells whether the batch is in the log.

use alloc::vec::Vec;

use crate::ids::{Sequence, Ticket};
use crate::payload::{Frozen, Payload};
use crate::rules::{
    AfterReplacement, Class, CutFacts, Mark, RevokeFacts, Rules, SettledAs, Standing,
};
use crate::time::Instant;

use super::Lane;
use super::attempt::Attempt;
use super::batch::{Entry, Heard, Past, Records, Retry, SealedBatch, SequencedBatch, Wish};
use super::gate::Gate;
use super::span::{Contest, Position, Replacement, Slot};

/// More records than any legal cut needs behind those that are kept.
const ENOUGH: usize = 64;

impl<P: Payload, R: Rules> Lane<P, R> {
    /// C: the batch of this record is contested where it would be resent.
    pub(super) fn revoke(&mut self, ticket: Ticket, now: Instant) {
        let holder = self.span.unsettled_mut().find(|batch| batch.find(ticket).is_some());
        if let Some(batch) = holder
            && batch.wish == Wish::Settle
        {
            batch.wish = Wish::Contest;
        }
        self.cancel(ticket, now);
    }

    /// C1, C2: whether a replacement goes in the place of this batch, whose turn it is.
    pub(super) fn is_contested_next(&self, now: Instant, position: Position) -> bool {
        let Some(batch) = self.span.get(position).and_then(Slot::unsettled) else { return false };
        batch.wish == Wish::Contest && self.may_contest(now, position)
    }

    /// C1, and some cut is legal by its count.
    pub(super) fn may_contest(&self, now: Instant, position: Position) -> bool {
        let Some(batch) = self.span.get(position).and_then(Slot::unsettled) else { return false };
        self.span.replacement().is_none()
            && batch.standing::<R>() == Standing::InDoubt
            && R::may_revoke(&self.revoke_facts(now, position, batch))
            && self.cuts(now, position).is_some_and(|cuts| cuts.any::<R>())
    }

    fn revoke_facts(
        &self,
        now: Instant,
        position: Position,
        batch: &SequencedBatch<P>,
    ) -> RevokeFacts {
        let mut before = self.span.unsettled().take_while(|(before, _)| *before < position);
        RevokeFacts {
            resendable: self.remembers_doubt(now),
            written_behind: self.is_passed(position),
            predecessors_passed: before.all(|(_, batch)| {
                batch.mark == Mark::OutOfOrder && batch.standing::<R>() == Standing::InDoubt
            }),
            gate_opened_before: match self.gate {
                Gate::Open { opener } => opener < position && self.knows_us(now),
                Gate::Closed(_) => false,
            },
            acknowledged: self.memory.last_acknowledged().is_some(),
            first_of_epoch: batch.first == R::first_sequence(),
        }
    }

    /// A 0 passed this position.
    pub(super) fn is_passed(&self, position: Position) -> bool {
        self.span.iter().any(|(behind, slot)| behind > position && slot.is_passed())
    }

    // ---- C2, C3: the content ---------------------------------------------------------------------

    /// The batches that a replacement at `target` contests and takes records from: none behind a
    /// vacated slot, whose records stand before those.
    fn contested(&self, target: Position) -> impl Iterator<Item = (Position, &SequencedBatch<P>)> {
        let end = self.span.vacated().unwrap_or_else(|| self.span.end());
        self.span.unsettled().filter(move |(position, _)| (target..end).contains(position))
    }

    fn goes_along(entry: &Entry) -> bool {
        R::goes_into_replacement(!entry.is_untold())
    }

    /// The records that a replacement at `target` keeps.
    fn kept(&self, target: Position) -> impl Iterator<Item = Ticket> {
        let entries = self.contested(target).flat_map(|(_, batch)| &batch.entries);
        entries.filter(|entry| Self::goes_along(entry)).map(|entry| entry.ticket)
    }

    /// The newer ones that it may take along.
    fn newer(&self, now: Instant) -> impl Iterator<Item = Ticket> {
        let ready = self.span.vacated().is_none().then(|| self.intake.ready_tickets(now));
        ready.into_iter().flatten().take(ENOUGH)
    }

    /// C2: which sizes are legal.
    fn cuts(&self, now: Instant, target: Position) -> Option<Cuts> {
        let batch = self.span.get(target).and_then(Slot::unsettled)?;
        let kept = self.kept(target).count();
        Some(Cuts {
            kept,
            most: kept + self.newer(now).count(),
            first: batch.first,
            contested_count: batch.count(),
            firsts: self.firsts_behind(target),
            other_contents: self.other_contents(now, target, batch.first),
        })
    }

    /// S4: sizes of the contents at this place that could not be offered again.
    fn other_contents(&self, now: Instant, target: Position, first: Sequence) -> Vec<u32> {
        let here = |contest: &&Contest| contest.first == first;
        let mut contests = self.span.contests().iter().filter(here).peekable();
        if contests.peek().is_none() {
            return Vec::new();
        }
        let tickets: Vec<Ticket> = self.kept(target).chain(self.newer(now)).collect();
        let left = |contest: &Contest| tickets.partition_point(|it| *it <= contest.last);
        let other = contests.filter(|contest| left(contest) != contest.count as usize);
        other.map(|contest| contest.count).collect()
    }

    /// C2: where the batches behind a position began, whatever became of them.
    fn firsts_behind(&self, target: Position) -> Vec<Sequence> {
        let behind = self.span.iter().filter(|(position, _)| *position > target);
        behind
            .filter_map(|(_, slot)| match slot {
                Slot::Unsettled(batch) => Some(batch.first),
                Slot::Vacated { first, .. } => Some(*first),
                Slot::Replacement(_) | Slot::Written { .. } | Slot::Overtaken => None,
            })
            .collect()
    }

    /// C3: the records of a replacement that fits. The batches that it contests stay as they are.
    fn compose(&self, now: Instant, target: Position, limit: usize) -> Option<Records<P>> {
        let cuts = self.cuts(now, target)?;
        let mut records = Records::empty();
        for (_, batch) in self.contested(target) {
            records.join(batch.copy(Self::goes_along));
        }
        if let Some(count) = cuts.enough::<R>() {
            let mut whole = records.clone();
            whole.join(self.intake.copy_ready(now, count - cuts.kept));
            if whole.bytes() <= limit {
                return Some(whole);
            }
        }
        let count = cuts.less::<R>(fitting(&records, limit))?;
        records.split_off(count as u32);
        Some(records)
    }

    /// How large a replacement may become: smaller than what was refused as too large.
    fn largest_replacement(&self, target: Position, max: usize) -> usize {
        let batch = self.span.get(target).and_then(Slot::unsettled);
        let refused = batch.filter(|batch| {
            let code = batch.permanent.as_ref().map(|refusal| R::class(refusal.code));
            code == Some(Class::TooLarge)
        });
        let half = refused.map(|batch| batch.frozen.bytes() / 2);
        self.intake.limit(&self.config).min(max).min(half.unwrap_or(usize::MAX))
    }

    /// Puts a replacement in the place of this batch, if there is content for it.
    pub(super) fn replace(
        &mut self,
        now: Instant,
        target: Position,
        max: usize,
    ) -> Option<Position> {
        let limit = self.largest_replacement(target, max);
        let records = self.compose(now, target, limit)?;
        let batch = self.span.batch_mut(target)?;
        // L3: the wait that a newer leader spared the batch is spared the replacement.
        batch.spared = None;
        let (identity, first, failures) = (batch.identity, batch.first, batch.retry.failures);
        let newer = records.entries.iter().filter(|entry| entry.is_untold()).count();
        self.intake.drop_ready(newer);
        let sealed = SealedBatch {
            records,
            past: Past::NeverOffered,
            retry: Retry { failures, ..Retry::AT_ONCE },
        };
        Some(self.span.contest(sealed.sequence(identity, first, now), target))
    }

    /// L9: the earliest deadline of a live record in the replacement.
    pub(super) fn replacement_expiry(&self, replacement: &Replacement<P>) -> Instant {
        let earliest = self.live_kept(replacement).map(|entry| entry.deadline).min();
        earliest.unwrap_or(Instant::NEVER).min(replacement.batch.expiry())
    }

    /// L5: whether every record in it was told `Unknown`, by whichever batch speaks for it.
    pub(super) fn is_reported(&self, replacement: &Replacement<P>) -> bool {
        replacement.batch.all_told() && self.live_kept(replacement).next().is_none()
    }

    /// What it shares with those that it contests, and has no verdict yet.
    fn live_kept<'a>(&'a self, replacement: &'a Replacement<P>) -> impl Iterator<Item = &'a Entry> {
        let kept = self.contested(replacement.target).flat_map(|(_, batch)| &batch.entries);
        kept.filter(|entry| entry.is_untold() && replacement.batch.find(entry.ticket).is_some())
    }

    // ---- C4: what becomes of it ------------------------------------------------------------------

    pub(super) fn is_replacement(&self, position: Position) -> bool {
        self.span.replacement().is_some_and(|(replacement, _)| replacement == position)
    }

    /// The replacement that carries records of this batch, if it is in doubt itself.
    pub(super) fn doubtful_rival(&self, position: Position) -> Option<&Replacement<P>> {
        let (_, replacement) = self.span.replacement()?;
        let doubtful = replacement.batch.standing::<R>() == Standing::InDoubt;
        (doubtful && position >= replacement.target).then_some(replacement)
    }

    /// What is known of a batch together with a replacement of it.
    pub(super) fn standing_of(&self, position: Position, batch: &SequencedBatch<P>) -> Standing {
        match self.doubtful_rival(position) {
            Some(_) => Standing::InDoubt,
            None => batch.standing::<R>(),
        }
    }

    /// C4: a definite code for the replacement.
    pub(super) fn replacement_refused(&mut self, attempt: &Attempt, class: Class) {
        let Some((position, replacement)) = self.span.replacement() else { return };
        let Replacement { batch, target } = replacement;
        let (target, permanent) = (*target, batch.permanent.is_some());
        let not_before = batch.retry.not_before;
        if attempt.position != position {
            return;
        }
        match R::after_replacement(class, permanent) {
            AfterReplacement::AskAgain => {}
            AfterReplacement::AskContested => {
                if let Some(batch) = self.span.batch_mut(target) {
                    batch.wish = Wish::Contested { not_before };
                }
            }
        }
    }

    /// C4: a replacement that is not written, and will not be offered again, gives back what it
    /// took along.
    pub(super) fn end_replacement(&mut self) {
        let Some((position, replacement)) = self.span.replacement() else { return };
        let Replacement { batch, target } = replacement;
        let contested = self.span.get(*target).and_then(Slot::unsettled);
        let open = self.attempts.open_of(position);
        if !R::replacement_not_written(batch.standing::<R>(), open, contested.is_none()) {
            return;
        }
        let asked_itself = contested.is_none_or(|batch| batch.wish.is_contested());
        if asked_itself || self.is_out_of_date(replacement) {
            let refused = batch.standing::<R>() == Standing::Refused;
            self.dissolve(if refused { Past::Refused } else { Past::SlotTaken });
        }
    }

    /// A refused replacement is offered again for as long as its records have no verdict.
    fn is_out_of_date(&self, replacement: &Replacement<P>) -> bool {
        let told = |batch: &SequencedBatch<P>| {
            let mut entries = batch.entries.iter();
            entries.any(|it| !it.is_untold() && replacement.batch.find(it.ticket).is_some())
        };
        let own = replacement.batch.entries.iter().any(|entry| entry.heard == Heard::Unknown);
        own || self.is_passed(replacement.target)
            || self.contested(replacement.target).any(|(_, batch)| told(batch))
    }

    /// The replacement is gone: what it shares is left to the batches that it contested, the rest
    /// goes back to where it came from.
    pub(super) fn dissolve(&mut self, past: Past) {
        let Some((position, Replacement { batch, target })) = self.span.take_replacement() else {
            return;
        };
        self.attempts.settle(position, SettledAs::NotWritten);
        let retry = batch.retry;
        let (sealed, told, _) = batch.thaw(past, |_, _| false);
        self.tell_past(past, told);
        self.intake.put_back(alloc::vec![SealedBatch { retry: Retry::AT_ONCE, ..sealed }]);
        if let Some(batch) = self.span.batch_mut(target)
            && batch.wish == Wish::Contest
        {
            batch.retry = retry;
        }
    }
}

/// C2: what the size of a replacement must be.
struct Cuts {
    /// Records that it keeps.
    kept: usize,
    /// With the newer ones that it may take along.
    most: usize,
    first: Sequence,
    contested_count: u32,
    firsts: Vec<Sequence>,
    other_contents: Vec<u32>,
}

impl Cuts {
    fn is_legal<R: Rules>(&self, count: usize) -> bool {
        R::cut_is_legal(&CutFacts {
            first: self.first,
            count: count as u32,
            contested_count: self.contested_count,
            firsts: &self.firsts,
            other_contents: &self.other_contents,
        })
    }

    /// All that is kept, and as little else as possible.
    fn enough<R: Rules>(&self) -> Option<usize> {
        (self.kept.max(1)..=self.most).find(|count| self.is_legal::<R>(*count))
    }

    /// Otherwise as many as possible.
    fn less<R: Rules>(&self, fits: usize) -> Option<usize> {
        (1..self.kept.min(fits.saturating_add(1))).rev().find(|count| self.is_legal::<R>(*count))
    }

    fn any<R: Rules>(&self) -> bool {
        self.enough::<R>().is_some() || self.less::<R>(self.kept).is_some()
    }
}

/// How many of these records fit.
fn fitting<P: Payload>(records: &Records<P>, limit: usize) -> usize {
    let (mut fits, mut too_many) = (0, records.entries.len() + 1);
    while too_many - fits > 1 {
        let middle = fits.midpoint(too_many);
        let mut cut = records.clone();
        cut.split_off(middle as u32);
        match cut.bytes() <= limit {
            true => fits = middle,
            false => too_many = middle,
        }
    }
    fits
}
