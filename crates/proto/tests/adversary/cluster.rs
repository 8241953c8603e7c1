//! Brokers that keep their word: they speak Kafka's bytes through a codec of others, process the
//! requests of a connection one after the other, and answer 0 only for what is committed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use candor_wire::BatchReader;
use kafka_protocol::messages::metadata_response::{
    MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::produce_response::{PartitionProduceResponse, TopicProduceResponse};
use kafka_protocol::messages::{
    ApiVersionsRequest, BrokerId, MetadataRequest, MetadataResponse, ProduceRequest,
    ProduceResponse, TopicName,
};
use kafka_protocol::protocol::{Decodable, decode_request_header_from_buffer};

use super::log::{Entry, Log, Said};
use super::speech::{frame, hint, listener, producer_id, text, topic_id, versions};

pub const NODES: i32 = 3;

/// One partition of a topic.
#[derive(Clone, Debug)]
pub struct Partition {
    pub leader: i32,
    pub epoch: i32,
    pub log: Log,
    /// Followers do not fetch: nothing is committed.
    pub stalled: bool,
}

/// One incarnation of a topic.
#[derive(Clone, Debug)]
pub struct Topic {
    pub id: u8,
    pub partitions: Vec<Partition>,
}

/// What one topic looked like.
type Snapshot = BTreeMap<String, (u8, Vec<(i32, i32)>)>;

/// What happens to the next partition's entry of a Produce request.
#[derive(Clone, Copy, Debug)]
pub enum Trouble {
    /// Refused before the append.
    Before(i16),
    /// Answered with this code, if it was appended.
    After(i16),
    /// Left out of the answer, if it was appended.
    Missing,
    /// Answered twice in the same words, if it was appended.
    Twice,
    /// Refused with 6 and a true hint (if the node does not lead).
    Hint,
}

/// How far a partition's entry of a request is.
#[derive(Clone, Debug)]
struct Item {
    topic: usize,
    index: i32,
    said: (i16, i64),
    waits: Option<(String, i64)>,
    /// What befalls the answer to what was appended.
    trouble: Option<Trouble>,
    hint: Option<(i32, i32)>,
}

/// A Produce request that waits for followers.
#[derive(Debug)]
struct Pending {
    request: ProduceRequest,
    version: i16,
    correlation: i32,
    items: Vec<Item>,
    until: u64,
}

/// One connection as its broker sees it.
#[derive(Debug, Default)]
pub struct Channel {
    pub node: i32,
    pub requests: VecDeque<Bytes>,
    pending: Option<Pending>,
}

impl Channel {
    pub fn new(node: i32, requests: VecDeque<Bytes>) -> Self {
        Self { node, requests, pending: None }
    }

    /// When its request is answered at the latest.
    pub fn due(&self) -> Option<u64> {
        self.pending.as_ref().map(|pending| pending.until)
    }
}

#[derive(Debug)]
pub struct Cluster {
    pub topics: BTreeMap<String, Topic>,
    /// Logs of topics that were deleted.
    pub gone: Vec<(String, i32, Log)>,
    /// The newest versions of Produce and Metadata.
    pub versions: (i16, i16),
    /// What metadata says of topics instead.
    pub topic_errors: BTreeMap<String, i16>,
    pub throttle_ms: i32,
    pub trouble: VecDeque<Trouble>,
    /// Nodes that serve what was true then.
    pub stale: BTreeMap<i32, Snapshot>,
    /// Nodes that name no brokers.
    pub forgetful: BTreeSet<i32>,
    pub init_errors: VecDeque<i16>,
    pub requests: u64,
    /// Where metadata says that all nodes listen.
    pub port: i32,
    next_pid: i64,
    next_id: u8,
}

/// Fields of a future that nobody knows yet.
fn unknown_tags(flexible: bool) -> BTreeMap<i32, Bytes> {
    let tags = [(77, Bytes::from_static(b"later")), (4_000, Bytes::new())];
    tags.into_iter().filter(|_| flexible).collect()
}

impl Cluster {
    pub fn new(versions: (i16, i16)) -> Self {
        let mut cluster = Self {
            topics: BTreeMap::new(),
            gone: Vec::new(),
            versions,
            topic_errors: BTreeMap::new(),
            throttle_ms: 0,
            trouble: VecDeque::new(),
            stale: BTreeMap::new(),
            forgetful: BTreeSet::new(),
            init_errors: VecDeque::new(),
            requests: 0,
            port: 9092,
            next_pid: 7_000,
            next_id: 1,
        };
        cluster.create("x", 3);
        cluster.create("y", 2);
        cluster
    }

    pub fn create(&mut self, name: &str, partitions: i32) {
        let partition = |index: i32| Partition {
            leader: 1 + index % NODES,
            epoch: 0,
            log: Log::default(),
            stalled: false,
        };
        let partitions = (0..partitions).map(partition).collect();
        self.next_id += 1;
        self.topics.insert(name.to_owned(), Topic { id: self.next_id, partitions });
    }

    pub fn delete(&mut self, name: &str) {
        let Some(topic) = self.topics.remove(name) else { return };
        for (index, partition) in topic.partitions.into_iter().enumerate() {
            self.gone.push((name.to_owned(), index as i32, partition.log));
        }
    }

    pub fn partitions(&mut self) -> Vec<&mut Partition> {
        self.topics.values_mut().flat_map(|topic| &mut topic.partitions).collect()
    }

    pub fn snapshot(&self) -> Snapshot {
        let topic = |topic: &Topic| {
            (topic.id, topic.partitions.iter().map(|p| (p.leader, p.epoch)).collect())
        };
        self.topics.iter().map(|(name, it)| (name.clone(), topic(it))).collect()
    }

    /// All logs of a partition, the newest last.
    pub fn logs(&self, name: &str, index: i32) -> Vec<&Log> {
        let gone = self.gone.iter().filter(|(n, i, _)| n == name && *i == index);
        let now = self.topics.get(name).and_then(|it| it.partitions.get(index as usize));
        gone.map(|(.., log)| log).chain(now.map(|it| &it.log)).collect()
    }

    /// Everybody fetches.
    pub fn replicate(&mut self) {
        for partition in self.partitions() {
            if !partition.stalled {
                partition.log.commit();
            }
        }
    }

    /// Takes one request of a channel, or looks whether the one before can be answered now.
    pub fn process(&mut self, channel: &mut Channel, now: u64) -> Option<Bytes> {
        if channel.pending.is_none() {
            let request = channel.requests.pop_front()?;
            self.requests += 1;
            match self.begin(channel.node, request, now) {
                Ok(reply) => return Some(reply),
                Err(pending) => channel.pending = Some(*pending),
            }
        }
        self.replicate();
        let mut pending = channel.pending.take()?;
        let late = now >= pending.until;
        for item in &mut pending.items {
            let Some((name, offset)) = item.waits.clone() else { continue };
            let found =
                self.topics.get(&name).and_then(|it| it.partitions.get(item.index as usize));
            let settled = match found {
                None => Some(3),
                Some(it) if it.leader != channel.node => Some(6),
                Some(it) if it.log.is_committed(offset) => Some(0),
                Some(_) => late.then_some(7),
            };
            if let Some(code) = settled {
                item.said = (code, offset);
                item.waits = None;
            }
        }
        if pending.items.iter().any(|item| item.waits.is_some()) {
            channel.pending = Some(pending);
            return None;
        }
        Some(self.answer(&pending))
    }

    fn begin(&mut self, node: i32, mut frame: Bytes, now: u64) -> Result<Bytes, Box<Pending>> {
        let header = decode_request_header_from_buffer(&mut frame).unwrap();
        let (version, correlation) = (header.request_api_version, header.correlation_id);
        Ok(match header.request_api_key {
            18 if version > 4 => self.versions(0, correlation, 35),
            18 => {
                ApiVersionsRequest::decode(&mut frame, version).unwrap();
                self.versions(version, correlation, 0)
            }
            3 => {
                let request = MetadataRequest::decode(&mut frame, version).unwrap();
                self.metadata(node, &request, version, correlation)
            }
            22 => self.producer_id(version, correlation),
            0 => {
                let request = ProduceRequest::decode(&mut frame, version).unwrap();
                let pending = self.produce(node, request, version, correlation, now);
                return Err(Box::new(pending));
            }
            other => panic!("nobody asks for api {other}"),
        })
    }

    fn versions(&self, version: i16, correlation: i32, error: i16) -> Bytes {
        let (produce, metadata) = self.versions;
        let ours = [(0, 3, produce), (3, 4, metadata), (18, 0, 4), (22, 0, 4)];
        frame(&versions(ours, error), version, correlation)
    }

    fn producer_id(&mut self, version: i16, correlation: i32) -> Bytes {
        let error = self.init_errors.pop_front().unwrap_or(0);
        self.next_pid += 1;
        let response = producer_id(self.next_pid, error).with_throttle_time_ms(self.throttle_ms);
        frame(&response, version, correlation)
    }

    fn metadata(
        &self,
        node: i32,
        request: &MetadataRequest,
        version: i16,
        correlation: i32,
    ) -> Bytes {
        let told = self.stale.get(&node).cloned().unwrap_or_else(|| self.snapshot());
        let names = request.topics.iter().flatten().filter_map(|topic| topic.name.clone());
        let topics = names.map(|name| {
            let described = MetadataResponseTopic::default().with_name(Some(name.clone()));
            if let Some(error) = self.topic_errors.get(&*name.0) {
                return described.with_error_code(*error);
            }
            let Some((id, partitions)) = told.get(&*name.0) else {
                return described.with_error_code(3);
            };
            let partitions = partitions.iter().enumerate().map(|(index, (leader, epoch))| {
                MetadataResponsePartition::default()
                    .with_error_code(if *leader < 0 { 5 } else { 0 })
                    .with_partition_index(index as i32)
                    .with_unknown_tagged_fields(unknown_tags(version >= 9))
                    .with_leader_id(BrokerId(*leader))
                    .with_leader_epoch(if version >= 7 { *epoch } else { -1 })
            });
            let described = described.with_partitions(partitions.collect());
            match version {
                10.. => described.with_topic_id(topic_id(*id).parse().unwrap()),
                _ => described,
            }
        });
        let named = if self.forgetful.contains(&node) { 0 } else { NODES };
        let brokers = (1..=named).map(|node| listener(node, self.port));
        let response = MetadataResponse::default()
            .with_unknown_tagged_fields(unknown_tags(version >= 9))
            .with_brokers(brokers.collect())
            .with_cluster_id(Some(text("one")))
            .with_topics(topics.collect());
        frame(&response, version, correlation)
    }

    fn produce(
        &mut self,
        node: i32,
        request: ProduceRequest,
        version: i16,
        correlation: i32,
        now: u64,
    ) -> Pending {
        let until = now + request.timeout_ms.max(0) as u64 * 1_000;
        let mut items = Vec::new();
        for (at, topic) in request.topic_data.iter().enumerate() {
            let name = if version < 13 {
                Some(topic.name.0.to_string())
            } else {
                let id = topic.topic_id.to_string();
                let found = self.topics.iter().find(|(_, topic)| topic_id(topic.id) == id);
                found.map(|(name, _)| name.clone())
            };
            for data in &topic.partition_data {
                let (batch, rest) = BatchReader::read(data.records.as_ref().unwrap()).unwrap();
                assert!(rest.is_empty());
                let mut item = self.handle(node, name.as_deref(), version, data.index, &batch);
                item.topic = at;
                items.push(item);
            }
        }
        Pending { request, version, correlation, items, until }
    }

    fn handle(
        &mut self,
        node: i32,
        name: Option<&str>,
        version: i16,
        index: i32,
        batch: &BatchReader<'_>,
    ) -> Item {
        let said = |code| Item {
            topic: 0,
            index,
            said: (code, -1),
            waits: None,
            trouble: None,
            hint: None,
        };
        let trouble = self.trouble.pop_front();
        if let Some(Trouble::Before(code)) = trouble {
            return said(code);
        }
        let Some(name) = name else { return said(100) };
        let found = self.topics.get_mut(name);
        let Some(partition) = found.and_then(|it| it.partitions.get_mut(index as usize)) else {
            return said(3);
        };
        if partition.leader != node {
            let hints = matches!(trouble, Some(Trouble::Hint)) && version >= 10;
            let hint =
                (hints && partition.leader > 0).then_some((partition.leader, partition.epoch));
            return Item { hint, ..said(6) };
        }
        let header = batch.header();
        let value = |value: Option<&[u8]>| {
            let text = std::str::from_utf8(value.unwrap()).unwrap().trim_end_matches('.');
            text.parse().unwrap()
        };
        let entry = Entry {
            base: 0,
            pid: header.producer_id,
            epoch: header.producer_epoch,
            first: header.base_sequence,
            max_timestamp: header.max_timestamp,
            values: batch.records().map(|record| value(record.unwrap().value)).collect(),
        };
        let waits = match partition.log.append(entry) {
            Said::Code(code) => return said(code),
            Said::Appended(offset) => Some((name.to_owned(), offset)),
        };
        Item { waits, trouble, ..said(0) }
    }

    fn answer(&self, pending: &Pending) -> Bytes {
        let Pending { request, version, correlation, items, .. } = pending;
        let mut endpoints = Vec::new();
        let mut responses = Vec::new();
        for (at, topic) in request.topic_data.iter().enumerate() {
            let mut answers = Vec::new();
            for item in items.iter().filter(|item| item.topic == at) {
                let (code, offset) = item.said;
                let code = match item.trouble {
                    Some(Trouble::Missing) => continue,
                    Some(Trouble::After(code)) => code,
                    Some(Trouble::Before(_) | Trouble::Twice | Trouble::Hint) | None => code,
                };
                let mut answer = PartitionProduceResponse::default()
                    .with_index(item.index)
                    .with_unknown_tagged_fields(unknown_tags(*version >= 9))
                    .with_error_code(code)
                    .with_base_offset(offset)
                    .with_log_append_time_ms(-1)
                    .with_log_start_offset(if code == 0 && *version >= 5 { 0 } else { -1 });
                if let Some((node, epoch)) = item.hint {
                    let (leader, endpoint) = hint(node, epoch);
                    answer = answer.with_current_leader(leader);
                    endpoints.push(endpoint);
                }
                if let Some(Trouble::Twice) = item.trouble {
                    answers.push(answer.clone());
                }
                answers.push(answer);
            }
            responses.push(
                TopicProduceResponse::default()
                    .with_name(TopicName(topic.name.0.clone()))
                    .with_topic_id(topic.topic_id)
                    .with_unknown_tagged_fields(unknown_tags(*version >= 9))
                    .with_partition_responses(answers),
            );
        }
        let response = ProduceResponse::default()
            .with_unknown_tagged_fields(unknown_tags(*version >= 9))
            .with_responses(responses)
            .with_throttle_time_ms(self.throttle_ms)
            .with_node_endpoints(endpoints);
        frame(&response, *version, *correlation)
    }
}
