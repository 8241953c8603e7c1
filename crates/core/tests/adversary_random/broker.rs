//! A truthful broker of one partition: the decision procedure of Apache Kafka for idempotent
//! producers, a memory of five batches, and what it may forget.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use candor_core::{
    Answer, AttemptId, Identity, PartitionResponse, ProducerEpoch, RouteId, Sequence,
};

/// A request on its way or in a broker's buffer.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) attempt: AttemptId,
    pub(crate) route: RouteId,
    pub(crate) generation: usize,
    pub(crate) identity: Identity,
    pub(crate) first: Sequence,
    pub(crate) records: Vec<u16>,
    pub(crate) max_timestamp: i64,
    /// Filled once the broker looked at it.
    pub(crate) answer: Option<Answer>,
    /// The lane was told how it ended.
    pub(crate) told: bool,
    /// It certainly did not append.
    pub(crate) refused: bool,
    /// How often the leader had changed when it was offered.
    pub(crate) era: u32,
}

/// What a leader remembers of one producer id: epoch and up to five batches.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) epoch: ProducerEpoch,
    /// max_timestamp of the newest batch: the clock of the memory.
    pub(crate) newest: i64,
    pub(crate) batches: VecDeque<(Sequence, u32, i64)>,
}

/// What a broker says to a sequence above 0 of a producer that it does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Takes it (2.5 to 4.4).
    #[default]
    Any,
    /// 45.
    Strict,
    /// 59; and 46 to old duplicates (1.0).
    Old,
}

#[derive(Debug, Default)]
pub(crate) struct Broker {
    /// One log per life of the topic; `None` is somebody else's record.
    pub(crate) logs: Vec<Vec<Option<u16>>>,
    pub(crate) producers: BTreeMap<i64, Entry>,
    pub(crate) kind: Kind,
    pub(crate) log_start: i64,
    /// Connections to a broker that does not know that it leads no more.
    pub(crate) stale: BTreeSet<RouteId>,
}

impl Broker {
    pub(crate) fn generation(&self) -> usize {
        self.logs.len() - 1
    }

    fn appended(&self, base: i64) -> PartitionResponse {
        let log_start_offset = self.log_start;
        PartitionResponse { log_start_offset, ..PartitionResponse::appended(base) }
    }

    pub(crate) fn error(&self, code: i16) -> PartitionResponse {
        let log_start_offset = self.log_start;
        PartitionResponse { log_start_offset, ..PartitionResponse::error(code) }
    }

    /// Steps 5 to 8 of the decision procedure: the answer, or nothing if the batch is taken.
    fn judge(&self, frame: &Frame) -> Option<PartitionResponse> {
        if frame.generation != self.generation() {
            return Some(PartitionResponse::error(100));
        }
        let (first, count) = (frame.first, frame.records.len() as u32);
        let Some(entry) = self.producers.get(&frame.identity.id.get()) else {
            return match self.kind {
                Kind::Strict if first != Sequence::ZERO => Some(self.error(45)),
                Kind::Old if first != Sequence::ZERO => Some(self.error(59)),
                Kind::Any | Kind::Strict | Kind::Old => None,
            };
        };
        let same_epoch = entry.epoch == frame.identity.epoch;
        let same = |&&(f, n, _): &&(Sequence, u32, i64)| (f, n) == (first, count);
        if let Some(&(_, _, base)) = entry.batches.iter().find(same).filter(|_| same_epoch) {
            return Some(self.appended(base));
        }
        if frame.identity.epoch < entry.epoch {
            return Some(self.error(47));
        }
        let newest = entry.batches.back().filter(|_| same_epoch);
        let next = newest.map_or(Sequence::ZERO, |&(f, n, _)| f.after(n));
        let behind = next.get().wrapping_sub(first.get()) & 0x7fff_ffff;
        match behind {
            0 => None,
            1..0x4000_0000 if self.kind == Kind::Old && same_epoch => Some(self.error(46)),
            _ => Some(self.error(45)),
        }
    }

    /// And step 10, acks=all being instantaneous.
    pub(crate) fn append(&mut self, frame: &Frame) -> PartitionResponse {
        if let Some(answer) = self.judge(frame) {
            return answer;
        }
        if self.stale.contains(&frame.route) {
            return self.error(45);
        }
        let log = self.logs.last_mut().unwrap();
        let base = log.len() as i64;
        log.extend(frame.records.iter().map(|record| Some(*record)));
        let fresh = Entry { epoch: frame.identity.epoch, newest: 0, batches: VecDeque::new() };
        let entry = self.producers.entry(frame.identity.id.get()).or_insert_with(|| fresh.clone());
        if entry.epoch != frame.identity.epoch {
            *entry = fresh;
        }
        entry.newest = frame.max_timestamp;
        entry.batches.push_back((frame.first, frame.records.len() as u32, base));
        if entry.batches.len() > 5 {
            entry.batches.pop_front();
        }
        self.appended(base)
    }

    /// Clean or not, only the newest batch is remembered.
    pub(crate) fn restart(&mut self) {
        for entry in self.producers.values_mut() {
            entry.batches.drain(..entry.batches.len().saturating_sub(1));
        }
    }

    pub(crate) fn recreate(&mut self) {
        self.logs.push(Vec::new());
        self.producers.clear();
        self.log_start = 0;
    }

    /// Every place of a record.
    pub(crate) fn places(&self, record: u16) -> Vec<i64> {
        let logs = self.logs.iter().flat_map(|log| log.iter().zip(0..));
        logs.filter(|(r, _)| **r == Some(record)).map(|(_, offset)| offset).collect()
    }
}
