//! Every response in every version, written by another encoder, unknown tags included.

#![allow(clippy::unwrap_used, reason = "a helper of tests fails the test")]

use std::collections::BTreeMap;

use bytes::{BufMut, Bytes, BytesMut};
use candor_core::{Identity, LeaderEpoch, PartitionResponse, ProducerEpoch, ProducerId};
use candor_wire::metadata::{Broker, Nodes};
use candor_wire::produce::{LeaderHint, PartitionAnswer, RecordError};
use candor_wire::{
    Api, DecodeError, ErrorCode, Malformed, NodeId, Topic, TopicId, VersionRange, api_versions,
    init_producer_id, metadata, produce, split_response,
};
use kafka_protocol::messages::api_versions_response::{
    ApiVersion, FinalizedFeatureKey, SupportedFeatureKey,
};
use kafka_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::produce_response::{
    BatchIndexAndErrorMessage, LeaderIdAndEpoch, NodeEndpoint, PartitionProduceResponse,
    TopicProduceResponse,
};
use kafka_protocol::messages::{
    ApiVersionsResponse, BrokerId, InitProducerIdResponse, MetadataResponse, ProduceResponse,
    ResponseHeader, TopicName,
};
use kafka_protocol::protocol::{Encodable, StrBytes};
use proptest::prelude::*;

type Tags = BTreeMap<i32, Bytes>;

fn write<T: Encodable>(response: &T, version: i16) -> Bytes {
    let mut body = BytesMut::new();
    response.encode(&mut body, version).unwrap();
    body.freeze()
}

fn versions(api: Api) -> impl Iterator<Item = i16> {
    let range = api.supported();
    range.min..=range.max
}

fn text() -> impl Strategy<Value = String> {
    "\\PC{0,40}"
}

/// Tags that no version knows.
fn tags() -> impl Strategy<Value = Tags> {
    let data = proptest::collection::vec(any::<u8>(), 0..200).prop_map(Bytes::from);
    proptest::collection::btree_map(1000..i32::MAX, data, 0..3)
}

fn kept(tags: &Tags, flexible: bool) -> Tags {
    if flexible { tags.clone() } else { Tags::new() }
}

fn str_bytes(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

fn topic_name(name: &str) -> TopicName {
    TopicName(str_bytes(name))
}

fn topic_id() -> impl Strategy<Value = TopicId> {
    any::<[u8; 16]>().prop_filter_map("zero means none", TopicId::new)
}

/// What a broker entry says, in Metadata and in the node endpoints of Produce.
#[derive(Clone, Debug)]
struct Node {
    id: i32,
    host: String,
    port: u16,
    rack: Option<String>,
}

impl Node {
    fn as_read(&self) -> Broker<'_> {
        Broker {
            node: NodeId::new(self.id).unwrap(),
            host: &self.host,
            port: self.port,
            rack: self.rack.as_deref(),
        }
    }
}

fn node() -> impl Strategy<Value = Node> {
    (0..=i32::MAX, text(), any::<u16>(), proptest::option::of(text()))
        .prop_map(|(id, host, port, rack)| Node { id, host, port, rack })
}

#[derive(Clone, Debug)]
struct Partition {
    error: i16,
    index: i32,
    leader: i32,
    epoch: i32,
    nodes: [Vec<i32>; 3],
}

fn partition() -> impl Strategy<Value = Partition> {
    let nodes = || proptest::collection::vec(any::<i32>(), 0..4);
    (any::<i16>(), any::<i32>(), -1..3, any::<i32>(), [nodes(), nodes(), nodes()]).prop_map(
        |(error, index, leader, epoch, nodes)| Partition { error, index, leader, epoch, nodes },
    )
}

#[derive(Clone, Debug)]
struct TopicInfo {
    error: i16,
    name: String,
    id: Option<TopicId>,
    is_internal: bool,
    partitions: Vec<Partition>,
}

fn topic_info() -> impl Strategy<Value = TopicInfo> {
    let partitions = proptest::collection::vec(partition(), 0..6);
    (any::<i16>(), text(), proptest::option::of(topic_id()), any::<bool>(), partitions).prop_map(
        |(error, name, id, is_internal, partitions)| TopicInfo {
            error,
            name,
            id,
            is_internal,
            partitions,
        },
    )
}

fn ids(ids: &[i32]) -> Vec<BrokerId> {
    ids.iter().copied().map(BrokerId).collect()
}

impl TopicInfo {
    fn write(&self, version: i16, tags: &Tags) -> MetadataResponseTopic {
        let tags = kept(tags, version >= 9);
        let partitions = self.partitions.iter().map(|p| {
            MetadataResponsePartition::default()
                .with_error_code(p.error)
                .with_partition_index(p.index)
                .with_leader_id(BrokerId(p.leader))
                .with_leader_epoch(if version >= 7 { p.epoch } else { -1 })
                .with_replica_nodes(ids(&p.nodes[0]))
                .with_isr_nodes(ids(&p.nodes[1]))
                .with_offline_replicas(if version >= 5 { ids(&p.nodes[2]) } else { vec![] })
                .with_unknown_tagged_fields(tags.clone())
        });
        let mut topic = MetadataResponseTopic::default()
            .with_error_code(self.error)
            .with_name(self.name_in(version).map(topic_name))
            .with_is_internal(self.is_internal)
            .with_partitions(partitions.collect())
            .with_unknown_tagged_fields(tags.clone());
        if let Some(id) = self.id
            && version >= 10
        {
            topic.topic_id = id.to_string().parse().unwrap();
        }
        if version >= 8 {
            topic.topic_authorized_operations = 0x0708;
        }
        topic
    }

    /// Since version 12 a topic may come without its name.
    fn name_in(&self, version: i16) -> Option<&str> {
        if version >= 12 && self.error == 100 { None } else { Some(&self.name) }
    }

    #[track_caller]
    fn check(&self, version: i16, read: &metadata::TopicInfo<'_>) {
        assert_eq!(read.error, ErrorCode(self.error));
        assert_eq!(read.name, self.name_in(version));
        assert_eq!(read.id, if version >= 10 { self.id } else { None });
        assert_eq!(read.is_internal, self.is_internal);
        assert_eq!(read.partitions.len(), self.partitions.len());
        for (read, p) in read.partitions.iter().zip(&self.partitions) {
            assert_eq!((read.error, read.index), (ErrorCode(p.error), p.index));
            assert_eq!(read.leader, NodeId::new(p.leader));
            let epoch = if version >= 7 { p.epoch } else { -1 };
            assert_eq!(read.leader_epoch, LeaderEpoch(epoch));
            let offline = if version >= 5 { &p.nodes[2][..] } else { &[] };
            let lists = [(read.replicas, &p.nodes[0][..]), (read.in_sync, &p.nodes[1])];
            for (nodes, expected) in lists.into_iter().chain([(read.offline, offline)]) {
                assert_eq!(Nodes::iter(&nodes).collect::<Vec<_>>(), expected);
                assert_eq!((nodes.len(), nodes.is_empty()), (expected.len(), expected.is_empty()));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn metadata_responses(
        throttle in any::<i32>(),
        nodes in proptest::collection::vec(node(), 0..150),
        cluster in proptest::option::of(text()),
        controller in -1..5,
        topics in proptest::collection::vec(topic_info(), 0..8),
        error in any::<i16>(),
        tags in tags(),
    ) {
        for version in versions(Api::Metadata) {
            let kept = kept(&tags, version >= 9);
            let brokers = nodes.iter().map(|node| {
                MetadataResponseBroker::default()
                    .with_node_id(BrokerId(node.id))
                    .with_host(str_bytes(&node.host))
                    .with_port(node.port.into())
                    .with_rack(node.rack.as_deref().map(str_bytes))
                    .with_unknown_tagged_fields(kept.clone())
            });
            let mut response = MetadataResponse::default()
                .with_throttle_time_ms(if version >= 3 { throttle } else { 0 })
                .with_brokers(brokers.collect())
                .with_cluster_id(cluster.as_deref().map(str_bytes).filter(|_| version >= 2))
                .with_controller_id(BrokerId(controller))
                .with_topics(topics.iter().map(|topic| topic.write(version, &tags)).collect())
                .with_error_code(if version >= 13 { error } else { 0 })
                .with_unknown_tagged_fields(kept.clone());
            if (8..=10).contains(&version) {
                response.cluster_authorized_operations = 77;
            }
            let body = write(&response, version);
            let read = metadata::Response::decode(version, &body).unwrap();
            prop_assert_eq!(read.throttle_ms, response.throttle_time_ms);
            let expected: Vec<_> = nodes.iter().map(Node::as_read).collect();
            prop_assert_eq!(read.brokers.iter().collect::<Vec<_>>(), expected);
            prop_assert_eq!(read.cluster_id, response.cluster_id.as_deref());
            prop_assert_eq!(read.controller, NodeId::new(controller));
            prop_assert_eq!(read.error, ErrorCode(response.error_code));
            prop_assert_eq!(read.topics.len(), topics.len());
            for (read, topic) in read.topics.iter().zip(&topics) {
                topic.check(version, &read);
            }
        }
    }

    #[test]
    fn init_producer_id_responses(
        throttle in any::<i32>(),
        error in prop_oneof![Just(0), any::<i16>()],
        id in prop_oneof![Just(-1), any::<i64>()],
        epoch in prop_oneof![Just(-1), any::<i16>()],
        tags in tags(),
    ) {
        for version in versions(Api::InitProducerId) {
            let response = InitProducerIdResponse::default()
                .with_throttle_time_ms(throttle)
                .with_error_code(error)
                .with_producer_id(id.into())
                .with_producer_epoch(epoch)
                .with_unknown_tagged_fields(kept(&tags, version >= 2));
            let body = write(&response, version);
            let read = init_producer_id::Response::decode(version, &body).unwrap();
            let identity = ProducerId::new(id)
                .zip(ProducerEpoch::new(epoch))
                .map(|(id, epoch)| Identity { id, epoch })
                .ok_or(ErrorCode::UNKNOWN_SERVER_ERROR);
            let outcome = if error == 0 { identity } else { Err(ErrorCode(error)) };
            prop_assert_eq!(read, init_producer_id::Response { throttle_ms: throttle, outcome });
        }
    }

    #[test]
    fn api_versions_responses(
        error in any::<i16>().prop_filter("35 is answered in version 0", |code| *code != 35),
        apis in proptest::collection::vec(any::<(i16, i16, i16)>(), 0..200),
        throttle in any::<i32>(),
        features in proptest::collection::vec((text(), any::<i16>(), any::<i16>()), 0..5),
        epoch in any::<i64>(),
        ready: bool,
        tags in tags(),
    ) {
        // The oracle ends at version 4; 5 has the same response.
        for version in 0..=5 {
            let flexible = version >= 3;
            let kept = kept(&tags, flexible);
            let api_keys = apis.iter().map(|(key, min, max)| {
                ApiVersion::default()
                    .with_api_key(*key)
                    .with_min_version(*min)
                    .with_max_version(*max)
                    .with_unknown_tagged_fields(kept.clone())
            });
            let mut response = ApiVersionsResponse::default()
                .with_error_code(error)
                .with_api_keys(api_keys.collect())
                .with_throttle_time_ms(if version >= 1 { throttle } else { 0 })
                .with_unknown_tagged_fields(kept.clone());
            if flexible {
                let supported = features.iter().map(|(name, min, max)| {
                    SupportedFeatureKey::default()
                        .with_name(str_bytes(name))
                        .with_min_version(*min)
                        .with_max_version(*max)
                        .with_unknown_tagged_fields(kept.clone())
                });
                let finalized = features.iter().rev().map(|(name, min, max)| {
                    FinalizedFeatureKey::default()
                        .with_name(str_bytes(name))
                        .with_min_version_level(*min)
                        .with_max_version_level(*max)
                        .with_unknown_tagged_fields(kept.clone())
                });
                response = response
                    .with_supported_features(supported.collect())
                    .with_finalized_features_epoch(epoch)
                    .with_finalized_features(finalized.collect())
                    .with_zk_migration_ready(ready);
            }
            let body = write(&response, version.min(4));
            let read = api_versions::Response::decode(version, &body).unwrap();
            let features: Vec<_> = features
                .iter()
                .filter(|_| flexible)
                .map(|(name, min, max)| api_versions::Feature { name, min: *min, max: *max })
                .collect();
            let range = |(key, min, max): &(i16, i16, i16)| {
                (*key, VersionRange { min: *min, max: *max })
            };
            prop_assert_eq!(read.error, ErrorCode(error));
            prop_assert_eq!(&read.apis, &apis.iter().map(range).collect::<Vec<_>>());
            prop_assert_eq!(read.throttle_ms, response.throttle_time_ms);
            prop_assert_eq!(read.finalized_features_epoch, if flexible { epoch } else { -1 });
            prop_assert_eq!(read.zk_migration_ready, flexible && ready);
            prop_assert!(read.supported_features.iter().eq(features.iter().copied()));
            prop_assert!(read.finalized_features.iter().eq(features.iter().rev().copied()));
        }
    }
}

/// Code, base offset, append time, log start, refused records, message, leader hint.
type Answer = (i32, i16, [i64; 3], Vec<(u32, Option<String>)>, Option<String>, Option<(i32, i32)>);

fn answer() -> impl Strategy<Value = Answer> {
    let record = (0..=i32::MAX as u32, proptest::option::of(text()));
    (
        any::<i32>(),
        any::<i16>(),
        any::<[i64; 3]>(),
        proptest::collection::vec(record, 0..4),
        proptest::option::of(text()),
        proptest::option::of((0..=i32::MAX, any::<i32>())),
    )
}

fn write_answer(answer: &Answer, version: i16, tags: &Tags) -> PartitionProduceResponse {
    let (index, error, offsets, records, message, leader) = answer;
    let kept = kept(tags, version >= 9);
    let mut response = PartitionProduceResponse::default()
        .with_index(*index)
        .with_error_code(*error)
        .with_base_offset(offsets[0])
        .with_log_append_time_ms(offsets[1])
        .with_unknown_tagged_fields(kept.clone());
    if version >= 5 {
        response.log_start_offset = offsets[2];
    }
    if version >= 8 {
        let record = |(index, message): &(u32, Option<String>)| {
            BatchIndexAndErrorMessage::default()
                .with_batch_index(*index as i32)
                .with_batch_index_error_message(message.as_deref().map(str_bytes))
                .with_unknown_tagged_fields(kept.clone())
        };
        response.record_errors = records.iter().map(record).collect();
        response.error_message = message.as_deref().map(str_bytes);
    }
    if let Some((leader, epoch)) = leader
        && version >= 10
    {
        response.current_leader = LeaderIdAndEpoch::default()
            .with_leader_id(BrokerId(*leader))
            .with_leader_epoch(*epoch)
            .with_unknown_tagged_fields(kept);
    }
    response
}

#[track_caller]
fn check_answer(answer: &Answer, version: i16, read: &PartitionAnswer<'_>) {
    let (index, error, [base_offset, append_time, log_start], records, message, leader) = answer;
    let log_start = if version >= 5 { *log_start } else { -1 };
    assert_eq!((read.index, read.error), (*index, ErrorCode(*error)));
    assert_eq!((read.base_offset, read.log_append_time_ms), (*base_offset, *append_time));
    assert_eq!(read.log_start_offset, log_start);
    let message = message.as_deref().filter(|_| version >= 8);
    assert_eq!(read.error_message, message);
    let records: Vec<_> = records
        .iter()
        .filter(|_| version >= 8)
        .map(|(index, message)| RecordError { index: *index, message: message.as_deref() })
        .collect();
    assert_eq!(read.record_errors.clone().collect::<Vec<_>>(), records);
    let hint = leader.filter(|_| version >= 10).map(|(node, epoch)| LeaderHint {
        node: NodeId::new(node).unwrap(),
        epoch: LeaderEpoch(epoch),
    });
    assert_eq!(read.current_leader, hint);
    let told = PartitionResponse::from(read);
    assert_eq!((told.error_code, told.base_offset), (*error, *base_offset));
    assert_eq!((told.log_append_time, told.log_start_offset), (*append_time, log_start));
    assert_eq!(told.record_errors, records.iter().map(|r| r.index).collect::<Vec<_>>());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn produce_responses(
        topics in proptest::collection::vec(
            (text(), topic_id(), proptest::collection::vec(answer(), 0..5)),
            0..8,
        ),
        throttle in any::<i32>(),
        endpoints in proptest::collection::vec(node(), 0..4),
        tags in tags(),
    ) {
        for version in versions(Api::Produce) {
            let kept = kept(&tags, version >= 9);
            let responses = topics.iter().map(|(name, id, answers)| {
                let answers = answers.iter().map(|answer| write_answer(answer, version, &tags));
                let mut topic = TopicProduceResponse::default()
                    .with_partition_responses(answers.collect())
                    .with_unknown_tagged_fields(kept.clone());
                if version >= 13 {
                    topic.topic_id = id.to_string().parse().unwrap();
                } else {
                    topic.name = topic_name(name);
                }
                topic
            });
            let endpoint = |node: &Node| {
                NodeEndpoint::default()
                    .with_node_id(BrokerId(node.id))
                    .with_host(str_bytes(&node.host))
                    .with_port(node.port.into())
                    .with_rack(node.rack.as_deref().map(str_bytes))
                    .with_unknown_tagged_fields(kept.clone())
            };
            let endpoints: Vec<_> = endpoints.iter().filter(|_| version >= 10).collect();
            let response = ProduceResponse::default()
                .with_responses(responses.collect())
                .with_throttle_time_ms(throttle)
                .with_node_endpoints(endpoints.iter().map(|node| endpoint(node)).collect())
                .with_unknown_tagged_fields(kept.clone());
            let body = write(&response, version);
            let read = produce::Response::decode(version, &body).unwrap();
            prop_assert_eq!(read.throttle_ms, throttle);
            let expected: Vec<_> = endpoints.iter().map(|node| node.as_read()).collect();
            prop_assert_eq!(read.node_endpoints.iter().collect::<Vec<_>>(), expected);
            let expected: Vec<_> = topics
                .iter()
                .flat_map(|(name, id, answers)| {
                    let topic = if version >= 13 { Topic::Id(*id) } else { Topic::Name(name) };
                    answers.iter().map(move |answer| (topic, answer))
                })
                .collect();
            let read: Vec<_> = read.partitions().collect();
            prop_assert_eq!(read.len(), expected.len());
            for (read, (topic, answer)) in read.iter().zip(expected) {
                prop_assert_eq!(read.topic, topic);
                check_answer(answer, version, read);
            }
        }
    }

    #[test]
    fn response_headers(correlation_id in any::<i32>(), tags in tags(), rest: Vec<u8>) {
        for api in Api::ALL {
            for version in versions(api) {
                let tagged = api != Api::ApiVersions && api.flexible(version);
                let header = ResponseHeader::default()
                    .with_correlation_id(correlation_id)
                    .with_unknown_tagged_fields(kept(&tags, tagged));
                let mut frame = BytesMut::new();
                header.encode(&mut frame, tagged.into()).unwrap();
                frame.put_slice(&rest);
                prop_assert_eq!(
                    split_response(api, version, &frame),
                    Ok((correlation_id, &rest[..]))
                );
            }
        }
    }
}

/// A broker that does not know the version answers in version 0 with code 35, whatever was asked.
#[test]
fn an_unsupported_version_is_answered_in_version_0() {
    let mut response = ApiVersionsResponse::default().with_error_code(35);
    for version in 0..=5 {
        let body = write(&response, 0);
        let read = api_versions::Response::decode(version, &body).unwrap();
        assert_eq!((read.error, read.apis.len()), (ErrorCode::UNSUPPORTED_VERSION, 0));
        assert_eq!(read.fallback(), 0);
    }
    // Since 2.4 it names its own highest.
    let own = ApiVersion::default().with_api_key(18).with_max_version(3);
    response.api_keys.push(own);
    let body = write(&response, 0);
    assert_eq!(api_versions::Response::decode(5, &body).unwrap().fallback(), 3);
    response.api_keys[0].max_version = 99;
    let body = write(&response, 0);
    assert_eq!(api_versions::Response::decode(5, &body).unwrap().fallback(), 5);
}

#[test]
fn one_byte_more_is_an_error() {
    let mut body = BytesMut::from(&write(&InitProducerIdResponse::default(), 2)[..]);
    let at = body.len();
    body.put_u8(0);
    assert_eq!(
        init_producer_id::Response::decode(2, &body),
        Err(DecodeError {
            message: "InitProducerId response",
            version: 2,
            what: Malformed::Trailing,
            at
        })
    );
}

#[test]
fn versions_outside_the_table_are_refused() {
    for version in [-1, 14] {
        let what = Malformed::UnknownVersion;
        assert_eq!(metadata::Response::decode(version, &[]).unwrap_err().what, what);
        assert_eq!(produce::Response::decode(version, &[]).unwrap_err().what, what);
        assert_eq!(api_versions::Response::decode(version, &[]).unwrap_err().what, what);
        assert_eq!(init_producer_id::Response::decode(version, &[]).unwrap_err().what, what);
    }
}
