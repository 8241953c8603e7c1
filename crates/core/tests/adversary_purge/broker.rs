//! A broker that tells the truth, deletes records and forgets producers.

use std::collections::BTreeMap;

use candor_core::*;

use super::Frame;

/// A batch in the log, deleted or not.
pub(super) struct Stored {
    pub(super) base: i64,
    pub(super) id: i64,
    pub(super) batch: usize,
    /// When the attempt that appended it was offered.
    pub(super) offered: u32,
    pub(super) first: i32,
    pub(super) records: Vec<u16>,
    pub(super) epoch: i16,
    pub(super) topic: u32,
    /// The broker had forgotten a producer before.
    pub(super) forgot: bool,
}

/// Epoch, and first, end and offset of up to five batches.
pub(super) type Known = (i16, Vec<(i32, i32, i64)>);

#[derive(Default)]
pub(super) struct Broker {
    /// Counts topics of this name.
    pub(super) topic: u32,
    pub(super) log: Vec<Stored>,
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) memory: BTreeMap<i64, Known>,
    pub(super) forgot: bool,
    /// Up to 2.4: who is not known begins at 0.
    pub(super) strict: bool,
}

impl Broker {
    pub(super) fn answer(&self, code: i16, base: i64) -> PartitionResponse {
        let response = PartitionResponse::error(code);
        PartitionResponse { base_offset: base, log_start_offset: self.start, ..response }
    }

    pub(super) fn produce(&mut self, frame: &Frame) -> PartitionResponse {
        if frame.topic != self.topic {
            return PartitionResponse::error(100);
        }
        let Frame { identity, first, .. } = frame;
        let (id, epoch, first) = (identity.id.get(), identity.epoch.get(), first.get());
        let end = first + frame.records.len() as i32;
        if let Some((known, batches)) = self.memory.get_mut(&id) {
            let same = batches.iter().find(|it| *known == epoch && (it.0, it.1) == (first, end));
            if let Some(&(_, _, base)) = same {
                return self.answer(0, base);
            }
            if epoch < *known {
                return self.answer(47, -1);
            }
            let expected = if epoch > *known { 0 } else { batches.last().unwrap().1 };
            if first != expected {
                return self.answer(45, -1);
            }
            if epoch > *known {
                batches.clear();
                *known = epoch;
            }
        }
        if self.strict && first != 0 && !self.memory.contains_key(&id) {
            return self.answer(59, -1);
        }
        let base = self.end;
        self.end += frame.records.len() as i64;
        let (_, batches) = self.memory.entry(id).or_insert((epoch, Vec::new()));
        batches.push((first, end, base));
        if batches.len() > 5 {
            batches.remove(0);
        }
        self.log.push(Stored {
            base,
            id,
            batch: frame.batch,
            offered: frame.offered,
            first,
            records: frame.records.clone(),
            epoch,
            topic: self.topic,
            forgot: self.forgot,
        });
        self.answer(0, base)
    }

    /// The topic is deleted and made anew.
    pub(super) fn recreate(&mut self) {
        self.topic += 1;
        self.memory.clear();
        (self.start, self.end) = (0, 0);
    }

    /// Only what is in the log is known.
    pub(super) fn restart(&mut self) {
        let before = self.memory.len();
        self.memory.clear();
        let topic = self.topic;
        for it in self.log.iter().filter(|it| it.topic == topic) {
            let end = it.first + it.records.len() as i32;
            if it.base + it.records.len() as i64 > self.start {
                self.memory.insert(it.id, (it.epoch, vec![(it.first, end, it.base)]));
            }
        }
        self.forgot |= self.memory.len() < before;
    }
}
