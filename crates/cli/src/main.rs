//! The `candor` command.
//!
//! Exit codes: 0 if everything is well (all records delivered, nothing found), 1 if not, 2 if the
//! command could not do its work: bad arguments, bad configuration, an error of input or output.

#[cfg(unix)]
mod bench;
mod broker;
mod demo;
mod ending;
mod files;
mod input;
mod ledger;
mod line;
mod output;
mod produce;
mod progress;
mod rejects;
mod run;
mod sim;
mod stop;
mod tally;
mod window;
mod words;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use ending::Ending;

/// A Kafka producer that tells the truth about every record.
///
/// Exit code 0: all is well. 1: not all records were delivered, or the judge found something.
/// 2: the command could not do its work.
#[derive(Debug, Parser)]
#[command(name = "candor", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Produce(produce::Args),
    Demo(demo::Args),
    Broker(broker::Args),
    #[command(subcommand)]
    Sim(sim::Command),
    #[cfg(unix)]
    Bench(bench::Args),
}

fn main() -> ExitCode {
    // clap itself ends with 2 where it cannot read the command line, and with 0 for help.
    let done = match Cli::parse().command {
        Command::Produce(args) => produce::main(args),
        Command::Demo(args) => demo::main(args),
        Command::Broker(args) => broker::main(&args),
        Command::Sim(command) => sim::main(&command),
        #[cfg(unix)]
        Command::Bench(args) => bench::main(&args),
    };
    match done {
        Ok(Ending::Well) => ExitCode::SUCCESS,
        Ok(Ending::NotWell) => ExitCode::from(1),
        Err(error) => {
            output::complain(&format!("candor: {error:#}"));
            ExitCode::from(2)
        }
    }
}
