//! Virtual time, and the clock that the producer's host reads, which may go back.

use candor_core::Instant;

/// Both clocks, in microseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Clock {
    /// The world's time. Never goes back.
    pub(super) now: u64,
    /// How far the host's clock is behind.
    skew: u64,
    /// The latest time that the producer was ever told.
    told: u64,
    /// The host does nothing before.
    pub(super) asleep_until: u64,
}

impl Clock {
    pub(super) const fn new(begin: u64) -> Self {
        Self { now: begin, skew: 0, told: begin, asleep_until: begin }
    }

    /// What the host reads, to be told to the producer.
    pub(super) fn tell(&mut self) -> Instant {
        let reads = self.now.saturating_sub(self.skew);
        self.told = self.told.max(reads);
        Instant::from_micros(reads)
    }

    /// What the producer takes the time to be: it never goes back (D1).
    pub(super) const fn believed(&self) -> u64 {
        self.told
    }

    /// The host's clock is set back, or right again.
    pub(super) const fn set_back(&mut self, by: u64) {
        self.skew = by;
    }

    /// Whether the host's clock is behind.
    pub(super) const fn is_behind(&self) -> bool {
        self.skew > 0
    }

    /// When the host's clock will show `at`, if nobody touches it.
    pub(super) fn when(&self, at: Instant) -> u64 {
        at.as_micros().saturating_add(self.skew).max(self.asleep_until)
    }
}
