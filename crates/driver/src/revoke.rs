//! Revoking a record that may be in the log.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::resolved::Resolved;
use crate::send::Handle;
use crate::verdict::{Resolution, Verdict};

/// The future of [`Handle::revoke`]: what became of the record. Always ends: at the latest when the
/// producer closes, or its driver future is dropped.
///
/// Dropping it takes nothing back: the record's place is contested all the same.
///
/// ```no_run
/// # async fn example(handle: candor_driver::Handle) {
/// match handle.revoke().await {
///     candor_driver::Resolution::NotDelivered(no) => println!("it is not written: {no}"),
///     candor_driver::Resolution::Delivered(at) => println!("too late, it is at {at}"),
///     candor_driver::Resolution::Never(never) => println!("look into the log: {never}"),
/// }
/// # }
/// ```
#[must_use = "futures do nothing unless awaited"]
#[derive(Debug)]
pub struct Revoked(Stage);

#[derive(Debug)]
enum Stage {
    /// Its verdict is still to come, at once.
    Verdict(Handle),
    /// It was `Unknown`.
    Resolution(Resolved),
}

impl Revoked {
    pub(crate) const fn new(handle: Handle) -> Self {
        Self(Stage::Verdict(handle))
    }
}

impl Future for Revoked {
    type Output = Resolution;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Resolution> {
        if let Stage::Verdict(handle) = &mut self.0 {
            match Pin::new(handle).poll(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Verdict::Delivered(at)) => {
                    return Poll::Ready(Resolution::Delivered(at));
                }
                Poll::Ready(Verdict::NotDelivered(no)) => {
                    return Poll::Ready(Resolution::NotDelivered(no));
                }
                Poll::Ready(Verdict::Unknown(unknown)) => {
                    self.0 = Stage::Resolution(unknown.resolved());
                }
            }
        }
        match &mut self.0 {
            Stage::Resolution(resolved) => Pin::new(resolved).poll(cx),
            Stage::Verdict(_) => Poll::Pending,
        }
    }
}
