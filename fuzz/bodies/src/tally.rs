//! How the records of a run ended.

use core::ops::Add;

use candor_core::Verdict;

/// How many records of a run got which verdict: a body that never gets far proves nothing.
///
/// ```
/// use candor_core::rules::Honest;
/// let tally = candor_fuzz_bodies::peer_under::<Honest>(&[]);
/// assert_eq!(tally, candor_fuzz_bodies::Tally::default());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Verdicts `Delivered`.
    pub delivered: usize,
    /// Verdicts `NotDelivered`.
    pub not_delivered: usize,
    /// Verdicts `Unknown`.
    pub unknown: usize,
    /// Of those, how many were resolved.
    pub resolved: usize,
}

impl Tally {
    pub(crate) fn count(verdict: Option<Verdict>, resolved: bool) -> Self {
        let mut one = Self { resolved: resolved.into(), ..Self::default() };
        match verdict {
            Some(Verdict::Delivered { .. }) => one.delivered = 1,
            Some(Verdict::NotDelivered(_)) => one.not_delivered = 1,
            Some(Verdict::Unknown(_)) => one.unknown = 1,
            None => {}
        }
        one
    }
}

impl Add for Tally {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            delivered: self.delivered + other.delivered,
            not_delivered: self.not_delivered + other.not_delivered,
            unknown: self.unknown + other.unknown,
            resolved: self.resolved + other.resolved,
        }
    }
}
