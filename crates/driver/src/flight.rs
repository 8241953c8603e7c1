//! One record on its way: from the caller, perhaps through the line, to its verdict.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant as Monotonic;

use candor_core::Ticket;
use candor_proto::{Record, Refused, WhyRefused};

use crate::line::{LineEnd, LineId};
use crate::shared::{Shared, State};
use crate::verdict::{NotDelivered, Verdict, WhyNot};

/// Where a record is, seen from whoever sends it.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "a box would be an allocation per record")]
enum Stage<'r> {
    /// Not tried yet.
    New { record: Record<'r>, born: Monotonic },
    /// Waits for room.
    InLine { id: LineId, topic: Arc<str> },
    /// Accepted.
    Accepted(Ticket),
    /// The caller knows how it ended, or has handed it on.
    Over,
}

/// A record on its way. Dropping it cancels it (rule D4).
#[derive(Debug)]
pub(crate) struct Flight<'r> {
    pub(crate) shared: Arc<Shared>,
    stage: Stage<'r>,
}

/// Who is to be woken when a record is accepted at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wants {
    Ticket,
    Verdict,
}

impl<'r> Flight<'r> {
    pub(crate) fn new(shared: &Arc<Shared>, record: Record<'r>) -> Self {
        let born = shared.monotonic();
        Self { shared: Arc::clone(shared), stage: Stage::New { record, born } }
    }

    /// The ticket, as soon as the record is accepted; whoever gets it has it from here.
    pub(crate) fn poll_accepted(&mut self, cx: &Context<'_>) -> Poll<Result<Ticket, NotDelivered>> {
        let accepted = self.poll_stage(cx, Wants::Ticket);
        if accepted.is_ready() {
            self.stage = Stage::Over;
        }
        accepted
    }

    /// The verdict.
    pub(crate) fn poll_verdict(&mut self, cx: &Context<'_>) -> Poll<Verdict> {
        let was_new = matches!(self.stage, Stage::New { .. });
        let verdict = match self.poll_stage(cx, Wants::Verdict) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Err(no)) => Verdict::NotDelivered(no),
            // The slot has our waker since it was opened.
            Poll::Ready(Ok(_)) if was_new => return Poll::Pending,
            Poll::Ready(Ok(ticket)) => match self.shared.claim(ticket, cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(verdict) => verdict,
            },
        };
        self.stage = Stage::Over;
        Poll::Ready(verdict)
    }

    fn poll_stage(&mut self, cx: &Context<'_>, wants: Wants) -> Poll<Result<Ticket, NotDelivered>> {
        match core::mem::replace(&mut self.stage, Stage::Over) {
            Stage::New { record, born } => self.start(born, record, cx, wants),
            Stage::InLine { id, topic } => self.wait_in_line(id, topic, cx),
            Stage::Accepted(ticket) => {
                self.stage = Stage::Accepted(ticket);
                Poll::Ready(Ok(ticket))
            }
            Stage::Over => Poll::Pending,
        }
    }

    fn start(
        &mut self,
        born: Monotonic,
        record: Record<'r>,
        cx: &Context<'_>,
        wants: Wants,
    ) -> Poll<Result<Ticket, NotDelivered>> {
        let waker = (wants == Wants::Verdict).then_some(cx.waker());
        let start = |state: &mut State, now| {
            let born = state.conduct.born(state.clock.at(born), now);
            match state.append(now, born, record, waker) {
                Ok(ticket) => Ok(Stage::Accepted(ticket)),
                Err(Refused { record, why: WhyRefused::Full }) => {
                    let topic = Arc::from(record.topic());
                    Ok(Stage::InLine { id: state.join(born, record, cx.waker()), topic })
                }
                Err(refused) => Err(NotDelivered::from(refused)),
            }
        };
        match self.shared.enter(start) {
            Ok(stage) => {
                let accepted = match &stage {
                    Stage::Accepted(ticket) => Poll::Ready(Ok(*ticket)),
                    Stage::New { .. } | Stage::InLine { .. } | Stage::Over => Poll::Pending,
                };
                self.stage = stage;
                accepted
            }
            Err(no) => Poll::Ready(Err(no)),
        }
    }

    fn wait_in_line(
        &mut self,
        id: LineId,
        topic: Arc<str>,
        cx: &Context<'_>,
    ) -> Poll<Result<Ticket, NotDelivered>> {
        match self.shared.enter(|state, _| state.line.claim(id, cx, &mut state.wakers)) {
            Poll::Pending => {
                self.stage = Stage::InLine { id, topic };
                Poll::Pending
            }
            Poll::Ready(LineEnd::Accepted(ticket)) => {
                self.stage = Stage::Accepted(ticket);
                Poll::Ready(Ok(ticket))
            }
            Poll::Ready(LineEnd::Ended(why)) => {
                Poll::Ready(Err(NotDelivered { topic, partition: None, why }))
            }
        }
    }

    /// Cancels it. If it was not accepted yet, this is how it ended; else the verdict is due now.
    pub(crate) fn cancel(&mut self) -> Option<NotDelivered> {
        let cancelled = |topic| NotDelivered { topic, partition: None, why: WhyNot::Cancelled };
        match core::mem::replace(&mut self.stage, Stage::Over) {
            Stage::New { record, .. } => Some(cancelled(Arc::from(record.topic()))),
            Stage::InLine { id, topic } => match self.shared.enter(|state, now| {
                let accepted = state.leave(now, id)?;
                state.machine.cancel(now, accepted);
                Some(accepted)
            }) {
                Some(ticket) => {
                    self.stage = Stage::Accepted(ticket);
                    None
                }
                None => Some(cancelled(topic)),
            },
            Stage::Accepted(ticket) => {
                self.shared.enter(|state, now| state.machine.cancel(now, ticket));
                self.stage = Stage::Accepted(ticket);
                None
            }
            Stage::Over => None,
        }
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        match self.stage {
            Stage::New { .. } | Stage::Over => {}
            Stage::InLine { id, .. } => self.shared.enter(|state, now| {
                if let Some(ticket) = state.leave(now, id) {
                    state.drop_record(now, ticket, state.conduct.send_dropped());
                }
            }),
            Stage::Accepted(ticket) => {
                let dropped = self.shared.conduct.send_dropped();
                self.shared.enter(|state, now| state.drop_record(now, ticket, dropped));
            }
        }
    }
}

impl From<Refused<'_>> for NotDelivered {
    fn from(refused: Refused<'_>) -> Self {
        let topic = Arc::from(refused.record.topic());
        Self { topic, partition: None, why: WhyNot::Refused(refused.why) }
    }
}
