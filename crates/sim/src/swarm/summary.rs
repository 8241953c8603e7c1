//! Many seeds, and what they showed together.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use candor_core::rules::{Honest, Rules};

use super::impossible;
use super::rows::{Rule, RuleCounts, Trouble, TroubleCounts};
use super::run::{Options, Report, Verdicts, profile_name, run_with};
use super::scenario::PROFILES;
use crate::broker::Profile;

/// How many seeds are run.
///
/// ```
/// use candor_sim::swarm::Extent;
/// assert_ne!(Extent::Seeds(300), Extent::Budget(std::time::Duration::from_secs(60)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// So many.
    Seeds(u64),
    /// As many as are begun in this time.
    Budget(Duration),
}

/// One column of the matrices.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Column {
    profile: Profile,
    seeds: u64,
    troubles: TroubleCounts,
    rules: RuleCounts,
}

/// What many seeds showed.
///
/// ```
/// use candor_sim::swarm::{Extent, Options, run_many};
/// let summary = run_many(0, Extent::Seeds(5), 1, &Options::default());
/// assert_eq!(summary.seeds, 5);
/// assert!(summary.to_string().contains("seeds/hour"));
/// ```
#[derive(Clone, Debug)]
pub struct Summary {
    /// How many seeds were run.
    pub seeds: u64,
    /// How long that took.
    pub took: Duration,
    /// Reports of seeds that were not clean, with their timelines, the first ones only.
    pub failures: Vec<Report>,
    /// How many seeds were not clean.
    pub failed: u64,
    /// Findings that something excuses which no producer can answer for.
    pub excused: u64,
    /// How records ended.
    pub verdicts: Verdicts,
    columns: Vec<Column>,
}

/// How many failures are kept.
const KEPT: usize = 20;

/// Runs seeds from `first` on, on so many threads, of the producer as it ships.
#[must_use]
pub fn run_many(first: u64, extent: Extent, threads: usize, options: &Options) -> Summary {
    run_many_with::<Honest>(first, extent, threads, options)
}

/// The same with rules `R`. Stops at nothing.
pub(super) fn run_many_with<R: Rules>(
    first: u64,
    extent: Extent,
    threads: usize,
    options: &Options,
) -> Summary {
    let began = Instant::now();
    let next = AtomicU64::new(first);
    let over = AtomicBool::new(false);
    let summary = Mutex::new(Summary::new());
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let ends = match extent {
                        Extent::Seeds(seeds) => seed >= first.saturating_add(seeds),
                        Extent::Budget(budget) => began.elapsed() >= budget,
                    };
                    if ends {
                        over.store(true, Ordering::Relaxed);
                        break;
                    }
                    let report = run_with::<R>(seed, options);
                    if let Ok(mut summary) = summary.lock() {
                        summary.take(report);
                    }
                }
            });
        }
    });
    let mut summary = match summary.into_inner() {
        Ok(summary) => summary,
        Err(poisoned) => poisoned.into_inner(),
    };
    summary.took = began.elapsed();
    summary.failures.sort_by_key(|report| report.seed);
    summary.retell::<R>();
    summary
}

impl Summary {
    fn new() -> Self {
        let column = |profile: &Profile| Column {
            profile: *profile,
            seeds: 0,
            troubles: TroubleCounts::default(),
            rules: RuleCounts::default(),
        };
        Self {
            seeds: 0,
            took: Duration::ZERO,
            failures: Vec::new(),
            failed: 0,
            excused: 0,
            verdicts: Verdicts::default(),
            columns: PROFILES.iter().map(column).collect(),
        }
    }

    fn take(&mut self, report: Report) {
        self.seeds += 1;
        self.excused += report.excused as u64;
        self.verdicts.accepted += report.verdicts.accepted;
        self.verdicts.delivered += report.verdicts.delivered;
        self.verdicts.not_delivered += report.verdicts.not_delivered;
        self.verdicts.unknown += report.verdicts.unknown;
        if let Some(column) = self.columns.iter_mut().find(|c| c.profile == report.profile) {
            column.seeds += 1;
            column.troubles.merge(&report.troubles);
            column.rules.merge(&report.rules);
        }
        if !report.is_clean() {
            self.failed += 1;
            self.failures.push(report);
            // Whichever thread was first: the lowest seeds are kept.
            self.failures.sort_by_key(|report| report.seed);
            self.failures.truncate(KEPT);
        }
    }

    /// The first failure is run again, and tells everything.
    fn retell<R: Rules>(&mut self) {
        if let Some(first) = self.failures.first_mut() {
            let options = Options { profile: Some(first.profile), timeline: true };
            *first = run_with::<R>(first.seed, &options);
        }
    }

    /// Cells of both matrices that are empty, and are not known to be impossible.
    #[must_use]
    pub fn empty_cells(&self) -> Vec<String> {
        let mut empty = Vec::new();
        for column in self.columns.iter().filter(|column| column.seeds > 0) {
            let profile = column.profile;
            let troubles = Trouble::ALL.iter().filter(|row| {
                column.troubles.get(**row as usize) == 0
                    && impossible::trouble(**row, profile).is_none()
            });
            let rules = Rule::ALL.iter().filter(|row| {
                column.rules.get(**row as usize) == 0 && impossible::rule(**row, profile).is_none()
            });
            let name = profile_name(profile);
            empty.extend(troubles.map(|row| format!("{row} on {name}")));
            empty.extend(rules.map(|row| format!("{row} on {name}")));
        }
        empty
    }

    /// Cells that are said to be impossible, and are not empty.
    #[must_use]
    pub fn refuted_cells(&self) -> Vec<String> {
        let mut refuted = Vec::new();
        for column in &self.columns {
            let hit = |count: u64, why: Option<&str>| count > 0 && why.is_some();
            let troubles = Trouble::ALL.iter().filter(|row| {
                hit(column.troubles.get(**row as usize), impossible::trouble(**row, column.profile))
            });
            let rules = Rule::ALL.iter().filter(|row| {
                hit(column.rules.get(**row as usize), impossible::rule(**row, column.profile))
            });
            let name = profile_name(column.profile);
            refuted.extend(troubles.map(|row| format!("{row} on {name}")));
            refuted.extend(rules.map(|row| format!("{row} on {name}")));
        }
        refuted
    }

    /// Seeds per hour of wall time.
    #[must_use]
    pub fn seeds_per_hour(&self) -> f64 {
        self.seeds as f64 * 3_600.0 / self.took.as_secs_f64().max(1e-9)
    }

    fn row<'a>(
        &'a self,
        f: &mut fmt::Formatter<'_>,
        name: &str,
        cell: impl Fn(&'a Column) -> (u64, Option<&'static str>),
    ) -> fmt::Result {
        write!(f, "{name:<36}")?;
        for column in &self.columns {
            match cell(column) {
                (0, Some(_)) => write!(f, " {:>9}", "-")?,
                (count, _) => write!(f, " {count:>9}")?,
            }
        }
        writeln!(f)
    }

    fn head(&self, f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
        write!(f, "\n{name:<36}")?;
        for column in &self.columns {
            write!(f, " {:>9}", profile_name(column.profile))?;
        }
        writeln!(f)
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Verdicts { accepted, delivered, not_delivered, unknown } = self.verdicts;
        writeln!(
            f,
            "{} seeds in {:.1} s, {:.0} seeds/hour: {} failed, {} findings excused",
            self.seeds,
            self.took.as_secs_f64(),
            self.seeds_per_hour(),
            self.failed,
            self.excused
        )?;
        writeln!(
            f,
            "{accepted} records: {delivered} delivered, {not_delivered} not delivered, {unknown} \
             unknown"
        )?;
        self.head(f, "what befell it (times)")?;
        for row in Trouble::ALL {
            self.row(f, row.name(), |column| {
                (column.troubles.get(*row as usize), impossible::trouble(*row, column.profile))
            })?;
        }
        self.head(f, "rules at work (times)")?;
        for row in Rule::ALL {
            self.row(f, row.name(), |column| {
                (column.rules.get(*row as usize), impossible::rule(*row, column.profile))
            })?;
        }
        for cell in self.empty_cells() {
            writeln!(f, "EMPTY: {cell}")?;
        }
        for report in &self.failures {
            write!(f, "\n{report}")?;
        }
        Ok(())
    }
}
