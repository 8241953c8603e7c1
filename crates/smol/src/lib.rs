//! Candor for smol: [`Producer`] is the face.
//!
//! Give records deadlines, and do not race their futures against timers: every record has its
//! verdict by its deadline, and a timeout would only throw it away. See [`candor_driver`].
//!
//! ```no_run
//! use candor_smol::{Config, Producer, Record, Verdict};
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
use std::net::{TcpStream, ToSocketAddrs};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Instant;

use async_executor::Executor;
use async_io::{Async, Timer};

pub use candor_driver::*;

/// A producer on smol.
///
/// ```
/// use candor_smol::{Config, Producer};
/// assert!(Producer::parts(Config::new(["localhost"])).is_err());
/// ```
pub type Producer = candor_driver::Producer<Smol>;

/// Sockets and timers of `async-io`; drivers run on one thread of their own. To run a driver on an
/// executor of yours, use `Producer::parts`.
///
/// ```
/// let runtime = candor_smol::Smol;
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Smol;

/// The executor of the drivers, if its thread could be started.
fn executor() -> Option<&'static Executor<'static>> {
    static EXECUTOR: Executor<'static> = Executor::new();
    static STARTED: OnceLock<bool> = OnceLock::new();
    let start = || {
        let run = || async_io::block_on(EXECUTOR.run(std::future::pending::<()>()));
        std::thread::Builder::new().name("candor".to_owned()).spawn(run).is_ok()
    };
    STARTED.get_or_init(start).then_some(&EXECUTOR)
}

impl Runtime for Smol {
    type Stream = Async<TcpStream>;
    type Sleep = Sleep;

    async fn connect(self, host: Arc<str>, port: u16) -> io::Result<Async<TcpStream>> {
        let found = blocking::unblock(move || (&*host, port).to_socket_addrs()).await;
        let pause = |time| self.sleep_until(self.now() + time);
        let stream = connect_to_any(found, pause, Async::<TcpStream>::connect).await?;
        stream.get_ref().set_nodelay(true)?;
        Ok(stream)
    }

    fn sleep_until(&self, at: Instant) -> Sleep {
        Sleep(Timer::at(at))
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        // Without a thread the task is dropped, which ends everything truthfully.
        if let Some(executor) = executor() {
            executor.spawn(task).detach();
        }
    }
}

/// A timer.
///
/// ```
/// use candor_smol::{Runtime, Sleep, Smol};
/// let due: Sleep = Smol.sleep_until(std::time::Instant::now());
/// async_io::block_on(due);
/// ```
#[derive(Debug)]
pub struct Sleep(Timer);

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(cx).map(|_| ())
    }
}
