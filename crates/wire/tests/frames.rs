//! Frames, names, versions and error codes.

use bytes::BytesMut;
use candor_wire::{
    Api, ErrorCode, FrameError, InvalidTopicName, PRODUCE_BY_NAME, VersionRange, check_topic_name,
    frame_length, negotiate, negotiate_at_most, split_frame,
};

#[test]
fn frames_come_out_whole_however_the_bytes_come_in() {
    let mut stream = Vec::new();
    for (length, byte) in [(4, 1), (300, 2), (5, 3)] {
        stream.extend((length as u32).to_be_bytes());
        stream.extend(vec![byte; length]);
    }
    for step in 1..stream.len() {
        let (mut buffer, mut frames) = (BytesMut::new(), Vec::new());
        for bytes in stream.chunks(step) {
            buffer.extend_from_slice(bytes);
            while let Some(frame) = split_frame(&mut buffer, 300).unwrap() {
                frames.push((frame.len(), frame[0], frame[frame.len() - 1]));
            }
        }
        assert_eq!(frames, [(4, 1, 1), (300, 2, 2), (5, 3, 3)]);
        assert!(buffer.is_empty());
    }
}

#[test]
fn lengths_that_make_no_sense_are_refused_before_anything_waits_for_them() {
    let refused = |prefix: [u8; 4]| {
        let mut buffer = BytesMut::from(&prefix[..]);
        let error = split_frame(&mut buffer, 1_000_000).unwrap_err();
        assert_eq!(buffer.len(), 4);
        error
    };
    assert_eq!(refused(*b"HTTP"), FrameError::Http);
    // TLS alerts and handshake records of TLS 1.0 to 1.2.
    assert_eq!(refused([0x15, 3, 1, 0]), FrameError::Tls);
    assert_eq!(refused([0x15, 3, 3, 0]), FrameError::Tls);
    assert_eq!(refused([0x16, 3, 3, 0]), FrameError::Tls);
    assert_eq!(refused([0xff; 4]), FrameError::Negative(-1));
    assert_eq!(refused([0, 0, 0, 3]), FrameError::TooShort(3));
    assert_eq!(
        refused([0, 15, 66, 65]),
        FrameError::TooLong { length: 1_000_001, limit: 1_000_000 }
    );
    // Below the limit it is just a length.
    assert_eq!(frame_length(b"HTTP", usize::MAX), Ok(Some(0x4854_5450)));
    assert_eq!(frame_length(&[0, 0, 0], 100), Ok(None));
}

#[test]
fn topic_names() {
    let longest = "a".repeat(249);
    for name in ["a", "...", "A-z_0.9", "__consumer_offsets", &longest] {
        assert_eq!(check_topic_name(name), Ok(()));
    }
    assert_eq!(check_topic_name(""), Err(InvalidTopicName::Empty));
    assert_eq!(check_topic_name("."), Err(InvalidTopicName::Dots));
    assert_eq!(check_topic_name(".."), Err(InvalidTopicName::Dots));
    assert_eq!(check_topic_name(&"a".repeat(250)), Err(InvalidTopicName::TooLong(250)));
    // SHAPE-5: not cut at the NUL.
    assert_eq!(check_topic_name("a\0b"), Err(InvalidTopicName::Character('\0')));
    assert_eq!(check_topic_name("größe"), Err(InvalidTopicName::Character('ö')));
}

#[test]
fn versions() {
    let range = |min, max| VersionRange { min, max };
    // Protocol 1.5: what brokers advertise, and what we use.
    let produce = |min, max| negotiate(Api::Produce, range(min, max));
    assert_eq!(produce(0, 13), Some(13));
    assert_eq!(produce(0, 12), Some(11));
    assert_eq!(produce(0, 11), Some(11));
    assert_eq!(produce(0, 3), Some(3));
    assert_eq!(produce(0, 2), None);
    assert_eq!(produce(14, 20), None);
    assert_eq!(produce(13, 20), Some(13));
    assert_eq!(produce(12, 12), None);
    let by_name = |max| negotiate_at_most(Api::Produce, range(0, max), PRODUCE_BY_NAME);
    assert_eq!((by_name(13), by_name(9)), (Some(11), Some(9)));
    assert_eq!(negotiate_at_most(Api::Produce, range(0, 13), 12), Some(12));
    assert_eq!(negotiate(Api::Metadata, range(0, 0)), None);
    assert_eq!(negotiate(Api::Metadata, range(0, 7)), Some(7));
    assert_eq!(negotiate(Api::InitProducerId, range(0, 6)), Some(5));
    assert_eq!(negotiate(Api::ApiVersions, range(0, 4)), Some(4));
    assert_eq!(negotiate(Api::ApiVersions, range(3, -1)), None);
    for api in Api::ALL {
        assert_eq!(Api::from_key(api.key()), Some(api));
    }
    assert_eq!(Api::from_key(1), None);
}

#[test]
fn error_codes() {
    let named = |code: i16| ErrorCode(code).name();
    assert!((-1..=133).all(|code| named(code).is_some()));
    assert_eq!((named(-2), named(134), named(i16::MAX)), (None, None, None));
    for (code, name) in [
        (-1, "UNKNOWN_SERVER_ERROR"),
        (6, "NOT_LEADER_OR_FOLLOWER"),
        (20, "NOT_ENOUGH_REPLICAS_AFTER_APPEND"),
        (45, "OUT_OF_ORDER_SEQUENCE_NUMBER"),
        (59, "UNKNOWN_PRODUCER_ID"),
        (87, "INVALID_RECORD"),
        (100, "UNKNOWN_TOPIC_ID"),
        (129, "REBOOTSTRAP_REQUIRED"),
    ] {
        assert_eq!(named(code), Some(name));
    }
}

/// The names are Kafka's: another table has the same, in another spelling.
#[test]
fn error_names_are_those_of_another_table() {
    for code in -1..=133 {
        let (Some(ours), Some(theirs)) =
            (ErrorCode(code).name(), kafka_protocol::ResponseError::try_from_code(code))
        else {
            assert_eq!(code, 0);
            continue;
        };
        let squeezed = ours.replace('_', "").to_lowercase();
        assert_eq!(squeezed, format!("{theirs:?}").to_lowercase(), "{code}");
    }
}
