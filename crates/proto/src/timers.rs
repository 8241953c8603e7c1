//! One alarm per owner, found in order of time.

use std::collections::{BTreeMap, BTreeSet};

use candor_core::{Deadline, Instant, RouteId, Wakeup};

use crate::cluster::Endpoint;
use crate::lanes::LaneKey;

/// Who wants to be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// A lane's own deadline.
    Lane(LaneKey),
    /// A connection's timeouts, its idleness, or the end of a throttle.
    Connection(RouteId),
    /// An endpoint may be dialled again.
    Dial(Endpoint),
    /// Metadata is to be asked for.
    Metadata,
    /// A producer id is to be asked for.
    Identity,
    /// A record in an unrouted queue is due.
    Unrouted,
    /// The close deadline.
    Close,
}

/// All alarms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Timers {
    by_time: BTreeSet<(Instant, Timer)>,
    by_owner: BTreeMap<Timer, Deadline>,
}

impl Timers {
    /// Sets the owner's alarm, or takes it away.
    pub(crate) fn arm(&mut self, timer: Timer, deadline: Option<Deadline>) {
        if self.by_owner.get(&timer).copied() == deadline {
            return;
        }
        let before = match deadline {
            Some(deadline) => self.by_owner.insert(timer, deadline),
            None => self.by_owner.remove(&timer),
        };
        if let Some(before) = before {
            self.by_time.remove(&(before.at, timer));
        }
        if let Some(deadline) = deadline {
            self.by_time.insert((deadline.at, timer));
        }
    }

    /// As [`arm`](Self::arm), in the words of most callers.
    pub(crate) fn set(&mut self, timer: Timer, at: Option<Instant>, why: Wakeup) {
        self.arm(timer, at.map(|at| Deadline { at, why }));
    }

    /// Takes out one alarm that is due.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<Timer> {
        let &(at, timer) = self.by_time.first()?;
        if at > now {
            return None;
        }
        self.arm(timer, None);
        Some(timer)
    }

    /// The next alarm.
    pub(crate) fn next(&self) -> Option<Deadline> {
        let (_, timer) = self.by_time.first()?;
        self.by_owner.get(timer).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_has_one_alarm_and_it_goes_off_once() {
        let mut timers = Timers::default();
        let at = Instant::from_millis;
        timers.set(Timer::Metadata, Some(at(5)), Wakeup::Metadata);
        timers.set(Timer::Metadata, Some(at(9)), Wakeup::Metadata);
        timers.set(Timer::Close, Some(at(7)), Wakeup::Close);
        assert_eq!(timers.next().map(|next| next.at), Some(at(7)));
        assert_eq!(timers.pop_due(at(6)), None);
        assert_eq!(timers.pop_due(at(9)), Some(Timer::Close));
        assert_eq!(timers.pop_due(at(9)), Some(Timer::Metadata));
        assert_eq!((timers.pop_due(at(99)), timers.next()), (None, None));
    }
}
