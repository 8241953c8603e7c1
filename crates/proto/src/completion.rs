//! What `flush` and `close` wait for: verdicts, not resolutions (rule D5).

use std::collections::VecDeque;

use candor_core::Ticket;

/// Names a flush until its [`Flushed`](crate::Output::Flushed) comes; counted from 0.
///
/// ```
/// assert!(candor_proto::FlushId(0) < candor_proto::FlushId(1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FlushId(pub u64);

/// The records accepted between two flushes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretch {
    /// First ticket that is not in it.
    end: Ticket,
    /// How many of it wait for their verdict.
    waiting: u64,
    id: FlushId,
}

/// Flushes that are not over, and how many verdicts each still waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flushes {
    stretches: VecDeque<Stretch>,
    /// Records accepted since the last flush and without a verdict.
    since: u64,
    next: FlushId,
}

impl Flushes {
    pub(crate) const fn new() -> Self {
        Self { stretches: VecDeque::new(), since: 0, next: FlushId(0) }
    }

    /// A record was accepted.
    pub(crate) const fn accepted(&mut self) {
        self.since += 1;
    }

    /// Everything accepted so far (all tickets below `end`) is to be waited for.
    pub(crate) fn start(&mut self, end: Ticket) -> FlushId {
        let id = self.next;
        self.next = FlushId(id.0 + 1);
        let waiting = core::mem::take(&mut self.since);
        self.stretches.push_back(Stretch { end, waiting, id });
        id
    }

    /// A record has its verdict.
    pub(crate) fn told(&mut self, ticket: Ticket) {
        let at = self.stretches.partition_point(|stretch| stretch.end <= ticket);
        match self.stretches.get_mut(at) {
            Some(stretch) => stretch.waiting = stretch.waiting.saturating_sub(1),
            None => self.since = self.since.saturating_sub(1),
        }
    }

    /// The oldest flush, if it is over. A flush is over after all before it.
    pub(crate) fn poll(&mut self) -> Option<FlushId> {
        let over = self.stretches.front().is_some_and(|stretch| stretch.waiting == 0);
        over.then(|| self.stretches.pop_front()).flatten().map(|stretch| stretch.id)
    }

    /// Whether some flush is not over.
    pub(crate) fn is_pending(&self) -> bool {
        !self.stretches.is_empty()
    }

    /// How many records wait for their verdict.
    pub(crate) fn waiting(&self) -> u64 {
        self.stretches.iter().map(|stretch| stretch.waiting).sum::<u64>() + self.since
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_waits_for_what_was_accepted_before_it_only() {
        let mut flushes = Flushes::new();
        flushes.accepted();
        flushes.accepted();
        let first = flushes.start(Ticket(2));
        flushes.accepted();
        flushes.told(Ticket(2));
        flushes.told(Ticket(1));
        assert_eq!(flushes.poll(), None);
        flushes.told(Ticket(0));
        assert_eq!((flushes.poll(), flushes.poll()), (Some(first), None));
    }

    #[test]
    fn flushes_end_in_order_and_an_empty_one_at_once() {
        let mut flushes = Flushes::new();
        let empty = flushes.start(Ticket(0));
        assert_eq!(flushes.poll(), Some(empty));
        flushes.accepted();
        let first = flushes.start(Ticket(1));
        flushes.accepted();
        let second = flushes.start(Ticket(2));
        flushes.told(Ticket(1));
        assert_eq!((flushes.poll(), flushes.waiting()), (None, 1));
        flushes.told(Ticket(0));
        assert_eq!((flushes.poll(), flushes.poll()), (Some(first), Some(second)));
    }
}
