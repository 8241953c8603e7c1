//! What a user may decide, with defaults that keep the promise.

mod error;
mod properties;

use core::time::Duration;

use candor_core::{BeyondMemory, OnDataLoss};

pub use error::ConfigError;

use crate::address::Address;
use crate::partitioner::Partitioning;

/// The settings of a producer: a typed builder, checked as a whole by [`check`](Self::check) and by
/// `Producer::new`.
///
/// ```
/// use candor_proto::Config;
/// use core::time::Duration;
///
/// let config = Config::new(["localhost:9092"]).linger(Duration::from_millis(20)).client_id("shop");
/// assert!(config.check().is_ok());
/// let none: [&str; 0] = [];
/// assert!(Config::new(none).check().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    pub(crate) bootstrap: Vec<String>,
    pub(crate) client_id: String,
    pub(crate) deadline: Duration,
    pub(crate) linger: Duration,
    pub(crate) batch_size: usize,
    pub(crate) memory: usize,
    pub(crate) max_request_size: usize,
    pub(crate) max_response_size: usize,
    pub(crate) max_in_flight: usize,
    pub(crate) write_window: usize,
    pub(crate) request_timeout: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) idle_timeout: Duration,
    pub(crate) retry_backoff: Backoff,
    pub(crate) reconnect_backoff: Backoff,
    pub(crate) metadata_max_age: Duration,
    pub(crate) metadata_max_idle: Duration,
    pub(crate) auto_create_topics: bool,
    pub(crate) state_ttl: Duration,
    pub(crate) partitioning: Partitioning,
    pub(crate) on_data_loss: OnDataLoss,
    pub(crate) beyond_memory: BeyondMemory,
    pub(crate) trust_base_offset: bool,
}

/// Waits that double from the first to the longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Backoff {
    pub(crate) first: Duration,
    pub(crate) longest: Duration,
}

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// Setters: each takes the value and gives the builder back.
macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident: $type:ty => $($path:ident).+;)*) => {
        $($(#[$doc])* #[must_use] pub fn $name(mut self, value: $type) -> Self {
            self.$($path).+ = value;
            self
        })*
    };
}

impl Config {
    /// Defaults, and these brokers (`host:port`) to ask first. One that answers is enough.
    pub fn new<A: Into<String>>(bootstrap: impl IntoIterator<Item = A>) -> Self {
        Self {
            bootstrap: bootstrap.into_iter().map(Into::into).collect(),
            client_id: "candor".to_owned(),
            deadline: Duration::from_secs(120),
            linger: Duration::from_millis(5),
            batch_size: 256 * KIB,
            memory: 64 * MIB,
            max_request_size: MIB,
            max_response_size: 16 * MIB,
            max_in_flight: 5,
            write_window: MIB,
            request_timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(540),
            retry_backoff: Backoff {
                first: Duration::from_millis(100),
                longest: Duration::from_secs(1),
            },
            reconnect_backoff: Backoff {
                first: Duration::from_millis(50),
                longest: Duration::from_secs(1),
            },
            metadata_max_age: Duration::from_secs(300),
            metadata_max_idle: Duration::from_secs(300),
            auto_create_topics: true,
            state_ttl: Duration::from_secs(20 * 3600),
            partitioning: Partitioning::default(),
            on_data_loss: OnDataLoss::Continue,
            beyond_memory: BeyondMemory::Keep,
            trust_base_offset: false,
        }
    }

    /// Name that brokers see in logs, metrics and quotas. Default `candor`.
    #[must_use]
    pub fn client_id(mut self, id: impl Into<String>) -> Self {
        self.client_id = id.into();
        self
    }

    setters! {
        /// How long after `send` a record has its verdict at the latest, unless the record says
        /// otherwise. Default 120 s, at most `state_ttl`. Java: `delivery.timeout.ms`.
        deadline: Duration => deadline;
        /// How long a batch waits to be filled. Default 5 ms. Java: `linger.ms`.
        linger: Duration => linger;
        /// Size in bytes at which a batch is full. Default 256 KiB. Java: `batch.size`.
        batch_size: usize => batch_size;
        /// Bound in bytes on all records held, those in flight included. Default 64 MiB.
        /// Java: `buffer.memory`.
        memory: usize => memory;
        /// Bound in bytes on a record and on a request. Default 1 MiB. Java: `max.request.size`.
        max_request_size: usize => max_request_size;
        /// Longest response in bytes that is read; a longer one ends the connection. Default 16 MiB.
        max_response_size: usize => max_response_size;
        /// Produce requests open on a connection, `1..=5`. Default 5.
        /// Java: `max.in.flight.requests.per.connection`.
        max_in_flight: usize => max_in_flight;
        /// Nothing new is offered to a connection with more bytes than this unsent.
        /// Default 1 MiB.
        write_window: usize => write_window;
        /// How long an answer may take; then its connection ends. Default 30 s.
        /// Java: `request.timeout.ms`.
        request_timeout: Duration => request_timeout;
        /// How long connecting and greeting may take. Default 10 s. Where any broker will do, the
        /// next one is dialled beside it after half a second.
        /// Java: `socket.connection.setup.timeout.ms`.
        connect_timeout: Duration => connect_timeout;
        /// A connection without traffic is closed after this. Default 9 min.
        /// Java: `connections.max.idle.ms`.
        idle_timeout: Duration => idle_timeout;
        /// First wait between two attempts of a batch or request. Default 100 ms.
        /// Java: `retry.backoff.ms`.
        retry_backoff: Duration => retry_backoff.first;
        /// Longest wait between two attempts. Default 1 s. Java: `retry.backoff.max.ms`.
        retry_backoff_max: Duration => retry_backoff.longest;
        /// First wait before connecting again to a broker that failed. Default 50 ms.
        /// Java: `reconnect.backoff.ms`.
        reconnect_backoff: Duration => reconnect_backoff.first;
        /// Longest wait before connecting again. Default 1 s. Java: `reconnect.backoff.max.ms`.
        reconnect_backoff_max: Duration => reconnect_backoff.longest;
        /// Metadata older than this is asked for again. Default 5 min. Java: `metadata.max.age.ms`.
        metadata_max_age: Duration => metadata_max_age;
        /// A topic unused for this long is no longer asked for. Default 5 min.
        /// Java: `metadata.max.idle.ms`.
        metadata_max_idle: Duration => metadata_max_idle;
        /// Whether brokers may create topics that we ask for, if they are set up so. Default true.
        auto_create_topics: bool => auto_create_topics;
        /// How long brokers are relied upon to remember us. Default 20 h; keep it below
        /// the brokers' `producer.id.expiration.ms`.
        state_ttl: Duration => state_ttl;
        /// Who chooses the partition of a record that names none. Default: as the Java client.
        partitioning: Partitioning => partitioning;
        /// What a partition does after it lost acknowledged records. Default: goes on.
        on_data_loss: OnDataLoss => on_data_loss;
        /// What happens to what is in doubt when brokers may have forgotten us. Default:
        /// it is not resent.
        beyond_memory: BeyondMemory => beyond_memory;
        /// Whether `base_offset = -1` beside the codes 3 and 6 proves "not appended" (holds
        /// on Apache Kafka 3.9 to 4.4). Default false.
        trust_base_offset: bool => trust_base_offset;
    }

    /// Checks everything that can be checked without a broker.
    ///
    /// # Errors
    ///
    /// The first setting that cannot work, and what to do about it.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.addresses()?;
        self.check_sizes()?;
        self.check_times()
    }

    /// The bootstrap addresses, at least one.
    ///
    /// # Errors
    ///
    /// There is none, or one that is no address.
    pub fn addresses(&self) -> Result<Vec<Address>, ConfigError> {
        if self.bootstrap.is_empty() {
            return Err(ConfigError::NoBootstrap);
        }
        self.bootstrap.iter().map(|text| text.parse().map_err(ConfigError::Address)).collect()
    }

    fn check_sizes(&self) -> Result<(), ConfigError> {
        let range = |setting, problem| Err(ConfigError::OutOfRange { setting, problem });
        if self.client_id.len() > i16::MAX as usize {
            return range("client_id", "is longer than 32767 bytes: shorten it");
        }
        if !(1..=5).contains(&self.max_in_flight) {
            return range("max_in_flight", "must be 1 to 5: brokers remember five batches");
        }
        if self.max_request_size == 0 || self.max_request_size > 100 * MIB {
            return range("max_request_size", "must be 1 byte to 100 MiB, which brokers accept");
        }
        if self.batch_size > self.max_request_size {
            return range("batch_size", "is larger than max_request_size: lower it or raise that");
        }
        if self.max_response_size < 4 * KIB || self.max_response_size > i32::MAX as usize {
            return range("max_response_size", "must be 4 KiB to 2 GiB");
        }
        if self.write_window == 0 {
            return range("write_window", "must be at least 1 byte");
        }
        if self.memory == 0 {
            return range("memory", "must leave room for a record");
        }
        Ok(())
    }

    fn check_times(&self) -> Result<(), ConfigError> {
        let range = |setting, problem| Err(ConfigError::OutOfRange { setting, problem });
        if self.deadline > self.state_ttl {
            return range(
                "deadline",
                "is longer than state_ttl (20 h unless set): brokers may forget us before it; shorten it",
            );
        }
        if self.request_timeout < Duration::from_millis(200) {
            return range("request_timeout", "must be at least 200 ms");
        }
        if self.request_timeout > Duration::from_millis(i32::MAX as u64) {
            return range("request_timeout", "must fit 31 bits of milliseconds");
        }
        if self.connect_timeout.is_zero() {
            return range("connect_timeout", "must be longer than nothing");
        }
        if self.idle_timeout < Duration::from_secs(1) {
            return range("idle_timeout", "must be at least 1 s");
        }
        if self.metadata_max_age < Duration::from_millis(100) {
            return range("metadata_max_age", "must be at least 100 ms");
        }
        for (setting, backoff) in
            [("retry_backoff", self.retry_backoff), ("reconnect_backoff", self.reconnect_backoff)]
        {
            if backoff.first < Duration::from_millis(1) {
                return range(setting, "must be at least 1 ms: brokers are not to be hammered");
            }
            if backoff.first > backoff.longest {
                return range(setting, "is longer than its maximum: lower it or raise that");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Config {
        Config::new(["localhost:9092"])
    }

    #[test]
    fn defaults_pass() {
        assert_eq!(good().check(), Ok(()));
    }

    #[test]
    fn what_cannot_work_is_named() {
        let bad = [
            ("deadline", good().deadline(Duration::from_secs(100 * 3600))),
            ("batch_size", good().batch_size(2 * MIB)),
            ("max_in_flight", good().max_in_flight(6)),
            ("max_in_flight", good().max_in_flight(0)),
            ("retry_backoff", good().retry_backoff(Duration::from_secs(2))),
            ("retry_backoff", good().retry_backoff(Duration::ZERO)),
            ("reconnect_backoff", good().reconnect_backoff_max(Duration::ZERO)),
            ("request_timeout", good().request_timeout(Duration::from_millis(199))),
            ("max_request_size", good().max_request_size(101 * MIB)),
            ("memory", good().memory(0)),
        ];
        for (name, config) in bad {
            match config.check() {
                Err(ConfigError::OutOfRange { setting, .. }) => assert_eq!(setting, name),
                other => panic!("{name}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_bad_address_is_shown() {
        let error = Config::new(["localhost"]).check().unwrap_err();
        assert!(error.to_string().contains("`localhost`"), "{error}");
    }
}
