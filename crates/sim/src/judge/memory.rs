//! How long a broker may be relied upon to know us (rule S20).

use std::hash::{Hash, Hasher};

use super::observer::Settings;

/// What the answers of one lane say about the broker's memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Memory {
    last_zero: Option<u64>,
    last_offset: Option<i64>,
    last_timestamp: i64,
    log_start: i64,
}

impl Memory {
    pub(super) fn acknowledged(&mut self, now: u64, last_offset: i64, max_timestamp: i64) {
        self.last_zero = Some(now);
        if self.last_offset.is_none_or(|last| last <= last_offset) {
            self.last_offset = Some(last_offset);
            self.last_timestamp = max_timestamp;
        }
    }

    /// Whether the log moved past what was acknowledged by this very answer.
    pub(super) fn saw_log_start(&mut self, log_start: i64) -> bool {
        let before = self.log_start;
        self.log_start = before.max(log_start);
        self.lies_before(self.log_start) && !self.lies_before(before)
    }

    /// Whether what was acknowledged last lies before this log start.
    pub(super) fn lies_before(&self, log_start: i64) -> bool {
        self.last_offset.is_some_and(|offset| log_start > offset)
    }

    /// Whether a log that starts here shows that it is the one that was acknowledged, or the one that
    /// the epoch began with (C1). An answer that was under way for long tells less than others that came
    /// before it.
    pub(super) fn reaches_back(&self, log_start: i64, first_of_epoch: bool) -> bool {
        if log_start < 0 {
            return false;
        }
        let log_start = log_start.max(self.log_start);
        match self.last_offset {
            Some(last) => log_start <= last,
            None => first_of_epoch && log_start == 0,
        }
    }

    /// K6: the log that was acknowledged is gone, and its offsets mean nothing for the one there is.
    pub(super) fn forget_log(&mut self) {
        self.last_offset = None;
        self.log_start = 0;
    }

    /// *Known*, as the gate asks it.
    pub(super) fn known(&self, now: u64, settings: &Settings) -> bool {
        self.last_zero.is_some_and(|zero| {
            !settings.forgets(now, zero)
                && !settings.forgets_timestamp(now, self.last_timestamp)
                && self.last_offset.is_none_or(|offset| offset >= self.log_start)
        })
    }

    /// Something was acknowledged, and *known* is over since.
    pub(super) fn was_known_until(&self, now: u64, settings: &Settings) -> bool {
        self.last_zero.is_some() && !self.known(now, settings)
    }

    pub(super) fn fingerprint(&self, now: u64, settings: &Settings, into: &mut impl Hasher) {
        self.last_zero.map(|zero| settings.age(now, zero)).hash(into);
        settings.timestamp_age(now, self.last_timestamp).hash(into);
        self.last_offset.is_some_and(|offset| offset < self.log_start).hash(into);
        // How far ahead of the log's start the last offset lies decides what moves past it.
        self.last_offset.is_some().hash(into);
    }
}
