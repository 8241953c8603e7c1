//! Record batches: what users feed (the SHAPE rows of the fault log), and a model of all changes,
//! both read back by another decoder.

#![allow(clippy::unwrap_used, reason = "a helper of tests fails the test")]

use bytes::Bytes;
use candor_core::{Frozen, Identity, Payload, ProducerEpoch, ProducerId, Sequence};
use candor_wire::records::{Attributes, BATCH_HEADER};
use candor_wire::{BatchReader, FrozenBatch, Header, Malformed, RecordBatch, RecordRef};
use kafka_protocol::records::{RecordBatchDecoder, RecordSet};
use proptest::prelude::*;

/// Kafka's `max.message.bytes`, unless set.
const DEFAULT_LIMIT: usize = 1_048_588;

fn identity() -> Identity {
    Identity { id: ProducerId::new(4000).unwrap(), epoch: ProducerEpoch::new(3).unwrap() }
}

fn freeze(batch: RecordBatch) -> FrozenBatch {
    batch.freeze(identity(), Sequence::new(7).unwrap())
}

fn of(records: &[(i64, RecordRef<'_>)]) -> RecordBatch {
    let mut batch = RecordBatch::empty();
    for (timestamp, record) in records {
        batch.push(*timestamp, *record);
    }
    batch
}

/// What the other decoder makes of it; its batch header was checked by then.
#[track_caller]
fn oracle(frozen: &FrozenBatch) -> RecordSet {
    let mut bytes = frozen.encoded().clone();
    let mut sets = RecordBatchDecoder::decode_all(&mut bytes).unwrap();
    assert_eq!(sets.len(), 1);
    sets.remove(0)
}

/// One record alone, as the other decoder reads it: key, value, timestamp.
#[track_caller]
fn alone(timestamp: i64, record: RecordRef<'_>) -> (Option<Bytes>, Option<Bytes>, i64) {
    let record = oracle(&freeze(of(&[(timestamp, record)]))).records.remove(0);
    (record.key, record.value, record.timestamp)
}

#[test]
fn shape_9_null_and_empty_keys_are_different() {
    let keyed = |key| RecordRef { key, value: Some(b"v"), headers: &[] };
    assert_eq!(alone(0, keyed(None)).0, None);
    assert_eq!(alone(0, keyed(Some(b""))).0, Some(Bytes::new()));
    assert_ne!(of(&[(0, keyed(None))]), of(&[(0, keyed(Some(b"")))]));
}

#[test]
fn shape_11_key_and_value_null_take_seven_bytes() {
    let batch = of(&[(0, RecordRef::default())]);
    assert_eq!(batch.bytes(), BATCH_HEADER + 7);
    assert_eq!(alone(0, RecordRef::default()), (None, None, 0));
}

/// Entry 141: (k, null), (k, empty), (null, v), (empty, v).
#[test]
fn null_is_never_written_as_empty() {
    let (k, v, empty) = (Some(&b"k"[..]), Some(&b"v"[..]), Some(&b""[..]));
    for (key, value) in [(k, None), (k, empty), (None, v), (empty, v)] {
        let read = alone(0, RecordRef { key, value, headers: &[] });
        assert_eq!((read.0.as_deref(), read.1.as_deref()), (key, value));
    }
}

#[test]
fn shape_15_keys_are_opaque() {
    let all: Vec<u8> = (0..=255).collect();
    for key in [&all[..], b"\xff\xfe\xc0"] {
        let record = RecordRef { key: Some(key), value: None, headers: &[] };
        assert_eq!(alone(0, record).0.as_deref(), Some(key));
    }
}

#[test]
fn shape_17_the_largest_value_that_the_default_limit_takes() {
    let value = vec![0; 1_048_516];
    let record = RecordRef::value(&value);
    assert_eq!(RecordBatch::empty().size_with(0, &record), DEFAULT_LIMIT);
    let batch = of(&[(0, record)]);
    assert_eq!(batch.bytes(), DEFAULT_LIMIT);
    assert_eq!(freeze(batch).encoded().len(), DEFAULT_LIMIT);
    assert_eq!(alone(0, record).1.unwrap().len(), 1_048_516);
}

#[test]
fn shape_19_ten_mebibytes() {
    let value = vec![0; 10_485_760];
    assert_eq!(RecordBatch::empty().size_with(0, &RecordRef::value(&value)), 10_485_834);
}

#[test]
fn shape_25_no_headers_are_one_zero_byte() {
    let frozen = freeze(of(&[(0, RecordRef::value(b"v"))]));
    assert_eq!(frozen.encoded().last(), Some(&0));
    assert!(oracle(&frozen).records[0].headers.is_empty());
}

#[test]
fn shape_27_ten_thousand_headers() {
    let headers: Vec<_> = (0..10_000).map(|n: u32| Header::new(n.to_string(), b"x")).collect();
    let record = RecordRef { key: None, value: None, headers: &headers };
    let size = RecordBatch::empty().size_with(0, &record);
    let frozen = freeze(of(&[(0, record)]));
    assert_eq!(frozen.encoded().len(), size);
    let read = oracle(&frozen).records.remove(0);
    assert_eq!(read.headers.len(), 10_000);
    assert!(read.headers.iter().zip(0..).all(|((key, _), n)| **key == *n.to_string()));
}

/// A null key cannot be said; who receives one refuses it.
#[test]
fn shape_29_a_null_header_key_is_malformed() {
    let headers = [Header::new("", b"x")];
    let record = RecordRef { key: None, value: None, headers: &headers };
    let frozen = freeze(of(&[(0, record)]));
    let mut bytes = frozen.encoded().to_vec();
    let key = bytes.len() - 3;
    assert_eq!(bytes[key..], [0, 2, b'x']);
    bytes[key] = 1;
    let checksum = crc32c::crc32c(&bytes[21..]).to_be_bytes();
    bytes[17..21].copy_from_slice(&checksum);
    let (batch, _) = BatchReader::read(&bytes).unwrap();
    let error = batch.records().next().unwrap().unwrap_err();
    assert_eq!((error.what, error.at), (Malformed::NullNotAllowed, key));
}

#[test]
fn shape_31_33_timestamps_are_kept() {
    let half_an_hour_on = 1_700_000_000_000 + 30 * 60 * 1000;
    for timestamp in [0, -1, half_an_hour_on] {
        let batch = of(&[(timestamp, RecordRef::value(b"v"))]);
        let frozen = freeze(batch);
        let header = frozen.header();
        assert_eq!((header.base_timestamp, header.max_timestamp), (timestamp, timestamp));
        assert_eq!(Frozen::max_timestamp(&frozen), timestamp);
        assert_eq!(oracle(&frozen).records[0].timestamp, timestamp);
    }
}

#[test]
fn shape_35_decreasing_timestamps() {
    let record = RecordRef::value(b"v");
    let frozen = freeze(of(&[(1000, record), (1001, record), (999, record)]));
    let header = frozen.header();
    assert_eq!((header.base_timestamp, header.max_timestamp), (1000, 1001));
    let read: Vec<_> = oracle(&frozen).records.iter().map(|r| (r.offset, r.timestamp)).collect();
    assert_eq!(read, [(0, 1000), (1, 1001), (2, 999)]);
}

/// Fills a batch with records of one byte while they fit.
fn filled(limit: usize) -> RecordBatch {
    let mut batch = RecordBatch::empty();
    let record = RecordRef::value(b"v");
    while batch.size_with(1000, &record) <= limit {
        batch.push(1000, record);
    }
    batch
}

#[test]
fn shape_39_sizes_are_exact_not_estimated() {
    let batch = filled(16_384);
    assert_eq!((batch.count(), batch.bytes()), (1820, 16_377));
    assert_eq!(oracle(&freeze(batch)).records.len(), 1820);
    assert_eq!(1_000_000_u32.div_ceil(1820), 550);
}

#[test]
fn shape_41_the_most_records_that_the_default_limit_takes() {
    let batch = filled(DEFAULT_LIMIT);
    assert_eq!((batch.count(), batch.bytes()), (105_678, 1_048_585));
    let read = oracle(&freeze(batch)).records;
    assert!(read.iter().map(|record| record.offset).eq(0..105_678));
}

/// Entry 49: headers count.
#[test]
fn header_bytes_are_in_the_size() {
    let value = vec![7; 100_000];
    let headers = [Header::new("h", &value[..])];
    let record = RecordRef { key: None, value: Some(b"v"), headers: &headers };
    let mut batch = RecordBatch::empty();
    while batch.size_with(0, &record) <= 1_000_012 {
        batch.push(0, record);
    }
    assert_eq!(batch.count(), 9);
    assert_eq!(freeze(batch).encoded().len(), 61 + 9 * (15 + 100_000));
}

/// Entry 47: both halves are equal record by record, and still transactional.
#[test]
fn halves_lose_nothing() {
    let headers: Vec<_> =
        (0..10).map(|n: u8| [Header::new("h", vec![n]), Header::null("n")]).collect();
    let mut batch = RecordBatch::empty().into_transactional();
    for (n, headers) in (0..10).zip(&headers) {
        batch.push(1000 + n * n, RecordRef { key: None, value: Some(b"v"), headers });
    }
    let transactional = Attributes::PLAIN.with_transactional();
    let second = batch.split_off(5);
    for (half, first) in [(batch, 0_u8), (second, 5)] {
        let frozen = freeze(half);
        assert_eq!(frozen.header().attributes, transactional);
        let last = i64::from(first) + 4;
        assert_eq!(frozen.header().max_timestamp, 1000 + last * last);
        let read = oracle(&frozen).records;
        assert_eq!(read.len(), 5);
        for (n, record) in (first..).zip(&read) {
            assert!(record.transactional);
            assert_eq!(record.offset, i64::from(n - first));
            assert_eq!(record.timestamp, 1000 + i64::from(n) * i64::from(n));
            let value = |key: &str| record.headers.iter().find(|h| *h.0 == *key).unwrap().1;
            assert_eq!(value("h").as_deref(), Some(&[n][..]));
            assert_eq!(*value("n"), None);
        }
        assert_eq!(freeze(frozen.clone().thaw()), frozen);
    }
}

/// The first record's timestamp is the base: when it goes, the others are relative to the next.
#[test]
fn removing_the_first_moves_the_base() {
    let record = RecordRef::value(b"v");
    let mut batch = of(&[(5_000_000, record), (1, record), (2, record)]);
    batch.remove(0);
    assert_eq!(batch, of(&[(1, record), (2, record)]));
    assert_eq!(batch.max_timestamp(), 2);
    batch.remove(1);
    batch.remove(0);
    assert_eq!(batch, RecordBatch::empty());
    assert_eq!((batch.bytes(), batch.max_timestamp()), (BATCH_HEADER, -1));
}

/// Rule S16: what an attempt holds is never written to again.
#[test]
fn thawing_copies_only_what_an_attempt_still_holds() {
    let record = RecordRef::value(b"v");
    let frozen = freeze(of(&[(0, record), (0, record)]));
    let address = frozen.encoded().as_ptr();
    let frozen = freeze(frozen.thaw());
    assert_eq!(frozen.encoded().as_ptr(), address);

    let held = frozen.encoded().clone();
    let before = held.to_vec();
    let mut batch = frozen.thaw();
    batch.remove(0);
    batch.push(9, record);
    let again = freeze(batch);
    assert_ne!(again.encoded().as_ptr(), address);
    assert_eq!(held, before);
}

#[test]
fn the_last_growth_is_given_back() {
    let record = RecordRef::value(b"0123456789");
    let mut batch = RecordBatch::empty();
    for _ in 0..1000 {
        batch.push(0, record);
    }
    let size = batch.bytes();
    let frozen = freeze(batch);
    let encoded = frozen.encoded().clone();
    drop(frozen);
    let buffer = Vec::from(encoded);
    assert_eq!(buffer.len(), size);
    assert!(buffer.capacity() <= size + size / 4, "{} for {size}", buffer.capacity());
}

/// A record of the model.
#[derive(Clone, Debug, PartialEq)]
struct Record {
    timestamp: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<Header<'static>>,
}

impl Record {
    fn borrowed(&self) -> RecordRef<'_> {
        let (key, value) = (self.key.as_deref(), self.value.as_deref());
        RecordRef { key, value, headers: &self.headers }
    }
}

#[derive(Clone, Debug)]
enum Change {
    Push(Record),
    Remove(prop::sample::Index),
    Split(prop::sample::Index, bool),
    Thaw,
}

fn record(timestamps: impl Strategy<Value = i64>) -> impl Strategy<Value = Record> {
    let data = || {
        prop_oneof![
            8 => proptest::option::of(proptest::collection::vec(any::<u8>(), 0..40)),
            1 => proptest::collection::vec(any::<u8>(), 0..9000).prop_map(Some),
        ]
    };
    let header = ("\\PC{0,70}", data())
        .prop_map(|(key, value)| Header { key: key.into(), value: value.map(Into::into) });
    let headers = prop_oneof![
        3 => Just(Vec::new()),
        1 => proptest::collection::vec(header, 0..5),
    ];
    (timestamps, data(), data(), headers).prop_map(|(timestamp, key, value, headers)| Record {
        timestamp,
        key,
        value,
        headers,
    })
}

fn changes(timestamps: impl Strategy<Value = i64>) -> impl Strategy<Value = Vec<Change>> {
    let change = prop_oneof![
        12 => record(timestamps).prop_map(Change::Push),
        3 => any::<prop::sample::Index>().prop_map(Change::Remove),
        1 => any::<(prop::sample::Index, bool)>().prop_map(|(at, first)| Change::Split(at, first)),
        1 => Just(Change::Thaw),
    ];
    proptest::collection::vec(change, 0..200)
}

/// Makes the same changes to a batch and to a list.
fn change(changes: Vec<Change>) -> (RecordBatch, Vec<Record>) {
    let (mut batch, mut model) = (RecordBatch::empty(), Vec::<Record>::new());
    for change in changes {
        match change {
            Change::Push(record) => {
                let size = batch.size_with(record.timestamp, &record.borrowed());
                batch.push(record.timestamp, record.borrowed());
                assert_eq!(batch.bytes(), size);
                model.push(record);
            }
            Change::Remove(_) if model.is_empty() => {}
            Change::Remove(index) => {
                let index = index.index(model.len());
                batch.remove(index as u32);
                model.remove(index);
            }
            Change::Split(index, first) => {
                let at = index.index(model.len() + 1);
                let (others, other_model) = (batch.split_off(at as u32), model.split_off(at));
                assert_eq!(batch.count() as usize, model.len());
                if !first {
                    (batch, model) = (others, other_model);
                }
            }
            Change::Thaw => batch = freeze(batch).thaw(),
        }
        assert_eq!(batch.count() as usize, model.len());
        let max = model.iter().map(|record| record.timestamp).max().unwrap_or(-1);
        assert_eq!(batch.max_timestamp(), max);
    }
    (batch, model)
}

fn with_own_reader(frozen: &FrozenBatch) -> Vec<Record> {
    let (reader, rest) = BatchReader::read(frozen.encoded()).unwrap();
    assert!(rest.is_empty());
    let read = |(place, record): (i64, Result<candor_wire::records::RecordView<'_>, _>)| {
        let record = record.unwrap();
        assert_eq!(record.offset, place);
        let header = |(key, value): (&str, Option<&[u8]>)| Header {
            key: key.to_owned().into(),
            value: value.map(|value| value.to_vec().into()),
        };
        Record {
            timestamp: record.timestamp,
            key: record.key.map(<[u8]>::to_vec),
            value: record.value.map(<[u8]>::to_vec),
            headers: record.headers.map(header).collect(),
        }
    };
    (0..).zip(reader.records()).map(read).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_changes_leave_the_records_of_the_model(
        changes in changes(prop_oneof![0..5_i64, -1..i64::MAX / 4]),
    ) {
        let (batch, model) = change(changes);
        let fresh = of(&model.iter().map(|r| (r.timestamp, r.borrowed())).collect::<Vec<_>>());
        prop_assert_eq!(&batch, &fresh);
        prop_assume!(!model.is_empty());
        let frozen = freeze(batch);
        prop_assert_eq!(with_own_reader(&frozen), model.clone());
        prop_assert_eq!(frozen.header().last_offset_delta + 1, frozen.header().count);
        let read = oracle(&frozen);
        prop_assert_eq!(read.records.len(), model.len());
        for (place, (read, record)) in (0..).zip(read.records.iter().zip(&model)) {
            prop_assert_eq!((read.offset, read.timestamp), (place, record.timestamp));
            prop_assert_eq!((read.producer_id, read.producer_epoch), (4000, 3));
            prop_assert_eq!(read.sequence, 7 + place as i32);
            prop_assert_eq!(read.key.as_deref(), record.key.as_deref());
            prop_assert_eq!(read.value.as_deref(), record.value.as_deref());
            // The oracle keeps the last of equal header keys only.
            for (key, value) in &read.headers {
                let last = record.headers.iter().rev().find(|header| header.key == **key);
                prop_assert_eq!(last.unwrap().value.as_deref(), value.as_deref());
            }
        }
    }

    /// Deltas wrap around, both ways alike; the oracle's would overflow.
    #[test]
    fn timestamps_from_one_end_to_the_other(changes in changes(any::<i64>())) {
        let (batch, model) = change(changes);
        prop_assert_eq!(with_own_reader(&freeze(batch)), model);
    }
}
