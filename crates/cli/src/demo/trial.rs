//! The log is read back, and the judge is asked.

use candor_sim::codec::{Batch, Record};
use candor_sim::judge::{
    Class, Finding, History, Log, LogBatch, Report, Settings, Stored, judge, slice,
};
use candor_sim::serve::Server;
use serde::Serialize;

use super::diary::{Diary, NUMBER};
use super::{PARTITIONS, TOPIC};
use crate::tally::Counts;

/// On a real clock, verdicts are heard this much later than they are told, in microseconds, when
/// the host is busy.
const SLACK: u64 = 1_000_000;

/// What the judge found.
#[derive(Debug)]
pub(crate) struct Trial {
    report: Report,
    history: History,
    /// Records that the log holds, by partition.
    stored: Vec<u64>,
}

/// The demo's last word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Summary {
    records: u64,
    delivered: u64,
    not_delivered: u64,
    unknown: u64,
    resolved: u64,
    never: u64,
    duplicates: u64,
    lost: u64,
    reordered: u64,
    wrong_verdicts: u64,
}

impl Trial {
    pub(crate) fn hold(server: &Server, diary: &Diary) -> Self {
        let logs: Vec<Log> = (0..PARTITIONS).map(|index| log(server, diary, index)).collect();
        let count = |log: &Log| log.batches.iter().map(|batch| batch.records.len() as u64).sum();
        let stored = logs.iter().map(count).collect();
        let history = History {
            settings: Settings { slack: SLACK, wire: false, ..Settings::default() },
            entries: diary.entries(),
            logs,
            read_at: 0,
            excuses: Vec::new(),
            closed: true,
        };
        Self { report: judge(&history), history, stored }
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.report.is_clean()
    }

    /// Records that the log holds.
    pub(crate) fn stored(&self) -> &[u64] {
        &self.stored
    }

    /// The log, by partition.
    pub(crate) fn batches(&self) -> Vec<&[LogBatch]> {
        self.history.logs.iter().map(|log| &*log.batches).collect()
    }

    fn count(&self, wanted: impl Fn(Class) -> bool) -> u64 {
        self.report.anomalies.iter().filter(|found| wanted(found.anomaly.class)).count() as u64
    }

    pub(crate) fn duplicates(&self) -> u64 {
        self.count(|class| class == Class::Duplicate)
    }

    pub(crate) fn lost(&self) -> u64 {
        self.count(is_loss)
    }

    pub(crate) fn reordered(&self) -> u64 {
        self.count(|class| class == Class::Reorder)
    }

    /// Everything else that is wrong.
    pub(crate) fn wrong_verdicts(&self) -> u64 {
        self.count(|class| !is_loss(class) && !matches!(class, Class::Duplicate | Class::Reorder))
    }

    pub(crate) fn summary(&self, counts: &Counts) -> Summary {
        Summary {
            records: counts.records,
            delivered: counts.delivered,
            not_delivered: counts.not_delivered,
            unknown: counts.unknown,
            resolved: counts.resolved,
            never: counts.never,
            duplicates: self.duplicates(),
            lost: self.lost(),
            reordered: self.reordered(),
            wrong_verdicts: self.wrong_verdicts(),
        }
    }

    /// The first findings, each with what led to it.
    pub(crate) fn findings(&self, most: usize) -> Vec<String> {
        let tell = |finding: &Finding| {
            let slice = slice(&self.history, finding).join("\n    ");
            format!("{finding}\n    {slice}")
        };
        self.report.anomalies.iter().take(most).map(tell).collect()
    }
}

fn is_loss(class: Class) -> bool {
    matches!(class, Class::Lost | Class::SilentGap)
}

fn log(server: &Server, diary: &Diary, index: usize) -> Log {
    let batches = server.with(|net, _| net.log(TOPIC, index));
    let partition = i32::try_from(index).unwrap_or(-1);
    let batches = batches.iter().map(|batch| read(batch, diary)).collect();
    Log { topic: 0, partition, batches }
}

fn read(batch: &Batch, diary: &Diary) -> LogBatch {
    LogBatch::read(batch, |record| recognise(record, diary))
}

/// Which record it is: as its header says, if its content is that record's.
fn recognise(record: &Record, diary: &Diary) -> Stored {
    let header = record.headers.iter().find(|(name, _)| name == NUMBER.as_bytes());
    let Some((_, Some(number))) = header else { return Stored::Foreign };
    let number = str::from_utf8(number).ok().and_then(|text| text.parse().ok());
    let page = number.and_then(|number| Some((number, diary.page(number)?)));
    match page {
        Some((number, page)) if record.value.as_deref() == Some(&page.text) => Stored::Ours(number),
        Some(_) | None => Stored::Corrupt,
    }
}
