//! The whole Kafka producer as a pure state machine over bytes.
//!
//! [`Producer`] is the face. Inside, small machines stand side by side, each in a file of its own:
//! connections (greeting, pipelining, framing, timeouts), the cluster (metadata, leaders, addresses),
//! the router (unrouted queues, partitions), lanes (`candor-core`), the pool of producer ids, the
//! memory budget, tickets, flushes. None of them does IO, reads a clock or draws randomness.
//!
//! A letter with a number (S6, V2) is a rule; all of them are in [docs/rules.md].
//!
//! [docs/rules.md]: https://github.com/candor-kafka/candor/blob/main/docs/rules.md

mod address;
mod budget;
mod cluster;
mod completion;
mod config;
mod connection;
mod fault;
mod identity;
mod io;
mod jitter;
mod lanes;
mod partitioner;
mod producer;
mod record;
mod router;
mod stats;
mod tickets;
mod timers;
mod worklist;

pub use candor_wire::ErrorCode;

pub use address::{Address, BadAddress};
pub use completion::FlushId;
pub use config::{Config, ConfigError};
pub use fault::{Fault, Loss};
pub use io::{Ended, Handed, Input, Misuse, Notice, Output, Settlement, Unused, Waiting};
pub use partitioner::{Partitioning, murmur2, partition_for_key};
pub use producer::Producer;
pub use record::{Data, Record, Refused, WhyRefused};
pub use stats::{Counts, PartitionLeader, Stats};
