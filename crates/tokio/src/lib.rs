//! Candor for tokio: [`Producer`] is the face.
//!
//! Give records deadlines, and do not wrap their futures in `tokio::time::timeout`: every record has
//! its verdict by its deadline, and a timeout would only throw it away. See [`candor_driver`].
//!
//! ```no_run
//! use candor_tokio::{Config, Producer, Record, Verdict};
//!
//! # async fn example(shutdown: std::future::Pending<()>) -> Result<(), Box<dyn std::error::Error>> {
//! let producer = Producer::connect(Config::new(["localhost:9092"])).await?;
//! match producer.send(Record::to("orders").key("42").value("created")).await {
//!     Verdict::Delivered(at) => println!("{}-{}@{:?}", at.topic, at.partition, at.offset),
//!     Verdict::NotDelivered(no) => eprintln!("safe to send again: {no}"),
//!     Verdict::Unknown(u) => eprintln!("may be written; later: {:?}", u.resolved().await),
//! }
//! // It shall not be written, or be known to be: other records take its place.
//! let handle = producer.enqueue(Record::to("orders").value("shipped")).await?;
//! println!("{}", handle.revoke().await);
//! producer.abandon("orders", 3)?;
//! let verdict = producer.send(Record::to("orders").value("paid")).until(shutdown).await;
//! # drop(verdict);
//! # Ok(())
//! # }
//! ```

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use futures_io::{AsyncRead, AsyncWrite};
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};
use tokio::net::TcpStream;
use tokio::runtime;
use tokio::time::Sleep;

pub use candor_driver::*;

/// The samples of the README, so that they compile.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// A producer on tokio.
///
/// ```
/// use candor_tokio::{Config, Producer};
/// assert!(Producer::parts(Config::new(["localhost"])).is_err());
/// ```
pub type Producer = candor_driver::Producer<Tokio>;

/// The tokio runtime that was current when this was made. Its IO and time drivers must be enabled,
/// as they are by `#[tokio::main]`.
///
/// Outside of a runtime there is nobody to run a driver: it ends at once, and all records are
/// `NotDelivered`. Use `Producer::parts` there, and run the driver on a runtime yourself.
///
/// ```
/// let runtime = candor_tokio::Tokio::default();
/// ```
#[derive(Clone, Debug)]
pub struct Tokio {
    handle: Option<runtime::Handle>,
}

impl Default for Tokio {
    fn default() -> Self {
        Self { handle: runtime::Handle::try_current().ok() }
    }
}

impl Runtime for Tokio {
    type Stream = Stream;
    type Sleep = Sleep;

    async fn connect(self, host: Arc<str>, port: u16) -> io::Result<Stream> {
        let found = tokio::net::lookup_host((&*host, port)).await;
        let pause = |time| self.sleep_until(self.now() + time);
        let stream = connect_to_any(found, pause, TcpStream::connect).await?;
        stream.set_nodelay(true)?;
        Ok(Stream(stream))
    }

    fn sleep_until(&self, at: Instant) -> Sleep {
        tokio::time::sleep_until(at.into())
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Some(handle) = &self.handle {
            // It runs to its end without us.
            drop(handle.spawn(task));
        }
    }

    fn now(&self) -> Instant {
        tokio::time::Instant::now().into_std()
    }

    fn abort(&self, stream: Stream) {
        // Only a socket that is dead already refuses.
        let _set = stream.0.set_zero_linger();
    }
}

/// A TCP stream of tokio under the traits of `futures-io`, vectored writes included (`tokio-util`'s
/// wrapper sends the first slice only).
///
/// ```
/// use candor_tokio::{Runtime, Stream, Tokio};
///
/// async fn dial(host: &str, port: u16) -> std::io::Result<Stream> {
///     Tokio::default().connect(host.into(), port).await
/// }
/// # drop(dial);
/// ```
#[derive(Debug)]
pub struct Stream(TcpStream);

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(buffer);
        let read = Pin::new(&mut self.0).poll_read(cx, &mut buffer);
        read.map_ok(|()| buffer.filled().len())
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, slices)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
