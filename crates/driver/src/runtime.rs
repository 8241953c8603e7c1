//! What a runtime must offer: three functions and a stream. Nothing here knows Kafka.

use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant, SystemTime};

use futures_io::{AsyncRead, AsyncWrite};

/// An asynchronous runtime.
///
/// Streams must forward vectored writes, and must not hold bytes back: what `poll_write` accepted
/// counts as handed to the network, and what a failed write took counts as not handed over.
///
/// ```
/// use candor_driver::Runtime;
/// use std::{io, sync::Arc, time::Instant};
///
/// /// Never connects, and never wakes anybody.
/// #[derive(Clone)]
/// struct Offline;
///
/// impl Runtime for Offline {
///     type Stream = futures_io_stream::Nothing;
///     type Sleep = std::future::Pending<()>;
///     async fn connect(self, _host: Arc<str>, _port: u16) -> io::Result<Self::Stream> {
///         Err(io::ErrorKind::ConnectionRefused.into())
///     }
///     fn sleep_until(&self, _at: Instant) -> Self::Sleep {
///         std::future::pending()
///     }
///     fn spawn(&self, _task: impl Future<Output = ()> + Send + 'static) {}
/// }
/// # mod futures_io_stream {
/// #     use std::{io, pin::Pin, task::{Context, Poll}};
/// #     pub struct Nothing;
/// #     impl futures_io::AsyncRead for Nothing {
/// #         fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut [u8]) -> Poll<io::Result<usize>> {
/// #             Poll::Ready(Ok(0))
/// #         }
/// #     }
/// #     impl futures_io::AsyncWrite for Nothing {
/// #         fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
/// #             Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()))
/// #         }
/// #         fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> { Poll::Ready(Ok(())) }
/// #         fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> { Poll::Ready(Ok(())) }
/// #     }
/// # }
/// ```
pub trait Runtime: Clone + Send + Sync + 'static {
    /// A connected byte stream.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;
    /// A timer.
    type Sleep: Future<Output = ()> + Send + 'static;

    /// Resolves the host anew and connects. Dropping the future gives the attempt up.
    ///
    /// # Errors
    ///
    /// What the operating system says; [`io::ErrorKind::NotFound`] if the name has no address.
    fn connect(
        self,
        host: Arc<str>,
        port: u16,
    ) -> impl Future<Output = io::Result<Self::Stream>> + Send + 'static;

    /// Ends at this time. Ending early or late costs precision, never truth: what is due is decided
    /// by [`now`](Self::now).
    fn sleep_until(&self, at: Instant) -> Self::Sleep;

    /// Runs a future to its end, independently of the caller.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static);

    /// Monotonic time, of the clock that [`sleep_until`](Self::sleep_until) goes by.
    fn now(&self) -> Instant {
        Instant::now()
    }

    /// Wall time.
    fn wall(&self) -> SystemTime {
        SystemTime::now()
    }

    /// Closes a stream so that bytes which the peer has not received yet need not reach it any more
    /// (`SO_LINGER` 0). The default only drops it: then they may still arrive, which costs some
    /// certainty, never truth.
    fn abort(&self, stream: Self::Stream) {
        drop(stream);
    }
}

/// How long an address of a host is waited for alone ("Connection Attempt Delay", RFC 8305).
const HEAD_START: Duration = Duration::from_millis(250);

/// Connects to the first address of a host that answers: what every adapter does with what its
/// resolver found. An address that neither answers nor refuses within a quarter of a second has the
/// next one tried beside it: a name may have an address of a network that leads nowhere (IPv6, often),
/// and it would be tried first each time. `pause` waits for so long.
///
/// # Errors
///
/// [`io::ErrorKind::NotFound`] if there is no address, else what the last one said.
///
/// ```
/// let nobody: std::io::Result<Vec<std::net::SocketAddr>> = Ok(vec![]);
/// let pause = |_| std::future::pending();
/// let attempt = candor_driver::connect_to_any(nobody, pause, |_| async { Ok(()) });
/// # let mut attempt = std::pin::pin!(attempt);
/// # let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
/// # let std::task::Poll::Ready(result) = attempt.as_mut().poll(&mut cx) else { panic!() };
/// # use std::future::Future;
/// assert_eq!(result.unwrap_err().kind(), std::io::ErrorKind::NotFound);
/// ```
pub async fn connect_to_any<S, F, P>(
    found: io::Result<impl IntoIterator<Item = SocketAddr>>,
    mut pause: impl FnMut(Duration) -> P,
    mut connect: impl FnMut(SocketAddr) -> F,
) -> io::Result<S>
where
    F: Future<Output = io::Result<S>>,
    P: Future<Output = ()>,
{
    let found = found.map_err(|error| io::Error::new(io::ErrorKind::NotFound, error))?;
    let mut untried = found.into_iter();
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    let (mut attempts, mut head_start) = (Vec::new(), None);
    poll_fn(move |cx| {
        loop {
            let failed = match poll_attempts(&mut attempts, cx) {
                Poll::Ready(Ok(stream)) => return Poll::Ready(Ok(stream)),
                Poll::Ready(Err(error)) => {
                    last = error;
                    true
                }
                Poll::Pending => false,
            };
            let waits = head_start.as_mut().is_some_and(|pause| is_pending(pause, cx));
            if waits && !failed {
                return Poll::Pending;
            }
            head_start = None;
            if let Some(address) = untried.next() {
                attempts.push(Box::pin(connect(address)));
                head_start = Some(Box::pin(pause(HEAD_START)));
            } else if attempts.is_empty() {
                let nothing = io::Error::from(io::ErrorKind::NotFound);
                return Poll::Ready(Err(core::mem::replace(&mut last, nothing)));
            } else if !failed {
                return Poll::Pending;
            }
        }
    })
    .await
}

fn is_pending(future: &mut Pin<Box<impl Future>>, cx: &mut Context<'_>) -> bool {
    future.as_mut().poll(cx).is_pending()
}

/// The first of them that is over, if one is; it is taken out.
fn poll_attempts<S, F: Future<Output = io::Result<S>>>(
    attempts: &mut Vec<Pin<Box<F>>>,
    cx: &mut Context<'_>,
) -> Poll<io::Result<S>> {
    for at in 0..attempts.len() {
        let polled = attempts.get_mut(at).map(|attempt| attempt.as_mut().poll(cx));
        if let Some(Poll::Ready(result)) = polled {
            drop(attempts.remove(at));
            return Poll::Ready(result);
        }
    }
    Poll::Pending
}
