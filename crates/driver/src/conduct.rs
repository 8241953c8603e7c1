//! Every decision of the driver and of the handles that applications hold, as one pure method each.
//! What the producer decides is elsewhere: `candor_core::rules`.
//!
//! [`Honest`] overrides nothing, and is what ships. Each method is inverted by a planted bug at least
//! once, which a scenario convicts: `planted.rs`, and `docs/planted-bugs.md`.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use candor_core::Instant;
use candor_proto::ErrorCode;

use crate::line::LineId;

/// Wall and monotonic progress may differ by so much before it counts as a jump: a suspended
/// machine, or a wall clock that was set.
const JUMP: Duration = Duration::from_millis(100);

/// Timers are never set further ahead, so that a jump is noticed.
const LONGEST_SLEEP: Duration = Duration::from_secs(10);

/// What becomes of a record whose future or handle is dropped (rule D4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dropped {
    /// Its deadline is now.
    Cancelled,
    /// It goes on without anybody.
    GoesOn,
}

/// How the driver conducts itself.
pub(crate) trait Conduct: Send + Sync {
    /// Whether a caller wakes the driver: only if something is due before it would look by itself.
    fn rings(&self, due: Instant, looks_at: Instant) -> bool {
        due < looks_at
    }

    /// Whether work that was cut off at its bound, so that others have their turn, goes on by itself.
    fn goes_on(&self) -> bool {
        true
    }

    /// How often one poll of the driver, or one turn of a connection, does something that is bounded
    /// to `most` times.
    fn times(&self, most: usize) -> usize {
        most
    }

    /// Whether a connection is given more bytes: not before the socket took those that it has, so that
    /// sequences are bound as late as possible.
    fn takes_bytes(&self, segments_waiting: usize) -> bool {
        segments_waiting == 0
    }

    /// How many bytes count as handed over when a connection ends: what the socket took, which may
    /// overstate what the broker got, and never less.
    fn handed(&self, taken: u64, _waiting: &VecDeque<Bytes>) -> u64 {
        taken
    }

    /// How many bytes count as out after a write: what the socket took. The others are kept, and
    /// count as memory, whatever became of their records (rule S16).
    fn out(&self, taken: u64, _waiting: &VecDeque<Bytes>) -> u64 {
        taken
    }

    /// Whether a connection to which nothing can be written any more is read once more: answers that
    /// came may be all that it leaves.
    fn hears_the_dying(&self) -> bool {
        true
    }

    /// The progress that counts, if the clocks disagree (the larger one): after a suspend of the
    /// machine only the wall clock knows.
    fn jump(&self, ticked: Duration, walked: Duration) -> Option<Duration> {
        (walked.abs_diff(ticked) > JUMP).then(|| walked.max(ticked))
    }

    /// How long the driver sleeps at most.
    fn sleep(&self, left: Duration) -> Duration {
        left.min(LONGEST_SLEEP)
    }

    /// When the clock of a record starts (rule D2): at the call of `send`, so that waiting for room
    /// counts.
    fn born(&self, called: Instant, _now: Instant) -> Instant {
        called
    }

    /// Whether a record is accepted without waiting: nobody who waits for room is overtaken.
    fn may_accept(&self, line_is_empty: bool) -> bool {
        line_is_empty
    }

    /// Whether others are admitted when somebody leaves the line: there may be room for them.
    fn moves_up(&self) -> bool {
        true
    }

    /// What becomes of a record whose `send` future is dropped (rule D4).
    fn send_dropped(&self) -> Dropped {
        Dropped::Cancelled
    }

    /// What becomes of a record whose handle is dropped (rule D4).
    fn handle_dropped(&self) -> Dropped {
        Dropped::GoesOn
    }

    /// Whether a flush begins that waits for those before `end` in the line (rule D5).
    fn flush_begins(&self, front: Option<LineId>, end: LineId) -> bool {
        front.is_none_or(|front| front >= end)
    }

    /// Whether the machine begins to close (rule D5): those in the line have a chance until the
    /// deadline.
    fn closing_begins(&self, line_is_empty: bool, deadline: Instant, now: Instant) -> bool {
        line_is_empty || deadline <= now
    }

    /// Whether a driver that is dropped tells everybody how things stand.
    fn tells_at_the_end(&self) -> bool {
        true
    }

    /// Whether `connect` gives up on what a broker says instead of a producer id: rights and versions
    /// do not change by asking again (`InitProducerIdResponse` in Kafka), while a broker that has just
    /// started says COORDINATOR_LOAD_IN_PROGRESS.
    fn is_final(&self, refusal: ErrorCode) -> bool {
        matches!(refusal.0, 29 | 31 | 35 | 42 | 53)
    }
}

/// What ships.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Honest;

impl Conduct for Honest {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_does_not_pass_ends_the_wait() {
        let ends = |code| Honest.is_final(ErrorCode(code));
        assert!([29, 31, 35, 42, 53].into_iter().all(ends));
        assert!(![-1, 7, 14, 15, 16, 41, 51].into_iter().any(ends));
    }
}
