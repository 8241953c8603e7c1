//! What the fuzz targets do with bytes: plain functions, so that `cargo test` can replay a corpus
//! through them without a fuzzer.
//!
//! A body returns, or it panics and has found something.

mod feed;
mod peer;
mod schedule;
pub mod seeds;
mod tally;
mod wire;

pub use peer::{next_request, peer, peer_under};
pub use schedule::{schedule, schedule_under};
pub use tally::Tally;
pub use wire::{
    api_versions, batch, frames, init_producer_id, metadata, produce, requests, responses,
};

/// What a target does with the fuzzer's bytes.
///
/// ```
/// let body: candor_fuzz_bodies::Body = candor_fuzz_bodies::frames;
/// body(b"HTTP/1.1 400 Bad Request\r\n");
/// ```
pub type Body = fn(&[u8]);

/// Every target by its name, which is also that of its corpus.
pub const TARGETS: &[(&str, Body)] = &[
    ("frames", frames),
    ("api_versions", api_versions),
    ("metadata", metadata),
    ("init_producer_id", init_producer_id),
    ("produce", produce),
    ("batch", batch),
    ("requests", requests),
    ("responses", responses),
    ("peer", peer),
    ("schedule", schedule),
];
