//! The other side of the wire: model brokers, a judge of histories, exhaustive search over the
//! shipped lane, and seeded swarms.
//!
//! The broker and its codec are written from the protocol's description alone and share no
//! arithmetic with the machine, so that one error cannot hide in both.

pub mod broker;
pub mod codec;
pub mod judge;
pub mod replay;
pub mod search;
pub mod serve;
#[cfg(feature = "proptest")]
pub mod strategies;
pub mod swarm;
pub mod timeline;
pub mod words;
