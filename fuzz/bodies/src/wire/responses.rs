//! The responses of the four APIs.

use candor_core::{Identity, PartitionResponse, ProducerEpoch, ProducerId};
use candor_sim::codec;
use candor_wire::produce::PartitionAnswer;
use candor_wire::{
    Api, ErrorCode, NodeId, Topic, TopicId, api_versions, init_producer_id, metadata, produce,
};

use super::{second_opinion, versioned};

/// ApiVersions, the fallback to version 0 and the version to ask with next included.
pub fn api_versions(data: &[u8]) {
    let (version, body) = versioned(Api::ApiVersions, data);
    let Ok(response) = api_versions::Response::decode(version, body) else { return };
    assert!(Api::ApiVersions.supported().contains(response.fallback()));
    for api in Api::ALL {
        let found = response.apis.iter().find(|(key, _)| *key == api.key());
        assert_eq!(response.range(api), found.map(|(_, range)| *range));
    }
    // A refusal comes in version 0, whatever was asked.
    let version = if response.error == ErrorCode::UNSUPPORTED_VERSION { 0 } else { version };
    let ours = versions_of(&response);
    let decode = codec::ApiVersionsResponse::decode;
    if let Some(mut theirs) = second_opinion(Api::ApiVersions, version, body, decode) {
        theirs.features_epoch = theirs.features_epoch.max(-1);
        assert_eq!(ours, theirs);
    }
    let again = ours.encode(version);
    let again = api_versions::Response::decode(version, &again).expect("it reads what is written");
    assert_eq!(versions_of(&again), ours);
}

pub(super) fn versions_of(response: &api_versions::Response<'_>) -> codec::ApiVersionsResponse {
    let range = |(api, range): &(i16, candor_wire::VersionRange)| codec::VersionRange {
        api: *api,
        min: range.min,
        max: range.max,
    };
    codec::ApiVersionsResponse {
        error: response.error.0,
        apis: response.apis.iter().map(range).collect(),
        features_epoch: response.finalized_features_epoch.max(-1),
        features: response.finalized_features.iter().map(|f| (f.name.to_owned(), f.max)).collect(),
    }
}

/// Metadata.
pub fn metadata(data: &[u8]) {
    let (version, body) = versioned(Api::Metadata, data);
    let Ok(response) = metadata::Response::decode(version, body) else { return };
    let ours = metadata_of(&response);
    let decode = codec::MetadataResponse::decode;
    if let Some(mut theirs) = second_opinion(Api::Metadata, version, body, decode) {
        theirs.controller = theirs.controller.max(-1);
        let partitions = theirs.topics.iter_mut().flat_map(|topic| &mut topic.partitions);
        partitions.for_each(|partition| partition.leader = partition.leader.max(-1));
        assert_eq!(ours, theirs);
    }
    let again = ours.encode(version);
    let again = metadata::Response::decode(version, &again).expect("it reads what is written");
    assert_eq!(metadata_of(&again), ours);
}

pub(super) fn metadata_of(response: &metadata::Response<'_>) -> codec::MetadataResponse {
    let partition = |p: metadata::Partition<'_>| codec::MetadataPartition {
        error: p.error.0,
        index: p.index,
        leader: number(p.leader),
        leader_epoch: p.leader_epoch.0,
        replicas: nodes(p.replicas),
        isr: nodes(p.in_sync),
        offline: nodes(p.offline),
    };
    let topic = |topic: metadata::TopicInfo<'_>| codec::MetadataTopic {
        error: topic.error.0,
        name: topic.name.map(str::to_owned),
        id: topic.id.map_or([0; 16], TopicId::bytes),
        partitions: topic.partitions.iter().map(partition).collect(),
    };
    codec::MetadataResponse {
        brokers: response.brokers.iter().map(endpoint).collect(),
        cluster_id: response.cluster_id.map(str::to_owned),
        controller: number(response.controller),
        topics: response.topics.iter().map(topic).collect(),
        error: response.error.0,
    }
}

fn nodes(nodes: metadata::Nodes<'_>) -> Vec<i32> {
    let all: Vec<_> = nodes.iter().collect();
    assert_eq!((all.len(), all.is_empty()), (nodes.len(), nodes.is_empty()));
    all
}

fn number(node: Option<NodeId>) -> i32 {
    node.map_or(-1, NodeId::get)
}

fn endpoint(broker: metadata::Broker<'_>) -> codec::Endpoint {
    codec::Endpoint {
        node: broker.node.get(),
        host: broker.host.to_owned(),
        port: broker.port.into(),
        rack: broker.rack.map(str::to_owned),
    }
}

/// InitProducerId.
pub fn init_producer_id(data: &[u8]) {
    let (version, body) = versioned(Api::InitProducerId, data);
    let Ok(response) = init_producer_id::Response::decode(version, body) else { return };
    let decode = codec::InitProducerIdResponse::decode;
    if let Some(theirs) = second_opinion(Api::InitProducerId, version, body, decode) {
        assert_eq!(response.outcome, outcome(&theirs));
        let again = theirs.encode(version);
        let again = init_producer_id::Response::decode(version, &again);
        assert_eq!(again.expect("it reads what is written").outcome, response.outcome);
    }
}

pub(super) fn outcome(theirs: &codec::InitProducerIdResponse) -> Result<Identity, ErrorCode> {
    let named = (ProducerId::new(theirs.producer_id), ProducerEpoch::new(theirs.producer_epoch));
    match (theirs.error, named) {
        (0, (Some(id), Some(epoch))) => Ok(Identity { id, epoch }),
        (0, (None, _) | (_, None)) => Err(ErrorCode::UNKNOWN_SERVER_ERROR),
        (code, _) => Err(ErrorCode(code)),
    }
}

/// Produce: checked, visited partition by partition, and turned into what the lane gets.
pub fn produce(data: &[u8]) {
    let (version, body) = versioned(Api::Produce, data);
    let Ok(response) = produce::Response::decode(version, body) else { return };
    let ours = produced(&response);
    let decode = codec::ProduceResponse::decode;
    if let Some(theirs) = second_opinion(Api::Produce, version, body, decode) {
        assert_eq!(ours, flattened(theirs));
    }
    let again = ours.encode(version);
    let again = produce::Response::decode(version, &again).expect("it reads what is written");
    assert_eq!(produced(&again), ours);
}

/// Every partition under a topic of its own.
pub(super) fn produced(response: &produce::Response<'_>) -> codec::ProduceResponse {
    let one = |answer: PartitionAnswer<'_>| {
        let told = PartitionResponse::from(&answer);
        assert_eq!(told.record_errors.len(), answer.record_errors.clone().count());
        let key = match answer.topic {
            Topic::Name(name) => codec::TopicKey::Name(name.to_owned()),
            Topic::Id(id) => codec::TopicKey::Id(id.bytes()),
        };
        codec::ProducedTopic { key, partitions: vec![produced_partition(&answer)] }
    };
    codec::ProduceResponse {
        topics: response.partitions().map(one).collect(),
        throttle_ms: response.throttle_ms,
        endpoints: response.node_endpoints.iter().map(endpoint).collect(),
    }
}

fn produced_partition(answer: &PartitionAnswer<'_>) -> codec::ProducedPartition {
    let error = |record: produce::RecordError<'_>| codec::RecordError {
        index: i32::try_from(record.index).expect("it was one on the wire"),
        message: record.message.map(str::to_owned),
    };
    codec::ProducedPartition {
        index: answer.index,
        error: answer.error.0,
        base_offset: answer.base_offset,
        log_append_time_ms: answer.log_append_time_ms,
        log_start_offset: answer.log_start_offset,
        record_errors: answer.record_errors.clone().map(error).collect(),
        error_message: answer.error_message.map(str::to_owned),
        leader: answer
            .current_leader
            .map(|hint| codec::LeaderHint { node: hint.node.get(), epoch: hint.epoch.0 }),
    }
}

fn flattened(theirs: codec::ProduceResponse) -> codec::ProduceResponse {
    let topics = theirs.topics.into_iter().flat_map(|topic| {
        let key = topic.key;
        topic.partitions.into_iter().map(move |mut one| {
            // A negative node is none.
            one.leader = one.leader.filter(|leader| leader.node >= 0);
            codec::ProducedTopic { key: key.clone(), partitions: vec![one] }
        })
    });
    codec::ProduceResponse { topics: topics.collect(), ..theirs }
}
