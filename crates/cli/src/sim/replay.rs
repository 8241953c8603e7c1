//! `candor sim replay`: one seed, told step by step.

use candor_sim::broker::Profile;
use candor_sim::swarm::{Keep, Options, SHRINK_RUNS, Step, run_seed, shrink};

use super::swarm::profile;
use crate::ending::Ending;
use crate::output::say;

/// Run one seed of the swarm again, and tell everything that happens in it.
///
/// Lines with # are what befalls the producer, lines with ! what is wrong. Exit code 0: nothing is.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The seed.
    seed: u64,
    /// The version that brokers imitate [default: the seed decides]
    #[arg(long, value_name = "VERSION", value_parser = profile)]
    profile: Option<Profile>,
    /// Only these steps of the run happen: r3 is the fourth record, CutReply.0 the first cut reply
    #[arg(long, value_name = "STEP,STEP..", value_delimiter = ',')]
    keep: Option<Vec<Step>>,
    /// If it fails: leave out what can be left out, and tell the rest.
    #[arg(long)]
    shrink: bool,
    /// Tell only what is wrong.
    #[arg(long)]
    brief: bool,
}

pub(crate) fn main(args: &Args) -> anyhow::Result<Ending> {
    let keep = match &args.keep {
        None => Keep::All,
        Some(steps) => Keep::Only(steps.iter().copied().collect()),
    };
    let options = Options { profile: args.profile, timeline: !args.brief, keep };
    let mut report = run_seed(args.seed, &options);
    if args.shrink
        && let Some(shrunk) = shrink(&report, SHRINK_RUNS)
    {
        say(&format!("{} of {} steps ({} runs):\n", shrunk.to, shrunk.from, shrunk.runs))?;
        report = shrunk.report;
    }
    say(&report.to_string())?;
    Ok(Ending::well_if(report.is_clean()))
}
