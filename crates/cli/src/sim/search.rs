//! `candor sim search`: every schedule of a small scope.

use std::num::NonZeroUsize;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use candor_sim::search::{
    CONTROLS, Control, Course, INVERSIONS, Inversion, Report, SCOPES, Scope, Shipped, Size,
    explore, explore_wide, scope, tell,
};

use crate::ending::Ending;
use crate::output::{grouped, say};
use crate::produce::duration;
use crate::progress::bar;

/// Go through all states that the lane can reach in a scope, whatever brokers and network do.
///
/// One line per scope: states, transitions, depth, how many different ends runs have, whether the
/// search closed, and how many states each number of faults led to. A schedule that convicts the
/// lane is told step by step, with the command that tells it again. Exit code 0: nothing was found,
/// and all scopes closed or used up their --budget (with --planted: everything was found).
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only these scopes; can be repeated [default: all up to --size]
    #[arg(long, value_name = "NAME")]
    scope: Vec<String>,
    /// How large scopes may be: the small ones take seconds, the wide ones minutes, those for the
    /// night longer
    #[arg(long, value_enum, default_value = "small", conflicts_with = "scope")]
    size: UpTo,
    /// Name the scopes and what they are about.
    #[arg(long, conflicts_with_all = ["scope", "replay", "planted"])]
    list: bool,
    /// Tell one schedule of a scope: the numbers that a search printed.
    #[arg(long, value_name = "N.N..", requires = "scope")]
    replay: Option<Choices>,
    /// Search for planted bugs, and for producers that are wrong by construction, instead: each in
    /// the scope that must find it.
    #[arg(long, conflicts_with = "replay")]
    planted: bool,
    /// Threads for the wide scopes [default: one per processor]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// Give up a scope after so many states: that it is not closed fails the search.
    #[arg(long, value_name = "N", default_value_t = 100_000_000)]
    states: usize,
    /// Leave a scope after this time, closed or not, for the next one: 60s, 5m
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with_all = ["replay", "planted"])]
    budget: Option<Duration>,
}

/// The largest scopes that are searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum UpTo {
    Small,
    Wide,
    Night,
}

impl UpTo {
    fn size(self) -> Size {
        match self {
            Self::Small => Size::Small,
            Self::Wide => Size::Wide,
            Self::Night => Size::Night,
        }
    }
}

/// Which step was taken, from the start on.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Choices(Vec<u16>);

impl std::str::FromStr for Choices {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let steps = text.split('.').filter(|step| !step.is_empty());
        let steps: Result<Vec<u16>, _> = steps.map(str::parse).collect();
        steps.map(Self).map_err(|_| "write the numbers with dots between them: 0.2.1".to_owned())
    }
}

impl Args {
    fn threads(&self) -> usize {
        let processors = || thread::available_parallelism().ok();
        self.threads.or_else(processors).map_or(1, NonZeroUsize::get)
    }

    fn scopes(&self) -> anyhow::Result<Vec<&'static Scope>> {
        if self.scope.is_empty() {
            let most = if self.list { Size::Night } else { self.size.size() };
            return Ok(SCOPES.iter().filter(|scope| scope.size <= most).collect());
        }
        let known = |name: &String| {
            scope(name).with_context(|| format!("no scope is named {name}: see --list"))
        };
        self.scope.iter().map(known).collect()
    }
}

pub(crate) fn main(args: &Args) -> anyhow::Result<Ending> {
    let scopes = args.scopes()?;
    if args.list {
        for Scope { name, about, .. } in scopes {
            say(&format!("{name:<18} {about}\n"))?;
        }
        return Ok(Ending::Well);
    }
    match &args.replay {
        Some(choices) => replay(&scopes, choices),
        None if args.planted => hunt(&scopes),
        None => search(&scopes, args),
    }
}

/// States of a breadth-first search for a shorter schedule: they are all in memory.
const NARROW: usize = 500_000;

fn search(scopes: &[&Scope], args: &Args) -> anyhow::Result<Ending> {
    let (mut well, mut states) = (true, 0);
    for scope in scopes {
        let begun = Instant::now();
        let course = Course::default();
        let work = || explore_wide::<Shipped>(args.threads(), scope, args.states, &course);
        let (mut report, in_time) = watched(scope.name, &course, args.budget, work);
        if report.counterexample.is_some() {
            report.counterexample = shorter(scope).counterexample.or(report.counterexample);
        }
        say(&format!("{:6.1} s  {report}\n", begun.elapsed().as_secs_f64()))?;
        well &= report.counterexample.is_none() && (report.closed || !in_time);
        states += report.states;
    }
    say(&format!("{states} states in {} scopes\n", scopes.len()))?;
    Ok(Ending::well_if(well))
}

/// How often the line on a terminal is drawn.
const BEAT: Duration = Duration::from_millis(200);

/// Searches while a terminal shows how far it has come. The search ends when its time is over; the
/// flag is whether it was not.
fn watched(
    scope: &str,
    course: &Course,
    budget: Option<Duration>,
    search: impl FnOnce() -> Report,
) -> (Report, bool) {
    let bar = bar(None);
    let begun = Instant::now();
    let (done, waits) = channel::<()>();
    let shown = &bar;
    let watch = move || {
        while let Err(RecvTimeoutError::Timeout) = waits.recv_timeout(BEAT) {
            if budget.is_some_and(|budget| begun.elapsed() >= budget) {
                course.end();
                return false;
            }
            shown.set_message(standing(scope, course, begun.elapsed()));
            shown.tick();
        }
        true
    };
    let found = thread::scope(|threads| {
        let watcher = threads.spawn(watch);
        let report = search();
        drop(done);
        (report, watcher.join().unwrap_or(true))
    });
    bar.finish_and_clear();
    found
}

fn standing(scope: &str, course: &Course, elapsed: Duration) -> String {
    let states = course.states();
    let rate = states as f64 / elapsed.as_secs_f64().max(1e-3);
    format!(
        "{scope} · {} states · {} transitions · {} states/s · at most {} spent",
        grouped(states as u64),
        grouped(course.transitions() as u64),
        grouped(rate as u64),
        course.round(),
    )
}

/// A wide search finds any schedule, a narrow one a shortest, if it is not too long.
fn shorter(scope: &Scope) -> Report {
    explore::<Shipped>(scope, NARROW)
}

fn replay(scopes: &[&Scope], choices: &Choices) -> anyhow::Result<Ending> {
    let [scope] = scopes else { bail!("--replay needs one --scope: a schedule belongs to one") };
    let story = tell::<Shipped>(scope, &choices.0);
    say(&format!("{}\n", story.join("\n")))?;
    Ok(Ending::well_if(story.last().is_some_and(|line| line == "=> fine")))
}

fn hunt(scopes: &[&Scope]) -> anyhow::Result<Ending> {
    let mut well = true;
    let wanted = |one: &&Inversion| scopes.iter().any(|scope| scope.name == one.scope);
    for inversion in INVERSIONS.iter().filter(wanted) {
        let Inversion { name, method, scope, .. } = inversion;
        well &= tell_hunt(&format!("{name} ({method}) in {scope}"), &inversion.hunt())?;
    }
    let wanted = |one: &&Control| scopes.iter().any(|scope| scope.name == one.scope);
    // The first control has no flaw, and is not to be convicted of one.
    let (sound, flawed) = CONTROLS.split_at(1);
    for control in sound.iter().filter(wanted) {
        let clean = control.hunt().counterexample.is_none();
        let words = if clean { "rightly not convicted" } else { "WRONGLY CONVICTED" };
        say(&format!("{} in {}: {words}\n", control.name, control.scope))?;
        well &= clean;
    }
    for control in flawed.iter().filter(wanted) {
        let Control { name, scope, .. } = control;
        well &= tell_hunt(&format!("{name} (by construction) in {scope}"), &control.hunt())?;
    }
    Ok(Ending::well_if(well))
}

/// Tells what became of a hunt, and whether it ended well.
fn tell_hunt(what: &str, report: &Report) -> anyhow::Result<bool> {
    let found = match &report.counterexample {
        Some(found) => format!("{} after {} steps", found.anomaly.class, found.choices.len()),
        None => "NOT FOUND".to_owned(),
    };
    say(&format!("{what}: {found}, {} states\n", report.states))?;
    Ok(report.counterexample.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_numbers_with_dots() {
        assert_eq!("0.2.1".parse(), Ok(Choices(vec![0, 2, 1])));
        assert_eq!("".parse(), Ok(Choices(vec![])));
        assert!("0,2".parse::<Choices>().is_err());
    }
}
