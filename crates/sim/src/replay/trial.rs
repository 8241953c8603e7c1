//! What the judge says at the end of a scenario: of the log and everything else where brokers were
//! modelled, of discipline on the wire where the scenario itself was the broker.

use candor_core::Instant;
use candor_core::rules::Rules;
use candor_proto::Notice;

use super::book::Book;
use super::script::NearTheEnd;
use super::world::{Side, World};
use crate::codec::{Batch, Record};
use crate::judge::{
    Class, Excuse, ExcuseKind, Fact, History, Lane, Log, LogBatch, LogIs, Settings, Stored, judge,
    slice,
};
use crate::words;

/// Takes a notice down for the judge.
pub(super) fn noticed(book: &mut Book, now: Instant, notice: &Notice) {
    let Notice::Partition { topic, partition, notice } = notice else { return };
    let lane = Lane { producer: 0, topic: book.topic(topic), partition: *partition };
    book.fact(now, Fact::Notice { lane, notice: words::notice(*notice) });
}

/// Records before an offset were deleted, as somebody wished.
pub(super) const fn deleted(topic: u32, partition: i32, before: i64) -> Excuse {
    let kind = ExcuseKind::Deletion;
    Excuse { kind, topic, partition, from: 0, to: before, since: 0, until: u64::MAX }
}

/// A topic was deleted and made anew.
pub(super) const fn made_anew(topic: u32, partition: i32) -> Excuse {
    Excuse { kind: ExcuseKind::MadeAnew, ..deleted(topic, partition, i64::MAX) }
}

/// Classes that need no log.
const fn needs_no_log(class: Class) -> bool {
    class.is_discipline()
        || matches!(class, Class::Insane | Class::Flip | Class::Late | Class::OffsetBack)
}

impl<R: Rules> World<R> {
    /// The first thing that the judge finds, with what led to it.
    pub(super) fn judged(&mut self) -> Option<String> {
        let modelled = matches!(self.side, Side::Modelled(_));
        let history = self.history();
        let found = judge(&history);
        let first = found
            .anomalies
            .iter()
            .find(|finding| modelled || needs_no_log(finding.anomaly.class))?;
        Some(format!("{first}\n  {}", slice(&history, first).join("\n  ")))
    }

    fn history(&self) -> History {
        let mut entries = self.book.entries.clone();
        for entry in &mut entries {
            if let Fact::Intent { record, lane, .. } = &mut entry.fact
                && let Some(sheet) =
                    usize::try_from(*record).ok().and_then(|at| self.book.sheets.get(at))
                && let Some(partition) = sheet.partition
            {
                lane.partition = partition;
            }
        }
        History {
            settings: Settings {
                log: LogIs::ShownAtTheEnd,
                first_sequence: match self.setup.near_the_end {
                    NearTheEnd::Sequences => super::run::NEAR.into(),
                    NearTheEnd::Nothing | NearTheEnd::Epochs => 0,
                },
                ..Settings::default()
            },
            entries,
            logs: self.logs(),
            read_at: 0,
            excuses: self.excuses.clone(),
            closed: self.closed,
        }
    }

    fn logs(&self) -> Vec<Log> {
        let Side::Modelled(net) = &self.side else { return Vec::new() };
        let mut logs = Vec::new();
        for (number, name) in (0..).zip(self.book.topics()) {
            let there = net.cluster().partitions().filter(|(of, ..)| of == name).count();
            for index in 0..there {
                let partition = i32::try_from(index).unwrap_or(-1);
                let batches = net.log(name, index);
                let read = |batch: &Batch| self.stored(number, partition, batch);
                let batches = batches.iter().map(read).collect();
                logs.push(Log { topic: number, partition, batches });
            }
        }
        logs
    }

    fn stored(&self, topic: u32, partition: i32, batch: &Batch) -> LogBatch {
        let of = |record: &Record| match self.book.recognise(topic, partition, record, None) {
            Some(number) => Stored::Ours(number as u64),
            None => Stored::Foreign,
        };
        LogBatch::read(batch, of)
    }
}
