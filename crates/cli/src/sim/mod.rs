//! `candor sim`: the checks of the machine itself.

mod run;
mod search;

use crate::ending::Ending;

/// Check the machine: exhaustive search of one partition, and scenarios.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    Search(search::Args),
    Run(run::Args),
}

pub(crate) fn main(command: &Command) -> anyhow::Result<Ending> {
    match command {
        Command::Search(args) => search::main(args),
        Command::Run(args) => run::main(args),
    }
}
