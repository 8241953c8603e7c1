//! One partition as brokers keep it: what is committed, what only the leader has, and what is
//! remembered of producers. Arithmetic and types are its own.

use std::collections::{BTreeMap, VecDeque};

/// 24 h in milliseconds: `producer.id.expiration.ms`.
pub const FORGETS_AFTER: i64 = 24 * 3_600_000;

/// A batch in the log.
#[derive(Clone, Debug)]
pub struct Entry {
    pub base: i64,
    pub pid: i64,
    pub epoch: i16,
    pub first: i32,
    pub max_timestamp: i64,
    /// Names of the records.
    pub values: Vec<u64>,
}

/// What is remembered of a producer: its epoch and its newest batches.
#[derive(Clone, Debug, Default)]
struct Known {
    epoch: i16,
    /// First and last sequence, offset, largest timestamp.
    batches: VecDeque<(i32, i32, i64, i64)>,
}

/// One incarnation of a partition.
#[derive(Clone, Debug, Default)]
pub struct Log {
    pub entries: Vec<Entry>,
    /// So many entries survive a change of leader.
    pub committed: usize,
    known: BTreeMap<i64, Known>,
}

/// What the leader says at once.
pub enum Said {
    Code(i16),
    /// Appended, or a duplicate: wait until everything up to this offset is committed.
    Appended(i64),
}

impl Log {
    pub fn end(&self) -> i64 {
        self.entries.last().map_or(0, |entry| entry.base + entry.values.len() as i64)
    }

    pub fn is_committed(&self, offset: i64) -> bool {
        self.entries[..self.committed].iter().any(|entry| entry.base == offset)
    }

    pub fn commit(&mut self) {
        self.committed = self.entries.len();
    }

    /// What brokers since 2.5 do, in their order.
    pub fn append(&mut self, mut entry: Entry) -> Said {
        let last = sequence_after(entry.first, entry.values.len() as i32 - 1);
        let known = self.known.get(&entry.pid);
        if let Some(known) = known {
            let duplicate = known.batches.iter().find(|(f, l, ..)| (*f, *l) == (entry.first, last));
            if known.epoch == entry.epoch
                && let Some((_, _, offset, _)) = duplicate
            {
                return Said::Appended(*offset);
            }
            if entry.epoch < known.epoch {
                return Said::Code(47);
            }
            let newest = known.batches.back().filter(|_| known.epoch == entry.epoch);
            let expected = newest.map_or(0, |(_, last, ..)| sequence_after(*last, 1));
            if entry.first != expected {
                return Said::Code(45);
            }
        }
        entry.base = self.end();
        let base = entry.base;
        self.remember(&entry);
        self.entries.push(entry);
        Said::Appended(base)
    }

    fn remember(&mut self, entry: &Entry) {
        let known = self.known.entry(entry.pid).or_default();
        if known.epoch != entry.epoch {
            *known = Known { epoch: entry.epoch, batches: VecDeque::new() };
        }
        let last = sequence_after(entry.first, entry.values.len() as i32 - 1);
        known.batches.push_back((entry.first, last, entry.base, entry.max_timestamp));
        if known.batches.len() > 5 {
            known.batches.pop_front();
        }
    }

    /// Another replica leads: what was not committed may be gone.
    pub fn lose_tail(&mut self) {
        self.entries.truncate(self.committed);
        self.known.clear();
        for entry in self.entries.clone() {
            self.remember(&entry);
        }
    }

    /// A replica was loaded: only the newest batch of each producer is known.
    pub fn reload(&mut self) {
        for known in self.known.values_mut() {
            let newest = known.batches.pop_back();
            known.batches.clear();
            known.batches.extend(newest);
        }
    }

    /// Producers whose newest batch is stamped a day ago are forgotten.
    pub fn forget(&mut self, now: i64) {
        self.known.retain(|_, known| {
            known.batches.back().is_some_and(|(.., stamp)| now - stamp < FORGETS_AFTER)
        });
    }
}

/// Sequences count modulo 2^31.
fn sequence_after(first: i32, by: i32) -> i32 {
    ((i64::from(first) + i64::from(by)) % (1 << 31)) as i32
}
