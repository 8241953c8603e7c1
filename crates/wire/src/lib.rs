//! The bytes of a Kafka producer: frames, headers, the four APIs that an idempotent producer needs,
//! and record batches of format 2.
//!
//! Pure functions: bytes in, bytes out, no state beyond one frame.
//!
//! - [`split_frame`] takes whole frames off a receive buffer, [`split_response`] their header.
//! - [`api_versions`], [`metadata`], [`init_producer_id`] and [`produce`] have a `Request` with
//!   `encode` and a `Response` with `decode` each, for every version in [`Api::supported`].
//!   [`negotiate`] chooses the version.
//! - [`RecordBatch`] is core's [`Payload`](candor_core::Payload): records are encoded where they
//!   will be sent from. [`BatchReader`] reads batches back.
//!
//! Received bytes are not trusted: whatever is wrong with them is a [`DecodeError`], never a panic,
//! and never an allocation larger than a small multiple of the bytes that are there. Bytes left over
//! behind the last field are an error too, although the Java client ignores them: who finds some has
//! read the message by a layout that is not its sender's.
//!
//! A letter with a number (S6, V2) is a rule; all of them are in [docs/rules.md].
//!
//! [docs/rules.md]: https://github.com/candor-kafka/candor/blob/main/docs/rules.md

pub mod api_versions;
pub mod init_producer_id;
pub mod metadata;
pub mod produce;
pub mod records;

mod error;
mod error_code;
mod frame;
mod list;
mod names;
mod read;
mod versions;
mod write;

pub use error::{DecodeError, EncodeError, Malformed};
pub use error_code::ErrorCode;
pub use frame::{
    FrameError, PREFIX, RequestHeader, correlation_id, frame_length, split_frame, split_response,
};
pub use list::{Element, Elements, List};
pub use names::{InvalidTopicName, MAX_TOPIC_NAME, NodeId, Topic, TopicId, check_topic_name};
pub use records::{BatchReader, FrozenBatch, Header, RecordBatch, RecordRef};
pub use versions::{
    Api, METADATA_BY_ID, PRODUCE_BY_ID, PRODUCE_BY_NAME, VersionRange, negotiate, negotiate_at_most,
};
