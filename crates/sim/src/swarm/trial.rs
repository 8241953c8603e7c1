//! What the run did is put before the judge: topic by topic, since topics differ in whether record
//! timestamps age the brokers' memory.

use std::collections::{BTreeMap, BTreeSet};

use candor_core::rules::Rules;

use super::meddle::Meddler;
use super::rows::Trouble;
use super::run::{Report, complaint_line};
use super::verdicts::Verdicts;
use super::world::World;
use crate::broker::Profile;
use crate::judge::{
    Class, Entry, Fact, Finding, History, Lane, Log, LogBatch, LogIs, Noticed, Said, Settings,
    Stored, judge, slice,
};
use crate::timeline::{Ending, Page};

/// Judges a run that is over.
pub(super) fn judge_world<R: Rules>(world: &mut World<R>, mut report: Report) -> Report {
    let entries = world.book.settled_entries();
    for topic in 0..world.scenario.topics.len() as u32 {
        let history = history_of(world, topic, &entries);
        judge_topic(world, topic, &history, &mut report);
        for place in 0..world.neighbours.len() {
            if let Some(history) = world.neighbours_history(place, topic) {
                judge_neighbour(&history, &mut report);
            }
        }
    }
    for complaint in &world.book.complaints {
        report.anomalies.push(complaint_line(complaint));
        report.classes.push(complaint.anomaly.class);
        if report.slice.is_empty()
            && let (Some(lane), Some(record)) = (complaint.lane, complaint.anomaly.record)
        {
            let history = history_of(world, lane.topic, &entries);
            let blame = crate::judge::Blame::Client;
            let anomaly = complaint.anomaly.record(record);
            let finding = Finding { lane: Some(lane), anomaly, blame };
            report.slice = slice(&history, &finding);
            draw(&history, Some(lane), &complaint_line(complaint), &mut report);
        }
    }
    if report.page.is_none()
        && let Some(line) = report.anomalies.first().cloned()
    {
        // Nothing names a partition: all that went on is drawn.
        let history = history_of(world, 0, &entries);
        draw(&history, None, &line, &mut report);
    }
    report.trace = world.book.hash();
    report.troubles = world.book.troubles.clone();
    report.verdicts = verdicts(world);
    report.timeline = world.book.take_timeline();
    report
}

/// Draws the history of the first finding.
fn draw(history: &History, lane: Option<Lane>, line: &str, report: &mut Report) {
    if report.page.is_some() {
        return;
    }
    let title = format!("seed {}", report.seed);
    let page = Page::of_history(&title, history, lane);
    let mut page = page.about(line).again(&report.replay());
    page.end(Ending::Wrong { line: None, text: line.to_owned() });
    report.page = Some(page);
}

fn judge_neighbour(history: &History, report: &mut Report) {
    for finding in judge(history).anomalies {
        if report.slice.is_empty() {
            report.slice = slice(history, &finding);
        }
        let line = format!("a neighbour: {finding}");
        draw(history, finding.lane, &line, report);
        report.anomalies.push(line);
        report.classes.push(finding.anomaly.class);
    }
}

fn judge_topic<R: Rules>(world: &World<R>, topic: u32, history: &History, report: &mut Report) {
    let found = judge(history);
    report.excused += found.excused.len();
    for finding in found.anomalies {
        if is_excused(world, topic, history, &finding) {
            report.excused += 1;
            continue;
        }
        if report.slice.is_empty() {
            report.slice = slice(history, &finding);
        }
        draw(history, finding.lane, &finding.to_string(), report);
        report.anomalies.push(finding.to_string());
        report.classes.push(finding.anomaly.class);
    }
}

fn verdicts<R: Rules>(world: &World<R>) -> Verdicts {
    let counts = world.producer.stats().counts;
    let resolved = |wanted: fn(Said) -> bool| {
        let pages = world.book.pages.iter().filter_map(|page| page.resolved);
        pages.filter(|said| wanted(*said)).count() as u64
    };
    Verdicts {
        accepted: counts.accepted,
        delivered: counts.delivered,
        not_delivered: counts.not_delivered,
        unknown: counts.unknown,
        turned_delivered: resolved(|said| matches!(said, Said::Delivered(_))),
        turned_not_delivered: resolved(|said| said == Said::NotDelivered),
        never: world.book.never,
        latest: latest(&world.book.entries),
    }
}

/// The latest verdict, in microseconds behind its deadline, but for what the host slept (CHK-6).
fn latest(entries: &[Entry]) -> u64 {
    let mut due: BTreeMap<u64, u64> = BTreeMap::new();
    let mut stalls: Vec<(u64, u64)> = Vec::new();
    let mut latest = 0;
    for Entry { at, fact } in entries {
        match fact {
            Fact::Intent { record, due: by, .. } => {
                due.insert(*record, *by);
            }
            Fact::Cancelled { record } => {
                due.entry(*record).and_modify(|by| *by = (*by).min(*at));
            }
            Fact::Closing { due: by, .. } => {
                due.values_mut().for_each(|due| *due = (*due).min(*by))
            }
            Fact::Stall { from, to } => stalls.push((*from, *to)),
            Fact::Verdict { record, .. } => {
                let Some(by) = due.remove(record) else { continue };
                let asleep = |&(from, to): &(u64, u64)| to.min(*at).saturating_sub(from.max(by));
                let slept: u64 = stalls.iter().map(asleep).sum();
                latest = latest.max(at.saturating_sub(by).saturating_sub(slept));
            }
            Fact::Accepted { .. }
            | Fact::Refused { .. }
            | Fact::Killed { .. }
            | Fact::Resolution { .. }
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
    latest
}

/// Whether Produce names topics rather than their ids: then a topic that was made anew takes what
/// was meant for the old one, and no producer can help it.
fn goes_by_name(profile: Profile) -> bool {
    profile.max_versions().produce < 13
}

fn is_excused<R: Rules>(
    world: &World<R>,
    topic: u32,
    history: &History,
    finding: &Finding,
) -> bool {
    is_excused_by_name(world, topic, finding)
        || is_same_moment(history, finding)
        || is_against_assumptions(world, finding)
        || is_over(world, finding)
}

fn was_recreated<R: Rules>(world: &World<R>, topic: u32) -> bool {
    world.nemesis.retired.iter().any(|(retired, ..)| *retired == topic)
}

fn is_excused_by_name<R: Rules>(world: &World<R>, topic: u32, finding: &Finding) -> bool {
    was_recreated(world, topic)
        && is_about_places(finding.anomaly.class)
        && goes_by_name(world.scenario.profile)
}

/// The broker told what is not so, or forgot us though it must not: what is concluded from its answers
/// may be wrong (A1, A3).
fn is_against_assumptions<R: Rules>(world: &World<R>, finding: &Finding) -> bool {
    let Meddler { forgotten, lied, .. } = &world.meddler;
    is_about_places(finding.anomaly.class)
        && finding.lane.is_some_and(|lane| forgotten.contains(&lane) || lied.contains(&lane))
}

fn is_about_places(class: Class) -> bool {
    matches!(
        class,
        Class::Lost
            | Class::WrongOffset
            | Class::Duplicate
            | Class::Ghost
            | Class::Reorder
            | Class::SeqGap
            | Class::SeqReuse
            | Class::OutOfTurn
            | Class::OffsetBack
    )
}

/// A lane was given up by one answer of a turn (K7), and a later one of the same turn shows that the
/// record was refused: better told now than `Unknown`.
fn is_same_moment(history: &History, finding: &Finding) -> bool {
    let (Some(lane), Some(record)) = (finding.lane, finding.anomaly.record) else { return false };
    if finding.anomaly.class != Class::Hasty {
        return false;
    }
    let verdict = |fact: &Fact| matches!(fact, Fact::Verdict { record: r, .. } if *r == record);
    let unfenced = Noticed::Unfenced;
    let gives_up = |fact: &Fact| *fact == Fact::Notice { lane, notice: unfenced };
    let told = history.entries.iter().find(|entry| verdict(&entry.fact)).map(|entry| entry.at);
    history.entries.iter().any(|entry| Some(entry.at) == told && gives_up(&entry.fact))
}

/// What was refused and told so is not asked for any more, whatever else is.
fn is_over<R: Rules>(world: &World<R>, finding: &Finding) -> bool {
    let record = finding.anomaly.record.and_then(|record| usize::try_from(record).ok());
    let page = record.and_then(|record| world.book.pages.get(record));
    let over = page.is_some_and(|page| page.said == Some(Said::NotDelivered));
    finding.anomaly.class == Class::FalseAlarm && over
}

fn history_of<R: Rules>(world: &World<R>, topic: u32, entries: &[Entry]) -> History {
    let mut mine: BTreeSet<u64> = BTreeSet::new();
    let mut kept = Vec::new();
    let mut haste = Haste::new(world, topic);
    for entry in entries {
        let keep = match &entry.fact {
            Fact::Intent { record, lane, .. } => {
                let keep = lane.topic == topic;
                if keep {
                    mine.insert(*record);
                }
                keep
            }
            Fact::Accepted { record }
            | Fact::Refused { record }
            | Fact::Cancelled { record }
            | Fact::Hidden { record }
            | Fact::Verdict { record, .. }
            | Fact::Resolution { record, .. } => mine.contains(record),
            Fact::Notice { lane, .. }
            | Fact::Disturbed { lane }
            | Fact::Abandoned { lane }
            | Fact::Offered { lane, .. }
            | Fact::Answered { lane, .. }
            | Fact::Ended { lane, .. }
            | Fact::Routed { lane, .. } => lane.topic == topic,
            Fact::Closing { .. } | Fact::Killed { .. } | Fact::Stall { .. } => true,
        };
        if keep {
            kept.extend(haste.explained(entry));
            kept.push(entry.clone());
        }
    }
    if was_recreated(world, topic) {
        forget_log_starts(&mut kept);
    }
    let plan = world.scenario.topics.get(topic as usize);
    History {
        settings: Settings {
            slack: 0,
            state_ttl: Some(world.scenario.state_ttl),
            // The judge does not know either that what was acknowledged last was of another log.
            timestamps_count: plan.is_none_or(|plan| !plan.log_append_time)
                && !was_recreated(world, topic),
            trust_base_offset: world.scenario.trust_base_offset,
            wire: true,
            stop: false,
            // A fifth less by jitter.
            backoff: world.scenario.backoff / 5 * 4,
            log: LogIs::ShownAtTheEnd,
            log_starts: !was_recreated(world, topic),
            first_sequence: i64::from(world.scenario.origin),
            origin: i64::from(world.scenario.origin),
        },
        entries: kept,
        logs: logs_of(world, topic),
        read_at: world.clock.now,
        excuses: world.nemesis.excuses.clone(),
        closed: world.closed,
    }
}

/// A topic that was made anew has another log, which may begin before the old one did (S18): the judge
/// knows of one log only, so it is shown no beginning at all.
fn forget_log_starts(entries: &mut [Entry]) {
    for entry in entries {
        if let Fact::Answered { reply: Some(reply), .. } = &mut entry.fact {
            reply.log_start = -1;
        }
    }
}

/// What is told before its time, for a reason that stands on no wire: at the moment at which its topic
/// was told to be another one, or refused by metadata; and where unknown, in three kinds of runs. One of
/// them is that of topics that are made anew, at whatever time: of those the judge knows neither where
/// the log begins nor what record timestamps do to the brokers' memory (S18, S20).
struct Haste<'w, R: Rules> {
    world: &'w World<R>,
    topic: u32,
    homes: BTreeMap<u64, Lane>,
    /// When lanes were answered last.
    answered: BTreeMap<Lane, u64>,
}

impl<'w, R: Rules> Haste<'w, R> {
    const fn new(world: &'w World<R>, topic: u32) -> Self {
        Self { world, topic, homes: BTreeMap::new(), answered: BTreeMap::new() }
    }

    /// What the judge is to hear before an entry.
    fn explained(&mut self, entry: &Entry) -> Option<Entry> {
        if let Fact::Intent { record, lane, .. } = &entry.fact {
            self.homes.insert(*record, *lane);
        }
        if let Fact::Answered { lane, .. } = &entry.fact {
            self.answered.insert(*lane, entry.at);
        }
        let Fact::Verdict { record, said } = &entry.fact else { return None };
        let lane = *self.homes.get(record)?;
        let unseen = self.is_careful() || was_recreated(self.world, self.topic) || self.is_tight();
        let early = match said {
            Said::Unknown => unseen,
            // Unknown for want of memory, and refused before anybody heard of it (D6).
            Said::NotDelivered => {
                self.is_tight() && self.answered.get(&lane).is_some_and(|at| *at == entry.at)
            }
            Said::Delivered(_) => false,
        };
        let hidden = early || self.world.book.hidden.contains(&(lane, entry.at));
        hidden.then_some(Entry { at: entry.at, fact: Fact::Hidden { record: *record } })
    }

    /// S20, T22: to the producer record timestamps age the brokers' memory until a first attempt that is
    /// answered 0 tells that the topic has its own. The judge knows that from the beginning, even if the
    /// topic was created before its time, as any other is, and got them later.
    fn is_careful(&self) -> bool {
        let plan = self.world.scenario.topics.get(self.topic as usize);
        plan.is_some_and(|plan| plan.log_append_time)
    }

    /// L5: memory is so small that unknowns are given up for it, at any time. That ends an epoch, and
    /// with it what else is in doubt in it. What a late answer still delivers bears no trace of it, so
    /// that it cannot be told from haste.
    fn is_tight(&self) -> bool {
        self.world.scenario.has(Trouble::BufferFull)
    }
}

fn logs_of<R: Rules>(world: &World<R>, topic: u32) -> Vec<Log> {
    let Some(plan) = world.scenario.topics.get(topic as usize) else { return Vec::new() };
    let there = world.net.cluster().partitions().filter(|(name, ..)| *name == plan.name).count();
    let now = (0..there as i32).map(|partition| Log {
        topic,
        partition,
        batches: world.whole_log(&plan.name, topic, partition),
    });
    let now: Vec<Log> = now.collect();
    let mut held = stored(&now);
    let mut logs = now;
    for (retired, partition, batches) in world.nemesis.retired.iter().rev() {
        if *retired != topic {
            continue;
        }
        let mut batches = batches.clone();
        if goes_by_name(world.scenario.profile) {
            batches.retain(|batch| !batch.records.iter().any(|one| held.contains(&number(one))));
        }
        let log = Log { topic, partition: *partition, batches };
        held.extend(stored(std::slice::from_ref(&log)));
        logs.insert(0, log);
    }
    logs
}

fn number(stored: &Stored) -> u64 {
    match stored {
        Stored::Ours(record) => *record,
        Stored::Foreign | Stored::Corrupt => u64::MAX,
    }
}

fn stored(logs: &[Log]) -> BTreeSet<u64> {
    let batches = logs.iter().flat_map(|log| &log.batches);
    batches.flat_map(|batch: &LogBatch| batch.records.iter().map(number)).collect()
}
