//! What was offered on the wire, and what is known of it.

use super::conditions::sequence_after;
use super::ledger::Ledger;

/// A batch that was offered at least once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Content {
    pub(super) identity: usize,
    pub(super) first: i64,
    pub(super) count: u32,
    pub(super) hash: u64,
    pub(super) records: Vec<u64>,
    pub(super) replacement: bool,
    pub(super) first_offer: u64,
    pub(super) last_offer: u64,
    pub(super) last_leader_epoch: i32,
    pub(super) max_timestamp: i64,
    /// Some attempt ended so that nobody can tell.
    pub(super) doubt: bool,
    /// Some attempt was answered 0 (or 46 that counts as such).
    pub(super) appended: bool,
    /// Some attempt was refused for good.
    pub(super) permanent: bool,
    /// How often it was asked in vain, in passes on this route (K5).
    pub(super) asked: u8,
    /// How often it was called corrupt.
    pub(super) corrupt: u8,
    /// Other content took its slot (C4).
    pub(super) taken: bool,
    /// The answer that tells so tells as well that the broker knew us (C1), or is that of the batch
    /// that this one was to replace.
    pub(super) proven: bool,
    /// It was offered to a log that may be gone.
    pub(super) old_log: bool,
    /// It was not written when its epoch ended, and that epoch is never used again.
    pub(super) freed: bool,
    /// It was in doubt when its caller, or its lane, gave up what was.
    pub(super) abandoned: bool,
    /// Answers showed that the log moved past what was acknowledged while this was in doubt.
    pub(super) purged: bool,
    /// The same, since its first offer: a producer that reads S20 literally does not resend it.
    pub(super) cautious: bool,
}

impl Content {
    pub(super) fn end(&self) -> i64 {
        sequence_after(self.first, self.count)
    }

    /// Nothing more is to be found out about it: an answer told so, or a later 0 proved it (S22), or
    /// its caller was told for good.
    pub(super) fn is_settled(&self, ledger: &Ledger) -> bool {
        self.appended || self.records.iter().all(|&record| ledger.is_final(record))
    }

    /// It was told to be delivered, though perhaps by no answer of its own: a later 0 proved it (S22).
    pub(super) fn is_proved(&self, ledger: &Ledger) -> bool {
        self.records.iter().all(|&record| ledger.is_delivered(record))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Open {
    pub(super) id: u64,
    pub(super) content: u64,
    /// It is the first one of its content.
    pub(super) first: bool,
    /// Offered on the route that the lane uses now.
    pub(super) current: bool,
    /// Offered through a closed gate.
    pub(super) in_pass: bool,
    /// Offered through an open gate, the broker being known to remember us.
    pub(super) through_gate: bool,
}
