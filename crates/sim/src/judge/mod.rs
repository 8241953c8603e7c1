//! The judge: was anything said that the log contradicts, or done that could have made it so?
//!
//! It works on raw numbers, so that it can judge the lane in a search, the producer's bytes in a
//! simulation, and real brokers alike. There are two forms with one set of [`conditions`]:
//! [`judge`] takes a finished [`History`]; [`Observer`] watches one lane step by step, convicts it
//! as soon as something is certain, and is small enough to be part of a search's state.

mod anomaly;
pub mod conditions;
mod content;
mod finished;
mod forgotten;
mod history;
mod ledger;
mod memory;
mod observer;
mod wire;

pub use anomaly::{Anomaly, Class};
pub use conditions::{Fate, Said, fate, is_permanent, placed};
pub use finished::{Blame, Finding, Report, judge, slice};
pub use history::{Entry, Excuse, ExcuseKind, Fact, History, Lane, Log, LogBatch, Stored};
pub use ledger::LogIs;
pub use observer::{Noticed, Observer, Settings};
pub use wire::{Attempt, Reply};
