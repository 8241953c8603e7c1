//! What differs between broker versions, and what a topic or broker can be told.

/// Which broker the model imitates.
///
/// A further version is one more variant and its line in each method here; no other file asks
/// for a version.
///
/// ```
/// use candor_sim::broker::{NoState, Profile};
/// assert_eq!(Profile::V2_4.no_state(), NoState::UnknownProducer);
/// assert_eq!(Profile::V4_4.max_versions().produce, 13);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Profile {
    /// Apache Kafka 2.4: a producer without state must start at 0, else 59.
    V2_4,
    /// Apache Kafka 3.9: the last one without topic ids in Produce and without timestamp limits.
    V3_9,
    /// Apache Kafka 4.0.
    V4_0,
    /// Apache Kafka 4.3: Produce by topic id.
    V4_3,
    /// Apache Kafka 4.4.
    V4_4,
    /// Apache Kafka 4.5 as announced (KAFKA-15591): an empty log accepts no first sequence but 0.
    V4_5,
}

/// What a broker says to a first sequence that is not 0 when it has no state of the producer.
///
/// ```
/// use candor_sim::broker::{NoState, Profile};
/// assert_eq!(Profile::V3_9.no_state(), NoState::Accept);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NoState {
    /// Accept it, whatever it is (KIP-360, 2.5 to 4.4).
    Accept,
    /// 59 (1.0 to 2.4).
    UnknownProducer,
    /// 45 if the log never held a record, otherwise accept (KAFKA-15591).
    OutOfOrderIfVirgin,
}

/// The highest version a profile advertises per API; the lowest is 0 everywhere.
///
/// ```
/// assert_eq!(candor_sim::broker::Profile::V3_9.max_versions().metadata, 12);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ApiMax {
    /// Produce (key 0).
    pub produce: i16,
    /// Metadata (key 3).
    pub metadata: i16,
    /// InitProducerId (key 22).
    pub init_producer_id: i16,
    /// ApiVersions (key 18).
    pub api_versions: i16,
}

impl Profile {
    /// The profiles whose answers were measured on real brokers.
    pub const MEASURED: [Self; 4] = [Self::V3_9, Self::V4_0, Self::V4_3, Self::V4_4];

    /// What a producer without state gets.
    #[must_use]
    pub fn no_state(self) -> NoState {
        match self {
            Self::V2_4 => NoState::UnknownProducer,
            Self::V3_9 | Self::V4_0 | Self::V4_3 | Self::V4_4 => NoState::Accept,
            Self::V4_5 => NoState::OutOfOrderIfVirgin,
        }
    }

    /// What ApiVersions advertises.
    #[must_use]
    pub fn max_versions(self) -> ApiMax {
        let (produce, metadata, init_producer_id, api_versions) = match self {
            Self::V2_4 => (8, 9, 2, 3),
            Self::V3_9 => (11, 12, 5, 4),
            Self::V4_0 => (12, 13, 5, 4),
            Self::V4_3 => (13, 13, 5, 4),
            Self::V4_4 | Self::V4_5 => (13, 13, 5, 5),
        };
        ApiMax { produce, metadata, init_producer_id, api_versions }
    }

    /// The lowest Produce version that is served, whatever is advertised (KIP-896); below it the
    /// connection is closed.
    #[must_use]
    pub fn min_produce(self) -> i16 {
        match self {
            Self::V2_4 | Self::V3_9 => 0,
            Self::V4_0 | Self::V4_3 | Self::V4_4 | Self::V4_5 => 3,
        }
    }

    /// Whether the high watermark stands still while the ISR is smaller than
    /// `min.insync.replicas` (KIP-966). Where it does not, a pending batch can get 20.
    #[must_use]
    pub fn holds_watermark(self) -> bool {
        self != Self::V2_4
    }

    /// Settings of a new topic.
    #[must_use]
    pub fn default_config(self) -> Config {
        let timestamp_after_max_ms = match self {
            Self::V2_4 | Self::V3_9 => i64::MAX,
            Self::V4_0 | Self::V4_3 | Self::V4_4 | Self::V4_5 => 3_600_000,
        };
        Config {
            max_message_bytes: 1_048_588,
            segment_bytes: 1 << 30,
            min_insync_replicas: 1,
            timestamp_before_max_ms: i64::MAX,
            timestamp_after_max_ms,
            timestamp_type: TimestampType::CreateTime,
            compacted: false,
            producer_expiration_ms: 86_400_000,
            first_sequence: 0,
        }
    }
}

/// `message.timestamp.type`.
///
/// ```
/// use candor_sim::broker::{Profile, TimestampType};
/// assert_eq!(Profile::V4_4.default_config().timestamp_type, TimestampType::CreateTime);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TimestampType {
    /// Records keep the producer's timestamps.
    CreateTime,
    /// Records get the broker's time of the append.
    LogAppendTime,
}

/// Topic settings that steer an append, and the broker's memory of producers. All can change at
/// any time.
///
/// ```
/// use candor_sim::broker::{Config, Profile};
/// let strict = Config { min_insync_replicas: 2, ..Profile::V4_4.default_config() };
/// assert_eq!(strict.max_message_bytes, 1_048_588);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Config {
    /// `max.message.bytes`: larger batches get 10.
    pub max_message_bytes: i32,
    /// `segment.bytes`: larger batches get 18. (The model rolls segments only when told to.)
    pub segment_bytes: i32,
    /// `min.insync.replicas`.
    pub min_insync_replicas: usize,
    /// `message.timestamp.before.max.ms`: how old a record may claim to be.
    pub timestamp_before_max_ms: i64,
    /// `message.timestamp.after.max.ms`: how far ahead a record may claim to be.
    pub timestamp_after_max_ms: i64,
    /// `message.timestamp.type`.
    pub timestamp_type: TimestampType,
    /// `cleanup.policy=compact`: records need a key.
    pub compacted: bool,
    /// `producer.id.expiration.ms` of the brokers.
    pub producer_expiration_ms: i64,
    /// The sequence that an epoch must start with: 0 at every real broker. Checks that want to be
    /// near the last sequence begin there, at both ends.
    pub first_sequence: i32,
}
