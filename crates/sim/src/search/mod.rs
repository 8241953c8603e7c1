//! Exhaustive search of the shipped lane against the model broker, in small scopes.
//!
//! A [`Scope`] bounds what may happen: some records, some faults, some restarts. [`explore`] goes
//! through every state that any schedule can reach, asks the judge at each step, and from each new
//! state runs a quiet phase in which faults stop and everything must end. What it prints is a
//! shortest schedule.

mod bent;
mod explore;
mod fingerprint;
mod flight;
mod inversions;
mod machine;
mod quiet;
mod scope;
mod scopes;
mod step;
mod world;

pub use explore::{Counterexample, Report, explore, steps_of, tell};
pub use inversions::{INVERSIONS, Inversion};
pub use machine::Machine;
pub use scope::{Fault, Limits, Plan, Say, Scope, Ticks};
pub use scopes::{SCOPES, scope};
pub use step::Step;
