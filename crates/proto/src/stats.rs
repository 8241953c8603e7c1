//! Numbers for people.

use candor_core::{LeaderEpoch, RouteId};

/// What happened so far, and what is going on.
///
/// ```
/// use candor_core::Instant;
/// use candor_proto::{Config, Producer};
/// let producer: Producer =
///     Producer::new(&Config::new(["a:1"]), 0, Instant::EPOCH).unwrap();
/// assert_eq!(producer.stats().counts.accepted, 0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Events since the producer was made.
    pub counts: Counts,
    /// Records without a verdict.
    pub waiting: u64,
    /// Bytes held, those in flight included.
    pub memory: usize,
    /// Bound on them.
    pub memory_limit: usize,
    /// Partitions that records went to.
    pub partitions: usize,
    /// Connections that are open, being opened or being closed; none once the producer is closed.
    pub connections: usize,
    /// How often `now` went back, and was clamped.
    pub clock_went_back: u64,
}

/// Events since a producer was made.
///
/// ```
/// assert_eq!(candor_proto::Counts::default().delivered, 0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Records accepted.
    pub accepted: u64,
    /// Verdicts `Delivered`.
    pub delivered: u64,
    /// Verdicts `NotDelivered`.
    pub not_delivered: u64,
    /// Verdicts `Unknown`.
    pub unknown: u64,
    /// Of those, how many were resolved, `Never` included.
    pub resolved: u64,
    /// Batches offered, each attempt counted.
    pub offers: u64,
    /// Produce requests made.
    pub requests: u64,
    /// Connections that failed.
    pub failures: u64,
    /// Events that a lane refused: more than none is a bug of ours.
    pub refused_by_lane: u64,
}

/// A partition's leader as its lane was told last (S7). An idle lane hears of nothing; when it has work
/// again it is told what is so then.
///
/// ```
/// use candor_core::Instant;
/// use candor_proto::{Config, Producer};
/// let producer: Producer =
///     Producer::new(&Config::new(["a:1"]), 0, Instant::EPOCH).unwrap();
/// assert_eq!(producer.leader("orders", 0), None, "nothing was sent there");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionLeader {
    /// The connection to it; none while there is none.
    pub route: Option<RouteId>,
    /// Its epoch.
    pub epoch: LeaderEpoch,
    /// How often the lane was told another one, modulo 2^32: each time orphans what is open.
    pub changes: u32,
}
