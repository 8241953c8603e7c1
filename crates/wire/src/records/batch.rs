//! Batches being written: open ones that still change, and frozen ones with a sequence.

use core::fmt;

use bytes::Bytes;
use candor_core::{Frozen, Identity, Payload, Sequence};

use super::header::{Attributes, BATCH_HEADER, BatchHeader};
use super::read::RawRecord;
use super::varint::{WINDOW, Window, field_size, length_size, put, size, zigzag};
use super::{Header, RecordRef};

/// Records that have no sequence yet, encoded in the place that they will be sent from.
///
/// One buffer with the header's 61 bytes left free in front; a record is copied once, into it.
/// Removing and splitting rewrite the records, since every record holds its place in the batch.
///
/// ```
/// use candor_core::{Frozen, Identity, Payload, ProducerId, Sequence};
/// use candor_wire::{RecordBatch, RecordRef};
/// let mut batch = RecordBatch::empty();
/// let record = RecordRef { key: Some(b"k"), value: None, headers: &[] };
/// let size = batch.size_with(1000, &record);
/// batch.push(1000, record);
/// assert_eq!((batch.count(), batch.bytes()), (1, size));
///
/// let identity = Identity::fresh(ProducerId::new(7).unwrap());
/// let frozen = batch.clone().freeze(identity, Sequence::ZERO);
/// assert_eq!(frozen.encoded().len(), size);
/// assert_eq!(frozen.thaw(), batch);
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct RecordBatch {
    /// Empty, or 61 zeros and the records.
    buffer: Vec<u8>,
    count: u32,
    /// Timestamp of the first record, to which the others are relative; -1 without records.
    base_timestamp: i64,
    max_timestamp: i64,
    attributes: Attributes,
}

impl RecordBatch {
    /// The same records, as part of a transaction.
    #[must_use]
    pub fn into_transactional(self) -> Self {
        Self { attributes: self.attributes.with_transactional(), ..self }
    }

    const fn empty_with(attributes: Attributes) -> Self {
        Self { buffer: Vec::new(), count: 0, base_timestamp: -1, max_timestamp: -1, attributes }
    }

    /// The timestamp delta that a record with this timestamp would get.
    #[inline]
    const fn timestamp_delta(&self, timestamp: i64) -> i64 {
        if self.count == 0 { 0 } else { timestamp.wrapping_sub(self.base_timestamp) }
    }

    /// Counts a record in, makes room for it, and gives what stands in front of its fields, which
    /// take `fields` bytes.
    #[inline]
    fn begin(&mut self, timestamp: i64, fields: usize) -> Start {
        let timestamp_delta = self.timestamp_delta(timestamp);
        let body = body_size(timestamp_delta, self.count, fields);
        let room = body + 2 * WINDOW;
        if self.count == 0 {
            self.buffer.reserve(BATCH_HEADER + room);
            self.buffer.resize(BATCH_HEADER, 0);
            (self.base_timestamp, self.max_timestamp) = (timestamp, timestamp);
        } else {
            self.buffer.reserve(room);
            self.max_timestamp = self.max_timestamp.max(timestamp);
        }
        let offset_delta = self.count;
        self.count += 1;
        Start { body, timestamp_delta, offset_delta }
    }

    /// Adds a record that is encoded already, apart from what depends on its place.
    fn push_raw(&mut self, timestamp: i64, fields: &[u8]) {
        let start = self.begin(timestamp, fields.len());
        put(&mut self.buffer, |w| start.put(w));
        self.buffer.extend_from_slice(fields);
    }

    /// Timestamp and fields of every record.
    fn raw(&self) -> impl Iterator<Item = (i64, &[u8])> {
        let mut rest = self.buffer.get(BATCH_HEADER..).unwrap_or_default();
        core::iter::from_fn(move || {
            let (behind, raw) = RawRecord::parse(rest).ok()?;
            rest = behind;
            Some((self.base_timestamp.wrapping_add(raw.timestamp_delta), raw.fields))
        })
    }

    /// Leaves an empty batch with the same attributes behind.
    fn take(&mut self) -> Self {
        core::mem::replace(self, Self::empty_with(self.attributes))
    }
}

/// How many bytes a record takes behind its length.
#[inline]
const fn body_size(timestamp_delta: i64, offset_delta: u32, fields: usize) -> usize {
    1 + size(timestamp_delta) + size(offset_delta as i64) + fields
}

/// How many bytes key, value and headers take.
#[inline]
fn fields_size(record: &RecordRef<'_>) -> usize {
    let headers = record
        .headers
        .iter()
        .map(|h| field_size(Some(h.key.as_bytes())) + field_size(h.value.as_deref()))
        .sum::<usize>();
    field_size(record.key) + field_size(record.value) + length_size(record.headers.len()) + headers
}

/// What stands in front of a record's fields.
struct Start {
    body: usize,
    timestamp_delta: i64,
    offset_delta: u32,
}

impl Start {
    #[inline]
    const fn put(&self, window: &mut Window<'_>) {
        window.unsigned((self.body as u64) << 1);
        window.byte(0);
        window.unsigned(zigzag(self.timestamp_delta));
        window.unsigned((self.offset_delta as u64) << 1);
    }
}

/// Writes the headers and their count.
fn put_headers(buffer: &mut Vec<u8>, headers: &[Header<'_>]) {
    put(buffer, |w| w.unsigned((headers.len() as u64) << 1));
    for header in headers {
        let (key, value) = (header.key.as_bytes(), header.value.as_deref());
        put(buffer, |w| w.length(Some(key)));
        buffer.extend_from_slice(key);
        put(buffer, |w| w.length(value));
        buffer.extend_from_slice(value.unwrap_or_default());
    }
}

impl Payload for RecordBatch {
    type Record<'r> = RecordRef<'r>;
    type Frozen = FrozenBatch;

    fn empty() -> Self {
        Self::empty_with(Attributes::PLAIN)
    }

    #[inline]
    fn size_with(&self, timestamp: i64, record: &RecordRef<'_>) -> usize {
        let delta = self.timestamp_delta(timestamp);
        let body = body_size(delta, self.count, fields_size(record));
        self.bytes() + length_size(body) + body
    }

    /// Callers have compared [`size_with`](Payload::size_with) with a limit of at most
    /// [`MAX_BATCH`](super::MAX_BATCH); a batch above it cannot be sent.
    #[inline]
    fn push(&mut self, timestamp: i64, record: RecordRef<'_>) {
        let RecordRef { key, value, headers } = record;
        let start = self.begin(timestamp, fields_size(&record));
        let buffer = &mut self.buffer;
        if let Some(data) = key {
            put(buffer, |w| {
                start.put(w);
                w.length(key);
            });
            buffer.extend_from_slice(data);
            put(buffer, |w| w.length(value));
        } else {
            put(buffer, |w| {
                start.put(w);
                w.length(None);
                w.length(value);
            });
        }
        buffer.extend_from_slice(value.unwrap_or_default());
        if headers.is_empty() {
            buffer.push(0);
        } else {
            put_headers(buffer, headers);
        }
    }

    fn reserve(&mut self, bytes: usize) {
        self.buffer.reserve(bytes + 2 * WINDOW);
    }

    fn remove(&mut self, index: u32) {
        self.remove_all(&[index]);
    }

    fn remove_all(&mut self, indexes: &[u32]) {
        let whole = self.take();
        self.buffer.reserve(whole.buffer.len());
        let mut leaving = indexes.iter().copied().peekable();
        for (place, (timestamp, fields)) in (0_u32..).zip(whole.raw()) {
            if leaving.next_if_eq(&place).is_none() {
                self.push_raw(timestamp, fields);
            }
        }
    }

    fn split_off(&mut self, at: u32) -> Self {
        let whole = self.take();
        let mut others = Self::empty_with(self.attributes);
        for (place, (timestamp, fields)) in (0_u32..).zip(whole.raw()) {
            if place < at {
                self.push_raw(timestamp, fields);
            } else {
                others.push_raw(timestamp, fields);
            }
        }
        others
    }

    fn join(&mut self, behind: Self) {
        self.buffer.reserve(behind.buffer.len());
        for (timestamp, fields) in behind.raw() {
            self.push_raw(timestamp, fields);
        }
    }

    fn count(&self) -> u32 {
        self.count
    }

    fn bytes(&self) -> usize {
        self.buffer.len().max(BATCH_HEADER)
    }

    fn max_timestamp(&self) -> i64 {
        self.max_timestamp
    }

    fn freeze(self, identity: Identity, first: Sequence) -> FrozenBatch {
        let Self { mut buffer, count, base_timestamp, max_timestamp, attributes } = self;
        buffer.resize(buffer.len().max(BATCH_HEADER), 0);
        let header = BatchHeader {
            attributes,
            last_offset_delta: (count as i32).wrapping_sub(1),
            base_timestamp,
            max_timestamp,
            producer_id: identity.id.get(),
            producer_epoch: identity.epoch.get(),
            base_sequence: first.get(),
            count: count as i32,
            ..BatchHeader::EMPTY
        };
        header.write(&mut buffer);
        // The last growth may have left as much room as there are records: memory is accounted by
        // bytes sent.
        if buffer.capacity() - buffer.len() > buffer.len() / 4 {
            buffer.shrink_to_fit();
        }
        FrozenBatch { encoded: Bytes::from(buffer), count, max_timestamp }
    }
}

impl fmt::Debug for RecordBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordBatch")
            .field("count", &self.count)
            .field("bytes", &self.bytes())
            .field("base_timestamp", &self.base_timestamp)
            .field("max_timestamp", &self.max_timestamp)
            .field("attributes", &self.attributes)
            .finish()
    }
}

/// A batch as it is sent, under an identity and a sequence. Cheap to clone.
///
/// See [`RecordBatch`] for an example.
///
/// ```
/// use candor_core::{Identity, Payload, ProducerId, Sequence};
/// use candor_wire::{RecordBatch, RecordRef};
/// let mut batch = RecordBatch::empty();
/// batch.push(0, RecordRef::value(b"v"));
/// let frozen = batch.freeze(Identity::fresh(ProducerId::new(7).unwrap()), Sequence::ZERO);
/// let attempt = frozen.encoded().clone(); // no copy
/// assert_eq!(attempt.len(), 61 + 8);
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct FrozenBatch {
    encoded: Bytes,
    count: u32,
    max_timestamp: i64,
}

impl FrozenBatch {
    /// The bytes to send.
    pub const fn encoded(&self) -> &Bytes {
        &self.encoded
    }

    /// The fields of the header.
    pub fn header(&self) -> BatchHeader {
        BatchHeader::read(&self.encoded).map_or(BatchHeader::EMPTY, |(_, header)| header)
    }
}

impl Frozen for FrozenBatch {
    type Open = RecordBatch;

    /// Takes the buffer back; copies it if an attempt still holds it (rule S16).
    fn thaw(self) -> RecordBatch {
        let header = self.header();
        let (count, max_timestamp) = (self.count, self.max_timestamp);
        let mut buffer = Vec::from(self.encoded);
        if count == 0 {
            buffer.clear();
        }
        if let Some(free) = buffer.get_mut(..BATCH_HEADER) {
            free.fill(0);
        }
        let BatchHeader { base_timestamp, attributes, .. } = header;
        RecordBatch { buffer, count, base_timestamp, max_timestamp, attributes }
    }

    fn count(&self) -> u32 {
        self.count
    }

    fn bytes(&self) -> usize {
        self.encoded.len()
    }

    fn max_timestamp(&self) -> i64 {
        self.max_timestamp
    }
}

impl fmt::Debug for FrozenBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = self.header();
        f.debug_struct("FrozenBatch")
            .field("producer_id", &header.producer_id)
            .field("producer_epoch", &header.producer_epoch)
            .field("base_sequence", &header.base_sequence)
            .field("count", &self.count)
            .field("bytes", &self.encoded.len())
            .finish()
    }
}
