//! What applications send.

use core::fmt;
use core::time::Duration;
use std::borrow::Cow;

use bytes::Bytes;
use candor_wire::{Header, MAX_TOPIC_NAME, RecordRef};

/// Bytes of a key, a value or a header: borrowed ones are copied straight into the batch, owned and
/// shared ones are accepted as they are.
///
/// ```
/// use candor_proto::Data;
/// let (text, owned) = (Data::from("42"), Data::from(vec![52, 50]));
/// assert_eq!(text.as_slice(), owned.as_slice());
/// ```
#[derive(Clone, Debug)]
pub enum Data<'a> {
    /// Somebody else's bytes.
    Borrowed(&'a [u8]),
    /// Reference-counted bytes.
    Shared(Bytes),
    /// Our own bytes.
    Owned(Vec<u8>),
}

impl Data<'_> {
    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Shared(bytes) => bytes,
            Self::Owned(bytes) => bytes,
        }
    }

    /// The same bytes, owned if they were borrowed.
    #[must_use]
    pub fn into_owned(self) -> Data<'static> {
        match self {
            Self::Borrowed(bytes) => Data::Owned(bytes.to_vec()),
            Self::Shared(bytes) => Data::Shared(bytes),
            Self::Owned(bytes) => Data::Owned(bytes),
        }
    }
}

impl<'a> Data<'a> {
    fn into_cow(self) -> Cow<'a, [u8]> {
        match self {
            Self::Borrowed(bytes) => Cow::Borrowed(bytes),
            Self::Shared(bytes) => Cow::Owned(bytes.to_vec()),
            Self::Owned(bytes) => Cow::Owned(bytes),
        }
    }
}

impl PartialEq for Data<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Data<'_> {}

impl<'a> From<&'a [u8]> for Data<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Borrowed(bytes)
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for Data<'a> {
    fn from(bytes: &'a [u8; N]) -> Self {
        Self::Borrowed(bytes)
    }
}

impl<'a> From<&'a str> for Data<'a> {
    fn from(text: &'a str) -> Self {
        Self::Borrowed(text.as_bytes())
    }
}

impl<'a> From<&'a String> for Data<'a> {
    fn from(text: &'a String) -> Self {
        Self::Borrowed(text.as_bytes())
    }
}

impl<'a> From<&'a Vec<u8>> for Data<'a> {
    fn from(bytes: &'a Vec<u8>) -> Self {
        Self::Borrowed(bytes)
    }
}

impl From<Bytes> for Data<'_> {
    fn from(bytes: Bytes) -> Self {
        Self::Shared(bytes)
    }
}

impl From<Vec<u8>> for Data<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Owned(bytes)
    }
}

impl From<String> for Data<'_> {
    fn from(text: String) -> Self {
        Self::Owned(text.into_bytes())
    }
}

/// A record on its way to a topic.
///
/// ```
/// use candor_proto::Record;
/// let record = Record::to("orders").key("42").value("created").timestamp(1_700_000_000_000);
/// assert_eq!((record.topic(), record.key_bytes()), ("orders", Some(&b"42"[..])));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    topic: Cow<'a, str>,
    key: Option<Data<'a>>,
    value: Option<Data<'a>>,
    headers: Vec<Header<'a>>,
    timestamp: Option<i64>,
    partition: Option<u32>,
    deadline: Option<Duration>,
}

impl<'a> Record<'a> {
    /// A record for this topic: null key, null value, no headers, the time of `send`, any
    /// partition, the configured deadline.
    pub fn to(topic: impl Into<Cow<'a, str>>) -> Self {
        Self {
            topic: topic.into(),
            key: None,
            value: None,
            headers: Vec::new(),
            timestamp: None,
            partition: None,
            deadline: None,
        }
    }

    /// Records with the same key go to the same partition, in order. An empty key is a key.
    #[must_use]
    pub fn key(mut self, key: impl Into<Data<'a>>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// The content. Without it the value is null, which deletes the key on a compacted topic.
    #[must_use]
    pub fn value(mut self, value: impl Into<Data<'a>>) -> Self {
        self.value = Some(value.into());
        self
    }

    /// Adds a header behind the others (KIP-82); names may repeat.
    #[must_use]
    pub fn header(mut self, name: impl Into<Cow<'a, str>>, value: impl Into<Data<'a>>) -> Self {
        self.headers.push(Header { key: name.into(), value: Some(value.into().into_cow()) });
        self
    }

    /// Adds a header whose value is null.
    #[must_use]
    pub fn header_null(mut self, name: impl Into<Cow<'a, str>>) -> Self {
        self.headers.push(Header::null(name));
        self
    }

    /// When it happened, in milliseconds since the Unix epoch; -1 for none. Brokers forget a
    /// producer by the timestamps of its records: old ones cost certainty.
    #[must_use]
    pub fn timestamp(mut self, milliseconds: i64) -> Self {
        self.timestamp = Some(milliseconds);
        self
    }

    /// Goes to exactly this partition, whatever the key.
    #[must_use]
    pub fn partition(mut self, partition: u32) -> Self {
        self.partition = Some(partition);
        self
    }

    /// Has its verdict no later than so long after `send`.
    #[must_use]
    pub fn deadline(mut self, after_send: Duration) -> Self {
        self.deadline = Some(after_send);
        self
    }

    /// The topic's name.
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// The key, unless null.
    pub fn key_bytes(&self) -> Option<&[u8]> {
        self.key.as_ref().map(Data::as_slice)
    }

    /// The value, unless null.
    pub fn value_bytes(&self) -> Option<&[u8]> {
        self.value.as_ref().map(Data::as_slice)
    }

    /// The headers, in order.
    pub fn headers(&self) -> &[Header<'a>] {
        &self.headers
    }

    /// The partition it asks for.
    pub const fn asked_partition(&self) -> Option<u32> {
        self.partition
    }

    pub(crate) const fn asked_timestamp(&self) -> Option<i64> {
        self.timestamp
    }

    pub(crate) const fn asked_deadline(&self) -> Option<Duration> {
        self.deadline
    }

    /// The same record without borrowed parts.
    pub fn into_owned(self) -> Record<'static> {
        let own = |header: Header<'a>| Header {
            key: Cow::Owned(header.key.into_owned()),
            value: header.value.map(|value| Cow::Owned(value.into_owned())),
        };
        Record {
            topic: Cow::Owned(self.topic.into_owned()),
            key: self.key.map(Data::into_owned),
            value: self.value.map(Data::into_owned),
            headers: self.headers.into_iter().map(own).collect(),
            timestamp: self.timestamp,
            partition: self.partition,
            deadline: self.deadline,
        }
    }

    /// The same record without borrowed parts, and without the topic: whoever keeps it knows that.
    pub(crate) fn into_owned_elsewhere(self) -> Record<'static> {
        Record { topic: Cow::Borrowed(""), ..self }.into_owned()
    }

    /// Bytes of key, value and headers.
    pub(crate) fn payload_bytes(&self) -> usize {
        let length = |data: Option<&[u8]>| data.map_or(0, <[u8]>::len);
        let headers = self.headers.iter().map(|h| h.key.len() + length(h.value.as_deref()));
        headers.fold(length(self.key_bytes()) + length(self.value_bytes()), usize::saturating_add)
    }

    /// As a batch takes it.
    pub(crate) fn as_wire(&self) -> RecordRef<'_> {
        RecordRef { key: self.key_bytes(), value: self.value_bytes(), headers: &self.headers }
    }
}

/// A record that was not accepted, handed back whole. Nothing of it is kept.
///
/// ```
/// use candor_proto::{Record, Refused, WhyRefused};
/// let refused = Refused { record: Record::to("orders"), why: WhyRefused::Full };
/// assert_eq!(refused.record.topic(), "orders");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused<'a> {
    /// The record.
    pub record: Record<'a>,
    /// Why, and what to do.
    pub why: WhyRefused,
}

impl fmt::Display for Refused<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "record for {}: {}", self.record.topic(), self.why)
    }
}

impl std::error::Error for Refused<'_> {}

/// Why a record was not accepted.
///
/// ```
/// assert!(candor_proto::WhyRefused::Full.to_string().contains("again"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WhyRefused {
    /// No room now; there will be when verdicts have come.
    Full,
    /// It will never fit.
    TooLarge {
        /// Its size in bytes, alone in a batch.
        size: usize,
        /// What is allowed.
        limit: usize,
    },
    /// Its topic is empty, `.`, `..`, longer than 249 bytes or not of `[a-zA-Z0-9._-]`.
    BadTopic,
    /// Partition numbers end at 2^31-1.
    BadPartition,
    /// The producer is closed or closing.
    Closed,
    /// Its partition stopped; a notice said why.
    Stopped,
}

impl fmt::Display for WhyRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("the memory is full: send it again when verdicts have come"),
            Self::TooLarge { size, limit } => {
                write!(f, "{size} bytes are more than the limit of {limit}: split or raise it")
            }
            Self::BadTopic => {
                write!(
                    f,
                    "no topic can have this name: use 1 to {MAX_TOPIC_NAME} of [a-zA-Z0-9._-]"
                )
            }
            Self::BadPartition => {
                write!(f, "no partition can have this number: they go from 0 to {}", i32::MAX)
            }
            Self::Closed => f.write_str("the producer is closed: make a new one"),
            Self::Stopped => f.write_str("the partition stopped after data loss or a conflict"),
        }
    }
}

impl std::error::Error for WhyRefused {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_and_empty_are_different() {
        let empty = Record::to("t").key("").value("");
        assert_eq!((empty.key_bytes(), empty.value_bytes()), (Some(&b""[..]), Some(&b""[..])));
        let null = Record::to("t");
        assert_eq!((null.key_bytes(), null.value_bytes()), (None, None));
    }

    #[test]
    fn owning_changes_nothing() {
        let text = "v".to_owned();
        let record = Record::to("t").key(&[1, 2]).value(&text).header("h", Bytes::from("x"));
        assert_eq!(record.clone().into_owned(), record);
        assert_eq!(record.payload_bytes(), 2 + 1 + 1 + 1);
    }
}
