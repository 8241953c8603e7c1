//! The futures of `send` and `enqueue`.

use std::future::{Future, IntoFuture, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use candor_core::Ticket;
use candor_proto::{Record, Waiting};

use crate::conduct::Dropped;
use crate::flight::Flight;
use crate::revoke::Revoked;
use crate::shared::Shared;
use crate::verdict::{NotDelivered, Verdict};

/// A record that is being sent; its output is the verdict.
///
/// Nothing is sent before it is polled, but its deadline counts from the call of `send`. Dropping it
/// cancels: if the record was never offered to a broker it never will be, else it goes on without
/// you, and its verdict is counted as unclaimed. To stop and know, use [`until`](Self::until).
///
/// ```no_run
/// # use candor_driver::{Producer, Record, Runtime, Verdict};
/// # async fn example<R: Runtime>(producer: &Producer<R>) -> Result<(), candor_driver::Undelivered> {
/// let at = producer.send(Record::to("orders").value("created")).await.into_result()?;
/// println!("{at}");
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing is sent unless it is awaited"]
#[derive(Debug)]
pub struct Sending<'r>(Flight<'r>);

impl<'r> Sending<'r> {
    pub(crate) fn new(shared: &Arc<Shared>, record: Record<'r>) -> Self {
        Self(Flight::new(shared, record))
    }

    /// The verdict, at once when `stop` ends: what is not known by then is `Unknown`, and can still
    /// be resolved.
    ///
    /// ```no_run
    /// # use candor_driver::{Producer, Record, Runtime, Verdict};
    /// # async fn example<R: Runtime>(producer: &Producer<R>, shutdown: std::future::Pending<()>) {
    /// let verdict = producer.send(Record::to("orders").value("created")).until(shutdown).await;
    /// # let _ = verdict;
    /// # }
    /// ```
    pub async fn until<F: IntoFuture>(mut self, stop: F) -> Verdict {
        let mut stop = pin!(stop.into_future());
        let mut stopped = false;
        poll_fn(move |cx| {
            if !stopped && stop.as_mut().poll(cx).is_ready() {
                stopped = true;
                if let Some(no) = self.0.cancel() {
                    return Poll::Ready(Verdict::NotDelivered(no));
                }
            }
            self.0.poll_verdict(cx)
        })
        .await
    }
}

impl Future for Sending<'_> {
    type Output = Verdict;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Verdict> {
        self.0.poll_verdict(cx)
    }
}

/// A record that waits for room; its output is a [`Handle`]. Dropping it before cancels.
///
/// ```no_run
/// # use candor_driver::{NotDelivered, Producer, Record, Runtime};
/// # async fn example<R: Runtime>(producer: &Producer<R>) -> Result<(), NotDelivered> {
/// let first = producer.enqueue(Record::to("orders").key("1").value("a")).await?;
/// let second = producer.enqueue(Record::to("orders").key("1").value("b")).await?;
/// assert!(first.ticket() < second.ticket());
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing is sent unless it is awaited"]
#[derive(Debug)]
pub struct Enqueue<'r>(Flight<'r>);

impl<'r> Enqueue<'r> {
    pub(crate) fn new(shared: &Arc<Shared>, record: Record<'r>) -> Self {
        Self(Flight::new(shared, record))
    }
}

impl Future for Enqueue<'_> {
    type Output = Result<Handle, NotDelivered>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let accepted = self.0.poll_accepted(cx);
        accepted.map_ok(|ticket| Handle::new(Arc::clone(&self.0.shared), ticket))
    }
}

/// An accepted record; await it for the verdict. Its place in the order is fixed.
///
/// Dropping it detaches: the record goes on, and its verdict is counted as unclaimed.
///
/// ```no_run
/// # async fn example(handle: candor_driver::Handle) {
/// println!("record {} waits for {:?}", handle.ticket(), handle.why());
/// handle.cancel();
/// let verdict = handle.await;
/// # let _ = verdict;
/// # }
/// ```
#[must_use = "drop it explicitly if the verdict does not matter"]
#[derive(Debug)]
pub struct Handle {
    shared: Arc<Shared>,
    ticket: Ticket,
    over: bool,
}

impl Handle {
    pub(crate) const fn new(shared: Arc<Shared>, ticket: Ticket) -> Self {
        Self { shared, ticket, over: false }
    }

    /// The record's name.
    pub const fn ticket(&self) -> Ticket {
        self.ticket
    }

    /// The record's deadline is now: its verdict comes at once. What was never offered never will
    /// be; what may have been written is `Unknown` and can be resolved.
    pub fn cancel(&self) {
        self.shared.enter(|state, now| state.machine.cancel(now, self.ticket));
    }

    /// As [`cancel`](Self::cancel), and what may have been written is contested: other records of
    /// the partition are offered in its place, and the broker's answer tells whether it is in the
    /// log. The outcome is `NotDelivered` or `Delivered`; where nothing can take its place (a lone
    /// record needs two newer ones) it is settled as after `cancel`.
    ///
    /// ```no_run
    /// # use candor_driver::{NotDelivered, Producer, Record, Resolution, Runtime};
    /// # async fn example<R: Runtime>(producer: &Producer<R>) -> Result<(), NotDelivered> {
    /// let handle = producer.enqueue(Record::to("orders").value("created")).await?;
    /// if let Resolution::NotDelivered(no) = handle.revoke().await {
    ///     println!("it is not written, and never will be: {no}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn revoke(self) -> Revoked {
        // A record that has ended keeps its verdict, and that is the outcome.
        let _ended = self.shared.enter(|state, now| state.machine.revoke(now, self.ticket));
        Revoked::new(self)
    }

    /// What the record is waiting for.
    pub fn why(&self) -> Waiting {
        self.shared.enter(|state, _| state.machine.why(self.ticket))
    }
}

impl Future for Handle {
    type Output = Verdict;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Verdict> {
        if self.over {
            return Poll::Pending;
        }
        let verdict = self.shared.claim(self.ticket, cx);
        self.over = verdict.is_ready();
        verdict
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if !self.over {
            match self.shared.conduct.handle_dropped() {
                Dropped::GoesOn => {
                    self.shared.with(|state| state.slots.detach(self.ticket, &mut state.wakers));
                }
                dropped @ Dropped::Cancelled => {
                    self.shared.enter(|state, now| state.drop_record(now, self.ticket, dropped));
                }
            }
        }
    }
}
