//! The gate and the pass (S6): one batch at a time until the broker has shown that it knows us.

use crate::ids::{LeaderEpoch, RouteId};
use crate::rules::{LeaderChange, Stage};

use super::span::Position;

/// Closed until this connection, leader epoch and identity gave a 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gate {
    /// A pass is under way.
    Closed(Pass),
    /// What is unsettled and then new batches are pipelined.
    Open {
        /// The batch whose 0 opened it.
        opener: Position,
    },
}

/// The time from closing to opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pass {
    /// Only attempts offered in it count.
    pub(super) number: u64,
    pub(super) stage: Stage,
    pub(super) confirmation: Confirmation,
}

/// K5, L4: whether the pass waits for metadata newer than its question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Confirmation {
    /// It does not.
    NotNeeded,
    /// Before one more whole pass (K5).
    BeforeSecondPass,
    /// Before a stuck head may be abandoned (L4).
    BeforeAbandon,
}

impl Pass {
    /// It asked everything in vain once, and builds on that.
    pub(super) fn is_advanced(self) -> bool {
        self.stage == Stage::Second || self.confirmation != Confirmation::NotNeeded
    }

    pub(super) const fn new(number: u64) -> Self {
        Self { number, stage: Stage::First, confirmation: Confirmation::NotNeeded }
    }
}

/// Where the partition's leader is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Leader {
    pub(super) route: Option<RouteId>,
    pub(super) epoch: LeaderEpoch,
    /// L3: the highest epoch whose leader could be asked.
    pub(super) highest: LeaderEpoch,
}

impl Leader {
    pub(super) const NONE: Self =
        Self { route: None, epoch: LeaderEpoch::UNKNOWN, highest: LeaderEpoch::UNKNOWN };

    pub(super) fn change(&self, route: Option<RouteId>, epoch: LeaderEpoch) -> LeaderChange {
        if self.route != route {
            LeaderChange::Route
        } else if self.epoch != epoch {
            LeaderChange::Epoch
        } else {
            LeaderChange::None
        }
    }
}
