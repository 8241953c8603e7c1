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
#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "each function handles the troubles of its own place and hands on the others"
)]

mod book;
mod caller;
mod clock;
mod impossible;
mod link;
mod mark;
mod meddle;
mod nemesis;
mod plants;
mod routes;
mod rows;
mod run;
mod scenario;
mod summary;
mod tally;
mod tap;
mod trial;
mod wires;
mod world;

pub use plants::{Plant, PlantFound, plants};
pub use rows::{Counts, Rule, RuleCounts, Trouble, TroubleCounts};
pub use run::{Options, Report, Verdicts, profile_name, run_seed};
pub use scenario::PROFILES;
pub use summary::{Extent, Summary, run_many};
