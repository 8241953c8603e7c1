//! What a runtime must offer: three functions and a stream. Nothing here knows Kafka.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

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

/// Connects to the first address of a host that answers: what every adapter does with what its
/// resolver found.
///
/// # Errors
///
/// [`io::ErrorKind::NotFound`] if there is no address, else what the last one said.
///
/// ```
/// let nobody: std::io::Result<Vec<std::net::SocketAddr>> = Ok(vec![]);
/// let attempt = candor_driver::connect_to_any(nobody, |_| async { Ok(()) });
/// # let mut attempt = std::pin::pin!(attempt);
/// # let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
/// # let std::task::Poll::Ready(result) = attempt.as_mut().poll(&mut cx) else { panic!() };
/// # use std::future::Future;
/// assert_eq!(result.unwrap_err().kind(), std::io::ErrorKind::NotFound);
/// ```
pub async fn connect_to_any<S, F>(
    found: io::Result<impl IntoIterator<Item = SocketAddr>>,
    mut connect: impl FnMut(SocketAddr) -> F,
) -> io::Result<S>
where
    F: Future<Output = io::Result<S>>,
{
    let found = found.map_err(|error| io::Error::new(io::ErrorKind::NotFound, error))?;
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for address in found {
        match connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}
