//! `candor sim replay`: one seed, told step by step.

use std::path::PathBuf;

use anyhow::Context;
use candor_sim::broker::Profile;
use candor_sim::swarm::{
    Keep, Options, Plant, Report, SHRINK_RUNS, Step, plants, run_seed, shrink,
};

use super::swarm::profile;
use crate::ending::Ending;
use crate::output::{complain, page_target, say, write_page};

/// Run one seed of the swarm again, and tell everything that happens in it.
///
/// Exit code 0: nothing was found.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The seed.
    seed: u64,
    /// Brokers of this version [default: the seed decides]
    #[arg(long, value_name = "VERSION", value_parser = profile)]
    profile: Option<Profile>,
    /// Only these steps of the run happen: r3 is the fourth record, CutReply.0 the first cut reply
    #[arg(long, value_name = "STEP,STEP..", value_delimiter = ',')]
    keep: Option<Vec<Step>>,
    /// The producer has this bug; `candor sim swarm --planted 1` names all of them.
    #[arg(long, value_name = "BUG")]
    planted: Option<String>,
    /// If it fails: leave out what can be left out, and tell the rest.
    #[arg(long)]
    shrink: bool,
    /// Tell only what is wrong.
    #[arg(long)]
    brief: bool,
    /// If it fails: draw the partition of the first finding into this file.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

fn plant(name: &str) -> anyhow::Result<Plant> {
    let named = plants().into_iter().find(|plant| plant.name() == name);
    named.with_context(|| format!("no planted bug is called {name}: see docs/planted-bugs.md"))
}

fn run(seed: u64, planted: Option<&Plant>, options: &Options) -> Report {
    match planted {
        Some(plant) => plant.run(seed, options),
        None => run_seed(seed, options),
    }
}

pub(crate) fn main(args: &Args) -> anyhow::Result<Ending> {
    let target = page_target(args.html.as_deref(), [])?;
    let keep = match &args.keep {
        None => Keep::All,
        Some(steps) => Keep::Only(steps.iter().copied().collect()),
    };
    let planted = args.planted.as_deref().map(plant).transpose()?;
    let options = Options { profile: args.profile, timeline: !args.brief, keep };
    let mut report = run(args.seed, planted.as_ref(), &options);
    let shrunk = match &planted {
        _ if !args.shrink => None,
        Some(plant) => plant.shrink(&report, SHRINK_RUNS),
        None => shrink(&report, SHRINK_RUNS),
    };
    if let Some(shrunk) = shrunk {
        say(&format!("{} of {} steps, {} runs\n", shrunk.to, shrunk.from, shrunk.runs))?;
        report = shrunk.report;
    }
    say(&report.to_string())?;
    match (target, &report.page) {
        (Some(target), Some(page)) => write_page(target, page)?,
        (Some(_), None) => complain("nothing is wrong: no page is written"),
        (None, _) => {}
    }
    Ok(Ending::well_if(report.is_clean()))
}
