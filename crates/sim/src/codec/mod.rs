//! The broker's own codec: requests in, responses out. It shares nothing with `candor-wire`, so
//! that an error in one cannot hide in the other, and knows nothing but raw integers.
//!
//! Every message also has the other direction, for clients that are written by hand: requests
//! can be encoded, responses decoded. [`Batch`] and [`BatchBuilder`] do the same for records.

mod api_versions;
mod batch;
mod bytes;
pub mod error;
mod fetch;
mod init_producer_id;
mod metadata;
mod produce;
mod request;
mod stream;

pub use api_versions::{ApiVersionsRequest, ApiVersionsResponse};
pub use batch::{
    BATCH_HEADER, Batch, BatchBuilder, BatchError, BatchHeader, CONTROL, LOG_APPEND_TIME, Record,
    TRANSACTIONAL, batches,
};
pub use bytes::{Malformed, Reader, Tags, Uuid, Writer};
pub use fetch::{
    EARLIEST, FetchPartition, FetchRequest, FetchResponse, FetchedPartition,
    FindCoordinatorRequest, LATEST, ListOffsetsRequest, ListOffsetsResponse, ListedOffset,
};
pub use init_producer_id::{InitProducerIdRequest, InitProducerIdResponse};
pub use metadata::{
    MetadataPartition, MetadataQuery, MetadataRequest, MetadataResponse, MetadataTopic,
};
pub use produce::{
    Endpoint, LeaderHint, ProducePartition, ProduceRequest, ProduceResponse, ProduceTopic,
    ProducedPartition, ProducedTopic, RecordError, TopicKey,
};
pub use request::{
    API_VERSIONS, FETCH, FIND_COORDINATOR, INIT_PRODUCER_ID, LIST_OFFSETS, METADATA, PRODUCE,
    Refusal, Request, RequestHeader, VersionRange, decode_request, is_flexible,
};
pub use stream::{frame_length, whole_frame};

#[cfg(test)]
mod testing {
    /// Bytes from hexadecimal digits; white space is for width only.
    pub(crate) fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u32> =
            text.chars().filter(|c| !c.is_whitespace()).map(|c| c.to_digit(16).unwrap()).collect();
        digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
    }
}
