//! What a record is waiting for.

use crate::action::Why;
use crate::ids::Ticket;
use crate::payload::Payload;
use crate::rules::Rules;
use crate::time::Instant;

use super::Lane;
use super::batch::SequencedBatch;
use super::gate::{Confirmation, Gate};
use super::intake::Waiting;
use super::span::Position;

impl<P: Payload, R: Rules> Lane<P, R> {
    /// What the record with this ticket is waiting for.
    pub fn why(&self, ticket: Ticket) -> Why {
        if self.given_up.iter().any(|it| it.records.iter().any(|told| told.ticket == ticket)) {
            return Why::Resolution;
        }
        let holds = |batch: &SequencedBatch<P>| batch.find(ticket).is_some();
        if let Some((position, batch)) = self.span.offered().find(|(_, batch)| holds(batch)) {
            return self.why_offered(position, batch, ticket);
        }
        if self.span.kept().any(|batch| batch.records.find(ticket).is_some()) {
            return Why::Queue;
        }
        match self.intake.find(ticket) {
            None => Why::Gone,
            Some(_) if self.leader.route.is_none() => Why::Leader,
            Some(_) if self.identity().is_none() => Why::Identity,
            Some(Waiting::Open { due }) if due > self.now => Why::Linger,
            Some(Waiting::Open { .. } | Waiting::Next) => self.why_next(),
            Some(Waiting::Queued) => Why::Queue,
        }
    }

    fn why_offered(&self, position: Position, batch: &SequencedBatch<P>, ticket: Ticket) -> Why {
        if batch.find(ticket).is_some_and(|entry| !entry.is_untold()) {
            return Why::Resolution;
        }
        let open = self.attempts.of(position).filter(|attempt| !attempt.orphaned).last();
        match open {
            Some(attempt) if attempt.handed => Why::Answer { attempt: attempt.id },
            Some(_) => Why::Transmit,
            None => self.why_not_offered(Some(position), batch.retry.not_before),
        }
    }

    fn why_next(&self) -> Why {
        if !R::span_has_room(self.span.len()) {
            return Why::Span;
        }
        self.why_not_offered(None, self.renewal.not_before)
    }

    /// What keeps a batch back that was offered at this position, or never.
    fn why_not_offered(&self, position: Option<Position>, not_before: Instant) -> Why {
        if self.leader.route.is_none() {
            return Why::Leader;
        }
        if self.held {
            return Why::Hold;
        }
        let epoch = self.leader.epoch;
        let first = self.span.unsettled().next().map(|(first, _)| first);
        match self.gate {
            Gate::Closed(pass) => match pass.confirmation {
                Confirmation::BeforeSecondPass | Confirmation::BeforeAbandon => {
                    Why::Confirmation { epoch }
                }
                Confirmation::NotNeeded if self.attempts.open() > 0 => Why::Gate,
                Confirmation::NotNeeded if not_before > self.now => {
                    Why::Backoff { until: not_before }
                }
                Confirmation::NotNeeded if first.is_some() && first != position => Why::Gate,
                Confirmation::NotNeeded => Why::Transmit,
            },
            Gate::Open { .. } if not_before > self.now => Why::Backoff { until: not_before },
            Gate::Open { .. } => Why::Transmit,
        }
    }
}
