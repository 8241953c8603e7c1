//! The logs as Kafka's own clients and tools read them, and what the judge says of the run.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use candor_sim::judge::{
    Entry, Fact, History, Lane, Log, LogBatch, Noticed, Report, Said, Settings, Stored, judge,
    slice,
};
use serde_json::{Value, json};

use super::book::{Closed, micros};
use super::mark;
use super::{FLEETING, Topic};

/// On a real clock, and where brokers share the processors with us, a verdict is written down a
/// little later than it is told. What the watchdog saw the host sleep is forgiven besides.
const SLACK: Duration = Duration::from_millis(750);
/// So many findings are told with what led to them.
const TOLD: usize = 10;

/// The records of a partition by offset, as a consumer saw them.
type Records = BTreeMap<i32, BTreeMap<i64, Stored>>;

/// The verdict on the run.
pub(crate) struct Trial {
    history: History,
    report: Report,
    lateness: Vec<u64>,
    notices: Vec<(Lane, Noticed)>,
    nevers: BTreeMap<String, u64>,
    complaints: Vec<String>,
}

impl Trial {
    /// Reads the dumps of these topics in a directory, and judges.
    pub(crate) fn hold(
        run: u64,
        directory: &Path,
        topics: &[Topic],
        mut book: Closed,
    ) -> Result<Self> {
        let mut logs = Vec::new();
        for (index, topic) in (0..).zip(topics) {
            logs.append(&mut read_topic(run, directory, index, topic)?);
        }
        let history = History {
            settings: Settings { slack: micros(SLACK), wire: false, ..Settings::default() },
            entries: std::mem::take(&mut book.entries),
            logs,
            read_at: 0,
            excuses: std::mem::take(&mut book.excuses),
            closed: true,
        };
        let report = judge(&history);
        let complaints = false_alarms(&book.notices);
        let Closed { lateness, notices, nevers, .. } = book;
        Ok(Self { history, report, lateness, notices, nevers, complaints })
    }

    /// The logs.
    pub(crate) fn logs(&self) -> &[Log] {
        &self.history.logs
    }

    /// Something else that is wrong.
    pub(crate) fn complain(&mut self, more: impl IntoIterator<Item = String>) {
        self.complaints.extend(more);
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.report.is_clean() && self.complaints.is_empty()
    }

    /// What is wrong, each with what led to it.
    pub(crate) fn findings(&self) -> Vec<String> {
        let found = self.report.anomalies.iter().take(TOLD).map(|finding| {
            // The host's naps concern every record; the report counts them.
            let lines = slice(&self.history, finding).into_iter();
            let told = lines.filter(|line| !line.contains(" Stall {"));
            told.fold(finding.to_string(), |text, line| text + "\n    " + &line)
        });
        found.chain(self.complaints.iter().cloned()).collect()
    }

    /// The run in numbers.
    pub(crate) fn told(&self) -> Value {
        let mut verdicts = BTreeMap::<&str, u64>::new();
        let mut resolutions = BTreeMap::<&str, u64>::new();
        let mut count = |key| *verdicts.entry(key).or_default() += 1;
        for Entry { fact, .. } in &self.history.entries {
            match fact {
                Fact::Intent { .. } => count("handed in"),
                Fact::Refused { .. } => count("refused"),
                Fact::Cancelled { .. } => count("cancelled"),
                Fact::Verdict { said, .. } => count(word(*said, "unknown")),
                Fact::Resolution { said, .. } => {
                    *resolutions.entry(word(*said, "never")).or_default() += 1;
                }
                Fact::Accepted { .. }
                | Fact::Closing { .. }
                | Fact::Killed { .. }
                | Fact::Stall { .. }
                | Fact::Notice { .. }
                | Fact::Disturbed { .. }
                | Fact::Hidden { .. }
                | Fact::Abandoned { .. }
                | Fact::Offered { .. }
                | Fact::Answered { .. }
                | Fact::Ended { .. }
                | Fact::Routed { .. } => {}
            }
        }
        let mut notices = BTreeMap::<String, u64>::new();
        for (_, notice) in &self.notices {
            *notices.entry(format!("{notice:?}")).or_default() += 1;
        }
        let stored: usize =
            self.history.logs.iter().flat_map(|log| &log.batches).map(|b| b.records.len()).sum();
        json!({
            "verdicts": verdicts,
            "resolutions": resolutions,
            "reasons of never": self.nevers,
            "notices": notices,
            "records in the logs": stored,
            "lateness": self.lateness(),
            "stalls": self.stalls(),
            "anomalies": self.report.anomalies.len() + self.complaints.len(),
            "excused": self.report.excused.len(),
        })
    }

    /// By how many milliseconds those were late that came when they were due.
    fn lateness(&self) -> Value {
        let at = |share: usize| {
            let last = self.lateness.len().checked_sub(1)?;
            self.lateness.get(last * share / 1_000).map(|late| *late as f64 / 1_000.0)
        };
        json!({
            "verdicts at their deadline": self.lateness.len(),
            "p50 ms": at(500), "p90 ms": at(900), "p99 ms": at(990), "max ms": at(1_000),
        })
    }

    fn stalls(&self) -> Value {
        let lengths = self.history.entries.iter().filter_map(|entry| {
            let Fact::Stall { from, to } = entry.fact else { return None };
            Some(to.saturating_sub(from) / 1_000)
        });
        let (count, most) = lengths.fold((0, 0), |(n, most), length| (n + 1, most.max(length)));
        json!({ "times": count, "longest ms": most })
    }
}

fn word(said: Said, unknown: &'static str) -> &'static str {
    match said {
        Said::Delivered(_) => "delivered",
        Said::NotDelivered => "not delivered",
        Said::Unknown => unknown,
    }
}

/// Nobody else used our ids, and no log lost anything but that of the topic that was deleted.
fn false_alarms(notices: &[(Lane, Noticed)]) -> Vec<String> {
    let real = |lane: &Lane, notice: &Noticed| match notice {
        Noticed::Fence => true,
        Noticed::Unfenced | Noticed::DataLoss | Noticed::StateLost | Noticed::Contradiction => {
            lane.topic == FLEETING
        }
        Noticed::IdentityConflict | Noticed::Stopped => false,
    };
    let wrong = notices.iter().filter(|(lane, notice)| !real(lane, notice));
    wrong.map(|(lane, notice)| format!("{lane} gives a false alarm: {notice:?}")).collect()
}

fn read_topic(run: u64, directory: &Path, index: u32, topic: &Topic) -> Result<Vec<Log>> {
    let read = |suffix: &str| {
        let path = directory.join(format!("{}.{suffix}", topic.name));
        std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let mut records = read_records(run, index, &read("log")?)?;
    let mut logs = read_batches(&String::from_utf8(read("batches")?)?, index, &mut records)?;
    if let Some(left) = records.values().map(BTreeMap::len).find(|left| *left > 0) {
        bail!("{left} records of {} stand in no batch: two readers disagree", topic.name);
    }
    logs.sort_by_key(|log| log.partition);
    Ok(logs)
}

/// A line is partition, offset, key, value, separated by tabs; no value of ours needs an escape.
fn read_records(run: u64, topic: u32, dump: &[u8]) -> Result<Records> {
    let mut records = Records::new();
    for line in dump.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let mut fields = line.splitn(4, |byte| *byte == b'\t');
        let number = |field: Option<&[u8]>| -> Result<i64> {
            Ok(std::str::from_utf8(field.context("a dump's line is cut")?)?.parse()?)
        };
        let (partition, offset) = (number(fields.next())?, number(fields.next())?);
        let value = fields.nth(1).context("a dump's line has no value")?;
        let of_partition = records.entry(i32::try_from(partition)?).or_default();
        if of_partition.insert(offset, mark::read(run, topic, value)).is_some() {
            bail!("a consumer saw offset {offset} of partition {partition} twice");
        }
    }
    Ok(records)
}

/// A line is partition, first and last offset, producer id, epoch and first sequence. Takes the
/// records of each batch out.
fn read_batches(dump: &str, topic: u32, records: &mut Records) -> Result<Vec<Log>> {
    let mut logs: Vec<Log> = Vec::new();
    for line in dump.lines() {
        let fields: Vec<i64> =
            line.split('\t').map(str::parse).collect::<Result<_, _>>().context(line.to_owned())?;
        let [partition, base_offset, last, producer_id, epoch, first] = fields[..] else {
            bail!("a batch needs six numbers: {line}");
        };
        let partition = i32::try_from(partition)?;
        let held = records.entry(partition).or_default();
        let batch: Option<Vec<Stored>> =
            (base_offset..=last).map(|offset| held.remove(&offset)).collect();
        let Some(records) = batch else {
            bail!("no consumer saw all of the batch {line} (topic {topic})");
        };
        let (epoch, first) = (i16::try_from(epoch)?, i32::try_from(first)?);
        let max_timestamp = None;
        let batch = LogBatch { base_offset, producer_id, epoch, first, max_timestamp, records };
        match logs.iter_mut().find(|log| log.partition == partition) {
            Some(log) => log.batches.push(batch),
            None => logs.push(Log { topic, partition, batches: vec![batch] }),
        }
    }
    Ok(logs)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panic")]
mod tests {
    use candor_sim::judge::Class;

    use super::super::book::Book;
    use super::*;

    const LANE: Lane = Lane { producer: 0, topic: 0, partition: 0 };

    fn dump(records: &[u64]) -> String {
        let line = |(offset, record): (usize, &u64)| {
            format!("0\t{offset}\t\\N\t{}\n", mark::marked(9, *record, 0, 0, 5))
        };
        records.iter().enumerate().map(line).collect()
    }

    /// Three records, said to stand at offsets 0, nowhere and 1.
    fn trial(dump: &str, batches: &str) -> Result<Trial> {
        let book = Book::new(FLEETING);
        for said in [Said::Delivered(Some(0)), Said::NotDelivered, Said::Delivered(Some(1))] {
            let record = book.intend(LANE, Duration::from_secs(9));
            book.fact(Fact::Accepted { record });
            book.tell(record, said);
        }
        let topic = Topic { name: "t".to_owned(), partitions: 1 };
        let directory =
            std::env::temp_dir().join(format!("candor-trial-{:?}", std::thread::current().id()));
        std::fs::create_dir_all(&directory)?;
        std::fs::write(directory.join("t.log"), dump)?;
        std::fs::write(directory.join("t.batches"), batches)?;
        let trial = Trial::hold(9, &directory, &[topic], book.close());
        std::fs::remove_dir_all(directory)?;
        trial
    }

    fn classes(trial: &Trial) -> Vec<Class> {
        trial.report.anomalies.iter().map(|found| found.anomaly.class).collect()
    }

    #[test]
    fn two_dumps_make_a_log_and_the_judge_reads_it() {
        let good = trial(&dump(&[1, 3]), "0\t0\t1\t4000\t0\t0\n").unwrap();
        assert!(good.is_clean(), "{:?}", good.findings());
        let split = "0\t0\t0\t4000\t0\t0\n0\t1\t1\t4000\t0\t1\n";
        assert!(trial(&dump(&[1, 3]), split).unwrap().is_clean());
    }

    #[test]
    fn what_is_wrong_with_a_log_is_found() {
        let one = "0\t0\t1\t4000\t0\t0\n";
        let found =
            |records: &[u64], batches: &str| classes(&trial(&dump(records), batches).unwrap());
        assert_eq!(found(&[1], "0\t0\t0\t4000\t0\t0\n"), [Class::Lost]);
        assert!(found(&[3, 1], one).contains(&Class::Reorder));
        assert!(found(&[1, 2, 3], "0\t0\t2\t4000\t0\t0\n").contains(&Class::Ghost));
        assert!(found(&[1, 3, 3], "0\t0\t2\t4000\t0\t0\n").contains(&Class::Duplicate));
        let gap = "0\t0\t0\t4000\t0\t0\n0\t1\t1\t4000\t0\t5\n";
        assert_eq!(found(&[1, 3], gap), [Class::SeqGap]);
        let spoiled = dump(&[1, 3]).replace("0000009 3", "0000009 4");
        assert!(classes(&trial(&spoiled, one).unwrap()).contains(&Class::Corrupt));
    }

    #[test]
    fn readers_that_disagree_are_no_log() {
        assert!(trial(&dump(&[1, 3]), "0\t0\t0\t4000\t0\t0\n").is_err(), "a record in no batch");
        assert!(trial(&dump(&[1]), "0\t0\t1\t4000\t0\t0\n").is_err(), "a batch nobody saw");
    }
}
