//! Seeded swarms over the whole producer, bytes and all.
//!
//! One `u64` makes a world: a cluster of three model brokers, a network that chunks, delays, cuts
//! and holds back bytes, a caller with wishes, and what befalls all of them, in virtual time. Each
//! run ends in a quiet phase in which every record must get its verdict and every `Unknown` its
//! resolution; then the [judge](crate::judge) is shown ledgers, wire and logs.
//!
//! ```
//! use candor_sim::swarm::{Options, run_seed};
//! let report = run_seed(42, &Options::default());
//! assert!(report.is_clean(), "{report}");
//! ```

mod book;
mod caller;
mod calm;
mod clock;
mod impossible;
mod link;
mod mark;
mod meddle;
mod neighbour;
mod nemesis;
mod plants;
mod routes;
mod rows;
mod run;
mod scenario;
mod shrink;
mod steps;
mod summary;
mod tally;
mod tap;
mod trial;
mod verdicts;
mod wires;
mod world;

pub use calm::{Calm, calm};
pub use plants::{Plant, PlantFound, plants};
pub use rows::{Counts, Rule, RuleCounts, Trouble, TroubleCounts};
pub use run::{Options, Report, profile_name, run_seed};
pub use scenario::PROFILES;
pub use shrink::{SHRINK_RUNS, Shrunk, shrink};
pub use steps::{BadStep, Keep, Step};
pub use summary::{Cell, ENOUGH_SEEDS, Extent, Row, Summary, run_many, run_many_telling};
pub use verdicts::{Never, Verdicts};
