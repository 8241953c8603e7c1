//! Exhaustive search of the shipped lane against the model broker, in small scopes.
//!
//! A [`Scope`] bounds what may happen: some records, some faults, some restarts. [`explore`] goes
//! through every state that any schedule can reach, asks the judge at each step, and from each new
//! state runs a quiet phase in which faults stop and everything must end. What it prints is a
//! shortest schedule.

mod bent;
mod controls;
mod explore;
mod fingerprint;
mod flight;
mod inversions;
mod machine;
mod quiet;
mod scope;
mod scopes;
mod step;
mod table;
mod twins;
mod wide;
mod world;

pub(crate) use bent::{Bent, Decisions};
pub use controls::{CONTROLS, Control};
pub use explore::{Contest, Counterexample, Report, explore, explore_wide, steps_of, tell};
pub use inversions::{INVERSIONS, Inversion};
pub use machine::Machine;
pub use scope::{Fault, Limits, Plan, Say, Scope, Size, Ticks};
pub use scopes::{SCOPES, scope};
pub use step::Step;
pub use twins::{Twins, explore_twins, independent};
pub use wide::Course;

/// The lane that ships, with records that are only counted.
///
/// ```
/// use candor_sim::search::{Scope, Shipped, tell};
/// assert_eq!(tell::<Shipped>(&Scope::BASE, &[]).last().unwrap(), "=> fine");
/// ```
pub type Shipped = candor_core::Lane<candor_core::testing::Counted>;
