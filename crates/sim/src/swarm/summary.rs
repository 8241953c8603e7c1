//! Many seeds, and what they showed together.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use candor_core::rules::Honest;

use super::impossible;
use super::rows::{Rule, RuleCounts, Trouble, TroubleCounts};
use super::run::{Options, Report, profile_name, run_with};
use super::scenario::PROFILES;
use super::shrink::{SHRINK_RUNS, Shrunk, shrink};
use super::verdicts::{Never, Verdicts};
use crate::broker::Profile;

/// From so many seeds on, a cell of the matrices that is empty is a failure.
pub const ENOUGH_SEEDS: u64 = 2_000;
/// How many failures are kept.
const KEPT: usize = 20;

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

/// One cell of a matrix.
///
/// ```
/// use candor_sim::swarm::{Extent, Options, run_many};
/// let summary = run_many(0, Extent::Seeds(6), 1, &Options::default());
/// assert_eq!(summary.troubles()[0].cells[0].profile, "2.4");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The version that brokers imitated.
    pub profile: &'static str,
    /// How often it happened.
    pub times: u64,
    /// Why it cannot, if it cannot.
    pub impossible: Option<&'static str>,
}

/// One row of a matrix: a trouble or a rule, with a cell per profile.
///
/// ```
/// use candor_sim::swarm::{Extent, Options, run_many};
/// let summary = run_many(0, Extent::Seeds(6), 1, &Options::default());
/// assert_eq!(summary.rules()[0].name, "1 appended");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// What.
    pub name: &'static str,
    /// How often, profile by profile.
    pub cells: Vec<Cell>,
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
    /// Reports of seeds that were not clean, the first ones only.
    pub failures: Vec<Report>,
    /// The first of them, with what can be left out left out, once it was [shrunk](Self::shrink_first).
    pub shrunk: Option<Shrunk>,
    /// How many seeds were not clean.
    pub failed: u64,
    /// Findings that something excuses which no producer can answer for.
    pub excused: u64,
    /// How records ended.
    pub verdicts: Verdicts,
    columns: Vec<Column>,
}

/// Runs seeds from `first` on, on so many threads, of the producer as it ships.
#[must_use]
pub fn run_many(first: u64, extent: Extent, threads: usize, options: &Options) -> Summary {
    run_many_telling(first, extent, threads, options, &|_, _| {})
}

/// The same, telling after each seed how many were run and how many of them failed.
#[must_use]
pub fn run_many_telling(
    first: u64,
    extent: Extent,
    threads: usize,
    options: &Options,
    tell: &(dyn Fn(u64, u64) + Sync),
) -> Summary {
    let began = Instant::now();
    let next = AtomicU64::new(first);
    let over = AtomicBool::new(false);
    let summary = Mutex::new(Summary::new());
    let is_over = |seed: u64| match extent {
        Extent::Seeds(seeds) => seed >= first.saturating_add(seeds),
        Extent::Budget(budget) => began.elapsed() >= budget,
    };
    let work = || {
        while !over.load(Ordering::Relaxed) {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if is_over(seed) {
                return over.store(true, Ordering::Relaxed);
            }
            let report = run_with::<Honest>(seed, options);
            if let Ok(mut summary) = summary.lock() {
                summary.take(report);
                tell(summary.seeds, summary.failed);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(work);
        }
    });
    let mut summary = match summary.into_inner() {
        Ok(summary) => summary,
        Err(poisoned) => poisoned.into_inner(),
    };
    summary.took = began.elapsed();
    summary
}

/// Adding up.
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
            shrunk: None,
            failed: 0,
            excused: 0,
            verdicts: Verdicts::default(),
            columns: PROFILES.iter().map(column).collect(),
        }
    }

    fn take(&mut self, report: Report) {
        self.seeds += 1;
        self.excused += report.excused as u64;
        self.verdicts.merge(&report.verdicts);
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

    /// Leaves out of the first failure what can be left out, in at most [`SHRINK_RUNS`] runs.
    pub fn shrink_first(&mut self) {
        let first = self.failures.first();
        self.shrunk = first.and_then(|report| shrink(report, SHRINK_RUNS));
    }
}

/// Looking.
impl Summary {
    /// What befell the producer, by profile. Profiles that no seed ran against are left out.
    #[must_use]
    pub fn troubles(&self) -> Vec<Row> {
        let row = |row: &Trouble| Row {
            name: row.name(),
            cells: self.cells(|column| {
                let times = column.troubles.get(*row as usize);
                (times, impossible::trouble(*row, column.profile))
            }),
        };
        Trouble::ALL.iter().map(row).collect()
    }

    /// Which rules it had to apply, by profile.
    #[must_use]
    pub fn rules(&self) -> Vec<Row> {
        let row = |row: &Rule| Row {
            name: row.name(),
            cells: self.cells(|column| {
                let times = column.rules.get(*row as usize);
                (times, impossible::rule(*row, column.profile))
            }),
        };
        Rule::ALL.iter().map(row).collect()
    }

    fn cells(&self, cell: impl Fn(&Column) -> (u64, Option<&'static str>)) -> Vec<Cell> {
        let there = self.columns.iter().filter(|column| column.seeds > 0);
        let cells = there.map(|column| {
            let (times, impossible) = cell(column);
            Cell { profile: profile_name(column.profile), times, impossible }
        });
        cells.collect()
    }

    /// Cells of both matrices that are empty, and are not known to be impossible.
    #[must_use]
    pub fn empty_cells(&self) -> Vec<String> {
        self.cells_that(|cell| cell.times == 0 && cell.impossible.is_none())
    }

    /// Cells that are said to be impossible, and are not empty.
    #[must_use]
    pub fn refuted_cells(&self) -> Vec<String> {
        self.cells_that(|cell| cell.times > 0 && cell.impossible.is_some())
    }

    fn cells_that(&self, wanted: impl Fn(&Cell) -> bool) -> Vec<String> {
        let rows = self.troubles().into_iter().chain(self.rules());
        let wanted = &wanted;
        let named = rows.flat_map(|row| {
            let cells = row.cells.into_iter().filter(wanted);
            cells.map(move |cell| format!("{} on {}", row.name, cell.profile))
        });
        named.collect()
    }

    /// Whether so many seeds were run that every possible cell has to be filled.
    #[must_use]
    pub const fn is_enough(&self) -> bool {
        self.seeds >= ENOUGH_SEEDS
    }

    /// Nothing was found, nothing was late, and the matrices are as they have to be.
    #[must_use]
    pub fn is_well(&self) -> bool {
        let full = !self.is_enough() || self.empty_cells().is_empty();
        self.failed == 0 && self.verdicts.latest == 0 && full && self.refuted_cells().is_empty()
    }

    /// Seeds per hour of wall time.
    #[must_use]
    pub fn seeds_per_hour(&self) -> f64 {
        self.seeds as f64 * 3_600.0 / self.took.as_secs_f64().max(1e-9)
    }
}

/// Telling.
impl Summary {
    fn tell_verdicts(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Verdicts { accepted, delivered, not_delivered, unknown, never, latest, .. } =
            self.verdicts;
        writeln!(
            f,
            "{accepted} records: {delivered} delivered, {not_delivered} not delivered, {unknown} \
             unknown"
        )?;
        writeln!(
            f,
            "the unknown: {} turned out delivered, {} not delivered, {} never found out",
            self.verdicts.turned_delivered,
            self.verdicts.turned_not_delivered,
            never.all()
        )?;
        for ((reason, records), why) in never.by_reason().iter().zip(Never::explained()) {
            let share = *records as f64 * 100.0 / accepted.max(1) as f64;
            writeln!(f, "  never, {reason:<15} {records:>8} {share:>7.3} % of all records; {why}")?;
        }
        writeln!(f, "latest verdict: {latest} us behind its deadline (virtual time)")
    }

    fn tell_matrix(f: &mut fmt::Formatter<'_>, name: &str, rows: &[Row]) -> fmt::Result {
        write!(f, "\n{name:<36}")?;
        for cell in rows.first().map_or(&[][..], |row| &row.cells) {
            write!(f, " {:>9}", cell.profile)?;
        }
        writeln!(f)?;
        for row in rows {
            write!(f, "{:<36}", row.name)?;
            for cell in &row.cells {
                match (cell.times, cell.impossible) {
                    (0, Some(_)) => write!(f, " {:>9}", "-")?,
                    (times, _) => write!(f, " {times:>9}")?,
                }
            }
            writeln!(f)?;
        }
        Ok(())
    }

    fn tell_failures(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for report in &self.failures {
            writeln!(f, "\nseed {} on {}:", report.seed, profile_name(report.profile))?;
            for anomaly in report.anomalies.iter().take(3) {
                writeln!(f, "  WRONG: {anomaly}")?;
            }
            writeln!(f, "  {}", report.replay())?;
        }
        if let Some(Shrunk { from, to, runs, report }) = &self.shrunk {
            writeln!(f, "\nthe first one with {to} of its {from} steps ({runs} runs):\n{report}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Self::tell_matrix(f, "what befell it (times)", &self.troubles())?;
        Self::tell_matrix(f, "rules at work (times)", &self.rules())?;
        writeln!(f)?;
        let empty = self.empty_cells();
        for cell in &empty {
            let weight = if self.is_enough() { "EMPTY" } else { "empty so far" };
            writeln!(f, "{weight}: {cell}")?;
        }
        for cell in self.refuted_cells() {
            writeln!(f, "NOT IMPOSSIBLE: {cell}")?;
        }
        self.tell_verdicts(f)?;
        self.tell_failures(f)?;
        writeln!(
            f,
            "{} seeds in {:.1} s, {:.0} seeds/hour: {} failed, {} findings excused, {} empty cells",
            self.seeds,
            self.took.as_secs_f64(),
            self.seeds_per_hour(),
            self.failed,
            self.excused,
            empty.len()
        )
    }
}
