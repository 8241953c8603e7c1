//! The futures of `flush` and `close`.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use candor_core::Span;

use crate::clock::micros;
use crate::shared::Shared;
use crate::stats::Summary;

/// Ends when every record sent before it has its verdict. It begins when it is first polled; dropping
/// it takes nothing back.
///
/// ```no_run
/// # async fn example<R: candor_driver::Runtime>(producer: &candor_driver::Producer<R>) {
/// producer.flush().await;
/// # }
/// ```
#[must_use = "futures do nothing unless awaited"]
#[derive(Debug)]
pub struct Flush {
    shared: Arc<Shared>,
    id: Option<u64>,
}

impl Flush {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::clone(shared), id: None }
    }
}

impl Future for Flush {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let known = self.id;
        let (id, polled) = self.shared.enter(|state, now| {
            let id = known.unwrap_or_else(|| {
                let id = state.flushes.join(state.line.end());
                state.after_line(now);
                id
            });
            (id, state.flushes.poll(id, cx, &mut state.wakers))
        });
        self.id = Some(id);
        polled
    }
}

impl Drop for Flush {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.shared.enter(|state, _| state.flushes.forget(id, &mut state.wakers));
        }
    }
}

/// Ends when the producer is closed: every record has its verdict and every `Unknown` its
/// resolution. It begins when it is first polled; dropping it takes nothing back.
///
/// ```no_run
/// # async fn example<R: candor_driver::Runtime>(producer: &candor_driver::Producer<R>) {
/// let summary = producer.close(std::time::Duration::from_secs(10)).await;
/// println!("{} delivered", summary.delivered);
/// # }
/// ```
#[must_use = "futures do nothing unless awaited"]
#[derive(Debug)]
pub struct Close {
    shared: Arc<Shared>,
    within: Duration,
    id: Option<u64>,
}

impl Close {
    pub(crate) fn new(shared: &Arc<Shared>, within: Duration) -> Self {
        Self { shared: Arc::clone(shared), within, id: None }
    }
}

impl Future for Close {
    type Output = Summary;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Summary> {
        let (known, within) = (self.id, Span::from_micros(micros(self.within)));
        let (id, polled) = self.shared.enter(|state, now| {
            let id = known.unwrap_or_else(|| {
                state.close(now, now + within);
                state.life.watch()
            });
            (id, state.life.poll(id, cx, &mut state.wakers))
        });
        self.id = Some(id);
        polled
    }
}

impl Drop for Close {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.shared.enter(|state, _| state.life.forget(id, &mut state.wakers));
        }
    }
}
