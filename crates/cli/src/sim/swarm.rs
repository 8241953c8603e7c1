//! `candor sim swarm`: seeds by the thousand, each a world of its own, judged.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::bail;
use candor_sim::broker::Profile;
use candor_sim::judge::Class;
use candor_sim::swarm::{
    Calm, Extent, Options, PROFILES, Row, Summary, calm, plants, profile_name, run_many_telling,
};
use indicatif::ProgressBar;
use serde::Serialize;

use crate::ending::Ending;
use crate::output::{Format, complain, count, grouped, page_target, say, say_json, write_page};
use crate::produce::duration;
use crate::progress::bar;

/// Run the whole producer against brokers, networks and callers that do anything, in virtual time.
///
/// Each seed is one run, and the same run every time. At the end: what befell the producer and which
/// rules were at work, by broker version; how records ended; and for every failure the command that
/// replays it, the first one shrunk. Exit code 0: nothing was found, nothing was late, and (from 2,000
/// seeds on) every cell of the two tables is filled that can be.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many seeds [default: 2000]
    #[arg(long, value_name = "N", conflicts_with = "budget")]
    seeds: Option<u64>,
    /// As many seeds as begin in this time: 60s, 5m
    #[arg(long, value_name = "TIME", value_parser = duration)]
    budget: Option<Duration>,
    /// The first seed.
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    from: u64,
    /// [default: one per processor]
    #[arg(long, value_name = "T")]
    threads: Option<NonZeroUsize>,
    /// Only brokers of this version [default: the seed decides]
    #[arg(long, value_name = "VERSION", value_parser = profile)]
    profile: Option<Profile>,
    /// Instead: one run of so many records which nothing befalls.
    #[arg(long, value_name = "RECORDS", conflicts_with_all = ["seeds", "budget", "profile"])]
    calm: Option<u64>,
    /// Instead: hunt planted bugs, each in so many seeds at most.
    #[arg(long, value_name = "SEEDS", conflicts_with_all = ["seeds", "budget", "profile", "calm"])]
    planted: Option<u64>,
    /// If a seed fails: draw the partition of the first finding of the first such seed into this file.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["calm", "planted"])]
    html: Option<PathBuf>,
    /// The form of the summary.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Reads "4.4".
pub(super) fn profile(text: &str) -> Result<Profile, String> {
    let names: Vec<&str> = PROFILES.iter().map(|one| profile_name(*one)).collect();
    let named = PROFILES.iter().find(|one| profile_name(**one) == text);
    named.copied().ok_or_else(|| format!("there are {}", names.join(", ")))
}

impl Args {
    fn threads(&self) -> usize {
        let processors = || thread::available_parallelism().ok();
        self.threads.or_else(processors).map_or(1, NonZeroUsize::get)
    }
}

pub(crate) fn main(args: &Args) -> anyhow::Result<Ending> {
    if let Some(records) = args.calm {
        return run_calmly(records, args.from, args.format);
    }
    if let Some(seeds) = args.planted {
        return hunt(seeds, args.threads());
    }
    let target = page_target(args.html.as_deref(), [])?;
    let extent = match (args.seeds, args.budget) {
        (Some(0), _) => bail!("no seeds are nothing to run: give --seeds 1 at least"),
        (Some(seeds), _) => Extent::Seeds(seeds),
        (None, Some(budget)) => Extent::Budget(budget),
        (None, None) => Extent::Seeds(candor_sim::swarm::ENOUGH_SEEDS),
    };
    let threads = args.threads();
    let options = Options { profile: args.profile, ..Options::default() };
    let meter = Meter::new(extent);
    let tell = |seeds, failed| meter.show(seeds, failed);
    let mut summary = run_many_telling(args.from, extent, threads, &options, &tell);
    if let Some(failure) = summary.failures.first() {
        meter.bar.suspend(|| complain(&failure.to_string()));
        meter.bar.set_message("shrinking the first failure");
        summary.shrink_first();
    }
    meter.bar.finish_and_clear();
    match args.format {
        Format::Text => say(&summary.to_string())?,
        Format::Json => say_json(&Told::of(&summary))?,
    }
    let shrunk = summary.shrunk.as_ref().map(|shrunk| &shrunk.report);
    let failure = shrunk.or_else(|| summary.failures.first());
    match (target, failure.and_then(|report| report.page.as_ref())) {
        (Some(target), Some(page)) => write_page(target, page)?,
        (Some(_), None) => complain("no seed failed: there is no page to draw"),
        (None, _) => {}
    }
    Ok(Ending::well_if(summary.is_well()))
}

/// Hunts planted bugs. Those that no search over one partition sees have to be found.
fn hunt(seeds: u64, threads: usize) -> anyhow::Result<Ending> {
    let plants = plants();
    let (next, well) = (AtomicUsize::new(0), AtomicBool::new(true));
    let work = || -> anyhow::Result<()> {
        while let Some(plant) = plants.get(next.fetch_add(1, Ordering::Relaxed)) {
            let found = match plant.hunt(seeds) {
                Some(found) => {
                    let classes: Vec<String> = found.classes.iter().map(Class::to_string).collect();
                    format!("{} | {}", classes.join(", "), found.seed + 1)
                }
                None => "not found |".to_owned(),
            };
            if plant.only_over_bytes() && found.starts_with("not") {
                well.store(false, Ordering::Relaxed);
            }
            say(&format!("| {} | `{}` | {found} |\n", plant.name(), plant.method()))?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| match worker.join() {
            Ok(done) => done,
            Err(_) => bail!("a hunt panicked"),
        })
    })?;
    Ok(Ending::well_if(well.into_inner()))
}

/// One line on a terminal, and nothing elsewhere.
struct Meter {
    bar: ProgressBar,
    began: Instant,
    /// When the line was drawn last.
    drawn: Mutex<Instant>,
}

impl Meter {
    fn new(extent: Extent) -> Self {
        let seeds = match extent {
            Extent::Seeds(seeds) => Some(seeds),
            Extent::Budget(_) => None,
        };
        let now = Instant::now();
        Self { bar: bar(seeds), began: now, drawn: Mutex::new(now) }
    }

    fn show(&self, seeds: u64, failed: u64) {
        let Ok(mut drawn) = self.drawn.lock() else { return };
        if drawn.elapsed() < Duration::from_millis(100) {
            return;
        }
        *drawn = Instant::now();
        let per_hour = seeds as f64 * 3_600.0 / self.began.elapsed().as_secs_f64().max(1e-3);
        self.bar.set_position(seeds);
        self.bar.set_message(format!(
            "{} · {} seeds/hour · {failed} failed",
            count(seeds, "seed"),
            grouped(per_hour as u64)
        ));
    }
}

fn run_calmly(records: u64, seed: u64, format: Format) -> anyhow::Result<Ending> {
    let began = Instant::now();
    let told = calm(records, seed);
    let Calm { lasted, ref report, .. } = told;
    let verdicts = report.verdicts;
    match format {
        Format::Json => say_json(&serde_json::json!({
            "records": records,
            "delivered": verdicts.delivered,
            "unknown": verdicts.unknown,
            "latest_us": verdicts.latest,
            "virtual_seconds": lasted as f64 / 1e6,
            "seconds": began.elapsed().as_secs_f64(),
            "anomalies": report.anomalies,
        }))?,
        Format::Text => {
            for anomaly in &report.anomalies {
                say(&format!("WRONG: {anomaly}\n"))?;
            }
            say(&format!(
                "{} without faults: {} delivered, {} unknown, latest {} us behind its deadline; {:.1} \
                 virtual seconds, {:.1} s\n",
                count(records, "record"),
                grouped(verdicts.delivered),
                verdicts.unknown,
                verdicts.latest,
                lasted as f64 / 1e6,
                began.elapsed().as_secs_f64()
            ))?;
        }
    }
    Ok(Ending::well_if(told.is_well()))
}

/// The summary as JSON.
#[derive(Debug, Serialize)]
struct Told {
    seeds: u64,
    seconds: f64,
    seeds_per_hour: f64,
    failed: u64,
    excused: u64,
    well: bool,
    records: u64,
    delivered: u64,
    not_delivered: u64,
    unknown: u64,
    turned_delivered: u64,
    turned_not_delivered: u64,
    never: serde_json::Map<String, serde_json::Value>,
    latest_us: u64,
    troubles: serde_json::Value,
    rules: serde_json::Value,
    empty_cells: Vec<String>,
    refuted_cells: Vec<String>,
    failures: Vec<ToldFailure>,
}

#[derive(Debug, Serialize)]
struct ToldFailure {
    seed: u64,
    anomalies: Vec<String>,
    replay: String,
}

impl Told {
    fn of(summary: &Summary) -> Self {
        let verdicts = summary.verdicts;
        let never = verdicts.never.by_reason();
        let failure = |report: &candor_sim::swarm::Report| ToldFailure {
            seed: report.seed,
            anomalies: report.anomalies.clone(),
            replay: report.replay(),
        };
        let shrunk = summary.shrunk.iter().map(|shrunk| failure(&shrunk.report));
        Self {
            seeds: summary.seeds,
            seconds: summary.took.as_secs_f64(),
            seeds_per_hour: summary.seeds_per_hour(),
            failed: summary.failed,
            excused: summary.excused,
            well: summary.is_well(),
            records: verdicts.accepted,
            delivered: verdicts.delivered,
            not_delivered: verdicts.not_delivered,
            unknown: verdicts.unknown,
            turned_delivered: verdicts.turned_delivered,
            turned_not_delivered: verdicts.turned_not_delivered,
            never: never.iter().map(|(why, n)| ((*why).to_owned(), (*n).into())).collect(),
            latest_us: verdicts.latest,
            troubles: matrix(&summary.troubles()),
            rules: matrix(&summary.rules()),
            empty_cells: summary.empty_cells(),
            refuted_cells: summary.refuted_cells(),
            failures: shrunk.chain(summary.failures.iter().map(failure)).collect(),
        }
    }
}

/// `{row: {profile: times}}`; `null` where it is impossible.
fn matrix(rows: &[Row]) -> serde_json::Value {
    let row = |row: &Row| {
        let cells = row.cells.iter().map(|cell| {
            let there = cell.impossible.is_none() || cell.times > 0;
            (cell.profile.to_owned(), there.then_some(cell.times).into())
        });
        (row.name.to_owned(), serde_json::Value::Object(cells.collect()))
    };
    serde_json::Value::Object(rows.iter().map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_named_as_kafka_names_them() {
        assert_eq!(profile("2.4"), Ok(Profile::V2_4));
        assert!(profile("5.0").is_err_and(|error| error.contains("4.4")));
    }

    #[test]
    fn a_summary_is_one_object() {
        let summary = candor_sim::swarm::run_many(0, Extent::Seeds(6), 1, &Options::default());
        let told = serde_json::to_value(Told::of(&summary)).unwrap();
        assert_eq!(told["seeds"], 6);
        assert_eq!(told["failures"].as_array().map(Vec::len), Some(0));
        assert!(told["rules"]["1 appended"]["4.4"].as_u64().is_some_and(|times| times > 0));
        assert!(told["never"]["closed"].is_u64());
    }
}
