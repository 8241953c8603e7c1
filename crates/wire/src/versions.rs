//! Which versions of which API this client speaks, and which one to use with a broker.

use core::fmt;

/// The APIs that an idempotent producer needs.
///
/// ```
/// use candor_wire::Api;
/// assert_eq!(Api::InitProducerId.key(), 22);
/// assert_eq!(Api::from_key(3), Some(Api::Metadata));
/// assert_eq!(Api::Produce.to_string(), "Produce");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Api {
    /// Appends record batches; to the partition leader.
    Produce,
    /// Brokers, topics, leaders; to any broker.
    Metadata,
    /// Which versions a broker speaks; the first request on every connection.
    ApiVersions,
    /// A producer id; to any broker.
    InitProducerId,
}

impl Api {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::Produce, Self::Metadata, Self::ApiVersions, Self::InitProducerId];

    /// The key on the wire.
    pub const fn key(self) -> i16 {
        match self {
            Self::Produce => 0,
            Self::Metadata => 3,
            Self::ApiVersions => 18,
            Self::InitProducerId => 22,
        }
    }

    /// The API of a key, if it is one of ours.
    pub fn from_key(key: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|api| api.key() == key)
    }

    /// The versions that this crate reads and writes.
    pub const fn supported(self) -> VersionRange {
        match self {
            Self::Produce => VersionRange { min: 3, max: 13 },
            Self::Metadata => VersionRange { min: 1, max: 13 },
            Self::ApiVersions | Self::InitProducerId => VersionRange { min: 0, max: 5 },
        }
    }

    /// Whether this version uses compact forms and tag buffers (KIP-482).
    pub const fn flexible(self, version: i16) -> bool {
        let from = match self {
            Self::Produce | Self::Metadata => 9,
            Self::ApiVersions => 3,
            Self::InitProducerId => 2,
        };
        version >= from
    }

    /// The name of the response, for errors.
    pub(crate) const fn response_name(self) -> &'static str {
        match self {
            Self::Produce => "Produce response",
            Self::Metadata => "Metadata response",
            Self::ApiVersions => "ApiVersions response",
            Self::InitProducerId => "InitProducerId response",
        }
    }
}

impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// An inclusive range of versions.
///
/// ```
/// use candor_wire::VersionRange;
/// let range = VersionRange { min: 3, max: 13 };
/// assert!(range.contains(13) && !range.contains(2));
/// assert_eq!(range.to_string(), "3 to 13");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VersionRange {
    /// The lowest.
    pub min: i16,
    /// The highest; below `min` the range is empty.
    pub max: i16,
}

impl VersionRange {
    /// Whether a version is in it.
    pub const fn contains(self, version: i16) -> bool {
        self.min <= version && version <= self.max
    }
}

impl fmt::Display for VersionRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.min, self.max)
    }
}

/// The highest Produce version that names topics by name and does not hint at transactions of
/// version 2 (KIP-890): the cap while a topic of the request has no known id.
pub const PRODUCE_BY_NAME: i16 = 11;

/// The first Produce version that names topics by id (KIP-516).
pub const PRODUCE_BY_ID: i16 = 13;

/// The first Metadata version that can be asked by topic id.
pub const METADATA_BY_ID: i16 = 12;

/// The version to use with a broker that offers `broker`, or `None` if there is none in common.
///
/// Produce is special: brokers since 4.0 advertise 0 and refuse 0 to 2 (KAFKA-18659), so 3 is our
/// minimum whatever they say; and 12 differs from 11 only in what it means inside transactions, so
/// it is never chosen here: ask for it with [`negotiate_at_most`].
///
/// ```
/// use candor_wire::{Api, VersionRange, negotiate};
/// let range = |min, max| VersionRange { min, max };
/// assert_eq!(negotiate(Api::Produce, range(0, 13)), Some(13));
/// assert_eq!(negotiate(Api::Produce, range(0, 12)), Some(11));
/// assert_eq!(negotiate(Api::Produce, range(0, 2)), None);
/// assert_eq!(negotiate(Api::Metadata, range(0, 99)), Some(13));
/// ```
pub const fn negotiate(api: Api, broker: VersionRange) -> Option<i16> {
    let ours = api.supported();
    match (api, negotiate_at_most(api, broker, ours.max)) {
        (Api::Produce, Some(12)) => negotiate_at_most(api, broker, PRODUCE_BY_NAME),
        (_, version) => version,
    }
}

/// As [`negotiate`], but never above `cap`: Produce requests with topics whose id is unknown take
/// [`PRODUCE_BY_NAME`].
///
/// ```
/// use candor_wire::{Api, PRODUCE_BY_NAME, VersionRange, negotiate_at_most};
/// let broker = VersionRange { min: 0, max: 13 };
/// assert_eq!(negotiate_at_most(Api::Produce, broker, PRODUCE_BY_NAME), Some(11));
/// assert_eq!(negotiate_at_most(Api::Produce, broker, 12), Some(12));
/// ```
pub const fn negotiate_at_most(api: Api, broker: VersionRange, cap: i16) -> Option<i16> {
    let ours = api.supported();
    let mut best = ours.max;
    if broker.max < best {
        best = broker.max;
    }
    if cap < best {
        best = cap;
    }
    if best >= ours.min && best >= broker.min { Some(best) } else { None }
}
