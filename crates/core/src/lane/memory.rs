//! What the broker may still know of us, and what we know of its log (S13, S20).

use crate::config::{BeyondMemory, LaneConfig};
use crate::event::PartitionResponse;
use crate::ids::Offset;
use crate::rules::{DoubtFacts, MemoryFacts, Rules};
use crate::time::Instant;

use super::span::Position;

/// The lane's memory of the partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Memory {
    last_zero: Option<Instant>,
    /// The newest acknowledged batch, by position, and its max_timestamp.
    newest: Option<(Position, i64)>,
    log_append_time: bool,
    last_acknowledged: Option<Offset>,
    log_start: Option<Offset>,
    /// S22: the oldest batch of this epoch whose 0 came while *known* has held since.
    established: Option<Position>,
    /// S13: how far what left the span reaches.
    pub(super) reach: Reach,
    /// Counts logs: an answer from before K6 or S18 is not compared with what came after.
    pub(super) log: u32,
}

/// S13: how far written batches reach in the log, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reach {
    /// Where the newest one with an offset ended.
    pub(super) end: Option<Offset>,
    /// Records behind it that were concluded written.
    pub(super) concluded: u64,
}

impl Reach {
    /// Behind them, another one was written.
    pub(super) fn extend(&mut self, base: Option<Offset>, count: u32) {
        match base {
            Some(base) => *self = Self { end: Some(base.after(count)), concluded: 0 },
            None => self.concluded = self.concluded.saturating_add(count.into()),
        }
    }
}

/// When memory is asked, and what was in doubt then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) now: Instant,
    /// The smallest max_timestamp of the batches in doubt.
    pub(super) doubt_timestamp: Option<i64>,
}

/// Batches in doubt, as memory is asked about them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Doubtful {
    pub(super) oldest: Position,
    pub(super) first_offer: Instant,
    pub(super) max_timestamp: i64,
    pub(super) log_start_moved_past: bool,
}

/// An acknowledgement, as memory sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acknowledged {
    pub(super) position: Position,
    pub(super) end: Option<Offset>,
    pub(super) max_timestamp: i64,
}

impl Memory {
    pub(super) const fn new() -> Self {
        Self {
            last_zero: None,
            newest: None,
            log_append_time: false,
            last_acknowledged: None,
            log_start: None,
            established: None,
            reach: Reach { end: None, concluded: 0 },
            log: 0,
        }
    }

    /// Starts as if this had been acknowledged just now.
    pub(super) fn preset(now: Instant, last: Offset, timestamp: i64) -> Self {
        Self {
            last_zero: Some(now),
            newest: Some((Position(0), timestamp)),
            last_acknowledged: Some(last),
            reach: Reach { end: Some(last.after(1)), concluded: 0 },
            ..Self::new()
        }
    }

    /// The newest acknowledged batch, and its max_timestamp.
    pub(super) fn newest(&self) -> Option<(Position, i64)> {
        self.newest
    }

    pub(super) fn last_acknowledged(&self) -> Option<Offset> {
        self.last_acknowledged
    }

    pub(super) fn log_start(&self) -> Option<Offset> {
        self.log_start
    }

    pub(super) fn established(&self) -> Option<Position> {
        self.established
    }

    fn facts(&self, moment: Moment, config: &LaneConfig) -> MemoryFacts {
        MemoryFacts {
            now: moment.now,
            doubt_timestamp: moment.doubt_timestamp,
            state_ttl: config.state_ttl,
            last_zero: self.last_zero,
            newest_timestamp: self.newest.map_or(-1, |(_, timestamp)| timestamp),
            log_append_time: self.log_append_time,
            last_acknowledged: self.last_acknowledged,
            log_start: self.log_start,
        }
    }

    pub(super) fn known<R: Rules>(&self, moment: Moment, config: &LaneConfig) -> bool {
        R::known(&self.facts(moment, config))
    }

    pub(super) fn resendable<R: Rules>(
        &self,
        moment: Moment,
        config: &LaneConfig,
        doubt: Doubtful,
    ) -> bool {
        let newest = self.newest.filter(|(position, _)| *position > doubt.oldest);
        R::resendable(&DoubtFacts {
            memory: self.facts(moment, config),
            first_offer: doubt.first_offer,
            max_timestamp: doubt.max_timestamp,
            written_behind: newest.map(|(_, timestamp)| timestamp),
            log_start_moved_past: doubt.log_start_moved_past,
            beyond_memory: config.beyond_memory == BeyondMemory::Resend,
        })
    }

    /// Counts the log start of an answer, before anything is concluded from it (S22). Tells
    /// whether it lies past what was acknowledged last (S20).
    pub(super) fn see_log_start<R: Rules>(
        &mut self,
        moment: Moment,
        config: &LaneConfig,
        response: &PartitionResponse,
    ) -> bool {
        let Some(start) = Offset::new(response.log_start_offset) else { return false };
        self.log_start = self.log_start.max(Some(start));
        self.check_established::<R>(moment, config);
        self.last_acknowledged.is_some_and(|last| start > last)
    }

    /// S22: *established* lives for as long as *known* holds without a break.
    pub(super) fn check_established<R: Rules>(&mut self, moment: Moment, config: &LaneConfig) {
        if !self.known::<R>(moment, config) {
            self.established = None;
        }
    }

    /// A 0 came.
    pub(super) fn acknowledge<R: Rules>(
        &mut self,
        moment: Moment,
        config: &LaneConfig,
        acknowledged: Acknowledged,
    ) {
        self.last_zero = Some(moment.now);
        self.last_acknowledged =
            self.last_acknowledged.max(acknowledged.end.and_then(|end| Offset::new(end.get() - 1)));
        if self.newest.is_none_or(|(position, _)| position <= acknowledged.position) {
            self.newest = Some((acknowledged.position, acknowledged.max_timestamp));
        }
        self.check_established::<R>(moment, config);
        if self.established.is_none() && self.known::<R>(moment, config) {
            self.established = Some(acknowledged.position);
        }
    }

    /// S20: a batch of an older epoch turned out to be written. S15: no counter moves by that; but our
    /// newest batch in the log lies no lower, which log starts are compared with. Tells whether it is
    /// the first one that they can be compared with, and one that was seen lies past it.
    pub(super) fn acknowledge_older(&mut self, end: Offset) -> bool {
        let first = self.last_acknowledged.is_none();
        self.last_acknowledged = self.last_acknowledged.max(Offset::new(end.get() - 1));
        first && self.log_start > self.last_acknowledged
    }

    /// A fresh success shows the topic's timestamp type (T22).
    pub(super) fn see_timestamp_type(&mut self, log_append_time: i64) {
        self.log_append_time = log_append_time >= 0;
    }

    /// S8: another epoch.
    pub(super) fn new_identity(&mut self) {
        self.established = None;
    }

    /// K6: the log that we knew is gone.
    pub(super) fn forget_log(&mut self) {
        self.last_acknowledged = None;
        self.log_start = None;
        self.reach = Reach::default();
        self.established = None;
        self.log += 1;
    }

    /// S18: so is its topic, whose timestamp type another one of its name need not have (S20, T22).
    pub(super) fn forget_topic(&mut self) {
        self.log_append_time = false;
        self.forget_log();
    }

    /// The rest of *known* and *resendable*, as relative times for a digest.
    pub(super) fn digest(&self, mut word: impl FnMut(u64), relative: impl Fn(Instant) -> u64) {
        word(self.last_zero.map_or(0, &relative));
        word(self.newest.map_or(0, |(_, t)| timestamp_age(t, &relative)));
        word(u64::from(self.log_append_time));
        word(offset_word(self.last_acknowledged));
        word(offset_word(self.log_start));
        word(offset_word(self.reach.end));
        word(self.reach.concluded);
    }
}

fn timestamp_age(timestamp: i64, relative: &impl Fn(Instant) -> u64) -> u64 {
    u64::try_from(timestamp).map_or(u64::MAX, |millis| relative(Instant::from_millis(millis)))
}

pub(super) fn offset_word(offset: Option<Offset>) -> u64 {
    offset.map_or(0, |offset| 1 + offset.get() as u64)
}
