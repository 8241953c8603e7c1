//! Bytes on their way out, counted exactly: what of the stream was queued, taken by the driver, and
//! reported sent.

use std::collections::VecDeque;

use bytes::{Buf, Bytes};

/// One connection's outgoing stream. Positions count bytes since it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outgoing {
    queue: VecDeque<Bytes>,
    /// End of what was queued.
    end: u64,
    /// End of what the driver took.
    taken: u64,
    /// End of what the driver reported sent.
    sent: u64,
    /// End of what was answered: it was sent, reported or not.
    answered: u64,
}

impl Outgoing {
    /// Queues a frame; gives the position of its end.
    pub(crate) fn push(&mut self, parts: impl IntoIterator<Item = Bytes>) -> u64 {
        for part in parts {
            self.end += part.len() as u64;
            self.queue.push_back(part);
        }
        self.end
    }

    /// Hands out up to `budget` bytes, in order.
    pub(crate) fn take(&mut self, budget: usize, into: &mut Vec<Bytes>) -> usize {
        let mut left = budget;
        while left > 0 {
            let Some(first) = self.queue.front_mut() else { break };
            if first.len() > left {
                into.push(first.split_to(left));
                left = 0;
            } else {
                left -= first.remaining();
                into.extend(self.queue.pop_front());
            }
        }
        self.taken += (budget - left) as u64;
        budget - left
    }

    /// The driver reports so many more bytes sent; false if it never took as many.
    pub(crate) const fn report(&mut self, n: u64) -> bool {
        let possible = n <= self.taken - self.sent;
        if possible {
            self.sent += n;
        }
        possible
    }

    /// End of what was reported sent.
    pub(crate) const fn sent(&self) -> u64 {
        self.sent
    }

    /// Everything up to here was answered.
    pub(crate) fn answered(&mut self, end: u64) {
        self.answered = self.answered.max(end.min(self.taken));
    }

    /// How much may have been handed over, from a driver's bound on it: never more than it took,
    /// never less than it reported.
    pub(crate) fn handed(&self, at_most: Option<u64>) -> u64 {
        at_most.map_or(self.taken, |bound| bound.clamp(self.sent, self.taken))
    }

    /// Bytes that were queued, and neither reported sent nor answered.
    pub(crate) fn unsent(&self) -> u64 {
        self.end - self.sent.max(self.answered)
    }

    /// Bytes that wait to be taken.
    pub(crate) const fn waiting(&self) -> u64 {
        self.end - self.taken
    }

    /// Drops what nobody will take any more.
    pub(crate) fn clear(&mut self) {
        self.queue.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_leave_in_order_and_are_cut_at_the_budget() {
        let mut out = Outgoing::default();
        assert_eq!(out.push([Bytes::from_static(b"abc"), Bytes::from_static(b"de")]), 5);
        let mut taken = Vec::new();
        assert_eq!(out.take(4, &mut taken), 4);
        assert_eq!((out.waiting(), out.unsent()), (1, 5));
        assert_eq!(out.take(0, &mut taken), 0);
        assert_eq!(out.take(9, &mut taken), 1);
        assert_eq!(taken.concat(), b"abcde");
    }

    #[test]
    fn nothing_is_sent_that_was_not_taken() {
        let mut out = Outgoing::default();
        out.push([Bytes::from_static(b"abc")]);
        assert!(!out.report(1));
        out.take(2, &mut Vec::new());
        assert!(out.report(1));
        assert!(!out.report(2));
        assert_eq!(out.sent(), 1);
        assert_eq!([None, Some(0), Some(1), Some(9)].map(|bound| out.handed(bound)), [2, 1, 1, 2]);
    }
}
