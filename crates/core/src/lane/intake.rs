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

use super::batch::{Entry, Extent, Heard, OpenBatch, Past, Records, SealedBatch};
use super::schedule::Schedule;

/// Open batch and queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Intake<P> {
    /// Never an empty batch. Tickets ascend, from batch to batch and into the open one.
    queue: VecDeque<SealedBatch<P>>,
    open: OpenBatch<P>,
    /// V4: new batches are no larger than this.
    cut: Option<usize>,
    pub(super) last_ticket: Option<Ticket>,
    /// The batch before: the next one is likely to become as large.
    usual: Extent,
    queued_bytes: usize,
    /// Every record here, once one of them was due: as a rule none ever is.
    schedule: Option<Schedule>,
}

/// D3, D4: what left because its time was up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Due {
    /// Taken back, and never offered.
    pub(super) taken_back: Vec<Told>,
    /// All others, by batch.
    pub(super) expired: Vec<(Past, Vec<Told>)>,
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
            schedule: None,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.open.records.is_empty()
    }

    pub(super) fn shrink(&mut self) {
        self.queue.shrink_to_fit();
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
        if let Some(schedule) = &mut self.schedule {
            schedule.add(deadline, ticket);
        }
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
        if let Some(schedule) = &mut self.schedule {
            batches.iter().for_each(|batch| schedule.add_all(&batch.records.entries));
        }
        self.push_front(batches);
    }

    fn push_front(&mut self, batches: Vec<SealedBatch<P>>) {
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
            && let Some(mut front) = self.pop_front()
        {
            let mut parts = front.cut(cut);
            parts.insert(0, front);
            self.push_front(parts);
        }
        self.queue.front().map_or(0, |batch| batch.records.bytes())
    }

    pub(super) fn pop(&mut self) -> Option<SealedBatch<P>> {
        let batch = self.pop_front()?;
        if let Some(schedule) = &mut self.schedule {
            schedule.remove_all(&batch.records.entries);
        }
        self.rest();
        Some(batch)
    }

    fn pop_front(&mut self) -> Option<SealedBatch<P>> {
        let batch = self.queue.pop_front()?;
        self.queued_bytes -= batch.records.bytes();
        Some(batch)
    }

    /// With nothing in it, nothing is due either.
    fn rest(&mut self) {
        if self.open.records.is_empty() {
            self.open.due = Instant::NEVER;
        }
        if self.is_empty() {
            self.schedule = None;
        }
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
        self.schedule = None;
        self.rest();
    }

    /// When the first record is due.
    pub(super) fn expiry(&self) -> Instant {
        match &self.schedule {
            Some(schedule) => schedule.first(),
            None => self.records().map(Records::expiry).min().unwrap_or(Instant::NEVER),
        }
    }

    /// Queue and open batch, in order.
    fn records(&self) -> impl Iterator<Item = &Records<P>> {
        self.queue.iter().map(|batch| &batch.records).chain([&self.open.records])
    }

    /// D3, D4: takes out what is due.
    pub(super) fn expire<R: Rules>(&mut self, now: Instant) -> Due {
        if !R::expired(now, self.expiry()) {
            return Due::default();
        }
        let mut schedule = self.schedule.take().unwrap_or_else(|| Schedule::of(self.records()));
        let due = schedule.take_due::<R>(now);
        self.schedule = Some(schedule);
        let (taken_back, due): (Vec<Ticket>, Vec<Ticket>) =
            due.into_iter().partition(|ticket| self.is_taken_back(*ticket));
        let taken_back = self.take_these(&taken_back).into_iter().flat_map(|(_, told)| told);
        let taken_back = taken_back.collect();
        let expired = self.take_these(&due);
        self.rest();
        Due { taken_back, expired }
    }

    /// The place of the batch that has the record, if any has: behind the queue is the open one.
    fn place_of(&self, ticket: Ticket) -> usize {
        self.queue.partition_point(|batch| batch.records.last_ticket() < Some(ticket))
    }

    fn batch_at(&self, place: usize) -> (Past, &Records<P>) {
        let open = (Past::NeverOffered, &self.open.records);
        self.queue.get(place).map_or(open, |batch| (batch.past, &batch.records))
    }

    fn is_taken_back(&self, ticket: Ticket) -> bool {
        let (past, records) = self.batch_at(self.place_of(ticket));
        records.find(ticket).is_some_and(|entry| past.is_taken_back(entry))
    }

    /// Takes out these records, which ascend, by batch.
    fn take_these(&mut self, tickets: &[Ticket]) -> Vec<(Past, Vec<Told>)> {
        let places: Vec<usize> = tickets.iter().map(|ticket| self.place_of(*ticket)).collect();
        let (mut taken, mut emptied, mut rest) = (Vec::new(), Vec::new(), tickets);
        for here in places.chunk_by(|one, next| one == next) {
            let (these, others) = rest.split_at(here.len());
            rest = others;
            match self.queue.get_mut(here[0]) {
                None => taken.push((Past::NeverOffered, self.open.records.take_these(these))),
                Some(batch) => {
                    self.queued_bytes -= batch.records.bytes();
                    taken.push((batch.past, batch.records.take_these(these)));
                    self.queued_bytes += batch.records.bytes();
                    if batch.records.is_empty() {
                        emptied.push(here[0]);
                    }
                }
            }
        }
        self.drop_emptied(&emptied);
        taken
    }

    /// Few are taken out one by one, and many at once.
    fn drop_emptied(&mut self, places: &[usize]) {
        if places.len() * 8 >= self.queue.len() {
            self.queue.retain(|batch| !batch.records.is_empty());
        } else {
            places.iter().rev().for_each(|place| _ = self.queue.remove(*place));
        }
    }

    /// D5: takes out everything, by batch.
    pub(super) fn take_all(&mut self) -> Vec<(Past, Vec<Told>)> {
        self.seal();
        self.schedule = None;
        self.queued_bytes = 0;
        let batches = self.queue.drain(..);
        batches.map(|mut batch| (batch.past, batch.records.take(|_, _| true))).collect()
    }

    /// D4. Tells whether the record was here.
    pub(super) fn cancel(&mut self, ticket: Ticket, now: Instant) -> bool {
        let place = self.place_of(ticket);
        let Some(&Entry { deadline, .. }) = self.batch_at(place).1.find(ticket) else {
            return false;
        };
        if let Some(schedule) = &mut self.schedule {
            schedule.bring_forward(deadline, ticket, now);
        }
        let records = match self.queue.get_mut(place) {
            Some(batch) => &mut batch.records,
            None => &mut self.open.records,
        };
        records.cancel(ticket, now)
    }

    /// Where a record waits, for `why`.
    pub(super) fn find(&self, ticket: Ticket) -> Option<Waiting> {
        let place = self.place_of(ticket);
        let (_, records) = self.batch_at(place);
        records.find(ticket)?;
        match place {
            0 if self.queue.is_empty() => Some(Waiting::Open { due: self.open.due }),
            0 => Some(Waiting::Next),
            _ => Some(Waiting::Queued),
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
