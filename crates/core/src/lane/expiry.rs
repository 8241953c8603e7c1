//! Deadlines of single records (D1, D3, D4). Only `poll` comes here.

use alloc::vec::Vec;

use crate::action::Outcome;
use crate::ids::Ticket;
use crate::payload::Payload;
use crate::rules::Rules;
use crate::time::Instant;
use crate::verdict::Proof;

use super::Lane;
use super::batch::{Entry, Past, find};
use super::intake::Due;
use super::span::Position;
use super::vacate::Cause;

impl<P: Payload, R: Rules> Lane<P, R> {
    /// D4: deadline := now.
    pub(super) fn cancel(&mut self, ticket: Ticket, now: Instant) {
        let found = self.intake.cancel(ticket, now)
            || self.span.unsettled_mut().any(|batch| batch.cancel(ticket, now))
            || self.span.offered_mut().any(|batch| batch.cancel(ticket, now))
            || self.span.vacated_mut().flatten().any(|batch| batch.records.cancel(ticket, now));
        if found {
            self.expiry = self.expiry.min(now);
        }
    }

    /// D3: every due record gets its verdict.
    pub(super) fn expire(&mut self, now: Instant) {
        if !R::expired(now, self.expiry) {
            return;
        }
        self.expire_replacement(now);
        let Due { taken_back, expired } = self.intake.expire::<R>(now);
        self.tell(taken_back, Outcome::NotDelivered(Proof::TakenBack));
        for (past, told) in expired {
            self.tell_past(past, told);
        }
        self.expire_vacated(now);
        let offered: Vec<Position> = self
            .span
            .unsettled()
            .filter(|(_, batch)| R::expired(now, batch.expiry()))
            .map(|(position, _)| position)
            .collect();
        for position in offered {
            self.expire_offered(now, position);
        }
        self.expiry = self.earliest();
    }

    fn expire_offered(&mut self, now: Instant, position: Position) {
        let open = self.attempts.open_of(position);
        let last = self.bounds(position).last_before();
        let rival = self.doubtful_rival(position);
        let rival = rival.map_or_else(Vec::new, |it| it.batch.entries.clone());
        let Some(batch) = self.span.batch_mut(position) else { return };
        match R::verdict_at_deadline(batch.standing::<R>(), open) {
            Some(_) if rival.is_empty() => self.vacate(position, Cause::Expired(now)),
            Some(proof) => {
                let due = |entry: &Entry| R::expired(now, entry.deadline);
                let newly = batch.tell(|entry| due(entry) && find(&rival, entry.ticket).is_some());
                let doubt = batch.doubt(last);
                let refused = batch.hand_over(|entry| entry.is_untold() && due(entry));
                self.tell(newly, Outcome::Unknown(doubt));
                self.tell(refused, Outcome::NotDelivered(proof));
            }
            None => {
                let newly = batch.tell(|entry| R::expired(now, entry.deadline));
                let doubt = batch.doubt(last);
                self.tell(newly, Outcome::Unknown(doubt));
            }
        }
    }

    /// D3, V5: a replacement vacates nothing. Refused, it is taken back; in doubt, the records that
    /// it took along are so as well.
    fn expire_replacement(&mut self, now: Instant) {
        let Some((position, replacement)) = self.span.replacement() else { return };
        let own = R::expired(now, replacement.batch.expiry());
        if !own && !R::expired(now, self.replacement_expiry(replacement)) {
            return;
        }
        let open = self.attempts.open_of(position);
        let last = self.bounds(position).last_before();
        match R::verdict_at_deadline(replacement.batch.standing::<R>(), open) {
            Some(_) => self.dissolve(Past::Refused),
            None => {
                let Some(batch) = self.span.batch_mut(position) else { return };
                let newly = batch.tell(|entry| R::expired(now, entry.deadline));
                let doubt = batch.doubt(last);
                self.tell(newly, Outcome::Unknown(doubt));
            }
        }
    }

    fn expire_vacated(&mut self, now: Instant) {
        let expired: Vec<_> = self
            .span
            .vacated_mut()
            .flatten()
            .map(|batch| (batch.past, batch.records.expire::<R>(now)))
            .collect();
        for (past, told) in expired {
            self.tell_past(past, told);
        }
        for kept in self.span.vacated_mut() {
            kept.retain(|batch| !batch.records.is_empty());
        }
    }

    fn earliest(&self) -> Instant {
        let unsettled = self.span.offered().map(|(_, batch)| batch.expiry()).min();
        let vacated = self.span.kept().map(|batch| batch.records.expiry()).min();
        let offered = unsettled.into_iter().chain(vacated).min().unwrap_or(Instant::NEVER);
        self.intake.expiry().min(offered)
    }

    /// Whether a record is due, and not only the lower bound that is kept.
    pub(super) fn really_due(&self, now: Instant) -> bool {
        R::expired(now, self.earliest())
    }
}
