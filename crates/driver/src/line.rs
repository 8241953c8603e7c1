//! Records that wait for room, in the order in which they came.
//!
//! They wait here, not in their futures: a future that nobody polls holds up nobody else, and a
//! deadline passes whether somebody looks or not.

use std::collections::{BTreeMap, BTreeSet};
use std::task::{Context, Poll, Waker};

use candor_core::{Instant, Ticket};
use candor_proto::Record;

use crate::slots::Wakers;
use crate::verdict::WhyNot;

/// Names a place in the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LineId(u64);

/// A record in the line.
#[derive(Debug)]
pub(crate) struct InLine {
    pub(crate) born: Instant,
    pub(crate) deadline: Instant,
    pub(crate) record: Record<'static>,
    pub(crate) waker: Waker,
}

/// How waiting ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineEnd {
    /// It was accepted.
    Accepted(Ticket),
    /// It was not.
    Ended(WhyNot),
}

/// The line, and how waiting ended for those who were in it.
#[derive(Debug, Default)]
pub(crate) struct Line {
    waiting: BTreeMap<LineId, InLine>,
    by_deadline: BTreeSet<(Instant, LineId)>,
    ended: BTreeMap<LineId, LineEnd>,
    next: u64,
}

impl Line {
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Waits behind all others.
    pub(crate) fn join(&mut self, waiter: InLine) -> LineId {
        let id = LineId(self.next);
        self.next += 1;
        self.by_deadline.insert((waiter.deadline, id));
        self.waiting.insert(id, waiter);
        id
    }

    /// One behind the last of those who wait now.
    pub(crate) const fn end(&self) -> LineId {
        LineId(self.next)
    }

    /// The first who waits.
    pub(crate) fn front(&self) -> Option<LineId> {
        self.waiting.keys().next().copied()
    }

    /// When the first deadline passes.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.by_deadline.first().map(|(at, _)| *at)
    }

    /// Takes out the first, to be put back or ended.
    pub(crate) fn take_front(&mut self) -> Option<(LineId, InLine)> {
        let (id, waiter) = self.waiting.pop_first()?;
        self.by_deadline.remove(&(waiter.deadline, id));
        Some((id, waiter))
    }

    /// Puts back what was taken out.
    pub(crate) fn put_back(&mut self, id: LineId, waiter: InLine) {
        self.by_deadline.insert((waiter.deadline, id));
        self.waiting.insert(id, waiter);
    }

    /// Takes out one whose deadline has passed.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<(LineId, InLine)> {
        let &(at, id) = self.by_deadline.first()?;
        (at <= now).then(|| self.take(id)).flatten().map(|waiter| (id, waiter))
    }

    fn take(&mut self, id: LineId) -> Option<InLine> {
        let waiter = self.waiting.remove(&id)?;
        self.by_deadline.remove(&(waiter.deadline, id));
        Some(waiter)
    }

    /// Waiting is over for one that was taken out.
    pub(crate) fn end_one(&mut self, id: LineId, end: LineEnd) {
        self.ended.insert(id, end);
    }

    /// How waiting ended; asked until it has.
    pub(crate) fn claim(
        &mut self,
        id: LineId,
        cx: &Context<'_>,
        wakers: &mut Wakers,
    ) -> Poll<LineEnd> {
        if let Some(end) = self.ended.remove(&id) {
            return Poll::Ready(end);
        }
        let Some(waiter) = self.waiting.get_mut(&id) else {
            return Poll::Ready(LineEnd::Ended(WhyNot::DriverGone));
        };
        if !waiter.waker.will_wake(cx.waker()) {
            let old = core::mem::replace(&mut waiter.waker, cx.waker().clone());
            wakers.retire(Some(old));
        }
        Poll::Pending
    }

    /// Leaves the line. The ticket, if it was accepted meanwhile.
    pub(crate) fn leave(&mut self, id: LineId, wakers: &mut Wakers) -> Option<Ticket> {
        wakers.retire(self.take(id).map(|waiter| waiter.waker));
        match self.ended.remove(&id) {
            Some(LineEnd::Accepted(ticket)) => Some(ticket),
            Some(LineEnd::Ended(_)) | None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiter(deadline: u64) -> InLine {
        InLine {
            born: Instant::EPOCH,
            deadline: Instant::from_millis(deadline),
            record: Record::to("t"),
            waker: Waker::noop().clone(),
        }
    }

    #[test]
    fn first_come_first_served_and_deadlines_pass_anywhere() {
        let mut line = Line::default();
        let (a, b, c) = (line.join(waiter(9)), line.join(waiter(3)), line.join(waiter(7)));
        assert_eq!(line.front(), Some(a));
        assert!(line.take_due(Instant::from_millis(2)).is_none());
        let (due, _) = line.take_due(Instant::from_millis(3)).unwrap();
        assert_eq!((due, line.deadline()), (b, Some(Instant::from_millis(7))));
        let (front, taken) = line.take_front().unwrap();
        line.put_back(front, taken);
        assert_eq!(line.front(), Some(a));
        assert_eq!(line.leave(a, &mut Wakers::default()), None);
        assert_eq!(line.front(), Some(c));
    }

    #[test]
    fn an_end_is_heard_once() {
        let (mut line, mut wakers) = (Line::default(), Wakers::default());
        let cx = Context::from_waker(Waker::noop());
        let id = line.join(waiter(9));
        assert_eq!(line.claim(id, &cx, &mut wakers), Poll::Pending);
        let _taken = line.take_front();
        line.end_one(id, LineEnd::Accepted(Ticket(4)));
        assert_eq!(line.claim(id, &cx, &mut wakers), Poll::Ready(LineEnd::Accepted(Ticket(4))));
        let id = line.join(waiter(9));
        let _taken = line.take_front();
        line.end_one(id, LineEnd::Accepted(Ticket(5)));
        assert_eq!(line.leave(id, &mut wakers), Some(Ticket(5)));
        assert!(line.is_empty() && line.ended.is_empty());
    }
}
