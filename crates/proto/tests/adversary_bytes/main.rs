//! Attacks on the producer from below and from above: peers that are odd in legal ways and in others,
//! clocks that jump, callers that change their mind. First one by one, then as chance has it.

#![allow(clippy::unwrap_used, clippy::panic)]
#![allow(unreachable_pub, reason = "a test's own helpers")]

mod broker;
#[path = "../dice/mod.rs"]
mod dice;
mod directed;
mod explore;
mod log;
mod net;
#[path = "../speech/mod.rs"]
#[allow(dead_code, reason = "other tests use the rest of it")]
mod speech;
