//! Attempts that nobody has answered yet.

use alloc::vec::Vec;

use crate::ids::{AttemptId, LeaderEpoch, RouteId};
use crate::rules::SettledAs;

use super::span::Position;

/// How an attempt was let through (S6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Passage {
    /// In this pass, alone.
    Pass(u64),
    /// While the gate was open; who opened it.
    Gate { opener: Position },
}

/// One unanswered attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Attempt {
    pub(super) id: AttemptId,
    pub(super) position: Position,
    pub(super) route: RouteId,
    pub(super) leader_epoch: LeaderEpoch,
    pub(super) passage: Passage,
    /// It is the batch's first.
    pub(super) first: bool,
    /// S7: the route or the leader epoch changed since.
    pub(super) orphaned: bool,
    /// All its bytes are with the transport.
    pub(super) handed: bool,
    /// Its batch is settled: what the answer is checked against (S13).
    pub(super) settled: Option<SettledAs>,
    /// Which log it was addressed to: K6 and S18 start another one.
    pub(super) log: u32,
}

/// The unanswered attempts of a lane, in the order of their offers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Attempts {
    next: u64,
    waiting: Vec<Attempt>,
}

impl Attempts {
    pub(super) fn shrink(&mut self) {
        self.waiting.shrink_to_fit();
    }

    pub(super) fn add(&mut self, make: impl FnOnce(AttemptId) -> Attempt) -> AttemptId {
        let id = AttemptId(self.next);
        self.next += 1;
        self.waiting.push(make(id));
        id
    }

    pub(super) fn take(&mut self, id: AttemptId) -> Option<Attempt> {
        let index = self.waiting.iter().position(|attempt| attempt.id == id)?;
        Some(self.waiting.remove(index))
    }

    pub(super) fn handed(&mut self, id: AttemptId) -> bool {
        let found = self.waiting.iter_mut().find(|attempt| attempt.id == id);
        found.map(|attempt| attempt.handed = true).is_some()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Attempt> {
        self.waiting.iter()
    }

    /// S6: attempts open on the route in use.
    pub(super) fn open(&self) -> usize {
        self.waiting.iter().filter(|attempt| !attempt.orphaned).count()
    }

    pub(super) fn open_of(&self, position: Position) -> usize {
        self.of(position).filter(|attempt| !attempt.orphaned).count()
    }

    /// Unanswered attempts of a batch that is not settled.
    pub(super) fn of(&self, position: Position) -> impl Iterator<Item = &Attempt> {
        self.waiting
            .iter()
            .filter(move |attempt| attempt.position == position && attempt.settled.is_none())
    }

    pub(super) fn orphan_all(&mut self) {
        for attempt in &mut self.waiting {
            attempt.orphaned = true;
        }
    }

    pub(super) fn settle(&mut self, position: Position, settled: SettledAs) {
        for attempt in &mut self.waiting {
            if attempt.position == position && attempt.settled.is_none() {
                attempt.settled = Some(settled);
            }
        }
    }

    /// D5: what is learned from now on is thrown away.
    pub(super) fn forget(&mut self) {
        for attempt in &mut self.waiting {
            attempt.settled = Some(SettledAs::Forgotten);
        }
    }

    pub(super) fn uses(&self, route: RouteId) -> bool {
        self.waiting.iter().any(|attempt| attempt.route == route)
    }

    /// How many unanswered attempts are older: an age without numbers that only grow.
    pub(super) fn rank(&self, id: AttemptId) -> usize {
        self.waiting.iter().filter(|attempt| attempt.id < id).count()
    }
}
