//! What may still go wrong, and when one state contains another.

use super::super::scope::{Scope, Ticks};
use super::super::step::Step;
use super::super::table::Bits;

/// What may still happen that need not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(in crate::search) struct Budget {
    pub(super) faults: u8,
    pub(super) restarts: u8,
    /// Deadlines that may pass, where they are counted.
    pub(super) ticks: u8,
}

impl Budget {
    pub(super) fn of(scope: &Scope) -> Self {
        let ticks = match scope.ticks {
            Ticks::Deadlines(times) => times,
            Ticks::Never | Ticks::Wakeups | Ticks::Always => 0,
        };
        Self { faults: scope.faults, restarts: scope.restarts, ticks }
    }

    fn sum(self) -> u32 {
        u32::from(self.faults) + u32::from(self.restarts) + u32::from(self.ticks)
    }
}

/// Budgets of a scope, in some order.
#[derive(Clone, Copy, Debug)]
pub(in crate::search) struct Budgets {
    whole: Budget,
    /// There are few enough for a set of bits.
    few: bool,
}

impl Budgets {
    pub(in crate::search) fn of(scope: &Scope) -> Self {
        let whole = Budget::of(scope);
        let size = |most: u8| u32::from(most) + 1;
        let all = size(whole.faults) * size(whole.restarts) * size(whole.ticks);
        Self { whole, few: all <= Bits::BITS && !scope.plain }
    }

    /// Whether states are compared whatever is left of their budgets.
    pub(in crate::search) fn are_few(&self) -> bool {
        self.few
    }

    /// The most that can be spent.
    pub(in crate::search) fn most(&self) -> u32 {
        self.whole.sum()
    }

    pub(in crate::search) fn spent(&self, left: Budget) -> u32 {
        self.whole.sum() - left.sum()
    }

    fn index(&self, left: Budget) -> u32 {
        let (restarts, ticks) = (u32::from(self.whole.restarts), u32::from(self.whole.ticks));
        (u32::from(left.faults) * (restarts + 1) + u32::from(left.restarts)) * (ticks + 1)
            + u32::from(left.ticks)
    }

    pub(in crate::search) fn bit(&self, left: Budget) -> Bits {
        if self.few { 1 << self.index(left) } else { 1 }
    }

    /// Budgets that hold at least as much of everything, and more of something.
    pub(in crate::search) fn above(&self, left: Budget) -> Bits {
        if !self.few {
            return 0;
        }
        let mut bits = 0;
        for faults in left.faults..=self.whole.faults {
            for restarts in left.restarts..=self.whole.restarts {
                for ticks in left.ticks..=self.whole.ticks {
                    bits |= 1 << self.index(Budget { faults, restarts, ticks });
                }
            }
        }
        bits & !self.bit(left)
    }

    /// Whether a step spends something.
    pub(in crate::search) fn costs(&self, step: Step) -> bool {
        match step {
            Step::Say(..) | Step::Fault(..) | Step::Restart { .. } => true,
            Step::Tick => self.whole.ticks > 0,
            Step::Append
            | Step::Offer
            | Step::Deliver(_)
            | Step::Answer(_)
            | Step::Replicate
            | Step::Learn
            | Step::Follow
            | Step::Expire
            | Step::Cancel(_)
            | Step::Revoke(_)
            | Step::Abandon
            | Step::Close => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_above_another_if_it_holds_more_of_something_and_less_of_nothing() {
        let scope = Scope { faults: 2, restarts: 1, ticks: Ticks::Deadlines(1), ..Scope::BASE };
        let budgets = Budgets::of(&scope);
        let all = |f: &mut dyn FnMut(Budget)| {
            for faults in 0..=2 {
                for restarts in 0..=1 {
                    (0..=1).for_each(|ticks| f(Budget { faults, restarts, ticks }));
                }
            }
        };
        let mut bits = 0;
        all(&mut |a| {
            assert_eq!(bits & budgets.bit(a), 0);
            bits |= budgets.bit(a);
            all(&mut |b| {
                let more = b.faults >= a.faults && b.restarts >= a.restarts && b.ticks >= a.ticks;
                assert_eq!(budgets.above(a) & budgets.bit(b) != 0, more && a != b);
            });
        });
        assert_eq!(bits.count_ones(), 12);
        assert_eq!(budgets.most(), 4);
    }
}
