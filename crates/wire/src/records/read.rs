//! Reading batches: for users who check what was written, and for our own rewriting.

use nom::Parser;

use super::header::{BATCH_HEADER, BatchHeader, CHECKED, Codec, UNCOUNTED};
use crate::error::{DecodeError, Malformed};
use crate::read::{Bad, Input, Parsed, bad, describe, inside, int8, take, varint, varlong};

/// What errors call the thing that is read here.
const MESSAGE: &str = "record batch";

/// The format, where errors have a version.
const MAGIC: i16 = 2;

/// The fewest bytes that a record takes: length, attributes, two deltas, key, value, headers.
const LEAST_RECORD: usize = 7;

/// One batch whose length and checksum are right.
///
/// ```
/// use candor_core::{Identity, Payload, ProducerId, Sequence};
/// use candor_wire::{BatchReader, RecordBatch, RecordRef};
/// let mut batch = RecordBatch::empty();
/// batch.push(1000, RecordRef::value(b"v"));
/// let frozen = batch.freeze(Identity::fresh(ProducerId::new(9).unwrap()), Sequence::ZERO);
///
/// let (batch, rest) = BatchReader::read(frozen.encoded()).unwrap();
/// assert!(rest.is_empty());
/// let record = batch.records().next().unwrap().unwrap();
/// assert_eq!((record.timestamp, record.value), (1000, Some(&b"v"[..])));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchReader<'a> {
    header: BatchHeader,
    records: &'a [u8],
}

impl<'a> BatchReader<'a> {
    /// Reads the batch at the start of `bytes`; gives the bytes behind it, too.
    ///
    /// # Errors
    ///
    /// There is no whole batch of format 2 with the right checksum, or it announces more records
    /// than its bytes could hold, or it is compressed.
    pub fn read(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), DecodeError> {
        let (rest, reader) =
            Self::parse(bytes).map_err(|error| describe(MESSAGE, MAGIC, bytes.len(), error))?;
        Ok((reader, rest))
    }

    fn parse(input: Input<'a>) -> Parsed<'a, Self> {
        let (_, header) = BatchHeader::read(input)?;
        if header.magic != 2 {
            return bad(input, Malformed::Magic);
        }
        let size = match usize::try_from(header.length) {
            Ok(length) if length >= BATCH_HEADER - UNCOUNTED => length + UNCOUNTED,
            Ok(_) => return bad(input, Malformed::Truncated),
            Err(_) => return bad(input, Malformed::NegativeLength),
        };
        let (rest, batch) = take(size)(input)?;
        let (checked, records) = (
            batch.get(CHECKED..).unwrap_or_default(),
            batch.get(BATCH_HEADER..).unwrap_or_default(),
        );
        if crc32c::crc32c(checked) != header.checksum {
            return bad(input, Malformed::Checksum);
        }
        if header.attributes.codec() != Some(Codec::Plain) {
            return bad(input, Malformed::Compressed);
        }
        match usize::try_from(header.count) {
            Ok(count) if count <= records.len() / LEAST_RECORD => {
                Ok((rest, Self { header, records }))
            }
            Ok(_) => bad(input, Malformed::CountTooLarge),
            Err(_) => bad(input, Malformed::NegativeLength),
        }
    }

    /// The fields of the header.
    pub const fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// The records, in order. After an error there are no more.
    pub fn records(&self) -> Records<'a> {
        Records {
            rest: self.records,
            size: self.records.len(),
            left: self.header.count,
            base_offset: self.header.base_offset,
            base_timestamp: self.header.base_timestamp,
        }
    }
}

/// Iterates the records of a batch. Made by [`BatchReader::records`].
///
/// ```
/// fn count(batch: &candor_wire::BatchReader<'_>) -> usize {
///     batch.records().filter(Result::is_ok).count()
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Records<'a> {
    rest: &'a [u8],
    size: usize,
    left: i32,
    base_offset: i64,
    base_timestamp: i64,
}

impl<'a> Records<'a> {
    fn step(&mut self) -> Result<Option<RecordView<'a>>, nom::Err<Bad>> {
        if self.left <= 0 {
            return match self.rest {
                [] => Ok(None),
                rest => bad(rest, Malformed::Trailing).map(|(_, ())| None),
            };
        }
        let (rest, raw) = RawRecord::parse(self.rest)?;
        let view = RecordView::parse(&raw, self.base_offset, self.base_timestamp)
            .map_err(|error| inside(error, rest))?;
        self.rest = rest;
        self.left -= 1;
        Ok(Some(view))
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<RecordView<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let stepped = self.step();
        if stepped.is_err() {
            (self.left, self.rest) = (0, &[]);
        }
        stepped
            .map_err(|error| describe(MESSAGE, MAGIC, BATCH_HEADER + self.size, error))
            .transpose()
    }
}

/// A record's place and timestamp, and its key, value and headers as they are on the wire.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawRecord<'a> {
    pub(super) timestamp_delta: i64,
    pub(super) offset_delta: i32,
    pub(super) fields: &'a [u8],
}

impl<'a> RawRecord<'a> {
    /// Reads one record.
    pub(super) fn parse(input: Input<'a>) -> Parsed<'a, Self> {
        let (body, length) = varint(input)?;
        let Ok(length) = usize::try_from(length) else {
            return bad(input, Malformed::NegativeLength);
        };
        let (rest, body) = take(length)(body)?;
        let (fields, (_, timestamp_delta, offset_delta)) =
            (int8, varlong, varint).parse(body).map_err(|error| inside(error, rest))?;
        Ok((rest, Self { timestamp_delta, offset_delta, fields }))
    }
}

/// A record in the bytes of its batch.
///
/// ```
/// fn text<'a>(record: &candor_wire::records::RecordView<'a>) -> Option<&'a str> {
///     core::str::from_utf8(record.value?).ok()
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordView<'a> {
    /// Its offset: that of the batch and its place in it.
    pub offset: i64,
    /// Its timestamp in milliseconds, -1 for none.
    pub timestamp: i64,
    /// The key.
    pub key: Option<&'a [u8]>,
    /// The value.
    pub value: Option<&'a [u8]>,
    /// The headers.
    pub headers: HeaderViews<'a>,
}

impl<'a> RecordView<'a> {
    fn parse(
        raw: &RawRecord<'a>,
        base_offset: i64,
        base_timestamp: i64,
    ) -> Result<Self, nom::Err<Bad>> {
        let (input, (key, value, count)) = (field, field, varint).parse(raw.fields)?;
        let headers = HeaderViews { rest: input, left: count };
        let Ok(count) = usize::try_from(count) else {
            return bad(input, Malformed::NegativeLength).map(|(_, never)| never);
        };
        let mut rest = input;
        for _ in 0..count {
            (rest, _) = header(rest)?;
        }
        if !rest.is_empty() {
            return bad(rest, Malformed::Trailing).map(|(_, never)| never);
        }
        Ok(Self {
            offset: base_offset.wrapping_add(i64::from(raw.offset_delta)),
            timestamp: base_timestamp.wrapping_add(raw.timestamp_delta),
            key,
            value,
            headers,
        })
    }
}

/// Iterates the headers of a record: key, and value or null.
///
/// ```
/// fn has(record: &candor_wire::records::RecordView<'_>, key: &str) -> bool {
///     record.headers.clone().any(|(k, _)| k == key)
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderViews<'a> {
    rest: &'a [u8],
    left: i32,
}

impl<'a> Iterator for HeaderViews<'a> {
    type Item = (&'a str, Option<&'a [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.left <= 0 {
            return None;
        }
        let (rest, header) = header(self.rest).ok()?;
        self.rest = rest;
        self.left -= 1;
        Some(header)
    }
}

fn header(input: Input<'_>) -> Parsed<'_, (&str, Option<&[u8]>)> {
    let (rest, key) = field(input)?;
    let Some(key) = key else { return bad(input, Malformed::NullNotAllowed) };
    let Ok(key) = core::str::from_utf8(key) else { return bad(input, Malformed::NotUtf8) };
    let (rest, value) = field(rest)?;
    Ok((rest, (key, value)))
}

/// A length and so many bytes; -1 is null.
fn field(input: Input<'_>) -> Parsed<'_, Option<&[u8]>> {
    let (rest, length) = varint(input)?;
    match usize::try_from(length) {
        Ok(length) => take(length).map(Some).parse(rest),
        Err(_) if length == -1 => Ok((rest, None)),
        Err(_) => bad(input, Malformed::NegativeLength),
    }
}
