//! Produce (key 0), versions 3 to 13: appends record batches.

mod request;
mod response;

pub use request::{Request, Segments};
pub use response::{LeaderHint, PartitionAnswer, Partitions, RecordError, RecordErrors, Response};
