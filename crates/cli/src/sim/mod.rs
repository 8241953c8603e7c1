//! `candor sim`: the checks of the machine itself.

mod search;

use crate::ending::Ending;

/// Check the machine: exhaustive search of one partition.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    Search(search::Args),
}

pub(crate) fn main(command: &Command) -> anyhow::Result<Ending> {
    match command {
        Command::Search(args) => search::main(args),
    }
}
