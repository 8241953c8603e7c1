//! Every request in every version, read back by another decoder.

#![allow(clippy::unwrap_used, reason = "a helper of tests fails the test")]

use std::collections::{BTreeMap, BTreeSet};

use bytes::{Buf, Bytes};
use candor_core::{Identity, ProducerEpoch, ProducerId};
use candor_wire::{
    Api, EncodeError, NodeId, RequestHeader, Topic, TopicId, api_versions, init_producer_id,
    metadata, produce,
};
use kafka_protocol::messages::{
    ApiVersionsRequest, InitProducerIdRequest, MetadataRequest, ProduceRequest,
};
use kafka_protocol::protocol::{Decodable, decode_request_header_from_buffer};
use proptest::prelude::*;

/// Reads frame length and header, and then the body, which must be used up.
#[track_caller]
fn read<T: Decodable>(frame: &Bytes, api: Api, version: i16, header: &RequestHeader<'_>) -> T {
    let mut frame = frame.clone();
    let length = frame.get_i32();
    assert_eq!(length as usize, frame.len());
    let read = decode_request_header_from_buffer(&mut frame).unwrap();
    assert_eq!((read.request_api_key, read.request_api_version), (api.key(), version));
    assert_eq!(read.correlation_id, header.correlation_id);
    assert_eq!(read.client_id.as_deref(), header.client_id);
    let body = T::decode(&mut frame, version).unwrap();
    assert!(frame.is_empty(), "{} bytes left over", frame.len());
    body
}

fn versions(api: Api) -> impl Iterator<Item = i16> {
    let range = api.supported();
    range.min..=range.max
}

fn name() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9._-]{1,249}"
}

fn topic_id() -> impl Strategy<Value = TopicId> {
    any::<[u8; 16]>().prop_filter_map("zero means none", TopicId::new)
}

fn header() -> impl Strategy<Value = (i32, Option<String>)> {
    (any::<i32>(), proptest::option::of("\\PC{0,200}"))
}

fn given((correlation_id, client_id): &(i32, Option<String>)) -> RequestHeader<'_> {
    RequestHeader { correlation_id: *correlation_id, client_id: client_id.as_deref() }
}

/// Around the places where the length of a batch takes another byte.
fn batch_size() -> impl Strategy<Value = usize> {
    prop_oneof![16 => 0..200_usize, 1 => 16_300..16_500_usize]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn api_versions_requests(h in header(), name in name(), software in name()) {
        let header = given(&h);
        // The oracle ends at version 4.
        for version in 0..=4 {
            let request = api_versions::Request {
                software_name: &name,
                software_version: &software,
                expected: None,
            };
            let frame = request.encode(version, &header).unwrap();
            let read: ApiVersionsRequest = read(&frame, Api::ApiVersions, version, &header);
            let sent = version >= 3;
            prop_assert_eq!(&*read.client_software_name, if sent { &name[..] } else { "" });
            prop_assert_eq!(&*read.client_software_version, if sent { &software[..] } else { "" });
        }
    }

    #[test]
    fn init_producer_id_requests(
        h in header(),
        transactional_id in proptest::option::of("\\PC{0,300}"),
        transaction_timeout_ms in any::<i32>(),
        current in proptest::option::of((0..=i64::MAX, 0..=i16::MAX)),
    ) {
        let header = given(&h);
        let request = init_producer_id::Request {
            transactional_id: transactional_id.as_deref(),
            transaction_timeout_ms,
            current: current.map(|(id, epoch)| Identity {
                id: ProducerId::new(id).unwrap(),
                epoch: ProducerEpoch::new(epoch).unwrap(),
            }),
        };
        for version in versions(Api::InitProducerId) {
            let frame = request.encode(version, &header).unwrap();
            let read: InitProducerIdRequest = read(&frame, Api::InitProducerId, version, &header);
            prop_assert_eq!(
                read.transactional_id.as_ref().map(|id| &***id),
                transactional_id.as_deref()
            );
            prop_assert_eq!(read.transaction_timeout_ms, transaction_timeout_ms);
            let (id, epoch) = if version >= 3 { current.unwrap_or((-1, -1)) } else { (-1, -1) };
            prop_assert_eq!((*read.producer_id, read.producer_epoch), (id, epoch));
        }
    }

    #[test]
    fn metadata_requests(
        h in header(),
        names in proptest::collection::vec(name(), 0..200),
        ids in proptest::collection::vec(topic_id(), 0..200),
        allow_auto_topic_creation: bool,
    ) {
        let header = given(&h);
        let borrowed: Vec<&str> = names.iter().map(String::as_str).collect();
        for version in versions(Api::Metadata) {
            for topics in [
                metadata::Topics::All,
                metadata::Topics::Names(&borrowed),
                metadata::Topics::Ids(&ids),
            ] {
                let request = metadata::Request { topics, allow_auto_topic_creation };
                let encoded = request.encode(version, &header);
                if version < 12 && matches!(topics, metadata::Topics::Ids(_)) {
                    prop_assert_eq!(encoded, Err(EncodeError::TopicForm { version }));
                    continue;
                }
                let read: MetadataRequest =
                    read(&encoded.unwrap(), Api::Metadata, version, &header);
                prop_assert_eq!(
                    read.allow_auto_topic_creation,
                    version < 4 || allow_auto_topic_creation
                );
                prop_assert!(!read.include_cluster_authorized_operations);
                prop_assert!(!read.include_topic_authorized_operations);
                let read = read.topics.map(|topics| {
                    topics
                        .into_iter()
                        .map(|t| (t.topic_id.into_bytes(), t.name.map(|name| name.to_string())))
                        .collect::<Vec<_>>()
                });
                let expected = match topics {
                    metadata::Topics::All => None,
                    metadata::Topics::Names(names) => Some(
                        names.iter().map(|name| ([0; 16], Some((*name).to_owned()))).collect(),
                    ),
                    metadata::Topics::Ids(ids) => {
                        Some(ids.iter().map(|id| (id.bytes(), None)).collect())
                    }
                };
                prop_assert_eq!(read, expected);
            }
        }
    }

    #[test]
    fn produce_requests(
        h in header(),
        transactional_id in proptest::option::of("[a-z]{0,200}"),
        timeout_ms in any::<i32>(),
        topics in proptest::collection::btree_map(
            (name(), topic_id()),
            proptest::collection::btree_map(any::<i32>(), batch_size(), 1..5),
            0..150,
        ),
        shuffle in any::<u64>(),
    ) {
        let names: BTreeSet<_> = topics.keys().map(|(name, _)| name).collect();
        let ids: BTreeSet<_> = topics.keys().map(|(_, id)| id).collect();
        prop_assume!(names.len() == topics.len() && ids.len() == topics.len());
        let header = given(&h);
        let data = Bytes::from(vec![0xab; 20_000]);
        let mut batches: Vec<_> = topics
            .iter()
            .flat_map(|(topic, partitions)| partitions.iter().map(move |(p, n)| (topic, *p, *n)))
            .collect();
        let len = batches.len().max(1) as u64;
        batches.rotate_left((shuffle % len) as usize);
        for version in versions(Api::Produce) {
            let mut request = produce::Request::new(version, header, timeout_ms).unwrap();
            if let Some(id) = &transactional_id {
                request = request.with_transactional_id(id).unwrap();
            }
            for ((name, id), partition, bytes) in &batches {
                let topic = if version >= 13 { Topic::Id(*id) } else { Topic::Name(name) };
                let size = request.size_with(topic, *bytes);
                prop_assert_eq!(request.room(topic, size), *bytes);
                prop_assert!(request.room(topic, size - 1) < (*bytes).max(1));
                request.add(topic, *partition, data.slice(..*bytes)).unwrap();
                prop_assert_eq!(request.size(), size);
                prop_assert_eq!(
                    request.add(topic, *partition, Bytes::new()),
                    Err(EncodeError::PartitionTwice { partition: *partition })
                );
            }
            let segments = request.encode();
            prop_assert!(segments.iter().all(|part| !part.is_empty()));
            let frame = segments.to_bytes();
            prop_assert_eq!(frame.len(), segments.len());
            let read: ProduceRequest = read(&frame, Api::Produce, version, &header);
            prop_assert_eq!(
                read.transactional_id.as_ref().map(|id| &***id),
                transactional_id.as_deref()
            );
            prop_assert_eq!((read.acks, read.timeout_ms), (-1, timeout_ms));
            let mut found = BTreeMap::new();
            for topic in read.topic_data {
                let partitions: BTreeMap<_, _> = topic
                    .partition_data
                    .into_iter()
                    .map(|p| (p.index, p.records.unwrap().len()))
                    .collect();
                found.insert((topic.name.to_string(), topic.topic_id.into_bytes()), partitions);
            }
            let expected: BTreeMap<_, _> = topics
                .iter()
                .map(|((name, id), partitions)| match version {
                    13.. => ((String::new(), id.bytes()), partitions.clone()),
                    _ => ((name.clone(), [0; 16]), partitions.clone()),
                })
                .collect();
            prop_assert_eq!(found, expected);
        }
    }
}

/// Version 5 is newer than the oracle: version 3 with two more fields (KIP-1242).
#[test]
fn api_versions_5_says_whom_it_expects() {
    let header = RequestHeader { correlation_id: 1, client_id: Some("c") };
    let mut request =
        api_versions::Request { software_name: "rs", software_version: "0.1", expected: None };
    let before = request.encode(4, &header).unwrap();
    let none = request.encode(5, &header).unwrap();
    let fields = before.len() - 1;
    assert_eq!(none[..4], [0, 0, 0, 0x19]);
    assert_eq!(none[8..fields], before[8..fields]);
    assert_eq!(none[fields..], [0, 0xff, 0xff, 0xff, 0xff, 0]);

    let node = NodeId::new(258).unwrap();
    request.expected = Some(api_versions::Expected { cluster_id: "ab", node });
    let given = request.encode(5, &header).unwrap();
    assert_eq!(given[fields..], [3, b'a', b'b', 0, 0, 1, 2, 0]);
}

#[test]
fn versions_outside_the_table_are_refused() {
    let header = RequestHeader { correlation_id: 1, client_id: None };
    let versions =
        api_versions::Request { software_name: "a", software_version: "1", expected: None };
    let topics = metadata::Topics::All;
    let metadata = metadata::Request { topics, allow_auto_topic_creation: false };
    let init = init_producer_id::Request::idempotent();
    for (api, refused) in [
        (Api::ApiVersions, [versions.encode(-1, &header), versions.encode(6, &header)]),
        (Api::Metadata, [metadata.encode(0, &header), metadata.encode(14, &header)]),
        (Api::InitProducerId, [init.encode(-1, &header), init.encode(6, &header)]),
    ] {
        for refused in refused {
            let refused = refused.unwrap_err();
            assert!(matches!(refused, EncodeError::UnsupportedVersion { api: a, .. } if a == api));
        }
    }
    for version in [2, 14] {
        let refused = produce::Request::new(version, header, 0).unwrap_err();
        assert_eq!(refused, EncodeError::UnsupportedVersion { api: Api::Produce, version });
    }
}

#[test]
fn texts_that_a_classic_field_cannot_hold_are_refused() {
    let long = "a".repeat(32768);
    let longest = &long[1..];
    let bad = RequestHeader { correlation_id: 1, client_id: Some(&long) };
    let good = RequestHeader { correlation_id: 1, client_id: Some(longest) };
    let init = init_producer_id::Request::idempotent();
    let error = EncodeError::TextTooLong { field: "client id", bytes: 32768 };
    assert_eq!(init.encode(1, &bad), Err(error.clone()));
    assert_eq!(produce::Request::new(3, bad, 0).unwrap_err(), error);
    let frame = init.encode(1, &good).unwrap();
    let _: InitProducerIdRequest = read(&frame, Api::InitProducerId, 1, &good);

    let names = [&long[..]];
    let topics = metadata::Topics::Names(&names);
    let request = metadata::Request { topics, allow_auto_topic_creation: false };
    let error = EncodeError::TextTooLong { field: "topic name", bytes: 32768 };
    assert_eq!(request.encode(1, &good), Err(error.clone()));
    let mut request = produce::Request::new(3, good, 0).unwrap();
    assert_eq!(request.add(Topic::Name(&long), 0, Bytes::new()), Err(error));
    assert!(request.is_empty());
}

#[test]
fn produce_takes_topics_in_the_form_of_its_version_only() {
    let header = RequestHeader { correlation_id: 1, client_id: None };
    let id = Topic::Id(TopicId::new([1; 16]).unwrap());
    for version in versions(Api::Produce) {
        let mut request = produce::Request::new(version, header, 0).unwrap();
        let (right, wrong) =
            if version == 13 { (id, Topic::Name("t")) } else { (Topic::Name("t"), id) };
        let size = request.size();
        assert_eq!(request.add(wrong, 0, Bytes::new()), Err(EncodeError::TopicForm { version }));
        assert_eq!((request.size(), request.is_empty()), (size, true));
        assert_eq!(request.add(right, 0, Bytes::new()), Ok(()));
    }
}

/// The limit is the frame's length field, reached here with one buffer under many partitions.
#[test]
fn a_frame_beyond_its_length_field_is_refused() {
    let header = RequestHeader { correlation_id: 1, client_id: None };
    let mut request = produce::Request::new(9, header, 0).unwrap();
    let batch = Bytes::from(vec![0; 1 << 27]);
    let mut added = 0;
    let refused = loop {
        match request.add(Topic::Name("t"), added, batch.clone()) {
            Ok(()) => added += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(added, 15);
    assert!(matches!(refused, EncodeError::FrameTooLong { bytes } if bytes > 1 << 31));
    let room = request.room(Topic::Name("t"), (1 << 31) + 3);
    assert!(request.add(Topic::Name("t"), 15, batch.slice(..room)).is_ok());
    assert_eq!(request.size() - 4, i32::MAX as usize);
}

/// Counts take a second byte from 127 on, and a third from 16,383 on.
#[test]
fn many_partitions_are_counted_exactly() {
    let header = RequestHeader { correlation_id: 1, client_id: None };
    let batch = Bytes::from_static(&[0; 70]);
    for version in [8, 9] {
        let mut request = produce::Request::new(version, header, 0).unwrap();
        for partition in 0..16_400 {
            let size = request.size_with(Topic::Name("t"), batch.len());
            request.add(Topic::Name("t"), partition, batch.clone()).unwrap();
            assert_eq!(request.size(), size);
        }
        let frame = request.clone().encode().to_bytes();
        assert_eq!(frame.len(), request.size());
        let read: ProduceRequest = read(&frame, Api::Produce, version, &header);
        assert_eq!(read.topic_data[0].partition_data.len(), 16_400);
    }
}

/// SHAPE-1: the longest name fits every request that carries one.
#[test]
fn the_longest_topic_name_fits() {
    let header = RequestHeader { correlation_id: 1, client_id: None };
    let name = "a".repeat(candor_wire::MAX_TOPIC_NAME);
    candor_wire::check_topic_name(&name).unwrap();
    for version in 3..=12 {
        let mut request = produce::Request::new(version, header, 0).unwrap();
        request.add(Topic::Name(&name), 0, Bytes::from_static(&[0; 70])).unwrap();
        let frame = request.encode().to_bytes();
        let read: ProduceRequest = read(&frame, Api::Produce, version, &header);
        assert_eq!(&**read.topic_data[0].name, name);
    }
}
