//! Many records at once.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant as Monotonic;

use candor_core::{Instant, Ticket};
use candor_proto::{Record, Refused, WhyRefused};

use crate::line::{LineEnd, LineId};
use crate::shared::{Shared, State};
use crate::verdict::{NotDelivered, Verdict};

/// Records accepted under one lock.
const BURST: usize = 64;

/// Bursts in one poll; then others have their turn.
const BURSTS_PER_POLL: usize = 16;

/// Verdicts claimed under one lock.
const CLAIMS: usize = 256;

/// Records that are being sent in order; the output is their verdicts, in the same order.
///
/// Dropping it cancels what has no verdict yet.
///
/// ```no_run
/// # use candor_driver::{Producer, Record, Runtime};
/// # async fn example<R: Runtime>(producer: &Producer<R>) {
/// let records = (0..1_000).map(|n| Record::to("numbers").value(n.to_string()));
/// let verdicts = producer.send_all(records).await;
/// assert_eq!(verdicts.len(), 1_000);
/// # }
/// ```
#[must_use = "nothing is sent unless it is awaited"]
pub struct SendAll<'r, I> {
    shared: Arc<Shared>,
    born: Monotonic,
    records: Option<I>,
    /// Taken from the iterator, outside of the lock, and not accepted yet.
    burst: VecDeque<Record<'r>>,
    in_line: Option<(LineId, Arc<str>)>,
    sent: VecDeque<Sent>,
    verdicts: Vec<Verdict>,
}

/// One record that was tried.
#[derive(Debug)]
enum Sent {
    Accepted(Ticket),
    Ended(NotDelivered),
}

impl<I> Unpin for SendAll<'_, I> {}

impl<'r, I: Iterator<Item = Record<'r>>> SendAll<'r, I> {
    pub(crate) fn new(shared: &Arc<Shared>, records: I) -> Self {
        Self {
            shared: Arc::clone(shared),
            born: shared.monotonic(),
            records: Some(records),
            burst: VecDeque::new(),
            in_line: None,
            sent: VecDeque::new(),
            verdicts: Vec::new(),
        }
    }

    /// Tries to have more records accepted. Whether there is nothing to do now.
    fn advance(&mut self, cx: &Context<'_>) -> bool {
        if let Some((id, topic)) = self.in_line.take() {
            match self.shared.enter(|state, _| state.line.claim(id, cx, &mut state.wakers)) {
                Poll::Pending => {
                    self.in_line = Some((id, topic));
                    return true;
                }
                Poll::Ready(LineEnd::Accepted(ticket)) => {
                    self.sent.push_back(Sent::Accepted(ticket));
                }
                Poll::Ready(LineEnd::Ended(why)) => {
                    let no = NotDelivered { topic, partition: None, why };
                    self.sent.push_back(Sent::Ended(no));
                }
            }
        }
        if let Some(records) = &mut self.records {
            let room = BURST - self.burst.len();
            self.burst.extend(records.by_ref().take(room));
            if self.burst.len() < BURST {
                self.records = None;
            }
        }
        if self.burst.is_empty() {
            return true;
        }
        let shared = Arc::clone(&self.shared);
        shared.enter(|state, now| self.accept(state, now, cx));
        false
    }

    fn accept(&mut self, state: &mut State, now: Instant, cx: &Context<'_>) {
        let born = state.conduct.born(state.clock.at(self.born), now);
        while let Some(record) = self.burst.pop_front() {
            match state.append(now, born, record, None) {
                Ok(ticket) => self.sent.push_back(Sent::Accepted(ticket)),
                Err(Refused { record, why: WhyRefused::Full }) => {
                    let topic = Arc::from(record.topic());
                    self.in_line = Some((state.join(born, record, cx.waker()), topic));
                    return;
                }
                Err(refused) => self.sent.push_back(Sent::Ended(refused.into())),
            }
        }
    }

    /// Claims verdicts, in order. Whether the first record without one waits for it.
    fn claim(&mut self, cx: &Context<'_>) -> bool {
        let shared = Arc::clone(&self.shared);
        shared.enter(|state, _| {
            for _ in 0..CLAIMS {
                match self.sent.pop_front() {
                    None => return true,
                    Some(Sent::Ended(no)) => self.verdicts.push(Verdict::NotDelivered(no)),
                    Some(Sent::Accepted(ticket)) => match state.claim(ticket, cx) {
                        Poll::Pending => {
                            self.sent.push_front(Sent::Accepted(ticket));
                            return true;
                        }
                        Poll::Ready((claimed, place)) => {
                            self.verdicts.push(self.shared.verdict(ticket, claimed, place));
                        }
                    },
                }
            }
            false
        })
    }
}

impl<'r, I: Iterator<Item = Record<'r>>> Future for SendAll<'r, I> {
    type Output = Vec<Verdict>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Vec<Verdict>> {
        let this = &mut *self;
        for _ in 0..BURSTS_PER_POLL {
            let blocked = this.advance(cx);
            let waits = this.claim(cx);
            if !(blocked && waits) {
                continue;
            }
            let over = this.records.is_none() && this.burst.is_empty() && this.in_line.is_none();
            if over && this.sent.is_empty() {
                return Poll::Ready(core::mem::take(&mut this.verdicts));
            }
            return Poll::Pending;
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl<I> Drop for SendAll<'_, I> {
    fn drop(&mut self) {
        if self.in_line.is_none() && self.sent.is_empty() {
            return;
        }
        let dropped = self.shared.conduct.send_dropped();
        self.shared.enter(|state, now| {
            if let Some(ticket) = self.in_line.take().and_then(|(id, _)| state.leave(now, id)) {
                state.drop_record(now, ticket, dropped);
            }
            for sent in self.sent.drain(..) {
                match sent {
                    Sent::Accepted(ticket) => state.drop_record(now, ticket, dropped),
                    Sent::Ended(_) => {}
                }
            }
        });
    }
}

impl<I> std::fmt::Debug for SendAll<'_, I> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SendAll")
            .field("sent", &self.sent.len())
            .field("verdicts", &self.verdicts.len())
            .finish_non_exhaustive()
    }
}
