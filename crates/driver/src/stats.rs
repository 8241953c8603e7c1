//! Numbers for people.

/// What happened so far, and what is going on.
///
/// ```no_run
/// # fn example<R: candor_driver::Runtime>(producer: &candor_driver::Producer<R>) {
/// let stats = producer.stats();
/// println!("{} without a verdict, {} bytes", stats.machine.waiting, stats.machine.memory);
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Records, requests, memory, connections.
    pub machine: candor_proto::Stats,
    /// Records that wait for room.
    pub in_line: usize,
    /// Verdicts that nobody waited for: their handle or `send` future was dropped.
    pub unclaimed: u64,
    /// How `Unknown`s were resolved.
    pub resolutions: Tally,
}

/// How `Unknown`s were resolved, since the producer was made.
///
/// ```
/// assert_eq!(candor_driver::Tally::default().never, 0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// They are in the log.
    pub resolved_delivered: u64,
    /// They are not, and never will be.
    pub resolved_not_delivered: u64,
    /// Only the log can tell.
    pub never: u64,
}

/// How a producer ended: every accepted record is counted once among the verdicts, and every
/// `unknown` once among the resolutions.
///
/// ```
/// let summary = candor_driver::Summary::default();
/// assert_eq!(summary.accepted, summary.delivered + summary.not_delivered + summary.unknown);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Records accepted.
    pub accepted: u64,
    /// Verdicts `Delivered`.
    pub delivered: u64,
    /// Verdicts `NotDelivered`.
    pub not_delivered: u64,
    /// Verdicts `Unknown`.
    pub unknown: u64,
    /// What became of those.
    pub resolutions: Tally,
    /// Verdicts that nobody waited for.
    pub unclaimed: u64,
}

impl Stats {
    pub(crate) const fn summary(&self) -> Summary {
        let counts = self.machine.counts;
        Summary {
            accepted: counts.accepted,
            delivered: counts.delivered,
            not_delivered: counts.not_delivered,
            unknown: counts.unknown,
            resolutions: self.resolutions,
            unclaimed: self.unclaimed,
        }
    }
}
