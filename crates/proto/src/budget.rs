//! One hard bound on memory (rule L5), and who is to be relieved when reported unknowns take more
//! than their share of it.

use std::collections::BTreeSet;

use candor_core::rules::Rules;

use crate::lanes::LaneKey;

/// What a record costs beside its bytes: its place in lane, ticket table and batch header, in bytes.
pub(crate) const RECORD_COST: usize = 128;

/// What a record costs more while it waits raw in an unrouted queue, in bytes.
pub(crate) const RAW_COST: usize = 256;

/// Bytes charged for every record held, in flight or not, against one limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Budget {
    limit: usize,
    used: usize,
}

impl Budget {
    pub(crate) const fn new(limit: usize) -> Self {
        Self { limit, used: 0 }
    }

    /// Whether a charge of so many bytes fits beside `other` bytes that are held elsewhere.
    pub(crate) const fn fits(&self, bytes: usize, other: usize) -> bool {
        self.used.saturating_add(bytes).saturating_add(other) <= self.limit
    }

    /// Charges bytes that [`fits`](Self::fits) agreed to.
    pub(crate) const fn charge(&mut self, bytes: usize) {
        self.used += bytes;
    }

    /// Gives back what was charged.
    pub(crate) const fn release(&mut self, bytes: usize) {
        self.used = self.used.saturating_sub(bytes);
    }

    pub(crate) const fn used(&self) -> usize {
        self.used
    }

    pub(crate) const fn limit(&self) -> usize {
        self.limit
    }
}

/// What one lane holds in reported unknowns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LaneDoubt {
    /// Bytes of records whose verdict was `Unknown` and whose resolution is to come.
    unknown: usize,
    /// How many of them a `Shed` was sent for.
    shed: usize,
    /// When the oldest of the others was reported, as a running number.
    oldest: Option<u64>,
}

/// Who holds reported unknowns, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Doubts {
    /// Bytes over all lanes that no `Shed` was sent for.
    bytes: usize,
    reports: u64,
    by_age: BTreeSet<(u64, LaneKey)>,
}

impl Doubts {
    /// So many bytes of `lane` were reported `Unknown`.
    pub(crate) fn reported(&mut self, lane: LaneKey, of: &mut LaneDoubt, bytes: usize) {
        of.unknown += bytes;
        self.bytes += bytes;
        if of.oldest.is_none() {
            of.oldest = Some(self.reports);
            self.by_age.insert((self.reports, lane));
            self.reports += 1;
        }
    }

    /// So many bytes of `lane` were resolved.
    pub(crate) fn resolved(&mut self, lane: LaneKey, of: &mut LaneDoubt, bytes: usize) {
        let shed = of.shed.min(bytes);
        of.shed -= shed;
        of.unknown = of.unknown.saturating_sub(bytes);
        self.bytes = self.bytes.saturating_sub(bytes - shed);
        if of.unknown == of.shed {
            self.forget(lane, of);
        }
    }

    /// L5: the lane that holds the oldest report, if unknowns hold more than their share. The caller
    /// sends it `Shed` and calls [`shed`](Self::shed).
    pub(crate) fn victim<R: Rules>(&self, memory: usize) -> Option<LaneKey> {
        let over = self.bytes > R::unknown_share(memory);
        over.then(|| self.by_age.first().map(|(_, lane)| *lane)).flatten()
    }

    /// `Shed` was sent to `lane`: what it holds is on its way out.
    pub(crate) fn shed(&mut self, lane: LaneKey, of: &mut LaneDoubt) {
        self.bytes = self.bytes.saturating_sub(of.unknown - of.shed);
        of.shed = of.unknown;
        self.forget(lane, of);
    }

    fn forget(&mut self, lane: LaneKey, of: &mut LaneDoubt) {
        if let Some(oldest) = of.oldest.take() {
            self.by_age.remove(&(oldest, lane));
        }
    }
}

#[cfg(test)]
mod tests {
    use candor_core::rules::Honest;

    use super::*;

    #[test]
    fn the_bound_is_hard() {
        let mut budget = Budget::new(100);
        assert!(budget.fits(60, 40));
        assert!(!budget.fits(61, 40));
        budget.charge(60);
        assert!(!budget.fits(41, 0));
        assert!(!budget.fits(usize::MAX, 1));
        budget.release(60);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn the_oldest_unknown_goes_first_and_once() {
        let mut doubts = Doubts::default();
        let (mut a, mut b) = (LaneDoubt::default(), LaneDoubt::default());
        doubts.reported(LaneKey(0), &mut a, 20);
        assert_eq!(doubts.victim::<Honest>(100), None);
        doubts.reported(LaneKey(1), &mut b, 10);
        assert_eq!(doubts.victim::<Honest>(100), Some(LaneKey(0)));
        doubts.shed(LaneKey(0), &mut a);
        assert_eq!(doubts.victim::<Honest>(100), None);
        doubts.reported(LaneKey(1), &mut b, 20);
        assert_eq!(doubts.victim::<Honest>(100), Some(LaneKey(1)));
        doubts.resolved(LaneKey(1), &mut b, 30);
        doubts.resolved(LaneKey(0), &mut a, 20);
        assert_eq!((a, b), (LaneDoubt::default(), LaneDoubt::default()));
        assert_eq!((doubts.bytes, doubts.by_age.len()), (0, 0));
    }
}
