//! Bytes that are not what they claim to be: errors, never panics, never a believed count.

#![allow(clippy::unwrap_used, reason = "a helper of tests fails the test")]

use bytes::BytesMut;
use candor_core::{Identity, Payload, ProducerId, Sequence};
use candor_wire::{
    Api, BatchReader, DecodeError, Header, Malformed, RecordBatch, RecordRef, api_versions,
    correlation_id, init_producer_id, metadata, produce, split_frame, split_response,
};
use proptest::prelude::*;

/// Visits every element.
fn visit<'a, T: candor_wire::Element<'a>>(list: candor_wire::List<'a, T>) -> usize {
    assert_eq!(list.iter().count(), list.len());
    list.len()
}

/// Decodes, visits everything that can be visited, and says how many elements were given room.
fn decode(api: Api, version: i16, body: &[u8]) -> Result<usize, DecodeError> {
    match api {
        Api::ApiVersions => api_versions::Response::decode(version, body).map(|response| {
            let _ = response.fallback();
            response.apis.capacity()
                + visit(response.supported_features)
                + visit(response.finalized_features)
        }),
        Api::Metadata => metadata::Response::decode(version, body).map(|response| {
            let partitions = |topic: metadata::TopicInfo<'_>| {
                topic
                    .partitions
                    .iter()
                    .for_each(|p| assert_eq!(p.offline.iter().count(), p.offline.len()));
                visit(topic.partitions)
            };
            visit(response.brokers)
                + visit(response.topics)
                + response.topics.iter().map(partitions).sum::<usize>()
        }),
        Api::InitProducerId => init_producer_id::Response::decode(version, body).map(|_| 0),
        Api::Produce => produce::Response::decode(version, body).map(|response| {
            let visited = response.partitions().map(|p| 1 + p.record_errors.count()).sum::<usize>();
            assert!(visited <= body.len());
            visit(response.node_endpoints)
        }),
    }
}

fn versions(api: Api) -> impl Iterator<Item = i16> {
    let range = api.supported();
    range.min..=range.max
}

fn put_text(body: &mut Vec<u8>, flexible: bool, text: &str) {
    if !flexible {
        body.push(0);
    }
    body.push(text.len() as u8 + u8::from(flexible));
    body.extend(text.as_bytes());
}

fn put_count(body: &mut Vec<u8>, flexible: bool, count: u8) {
    if flexible { body.push(count + 1) } else { body.extend([0, 0, 0, count]) }
}

/// A body with every field and every known tag; and where its counts stand.
fn body(api: Api, version: i16) -> (Vec<u8>, Vec<usize>) {
    let flexible = api.flexible(version);
    let (mut body, mut counts) = (Vec::new(), Vec::new());
    let mut count = |body: &mut Vec<u8>, flexible, n| {
        counts.push(body.len());
        put_count(body, flexible, n);
    };
    let tags = |body: &mut Vec<u8>| {
        if flexible {
            body.push(0)
        }
    };
    match api {
        Api::ApiVersions => {
            body.extend([0, 0]);
            count(&mut body, flexible, 1);
            body.extend([0, 3, 0, 0, 0, 9]);
            tags(&mut body);
            if version >= 1 {
                body.extend([0; 4]);
            }
            if flexible {
                body.extend([3, 0, 8]);
                count(&mut body, true, 1);
                body.extend([2, b'f', 0, 1, 0, 2, 0]);
                body.extend([1, 8, 0, 0, 0, 0, 0, 0, 0, 7, 3, 1, 1]);
            }
        }
        Api::InitProducerId => {
            body.extend([0; 16]);
            tags(&mut body);
        }
        Api::Metadata => {
            if version >= 3 {
                body.extend([0; 4]);
            }
            count(&mut body, flexible, 1);
            body.extend([0, 0, 0, 1]);
            put_text(&mut body, flexible, "host");
            body.extend([0, 0, 0x23, 0x84]);
            put_text(&mut body, flexible, "rack");
            tags(&mut body);
            if version >= 2 {
                put_text(&mut body, flexible, "cluster");
            }
            body.extend([0, 0, 0, 1]);
            count(&mut body, flexible, 1);
            body.extend([0, 0]);
            put_text(&mut body, flexible, "topic");
            if version >= 10 {
                body.extend([9; 16]);
            }
            body.push(0);
            count(&mut body, flexible, 1);
            body.extend([0, 0, 0, 0, 0, 5, 0, 0, 0, 1]);
            if version >= 7 {
                body.extend([0, 0, 0, 3]);
            }
            for _ in 0..if version >= 5 { 3 } else { 2 } {
                count(&mut body, flexible, 1);
                body.extend([0, 0, 0, 1]);
            }
            tags(&mut body);
            if version >= 8 {
                body.extend([0; 4]);
            }
            tags(&mut body);
            if (8..=10).contains(&version) {
                body.extend([0; 4]);
            }
            if version >= 13 {
                body.extend([0; 2]);
            }
            tags(&mut body);
        }
        Api::Produce => produce_body(version, &mut body, &mut count),
    }
    (body, counts)
}

fn produce_body(version: i16, body: &mut Vec<u8>, count: &mut impl FnMut(&mut Vec<u8>, bool, u8)) {
    let flexible = version >= 9;
    count(body, flexible, 1);
    if version >= 13 {
        body.extend([9; 16]);
    } else {
        put_text(body, flexible, "topic");
    }
    count(body, flexible, 1);
    body.extend([0, 0, 0, 5, 0, 6]);
    body.extend([0xff; 16]);
    if version >= 5 {
        body.extend([0xff; 8]);
    }
    if version >= 8 {
        count(body, flexible, 1);
        body.extend([0, 0, 0, 2]);
        put_text(body, flexible, "bad");
        if flexible {
            body.push(0);
        }
        put_text(body, flexible, "message");
    }
    if version >= 10 {
        body.extend([1, 0, 9, 0, 0, 0, 1, 0, 0, 0, 7, 0]);
    } else if flexible {
        body.push(0);
    }
    if flexible {
        body.push(0);
    }
    body.extend([0; 4]);
    if version >= 10 {
        body.extend([1, 0, 17]);
        count(body, true, 1);
        body.extend([0, 0, 0, 1]);
        put_text(body, true, "host");
        body.extend([0, 0, 0x23, 0x84]);
        put_text(body, true, "r");
        body.push(0);
    } else if flexible {
        body.push(0);
    }
}

#[test]
fn every_cut_is_seen() {
    for api in Api::ALL {
        for version in versions(api) {
            let (body, _) = body(api, version);
            decode(api, version, &body).unwrap();
            for cut in 0..body.len() {
                let error = decode(api, version, &body[..cut]).unwrap_err();
                assert!(error.at <= cut, "{api} v{version} cut at {cut}: {error}");
                assert!(
                    matches!(error.what, Malformed::Truncated | Malformed::CountTooLarge),
                    "{api} v{version} cut at {cut}: {error}"
                );
            }
        }
    }
}

/// Entry 149: at each place where a count stands, one of 2^31-2.
#[test]
fn no_count_is_believed() {
    let mut bombs = 0;
    for api in Api::ALL {
        for version in versions(api) {
            let (body, counts) = body(api, version);
            for at in counts {
                // Counts inside tags are compact even if the tag's size then is wrong.
                let compact = api.flexible(version);
                let (bomb, replaced): (&[u8], _) = if compact {
                    (&[0xff, 0xff, 0xff, 0xff, 7], 1)
                } else {
                    (&[0x7f, 0xff, 0xff, 0xfe], 4)
                };
                let mut body = body.clone();
                body.splice(at..at + replaced, bomb.iter().copied());
                let error = decode(api, version, &body).unwrap_err();
                assert_eq!((error.what, error.at), (Malformed::CountTooLarge, at), "{error}");
                bombs += 1;
            }
        }
    }
    assert!(bombs > 100);
}

#[test]
fn null_and_negative_where_neither_is_allowed() {
    let what = |version, body: &[u8]| decode(Api::Metadata, version, body).unwrap_err().what;
    assert_eq!(what(1, &[0xff; 4]), Malformed::NullNotAllowed);
    assert_eq!(what(1, &[0xff, 0xff, 0xff, 0xfe]), Malformed::NegativeLength);
    assert_eq!(what(9, &[0, 0, 0, 0, 0]), Malformed::NullNotAllowed);
    // A host of length -1 and of -2; of length 1, which is not UTF-8; a broker -1; a port 65536.
    let broker = |host: &[u8], id: u8, port: u8| {
        let mut body = vec![0, 0, 0, 1, id, 0, 0, 1];
        body.extend(host);
        body.extend([0, port, 0, 1, 0xff, 0xff]);
        body.extend([0; 8]);
        decode(Api::Metadata, 1, &body).map_err(|error| error.what)
    };
    assert_eq!(broker(&[0, 1, b'h'], 0, 0), Ok(1));
    assert_eq!(broker(&[0xff, 0xff], 0, 0), Err(Malformed::NullNotAllowed));
    assert_eq!(broker(&[0xff, 0xfe], 0, 0), Err(Malformed::NegativeLength));
    assert_eq!(broker(&[0, 1, 0xff], 0, 0), Err(Malformed::NotUtf8));
    assert_eq!(broker(&[0, 1, b'h'], 0xff, 0), Err(Malformed::OutOfRange));
    assert_eq!(broker(&[0, 1, b'h'], 0, 1), Err(Malformed::OutOfRange));
}

/// Entry 151, where a 32-bit variable-length integer stands: the tag in a response header.
#[test]
fn overlong_integers() {
    let header = |integer: &[u8]| {
        let mut frame = vec![0, 0, 0, 9, 1];
        frame.extend(integer);
        frame.extend([0, 42]);
        split_response(Api::Metadata, 9, &frame)
            .map(|(id, body)| (id, body.to_vec()))
            .map_err(|error| (error.what, error.at))
    };
    let right = Ok((9, vec![42]));
    assert_eq!(header(&[0x05]), right);
    assert_eq!(header(&[0xff, 0xff, 0xff, 0xff, 0x0f]), right);
    // Needless zeros within five bytes are Kafka's business, not ours.
    assert_eq!(header(&[0x85, 0x80, 0x80, 0x80, 0x00]), right);
    let wrong = Err((Malformed::VarintTooLong, 5));
    assert_eq!(header(&[0xff, 0xff, 0xff, 0xff, 0x1f]), wrong);
    assert_eq!(header(&[0xff, 0xff, 0xff, 0xff, 0x8f, 0x00]), wrong);
    assert_eq!(header(&[0x80; 6]), wrong);
}

/// The same for 64 bits: the timestamp delta of a record.
#[test]
fn overlong_integers_of_64_bits() {
    let batch = |integer: &[u8]| {
        let mut record = vec![0];
        record.extend(integer);
        record.extend([0, 1, 1, 0]);
        let mut bytes = frozen(1);
        bytes.truncate(61);
        bytes.push((record.len() as u8) << 1);
        bytes.extend(&record);
        sealed(bytes)
    };
    let timestamp = |bytes: &[u8]| {
        let (reader, _) = BatchReader::read(bytes).unwrap();
        reader.records().next().unwrap().map(|record| record.timestamp).map_err(|e| (e.what, e.at))
    };
    let (nine, ten) = ([0xff; 9], [0xff; 10]);
    let with = |start: &[u8], end: u8| batch(&[start, &[end]].concat());
    assert_eq!(timestamp(&with(&nine, 1)), Ok(i64::MIN));
    assert_eq!(timestamp(&with(&nine[..1], 1)), Ok(-128));
    let wrong = Err((Malformed::VarintTooLong, 63));
    assert_eq!(timestamp(&with(&nine, 2)), wrong);
    assert_eq!(timestamp(&with(&ten, 0)), wrong);
}

fn frozen(records: u8) -> Vec<u8> {
    let mut batch = RecordBatch::empty();
    let headers = [Header::new("h", b"x"), Header::null("n")];
    for n in 0..records {
        let record = RecordRef { key: Some(&[n]), value: Some(b"value"), headers: &headers };
        batch.push(0, record);
    }
    let identity = Identity::fresh(ProducerId::new(7).unwrap());
    batch.freeze(identity, Sequence::ZERO).encoded().to_vec()
}

/// Puts length and checksum right.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let length = (bytes.len() as i32 - 12).to_be_bytes();
    bytes[8..12].copy_from_slice(&length);
    let checksum = crc32c::crc32c(&bytes[21..]).to_be_bytes();
    bytes[17..21].copy_from_slice(&checksum);
    bytes
}

fn read_all(bytes: &[u8]) -> Result<usize, DecodeError> {
    let (reader, _) = BatchReader::read(bytes)?;
    let mut headers = 0;
    for record in reader.records() {
        headers += record?.headers.count();
    }
    Ok(headers)
}

#[test]
fn broken_batches() {
    let good = frozen(3);
    assert_eq!(read_all(&good), Ok(6));
    for cut in 0..good.len() {
        let error = read_all(&good[..cut]).unwrap_err();
        assert_eq!(error.what, Malformed::Truncated, "cut at {cut}");
    }
    let mut two = good.clone();
    two.extend(&good);
    assert_eq!(BatchReader::read(&two).unwrap().1, good);

    let broken = |at: usize, byte: u8, reseal: bool| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        read_all(&if reseal { sealed(bytes) } else { bytes }).map_err(|error| error.what)
    };
    for (at, byte) in good.iter().enumerate().skip(17) {
        assert_eq!(broken(at, byte ^ 1, false), Err(Malformed::Checksum), "byte {at}");
    }
    assert_eq!(broken(16, 1, false), Err(Malformed::Magic));
    assert_eq!(broken(8, 0xff, false), Err(Malformed::NegativeLength));
    assert_eq!(broken(22, 4, true), Err(Malformed::Compressed));
    assert_eq!(broken(57, 0xff, true), Err(Malformed::NegativeLength));
    assert_eq!(broken(57, 0x7f, true), Err(Malformed::CountTooLarge));
    assert_eq!(broken(60, 2, true), Err(Malformed::Trailing));
    assert_eq!(broken(60, 4, true), Err(Malformed::Truncated));
    // In the first record: its length, the length of its key, the count of its headers.
    assert_eq!(broken(61, 1, true), Err(Malformed::NegativeLength));
    assert_eq!(broken(65, 3, true), Err(Malformed::NegativeLength));
    assert_eq!(broken(73, 1, true), Err(Malformed::NegativeLength));
    assert_eq!(broken(73, 2, true), Err(Malformed::Trailing));
    assert_eq!(broken(73, 0x7e, true), Err(Malformed::Truncated));
}

/// Bytes around the edges: mostly small numbers, so that lengths often fit.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![4 => 0..4_u8, 1 => Just(0xff), 1 => any::<u8>()];
    proptest::collection::vec(byte, 0..400)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn noise_is_decoded_or_refused(noise in noise()) {
        for api in Api::ALL {
            for version in -1..=14 {
                let room = decode(api, version, &noise);
                prop_assert!(room.unwrap_or(0) <= noise.len() / 6 + 8);
                let _ = split_response(api, version, &noise);
            }
        }
        let _ = correlation_id(&noise);
        let _ = read_all(&noise);
        let mut buffer = BytesMut::from(&noise[..]);
        while let Ok(Some(frame)) = split_frame(&mut buffer, 100) {
            prop_assert!((4..=100).contains(&frame.len()));
        }
    }

    #[test]
    fn damaged_bodies_are_decoded_or_refused(
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        for api in Api::ALL {
            for version in versions(api) {
                let (mut body, _) = body(api, version);
                for (index, byte) in &damage {
                    let at = index.index(body.len());
                    body[at] = *byte;
                }
                let room = decode(api, version, &body);
                prop_assert!(room.unwrap_or(0) <= body.len() / 6 + 8);
            }
        }
        let mut bytes = frozen(5);
        for (index, byte) in &damage {
            let at = index.index(bytes.len());
            bytes[at] = *byte;
        }
        let _ = read_all(&sealed(bytes));
    }
}
