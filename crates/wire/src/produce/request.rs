//! The request: small pieces of framing with the batches between them.

use std::collections::BTreeMap;

use bytes::{BufMut, Bytes, BytesMut};

use crate::error::EncodeError;
use crate::frame::{PREFIX, RequestHeader, check_version};
use crate::names::{Topic, TopicId};
use crate::versions::{Api, PRODUCE_BY_ID};
use crate::write::{
    check_text, count_size, nullable_text_size, put_count, put_no_tags, put_nullable_text,
    put_text, text_size,
};

/// A Produce request that is being put together; it knows its exact size at every moment.
///
/// It always asks for all in-sync replicas (acks -1), which idempotence needs. The structure holds
/// one batch per partition, since brokers silently drop the first of two (rule U4).
///
/// ```
/// use bytes::Bytes;
/// use candor_wire::{RequestHeader, Topic, produce::Request};
/// let header = RequestHeader { correlation_id: 4, client_id: Some("c") };
/// let mut request = Request::new(9, header, 30_000).unwrap();
/// let batch = Bytes::from(vec![0; 70]);
/// let size = request.size_with(Topic::Name("t"), batch.len());
/// request.add(Topic::Name("t"), 0, batch).unwrap();
/// assert_eq!(request.size(), size);
/// assert_eq!(request.encode().len(), size);
/// ```
#[derive(Clone, Debug)]
pub struct Request<'a> {
    version: i16,
    header: RequestHeader<'a>,
    transactional_id: Option<&'a str>,
    timeout_ms: i32,
    topics: BTreeMap<Topic<'a>, BTreeMap<i32, Bytes>>,
    size: usize,
}

impl<'a> Request<'a> {
    /// A request without batches. `timeout_ms` is how long the broker may wait for replication
    /// after it appended.
    ///
    /// # Errors
    ///
    /// The version is not supported, or the client id is too long.
    pub fn new(
        version: i16,
        header: RequestHeader<'a>,
        timeout_ms: i32,
    ) -> Result<Self, EncodeError> {
        check_version(Api::Produce, version)?;
        header.check()?;
        let flexible = Api::Produce.flexible(version);
        let size = PREFIX
            + header.size(flexible)
            + nullable_text_size(flexible, None)
            + 2
            + 4
            + count_size(flexible, 0)
            + usize::from(flexible);
        let topics = BTreeMap::new();
        Ok(Self { version, header, transactional_id: None, timeout_ms, topics, size })
    }

    /// The same request inside a transaction.
    ///
    /// # Errors
    ///
    /// The id is too long.
    pub fn with_transactional_id(mut self, id: &'a str) -> Result<Self, EncodeError> {
        check_text("transactional id", id)?;
        self.size -= nullable_text_size(self.flexible(), self.transactional_id);
        self.size += text_size(self.flexible(), id);
        self.transactional_id = Some(id);
        Ok(self)
    }

    /// Size of the whole frame in bytes, its length included.
    pub const fn size(&self) -> usize {
        self.size
    }

    /// What [`size`](Self::size) would be with a batch of `batch` bytes more.
    pub fn size_with(&self, topic: Topic<'_>, batch: usize) -> usize {
        let flexible = self.flexible();
        let partition = 4 + count_size(flexible, batch) + batch + usize::from(flexible);
        let grown = match self.topics.get(&topic) {
            Some(others) => {
                let others = others.len();
                count_size(flexible, others + 1) - count_size(flexible, others)
            }
            None => {
                let others = self.topics.len();
                self.topic_size(topic) + count_size(flexible, others + 1)
                    - count_size(flexible, others)
            }
        };
        self.size + grown + partition
    }

    /// The largest batch for this topic with which the frame has at most `limit` bytes.
    pub fn room(&self, topic: Topic<'_>, limit: usize) -> usize {
        let flexible = self.flexible();
        let around = self.size_with(topic, 0) - count_size(flexible, 0);
        let left = limit.saturating_sub(around);
        let room = left.saturating_sub(count_size(flexible, left));
        let more = room + 1;
        if more + count_size(flexible, more) <= left { more } else { room }
    }

    /// Whether no batch was added yet.
    pub fn is_empty(&self) -> bool {
        self.topics.is_empty()
    }

    /// Adds a batch, which is not copied, now or later.
    ///
    /// # Errors
    ///
    /// The partition has one already; the version names topics in the other form; the name is too
    /// long; the frame would be. The request is as before then.
    pub fn add(
        &mut self,
        topic: Topic<'a>,
        partition: i32,
        batch: Bytes,
    ) -> Result<(), EncodeError> {
        match topic {
            Topic::Name(name) if self.version < PRODUCE_BY_ID => check_text("topic name", name)?,
            Topic::Id(_) if self.version >= PRODUCE_BY_ID => {}
            Topic::Name(_) | Topic::Id(_) => {
                return Err(EncodeError::TopicForm { version: self.version });
            }
        }
        let size = self.size_with(topic, batch.len());
        if i32::try_from(size - PREFIX).is_err() {
            return Err(EncodeError::FrameTooLong { bytes: size - PREFIX });
        }
        let partitions = self.topics.entry(topic).or_default();
        if partitions.contains_key(&partition) {
            return Err(EncodeError::PartitionTwice { partition });
        }
        partitions.insert(partition, batch);
        self.size = size;
        Ok(())
    }

    /// The whole frame, topics and partitions in ascending order.
    pub fn encode(self) -> Segments {
        let flexible = self.flexible();
        let batches =
            self.topics.values().flat_map(BTreeMap::values).map(Bytes::len).sum::<usize>();
        let count = self.topics.values().map(BTreeMap::len).sum::<usize>();
        let mut segments = Segments { parts: Vec::with_capacity(2 * count + 1), length: self.size };
        let mut out = BytesMut::with_capacity(self.size - batches);
        out.put_i32((self.size - PREFIX) as i32);
        self.header.put(&mut out, Api::Produce, self.version);
        put_nullable_text(&mut out, flexible, self.transactional_id);
        out.put_i16(-1);
        out.put_i32(self.timeout_ms);
        put_count(&mut out, flexible, self.topics.len());
        for (topic, partitions) in self.topics {
            match topic {
                Topic::Name(name) => put_text(&mut out, flexible, name),
                Topic::Id(id) => out.put_slice(&id.bytes()),
            }
            put_count(&mut out, flexible, partitions.len());
            for (index, batch) in partitions {
                out.put_i32(index);
                put_count(&mut out, flexible, batch.len());
                segments.push(out.split().freeze());
                segments.push(batch);
                put_no_tags(&mut out, flexible);
            }
            put_no_tags(&mut out, flexible);
        }
        put_no_tags(&mut out, flexible);
        segments.push(out.freeze());
        segments
    }

    const fn flexible(&self) -> bool {
        Api::Produce.flexible(self.version)
    }

    /// A topic with one partition, without what the partition takes.
    const fn topic_size(&self, topic: Topic<'_>) -> usize {
        let flexible = self.flexible();
        let name = match topic {
            Topic::Name(name) => text_size(flexible, name),
            Topic::Id(_) => TopicId::SIZE,
        };
        name + count_size(flexible, 1) + flexible as usize
    }
}

/// A frame in pieces, for vectored writes: framing of ours, and batches as they were handed in.
/// No piece is empty.
///
/// ```
/// use bytes::Bytes;
/// use candor_wire::{RequestHeader, Topic, produce::Request};
/// let header = RequestHeader { correlation_id: 4, client_id: None };
/// let mut request = Request::new(3, header, 30_000).unwrap();
/// request.add(Topic::Name("t"), 0, Bytes::from_static(b"batch")).unwrap();
/// let segments = request.encode();
/// assert_eq!(segments.iter().count(), 2);
/// assert_eq!(segments.to_bytes().len(), segments.len());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segments {
    parts: Vec<Bytes>,
    length: usize,
}

impl Segments {
    /// Size of the frame in bytes, its length included.
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Never: a frame has a length and a header at least.
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The pieces, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Bytes> {
        self.parts.iter()
    }

    /// The pieces, in order.
    pub fn into_parts(self) -> Vec<Bytes> {
        self.parts
    }

    /// The frame in one piece; copies.
    pub fn to_bytes(&self) -> Bytes {
        let mut all = BytesMut::with_capacity(self.length);
        all.extend(self.parts.iter().flatten());
        all.freeze()
    }

    fn push(&mut self, part: Bytes) {
        if !part.is_empty() {
            self.parts.push(part);
        }
    }
}
