//! Candor for async-std: [`Producer`] is the face.
//!
//! async-std is discontinued (RUSTSEC-2025-0052), and its maintainers recommend smol: this crate is
//! for applications that still run on it. Nothing else depends on it.
//!
//! Give records deadlines, and do not wrap their futures in `async_std::future::timeout`: every
//! record has its verdict by its deadline, and a timeout would only throw it away. See
//! [`candor_driver`].
//!
//! ```no_run
//! use candor_async_std::{Config, Producer, Record, Verdict};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
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
//! # Ok(())
//! # }
//! ```

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use async_std::net::{TcpStream, ToSocketAddrs};

pub use candor_driver::*;

/// A producer on async-std.
///
/// ```
/// use candor_async_std::{Config, Producer};
/// assert!(Producer::parts(Config::new(["localhost"])).is_err());
/// ```
pub type Producer = candor_driver::Producer<AsyncStd>;

/// The runtime of async-std, which is global.
///
/// ```
/// let runtime = candor_async_std::AsyncStd;
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct AsyncStd;

impl Runtime for AsyncStd {
    type Stream = TcpStream;
    type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

    async fn connect(self, host: Arc<str>, port: u16) -> io::Result<TcpStream> {
        let found = (&*host, port).to_socket_addrs().await;
        let pause = |time| self.sleep_until(self.now() + time);
        let stream = connect_to_any(found, pause, TcpStream::connect).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    fn sleep_until(&self, at: Instant) -> Self::Sleep {
        let left = at.saturating_duration_since(Instant::now());
        Box::pin(async_std::task::sleep(left))
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        // It runs to its end without us.
        drop(async_std::task::spawn(task));
    }
}
