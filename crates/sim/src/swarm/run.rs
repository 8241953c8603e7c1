//! One run, from its seed to its verdict.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use candor_core::rules::{Honest, Rules};
use fastrand::Rng;

use super::book::Complaint;
use super::rows::{RuleCounts, Trouble, TroubleCounts};
use super::scenario::{Dice, PROFILES, SECOND, Scenario};
use super::steps::{Keep, Step, Steps, Taken};
use super::tally;
use super::trial;
use super::verdicts::Verdicts;
use super::world::{Event, World};
use crate::broker::Profile;
use crate::judge::{Class, Said};
use crate::timeline::Page;

/// How often a fresh record is sent to every partition before one must be delivered.
const ROUNDS: u32 = 3;

/// How a seed is run.
///
/// ```
/// use candor_sim::broker::Profile;
/// use candor_sim::swarm::{Options, run_seed};
/// let options = Options { profile: Some(Profile::V4_4), ..Options::default() };
/// assert_eq!(run_seed(1, &options).trace, run_seed(1, &options).trace);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The version that brokers imitate; `None`: the seed decides. Default: `None`.
    pub profile: Option<Profile>,
    /// Whether the report tells everything that happened. Default: it does not.
    pub timeline: bool,
    /// Which steps of the run happen. Default: all.
    pub keep: Keep,
}

/// What came of one seed.
///
/// ```
/// use candor_sim::swarm::{Options, run_seed};
/// let report = run_seed(7, &Options::default());
/// assert!(report.to_string().contains("candor sim replay 7"));
/// ```
#[derive(Clone, Debug)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// The version that brokers imitated.
    pub profile: Profile,
    /// A hash over all that happened: the same seed gives the same hash.
    pub trace: u64,
    /// What was found wrong, one line each. Empty: nothing.
    pub anomalies: Vec<String>,
    /// The classes of what was found wrong.
    pub classes: Vec<Class>,
    /// The machine, or what watches it, panicked.
    pub panicked: bool,
    /// The steps that were taken, in order.
    pub steps: Vec<Step>,
    /// Whether steps were left out.
    pub keep: Keep,
    /// Findings that something excuses which no producer can answer for.
    pub excused: usize,
    /// The part of the history that the first finding is about.
    pub slice: Vec<String>,
    /// The history of the first finding's partition, drawn.
    pub page: Option<Page>,
    /// Everything that happened, if asked for.
    pub timeline: Vec<String>,
    /// What befell the producer.
    pub troubles: TroubleCounts,
    /// Which rules it had to apply.
    pub rules: RuleCounts,
    /// How its records ended.
    pub verdicts: Verdicts,
}

impl Report {
    /// Nothing was found wrong.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.anomalies.is_empty()
    }

    /// The command that runs this seed again.
    #[must_use]
    pub fn replay(&self) -> String {
        let (seed, profile) = (self.seed, profile_name(self.profile));
        let keep = match &self.keep {
            Keep::All => String::new(),
            Keep::Only(steps) => {
                let steps: Vec<String> = steps.iter().map(Step::to_string).collect();
                format!(" --keep {}", steps.join(","))
            }
        };
        format!("candor sim replay {seed} --profile {profile}{keep}")
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Verdicts { accepted, delivered, not_delivered, unknown, .. } = self.verdicts;
        writeln!(
            f,
            "seed {} on {}: {accepted} records, {delivered} delivered, {not_delivered} not delivered, \
             {unknown} unknown; trace {:016x}",
            self.seed,
            profile_name(self.profile),
            self.trace
        )?;
        for line in &self.timeline {
            writeln!(f, "  {line}")?;
        }
        if self.is_clean() {
            writeln!(f, "nothing wrong ({} excused)", self.excused)?;
        }
        for anomaly in &self.anomalies {
            writeln!(f, "WRONG: {anomaly}")?;
        }
        for line in &self.slice {
            writeln!(f, "  | {line}")?;
        }
        writeln!(f, "{}", self.replay())
    }
}

/// The name of a profile on a command line.
#[must_use]
pub const fn profile_name(profile: Profile) -> &'static str {
    match profile {
        Profile::V2_4 => "2.4",
        Profile::V3_9 => "3.9",
        Profile::V4_0 => "4.0",
        Profile::V4_3 => "4.3",
        Profile::V4_4 => "4.4",
        Profile::V4_5 => "4.5",
    }
}

/// Runs one seed of the producer as it ships.
#[must_use]
pub fn run_seed(seed: u64, options: &Options) -> Report {
    run_with::<Honest>(seed, options)
}

/// The profile that a seed runs against if nobody says otherwise.
pub(super) fn profile_of(seed: u64) -> Profile {
    PROFILES[(seed % PROFILES.len() as u64) as usize]
}

/// Runs one seed of a producer that decides by `R`. A panic is an anomaly as well.
pub(super) fn run_with<R: Rules>(seed: u64, options: &Options) -> Report {
    let profile = options.profile.unwrap_or_else(|| profile_of(seed));
    let empty = report_of_nothing(seed, profile, options);
    let taken = Taken::default();
    let run = || try_seed::<R>(options, empty.clone(), taken.clone());
    let mut report = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(report) => report,
        Err(panic) => panicked(empty.clone(), panic.as_ref()),
    };
    report.steps = taken.take();
    report.rules = tally::end();
    report
}

fn panicked(empty: Report, panic: &(dyn Any + Send)) -> Report {
    let text = panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    Report {
        anomalies: vec![format!("PANIC: {}", text.unwrap_or_default())],
        classes: vec![Class::Contract],
        panicked: true,
        ..empty
    }
}

/// A report on a run that has not been made.
pub(super) fn report_of_nothing(seed: u64, profile: Profile, options: &Options) -> Report {
    Report {
        seed,
        profile,
        trace: 0,
        anomalies: Vec::new(),
        classes: Vec::new(),
        panicked: false,
        steps: Vec::new(),
        keep: options.keep.clone(),
        excused: 0,
        slice: Vec::new(),
        page: None,
        timeline: Vec::new(),
        troubles: TroubleCounts::default(),
        rules: RuleCounts::default(),
        verdicts: Verdicts::default(),
    }
}

fn try_seed<R: Rules>(options: &Options, empty: Report, taken: Taken) -> Report {
    let seed = empty.seed;
    let mut rng = Rng::with_seed(seed);
    let scenario = Scenario::draw(&mut rng, empty.profile);
    tally::begin(scenario.climb, scenario.origin);
    let steps = Steps::new(seed, options.keep.clone(), taken);
    match World::<R>::new(scenario, seed, rng, steps, options.timeline) {
        Ok(mut world) => {
            world.run();
            trial::judge_world(&mut world, empty)
        }
        Err(error) => Report {
            anomalies: vec![format!("the scenario's configuration: {error}")],
            classes: vec![Class::Contract],
            ..empty
        },
    }
}

impl<R: Rules> World<R> {
    fn run(&mut self) {
        let scenario = format!("{:?}", self.scenario);
        self.book.line(self.clock.now, format_args!("{scenario}"));
        let end = self.clock.now + self.scenario.trouble_for;
        while self.step(end) {}
        if self.scenario.has(Trouble::CloseInTrouble) && self.rng.permille(300) {
            self.close_in_trouble();
        }
        self.calm_down();
        if !self.closing {
            self.await_words();
            self.await_fresh();
            self.close_in_peace();
        }
        self.close_neighbours();
        self.let_all_arrive();
    }

    fn close_in_trouble(&mut self) {
        self.trouble(Trouble::CloseInTrouble, format_args!(""));
        let after = self.rng.about(3 * SECOND);
        let due = self.close(after);
        self.await_close(due);
    }

    /// The troubles stop: what they left behind has to heal.
    fn calm_down(&mut self) {
        self.book.line(self.clock.now, format_args!("quiet"));
        self.rough = false;
        self.relieve_all();
        self.left_to_send = 0;
        self.pump();
        self.turn();
    }

    /// Every record has its verdict, every `Unknown` its resolution, without anybody's help (L2).
    pub(super) fn await_words(&mut self) {
        let longest = self.scenario.longest_deadline + self.patience();
        let limit = self.clock.now + longest;
        let (began, wakes) = (self.clock.now, self.wakes);
        while !(self.book.untold.is_empty() && self.book.unresolved.is_empty()) {
            if !self.step(limit) {
                break;
            }
        }
        for record in self.book.untold.clone() {
            let text = format!("record {record} has no verdict though all is quiet");
            self.book.complain(self.clock.now, Class::Hung, Some(record), text);
        }
        for record in self.book.unresolved.clone() {
            let text = format!("record {record} is unknown, and stays so though all is quiet");
            self.book.complain(self.clock.now, Class::Hung, Some(record), text);
        }
        self.check_pace(began, wakes);
    }

    /// How long it may take until everything is decided once the cluster is well.
    fn patience(&self) -> u64 {
        let scenario = &self.scenario;
        60 * SECOND + 20 * (scenario.request_timeout + scenario.metadata_age)
    }

    /// L3: wakeups in quiet times are bounded.
    fn check_pace(&mut self, began: u64, wakes: u64) {
        let seconds = (self.clock.now - began) / SECOND + 1;
        let shortest = self.scenario.backoff.min(self.scenario.linger.max(1_000)).max(1_000);
        // Every lane, connection and record may have something to do once per shortest wait.
        let per_second = SECOND / shortest * 40 + 1_000;
        let woken = self.wakes - wakes;
        if woken > seconds * per_second {
            let text = format!("{woken} wakeups in {seconds} s of quiet");
            self.book.complain(self.clock.now, Class::Busy, None, text);
        }
    }

    /// A fresh record to every partition is delivered. What was told in the troubles may be stale still,
    /// and the first records find that out; the third may not.
    fn await_fresh(&mut self) {
        for round in 1..=ROUNDS {
            let fresh = self.send_fresh();
            let half_way = self.clock.now + 15 * SECOND;
            self.await_verdicts(&fresh, half_way);
            self.tell_what_waits();
            self.await_verdicts(&fresh, self.clock.now + 2 * self.patience());
            self.await_words();
            let failed = fresh.into_iter().find(|record| !self.is_healed(*record));
            let Some(failed) = failed else { break };
            if round == ROUNDS {
                let said = self.said(failed);
                let text = format!("fresh record {failed} was told {said:?}");
                self.book.complain(self.clock.now, Class::NotHealed, Some(failed), text);
            }
        }
    }

    fn await_verdicts(&mut self, records: &[u64], limit: u64) {
        while records.iter().any(|record| self.book.untold.contains(record)) && self.step(limit) {}
    }

    fn said(&self, record: u64) -> Option<Said> {
        self.book.pages.get(usize::try_from(record).ok()?)?.said
    }

    fn is_healed(&self, record: u64) -> bool {
        matches!(self.said(record), Some(Said::Delivered(_))) || self.is_stopped(record)
    }

    /// What records wait for that should have their verdict by now, for those who read the timeline.
    fn tell_what_waits(&mut self) {
        let waits = self.book.untold.iter().chain(&self.book.unresolved).copied();
        for record in waits.collect::<Vec<_>>() {
            let Some(ticket) = self.book.ticket(record) else { continue };
            let why = self.producer.why(ticket);
            let lane = self.book.lane(record);
            self.book.line(self.clock.now, format_args!("record {record} in {lane:?}: {why:?}"));
        }
        let leaders = self.net.cluster().partitions().map(|(name, at, one)| {
            let isr: Vec<u8> = one.isr().iter().map(|node| node.0).collect();
            format!("{name}-{at}: {:?} of {isr:?}", one.leader().map(|node| node.0))
        });
        let leaders: Vec<String> = leaders.collect();
        self.book.line(self.clock.now, format_args!("leaders: {}", leaders.join(", ")));
    }

    pub(super) fn close_in_peace(&mut self) {
        let due = self.close(10 * SECOND);
        self.await_close(due);
    }

    fn await_close(&mut self, due: u64) {
        // The host's own sleep and its clock may hold it back.
        while !self.closed {
            let limit = self.clock.when(candor_core::Instant::from_micros(due)) + 1;
            if !self.step(limit) {
                break;
            }
        }
        if !self.closed {
            let text = format!("not closed though its deadline, {due}, is over");
            self.book.complain(self.clock.now, Class::Late, None, text);
        }
    }

    /// Every byte that is still under way arrives, and the brokers act on it.
    pub(super) fn let_all_arrive(&mut self) {
        self.links.keys().copied().collect::<Vec<_>>().into_iter().for_each(|conn| self.end(conn));
        let limit = self.clock.now + 120 * SECOND;
        while self.awaits(|event| matches!(event, Event::Out(_) | Event::Late(_) | Event::End(_)))
            && self.step(limit)
        {}
        for _ in 0..3 {
            let now = self.clock.now;
            self.net.cluster_mut().replicate((now / 1_000) as i64);
            self.net.tick(now);
            self.pump();
        }
    }
}

/// What the book complains of, as a line.
pub(super) fn complaint_line(complaint: &Complaint) -> String {
    let lane = complaint.lane.map_or(String::new(), |lane| format!(" in {lane}"));
    format!("{}{lane}: {}", complaint.anomaly, complaint.text)
}
