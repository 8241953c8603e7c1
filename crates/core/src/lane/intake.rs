//! Records that have no sequence yet: the open batch and the queue behind the span.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::action::Told;
use crate::config::LaneConfig;
use crate::event::Append;
use crate::ids::Ticket;
use crate::payload::Payload;
use crate::rules::Rules;
use crate::time::{Instant, Wakeup};

use super::batch::{Entry, Extent, Heard, OpenBatch, Past, Records, SealedBatch, index_of};

/// Open batch and queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Intake<P> {
    queue: VecDeque<SealedBatch<P>>,
    open: OpenBatch<P>,
    /// V4: new batches are no larger than this.
    cut: Option<usize>,
    pub(super) last_ticket: Option<Ticket>,
    /// The batch before: the next one is likely to become as large.
    usual: Extent,
    queued_bytes: usize,
}

impl<P: Payload> Intake<P> {
    pub(super) fn new() -> Self {
        Self {
            queue: VecDeque::new(),
            open: OpenBatch::empty(),
            cut: None,
            last_ticket: None,
            usual: Extent::default(),
            queued_bytes: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.open.records.is_empty()
    }

    pub(super) fn bytes(&self) -> usize {
        self.queued_bytes + self.open.records.bytes()
    }

    /// How large a batch may become.
    pub(super) fn limit(&self, config: &LaneConfig) -> usize {
        self.cut.map_or(config.batch_size, |cut| cut.min(config.batch_size))
    }

    /// D2: adds a record; a full batch is sealed.
    pub(super) fn append<R: Rules>(&mut self, config: &LaneConfig, append: Append<'_, P>) {
        let Append { ticket, born, deadline, timestamp, record } = append;
        let limit = self.limit(config);
        if !self.open.records.is_empty()
            && self.open.records.payload.size_with(timestamp, &record) > limit
        {
            self.seal();
        }
        if self.open.records.is_empty() {
            self.open.records.reserve(self.usual);
        }
        self.open.due = self.open.due.min(R::due(born, config.linger, deadline));
        self.open.records.push(
            Entry { ticket, deadline, taken_back: false, heard: Heard::Nothing },
            timestamp,
            record,
        );
        self.last_ticket = Some(ticket);
        if self.open.records.payload.bytes() >= limit {
            self.seal();
        }
    }

    fn seal(&mut self) {
        let open = core::mem::replace(&mut self.open, OpenBatch::empty());
        if !open.records.is_empty() {
            self.usual = open.records.extent();
            self.push_back(open.seal());
        }
    }

    fn push_back(&mut self, batch: SealedBatch<P>) {
        self.queued_bytes += batch.records.bytes();
        self.queue.push_back(batch);
    }

    /// Everything so far is due, and later records get a batch of their own.
    pub(super) fn flush(&mut self) {
        self.seal();
    }

    /// Everything so far is due.
    pub(super) fn linger_no_more(&mut self) {
        if !self.open.records.is_empty() {
            self.open.due = Instant::EPOCH;
        }
    }

    /// V2: batches that come back go before all others, in this order.
    pub(super) fn put_back(&mut self, batches: Vec<SealedBatch<P>>) {
        for batch in batches.into_iter().rev() {
            if !batch.records.is_empty() {
                self.queued_bytes += batch.records.bytes();
                self.queue.push_front(batch);
            }
        }
    }

    /// V4: a 10 showed how small batches must be.
    pub(super) fn cut_to(&mut self, limit: Option<usize>) {
        self.cut = match (self.cut, limit) {
            (Some(cut), Some(limit)) => Some(cut.min(limit)),
            (cut, limit) => cut.or(limit),
        };
    }

    /// When the next new batch may be offered, if there is one, and what it waits for till then.
    pub(super) fn due(&self) -> Option<(Instant, Wakeup)> {
        match self.queue.front() {
            Some(batch) => Some((batch.retry.not_before, Wakeup::Backoff)),
            None if self.open.records.is_empty() => None,
            None => Some((self.open.due, Wakeup::Linger)),
        }
    }

    /// Size of the next new batch, once cut.
    pub(super) fn next_bytes(&mut self) -> usize {
        if self.queue.is_empty() {
            self.seal();
        }
        if let Some(cut) = self.cut
            && let Some(mut front) = self.pop()
        {
            let mut parts = front.cut(cut);
            parts.insert(0, front);
            self.put_back(parts);
        }
        self.queue.front().map_or(0, |batch| batch.records.bytes())
    }

    pub(super) fn pop(&mut self) -> Option<SealedBatch<P>> {
        let batch = self.queue.pop_front()?;
        self.queued_bytes -= batch.records.bytes();
        Some(batch)
    }

    /// C3: the records that a replacement may take along, in order: those that wait for nothing
    /// but their turn.
    fn ready(&self, now: Instant) -> impl Iterator<Item = &Records<P>> {
        let rests = self.queue.iter().position(|batch| batch.retry.not_before > now);
        let queued = self.queue.iter().take(rests.unwrap_or(self.queue.len()));
        let open = rests.is_none().then_some(&self.open.records);
        queued.map(|batch| &batch.records).chain(open)
    }

    /// C3: their tickets.
    pub(super) fn ready_tickets(&self, now: Instant) -> impl Iterator<Item = Ticket> {
        self.ready(now).flat_map(|records| &records.entries).map(|entry| entry.ticket)
    }

    /// C3: a copy of the first `count` of them.
    pub(super) fn copy_ready(&self, now: Instant, count: usize) -> Records<P> {
        let mut copy = Records::empty();
        for records in self.ready(now) {
            let room = count - copy.entries.len();
            if room == 0 {
                break;
            }
            let mut more = records.clone();
            if more.entries.len() > room {
                more.split_off(room as u32);
            }
            copy.join(more);
        }
        copy
    }

    /// C3: a replacement took the first `count` of them along.
    pub(super) fn drop_ready(&mut self, count: usize) {
        let mut left = count;
        let mut drop = |records: &mut Records<P>| {
            let here = left.min(records.entries.len());
            records.take(|index, _| index < here);
            left -= here;
        };
        self.queue.iter_mut().for_each(|batch| drop(&mut batch.records));
        drop(&mut self.open.records);
        self.queue.retain(|batch| !batch.records.is_empty());
        self.queued_bytes = self.queue.iter().map(|batch| batch.records.bytes()).sum();
        if self.open.records.is_empty() {
            self.open.due = Instant::NEVER;
        }
    }

    pub(super) fn expiry(&self) -> Instant {
        let queued = self.queue.iter().map(|batch| batch.records.expiry()).min();
        queued.unwrap_or(Instant::NEVER).min(self.open.records.expiry())
    }

    /// D4: takes out what was taken back and never offered.
    pub(super) fn take_back<R: Rules>(&mut self, now: Instant) -> Vec<Told> {
        let taken = self.take(
            |batch| (batch.past, batch.take_back::<R>(now)),
            |open| open.records.take_back::<R>(now),
        );
        taken.into_iter().flat_map(|(_, told)| told).collect()
    }

    /// D3: takes out what is due, by batch.
    pub(super) fn expire<R: Rules>(&mut self, now: Instant) -> Vec<(Past, Vec<Told>)> {
        self.take(
            |batch| (batch.past, batch.records.expire::<R>(now)),
            |open| open.records.expire::<R>(now),
        )
    }

    /// D5: takes out everything, by batch.
    pub(super) fn take_all(&mut self) -> Vec<(Past, Vec<Told>)> {
        self.take(
            |batch| (batch.past, batch.records.take(|_, _| true)),
            |open| open.records.take(|_, _| true),
        )
    }

    fn take(
        &mut self,
        mut queued: impl FnMut(&mut SealedBatch<P>) -> (Past, Vec<Told>),
        open: impl FnOnce(&mut OpenBatch<P>) -> Vec<Told>,
    ) -> Vec<(Past, Vec<Told>)> {
        let mut taken: Vec<_> = self.queue.iter_mut().map(&mut queued).collect();
        self.queue.retain(|batch| !batch.records.is_empty());
        self.queued_bytes = self.queue.iter().map(|batch| batch.records.bytes()).sum();
        taken.push((Past::NeverOffered, open(&mut self.open)));
        if self.open.records.is_empty() {
            self.open.due = Instant::NEVER;
        }
        taken.retain(|(_, told)| !told.is_empty());
        taken
    }

    /// D4. Tells whether the record was here.
    pub(super) fn cancel(&mut self, ticket: Ticket, now: Instant) -> bool {
        self.queue.iter_mut().any(|batch| batch.records.cancel(ticket, now))
            || self.open.records.cancel(ticket, now)
    }

    /// Where a record waits, for `why`.
    pub(super) fn find(&self, ticket: Ticket) -> Option<Waiting> {
        let holds = |entries: &[Entry]| index_of(entries, ticket).is_some();
        let queued = self.queue.iter().position(|batch| holds(&batch.records.entries));
        match queued {
            Some(0) => Some(Waiting::Next),
            Some(_) => Some(Waiting::Queued),
            None if !holds(&self.open.records.entries) => None,
            None if self.queue.is_empty() => Some(Waiting::Open { due: self.open.due }),
            None => Some(Waiting::Queued),
        }
    }

    /// `waits`: there is time between attempts, so that it matters how many failed.
    pub(super) fn digest(
        &self,
        mut word: impl FnMut(u64),
        relative: impl Fn(Instant) -> u64,
        waits: bool,
    ) {
        for batch in &self.queue {
            word(batch.past as u64 + 10);
            word(relative(batch.retry.not_before));
            word(if waits { u64::from(batch.retry.failures.min(8)) } else { 0 });
            for entry in &batch.records.entries {
                word(entry.ticket.0 << 1 | u64::from(entry.taken_back));
                word(relative(entry.deadline));
            }
        }
        word(relative(self.open.due));
        for entry in &self.open.records.entries {
            word(entry.ticket.0 << 1 | u64::from(entry.taken_back));
            word(relative(entry.deadline));
        }
        word(self.cut.map_or(0, |cut| cut as u64 + 1));
    }
}

/// Where a record without a sequence waits.
pub(super) enum Waiting {
    /// In the open batch, with nothing before it.
    Open { due: Instant },
    /// In the batch that is offered next.
    Next,
    /// Behind others.
    Queued,
}
