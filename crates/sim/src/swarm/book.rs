//! The ledgers of a run: what the caller wanted, what it was told, what stood on the wire; and a
//! hash over all that happened.

use std::collections::BTreeSet;
use std::fmt::{self, Write};

use candor_core::{Resolution, Ticket, Verdict};

use super::rows::{Trouble, TroubleCounts};
use super::verdicts::Never;
use crate::judge::{Anomaly, Class, Entry, Fact, Lane, Said};
use crate::words;

/// One record, as its sender knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) topic: u32,
    /// The partition it named.
    pub(super) asked: Option<i32>,
    /// Partitions that its key allows; any if empty.
    pub(super) allowed: Vec<i32>,
    /// The partition it got.
    pub(super) place: Option<i32>,
    pub(super) due: u64,
    /// Bytes of key and value, at least.
    pub(super) bytes: usize,
    pub(super) said: Option<Said>,
    pub(super) resolved: Option<Said>,
}

/// Hashes text and bytes (FNV-1a, 64 bits).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trace(u64);

impl Trace {
    const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

impl Write for Trace {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.bytes(text.as_bytes());
        Ok(())
    }
}

/// What the book holds against a run by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Complaint {
    pub(super) anomaly: Anomaly,
    pub(super) lane: Option<Lane>,
    pub(super) text: String,
}

/// The ledgers.
#[derive(Debug)]
pub(super) struct Book {
    pub(super) entries: Vec<Entry>,
    pub(super) pages: Vec<Page>,
    /// The record of each ticket.
    tickets: Vec<u64>,
    pub(super) untold: BTreeSet<u64>,
    pub(super) unresolved: BTreeSet<u64>,
    /// Records that were revoked.
    pub(super) revoked: BTreeSet<u64>,
    /// Records that the producer says have their last word, which is to be told at once.
    pub(super) over: Vec<u64>,
    pub(super) complaints: Vec<Complaint>,
    pub(super) troubles: TroubleCounts,
    /// When lanes were told that their topic is another one, or nobody's: what is told of them at that
    /// moment is told for this reason.
    pub(super) hidden: BTreeSet<(Lane, u64)>,
    /// Records that had no partition when they were taken.
    pub(super) raw: BTreeSet<u64>,
    /// Bytes of all records that were accepted, with what each costs beside them.
    pub(super) sent_bytes: usize,
    /// Bytes of records that are unknown, at least.
    pub(super) unknown_bytes: usize,
    /// Why records stayed unknown.
    pub(super) never: Never,
    trace: Trace,
    timeline: Option<Vec<String>>,
    begin: u64,
}

/// The producer of a run: there is one.
pub(super) const PRODUCER: u32 = 0;
/// What a record may cost beside its bytes.
const COST: usize = 512;
/// The lane of what never got a partition.
pub(super) const NOWHERE: i32 = -1;

impl Book {
    pub(super) fn new(begin: u64, timeline: bool) -> Self {
        Self {
            entries: Vec::new(),
            pages: Vec::new(),
            tickets: Vec::new(),
            untold: BTreeSet::new(),
            unresolved: BTreeSet::new(),
            revoked: BTreeSet::new(),
            over: Vec::new(),
            complaints: Vec::new(),
            troubles: TroubleCounts::default(),
            hidden: BTreeSet::new(),
            raw: BTreeSet::new(),
            sent_bytes: 0,
            unknown_bytes: 0,
            never: Never::default(),
            trace: Trace::new(),
            timeline: timeline.then(Vec::new),
            begin,
        }
    }

    /// Takes down a fact of the ledgers.
    pub(super) fn fact(&mut self, now: u64, at: u64, fact: Fact) {
        self.line(now, format_args!("{fact:?}"));
        self.entries.push(Entry { at, fact });
    }

    /// Takes down something for people, and for the hash.
    pub(super) fn line(&mut self, now: u64, text: fmt::Arguments<'_>) {
        // Writing into a hash cannot fail.
        let _ = writeln!(self.trace, "{now} {text}");
        let since = now - self.begin;
        if let Some(lines) = &mut self.timeline {
            lines.push(format!("{:>6}.{:06} s  {text}", since / 1_000_000, since % 1_000_000));
        }
    }

    /// Takes bytes into the hash.
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.trace.bytes(bytes);
    }

    /// Something befell the producer.
    pub(super) fn trouble(&mut self, now: u64, trouble: Trouble, text: fmt::Arguments<'_>) {
        self.troubles.add(trouble as usize);
        self.line(now, format_args!("# {trouble}: {text}"));
    }

    /// The producer breaks its contract in a way that no history shows.
    pub(super) fn complain(&mut self, now: u64, class: Class, record: Option<u64>, text: String) {
        self.line(now, format_args!("! {class}: {text}"));
        let anomaly = Anomaly { record, ..Anomaly::new(class) };
        // The same complaint a thousand times says no more than once.
        if self.complaints.len() < 20 {
            let lane = record.and_then(|record| self.lane(record));
            self.complaints.push(Complaint { anomaly, lane, text });
        }
    }

    /// A record is about to be sent; gives its number.
    pub(super) fn intend(&mut self, now: u64, at: u64, page: Page) -> u64 {
        let record = self.pages.len() as u64;
        let lane = lane(page.topic, page.asked.unwrap_or(NOWHERE));
        let due = page.due;
        self.pages.push(page);
        self.fact(now, at, Fact::Intent { record, lane, due });
        record
    }

    pub(super) fn accepted(&mut self, now: u64, at: u64, record: u64, ticket: Ticket) {
        if ticket.0 != self.tickets.len() as u64 {
            let text = format!("ticket {} is not dense", ticket.0);
            self.complain(now, Class::Contract, Some(record), text);
        }
        self.tickets.push(record);
        self.sent_bytes += self.bytes_of(record) + COST;
        self.untold.insert(record);
        self.fact(now, at, Fact::Accepted { record });
    }

    pub(super) fn record(&self, ticket: Ticket) -> Option<u64> {
        self.tickets.get(usize::try_from(ticket.0).ok()?).copied()
    }

    /// The ticket of a record that was accepted.
    pub(super) fn ticket(&self, record: u64) -> Option<Ticket> {
        self.tickets.binary_search(&record).ok().map(|at| Ticket(at as u64))
    }

    fn bytes_of(&self, record: u64) -> usize {
        let page = usize::try_from(record).ok().and_then(|at| self.pages.get(at));
        page.map_or(0, |page| page.bytes)
    }

    /// Bytes of unknown records, but for these.
    pub(super) fn bytes_unknown(&self, but: &BTreeSet<u64>) -> usize {
        self.unresolved.difference(but).map(|record| self.bytes_of(*record)).sum()
    }

    fn page(&mut self, record: u64) -> Option<&mut Page> {
        self.pages.get_mut(usize::try_from(record).ok()?)
    }

    /// A record has its partition. Checks it against what the caller asked for.
    pub(super) fn placed(&mut self, now: u64, record: u64, place: Option<i32>) {
        let Some(page) = self.page(record) else { return };
        let Some(place) = place else { return };
        let wrong = page.asked.is_some_and(|asked| asked != place)
            || !(page.allowed.is_empty() || page.allowed.contains(&place))
            || page.place.is_some_and(|before| before != place);
        page.place = Some(place);
        if wrong {
            let text = format!("record {record} is in partition {place}, which it cannot be");
            self.complain(now, Class::Misrouted, Some(record), text);
        }
    }

    pub(super) fn lane(&self, record: u64) -> Option<Lane> {
        let page = self.pages.get(usize::try_from(record).ok()?)?;
        Some(lane(page.topic, page.place.or(page.asked).unwrap_or(NOWHERE)))
    }

    pub(super) fn verdict(&mut self, now: u64, at: u64, record: u64, verdict: Verdict) {
        let said = words::verdict(verdict);
        self.line(now, format_args!("record {record}: {verdict:?}"));
        self.untold.remove(&record);
        if said == Said::Unknown {
            self.unresolved.insert(record);
            self.unknown_bytes += self.bytes_of(record);
        }
        if let Some(page) = self.page(record) {
            page.said = Some(said);
        }
        self.fact(now, at, Fact::Verdict { record, said });
    }

    pub(super) fn resolution(&mut self, now: u64, at: u64, record: u64, resolution: Resolution) {
        let said = words::resolution(resolution);
        if let Resolution::Never { reason, .. } = resolution {
            self.never.add(reason);
        }
        self.line(now, format_args!("record {record} resolved: {resolution:?}"));
        if self.unresolved.remove(&record) {
            self.unknown_bytes -= self.bytes_of(record);
        }
        if let Some(page) = self.page(record) {
            page.resolved = Some(said);
        }
        self.fact(now, at, Fact::Resolution { record, said });
    }

    /// The ledger with every record in the lane that it got in the end.
    pub(super) fn settled_entries(&self) -> Vec<Entry> {
        let mut entries = self.entries.clone();
        for entry in &mut entries {
            if let Fact::Intent { record, lane, .. } = &mut entry.fact
                && let Some(home) = self.lane(*record)
            {
                *lane = home;
            }
        }
        entries
    }

    pub(super) fn hash(&self) -> u64 {
        self.trace.0
    }

    pub(super) fn take_timeline(&mut self) -> Vec<String> {
        self.timeline.take().unwrap_or_default()
    }
}

/// A lane of the run's one producer.
pub(super) const fn lane(topic: u32, partition: i32) -> Lane {
    Lane { producer: PRODUCER, topic, partition }
}
