//! Which of the records that wait is due next.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;

use crate::ids::Ticket;
use crate::rules::Rules;
use crate::time::Instant;

use super::batch::{Entry, Records};

/// Records by deadline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Schedule {
    due: BTreeSet<(Instant, Ticket)>,
}

impl Schedule {
    /// Of all these records.
    pub(super) fn of<'r, P: 'r>(records: impl Iterator<Item = &'r Records<P>>) -> Self {
        let entries = records.flat_map(|records| &records.entries);
        Self { due: entries.map(|entry| (entry.deadline, entry.ticket)).collect() }
    }

    pub(super) fn add(&mut self, deadline: Instant, ticket: Ticket) {
        self.due.insert((deadline, ticket));
    }

    pub(super) fn add_all(&mut self, entries: &VecDeque<Entry>) {
        self.due.extend(entries.iter().map(|entry| (entry.deadline, entry.ticket)));
    }

    pub(super) fn remove_all(&mut self, entries: &VecDeque<Entry>) {
        for entry in entries {
            self.due.remove(&(entry.deadline, entry.ticket));
        }
    }

    /// D4: a deadline that lies ahead is now.
    pub(super) fn bring_forward(&mut self, deadline: Instant, ticket: Ticket, now: Instant) {
        if now < deadline {
            self.due.remove(&(deadline, ticket));
            self.due.insert((now, ticket));
        }
    }

    /// The earliest deadline.
    pub(super) fn first(&self) -> Instant {
        self.due.first().map_or(Instant::NEVER, |&(deadline, _)| deadline)
    }

    /// D1: takes out what is due, in the order of tickets.
    pub(super) fn take_due<R: Rules>(&mut self, now: Instant) -> Vec<Ticket> {
        let mut due = Vec::new();
        while R::expired(now, self.first()) {
            let Some((_, ticket)) = self.due.pop_first() else { break };
            due.push(ticket);
        }
        due.sort_unstable();
        due
    }
}
