//! A failing run with as little in it as still fails in the same way.

use candor_core::rules::{Honest, Rules};

use super::rows::Trouble;
use super::run::{Options, Report, run_with};
use super::steps::{Keep, Step};
use crate::judge::Class;

/// How many runs a shrinking may take.
pub const SHRINK_RUNS: u32 = 1_000;

/// A run that was shrunk.
///
/// ```
/// use candor_sim::swarm::{Options, run_seed, shrink};
/// let clean = run_seed(3, &Options::default());
/// assert!(shrink(&clean, 10).is_none()); // nothing to be kept
/// ```
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// How many steps the run had.
    pub from: usize,
    /// How many it has now.
    pub to: usize,
    /// How many runs it took to find that.
    pub runs: u32,
    /// What came of the smallest run, with everything that happened in it.
    pub report: Report,
}

/// Leaves steps out of a failing run while it still fails in the same way, in at most `most` runs.
/// The same run gives the same result. `None` if the run did not fail.
#[must_use]
pub fn shrink(report: &Report, most: u32) -> Option<Shrunk> {
    shrink_with::<Honest>(report, most)
}

/// The same of a producer that decides by `R`.
pub(super) fn shrink_with<R: Rules>(report: &Report, most: u32) -> Option<Shrunk> {
    let symptom = Symptom::of(report)?;
    let from = report.steps.len();
    let mut search = Search { report, symptom, left: most };
    let mut steps = report.steps.clone();
    search.leave_out_kinds::<R>(&mut steps);
    let mut chunk = steps.len().div_ceil(2).max(1);
    loop {
        let before = steps.len();
        search.leave_out::<R>(&mut steps, chunk);
        let stuck = chunk == 1 && steps.len() == before;
        if stuck || search.left == 0 {
            break;
        }
        chunk = (chunk / 2).max(1);
    }
    let options = Options { timeline: true, ..search.options(&steps) };
    let smallest = run_with::<R>(report.seed, &options);
    Some(Shrunk { from, to: steps.len(), runs: most - search.left, report: smallest })
}

/// What has to stay the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Symptom {
    class: Class,
    panicked: bool,
}

impl Symptom {
    fn of(report: &Report) -> Option<Self> {
        let class = *report.classes.first()?;
        Some(Self { class, panicked: report.panicked })
    }

    fn is_shown_by(self, report: &Report) -> bool {
        report.classes.contains(&self.class) && report.panicked == self.panicked
    }
}

struct Search<'a> {
    report: &'a Report,
    symptom: Symptom,
    left: u32,
}

impl Search<'_> {
    /// Tries to do without each kind of trouble.
    fn leave_out_kinds<R: Rules>(&mut self, steps: &mut Vec<Step>) {
        for kind in Trouble::ALL {
            let is_kind =
                |step: &Step| matches!(step, Step::Trouble(trouble, _) if trouble == kind);
            if self.left > 0 && steps.iter().any(is_kind) {
                let fewer: Vec<Step> = steps.iter().copied().filter(|one| !is_kind(one)).collect();
                if let Some(taken) = self.still_fails::<R>(&fewer) {
                    *steps = taken;
                }
            }
        }
    }

    /// Tries to do without each run of so many steps, the last ones first.
    fn leave_out<R: Rules>(&mut self, steps: &mut Vec<Step>, chunk: usize) {
        let mut end = steps.len();
        while end > 0 && self.left > 0 {
            let start = end.saturating_sub(chunk);
            let mut fewer = steps.clone();
            fewer.drain(start..end);
            if let Some(taken) = self.still_fails::<R>(&fewer) {
                *steps = taken;
            }
            end = start.min(steps.len());
        }
    }

    /// The steps that were taken, if it still fails.
    fn still_fails<R: Rules>(&mut self, steps: &[Step]) -> Option<Vec<Step>> {
        self.left -= 1;
        let report = run_with::<R>(self.report.seed, &self.options(steps));
        self.symptom.is_shown_by(&report).then_some(report.steps)
    }

    fn options(&self, steps: &[Step]) -> Options {
        Options {
            profile: Some(self.report.profile),
            timeline: false,
            keep: Keep::Only(steps.iter().copied().collect()),
        }
    }
}
