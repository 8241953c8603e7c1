//! The judgement of a finished history (checking 3.2).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::anomaly::{Anomaly, Class};
use super::conditions::{Said, sequence_after, sequence_follows};
use super::forgotten;
use super::history::{Entry, Excuse, Fact, History, Lane, Log, LogBatch, Stored};
use super::observer::{Noticed, Observer};
use super::wire::Reply;

/// Whose fault an anomaly is, as far as the ledgers tell.
///
/// ```
/// assert_eq!(candor_sim::judge::Blame::Broker.to_string(), "broker");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Blame {
    /// The producer's.
    Client,
    /// The wire was used well, and a broker's answer contradicts the log.
    Broker,
}

impl fmt::Display for Blame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Client => "client",
            Self::Broker => "broker",
        })
    }
}

/// One finding with its place.
///
/// ```
/// use candor_sim::judge::{Anomaly, Blame, Class, Finding};
/// let finding = Finding { lane: None, anomaly: Anomaly::new(Class::Foreign), blame: Blame::Client };
/// assert_eq!(finding.to_string(), "FOREIGN, blame: client");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// In which lane, if in one.
    pub lane: Option<Lane>,
    /// What.
    pub anomaly: Anomaly,
    /// Whose fault.
    pub blame: Blame,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.anomaly.fmt(f)?;
        if let Some(lane) = self.lane {
            write!(f, " in {lane}")?;
        }
        write!(f, ", blame: {}", self.blame)
    }
}

/// What the judge says of a history.
///
/// ```
/// use candor_sim::judge::Report;
/// assert!(Report::default().is_clean());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// What nothing excuses.
    pub anomalies: Vec<Finding>,
    /// What an excuse covers: a run tagged "no excuses" fails on these as well.
    pub excused: Vec<(Finding, Excuse)>,
}

impl Report {
    /// Nothing was found that is not excused.
    pub fn is_clean(&self) -> bool {
        self.anomalies.is_empty()
    }
}

/// Judges a finished history.
pub fn judge(history: &History) -> Report {
    let mut court = Court::new(history);
    for entry in &history.entries {
        court.hear(entry);
    }
    for log in &history.logs {
        court.read(log);
    }
    court.rule()
}

/// A finding, and where in a log it was seen.
struct Found {
    lane: Option<Lane>,
    anomaly: Anomaly,
    offset: Option<i64>,
}

impl Found {
    const fn said(lane: Option<Lane>, anomaly: Anomaly) -> Self {
        Self { lane, anomaly, offset: None }
    }
}

struct Court<'h> {
    history: &'h History,
    lanes: BTreeMap<Lane, Observer>,
    homes: BTreeMap<u64, Lane>,
    killed: BTreeSet<u32>,
    /// Under which identity each lane offered last.
    identities: BTreeMap<Lane, (i64, i16)>,
    /// Identities of which a notice said that the broker's memory of them is gone: the batch that showed
    /// it may stand behind a gap.
    forgiven_gaps: BTreeSet<(u32, i32, i64, i16)>,
    acknowledged: Vec<(Lane, Vec<u64>, i64)>,
    offers: BTreeMap<(Lane, u64), Vec<u64>>,
    at: BTreeMap<u64, Vec<(u32, i32, i64)>>,
    told: BTreeMap<u64, (u64, Said)>,
    excuses: Vec<Excuse>,
    found: Vec<Found>,
}

impl<'h> Court<'h> {
    fn new(history: &'h History) -> Self {
        Self {
            history,
            lanes: BTreeMap::new(),
            homes: BTreeMap::new(),
            killed: BTreeSet::new(),
            identities: BTreeMap::new(),
            forgiven_gaps: BTreeSet::new(),
            acknowledged: Vec::new(),
            offers: BTreeMap::new(),
            at: BTreeMap::new(),
            told: BTreeMap::new(),
            excuses: [history.excuses.clone(), forgotten::excuses(history)].concat(),
            found: Vec::new(),
        }
    }

    fn lane(&mut self, lane: Lane) -> &mut Observer {
        let settings = self.history.settings;
        self.lanes.entry(lane).or_insert_with(|| Observer::new(settings))
    }

    /// The lane of a record; a record that nobody intended convicts the ledger itself.
    fn home(&mut self, record: u64) -> Option<Lane> {
        let home = self.homes.get(&record).copied();
        if home.is_none() {
            self.found.push(Found::said(None, Anomaly::new(Class::Insane).record(record)));
        }
        home
    }

    fn keep(&mut self, lane: Lane, found: Vec<Anomaly>) {
        self.found.extend(found.into_iter().map(|anomaly| Found::said(Some(lane), anomaly)));
    }

    fn keep_at(&mut self, lane: Option<Lane>, offset: i64, found: Vec<Anomaly>) {
        let offset = Some(offset);
        self.found.extend(found.into_iter().map(|anomaly| Found { lane, anomaly, offset }));
    }

    fn hear(&mut self, entry: &Entry) {
        let at = entry.at;
        match &entry.fact {
            Fact::Intent { record, lane, due } => {
                self.homes.insert(*record, *lane);
                self.lane(*lane).intended(*record, *due);
            }
            Fact::Accepted { record } => self.of(*record, |lane| lane.accepted(*record)),
            Fact::Refused { record } => self.of(*record, |lane| lane.refused(*record)),
            Fact::Cancelled { record } => self.of(*record, |lane| {
                lane.cancelled(at, *record);
                Vec::new()
            }),
            Fact::Verdict { record, said } => {
                self.told.insert(*record, (at, *said));
                self.of(*record, |lane| lane.told(at, *record, *said));
            }
            Fact::Resolution { record, said } => {
                self.told.insert(*record, (at, *said));
                self.of(*record, |lane| lane.resolved(at, *record, *said));
            }
            Fact::Closing { producer, due } => {
                for lane in self.lanes_of(*producer) {
                    self.lane(lane).closing(*due);
                }
            }
            Fact::Killed { producer } => {
                self.killed.insert(*producer);
            }
            Fact::Stall { from, to } => {
                for lane in self.lanes.values_mut() {
                    lane.stalled(*from, *to);
                }
            }
            Fact::Notice { lane, notice } => {
                if matches!(notice, Noticed::StateLost | Noticed::DataLoss)
                    && let Some((id, epoch)) = self.identities.get(lane)
                {
                    self.forgiven_gaps.insert((lane.topic, lane.partition, *id, *epoch));
                }
                self.lane(*lane).noticed(*notice);
            }
            Fact::Disturbed { lane } => self.lane(*lane).disturbed(),
            Fact::Hidden { record } => self.of(*record, |lane| {
                lane.hidden(*record);
                Vec::new()
            }),
            Fact::Abandoned { lane } => self.lane(*lane).abandoned(at),
            Fact::Offered { lane, attempt } => {
                self.offers.insert((*lane, attempt.id), attempt.records.clone());
                self.identities.insert(*lane, (attempt.producer_id, attempt.epoch));
                let found = self.lane(*lane).offered(at, attempt);
                self.keep(*lane, found);
            }
            Fact::Answered { lane, attempt, reply } => {
                self.hear_answer(*lane, *attempt, *reply);
                self.lane(*lane).answered(at, *attempt, *reply);
            }
            Fact::Ended { lane, attempt, partly } => self.lane(*lane).ended(*attempt, *partly),
            Fact::Routed { lane, connection, leader_epoch } => {
                self.lane(*lane).routed(*connection, *leader_epoch);
            }
        }
    }

    fn hear_answer(&mut self, lane: Lane, attempt: u64, reply: Option<Reply>) {
        if let Some(reply) = reply.filter(|reply| reply.code == 0) {
            let records = self.offers.get(&(lane, attempt)).cloned().unwrap_or_default();
            self.acknowledged.push((lane, records, reply.base_offset));
        }
    }

    fn of(&mut self, record: u64, told: impl FnOnce(&mut Observer) -> Vec<Anomaly>) {
        if let Some(home) = self.home(record) {
            let found = told(self.lane(home));
            self.keep(home, found);
        }
    }

    fn lanes_of(&self, producer: u32) -> Vec<Lane> {
        self.lanes.keys().copied().filter(|lane| lane.producer == producer).collect()
    }

    fn read(&mut self, log: &Log) {
        for batch in &log.batches {
            for (index, stored) in (0_i64..).zip(&batch.records) {
                self.read_record(log, batch.base_offset + index, *stored);
            }
        }
        self.read_sequences(log);
    }

    fn read_record(&mut self, log: &Log, offset: i64, stored: Stored) {
        let record = match stored {
            Stored::Ours(record) => record,
            Stored::Foreign => {
                return self.keep_at(None, offset, vec![Anomaly::new(Class::Foreign)]);
            }
            Stored::Corrupt => {
                return self.keep_at(None, offset, vec![Anomaly::new(Class::Corrupt)]);
            }
        };
        let Some(home) = self.home(record) else { return };
        self.at.entry(record).or_default().push((log.topic, log.partition, offset));
        if (home.topic, home.partition) == (log.topic, log.partition) {
            let found = self.lane(home).committed(record, offset);
            self.keep_at(Some(home), offset, found);
        } else {
            self.lane(home).misplaced(record, offset);
            let misrouted = Anomaly::new(Class::Misrouted).record(record);
            self.keep_at(Some(home), offset, vec![misrouted]);
        }
    }

    /// Sequences of an epoch are contiguous in a log.
    fn read_sequences(&mut self, log: &Log) {
        let mut next: BTreeMap<(i64, i16), i64> = BTreeMap::new();
        for batch in log.batches.iter().filter(|batch| batch.producer_id >= 0) {
            let count = u32::try_from(batch.records.len()).unwrap_or(u32::MAX);
            let first = i64::from(batch.first);
            let key = (batch.producer_id, batch.epoch);
            let expected = next.insert(key, sequence_after(first, count)).unwrap_or(first);
            let class = sequence_follows(expected, first);
            let (id, epoch) = key;
            let forgiven = self.forgiven_gaps.contains(&(log.topic, log.partition, id, epoch));
            if let Some(class) = class
                && !(forgiven && class == Class::SeqGap)
            {
                self.convict_batch(class, batch);
            }
        }
    }

    fn convict_batch(&mut self, class: Class, batch: &LogBatch) {
        let ours = batch.records.iter().find_map(|stored| match stored {
            Stored::Ours(record) => Some(*record),
            Stored::Foreign | Stored::Corrupt => None,
        });
        let lane = ours.and_then(|record| self.homes.get(&record).copied());
        let anomaly = Anomaly { record: ours, ..Anomaly::new(class) };
        self.keep_at(lane, batch.base_offset, vec![anomaly]);
    }

    fn rule(mut self) -> Report {
        for (lane, observer) in &self.lanes {
            let closed = self.history.closed && !self.killed.contains(&lane.producer);
            let found = observer.close(closed);
            self.found.extend(found.into_iter().map(|anomaly| Found::said(Some(*lane), anomaly)));
        }
        let mut report = Report::default();
        for &Found { lane, anomaly, offset } in &self.found {
            let finding = Finding { lane, anomaly, blame: self.blame(lane, anomaly) };
            match self.excuse(finding, offset) {
                Some(excuse) => report.excused.push((finding, excuse)),
                None => report.anomalies.push(finding),
            }
        }
        report
    }

    /// Clean on the wire, and some acknowledged batch is not where its answer put it.
    fn blame(&self, lane: Option<Lane>, anomaly: Anomaly) -> Blame {
        let Some(lane) = lane else { return Blame::Client };
        let placed = matches!(anomaly.class, Class::Lost | Class::Duplicate | Class::Reorder);
        let disciplined = self.lanes.get(&lane).is_some_and(Observer::is_disciplined);
        if !self.history.settings.wire || !placed || !disciplined {
            return Blame::Client;
        }
        let lied = self.acknowledged.iter().any(|(other, records, base)| {
            *other == lane
                && (*base..).zip(records).any(|(offset, record)| {
                    let here = (lane.topic, lane.partition, offset);
                    let concerned = [anomaly.record, anomaly.other].contains(&Some(*record));
                    concerned && self.at.get(record).is_none_or(|at| at.as_slice() != [here])
                })
        });
        if lied { Blame::Broker } else { Blame::Client }
    }

    /// An excuse for what was seen at this place; if it was seen nowhere, for one of the places where the
    /// record stands, or was said to stand; and of what stands there twice, for every copy behind the
    /// first.
    fn excuse(&self, finding: Finding, seen: Option<i64>) -> Option<Excuse> {
        let (lane, record) = (finding.lane?, finding.anomaly.record?);
        let told = self.told.get(&record).copied();
        let covers = |offset: Option<i64>| {
            self.excuses.iter().copied().find(|excuse| {
                excuse.kind.covers(finding.anomaly.class)
                    && (excuse.topic, excuse.partition) == (lane.topic, lane.partition)
                    && told.is_none_or(|(at, _)| at <= excuse.until)
                    && offset.is_none_or(|offset| (excuse.from..excuse.to).contains(&offset))
            })
        };
        if seen.is_some() {
            return covers(seen);
        }
        let mut stored = self.at.get(&record).into_iter().flatten().map(|&(_, _, offset)| offset);
        if finding.anomaly.class == Class::Duplicate {
            let copies: Option<Vec<Excuse>> = stored.skip(1).map(|at| covers(Some(at))).collect();
            return copies?.first().copied();
        }
        let claimed = match told {
            Some((_, Said::Delivered(offset))) => offset,
            Some((_, Said::NotDelivered | Said::Unknown)) | None => None,
        };
        match stored.next() {
            None if claimed.is_none() => covers(None),
            first => first.into_iter().chain(stored).chain(claimed).find_map(|at| covers(Some(at))),
        }
    }
}

/// The part of a history that concerns a finding, one line each: ledger, wire, then log.
pub fn slice(history: &History, finding: &Finding) -> Vec<String> {
    let wanted = [finding.anomaly.record, finding.anomaly.other];
    let hit = |record: u64| wanted.contains(&Some(record));
    let mut attempts: BTreeSet<(Lane, u64)> = BTreeSet::new();
    let mut lines = Vec::new();
    for entry in &history.entries {
        let shown = match &entry.fact {
            Fact::Intent { record, .. }
            | Fact::Accepted { record }
            | Fact::Refused { record }
            | Fact::Cancelled { record }
            | Fact::Hidden { record }
            | Fact::Verdict { record, .. }
            | Fact::Resolution { record, .. } => hit(*record),
            Fact::Offered { lane, attempt } => {
                let mine = attempt.records.iter().any(|record| hit(*record))
                    || finding.anomaly.attempt == Some(attempt.id) && finding.lane == Some(*lane);
                mine && attempts.insert((*lane, attempt.id))
            }
            Fact::Answered { lane, attempt, .. } | Fact::Ended { lane, attempt, .. } => {
                attempts.contains(&(*lane, *attempt))
            }
            Fact::Notice { lane, .. }
            | Fact::Disturbed { lane }
            | Fact::Abandoned { lane }
            | Fact::Routed { lane, .. } => Some(*lane) == finding.lane,
            Fact::Closing { .. } | Fact::Killed { .. } | Fact::Stall { .. } => true,
        };
        if shown {
            lines.push(format!("{:>12} {:?}", entry.at, entry.fact));
        }
    }
    for log in &history.logs {
        for batch in &log.batches {
            if batch.records.iter().any(|s| matches!(s, Stored::Ours(record) if hit(*record))) {
                lines.push(format!("log {}-{}: {batch:?}", log.topic, log.partition));
            }
        }
    }
    lines
}
