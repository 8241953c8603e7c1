//! Where each record is that has not ended yet, and what it weighs.
//!
//! Tickets are dense, so they live in pages that appear and vanish whole: no allocation per record,
//! and one record that stays for hours keeps one page, not all that came after it.

use std::collections::VecDeque;

use candor_core::Ticket;

use crate::lanes::LaneKey;
use crate::router::TopicKey;

/// Records per page.
const PAGE: u64 = 256;

/// Where a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// In its topic's unrouted queue (rule U1).
    Raw(TopicKey),
    /// In a lane, without a verdict.
    Lane(LaneKey),
    /// In a lane; its verdict was `Unknown`, its resolution is still to come.
    Unknown(LaneKey),
}

/// A record that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Where it is.
    pub(crate) held: Held,
    /// What it is charged for, in bytes.
    pub(crate) bytes: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Page {
    live: u32,
    entries: Vec<Option<Entry>>,
}

/// All records that have not ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tickets {
    next: u64,
    /// The page that is being filled, apart from the others for speed. Empty: none is.
    filling: Page,
    /// The full ones in order, each with its number. Without gaps, as a rule, among the newest.
    pages: VecDeque<(u64, Page)>,
}

impl Tickets {
    /// Size in bytes of a page.
    pub(crate) const PAGE_BYTES: usize = PAGE as usize * size_of::<Option<Entry>>() + 64;

    /// The ticket that the next record gets.
    pub(crate) const fn next(&self) -> Ticket {
        Ticket(self.next)
    }

    /// Bytes in pages that are held.
    pub(crate) fn bytes(&self) -> usize {
        let filling = usize::from(self.filling.entries.capacity() > 0);
        (self.pages.len() + filling) * Self::PAGE_BYTES
    }

    /// Bytes in pages once the next record is in.
    pub(crate) fn bytes_with_next(&self) -> usize {
        (self.pages.len() + 1) * Self::PAGE_BYTES
    }

    /// No record comes any more: gives back the page that was being filled, if nothing is in it.
    pub(crate) fn finish(&mut self) {
        if self.filling.live == 0 {
            self.filling = Page::default();
        }
    }

    /// Takes in a record.
    pub(crate) fn issue(&mut self, entry: Entry) -> Ticket {
        let ticket = Ticket(self.next);
        self.next += 1;
        if self.filling.entries.capacity() == 0 {
            self.filling.entries.reserve_exact(PAGE as usize);
        }
        self.filling.entries.push(Some(entry));
        self.filling.live += 1;
        if self.next.is_multiple_of(PAGE) {
            let full = core::mem::take(&mut self.filling);
            if full.live > 0 {
                self.pages.push_back((ticket.0 / PAGE, full));
            }
        }
        ticket
    }

    /// Where in `pages` the one with this number is. Counted from the newest it is nearly always
    /// where it would be if none was missing; a search in a tree costs as much as all the rest.
    fn position(&self, number: u64) -> Option<usize> {
        let (newest, _) = self.pages.back()?;
        let behind = usize::try_from(newest.checked_sub(number)?).ok()?;
        let guess = (self.pages.len() - 1).checked_sub(behind);
        let is_it = |index: &usize| self.pages.get(*index).is_some_and(|(at, _)| *at == number);
        guess.filter(is_it).or_else(|| self.pages.binary_search_by_key(&number, |(at, _)| *at).ok())
    }

    fn page(&mut self, number: u64) -> Option<&mut Page> {
        if number == self.next / PAGE {
            return Some(&mut self.filling);
        }
        let position = self.position(number)?;
        self.pages.get_mut(position).map(|(_, page)| page)
    }

    /// The record, unless it ended.
    pub(crate) fn get(&self, ticket: Ticket) -> Option<Entry> {
        let number = ticket.0 / PAGE;
        let filling = number == self.next / PAGE;
        let page = if filling { &self.filling } else { &self.pages.get(self.position(number)?)?.1 };
        *page.entries.get((ticket.0 % PAGE) as usize)?
    }

    /// Says that the record is somewhere else now; gives what was said before.
    pub(crate) fn moved(&mut self, ticket: Ticket, held: Held) -> Option<Entry> {
        let page = self.page(ticket.0 / PAGE)?;
        let slot = page.entries.get_mut((ticket.0 % PAGE) as usize)?;
        let before = (*slot)?;
        *slot = Some(Entry { held, ..before });
        Some(before)
    }

    /// The record is charged for so many bytes less.
    pub(crate) fn lighten(&mut self, ticket: Ticket, bytes: u32) {
        let slot = self
            .page(ticket.0 / PAGE)
            .and_then(|page| page.entries.get_mut((ticket.0 % PAGE) as usize));
        if let Some(Some(entry)) = slot {
            entry.bytes = entry.bytes.saturating_sub(bytes);
        }
    }

    /// The record ended: forgets it.
    pub(crate) fn end(&mut self, ticket: Ticket) -> Option<Entry> {
        let number = ticket.0 / PAGE;
        let page = self.page(number)?;
        let entry = page.entries.get_mut((ticket.0 % PAGE) as usize)?.take()?;
        page.live -= 1;
        if page.live == 0
            && let Some(position) = self.position(number)
        {
            self.pages.remove(position);
        }
        Some(entry)
    }

    /// Whether every record has ended.
    pub(crate) fn is_empty(&self) -> bool {
        self.pages.is_empty() && self.filling.live == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: Entry = Entry { held: Held::Raw(TopicKey(3)), bytes: 9 };

    #[test]
    fn a_record_is_known_until_it_ends_and_ends_once() {
        let mut tickets = Tickets::default();
        let (a, b) = (tickets.issue(ENTRY), tickets.issue(ENTRY));
        assert_eq!((a, b), (Ticket(0), Ticket(1)));
        assert_eq!(tickets.moved(a, Held::Lane(LaneKey(1))), Some(ENTRY));
        assert_eq!(tickets.get(a).map(|entry| entry.held), Some(Held::Lane(LaneKey(1))));
        assert!(tickets.end(a).is_some());
        assert_eq!((tickets.end(a), tickets.get(a)), (None, None));
        assert_eq!(tickets.moved(a, Held::Lane(LaneKey(1))), None);
        assert_eq!(tickets.get(b), Some(ENTRY));
    }

    #[test]
    fn one_record_that_stays_keeps_one_page() {
        let mut tickets = Tickets::default();
        let stays = tickets.issue(ENTRY);
        for _ in 0..100 * PAGE {
            let ticket = tickets.issue(ENTRY);
            tickets.end(ticket);
        }
        assert!(tickets.pages.len() <= 2, "{}", tickets.pages.len());
        assert!(tickets.bytes() <= 3 * Tickets::PAGE_BYTES);
        tickets.end(stays);
        assert!(tickets.is_empty());
    }
}
