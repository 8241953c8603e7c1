//! The one generic asynchronous loop that runs the pure producer over sockets, and the handle that
//! applications hold. Runtimes are crates of their own: `candor-tokio`, `candor-async-std`,
//! `candor-smol`; each is a [`Runtime`] and a stream type.
//!
//! # Give deadlines, do not wrap in `timeout`
//!
//! Every record has a deadline and exactly one verdict by then, whatever the cluster does. A timeout
//! around `send` drops the future: that cancels the record, and throws away what is known of it.
//!
//! ```no_run
//! use std::time::Duration;
//! use candor_driver::{Producer, Record, Runtime, Verdict};
//!
//! async fn place<R: Runtime>(producer: &Producer<R>) -> Verdict {
//!     let record = Record::to("orders").key("42").value("created");
//!     // Not: timeout(Duration::from_secs(2), producer.send(record)).await
//!     producer.send(record.deadline(Duration::from_secs(2))).await
//! }
//! ```
//!
//! What a verdict allows:
//!
//! | verdict | the record | sending it again |
//! |---|---|---|
//! | [`Verdict::Delivered`] | is in the log, replicated, once | would be a second record |
//! | [`Verdict::NotDelivered`] | is not in the log and never will be | is safe |
//! | [`Verdict::Unknown`] | may be in the log, now or later | is safe only if [`Unknown::resolved`] says so |
//!
//! # Stopping
//!
//! - [`Sending::until`] gives the verdict at once when another future ends.
//! - Dropping a [`Sending`] cancels the record; dropping a [`Handle`] detaches it.
//! - [`Producer::close`] waits until everything is told; dropping the last [`Producer`] closes in the
//!   background.
//! - Dropping the [`Driver`] ends everything at once, and truthfully.
//!
//! # Revoking
//!
//! What is `Unknown` can be revoked: [`Handle::revoke`] and [`Unknown::revoke`] have other records of
//! the partition take its place, so that it can never be written, or is known to be.
//! [`Producer::abandon`] gives up what is in doubt on a partition, without waiting for anything.
//!
//! # Inside
//!
//! There is one lock, around the machine and the slots in which verdicts wait. A record is encoded
//! under it, on the caller's thread, straight into its batch; nothing is allocated and no channel is
//! used per record. The driver does its IO outside of the lock and wakes tasks outside of it, once
//! per batch settled.

#[cfg(test)]
extern crate self as candor_driver;

mod clock;
mod conduct;
mod connect;
mod doorbell;
mod drive;
mod finish;
mod flight;
mod life;
mod line;
mod notices;
mod places;
#[cfg(test)]
mod planted;
mod producer;
mod resolved;
mod revoke;
mod runtime;
mod send;
mod send_all;
mod shared;
mod slots;
mod stats;
mod verdict;
#[cfg(test)]
#[path = "../tests/world/mod.rs"]
#[allow(dead_code, reason = "other tests use the rest of it")]
mod world;

pub use candor_core::{
    BeyondMemory, Doubt, NeverReason, Notice as PartitionNotice, OnDataLoss, Proof, Ticket, Why,
};
pub use candor_proto::{
    Address, Config, ConfigError, Data, ErrorCode, Fault, Loss, Notice, Partitioning, Record,
    Refused, Unused, Waiting, WhyRefused,
};

pub use connect::ConnectError;
pub use drive::Driver;
pub use finish::{Close, Flush};
pub use notices::Notices;
pub use producer::Producer;
pub use resolved::Resolved;
pub use revoke::Revoked;
pub use runtime::{Runtime, connect_to_any};
pub use send::{Enqueue, Handle, Sending};
pub use send_all::SendAll;
pub use stats::{Stats, Summary, Tally};
pub use verdict::{At, Never, NotDelivered, Resolution, Undelivered, Unknown, Verdict, WhyNot};
