//! The 61 bytes in front of the records.

use core::fmt;

use bytes::BufMut;
use nom::Parser;

use crate::read::{Input, Parsed, int8, int16, int32, int64, uint32};

/// How many bytes the header of a batch takes; they are never compressed.
pub const BATCH_HEADER: usize = 61;

/// Where the checksum stands; it covers everything behind it.
const CHECKSUM: usize = 17;

/// The first byte that the checksum covers.
pub(super) const CHECKED: usize = CHECKSUM + 4;

/// How many bytes of the batch its length field does not count.
pub(super) const UNCOUNTED: usize = 12;

/// The compression of the records.
///
/// ```
/// use candor_wire::records::{Attributes, Codec};
/// assert_eq!(Attributes::from_bits(4).codec(), Some(Codec::Zstd));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Codec {
    /// None.
    Plain,
    /// gzip.
    Gzip,
    /// Snappy.
    Snappy,
    /// LZ4.
    Lz4,
    /// Zstandard, since Produce 7.
    Zstd,
}

/// The attribute bits of a batch: compression in bits 0 to 2, then timestamp type, transactional,
/// control.
///
/// ```
/// use candor_wire::records::{Attributes, Codec};
/// let attributes = Attributes::PLAIN.with_transactional();
/// assert!(attributes.is_transactional());
/// assert_eq!((attributes.bits(), attributes.codec()), (16, Some(Codec::Plain)));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Attributes(i16);

impl Attributes {
    /// Not compressed, CreateTime, not transactional, no control batch.
    pub const PLAIN: Self = Self(0);

    /// From the wire.
    pub const fn from_bits(bits: i16) -> Self {
        Self(bits)
    }

    /// On the wire.
    pub const fn bits(self) -> i16 {
        self.0
    }

    /// The same, transactional.
    #[must_use]
    pub const fn with_transactional(self) -> Self {
        Self(self.0 | 1 << 4)
    }

    /// Whether the batch belongs to a transaction.
    pub const fn is_transactional(self) -> bool {
        self.0 & 1 << 4 != 0
    }

    /// Whether the batch is a transaction marker.
    pub const fn is_control(self) -> bool {
        self.0 & 1 << 5 != 0
    }

    /// Whether the broker replaced the timestamps by its own (LogAppendTime).
    pub const fn is_log_append_time(self) -> bool {
        self.0 & 1 << 3 != 0
    }

    /// The compression, if it is one that Kafka has.
    pub const fn codec(self) -> Option<Codec> {
        match self.0 & 7 {
            0 => Some(Codec::Plain),
            1 => Some(Codec::Gzip),
            2 => Some(Codec::Snappy),
            3 => Some(Codec::Lz4),
            4 => Some(Codec::Zstd),
            _ => None,
        }
    }
}

impl fmt::Debug for Attributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Attributes({:#x})", self.0)
    }
}

/// The fields of the header, as they are on the wire.
///
/// ```
/// use candor_core::{Identity, Payload, ProducerId, Sequence};
/// use candor_wire::{RecordBatch, RecordRef};
/// let mut batch = RecordBatch::empty();
/// batch.push(1000, RecordRef::value(b"v"));
/// let frozen = batch.freeze(Identity::fresh(ProducerId::new(9).unwrap()), Sequence::ZERO);
/// let header = frozen.header();
/// assert_eq!((header.producer_id, header.count, header.base_timestamp), (9, 1, 1000));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchHeader {
    /// Offset of the first record; producers write 0.
    pub base_offset: i64,
    /// Size of the batch in bytes without its first twelve.
    pub length: i32,
    /// Epoch of the leader that appended it; producers write -1.
    pub leader_epoch: i32,
    /// The format: 2.
    pub magic: i8,
    /// CRC-32C of everything behind it.
    pub checksum: u32,
    /// Compression and flags.
    pub attributes: Attributes,
    /// Number of records less one.
    pub last_offset_delta: i32,
    /// Timestamp of the first record in milliseconds.
    pub base_timestamp: i64,
    /// Largest timestamp in milliseconds.
    pub max_timestamp: i64,
    /// The producer id, -1 for none.
    pub producer_id: i64,
    /// The producer epoch, -1 for none.
    pub producer_epoch: i16,
    /// Sequence of the first record, -1 for none.
    pub base_sequence: i32,
    /// Number of records.
    pub count: i32,
}

impl BatchHeader {
    /// Writes the header into the first bytes of `batch`, checksum and length included, whatever
    /// this value says of them. Does nothing if the bytes are not there.
    pub(super) fn write(&self, batch: &mut [u8]) {
        let length = batch.len().saturating_sub(UNCOUNTED) as i32;
        let Some(mut out) = batch.get_mut(..BATCH_HEADER) else { return };
        out.put_i64(self.base_offset);
        out.put_i32(length);
        out.put_i32(self.leader_epoch);
        out.put_i8(self.magic);
        out.put_u32(0);
        out.put_i16(self.attributes.bits());
        out.put_i32(self.last_offset_delta);
        out.put_i64(self.base_timestamp);
        out.put_i64(self.max_timestamp);
        out.put_i64(self.producer_id);
        out.put_i16(self.producer_epoch);
        out.put_i32(self.base_sequence);
        out.put_i32(self.count);
        if let Some((head, checked)) = batch.split_at_mut_checked(CHECKED)
            && let Some(place) = head.last_chunk_mut::<4>()
        {
            *place = crc32c::crc32c(checked).to_be_bytes();
        }
    }

    /// Reads a header.
    pub(super) fn read(input: Input<'_>) -> Parsed<'_, Self> {
        let (input, (base_offset, length, leader_epoch, magic, checksum, bits, last_offset_delta)) =
            (int64, int32, int32, int8, uint32, int16, int32).parse(input)?;
        let (input, (base_timestamp, max_timestamp)) = (int64, int64).parse(input)?;
        let (input, (producer_id, producer_epoch, base_sequence, count)) =
            (int64, int16, int32, int32).parse(input)?;
        let header = Self {
            base_offset,
            length,
            leader_epoch,
            magic,
            checksum,
            attributes: Attributes::from_bits(bits),
            last_offset_delta,
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            count,
        };
        Ok((input, header))
    }

    /// A header without meaning, for bytes that cannot be read.
    pub(super) const EMPTY: Self = Self {
        base_offset: 0,
        length: 0,
        leader_epoch: -1,
        magic: 2,
        checksum: 0,
        attributes: Attributes::PLAIN,
        last_offset_delta: -1,
        base_timestamp: -1,
        max_timestamp: -1,
        producer_id: -1,
        producer_epoch: -1,
        base_sequence: -1,
        count: 0,
    };
}
