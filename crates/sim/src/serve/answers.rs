//! Answers that need nothing but a look at the cluster.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::versions;
use crate::broker::{Cluster, ClusterView, NodeId, NodeSet, PartitionView, Profile, TopicView};
use crate::codec::{
    ApiVersionsRequest, ApiVersionsResponse, Batch, EARLIEST, Endpoint, FetchPartition,
    FetchRequest, FetchResponse, FetchedPartition, InitProducerIdRequest, InitProducerIdResponse,
    LATEST, LOG_APPEND_TIME, ListOffsetsRequest, ListOffsetsResponse, ListedOffset,
    MetadataPartition, MetadataQuery, MetadataRequest, MetadataResponse, MetadataTopic, error,
};

/// The longest name a topic may have.
const LONGEST_NAME: usize = 249;

pub(super) fn api_versions(
    profile: Profile,
    request: &ApiVersionsRequest,
    version: i16,
) -> ApiVersionsResponse {
    if !request.is_valid(version) {
        return ApiVersionsResponse::refused(error::INVALID_REQUEST);
    }
    ApiVersionsResponse { apis: versions::advertised(profile), ..ApiVersionsResponse::refused(0) }
}

pub(super) fn init_producer_id(
    cluster: &mut Cluster<Bytes>,
    node: u8,
    request: &InitProducerIdRequest,
) -> InitProducerIdResponse {
    let InitProducerIdRequest { transactional_id, producer_id, producer_epoch, .. } = request;
    let given = cluster.init_producer_id(
        NodeId(node),
        transactional_id.as_deref(),
        *producer_id,
        *producer_epoch,
    );
    match given {
        Ok((producer_id, producer_epoch)) => {
            InitProducerIdResponse { error: 0, producer_id, producer_epoch }
        }
        Err(error) => InitProducerIdResponse::refused(error),
    }
}

/// The topics that a Metadata request would have created.
pub(super) fn wanted(view: &ClusterView, request: &MetadataRequest) -> Vec<String> {
    let names = request.topics.iter().flatten().filter_map(|query| query.name.as_ref());
    let unknown = names.filter(|name| view.topics.iter().all(|topic| topic.name != **name));
    unknown.filter(|name| is_topic_name(name)).cloned().collect()
}

fn is_topic_name(name: &str) -> bool {
    let legal = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    (1..=LONGEST_NAME).contains(&name.len())
        && name.bytes().all(legal)
        && !matches!(name, "." | "..")
}

/// What one broker knows, which may be old.
pub(super) fn metadata(
    view: &ClusterView,
    endpoints: &BTreeMap<u8, Endpoint>,
    request: &MetadataRequest,
) -> MetadataResponse {
    let topics = match &request.topics {
        None => view.topics.iter().map(topic).collect(),
        Some(queries) => queries.iter().map(|query| queried(view, query)).collect(),
    };
    let brokers = view.brokers.iter().filter_map(|node| endpoints.get(&node.0)).cloned().collect();
    MetadataResponse {
        brokers,
        cluster_id: Some("candor-model".to_owned()),
        controller: view.controller.map_or(-1, |node| i32::from(node.0)),
        topics,
        error: 0,
    }
}

fn queried(view: &ClusterView, query: &MetadataQuery) -> MetadataTopic {
    let missing = |error, name| MetadataTopic { error, name, id: query.id, partitions: vec![] };
    let Some(name) = &query.name else {
        let known = view.topics.iter().find(|topic| topic.id == query.id).map(topic);
        return known.unwrap_or_else(|| missing(error::UNKNOWN_TOPIC_ID, None));
    };
    if !is_topic_name(name) {
        return missing(error::INVALID_TOPIC, Some(name.clone()));
    }
    let known = view.topics.iter().find(|topic| topic.name == *name).map(topic);
    known.unwrap_or_else(|| missing(error::UNKNOWN_TOPIC_OR_PARTITION, Some(name.clone())))
}

fn topic(of: &TopicView) -> MetadataTopic {
    MetadataTopic {
        error: 0,
        name: Some(of.name.clone()),
        id: of.id,
        partitions: (0..).zip(&of.partitions).map(|(index, one)| partition(index, one)).collect(),
    }
}

fn partition(index: i32, of: &PartitionView) -> MetadataPartition {
    let ids = |nodes: NodeSet| nodes.iter().map(|node| i32::from(node.0)).collect();
    MetadataPartition {
        error: if of.leader.is_some() { 0 } else { error::LEADER_NOT_AVAILABLE },
        index,
        leader: of.leader.map_or(-1, |node| i32::from(node.0)),
        leader_epoch: of.leader_epoch,
        replicas: ids(of.replicas),
        isr: ids(of.isr),
        offline: Vec::new(),
    }
}

/// The batches of one replica as they lie in its log.
pub(super) fn stored(entries: &[crate::broker::Entry<Bytes>]) -> Vec<Batch> {
    let one = |entry: &crate::broker::Entry<Bytes>| {
        let batch = Batch::parse(entry.content.clone()).ok()?;
        Some(match entry.attributes & LOG_APPEND_TIME {
            0 => batch.stored(entry.base_offset, entry.leader_epoch),
            _ => batch.stored_at(entry.base_offset, entry.leader_epoch, entry.stamp),
        })
    };
    entries.iter().filter_map(one).collect()
}

pub(super) fn fetch(cluster: &Cluster<Bytes>, node: u8, request: &FetchRequest) -> FetchResponse {
    let topics = request.topics.iter().map(|(name, partitions)| {
        let fetched = partitions.iter().map(|one| fetch_one(cluster, node, name, one));
        (name.clone(), fetched.collect())
    });
    FetchResponse { topics: topics.collect() }
}

fn fetch_one(
    cluster: &Cluster<Bytes>,
    node: u8,
    topic: &str,
    wanted: &FetchPartition,
) -> FetchedPartition {
    let nothing = |error, high_watermark, log_start| FetchedPartition {
        index: wanted.index,
        error,
        high_watermark,
        log_start,
        records: Bytes::new(),
    };
    let index = usize::try_from(wanted.index).unwrap_or(usize::MAX);
    let node = NodeId(node);
    let Some(partition) = cluster.partition(topic, index) else {
        return nothing(error::UNKNOWN_TOPIC_OR_PARTITION, -1, -1);
    };
    let bounds = partition.start_offset(node).zip(partition.high_watermark(node));
    let Some((start, end)) = bounds.filter(|_| partition.believes_to_lead(node)) else {
        return nothing(error::NOT_LEADER_OR_FOLLOWER, -1, -1);
    };
    if !(start..=end).contains(&wanted.offset) {
        return nothing(error::OFFSET_OUT_OF_RANGE, end, start);
    }
    let entries = partition.entries(node);
    let from = entries.partition_point(|entry| entry.last_offset() < wanted.offset);
    let upto = entries.partition_point(|entry| entry.last_offset() < end);
    let mut records = Vec::new();
    for batch in entries.get(from..upto).unwrap_or_default() {
        let bytes = stored(std::slice::from_ref(batch));
        let more: usize = bytes.iter().map(|batch| batch.bytes.len()).sum();
        let limit = usize::try_from(wanted.max_bytes).unwrap_or(0);
        if !records.is_empty() && records.len() + more > limit {
            break;
        }
        bytes.iter().for_each(|batch| records.extend_from_slice(&batch.bytes));
    }
    FetchedPartition { records: records.into(), ..nothing(0, end, start) }
}

pub(super) fn list_offsets(
    cluster: &Cluster<Bytes>,
    node: u8,
    request: &ListOffsetsRequest,
) -> ListOffsetsResponse {
    let topics = request.topics.iter().map(|(name, partitions)| {
        let listed =
            partitions.iter().map(|(index, at)| list_one(cluster, node, name, *index, *at));
        (name.clone(), listed.collect())
    });
    ListOffsetsResponse { topics: topics.collect() }
}

fn list_one(
    cluster: &Cluster<Bytes>,
    node: u8,
    topic: &str,
    index: i32,
    timestamp: i64,
) -> ListedOffset {
    let refused = |error| ListedOffset { index, error, offset: -1, leader_epoch: -1 };
    let place = usize::try_from(index).unwrap_or(usize::MAX);
    let Some(partition) = cluster.partition(topic, place) else {
        return refused(error::UNKNOWN_TOPIC_OR_PARTITION);
    };
    let node = NodeId(node);
    if !partition.believes_to_lead(node) {
        return refused(error::NOT_LEADER_OR_FOLLOWER);
    }
    let offset = match timestamp {
        EARLIEST => partition.start_offset(node),
        LATEST => partition.high_watermark(node),
        // By batch, not by record: close enough for what this serves.
        at => {
            let later = partition.entries(node).iter().find(|entry| entry.stamp >= at);
            later.map(|entry| entry.base_offset)
        }
    };
    let leader_epoch = partition.leader_epoch();
    ListedOffset { index, error: 0, offset: offset.unwrap_or(-1), leader_epoch }
}
