//! Record batches, magic 2: the 61 bytes of header, the records, and CRC-32C over all but the
//! first 21 bytes.

use std::fmt;

use bytes::Bytes;

use super::bytes::{Malformed, Reader, Writer, wire_length};

/// Bytes of a batch in front of its records.
pub const BATCH_HEADER: usize = 61;
/// Bytes in front of those that `batch_length` counts.
const LENGTH_PREFIX: usize = 12;
/// Where the bytes begin that the checksum covers.
const CRC_FROM: usize = 21;
/// Attribute bit: record timestamps are append times.
pub const LOG_APPEND_TIME: i16 = 1 << 3;
/// Attribute bit: the batch belongs to a transaction.
pub const TRANSACTIONAL: i16 = 1 << 4;
/// Attribute bit: a control batch, which no client may send.
pub const CONTROL: i16 = 1 << 5;

/// Why some bytes are not a readable record batch.
///
/// ```
/// use candor_sim::codec::{Batch, BatchError};
/// assert_eq!(Batch::parse(vec![0; 8].into()), Err(BatchError::Truncated { wanted: 61, got: 8 }));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchError {
    /// The bytes end before the batch does.
    Truncated {
        /// Bytes that the batch claims.
        wanted: usize,
        /// Bytes that are there.
        got: usize,
    },
    /// `batch_length` is below the size of a header.
    Length(i32),
    /// A format other than 2.
    Magic(i8),
    /// The checksum is another.
    Crc {
        /// As the batch says.
        stored: u32,
        /// As computed.
        computed: u32,
    },
    /// The records are compressed: decompress [`Batch::body`] and read it with
    /// [`Batch::records_in`].
    Compressed(i16),
    /// A record is broken.
    Record(Malformed),
    /// A record's length is not that of its fields, or its offset is not the next one.
    Inconsistent,
}

impl fmt::Display for BatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { wanted, got } => write!(f, "batch of {wanted} bytes cut at {got}"),
            Self::Length(n) => write!(f, "batch length {n}"),
            Self::Magic(n) => write!(f, "magic {n}, only 2 is known"),
            Self::Crc { stored, computed } => {
                write!(f, "checksum {stored:08x}, computed {computed:08x}")
            }
            Self::Compressed(codec) => write!(f, "compressed with codec {codec}"),
            Self::Record(why) => write!(f, "record: {why}"),
            Self::Inconsistent => f.write_str("record length or offset delta is wrong"),
        }
    }
}

impl std::error::Error for BatchError {}

impl From<Malformed> for BatchError {
    fn from(why: Malformed) -> Self {
        Self::Record(why)
    }
}

/// The fields of a batch header, raw.
///
/// ```
/// use candor_sim::codec::BatchHeader;
/// let header = BatchHeader { producer_id: 7, count: 3, last_offset_delta: 2, ..Default::default() };
/// assert_eq!((header.magic, header.codec()), (2, 0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchHeader {
    /// Offset of the first record; 0 from a client.
    pub base_offset: i64,
    /// Bytes behind this field; [`BatchBuilder::build`] and [`Batch::parse`] know it.
    pub batch_length: i32,
    /// Leader epoch under which it was appended, -1 from a client. The checksum skips it.
    pub leader_epoch: i32,
    /// The format, 2.
    pub magic: i8,
    /// CRC-32C.
    pub crc: u32,
    /// Codec in bits 0 to 2, [`LOG_APPEND_TIME`], [`TRANSACTIONAL`], [`CONTROL`].
    pub attributes: i16,
    /// Offset of the last record, counted from the base: one less than `count`.
    pub last_offset_delta: i32,
    /// Timestamp of the first record, milliseconds.
    pub base_timestamp: i64,
    /// Largest timestamp, milliseconds.
    pub max_timestamp: i64,
    /// Producer id or -1.
    pub producer_id: i64,
    /// Producer epoch or -1.
    pub producer_epoch: i16,
    /// First sequence or -1.
    pub base_sequence: i32,
    /// How many records.
    pub count: i32,
}

impl Default for BatchHeader {
    fn default() -> Self {
        Self {
            base_offset: 0,
            batch_length: 0,
            leader_epoch: -1,
            magic: 2,
            crc: 0,
            attributes: 0,
            last_offset_delta: 0,
            base_timestamp: 0,
            max_timestamp: 0,
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
            count: 0,
        }
    }
}

impl BatchHeader {
    /// The compression: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.
    pub fn codec(&self) -> i16 {
        self.attributes & 7
    }

    fn read(r: &mut Reader) -> Result<Self, Malformed> {
        Ok(Self {
            base_offset: r.i64()?,
            batch_length: r.i32()?,
            leader_epoch: r.i32()?,
            magic: r.i8()?,
            crc: r.u32()?,
            attributes: r.i16()?,
            last_offset_delta: r.i32()?,
            base_timestamp: r.i64()?,
            max_timestamp: r.i64()?,
            producer_id: r.i64()?,
            producer_epoch: r.i16()?,
            base_sequence: r.i32()?,
            count: r.i32()?,
        })
    }

    /// The part under the checksum.
    fn write_covered(&self, w: &mut Writer) {
        w.i16(self.attributes);
        w.i32(self.last_offset_delta);
        w.i64(self.base_timestamp);
        w.i64(self.max_timestamp);
        w.i64(self.producer_id);
        w.i16(self.producer_epoch);
        w.i32(self.base_sequence);
        w.i32(self.count);
    }
}

/// One record as it stands in a log.
///
/// ```
/// use candor_sim::codec::Record;
/// let record = Record::new(1_700_000_000_000, Some(b"key"), Some(b"value"));
/// assert!(record.headers.is_empty());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Offset in the log, or in the batch if that has no offset yet.
    pub offset: i64,
    /// Milliseconds since the Unix epoch.
    pub timestamp: i64,
    /// Key or null.
    pub key: Option<Bytes>,
    /// Value or null.
    pub value: Option<Bytes>,
    /// Headers in order; names may repeat and be empty.
    pub headers: Vec<(Bytes, Option<Bytes>)>,
}

impl Record {
    /// A record without headers.
    pub fn new(timestamp: i64, key: Option<&[u8]>, value: Option<&[u8]>) -> Self {
        Self {
            offset: 0,
            timestamp,
            key: key.map(Bytes::copy_from_slice),
            value: value.map(Bytes::copy_from_slice),
            headers: Vec::new(),
        }
    }

    /// With one more header.
    #[must_use]
    pub fn with_header(mut self, name: &[u8], value: Option<&[u8]>) -> Self {
        self.headers.push((Bytes::copy_from_slice(name), value.map(Bytes::copy_from_slice)));
        self
    }

    fn read(r: &mut Reader, header: &BatchHeader, place: i32) -> Result<Self, BatchError> {
        let length = usize::try_from(r.varint()?).map_err(|_| BatchError::Inconsistent)?;
        let mut r = Reader::new(r.take(length)?, false);
        let _attributes = r.i8()?;
        let timestamp = header.base_timestamp.wrapping_add(r.varlong()?);
        if r.varint()? != place {
            return Err(BatchError::Inconsistent);
        }
        let key = nullable(&mut r)?;
        let value = nullable(&mut r)?;
        let mut headers = Vec::new();
        for _ in 0..u32::try_from(r.varint()?).map_err(|_| BatchError::Inconsistent)? {
            let name = nullable(&mut r)?.ok_or(Malformed::UnexpectedNull)?;
            headers.push((name, nullable(&mut r)?));
        }
        if r.left() > 0 {
            return Err(BatchError::Inconsistent);
        }
        // An append-time batch has one time for all: the largest.
        let timestamp = match header.attributes & LOG_APPEND_TIME {
            0 => timestamp,
            _ => header.max_timestamp,
        };
        Ok(Self {
            offset: header.base_offset.wrapping_add(i64::from(place)),
            timestamp,
            key,
            value,
            headers,
        })
    }

    fn write(&self, w: &mut Writer, base_timestamp: i64, place: i32) {
        let mut body = Writer::new(false);
        body.i8(0);
        body.varlong(self.timestamp.wrapping_sub(base_timestamp));
        body.varint(place);
        put(&mut body, self.key.as_deref());
        put(&mut body, self.value.as_deref());
        body.varint(wire_length(self.headers.len()));
        for (name, value) in &self.headers {
            put(&mut body, Some(name));
            put(&mut body, value.as_deref());
        }
        let body = body.into_bytes();
        w.varint(wire_length(body.len()));
        w.raw(&body);
    }
}

/// Bytes behind a zigzag length; -1 is null.
fn nullable(r: &mut Reader) -> Result<Option<Bytes>, Malformed> {
    match r.varint()? {
        -1 => Ok(None),
        n => {
            let n = usize::try_from(n).map_err(|_| Malformed::NegativeLength(n))?;
            r.take(n).map(Some)
        }
    }
}

fn put(w: &mut Writer, bytes: Option<&[u8]>) {
    w.varint(bytes.map_or(-1, |all| wire_length(all.len())));
    w.raw(bytes.unwrap_or_default());
}

/// A whole batch: its header and its records, still packed.
///
/// ```
/// use candor_sim::codec::{Batch, BatchBuilder, Record};
/// let bytes = BatchBuilder::new(7, 0, 0).record(Record::new(1, None, Some(b"v"))).build();
/// let batch = Batch::parse(bytes.into()).unwrap();
/// assert_eq!(batch.header.count, 1);
/// assert_eq!(batch.records().unwrap()[0].value.as_deref(), Some(&b"v"[..]));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The header.
    pub header: BatchHeader,
    /// The records, compressed if the header says so.
    pub body: Bytes,
    /// The batch as it came.
    pub bytes: Bytes,
}

impl Batch {
    /// Reads the first batch of `bytes`, which may go on behind it, and checks length, magic and
    /// checksum. What the fields say to each other is for the broker to judge.
    ///
    /// # Errors
    /// [`BatchError::Truncated`], [`BatchError::Length`], [`BatchError::Magic`] and
    /// [`BatchError::Crc`].
    pub fn parse(bytes: Bytes) -> Result<Self, BatchError> {
        let batch = Self::parse_unchecked(bytes)?;
        let computed = crc32c::crc32c(&batch.bytes[CRC_FROM..]);
        match batch.header.crc {
            stored if stored == computed => Ok(batch),
            stored => Err(BatchError::Crc { stored, computed }),
        }
    }

    /// As [`Self::parse`], but whatever the checksum says.
    ///
    /// # Errors
    /// [`BatchError::Truncated`], [`BatchError::Length`] and [`BatchError::Magic`].
    pub fn parse_unchecked(bytes: Bytes) -> Result<Self, BatchError> {
        let got = bytes.len();
        let short = |wanted| BatchError::Truncated { wanted, got };
        let mut r = Reader::new(bytes.clone(), false);
        let header = BatchHeader::read(&mut r).map_err(|_| short(BATCH_HEADER))?;
        if header.magic != 2 {
            return Err(BatchError::Magic(header.magic));
        }
        let length = usize::try_from(header.batch_length).unwrap_or_default();
        if length < BATCH_HEADER - LENGTH_PREFIX {
            return Err(BatchError::Length(header.batch_length));
        }
        let wanted = length + LENGTH_PREFIX;
        if wanted > got {
            return Err(short(wanted));
        }
        let bytes = bytes.slice(..wanted);
        Ok(Self { header, body: bytes.slice(BATCH_HEADER..), bytes })
    }

    /// The records.
    ///
    /// # Errors
    /// [`BatchError::Compressed`], [`BatchError::Record`] and [`BatchError::Inconsistent`].
    pub fn records(&self) -> Result<Vec<Record>, BatchError> {
        match self.header.codec() {
            0 => self.records_in(self.body.clone()),
            codec => Err(BatchError::Compressed(codec)),
        }
    }

    /// The records of a body that was decompressed elsewhere.
    ///
    /// # Errors
    /// [`BatchError::Record`] and [`BatchError::Inconsistent`].
    pub fn records_in(&self, body: Bytes) -> Result<Vec<Record>, BatchError> {
        let mut r = Reader::new(body, false);
        let mut all = Vec::new();
        for place in 0..self.header.count {
            all.push(Record::read(&mut r, &self.header, place)?);
        }
        match r.left() {
            0 => Ok(all),
            _ => Err(BatchError::Inconsistent),
        }
    }

    /// The batch as a log stores it: with its offset and leader epoch, and without the
    /// append-time bit a client may have set (measured on 3.9 to 4.4).
    #[must_use]
    pub fn stored(&self, base_offset: i64, leader_epoch: i32) -> Self {
        let attributes = self.header.attributes & !LOG_APPEND_TIME;
        self.rewritten(BatchHeader { base_offset, leader_epoch, attributes, ..self.header })
    }

    /// The same on a topic whose records carry the time of the append, in milliseconds.
    #[must_use]
    pub fn stored_at(&self, base_offset: i64, leader_epoch: i32, append_time: i64) -> Self {
        self.rewritten(BatchHeader {
            base_offset,
            leader_epoch,
            attributes: self.header.attributes | LOG_APPEND_TIME,
            max_timestamp: append_time,
            ..self.header
        })
    }

    fn rewritten(&self, header: BatchHeader) -> Self {
        let bytes = Bytes::from(seal(header, &self.body));
        let crc = crc32c::crc32c(&bytes[CRC_FROM..]);
        Self { header: BatchHeader { crc, ..header }, body: bytes.slice(BATCH_HEADER..), bytes }
    }
}

/// All batches of a log or of a fetched records field, one behind the other. A batch that is cut
/// off at the end is left out, as a fetch may end anywhere.
///
/// ```
/// use candor_sim::codec::{BatchBuilder, Record, batches};
/// let one = BatchBuilder::new(-1, -1, -1).record(Record::new(0, None, None)).build();
/// let two = [&one[..], &one[..], &one[..20]].concat();
/// assert_eq!(batches(two.into()).unwrap().len(), 2);
/// ```
///
/// # Errors
/// Those of [`Batch::parse`], but for [`BatchError::Truncated`].
pub fn batches(mut bytes: Bytes) -> Result<Vec<Batch>, BatchError> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        match Batch::parse(bytes.clone()) {
            Ok(batch) => {
                let _read = bytes.split_to(batch.bytes.len());
                all.push(batch);
            }
            Err(BatchError::Truncated { .. }) => break,
            Err(why) => return Err(why),
        }
    }
    Ok(all)
}

/// Builds batches, right and wrong ones: every header field can be set apart from the length and
/// the checksum, which follow from the rest.
///
/// ```
/// use candor_sim::codec::{BatchBuilder, Record};
/// let bytes = BatchBuilder::new(7, 0, 0).record(Record::new(0, None, None)).build();
/// assert_eq!(bytes.len(), 68);
/// ```
#[derive(Clone, Debug, Default)]
pub struct BatchBuilder {
    header: BatchHeader,
    records: Vec<Record>,
    count: Option<i32>,
    last_offset_delta: Option<i32>,
}

impl BatchBuilder {
    /// A batch of this producer id, epoch and first sequence.
    pub fn new(producer_id: i64, producer_epoch: i16, base_sequence: i32) -> Self {
        let header =
            BatchHeader { producer_id, producer_epoch, base_sequence, ..BatchHeader::default() };
        Self { header, ..Self::default() }
    }

    /// With one more record.
    #[must_use]
    pub fn record(mut self, record: Record) -> Self {
        self.records.push(record);
        self
    }

    /// With `n` records of some content each.
    #[must_use]
    pub fn records(self, n: usize, timestamp: i64, value: &[u8]) -> Self {
        (0..n).fold(self, |all, _| all.record(Record::new(timestamp, None, Some(value))))
    }

    /// With these attributes.
    #[must_use]
    pub fn attributes(mut self, attributes: i16) -> Self {
        self.header.attributes = attributes;
        self
    }

    /// With this base offset.
    #[must_use]
    pub fn base_offset(mut self, offset: i64) -> Self {
        self.header.base_offset = offset;
        self
    }

    /// Lying about the number of records.
    #[must_use]
    pub fn claim(mut self, count: i32, last_offset_delta: i32) -> Self {
        self.count = Some(count);
        self.last_offset_delta = Some(last_offset_delta);
        self
    }

    /// The bytes.
    pub fn build(self) -> Vec<u8> {
        let base_timestamp = self.records.first().map_or(0, |first| first.timestamp);
        let mut body = Writer::new(false);
        for (place, record) in (0..).zip(&self.records) {
            record.write(&mut body, base_timestamp, place);
        }
        let n = wire_length(self.records.len());
        let header = BatchHeader {
            last_offset_delta: self.last_offset_delta.unwrap_or(n - 1),
            base_timestamp,
            max_timestamp: self.records.iter().map(|one| one.timestamp).max().unwrap_or(0),
            count: self.count.unwrap_or(n),
            ..self.header
        };
        seal(header, &body.into_bytes())
    }
}

/// Header and body as bytes, with the right length and checksum.
fn seal(header: BatchHeader, body: &[u8]) -> Vec<u8> {
    let mut covered = Writer::new(false);
    header.write_covered(&mut covered);
    covered.raw(body);
    let covered = covered.into_bytes();
    let mut w = Writer::new(false);
    w.i64(header.base_offset);
    w.i32(wire_length(covered.len() + CRC_FROM - LENGTH_PREFIX));
    w.i32(header.leader_epoch);
    w.i8(header.magic);
    w.u32(crc32c::crc32c(&covered));
    w.raw(&covered);
    w.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::super::testing::hex;
    use super::*;

    const NOON: i64 = 1_700_000_000_000;

    fn check(built: BatchBuilder, golden: &str) {
        let golden = hex(golden);
        let records = built.records.clone();
        assert_eq!(built.build(), golden);
        let read = Batch::parse(golden.into()).unwrap().records().unwrap();
        assert_eq!(read.len(), records.len());
        for (place, (read, written)) in read.into_iter().zip(records).enumerate() {
            assert_eq!(read, Record { offset: place as i64, ..written });
        }
    }

    #[test]
    fn the_checksum_is_castagnoli() {
        assert_eq!(crc32c::crc32c(b"123456789"), 0xe306_9283);
    }

    #[test]
    fn null_and_empty_differ() {
        check(
            BatchBuilder::new(7, 0, 0).record(Record::new(0, None, None)),
            "000000000000000000000038ffffffff0270678896000000000000000000000000000000000000000000000000000000
             000007000000000000000000010c000000010100",
        );
        check(
            BatchBuilder::new(7, 0, 0).record(Record::new(0, Some(b""), Some(b""))),
            "000000000000000000000038ffffffff02c684829f000000000000000000000000000000000000000000000000000000
             000007000000000000000000010c000000000000",
        );
    }

    #[test]
    fn timestamps_may_go_back() {
        check(
            BatchBuilder::new(7, 1, 10)
                .record(Record::new(1000, Some(b"a"), Some(b"1")))
                .record(Record::new(1001, None, Some(b"2")))
                .record(Record::new(999, Some(b"c"), None)),
            "00000000000000000000004affffffff0238ef45e500000000000200000000000003e800000000000003e90000000000
             00000700010000000a000000031000000002610231000e000202010232000e00010402630100",
        );
    }

    #[test]
    fn headers_repeat_and_may_be_null_or_empty() {
        check(
            BatchBuilder::new(1 << 32, i16::MAX, i32::MAX).record(
                Record::new(NOON, Some(b"k"), Some(b"v"))
                    .with_header(b"a", Some(b"1"))
                    .with_header(b"a", Some(b"2"))
                    .with_header(b"b", None)
                    .with_header(b"c", Some(b""))
                    .with_header(b"", Some(b"x")),
            ),
            "00000000000000000000004bffffffff0267330e300000000000000000018bcfe568000000018bcfe568000000000100
             0000007fff7fffffff0000000132000000026b02760a0261023102610232026201026300000278",
        );
    }

    #[test]
    fn long_deltas_and_the_transactional_bit() {
        check(
            BatchBuilder::new(9, 3, i32::MAX)
                .attributes(TRANSACTIONAL)
                .record(Record::new(0, Some(b"k"), Some(b"v")))
                .record(Record::new(NOON, Some(b"k"), Some(b"w"))),
            "000000000000000000000048ffffffff02721259bf00100000000100000000000000000000018bcfe568000000000000
             00000900037fffffff0000000210000000026b0276001a0080a0abfef96202026b027700",
        );
    }

    #[test]
    fn batches_of_the_protocol_reference() {
        check(
            BatchBuilder::new(4000, 3, 7)
                .record(
                    Record::new(NOON, Some(b"k"), Some(b"v")).with_header(b"h", Some(b"x")),
                )
                .record(Record::new(NOON + 5, None, Some(b"")).with_header(b"n", None)),
            "000000000000000000000048ffffffff02d94b374f0000000000010000018bcfe568000000018bcfe568050000000000000fa0
             0003000000070000000218000000026b0276020268027812000a02010002026e01",
        );
        check(
            BatchBuilder::new(4000, 3, 0)
                .attributes(TRANSACTIONAL)
                .record(Record::new(NOON, Some(b"k"), Some(b"v"))),
            "00000000000000000000003affffffff028745a49e0010000000000000018bcfe568000000018bcfe568000000000000000fa0
             0003000000000000000110000000026b027600",
        );
    }

    #[test]
    fn spoiled_batches_are_named() {
        let good = BatchBuilder::new(7, 0, 0).records(2, 5, b"v").build();
        for cut in 0..good.len() {
            let cut = Batch::parse(good[..cut].to_vec().into());
            assert!(matches!(cut, Err(BatchError::Truncated { .. })));
        }
        let flipped = |at: usize| {
            let mut bytes = good.clone();
            bytes[at] ^= 1;
            Batch::parse(bytes.into())
        };
        assert_eq!(flipped(16), Err(BatchError::Magic(3)));
        for at in (17..good.len()).filter(|at| !(8..12).contains(at)) {
            assert!(matches!(flipped(at), Err(BatchError::Crc { .. })), "{at}");
        }
        let liar = BatchBuilder::new(7, 0, 0).records(2, 5, b"v").claim(3, 2).build();
        let liar = Batch::parse(liar.into()).unwrap();
        assert!(matches!(liar.records(), Err(BatchError::Record(Malformed::Short { .. }))));
        let liar = BatchBuilder::new(7, 0, 0).records(2, 5, b"v").claim(1, 0).build();
        assert_eq!(Batch::parse(liar.into()).unwrap().records(), Err(BatchError::Inconsistent));
        let gzip = BatchBuilder::new(7, 0, 0).attributes(1).records(1, 5, b"v").build();
        assert_eq!(Batch::parse(gzip.into()).unwrap().records(), Err(BatchError::Compressed(1)));
    }

    #[test]
    fn storing_keeps_the_records_and_clears_the_append_time_bit() {
        let sent = BatchBuilder::new(7, 0, 0).attributes(LOG_APPEND_TIME).records(2, 5, b"v");
        let stored = Batch::parse(sent.build().into()).unwrap().stored(41, 3);
        let again = Batch::parse(stored.bytes.clone()).unwrap();
        assert_eq!(again, stored);
        assert_eq!((again.header.leader_epoch, again.header.attributes), (3, 0));
        assert_eq!(again.records().unwrap()[1].offset, 42);
        let stamped = Batch::parse(stored.stored_at(41, 3, 99).bytes).unwrap();
        assert!(stamped.records().unwrap().iter().all(|record| record.timestamp == 99));
    }
}
