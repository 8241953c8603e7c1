//! Byte for byte against vectors that other encoders made.

#![allow(clippy::unwrap_used, reason = "a helper of tests fails the test")]

use bytes::Bytes;
use candor_core::{Frozen, Identity, Payload, ProducerEpoch, ProducerId, Sequence};
use candor_wire::{
    BatchReader, Header, RecordBatch, RecordRef, RequestHeader, Topic, api_versions,
    init_producer_id, produce,
};

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        hex.chars().filter_map(|c| c.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn identity(id: i64, epoch: i16) -> Identity {
    Identity { id: ProducerId::new(id).unwrap(), epoch: ProducerEpoch::new(epoch).unwrap() }
}

fn record<'r>(key: Option<&'r str>, value: Option<&'r str>) -> RecordRef<'r> {
    RecordRef { key: key.map(str::as_bytes), value: value.map(str::as_bytes), headers: &[] }
}

fn batch(records: &[(i64, RecordRef<'_>)]) -> RecordBatch {
    let mut batch = RecordBatch::empty();
    for (timestamp, record) in records {
        let size = batch.size_with(*timestamp, record);
        batch.push(*timestamp, *record);
        assert_eq!(batch.bytes(), size);
    }
    batch
}

/// Freezes and compares; then the same through thaw, and by reading it back.
#[track_caller]
fn check(batch: RecordBatch, identity: Identity, first: i32, expected: &str) {
    let first = Sequence::new(first).unwrap();
    let expected = bytes(expected);
    let frozen = batch.clone().freeze(identity, first);
    assert_eq!(frozen.encoded(), &expected);
    assert_eq!(Frozen::bytes(&frozen), batch.bytes());
    let thawed = frozen.thaw();
    assert_eq!(thawed, batch);
    assert_eq!(thawed.freeze(identity, first).encoded(), &expected);
    let (reader, rest) = BatchReader::read(&expected).unwrap();
    assert!(rest.is_empty());
    let mut again = RecordBatch::empty();
    for record in reader.records() {
        let record = record.unwrap();
        let headers: Vec<_> = record
            .headers
            .map(|(key, value)| Header { key: key.into(), value: value.map(Into::into) })
            .collect();
        let copy = RecordRef { key: record.key, value: record.value, headers: &headers };
        again.push(record.timestamp, copy);
    }
    if reader.header().attributes.is_transactional() {
        again = again.into_transactional();
    }
    assert_eq!(again, batch);
}

#[test]
fn g1_key_and_value_null() {
    check(
        batch(&[(0, record(None, None))]),
        identity(7, 0),
        0,
        "000000000000000000000038ffffffff02706788960000000000000000000000000000000000000000000000
         00000000000007000000000000000000010c000000010100",
    );
}

#[test]
fn g2_key_and_value_empty() {
    check(
        batch(&[(0, record(Some(""), Some("")))]),
        identity(7, 0),
        0,
        "000000000000000000000038ffffffff02c684829f0000000000000000000000000000000000000000000000
         00000000000007000000000000000000010c000000000000",
    );
}

#[test]
fn g3_decreasing_timestamps() {
    check(
        batch(&[
            (1000, record(Some("a"), Some("1"))),
            (1001, record(None, Some("2"))),
            (999, record(Some("c"), None)),
        ]),
        identity(7, 1),
        10,
        "00000000000000000000004affffffff0238ef45e500000000000200000000000003e800000000000003e900
         0000000000000700010000000a000000031000000002610231000e000202010232000e00010402630100",
    );
}

#[test]
fn g4_headers_null_empty_and_repeated() {
    let headers = [
        Header::new("a", b"1"),
        Header::new("a", b"2"),
        Header::null("b"),
        Header::new("c", b""),
        Header::new("", b"x"),
    ];
    let record = RecordRef { key: Some(b"k"), value: Some(b"v"), headers: &headers };
    check(
        batch(&[(1_700_000_000_000, record)]),
        identity(4_294_967_296, 32767),
        2_147_483_647,
        "00000000000000000000004bffffffff0267330e300000000000000000018bcfe568000000018bcfe5680000
         000001000000007fff7fffffff0000000132000000026b02760a0261023102610232026201026300000278",
    );
}

#[test]
fn g5_delta_beyond_32_bits_transactional_at_the_last_sequence() {
    let records =
        [(0, record(Some("k"), Some("v"))), (1_700_000_000_000, record(Some("k"), Some("w")))];
    check(
        batch(&records).into_transactional(),
        identity(9, 3),
        2_147_483_647,
        "000000000000000000000048ffffffff02721259bf00100000000100000000000000000000018bcfe568000000000000
         00000900037fffffff0000000210000000026b0276001a0080a0abfef96202026b027700",
    );
}

#[test]
fn two_records_with_headers() {
    let (first, second) = ([Header::new("h", b"x")], [Header::null("n")]);
    check(
        batch(&[
            (1_700_000_000_000, RecordRef { key: Some(b"k"), value: Some(b"v"), headers: &first }),
            (1_700_000_000_005, RecordRef { key: None, value: Some(b""), headers: &second }),
        ]),
        identity(4000, 3),
        7,
        "000000000000000000000048ffffffff02d94b374f0000000000010000018bcfe568000000018bcfe5680500
         00000000000fa00003000000070000000218000000026b0276020268027812000a02010002026e01",
    );
}

#[test]
fn transactional() {
    check(
        batch(&[(1_700_000_000_000, record(Some("k"), Some("v")))]).into_transactional(),
        identity(4000, 3),
        0,
        "00000000000000000000003affffffff028745a49e0010000000000000018bcfe568000000018bcfe5680000
         00000000000fa00003000000000000000110000000026b027600",
    );
}

fn header(correlation_id: i32) -> RequestHeader<'static> {
    RequestHeader { correlation_id, client_id: Some("c") }
}

#[test]
fn requests() {
    let versions =
        api_versions::Request { software_name: "rs", software_version: "0.1", expected: None };
    assert_eq!(
        versions.encode(3, &header(1)).unwrap(),
        bytes("0000001400120003000000010001630003727304302e3100")
    );
    assert_eq!(versions.encode(0, &header(2)).unwrap(), bytes("0000000b0012000000000002000163"));
    assert_eq!(
        init_producer_id::Request::idempotent().encode(4, &header(3)).unwrap(),
        bytes("0000001c001600040000000300016300007fffffffffffffffffffffffffff00")
    );
}

#[test]
fn produce_request() {
    let batch = batch(&[(1_700_000_000_000, RecordRef::value(b"v"))]);
    let frozen = batch.freeze(identity(4000, 0), Sequence::ZERO);
    let mut request = produce::Request::new(9, header(4), 30_000).unwrap();
    request.add(Topic::Name("t"), 0, frozen.encoded().clone()).unwrap();
    assert_eq!(
        request.encode().to_bytes(),
        bytes(
            "0000006400000009000000040001630000ffff00007530020274020000000046000000000000000000000039
             ffffffff02fab2b5af0000000000000000018bcfe568000000018bcfe568000000000000000fa00000000000
             00000000010e00000001027600000000"
        )
    );
}

#[test]
fn batches_are_not_copied_into_requests() {
    let batch = Bytes::from(vec![7; 100]);
    let mut request = produce::Request::new(13, header(4), 30_000).unwrap();
    let id = candor_wire::TopicId::new([1; 16]).unwrap();
    request.add(Topic::Id(id), 0, batch.clone()).unwrap();
    let segments = request.encode();
    assert!(segments.iter().any(|part| part.as_ptr() == batch.as_ptr() && part.len() == 100));
}
