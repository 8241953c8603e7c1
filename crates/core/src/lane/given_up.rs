//! Batches that were given up in doubt: nothing of them is offered again, but an answer may still
//! come, and until then a late 0 makes them delivered.

use alloc::vec::Vec;

use crate::action::Told;
use crate::ids::{AttemptId, Offset, RouteId};
use crate::payload::Payload;
use crate::rules::{Bounds, Rules, Standing};
use crate::verdict::{Doubt, NeverReason};

use super::batch::{SequencedBatch, Tally};
use super::span::Position;

/// A batch that will never be resent. All its records were told `Unknown`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GivenUp {
    pub(super) position: Position,
    pub(super) records: Vec<Told>,
    pub(super) doubt: Doubt,
    pub(super) reason: NeverReason,
    pub(super) max_timestamp: i64,
    pub(super) tally: Tally,
    /// The first offset acknowledged under a newer epoch of the same producer id (Th. 2).
    pub(super) fence: Option<Offset>,
    pub(super) bounds: Bounds,
    pub(super) log: u32,
    /// Other content was offered at a part of its range (46).
    pub(super) contested: bool,
    pub(super) rival: Rival,
}

/// C: a replacement that was given up with a batch, and carries the same records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Rival {
    None,
    /// It may still be answered; the places of the records in it.
    Waiting {
        position: Position,
        indexes: Vec<u32>,
    },
    /// Nobody will ever tell.
    Doubtful,
}

impl GivenUp {
    /// Turns a batch whose records were all told into one that is only waited for.
    pub(super) fn new<P: Payload>(
        position: Position,
        batch: &SequencedBatch<P>,
        last_acknowledged: Option<Offset>,
        reason: NeverReason,
        bounds: Bounds,
        log: u32,
    ) -> Self {
        Self {
            position,
            records: batch.told(),
            doubt: batch.doubt(last_acknowledged),
            reason,
            max_timestamp: batch.max_timestamp(),
            tally: batch.tally.clone(),
            bounds,
            fence: None,
            log,
            contested: false,
            rival: Rival::None,
        }
    }

    /// S13: a late 0 must name an offset between its neighbours, and before the fence.
    pub(super) fn bounds(&self) -> Bounds {
        let next = self.bounds.next_base.into_iter().chain(self.fence).min();
        Bounds { next_base: next, ..self.bounds }
    }

    /// The same records as the replacement at this position carried them.
    pub(super) fn records_at(&self, position: Position) -> Option<Vec<Told>> {
        if self.position == position {
            return Some(self.records.clone());
        }
        match &self.rival {
            Rival::Waiting { position: rival, indexes } if *rival == position => {
                let records = self.records.iter().zip(indexes);
                Some(records.map(|(told, index)| Told { index: *index, ..*told }).collect())
            }
            Rival::Waiting { .. } | Rival::None | Rival::Doubtful => None,
        }
    }

    /// The replacement at this position will not be answered any more.
    pub(super) fn rival_ends(&mut self, position: Position, standing: Standing) {
        match &self.rival {
            Rival::Waiting { position: rival, .. } if *rival == position => {
                self.rival = match standing {
                    Standing::Refused => Rival::None,
                    Standing::InDoubt => Rival::Doubtful,
                };
            }
            Rival::Waiting { .. } | Rival::None | Rival::Doubtful => {}
        }
    }

    pub(super) fn refuse(&mut self) {
        self.tally.refused += 1;
    }

    pub(super) fn add_doubt(&mut self, route: RouteId, attempt: AttemptId) {
        self.tally.add_doubt(route, attempt);
    }

    pub(super) fn oldest_doubt(&self) -> Option<AttemptId> {
        self.tally.oldest_doubt()
    }

    pub(super) fn standing<R: Rules>(&self) -> Standing {
        self.tally.standing::<R>()
    }
}
