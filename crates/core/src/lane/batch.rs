//! A batch in the three states of its life before it is settled: open, sealed, sequenced.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::action::Told;
use crate::ids::{AttemptId, Identity, Offset, RouteId, Sequence, Ticket};
use crate::payload::{Frozen, Payload};
use crate::rules::{Mark, Rules, Standing};
use crate::time::Instant;
use crate::verdict::{Doubt, Proof};

/// What the owner of a record was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// Nothing yet.
    Nothing,
    /// The verdict `Unknown`: a resolution follows.
    Unknown,
    /// That is for another batch, which carries the same record (C), to know.
    Elsewhere,
}

/// A record's name and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) ticket: Ticket,
    pub(super) deadline: Instant,
    /// D4: its owner brought the deadline forward.
    pub(super) taken_back: bool,
    pub(super) heard: Heard,
}

impl Entry {
    pub(super) fn is_untold(&self) -> bool {
        self.heard == Heard::Nothing
    }

    fn to_told(self, index: usize) -> Told {
        Told { ticket: self.ticket, index: index as u32, unknown: self.heard == Heard::Unknown }
    }
}

/// Whether a batch in doubt is only settled, or its slot is to be taken by other content (C).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// It is resent until the answers decide.
    Settle,
    /// Where its turn comes to be resent, a replacement goes in its place.
    Contest,
    /// A replacement was refused at this leader: the batch itself is asked (C4). None goes in its place
    /// again before this time, unless the leader is newer (L3).
    Contested { not_before: Instant },
}

impl Wish {
    pub(super) const fn is_contested(self) -> bool {
        matches!(self, Self::Contested { .. })
    }
}

/// How large a batch became.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Extent {
    records: usize,
    bytes: usize,
}

/// Records without a sequence. Nobody was told anything about them yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Records<P> {
    pub(super) payload: P,
    /// In both directions: records expire from the front, as a rule.
    pub(super) entries: VecDeque<Entry>,
    /// Places in the payload whose records have left, in order.
    stale: Vec<u32>,
    /// No record of it is due before this.
    expiry: Instant,
}

impl<P: Payload> Records<P> {
    pub(super) fn empty() -> Self {
        let (entries, stale) = (VecDeque::new(), Vec::new());
        Self { payload: P::empty(), entries, stale, expiry: Instant::NEVER }
    }

    pub(super) fn push(&mut self, entry: Entry, timestamp: i64, record: P::Record<'_>) {
        self.payload.push(timestamp, record);
        self.expiry = self.expiry.min(entry.deadline);
        self.entries.push_back(entry);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Makes room for a batch like an earlier one, and for an eighth more: one that becomes a
    /// little larger would double its room.
    pub(super) fn reserve(&mut self, like: Extent) {
        self.payload.reserve(like.bytes + like.bytes / 8);
        self.entries.reserve_exact(like.records + like.records / 8);
    }

    pub(super) fn extent(&self) -> Extent {
        Extent { records: self.entries.len(), bytes: self.bytes() }
    }

    pub(super) fn bytes(&self) -> usize {
        if self.is_empty() { 0 } else { self.payload.bytes() }
    }

    /// When the first of them is due.
    pub(super) fn expiry(&self) -> Instant {
        if self.stale.is_empty() { self.expiry } else { earliest(&self.entries) }
    }

    /// The newest of them; tickets ascend.
    pub(super) fn last_ticket(&self) -> Option<Ticket> {
        self.entries.back().map(|entry| entry.ticket)
    }

    fn index_of(&self, ticket: Ticket) -> Option<usize> {
        self.entries.binary_search_by_key(&ticket, |entry| entry.ticket).ok()
    }

    /// The entry of a record.
    pub(super) fn find(&self, ticket: Ticket) -> Option<&Entry> {
        self.entries.get(self.index_of(ticket)?)
    }

    /// D3: takes out these records, in order. What that costs depends on how many they are, and not
    /// on how many stay.
    pub(super) fn take_these(&mut self, tickets: &[Ticket]) -> Vec<Told> {
        if tickets.len() * 8 >= self.entries.len() {
            return self.take(|_, entry| tickets.binary_search(&entry.ticket).is_ok());
        }
        // From the back, so that the indexes of the others stay as they are.
        let mut taken: Vec<Told> =
            tickets.iter().rev().filter_map(|ticket| self.take_one(*ticket)).collect();
        taken.reverse();
        self.compact_half();
        taken
    }

    fn take_one(&mut self, ticket: Ticket) -> Option<Told> {
        let index = self.index_of(ticket)?;
        let entry = self.entries.remove(index)?;
        let before = stale_before(&self.stale, index);
        self.stale.insert(before, (index + before) as u32);
        Some(entry.to_told(index))
    }

    /// D3: takes out the records for which `leaves` says so. The payload follows once half of it
    /// is out of date, or when it is needed: else records that expire one by one would have it
    /// rewritten each time.
    pub(super) fn take(&mut self, mut leaves: impl FnMut(usize, &Entry) -> bool) -> Vec<Told> {
        let mut taken = Vec::new();
        let (mut position, mut place) = (0, 0);
        let mut stale = Vec::with_capacity(self.stale.len());
        let mut known = core::mem::take(&mut self.stale).into_iter().peekable();
        self.entries.retain(|entry| {
            while known.next_if_eq(&place).is_some() {
                stale.push(place);
                place += 1;
            }
            let leaving = leaves(position, entry);
            if leaving {
                taken.push(entry.to_told(position));
                stale.push(place);
            }
            position += 1;
            place += 1;
            !leaving
        });
        stale.extend(known);
        self.stale = stale;
        if self.entries.is_empty() {
            *self = Self::empty();
        }
        self.compact_half();
        self.expiry = earliest(&self.entries);
        taken
    }

    fn compact_half(&mut self) {
        if self.stale.len() > self.entries.len() {
            self.compact();
        }
    }

    /// Brings the payload, and the bound on deadlines, up to date.
    fn compact(&mut self) {
        let stale = core::mem::take(&mut self.stale);
        if !stale.is_empty() {
            self.payload.remove_all(&stale);
            self.expiry = earliest(&self.entries);
        }
    }

    /// D1: takes out the records that are due.
    pub(super) fn expire<R: Rules>(&mut self, now: Instant) -> Vec<Told> {
        if !R::expired(now, self.expiry) {
            return Vec::new();
        }
        self.take(|_, entry| R::expired(now, entry.deadline))
    }

    /// D4: deadline := now.
    pub(super) fn cancel(&mut self, ticket: Ticket, now: Instant) -> bool {
        let entry = self.index_of(ticket).and_then(|index| self.entries.get_mut(index));
        let Some(entry) = entry else { return false };
        bring_forward(entry, now);
        self.expiry = self.expiry.min(now);
        true
    }

    /// Adds these records behind its own.
    pub(super) fn join(&mut self, mut behind: Self) {
        self.compact();
        behind.compact();
        self.payload.join(behind.payload);
        self.entries.append(&mut behind.entries);
        self.expiry = self.expiry.min(behind.expiry);
    }

    pub(super) fn split_off(&mut self, at: u32) -> Self {
        self.compact();
        let payload = self.payload.split_off(at);
        let entries = self.entries.split_off(at as usize);
        self.expiry = earliest(&self.entries);
        Self { payload, expiry: earliest(&entries), entries, stale: Vec::new() }
    }
}

fn earliest<'e>(entries: impl IntoIterator<Item = &'e Entry>) -> Instant {
    let untold = entries.into_iter().filter(|entry| entry.is_untold());
    untold.map(|entry| entry.deadline).min().unwrap_or(Instant::NEVER)
}

/// Where the entry of a record is; tickets ascend.
pub(super) fn index_of(entries: &[Entry], ticket: Ticket) -> Option<usize> {
    entries.binary_search_by_key(&ticket, |entry| entry.ticket).ok()
}

/// The entry of a record.
pub(super) fn find(entries: &[Entry], ticket: Ticket) -> Option<&Entry> {
    entries.get(index_of(entries, ticket)?)
}

fn bring_forward(entry: &mut Entry, now: Instant) {
    if now < entry.deadline {
        entry.deadline = now;
        entry.taken_back = true;
    }
}

/// How many of these places, which ascend, lie before the record with this index.
fn stale_before(stale: &[u32], index: usize) -> usize {
    let (mut low, mut high) = (0, stale.len());
    while low < high {
        let middle = low.midpoint(high);
        // So many records stay before that place.
        if stale[middle] as usize - middle <= index { low = middle + 1 } else { high = middle }
    }
    low
}

/// When a batch may be offered (again).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Retry {
    pub(super) not_before: Instant,
    pub(super) failures: u32,
}

impl Retry {
    pub(super) const AT_ONCE: Self = Self { not_before: Instant::EPOCH, failures: 0 };
}

/// The batch being filled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OpenBatch<P> {
    pub(super) records: Records<P>,
    /// D2: it is offered no later than this, if the lane can offer at all.
    pub(super) due: Instant,
}

impl<P: Payload> OpenBatch<P> {
    pub(super) fn empty() -> Self {
        Self { records: Records::empty(), due: Instant::NEVER }
    }

    pub(super) fn seal(self) -> SealedBatch<P> {
        SealedBatch { records: self.records, past: Past::NeverOffered, retry: Retry::AT_ONCE }
    }
}

/// Whether a sealed batch was offered before, under an identity that is out of the way (S3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Past {
    NeverOffered,
    Refused,
    Unreachable,
    SlotTaken,
}

impl Past {
    /// D4: whether the record was taken back before anything of it was offered.
    pub(super) fn is_taken_back(self, entry: &Entry) -> bool {
        match self {
            Self::NeverOffered => entry.taken_back,
            Self::Refused | Self::Unreachable | Self::SlotTaken => false,
        }
    }

    /// What proves that such a record is not in the log.
    pub(super) fn proof(self) -> Proof {
        match self {
            Self::NeverOffered => Proof::NeverOffered,
            Self::Refused => Proof::Refused,
            Self::Unreachable => Proof::Unreachable,
            Self::SlotTaken => Proof::SlotTaken,
        }
    }
}

/// Final records without a sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SealedBatch<P> {
    pub(super) records: Records<P>,
    pub(super) past: Past,
    /// V5: children and thawed batches keep the backoff of the batch that they come from.
    pub(super) retry: Retry,
}

impl<P: Payload> SealedBatch<P> {
    /// S1, S2: binds identity and sequence, at the first offer.
    pub(super) fn sequence(
        mut self,
        identity: Identity,
        first: Sequence,
        now: Instant,
    ) -> SequencedBatch<P> {
        self.records.compact();
        let expiry = self.records.expiry();
        let frozen = self.records.payload.freeze(identity, first);
        SequencedBatch {
            frozen,
            entries: self.records.entries.into(),
            expiry,
            identity,
            first,
            retry: Retry { not_before: now, ..self.retry },
            spared: None,
            tally: Tally::default(),
            mark: Mark::Unasked,
            wish: Wish::Settle,
            permanent: None,
            corrupt_in_a_row: 0,
            first_offer: now,
            log_start_moved_past: false,
        }
    }

    /// Halves it, as often as needed and possible, until the first part fits; returns the rest.
    pub(super) fn cut(&mut self, limit: usize) -> Vec<Self> {
        let mut rest = Vec::new();
        while self.records.bytes() > limit && self.records.entries.len() > 1 {
            let at = (self.records.entries.len() as u32).div_ceil(2);
            let records = self.records.split_off(at);
            rest.push(Self { records, past: self.past, retry: self.retry });
        }
        rest.reverse();
        rest
    }
}

/// What is known of the attempts of a batch (rules 1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) offered: u32,
    pub(super) refused: u32,
    /// Oldest attempt that ended in doubt, and on which route.
    doubtful: Vec<(RouteId, AttemptId)>,
}

impl Tally {
    /// Adds an attempt that ended in doubt. Of each route only the oldest one matters.
    pub(super) fn add_doubt(&mut self, route: RouteId, attempt: AttemptId) {
        match self.doubtful.iter_mut().find(|(known, _)| *known == route) {
            Some((_, oldest)) => *oldest = attempt.min(*oldest),
            None => self.doubtful.push((route, attempt)),
        }
    }

    /// Routes without unanswered attempts prove nothing any more; only the oldest doubt counts.
    pub(super) fn forget_routes(&mut self, mut in_use: impl FnMut(RouteId) -> bool) {
        let oldest = self.oldest_doubt();
        self.doubtful.retain(|&(route, attempt)| Some(attempt) == oldest || in_use(route));
    }

    pub(super) fn oldest_doubt(&self) -> Option<AttemptId> {
        self.doubtful.iter().map(|&(_, attempt)| attempt).min()
    }

    pub(super) fn doubt_on(&self, route: RouteId) -> Option<AttemptId> {
        let found = self.doubtful.iter().find(|(known, _)| *known == route);
        found.map(|&(_, attempt)| attempt)
    }

    pub(super) fn standing<R: Rules>(&self) -> Standing {
        R::standing(self.offered, self.refused)
    }

    pub(super) fn doubts(&self) -> impl Iterator<Item = (RouteId, AttemptId)> + '_ {
        self.doubtful.iter().copied()
    }
}

/// A permanent code that a batch was answered (V1, L4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) code: i16,
    pub(super) named: Vec<u32>,
    pub(super) in_a_row: u32,
}

/// A batch under an identity and a sequence: offered, and neither written nor given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SequencedBatch<P: Payload> {
    pub(super) frozen: P::Frozen,
    pub(super) entries: Vec<Entry>,
    expiry: Instant,
    pub(super) identity: Identity,
    pub(super) first: Sequence,
    pub(super) retry: Retry,
    /// L3: the end of the wait that a newer leader epoch spares it, until it is offered.
    pub(super) spared: Option<Instant>,
    pub(super) tally: Tally,
    pub(super) mark: Mark,
    pub(super) wish: Wish,
    pub(super) permanent: Option<Refusal>,
    pub(super) corrupt_in_a_row: u32,
    pub(super) first_offer: Instant,
    /// S20: since then an answer showed a log start past the last acknowledged offset.
    pub(super) log_start_moved_past: bool,
}

impl<P: Payload> SequencedBatch<P> {
    pub(super) fn count(&self) -> u32 {
        self.entries.len() as u32
    }

    pub(super) fn expiry(&self) -> Instant {
        self.expiry
    }

    pub(super) fn standing<R: Rules>(&self) -> Standing {
        self.tally.standing::<R>()
    }

    pub(super) fn all_told(&self) -> bool {
        !self.entries.iter().any(Entry::is_untold)
    }

    pub(super) fn any_told(&self) -> bool {
        !self.entries.iter().all(Entry::is_untold)
    }

    /// D3: records of it had their verdict, and no replacement was written: it is refused, and
    /// gives up its slot once the replacement that shares others of its records is decided.
    pub(super) fn is_reduced(&self) -> bool {
        self.entries.iter().any(|entry| entry.heard == Heard::Elsewhere)
    }

    pub(super) fn find(&self, ticket: Ticket) -> Option<&Entry> {
        find(&self.entries, ticket)
    }

    pub(super) fn max_timestamp(&self) -> i64 {
        self.frozen.max_timestamp()
    }

    /// Every record that it speaks for, for a completion of the whole batch.
    pub(super) fn told(&self) -> Vec<Told> {
        let entries = self.entries.iter().enumerate();
        let own = entries.filter(|(_, entry)| entry.heard != Heard::Elsewhere);
        // As a rule it speaks for all of them; a filter alone would let the list grow step by step.
        let mut told = Vec::with_capacity(self.entries.len());
        told.extend(own.map(|(index, entry)| entry.to_told(index)));
        told
    }

    /// Another batch speaks for these records from now on: they are handed over as they were told.
    pub(super) fn hand_over(&mut self, whom: impl Fn(&Entry) -> bool) -> Vec<Told> {
        let mut handed = Vec::new();
        for (index, entry) in self.entries.iter_mut().enumerate() {
            if entry.heard != Heard::Elsewhere && whom(entry) {
                handed.push(entry.to_told(index));
                entry.heard = Heard::Elsewhere;
            }
        }
        self.expiry = earliest(&self.entries);
        handed
    }

    /// It speaks for these records from now on.
    pub(super) fn speak_for(&mut self, records: &[Told]) {
        for told in records {
            if let Some(index) = index_of(&self.entries, told.ticket) {
                self.entries[index].heard =
                    if told.unknown { Heard::Unknown } else { Heard::Nothing };
            }
        }
    }

    /// C3: a copy of the records for which `stays` says so; this batch goes on speaking for them.
    pub(super) fn copy(&self, stays: impl Fn(&Entry) -> bool) -> Records<P> {
        let (payload, entries) = (self.frozen.clone().thaw(), self.entries.clone().into());
        let mut records = Records { payload, entries, stale: Vec::new(), expiry: Instant::NEVER };
        records.take(|_, entry| !stays(entry));
        records.entries.iter_mut().for_each(|entry| entry.heard = Heard::Elsewhere);
        records.expiry = Instant::NEVER;
        records
    }

    /// Marks records as told `Unknown`; returns those that were not.
    pub(super) fn tell(&mut self, mut whom: impl FnMut(&Entry) -> bool) -> Vec<Told> {
        let mut newly = Vec::new();
        for (index, entry) in self.entries.iter_mut().enumerate() {
            if entry.is_untold() && whom(entry) {
                newly.push(entry.to_told(index));
                entry.heard = Heard::Unknown;
            }
        }
        self.expiry = earliest(&self.entries);
        newly
    }

    pub(super) fn cancel(&mut self, ticket: Ticket, now: Instant) -> bool {
        let Some(index) = index_of(&self.entries, ticket) else { return false };
        bring_forward(&mut self.entries[index], now);
        self.expiry = earliest(&self.entries);
        true
    }

    pub(super) fn doubt(&self, last_acknowledged: Option<Offset>) -> Doubt {
        Doubt {
            identity: self.identity,
            first: self.first,
            count: self.count(),
            index: 0,
            last_acknowledged,
        }
    }

    /// S2, V1: takes the sequence off. Records that were told `Unknown` leave, and come second;
    /// of the others those for which `fails` says so, and come third. What another batch speaks
    /// for leaves in silence.
    pub(super) fn thaw(
        self,
        past: Past,
        fails: impl Fn(u32, Instant) -> bool,
    ) -> (SealedBatch<P>, Vec<Told>, Vec<Told>) {
        let (expiry, retry) = (self.expiry, self.retry);
        let own: Vec<Ticket> = self.told().iter().map(|told| told.ticket).collect();
        let (payload, entries) = (self.frozen.thaw(), self.entries.into());
        let mut records = Records { payload, entries, stale: Vec::new(), expiry };
        let mut left =
            records.take(|i, entry| !entry.is_untold() || fails(i as u32, entry.deadline));
        left.retain(|left| own.binary_search(&left.ticket).is_ok());
        let (told, failed) = left.into_iter().partition(|left| left.unknown);
        (SealedBatch { records, past, retry }, told, failed)
    }
}
