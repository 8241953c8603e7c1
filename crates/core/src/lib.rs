//! The meaning of an idempotent Kafka producer: producer ids, epochs, sequences,
//! batch life cycles, deadlines and verdicts, as one pure state machine per partition.
//!
//! Nothing here does IO, reads a clock, draws randomness or knows a byte of Kafka.
//! [`rules`] is the file to open first: one method for each decision that the machine takes.
//!
//! A letter with a number (S6, V2) is a rule; all of them are in [docs/rules.md].
//!
//! [docs/rules.md]: https://github.com/candor-kafka/candor/blob/main/docs/rules.md
#![no_std]

extern crate alloc;

pub mod action;
pub mod config;
pub mod event;
pub mod ids;
pub mod lane;
pub mod payload;
pub mod pool;
pub mod rules;
pub mod testing;
pub mod time;
pub mod verdict;

pub use action::{Action, Misuse, Notice, Offer, Outcome, Settled, Told, Why};
pub use config::{BeyondMemory, LaneConfig, OnDataLoss};
pub use event::{Answer, Append, Event, HandedOver, PartitionResponse};
pub use ids::{
    AttemptId, Identity, LeaderEpoch, Offset, ProducerEpoch, ProducerId, RouteId, Sequence, Ticket,
};
pub use lane::{Digest, Lane, Names, Usage};
pub use payload::{Frozen, Payload};
pub use pool::{Pool, PoolIndex};
pub use time::{Deadline, Instant, Span, Wakeup};
pub use verdict::{Doubt, NeverReason, Proof, Resolution, Verdict};
