//! Record batches.

use bytes::Bytes;
use candor_core::{Frozen, Identity, Payload, ProducerId, Sequence};
use candor_sim::codec;
use candor_wire::records::RecordView;
use candor_wire::{BatchReader, DecodeError, Header, RecordBatch, RecordRef};

use super::requests::read_back;

/// Where length, magic and checksum stand, and what the checksum covers.
const LENGTH: usize = 8;
const BEHIND_LENGTH: usize = 12;
const MAGIC: usize = 16;
const CHECKSUM: usize = 17;
const CHECKED: usize = 21;

/// Bits of the first byte put length, magic and checksum right, which no fuzzer guesses.
pub fn batch(data: &[u8]) {
    let Some((fix, bytes)) = data.split_first() else { return };
    let mut bytes = bytes.to_vec();
    put_right(*fix, &mut bytes);
    let Ok((reader, rest)) = BatchReader::read(&bytes) else { return };
    assert!(bytes.ends_with(rest), "what is left is the end");
    let whole = bytes.len() - rest.len();
    let records: Result<Vec<_>, DecodeError> = reader.records().collect();
    let Ok(records) = records else { return };
    assert_eq!(records.len(), usize::try_from(reader.header().count).expect("it was checked"));
    second_opinion(&bytes, whole, &reader, &records);
    if !records.is_empty() {
        write_again(&records);
    }
}

fn put_right(fix: u8, bytes: &mut [u8]) {
    if bytes.len() < CHECKED {
        return;
    }
    if fix & 1 != 0 {
        let length = (bytes.len() - BEHIND_LENGTH) as i32;
        bytes[LENGTH..BEHIND_LENGTH].copy_from_slice(&length.to_be_bytes());
    }
    if fix & 2 != 0 {
        bytes[MAGIC] = 2;
    }
    if fix & 4 != 0 {
        let checksum = crc32c::crc32c(&bytes[CHECKED..]);
        bytes[CHECKSUM..CHECKED].copy_from_slice(&checksum.to_be_bytes());
    }
}

/// The simulator's codec must accept it and read the same, unless it is stricter on purpose: it
/// wants every record to name its place.
fn second_opinion(
    bytes: &[u8],
    whole: usize,
    reader: &BatchReader<'_>,
    records: &[RecordView<'_>],
) {
    let theirs = codec::Batch::parse(Bytes::copy_from_slice(bytes)).expect("it is a batch");
    assert_eq!(theirs.bytes.len(), whole);
    let header = reader.header();
    assert_eq!(
        (theirs.header.producer_id, theirs.header.producer_epoch, theirs.header.base_sequence),
        (header.producer_id, header.producer_epoch, header.base_sequence)
    );
    let in_place = records
        .iter()
        .enumerate()
        .all(|(place, record)| record.offset == header.base_offset.wrapping_add(place as i64));
    if !in_place || theirs.header.attributes & codec::LOG_APPEND_TIME != 0 {
        return;
    }
    let theirs = theirs.records().expect("its records are read");
    assert_eq!(theirs.len(), records.len());
    for (theirs, ours) in theirs.iter().zip(records) {
        assert_eq!((theirs.offset, theirs.timestamp), (ours.offset, ours.timestamp));
        assert_eq!((theirs.key.as_deref(), theirs.value.as_deref()), (ours.key, ours.value));
        let named = theirs.headers.iter().map(|(name, value)| (&name[..], value.as_deref()));
        assert!(named.eq(ours.headers.clone().map(|(name, value)| (name.as_bytes(), value))));
    }
}

/// Written by us, the records read the same again.
fn write_again(records: &[RecordView<'_>]) {
    let mut batch = RecordBatch::empty();
    for record in records {
        let header = |(key, value): (&'_ str, Option<&'_ [u8]>)| Header {
            key: key.to_owned().into(),
            value: value.map(|value| value.to_vec().into()),
        };
        let headers: Vec<_> = record.headers.clone().map(header).collect();
        let copy = RecordRef { key: record.key, value: record.value, headers: &headers };
        let size = batch.size_with(record.timestamp, &copy);
        batch.push(record.timestamp, copy);
        assert_eq!(batch.bytes(), size);
    }
    let identity = Identity::fresh(ProducerId::new(7).expect("not negative"));
    let frozen = batch.clone().freeze(identity, Sequence::ZERO);
    read_back(&frozen);
    let (again, _) = BatchReader::read(frozen.encoded()).expect("we read what we write");
    let again: Vec<_> = again.records().map(|r| r.expect("we read what we write")).collect();
    assert_eq!(again.len(), records.len());
    for (place, (one, other)) in again.iter().zip(records).enumerate() {
        assert_eq!(one.offset, place as i64);
        assert_eq!((one.timestamp, one.key, one.value), (other.timestamp, other.key, other.value));
        assert!(one.headers.clone().eq(other.headers.clone()));
    }
    drop(again);
    assert_eq!(frozen.thaw(), batch);
}
