//! `candor sim`: the checks of the machine itself.

mod replay;
mod run;
mod search;
mod swarm;

use crate::ending::Ending;

/// Check the machine: exhaustive search of one partition, seeded swarms, and scenarios.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    Search(search::Args),
    Swarm(swarm::Args),
    Replay(replay::Args),
    Run(run::Args),
}

pub(crate) fn main(command: &Command) -> anyhow::Result<Ending> {
    match command {
        Command::Search(args) => search::main(args),
        Command::Swarm(args) => swarm::main(args),
        Command::Replay(args) => replay::main(args),
        Command::Run(args) => run::main(args),
    }
}
