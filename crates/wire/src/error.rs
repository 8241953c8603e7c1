//! What is wrong with bytes, and what cannot be said in bytes.

use core::fmt;

use crate::versions::Api;

/// What is wrong with received bytes. Nothing is allocated, nothing is believed: whoever gets one
/// closes the connection and treats everything outstanding on it as unanswered.
///
/// ```
/// use candor_wire::Malformed;
/// assert_eq!(Malformed::Truncated.to_string(), "the bytes end inside a field");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Malformed {
    /// The bytes end inside a field.
    Truncated,
    /// A variable-length integer has more bits than its field holds.
    VarintTooLong,
    /// A length or count below -1.
    NegativeLength,
    /// A field is null that the protocol says is never null.
    NullNotAllowed,
    /// More elements are announced than the bytes left could hold.
    CountTooLarge,
    /// Text that is not UTF-8.
    NotUtf8,
    /// Bytes are left over behind the last field.
    Trailing,
    /// A number outside its field's meaning: a negative node id, a port above 65535.
    OutOfRange,
    /// A record batch of another format than 2 ("magic" byte).
    Magic,
    /// The checksum of a record batch does not match its content.
    Checksum,
    /// The records are compressed; this reader takes plain batches only.
    Compressed,
    /// A version outside the table of this API; see [`Api::supported`].
    UnknownVersion,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Truncated => "the bytes end inside a field",
            Self::VarintTooLong => "a variable-length integer is too long for its field",
            Self::NegativeLength => "a length is negative",
            Self::NullNotAllowed => "a field is null that must not be",
            Self::CountTooLarge => "more elements are announced than the bytes left could hold",
            Self::NotUtf8 => "text is not UTF-8",
            Self::Trailing => "bytes are left over behind the last field",
            Self::OutOfRange => "a number is outside the meaning of its field",
            Self::Magic => "the record batch is not of format 2",
            Self::Checksum => "the checksum of the record batch does not match",
            Self::Compressed => "the record batch is compressed",
            Self::UnknownVersion => "this version is not supported",
        })
    }
}

/// Received bytes that are not what they claim to be.
///
/// ```
/// use candor_wire::{Malformed, init_producer_id};
/// let error = init_producer_id::Response::decode(1, &[0, 0, 0]).unwrap_err();
/// assert_eq!((error.what, error.at), (Malformed::Truncated, 0));
/// assert_eq!(
///     error.to_string(),
///     "malformed InitProducerId response v1 at byte 0: the bytes end inside a field"
/// );
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// What was being read, as in "Metadata response".
    pub message: &'static str,
    /// The version it was read as.
    pub version: i16,
    /// What is wrong.
    pub what: Malformed,
    /// Where, in bytes from the start of the body.
    pub at: usize,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { message, version, what, at } = self;
        write!(f, "malformed {message} v{version} at byte {at}: {what}")
    }
}

impl core::error::Error for DecodeError {}

/// A request that cannot be written.
///
/// ```
/// use candor_wire::{EncodeError, RequestHeader, init_producer_id};
/// let header = RequestHeader { correlation_id: 1, client_id: None };
/// let error = init_producer_id::Request::idempotent().encode(9, &header).unwrap_err();
/// assert!(matches!(error, EncodeError::UnsupportedVersion { version: 9, .. }));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EncodeError {
    /// The version is outside [`Api::supported`]; take one from [`negotiate`](crate::negotiate).
    UnsupportedVersion {
        /// The API.
        api: Api,
        /// The version that was asked for.
        version: i16,
    },
    /// A text is longer than the 32767 bytes that its field holds.
    TextTooLong {
        /// Which field.
        field: &'static str,
        /// Its length in bytes.
        bytes: usize,
    },
    /// The version names topics by the other of name and id: ids in Produce 13 and up and in
    /// Metadata 12 and up, names in Produce 12 and below.
    TopicForm {
        /// The version that was asked for.
        version: i16,
    },
    /// The request has this partition already. Brokers keep only the last of two entries and drop
    /// the other in silence (rule U4).
    PartitionTwice {
        /// The partition's index.
        partition: i32,
    },
    /// The frame would be longer than 2^31-1 bytes.
    FrameTooLong {
        /// Its length in bytes.
        bytes: usize,
    },
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnsupportedVersion { api, version } => {
                let range = api.supported();
                write!(f, "{api} v{version} is not supported, only {range}")
            }
            Self::TextTooLong { field, bytes } => {
                write!(f, "{field} has {bytes} bytes, at most 32767 can be sent")
            }
            Self::TopicForm { version } => {
                write!(f, "version {version} does not name topics in this form")
            }
            Self::PartitionTwice { partition } => {
                write!(f, "partition {partition} is in the request already")
            }
            Self::FrameTooLong { bytes } => {
                write!(f, "the request has {bytes} bytes, at most 2147483647 can be sent")
            }
        }
    }
}

impl core::error::Error for EncodeError {}
