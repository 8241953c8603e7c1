//! What the peer says: the truth, as far as it cares, in any version.

use std::collections::BTreeMap;

use candor_sim::codec::{
    API_VERSIONS, ApiVersionsResponse, Batch, Endpoint, INIT_PRODUCER_ID, InitProducerIdResponse,
    LeaderHint, METADATA, MetadataPartition, MetadataResponse, MetadataTopic, PRODUCE,
    ProduceRequest, ProduceResponse, ProducedPartition, ProducedTopic, Request, RequestHeader,
    VersionRange,
};

use crate::feed::Feed;

/// Partitions of every topic.
pub(super) const PARTITIONS: i32 = 3;

/// A cluster of three nodes that remembers as much as it takes to be believed.
pub(super) struct Cluster {
    produce: i16,
    metadata: i16,
    identity: i16,
    next_id: i64,
    /// Changes whenever leaders move.
    pub(super) turn: i32,
    /// Changes when topics are made anew.
    pub(super) life: u8,
    pub(super) throttle_ms: i32,
    ends: BTreeMap<i32, i64>,
}

impl Cluster {
    pub(super) fn new(feed: &mut Feed<'_>) -> Self {
        Self {
            produce: 13 - i16::from(feed.byte()) % 11,
            metadata: 13 - i16::from(feed.byte()) % 13,
            identity: 5 - i16::from(feed.byte()) % 6,
            next_id: 0,
            turn: 0,
            life: 1,
            throttle_ms: 0,
            ends: BTreeMap::new(),
        }
    }

    fn leader(&self, partition: i32) -> i32 {
        1 + (partition + self.turn).rem_euclid(3)
    }

    /// The body of an answer. `error` stands wherever the message has a place for it.
    pub(super) fn answer(
        &mut self,
        header: &RequestHeader,
        request: &Request,
        error: i16,
    ) -> Vec<u8> {
        let version = header.version;
        match request {
            Request::ApiVersions(_) => self.versions(error).encode(version),
            Request::UnknownApiVersions => ApiVersionsResponse::fallback(5).encode(0),
            Request::Metadata(asked) => {
                let names = asked.topics.iter().flatten().filter_map(|topic| topic.name.clone());
                self.describe(names.collect(), error).encode(version)
            }
            Request::InitProducerId(_) => self.identity(error).encode(version),
            Request::Produce(produce) => self.produce(produce, error).encode(version),
            Request::Fetch(_) | Request::ListOffsets(_) | Request::FindCoordinator(_) => {
                unreachable!("a producer does not read")
            }
        }
    }

    fn versions(&self, error: i16) -> ApiVersionsResponse {
        let range = |api, max| VersionRange { api, min: 0, max };
        let apis = vec![
            range(PRODUCE, self.produce),
            range(METADATA, self.metadata),
            range(API_VERSIONS, 4),
            range(INIT_PRODUCER_ID, self.identity),
        ];
        ApiVersionsResponse { apis, ..ApiVersionsResponse::refused(error) }
    }

    fn describe(&self, names: Vec<String>, error: i16) -> MetadataResponse {
        let partition = |index| MetadataPartition {
            error: 0,
            index,
            leader: self.leader(index),
            leader_epoch: self.turn,
            replicas: vec![1, 2, 3],
            isr: vec![1, 2],
            offline: vec![],
        };
        let topic = |name: String| MetadataTopic {
            error,
            id: [self.life; 16],
            name: Some(name),
            partitions: (0..PARTITIONS).map(partition).collect(),
        };
        MetadataResponse {
            brokers: (1..=3).map(endpoint).collect(),
            cluster_id: Some("cluster".to_owned()),
            controller: 1,
            topics: names.into_iter().map(topic).collect(),
            error: 0,
        }
    }

    fn identity(&mut self, error: i16) -> InitProducerIdResponse {
        self.next_id += 1;
        InitProducerIdResponse { error, producer_id: self.next_id, producer_epoch: 0 }
    }

    fn produce(&mut self, request: &ProduceRequest, error: i16) -> ProduceResponse {
        let topics = request.topics.iter().map(|topic| ProducedTopic {
            key: topic.key.clone(),
            partitions: topic
                .partitions
                .iter()
                .map(|one| {
                    let records = one.records.clone().expect("records are never null");
                    let batch = Batch::parse(records).expect("batches are whole");
                    self.append(one.index, batch.header.count, error)
                })
                .collect(),
        });
        let topics = topics.collect();
        let throttle_ms = self.throttle_ms;
        ProduceResponse { topics, throttle_ms, endpoints: (1..=3).map(endpoint).collect() }
    }

    fn append(&mut self, index: i32, count: i32, error: i16) -> ProducedPartition {
        if error != 0 {
            let leader = LeaderHint { node: self.leader(index), epoch: self.turn };
            let leader = (error == 6).then_some(leader);
            return ProducedPartition { leader, ..ProducedPartition::refused(index, error) };
        }
        let end = self.ends.entry(index).or_default();
        let base = *end;
        *end += i64::from(count);
        ProducedPartition { log_start_offset: 0, ..ProducedPartition::appended(index, base) }
    }
}

fn endpoint(node: i32) -> Endpoint {
    Endpoint { node, host: format!("b{node}"), port: 9092, rack: None }
}
