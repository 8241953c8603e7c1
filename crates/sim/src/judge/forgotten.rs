//! What brokers append that know nothing of its producer any more: nobody can help it (A3, S20).
//!
//! All of it is read off logs and wire, batch by batch, by producer id. A broker that built up anew what
//! it knows when all of a producer was deleted takes whatever comes first, and what follows that:
//! - any sequence, so that the first batch may leave a gap, or take a sequence once more;
//! - a copy of what was deleted, if it was still in doubt when it was offered last. Of a first batch
//!   nobody can know better: a log start is compared with what was acknowledged, and nothing was;
//! - likewise the other one of two contents of a contested slot, behind which it then stands.
//!
//! A copy that comes when a broker has forgotten us may even be of what was told not to be there: the slot
//! that was taken keeps it out for as long as the broker remembers, and no longer.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::conditions::{Said, overlap, sequence_after, sequence_follows};
use super::history::{Entry, Excuse, ExcuseKind, Fact, History, Lane, Log, LogBatch, Stored};
use super::observer::micros;

/// Which batch it is: topic and partition, producer id and epoch, first sequence, how many records.
type Name = ((u32, i32), (i64, i16), i32, usize);

/// When a batch was offered and first acknowledged, as places in the ledger.
#[derive(Clone, Copy, Debug)]
struct Offers {
    lane: Lane,
    first: usize,
    last: usize,
    acknowledged: Option<usize>,
}

/// What a broker knew of a producer when it appended its next batch.
struct Before<'h> {
    newest: &'h LogBatch,
    /// It had forgotten what lies before this offset.
    knows_from: Option<i64>,
    /// That batch is a late copy itself. Since then the broker knew of nothing newer.
    late_since: Option<usize>,
}

/// What the ledgers tell of batches and records, by place.
#[derive(Debug, Default)]
struct Ledgers {
    offers: BTreeMap<Name, Offers>,
    /// Acknowledgements, in order.
    zeros: Vec<(usize, Name)>,
    /// What was told to be not delivered, and when first.
    denied: BTreeMap<u64, usize>,
}

/// Excuses that stand in no ledger of the nemesis: they follow from logs and wire.
pub(super) fn excuses(history: &History) -> Vec<Excuse> {
    let ledgers = ledgers(history);
    let found = history.logs.iter().map(|log| Reader { history, ledgers: &ledgers, log }.read());
    found.flatten().collect()
}

fn ledgers(history: &History) -> Ledgers {
    let mut ledgers = Ledgers::default();
    let mut names: BTreeMap<(Lane, u64), Name> = BTreeMap::new();
    for (place, Entry { fact, .. }) in history.entries.iter().enumerate() {
        if let Fact::Offered { lane, attempt } = fact {
            let (partition, epoch) =
                ((lane.topic, lane.partition), (attempt.producer_id, attempt.epoch));
            let name = (partition, epoch, attempt.first, attempt.records.len());
            let (lane, first, acknowledged) = (*lane, place, None);
            let new = Offers { lane, first, last: place, acknowledged };
            ledgers.offers.entry(name).or_insert(new).last = place;
            names.insert((lane, attempt.id), name);
        }
        if let Fact::Answered { lane, attempt, reply: Some(reply) } = fact
            && reply.code == 0
            && let Some(name) = names.get(&(*lane, *attempt))
            && let Some(offers) = ledgers.offers.get_mut(name)
        {
            offers.acknowledged.get_or_insert(place);
            ledgers.zeros.push((place, *name));
        }
        if let Fact::Verdict { record, said: Said::NotDelivered }
        | Fact::Resolution { record, said: Said::NotDelivered } = fact
        {
            ledgers.denied.entry(*record).or_insert(place);
        }
    }
    ledgers
}

struct Reader<'h> {
    history: &'h History,
    ledgers: &'h Ledgers,
    log: &'h Log,
}

impl<'h> Reader<'h> {
    fn read(&self) -> Vec<Excuse> {
        let mut excuses = Vec::new();
        let mut newest: BTreeMap<i64, Before<'h>> = BTreeMap::new();
        for (at, batch) in self.log.batches.iter().enumerate() {
            if batch.producer_id < 0 {
                continue;
            }
            let before = newest.get(&batch.producer_id);
            let late_since = before.and_then(|before| self.late_since(before, batch));
            let purged = before.and_then(|before| self.purged_between(before.newest, batch));
            let knows_from = match before {
                Some(before) if purged.is_none() => before.knows_from,
                Some(_) => Some(batch.base_offset),
                None => None,
            };
            let late = late_since.map(|since| (ExcuseKind::LateCopy, since));
            let first = purged.map(|since| (ExcuseKind::Forgotten, since));
            if let Some((kind, since)) = late.or(first) {
                excuses.push(self.excuse(kind, batch));
                excuses.extend(self.kept_out_until(since, batch));
            }
            if knows_from.is_some_and(|from| self.knew_no_better(at, batch, from)) {
                excuses.push(self.excuse(ExcuseKind::Again, batch));
            }
            newest.insert(batch.producer_id, Before { newest: batch, knows_from, late_since });
        }
        excuses
    }

    fn excuse(&self, kind: ExcuseKind, batch: &LogBatch) -> Excuse {
        Excuse {
            kind,
            topic: self.log.topic,
            partition: self.log.partition,
            from: batch.base_offset,
            to: batch.base_offset + batch.records.len() as i64,
            since: 0,
            until: u64::MAX,
        }
    }

    fn name(&self, batch: &LogBatch) -> Name {
        let partition = (self.log.topic, self.log.partition);
        (partition, (batch.producer_id, batch.epoch), batch.first, batch.records.len())
    }

    fn offered(&self, batch: &LogBatch) -> Option<Offers> {
        self.ledgers.offers.get(&self.name(batch)).copied()
    }

    /// C1, C4: the records of a batch that were told not to be there once other content had taken its
    /// slot, while the broker was to be relied upon.
    fn kept_out_until(&self, since: usize, batch: &LogBatch) -> Vec<Excuse> {
        let name = self.name(batch);
        let Some(offers) = self.offered(batch) else { return Vec::new() };
        let takers = self.ledgers.zeros.iter().filter(|(_, zero)| takes_slot(zero, &name));
        let mut places = takers.map(|(place, _)| *place);
        let taken = places.find(|place| *place > offers.last);
        let Some(taken) = taken.filter(|taken| *taken < since) else { return Vec::new() };
        let records = (batch.base_offset..).zip(&batch.records);
        let denied = records.filter(|(_, stored)| match stored {
            Stored::Ours(record) => {
                self.ledgers.denied.get(record).is_some_and(|told| *told > taken)
            }
            Stored::Foreign | Stored::Corrupt => false,
        });
        let whole = self.excuse(ExcuseKind::KeptOut, batch);
        denied.map(|(offset, _)| Excuse { from: offset, to: offset + 1, ..whole }).collect()
    }

    /// Whether a batch is a copy that was on its way when the broker forgot its producer by the timestamp
    /// of what it had appended last; if so, since when.
    fn late_since(&self, before: &Before<'_>, batch: &LogBatch) -> Option<usize> {
        let since = match before.late_since {
            Some(since) => since,
            None => self.forgot_by(before.newest, batch)?,
        };
        self.offered(batch).filter(|offers| offers.last < since).map(|_| since)
    }

    /// Since when nobody could rely on the broker's memory of its newest batch: that was offered, and its
    /// timestamp is beyond that memory. None if it was not yet when the next one was appended, or if a
    /// broker takes that one from whoever it remembers.
    fn forgot_by(&self, newest: &LogBatch, next: &LogBatch) -> Option<usize> {
        let ttl = self.history.settings.state_ttl?;
        let over = micros(newest.max_timestamp?).saturating_add(ttl);
        // As a rule it was not so even at the end: that spares a walk through the history per batch.
        if self.end() < over
            || follows(newest, next, self.history.settings.origin)
            || self.appended_by(next) < over
        {
            return None;
        }
        let since = self.history.entries.partition_point(|entry| entry.at < over);
        Some(since.max(self.offered(newest)?.first))
    }

    /// When a batch was in the log at the latest: it, or something behind it, was acknowledged, or the
    /// logs were read.
    fn appended_by(&self, batch: &LogBatch) -> u64 {
        let behind = self.history.entries.iter().find(|entry| {
            let Fact::Answered { lane, reply: Some(reply), .. } = &entry.fact else { return false };
            (lane.topic, lane.partition) == (self.log.topic, self.log.partition)
                && reply.code == 0
                && reply.base_offset >= batch.base_offset
        });
        behind.map_or_else(|| self.end(), |entry| entry.at)
    }

    fn end(&self) -> u64 {
        self.history.entries.last().map_or(0, |entry| entry.at).max(self.history.read_at)
    }

    /// Since when everything of this producer up to one batch was deleted, if it was before the next one
    /// came: since then a broker may have built up anew what it knows. Whether it did stands nowhere; but
    /// one that did not keeps gaps and copies out of its log, so that there is nothing to excuse.
    fn purged_between(&self, newest: &LogBatch, next: &LogBatch) -> Option<usize> {
        let purges = self.history.excuses.iter().filter(|excuse| {
            excuse.kind == ExcuseKind::Purge
                && (excuse.topic, excuse.partition) == (self.log.topic, self.log.partition)
                && newest.base_offset + newest.records.len() as i64 <= excuse.from
                && excuse.to <= next.base_offset
        });
        let since = purges.map(|purge| purge.since).min()?;
        Some(self.history.entries.partition_point(|entry| entry.at < since))
    }

    /// Whether a batch repeats, or stands behind, only what the broker had forgotten, and nothing of
    /// that was acknowledged to its lane when the batch was offered for the last time.
    fn knew_no_better(&self, at: usize, batch: &LogBatch, knows_from: i64) -> bool {
        let Some(offers) = self.offered(batch) else { return false };
        let earlier = self.log.batches[..at].iter();
        let against = earlier.filter(|other| newest(other) >= oldest(batch));
        let mut mine = against
            .filter_map(|other| Some((other.base_offset, self.offered(other)?)))
            .filter(|(_, other)| other.lane == offers.lane);
        mine.all(|(base_offset, other)| {
            let told = other.acknowledged.is_some_and(|place| place < offers.last);
            base_offset < knows_from && !told
        })
    }
}

/// Whether a broker that remembers one batch as its producer's newest takes the next: then the log says
/// nothing of what it forgot.
fn follows(newest: &LogBatch, next: &LogBatch, origin: i64) -> bool {
    match next.epoch.cmp(&newest.epoch) {
        Ordering::Less => false,
        Ordering::Greater => i64::from(next.first) == origin,
        Ordering::Equal => {
            let count = u32::try_from(newest.records.len()).unwrap_or(u32::MAX);
            let expected = sequence_after(i64::from(newest.first), count);
            sequence_follows(expected, i64::from(next.first)).is_none()
        }
    }
}

/// Whether one batch stands in the slot of another one of its epoch.
fn takes_slot(taker: &Name, batch: &Name) -> bool {
    let range = |name: &Name| (i64::from(name.2), u32::try_from(name.3).unwrap_or(u32::MAX));
    let ((first, count), (from, most)) = (range(taker), range(batch));
    (taker.0, taker.1) == (batch.0, batch.1) && taker != batch && overlap(first, count, from, most)
}

/// The record of a batch that was handed in last.
fn newest(batch: &LogBatch) -> Option<u64> {
    ours(batch).max()
}

fn oldest(batch: &LogBatch) -> Option<u64> {
    ours(batch).min()
}

fn ours(batch: &LogBatch) -> impl Iterator<Item = u64> + '_ {
    batch.records.iter().filter_map(|stored| match stored {
        Stored::Ours(record) => Some(*record),
        Stored::Foreign | Stored::Corrupt => None,
    })
}
