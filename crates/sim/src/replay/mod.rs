//! Scenarios: faults that real producers had, as small texts with the right outcome asserted.
//!
//! A scenario drives the shipped producer, bytes in and bytes out, in virtual time. Its brokers are
//! either the scenario itself, which answers each Produce request as its lines say, or the model
//! cluster, whose log is read back and judged. The form is described in `docs/replays.md`.
//!
//! ```
//! use candor_sim::replay::Scenario;
//! let text = "
//! title a lost answer
//! model A
//! send r1
//! out A [0]
//! eof A stored            # appended, and nobody hears of it
//! tick until out A
//! out A [0] r1
//! in A stored
//! expect delivered r1 @0
//! expect log t-0 r1
//! ";
//! let report = Scenario::parse(text).unwrap().run("lost.replay");
//! assert_eq!(report.failure, None);
//! ```

mod acts;
mod answers;
mod book;
mod brokers;
mod error;
mod link;
mod offers;
mod parse;
mod run;
mod script;
mod trial;
mod wants;
mod words;
mod world;

pub use error::ScriptError;
pub use run::{Failure, Report};
pub use script::Scenario;
