//! Record batches of format 2 (KIP-98): 61 bytes of header, then the records.

mod batch;
mod header;
mod read;
mod varint;

use std::borrow::Cow;

pub use batch::{FrozenBatch, RecordBatch};
pub use header::{Attributes, BATCH_HEADER, BatchHeader, Codec};
pub use read::{BatchReader, HeaderViews, RecordView, Records};

/// The largest record, in bytes, key, value and headers included: its length is a signed 32-bit
/// integer, and so is the batch's. A caller checks [`size_with`](candor_core::Payload::size_with)
/// against its own limit, which must not be above this one, before it pushes.
pub const MAX_BATCH: usize = i32::MAX as usize;

/// A record as it is handed to a batch, which copies it.
///
/// ```
/// use candor_wire::{Header, RecordRef};
/// let headers = [Header::new("trace", b"4711"), Header::null("flag")];
/// let record = RecordRef { key: None, value: Some(b"created"), headers: &headers };
/// assert_eq!(record.headers.len(), 2);
/// assert_eq!(RecordRef::value(b"created").headers.len(), 0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordRef<'r> {
    /// The key; `None` and empty are different.
    pub key: Option<&'r [u8]>,
    /// The value; `None` is a tombstone on compacted topics.
    pub value: Option<&'r [u8]>,
    /// The headers, in order; keys may repeat.
    pub headers: &'r [Header<'r>],
}

impl<'r> RecordRef<'r> {
    /// A record with a value only.
    pub const fn value(value: &'r [u8]) -> Self {
        Self { key: None, value: Some(value), headers: &[] }
    }
}

/// A record header, borrowed or owned: a `&[Header<'static>]` that owns its texts can be used
/// wherever a `&[Header<'_>]` is asked for. The key is never null, by type.
///
/// ```
/// use candor_wire::Header;
/// let owned: Header<'static> = Header::new(String::from("a"), vec![1]);
/// assert_eq!(owned.value.as_deref(), Some(&[1][..]));
/// assert_eq!(Header::null("b").value, None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// The key; may be empty.
    pub key: Cow<'a, str>,
    /// The value; `None` and empty are different.
    pub value: Option<Cow<'a, [u8]>>,
}

impl<'a> Header<'a> {
    /// A header with a value.
    pub fn new(key: impl Into<Cow<'a, str>>, value: impl Into<Cow<'a, [u8]>>) -> Self {
        Self { key: key.into(), value: Some(value.into()) }
    }

    /// A header whose value is null.
    pub fn null(key: impl Into<Cow<'a, str>>) -> Self {
        Self { key: key.into(), value: None }
    }
}
