//! The handle that applications hold.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use candor_core::{Span, Ticket};
use candor_proto::{Config, ConfigError, Producer as Machine, Record, Refused, Unused, Waiting};

use crate::clock::Clock;
use crate::conduct::{Conduct, Honest};
use crate::connect::{Connect, ConnectError};
use crate::drive::Driver;
use crate::finish::{Close, Flush};
use crate::notices::Notices;
use crate::runtime::Runtime;
use crate::send::{Enqueue, Handle, Sending};
use crate::send_all::SendAll;
use crate::shared::Shared;
use crate::stats::Stats;

/// How long closing may take after the last handle was dropped.
const CLOSE_WHEN_DROPPED: Span = Span::from_secs(30);

/// An idempotent Kafka producer. Clones are handles of the same producer, for any number of tasks
/// and threads.
///
/// Every record has a deadline ([`Config::deadline`], [`Record::deadline`]) and exactly one verdict
/// by then: wrapping its future in a `timeout` is never necessary, and would only throw the verdict
/// away. To stop earlier and still know, use [`Sending::until`].
///
/// When the last handle is dropped (futures and [`Handle`]s do not count), the producer flushes and
/// closes in the background, within 30 seconds; use [`close`](Self::close) to wait for it.
///
/// ```no_run
/// # use candor_driver::{Config, Producer, Record, Runtime, Verdict};
/// # async fn example<R: Runtime + Default>() -> Result<(), Box<dyn std::error::Error>> {
/// let producer = Producer::<R>::connect(Config::new(["localhost:9092"])).await?;
/// match producer.send(Record::to("orders").key("42").value("created")).await {
///     Verdict::Delivered(at) => println!("{}-{}@{:?}", at.topic, at.partition, at.offset),
///     Verdict::NotDelivered(no) => eprintln!("safe to send again: {no}"),
///     Verdict::Unknown(u) => eprintln!("may be written; later: {:?}", u.resolved().await),
/// }
/// # Ok(())
/// # }
/// ```
pub struct Producer<R> {
    shared: Arc<Shared>,
    last: Arc<LastHandle>,
    runtime: PhantomData<fn() -> R>,
}

/// Closes the producer when the last handle is gone.
struct LastHandle(Arc<Shared>);

impl Drop for LastHandle {
    fn drop(&mut self) {
        self.0.enter(|state, now| {
            if state.life.is_open() {
                state.close(now, now + CLOSE_WHEN_DROPPED);
            }
        });
    }
}

impl<R: Runtime + Default> Producer<R> {
    /// A producer that has reached a broker and got a producer id from it. Runs its driver on the
    /// runtime.
    ///
    /// # Errors
    ///
    /// The configuration cannot work, every bootstrap address failed once, or the broker gives no
    /// producer id; the error says what the last one said.
    pub async fn connect(config: Config) -> Result<Self, ConnectError> {
        Self::connect_on(R::default(), config).await
    }

    /// A producer that connects when the first record asks for it. Never waits, and runs its driver
    /// on the runtime.
    ///
    /// # Errors
    ///
    /// The configuration cannot work; the error says what to do.
    pub fn lazy(config: Config) -> Result<Self, ConfigError> {
        Self::lazy_on(R::default(), config)
    }

    /// A producer and the driver future that does its work: run it yourself, where and how you like.
    ///
    /// # Errors
    ///
    /// The configuration cannot work; the error says what to do.
    pub fn parts(config: Config) -> Result<(Self, Driver<R>), ConfigError> {
        Self::parts_on(R::default(), config)
    }
}

impl<R: Runtime> Producer<R> {
    /// As [`connect`](Self::connect), on this runtime.
    ///
    /// # Errors
    ///
    /// As those of `connect`.
    pub async fn connect_on(runtime: R, config: Config) -> Result<Self, ConnectError> {
        Self::connect_under(runtime, config, &Honest).await
    }

    pub(crate) async fn connect_under(
        runtime: R,
        config: Config,
        conduct: &'static dyn Conduct,
    ) -> Result<Self, ConnectError> {
        let parts = Self::parts_under(runtime.clone(), config.clone(), conduct);
        let (producer, driver) = parts.map_err(ConnectError::Config)?;
        // Listens before the driver runs: no failure is missed.
        let connect = Connect::new(&producer.shared, &config);
        runtime.spawn(driver);
        connect.await?;
        Ok(producer)
    }

    /// As [`lazy`](Self::lazy), on this runtime.
    ///
    /// # Errors
    ///
    /// As those of `lazy`.
    pub fn lazy_on(runtime: R, config: Config) -> Result<Self, ConfigError> {
        let (producer, driver) = Self::parts_on(runtime.clone(), config)?;
        runtime.spawn(driver);
        Ok(producer)
    }

    /// As [`parts`](Self::parts), on this runtime.
    ///
    /// # Errors
    ///
    /// As those of `parts`.
    pub fn parts_on(runtime: R, config: Config) -> Result<(Self, Driver<R>), ConfigError> {
        Self::parts_under(runtime, config, &Honest)
    }

    pub(crate) fn parts_under(
        runtime: R,
        config: Config,
        conduct: &'static dyn Conduct,
    ) -> Result<(Self, Driver<R>), ConfigError> {
        let seed = RandomState::new().build_hasher().finish();
        let clock = Clock::anchored(runtime.now(), runtime.wall());
        let machine = Machine::new(&config, seed, clock.at(runtime.now()))?;
        let shared = Shared::new(&runtime, machine, clock, conduct);
        let last = Arc::new(LastHandle(Arc::clone(&shared)));
        let driver = Driver::new(runtime, Arc::clone(&shared));
        Ok((Self { shared, last, runtime: PhantomData }, driver))
    }

    /// Sends a record; the future's output is its verdict. Waits for room in memory, in order; the
    /// deadline counts from this call.
    pub fn send<'r>(&self, record: Record<'r>) -> Sending<'r> {
        Sending::new(&self.shared, record)
    }

    /// Puts a record into the order; the future's output is a [`Handle`] on it. Waits for room in
    /// memory, in order; the deadline counts from this call.
    pub fn enqueue<'r>(&self, record: Record<'r>) -> Enqueue<'r> {
        Enqueue::new(&self.shared, record)
    }

    /// As [`enqueue`](Self::enqueue), but never waits, and nobody who waits is overtaken.
    ///
    /// # Errors
    ///
    /// The record is handed back, with the reason: no room, or it can never be accepted.
    ///
    /// ```no_run
    /// # use candor_driver::{Producer, Record, Runtime, WhyRefused};
    /// # async fn example<R: Runtime>(producer: &Producer<R>) {
    /// let mut waiting = Vec::new();
    /// for line in ["created", "paid", "sent"] {
    ///     match producer.try_send(Record::to("orders").key("42").value(line)) {
    ///         Ok(handle) => waiting.push(handle),
    ///         // Come back later, or wait for room as `enqueue` does.
    ///         Err(refused) if refused.why == WhyRefused::Full => drop(refused.record),
    ///         Err(refused) => eprintln!("never: {}", refused.why),
    ///     }
    /// }
    /// for handle in waiting {
    ///     println!("{:?}", handle.await);
    /// }
    /// # }
    /// ```
    #[allow(clippy::result_large_err, reason = "the record comes back without an allocation")]
    pub fn try_send<'r>(&self, record: Record<'r>) -> Result<Handle, Refused<'r>> {
        let ticket = self.shared.enter(|state, now| state.append(now, now, record, None))?;
        Ok(Handle::new(Arc::clone(&self.shared), ticket))
    }

    /// Sends many records, in this order; the future's output is their verdicts, in the same order.
    /// All deadlines count from this call.
    pub fn send_all<'r, I>(&self, records: I) -> SendAll<'r, I::IntoIter>
    where
        I: IntoIterator<Item = Record<'r>>,
    {
        SendAll::new(&self.shared, records.into_iter())
    }

    /// Waits until every record sent before has its verdict; does not wait for resolutions.
    pub fn flush(&self) -> Flush {
        Flush::new(&self.shared)
    }

    /// Takes no more records, and waits until everything is told: by `within` at the latest, every
    /// record has its verdict and every `Unknown` its resolution.
    pub fn close(&self, within: Duration) -> Close {
        Close::new(&self.shared, within)
    }

    /// Gives up what is in doubt on a partition: it is not resent, and ends `Never(Abandoned)`
    /// unless an answer is still to come; the rest goes on at once. The notice
    /// [`Fence`](candor_core::Notice::Fence) tells from which offset on nothing of it can appear.
    ///
    /// # Errors
    ///
    /// No record was ever sent to this partition.
    ///
    /// ```no_run
    /// # use candor_driver::{Producer, Runtime};
    /// # async fn example<R: Runtime>(producer: &Producer<R>) -> Result<(), candor_driver::Unused> {
    /// producer.abandon("orders", 3)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn abandon(&self, topic: &str, partition: u32) -> Result<(), Unused> {
        // Partitions beyond the numbers of Kafka were never used.
        let partition = i32::try_from(partition).unwrap_or(-1);
        self.shared.enter(|state, now| state.machine.abandon(now, topic, partition))
    }

    /// What happened so far, and what is going on.
    pub fn stats(&self) -> Stats {
        self.shared.enter(|state, _| state.stats())
    }

    /// A stream of what people should know, from now on.
    pub fn notices(&self) -> Notices {
        Notices::new(Arc::clone(&self.shared))
    }

    /// What a record is waiting for.
    pub fn why(&self, ticket: Ticket) -> Waiting {
        self.shared.enter(|state, _| state.machine.why(ticket))
    }
}

#[cfg(test)]
impl<R> Producer<R> {
    pub(crate) const fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

impl<R> Clone for Producer<R> {
    fn clone(&self) -> Self {
        let (shared, last) = (Arc::clone(&self.shared), Arc::clone(&self.last));
        Self { shared, last, runtime: PhantomData }
    }
}

impl<R> fmt::Debug for Producer<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer").finish_non_exhaustive()
    }
}
