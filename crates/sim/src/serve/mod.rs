//! The model cluster behind byte connections and TCP listeners.
//!
//! [`Net`] holds brokers and their connections without sockets and without a clock: swarms drive
//! it in virtual time. [`Server`] puts the same behind real sockets. [`Fault`]s are lists of
//! triggers and effects and work in both.

mod answers;
mod connection;
mod convert;
mod fault;
mod net;
mod produce;
mod requests;
mod script;
mod settings;
mod tcp;
#[cfg(test)]
mod tests;
mod versions;

pub use fault::{Effect, Fault, Moment, Release, Trigger, Upset};
pub use net::{ConnectionId, Hangup, Net, Output};
pub use script::FaultSyntax;
pub use settings::{Replication, Settings};
pub use tcp::Server;
