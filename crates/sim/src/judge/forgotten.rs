//! What brokers append that know nothing of its producer any more: nobody can help it (A3, S20).

use std::collections::BTreeMap;

use super::history::{Entry, Excuse, ExcuseKind, Fact, History, Log, LogBatch};

/// Which batch it is: topic and partition, producer id and epoch, first sequence, how many records.
type Name = ((u32, i32), (i64, i16), i32, usize);

/// When a batch was offered, as places in the ledger, and what it is stamped with.
#[derive(Clone, Copy, Debug)]
struct Offers {
    first: usize,
    last: usize,
    max_timestamp: i64,
}

/// What a broker knew of a producer when it appended its next batch.
struct Before<'h> {
    newest: &'h LogBatch,
    /// That batch is a late copy itself. Since then the broker knew of nothing newer.
    late_since: Option<usize>,
}

/// Excuses that stand in no ledger of the nemesis: they follow from logs and wire.
pub(super) fn excuses(history: &History) -> Vec<Excuse> {
    let offers = offers(history);
    let found = history.logs.iter().map(|log| Reader { history, offers: &offers, log }.read());
    found.flatten().collect()
}

fn offers(history: &History) -> BTreeMap<Name, Offers> {
    let mut offers: BTreeMap<Name, Offers> = BTreeMap::new();
    for (place, Entry { fact, .. }) in history.entries.iter().enumerate() {
        let Fact::Offered { lane, attempt } = fact else { continue };
        let (partition, epoch) =
            ((lane.topic, lane.partition), (attempt.producer_id, attempt.epoch));
        let name = (partition, epoch, attempt.first, attempt.records.len());
        let max_timestamp = attempt.max_timestamp;
        let new = Offers { first: place, last: place, max_timestamp };
        offers.entry(name).or_insert(new).last = place;
    }
    offers
}

struct Reader<'h> {
    history: &'h History,
    offers: &'h BTreeMap<Name, Offers>,
    log: &'h Log,
}

impl<'h> Reader<'h> {
    fn read(&self) -> Vec<Excuse> {
        let mut excuses = Vec::new();
        let mut newest: BTreeMap<i64, Before<'h>> = BTreeMap::new();
        for batch in self.log.batches.iter().filter(|batch| batch.producer_id >= 0) {
            let before = newest.get(&batch.producer_id);
            let late_since = before.and_then(|before| self.late_since(before, batch));
            if late_since.is_some() {
                excuses.push(self.excuse(ExcuseKind::LateCopy, batch));
            } else if before.is_some_and(|before| self.deleted_between(before.newest, batch)) {
                excuses.push(self.excuse(ExcuseKind::Forgotten, batch));
            }
            newest.insert(batch.producer_id, Before { newest: batch, late_since });
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

    fn offered(&self, batch: &LogBatch) -> Option<Offers> {
        let partition = (self.log.topic, self.log.partition);
        let name = (partition, (batch.producer_id, batch.epoch), batch.first, batch.records.len());
        self.offers.get(&name).copied()
    }

    /// Whether a batch is a copy that was on its way when the batch was offered by whose record
    /// timestamps the broker forgot its producer; if so, since when.
    fn late_since(&self, before: &Before<'_>, batch: &LogBatch) -> Option<usize> {
        let since = match before.late_since {
            Some(since) => since,
            None => self.forgot_by(before.newest, batch)?,
        };
        self.offered(batch).filter(|offers| offers.last < since).map(|_| since)
    }

    /// The place of the first offer of this batch, if its timestamps were beyond the memory of a
    /// broker when the next one was appended.
    fn forgot_by(&self, newest: &LogBatch, next: &LogBatch) -> Option<usize> {
        let offers = self.offered(newest)?;
        let forgets = |now| self.history.settings.forgets_timestamp(now, offers.max_timestamp);
        // As a rule it was not so even at the end: that spares a walk through the history per batch.
        (forgets(self.end()) && forgets(self.appended_by(next))).then_some(offers.first)
    }

    /// When a batch was in the log at the latest: something behind it was acknowledged, or the
    /// history ended.
    fn appended_by(&self, batch: &LogBatch) -> u64 {
        let behind = self.history.entries.iter().find(|entry| {
            let Fact::Answered { lane, reply: Some(reply), .. } = &entry.fact else { return false };
            (lane.topic, lane.partition) == (self.log.topic, self.log.partition)
                && reply.code == 0
                && reply.base_offset > batch.base_offset
        });
        behind.map_or_else(|| self.end(), |entry| entry.at)
    }

    fn end(&self) -> u64 {
        self.history.entries.last().map_or(0, |entry| entry.at)
    }

    /// Whether everything that a broker knew of a producer, up to this batch of its log, was deleted
    /// before it reloaded what it knows, and the next batch was not.
    fn deleted_between(&self, newest: &LogBatch, next: &LogBatch) -> bool {
        self.history.excuses.iter().any(|excuse| {
            excuse.kind == ExcuseKind::Deletion
                && (excuse.topic, excuse.partition) == (self.log.topic, self.log.partition)
                && newest.base_offset < excuse.to
                && excuse.to <= next.base_offset
        })
    }
}
