//! How records ended.

use candor_core::NeverReason;

/// Why records stayed unknown for good, in numbers.
///
/// ```
/// let never = candor_sim::swarm::Never::default();
/// assert!(never.by_reason().iter().any(|(reason, records)| *reason == "closed" && *records == 0));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Never {
    abandoned: u64,
    state_lost: u64,
    expired: u64,
    topic_recreated: u64,
    memory_pressure: u64,
    refused: u64,
    closed: u64,
}

impl Never {
    pub(super) const fn add(&mut self, reason: NeverReason) {
        let count = match reason {
            NeverReason::Abandoned => &mut self.abandoned,
            NeverReason::StateLost => &mut self.state_lost,
            NeverReason::Expired => &mut self.expired,
            NeverReason::TopicRecreated => &mut self.topic_recreated,
            NeverReason::MemoryPressure => &mut self.memory_pressure,
            NeverReason::Refused => &mut self.refused,
            NeverReason::Closed => &mut self.closed,
        };
        *count += 1;
    }

    /// Records by reason.
    #[must_use]
    pub const fn by_reason(&self) -> [(&'static str, u64); 7] {
        [
            ("abandoned", self.abandoned),
            ("state lost", self.state_lost),
            ("expired", self.expired),
            ("topic made anew", self.topic_recreated),
            ("memory pressure", self.memory_pressure),
            ("refused", self.refused),
            ("closed", self.closed),
        ]
    }

    /// What leads to each of these reasons in a swarm, and by which rule, in the same order.
    #[must_use]
    pub const fn explained() -> [&'static str; 7] {
        [
            "L4: the caller gives up a partition",
            "K6, K7: brokers answer 45, 59, 47 or 90 as if they had never seen us",
            "S20: brokers may have forgotten us, by age, timestamps or deletions",
            "S18: what is in doubt is not sent to another topic of the same name",
            "L5: the buffer is 24 KiB, a quarter of it for unknowns",
            "L4: a broker refuses for good what it may have written before",
            "D5: the producer is closed while brokers are away",
        ]
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> u64 {
        self.by_reason().iter().map(|(_, records)| records).sum()
    }

    fn merge(&mut self, other: &Self) {
        self.abandoned += other.abandoned;
        self.state_lost += other.state_lost;
        self.expired += other.expired;
        self.topic_recreated += other.topic_recreated;
        self.memory_pressure += other.memory_pressure;
        self.refused += other.refused;
        self.closed += other.closed;
    }
}

/// How records ended: of one run, or of many.
///
/// ```
/// assert_eq!(candor_sim::swarm::Verdicts::default().unknown, 0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdicts {
    /// Records that were accepted.
    pub accepted: u64,
    /// Verdicts `Delivered`.
    pub delivered: u64,
    /// Verdicts `NotDelivered`.
    pub not_delivered: u64,
    /// Verdicts `Unknown`.
    pub unknown: u64,
    /// Of those, records that turned out delivered.
    pub turned_delivered: u64,
    /// Of those, records that turned out not delivered.
    pub turned_not_delivered: u64,
    /// Of those, records of which nobody will find out by producing.
    pub never: Never,
    /// The latest verdict, in microseconds of virtual time behind its deadline; what the host slept
    /// is not counted.
    pub latest: u64,
}

impl Verdicts {
    pub(super) fn merge(&mut self, other: &Self) {
        self.accepted += other.accepted;
        self.delivered += other.delivered;
        self.not_delivered += other.not_delivered;
        self.unknown += other.unknown;
        self.turned_delivered += other.turned_delivered;
        self.turned_not_delivered += other.turned_not_delivered;
        self.never.merge(&other.never);
        self.latest = self.latest.max(other.latest);
    }
}
