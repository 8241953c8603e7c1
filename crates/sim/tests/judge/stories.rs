//! Histories to be judged, and the edits that spoil them.

use candor_sim::judge::{
    Attempt, Class, Entry, Fact, History, Lane, Log, LogBatch, Reply, Said, Stored, judge, slice,
};

pub(crate) const LANE: Lane = Lane { producer: 0, topic: 0, partition: 0 };
pub(crate) const OTHER: Lane = Lane { producer: 0, topic: 1, partition: 0 };
pub(crate) const DUE: u64 = 1_000_000;

/// A history under construction; `now` grows by one with each entry.
#[derive(Default)]
pub(crate) struct Run {
    pub(crate) history: History,
    pub(crate) attempts: u64,
    pub(crate) now: u64,
}

/// What makes one batch.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) connection: u64,
    pub(crate) id: i64,
    pub(crate) epoch: i16,
    pub(crate) first: i32,
}

pub(crate) const AT: Shape = Shape { connection: 1, id: 4000, epoch: 0, first: 0 };

impl Run {
    pub(crate) fn new() -> Self {
        let mut run = Self::default();
        run.history.closed = true;
        for (topic, partition) in [(0, 0), (1, 0)] {
            run.history.logs.push(Log { topic, partition, batches: Vec::new() });
        }
        run
    }

    pub(crate) fn fact(&mut self, fact: Fact) -> &mut Self {
        self.now += 1;
        self.history.entries.push(Entry { at: self.now, fact });
        self
    }

    pub(crate) fn send(&mut self, records: &[u64]) -> &mut Self {
        for &record in records {
            self.fact(Fact::Intent { record, lane: LANE, due: DUE });
            self.fact(Fact::Accepted { record });
        }
        self
    }

    pub(crate) fn offer(&mut self, shape: Shape, records: &[u64]) -> u64 {
        let content = records.iter().fold(7, |hash, record| hash * 31 + record);
        let id = self.attempts;
        self.attempts += 1;
        let attempt = Attempt {
            id,
            connection: shape.connection,
            leader_epoch: 7,
            producer_id: shape.id,
            epoch: shape.epoch,
            first: shape.first,
            count: records.len() as u32,
            content,
            records: records.to_vec(),
            max_timestamp: -1,
            replacement: false,
        };
        self.fact(Fact::Offered { lane: LANE, attempt });
        id
    }

    pub(crate) fn replace(&mut self, shape: Shape, records: &[u64]) -> u64 {
        let id = self.offer(shape, records);
        attempt_of(&mut self.history, id).replacement = true;
        id
    }

    pub(crate) fn answer(&mut self, attempt: u64, reply: Reply) -> &mut Self {
        self.fact(Fact::Answered { lane: LANE, attempt, reply: Some(reply) })
    }

    pub(crate) fn end(&mut self, attempt: u64, partly: bool) -> &mut Self {
        self.fact(Fact::Ended { lane: LANE, attempt, partly })
    }

    pub(crate) fn tell(&mut self, records: &[u64], said: impl Fn(u64) -> Said) -> &mut Self {
        for (index, &record) in (0..).zip(records) {
            self.fact(Fact::Verdict { record, said: said(index) });
        }
        self
    }

    pub(crate) fn resolve(&mut self, record: u64, said: Said) -> &mut Self {
        self.fact(Fact::Resolution { record, said })
    }

    pub(crate) fn store(&mut self, shape: Shape, base_offset: i64, records: &[u64]) -> &mut Self {
        self.history.logs[0].batches.push(LogBatch {
            base_offset,
            producer_id: shape.id,
            epoch: shape.epoch,
            first: shape.first,
            max_timestamp: None,
            records: records.iter().map(|&record| Stored::Ours(record)).collect(),
        });
        self
    }

    /// Offered, answered 0, told and stored.
    pub(crate) fn deliver(&mut self, shape: Shape, base: i64, records: &[u64]) -> &mut Self {
        let attempt = self.offer(shape, records);
        self.store(shape, base, records);
        self.answer(attempt, Reply::appended(base));
        self.tell(records, |index| Said::Delivered(Some(base + index as i64)))
    }
}

pub(crate) fn seq(first: i32) -> Shape {
    Shape { first, ..AT }
}

/// Nine records: batches delivered, one after a lost answer; one record expired before it was
/// offered, one in doubt and resolved, one refused at the door.
pub(crate) fn good() -> History {
    let mut run = Run::new();
    run.send(&[1, 2, 3, 4, 5, 6, 7, 8]);
    run.deliver(seq(0), 10, &[1, 2]);
    let first = run.offer(seq(2), &[3, 4]);
    run.store(seq(2), 12, &[3, 4]);
    run.end(first, false);
    let again = run.offer(Shape { connection: 2, ..seq(2) }, &[3, 4]);
    run.answer(again, Reply::appended(12));
    run.tell(&[3, 4], |index| Said::Delivered(Some(12 + index as i64)));
    run.now = DUE - 1;
    let doubt = run.offer(Shape { connection: 2, ..seq(4) }, &[6]);
    run.now = DUE - 1;
    run.tell(&[5], |_| Said::NotDelivered);
    run.now = DUE - 1;
    run.tell(&[6], |_| Said::Unknown);
    run.store(seq(4), 14, &[6]);
    run.answer(doubt, Reply::appended(14));
    run.resolve(6, Said::Delivered(Some(14)));
    run.now = DUE - 10;
    run.deliver(Shape { connection: 2, ..seq(5) }, 15, &[7, 8]);
    run.fact(Fact::Intent { record: 9, lane: LANE, due: 2 * DUE });
    run.fact(Fact::Refused { record: 9 });
    run.history
}

/// The position of a fact.
pub(crate) fn position(history: &History, wanted: impl Fn(&Fact) -> bool) -> usize {
    history.entries.iter().position(|entry| wanted(&entry.fact)).unwrap()
}

pub(crate) fn verdict_of(history: &mut History, wanted: u64) -> &mut Entry {
    let is = |fact: &Fact| matches!(fact, Fact::Verdict { record, .. } if *record == wanted);
    let at = position(history, is);
    &mut history.entries[at]
}

pub(crate) fn resolution_of(history: &mut History, wanted: u64) -> &mut Entry {
    let is = |fact: &Fact| matches!(fact, Fact::Resolution { record, .. } if *record == wanted);
    let at = position(history, is);
    &mut history.entries[at]
}

pub(crate) fn say(history: &mut History, wanted: u64, new: Said) {
    verdict_of(history, wanted).fact = Fact::Verdict { record: wanted, said: new };
}

pub(crate) fn attempt_of(history: &mut History, wanted: u64) -> &mut Attempt {
    let is = |fact: &Fact| matches!(fact, Fact::Offered { attempt, .. } if attempt.id == wanted);
    let at = position(history, is);
    let Fact::Offered { attempt, .. } = &mut history.entries[at].fact else { unreachable!() };
    attempt
}

#[track_caller]
pub(crate) fn convicts(history: &History, class: Class, record: u64) {
    let report = judge(history);
    let hit = report
        .anomalies
        .iter()
        .find(|finding| finding.anomaly.class == class && finding.anomaly.record == Some(record));
    let all: Vec<String> = report.anomalies.iter().map(ToString::to_string).collect();
    let hit = hit.unwrap_or_else(|| panic!("wanted {class} of record {record}, found {all:?}"));
    assert!(!slice(history, hit).is_empty(), "a finding must show its evidence");
}

#[track_caller]
pub(crate) fn clean(history: &History) {
    let found: Vec<String> = judge(history).anomalies.iter().map(ToString::to_string).collect();
    assert!(found.is_empty(), "{found:?}");
}

#[track_caller]
pub(crate) fn edited(class: Class, record: u64, edit: impl FnOnce(&mut History)) {
    let mut history = good();
    clean(&history);
    edit(&mut history);
    convicts(&history, class, record);
}

pub(crate) fn batch(history: &mut History, base: i64) -> &mut LogBatch {
    history.logs[0].batches.iter_mut().find(|batch| batch.base_offset == base).unwrap()
}
