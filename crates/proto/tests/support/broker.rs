//! A small cluster behind bytes: decoded and encoded by another codec than the producer's. It keeps
//! logs and judges sequences; faults are scripted per Produce request.

use std::collections::{BTreeMap, VecDeque};

use bytes::{Bytes, BytesMut};
use candor_wire::BatchReader;
use kafka_protocol::messages::metadata_response::{
    MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::produce_response::{
    LeaderIdAndEpoch, NodeEndpoint, PartitionProduceResponse, TopicProduceResponse,
};
use kafka_protocol::messages::{
    ApiVersionsRequest, BrokerId, MetadataRequest, MetadataResponse, ProduceRequest,
    ProduceResponse, TopicName,
};
use kafka_protocol::protocol::{Decodable, decode_request_header_from_buffer};

use super::speech::{frame, hint, listener, producer_id, text, topic_id, versions};

/// What happens to a Produce request, instead of an honest answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Script {
    /// Handled and answered.
    Honest,
    /// Refused before the append, with this code.
    Refuse(i16),
    /// Appended, but never answered.
    Swallow,
    /// Neither appended nor answered.
    Ignore,
    /// Not appended, and answered with this code, offset and log start.
    Answer(i16, i64, i64),
    /// Appended; then the connection is cut.
    AppendAndCut,
    /// Appended, and every partition answered twice in the same words.
    AnswerTwice,
    /// Answered twice in different words, 0 first.
    Contradict,
    /// Appended, and a partition nobody asked about is answered too.
    AnswerMore,
    /// Appended, but the answer leaves out the last partition.
    AnswerLess,
    /// Answered with bytes that are no answer.
    Garbage,
    /// Answered with another correlation id.
    WrongCorrelation,
    /// Answered 6 with a hint at this node and epoch; not appended.
    Moved(i32, i32),
}

#[derive(Clone, Debug)]
pub struct Partition {
    pub leader: i32,
    pub epoch: i32,
    /// Values in order.
    pub log: Vec<String>,
    /// The last five batches by producer id and epoch.
    producers: BTreeMap<(i64, i16), VecDeque<Batch>>,
}

/// First and last sequence, and offset.
type Batch = (i32, i32, i64);

impl Partition {
    /// An empty one.
    pub fn led_by(leader: i32) -> Self {
        Self { leader, epoch: 0, log: Vec::new(), producers: BTreeMap::new() }
    }
}

#[derive(Clone, Debug)]
pub struct Topic {
    pub id: String,
    pub error: i16,
    pub partitions: Vec<Partition>,
}

/// What a Produce request looked like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub node: i32,
    pub version: i16,
    pub timeout_ms: i32,
    /// Topic, partition, epoch, first sequence, records.
    pub batches: Vec<(String, i32, i16, i32, i32)>,
}

pub struct Cluster {
    pub nodes: Vec<i32>,
    pub id: String,
    pub topics: BTreeMap<String, Topic>,
    pub versions: BTreeMap<i16, (i16, i16)>,
    pub script: VecDeque<Script>,
    pub throttle_ms: i32,
    pub init_errors: VecDeque<i16>,
    pub metadata_error: i16,
    /// This node knows no leaders.
    pub unaware: Option<i32>,
    pub seen: Vec<Seen>,
    pub metadata_requests: Vec<Vec<String>>,
    pub id_requests: usize,
    /// Where all nodes listen.
    pub port: i32,
    /// The last producer id is given again.
    pub same_id: bool,
    next_id: i64,
}

/// What a broker does with a request.
pub struct Reaction {
    pub reply: Option<Bytes>,
    pub cut: bool,
}

impl Cluster {
    /// Nodes 1.. on `b1:9092`.., and one topic `t` of so many partitions, led in turn.
    pub fn new(nodes: i32, partitions: i32) -> Self {
        let mut cluster = Self {
            nodes: (1..=nodes).collect(),
            id: "one".to_owned(),
            topics: BTreeMap::new(),
            versions: BTreeMap::from([(0, (0, 13)), (3, (0, 13)), (18, (0, 4)), (22, (0, 5))]),
            script: VecDeque::new(),
            throttle_ms: 0,
            init_errors: VecDeque::new(),
            metadata_error: 0,
            unaware: None,
            seen: Vec::new(),
            metadata_requests: Vec::new(),
            id_requests: 0,
            port: 9092,
            same_id: false,
            next_id: 4000,
        };
        cluster.create("t", 1, partitions);
        cluster
    }

    /// Creates a topic, or makes it anew.
    pub fn create(&mut self, name: &str, id: u8, partitions: i32) {
        let nodes = self.nodes.len() as i32;
        let partition = |index: i32| Partition::led_by(1 + index % nodes);
        let partitions = (0..partitions).map(partition).collect();
        self.topics.insert(name.to_owned(), Topic { id: topic_id(id), error: 0, partitions });
    }

    pub fn partition(&mut self, topic: &str, index: usize) -> &mut Partition {
        &mut self.topics.get_mut(topic).unwrap().partitions[index]
    }

    pub fn log(&self, topic: &str, index: usize) -> &[String] {
        &self.topics[topic].partitions[index].log
    }

    /// What of the partition was offered: (epoch, first sequence, records), in order.
    pub fn offered(&self, topic: &str, partition: i32) -> Vec<(i16, i32, i32)> {
        let batches = self.seen.iter().flat_map(|seen| &seen.batches);
        let ours = batches.filter(|b| b.0 == topic && b.1 == partition);
        ours.map(|b| (b.2, b.3, b.4)).collect()
    }

    pub fn handle(&mut self, node: i32, mut frame: Bytes) -> Reaction {
        let header = decode_request_header_from_buffer(&mut frame).unwrap();
        let (version, correlation) = (header.request_api_version, header.correlation_id);
        let (_, most) = self.versions[&header.request_api_key];
        let reply = match header.request_api_key {
            18 if version > most => self.versions_reply(0, correlation, 35),
            18 => {
                ApiVersionsRequest::decode(&mut frame, version).unwrap();
                self.versions_reply(version, correlation, 0)
            }
            3 => {
                let request = MetadataRequest::decode(&mut frame, version).unwrap();
                self.metadata(node, &request, version, correlation)
            }
            22 => self.producer_id(version, correlation),
            0 => {
                let request = ProduceRequest::decode(&mut frame, version).unwrap();
                return self.produce(node, &request, version, correlation);
            }
            other => panic!("nobody asks for api {other}"),
        };
        Reaction { reply: Some(reply), cut: false }
    }

    fn versions_reply(&self, version: i16, correlation: i32, error: i16) -> Bytes {
        let keys = self.versions.iter().map(|(key, (min, max))| (*key, *min, *max));
        frame(&versions(keys, error), version, correlation)
    }

    fn metadata(
        &mut self,
        node: i32,
        request: &MetadataRequest,
        version: i16,
        correlation: i32,
    ) -> Bytes {
        let names: Vec<String> = request
            .topics
            .iter()
            .flatten()
            .map(|topic| topic.name.as_ref().unwrap().0.to_string())
            .collect();
        let topics = names.iter().map(|name| self.describe(node, name, version)).collect();
        self.metadata_requests.push(names);
        let brokers = self.nodes.iter().map(|node| listener(*node, self.port));
        let response = MetadataResponse::default()
            .with_brokers(brokers.collect())
            .with_cluster_id((version >= 2).then(|| text(&self.id)))
            .with_error_code(if version >= 13 { self.metadata_error } else { 0 })
            .with_topics(topics);
        frame(&response, version, correlation)
    }

    fn describe(&self, node: i32, name: &str, version: i16) -> MetadataResponseTopic {
        let described = MetadataResponseTopic::default().with_name(Some(TopicName(text(name))));
        let Some(topic) = self.topics.get(name) else { return described.with_error_code(3) };
        if topic.error != 0 {
            return described.with_error_code(topic.error);
        }
        if self.unaware == Some(node) {
            return described.with_error_code(5);
        }
        let partitions = topic.partitions.iter().enumerate().map(|(index, partition)| {
            MetadataResponsePartition::default()
                .with_error_code(if partition.leader < 0 { 5 } else { 0 })
                .with_partition_index(index as i32)
                .with_leader_id(BrokerId(partition.leader))
                .with_leader_epoch(if version >= 7 { partition.epoch } else { -1 })
        });
        let described = described.with_partitions(partitions.collect());
        if version >= 10 { described.with_topic_id(topic.id.parse().unwrap()) } else { described }
    }

    fn producer_id(&mut self, version: i16, correlation: i32) -> Bytes {
        self.id_requests += 1;
        let error = self.init_errors.pop_front().unwrap_or(0);
        self.next_id += i64::from(!self.same_id);
        frame(&producer_id(self.next_id, error), version, correlation)
    }

    fn produce(
        &mut self,
        node: i32,
        request: &ProduceRequest,
        version: i16,
        correlation: i32,
    ) -> Reaction {
        assert_eq!(request.acks, -1);
        let script = self.script.pop_front().unwrap_or(Script::Honest);
        let mut seen = Seen { node, version, timeout_ms: request.timeout_ms, batches: Vec::new() };
        let hinted = hinted(&script, version);
        let mut responses = Vec::new();
        for topic in &request.topic_data {
            let name = self.topic_name(topic, version);
            let mut answers = Vec::new();
            for data in &topic.partition_data {
                let answer = self.answer(node, name.as_deref(), data, &script, &mut seen);
                answers.push(match &hinted {
                    Some((leader, _)) => answer.with_current_leader(leader.clone()),
                    None => answer,
                });
            }
            bend(&script, &mut answers);
            let response = TopicProduceResponse::default()
                .with_name(topic.name.clone())
                .with_topic_id(topic.topic_id)
                .with_partition_responses(answers);
            responses.push(response);
        }
        self.seen.push(seen);
        let response = ProduceResponse::default()
            .with_responses(responses)
            .with_throttle_time_ms(self.throttle_ms)
            .with_node_endpoints(hinted.into_iter().map(|(_, endpoint)| endpoint).collect());
        let silent = matches!(script, Script::Swallow | Script::Ignore | Script::AppendAndCut);
        let wrong = i32::from(script == Script::WrongCorrelation);
        let reply = if script == Script::Garbage {
            garbage(correlation)
        } else {
            frame(&response, version, correlation + wrong)
        };
        Reaction { reply: (!silent).then_some(reply), cut: script == Script::AppendAndCut }
    }

    fn topic_name(&self, topic: &TopicProduceData, version: i16) -> Option<String> {
        if version < 13 {
            return Some(topic.name.0.to_string());
        }
        let id = topic.topic_id.to_string();
        self.topics.iter().find(|(_, t)| t.id == id).map(|(name, _)| name.clone())
    }

    fn answer(
        &mut self,
        node: i32,
        name: Option<&str>,
        data: &PartitionProduceData,
        script: &Script,
        seen: &mut Seen,
    ) -> PartitionProduceResponse {
        let (batch, rest) = BatchReader::read(data.records.as_ref().unwrap()).unwrap();
        assert!(rest.is_empty());
        let header = *batch.header();
        let called = name.unwrap_or_default();
        seen.batches.push((
            called.to_owned(),
            data.index,
            header.producer_epoch,
            header.base_sequence,
            header.count,
        ));
        let (code, offset) = match script {
            Script::Refuse(code) => (*code, -1),
            Script::Answer(code, offset, _) => (*code, *offset),
            Script::Moved(..) => (6, -1),
            Script::Ignore => (0, 0),
            Script::Honest
            | Script::Swallow
            | Script::AppendAndCut
            | Script::AnswerTwice
            | Script::Contradict
            | Script::AnswerMore
            | Script::AnswerLess
            | Script::Garbage
            | Script::WrongCorrelation => match name {
                None => (100, -1),
                Some(_) => self.append(node, called, data.index, &batch),
            },
        };
        PartitionProduceResponse::default()
            .with_index(data.index)
            .with_error_code(code)
            .with_base_offset(offset)
            .with_log_append_time_ms(-1)
            .with_log_start_offset(log_start(script, code))
    }

    fn append(
        &mut self,
        node: i32,
        topic: &str,
        index: i32,
        batch: &BatchReader<'_>,
    ) -> (i16, i64) {
        let found = self.topics.get_mut(topic);
        let found = found.and_then(|topic| topic.partitions.get_mut(index as usize));
        let Some(partition) = found else { return (3, -1) };
        if partition.leader != node {
            return (6, -1);
        }
        let header = batch.header();
        let (first, last) = (header.base_sequence, header.base_sequence + header.last_offset_delta);
        let key = (header.producer_id, header.producer_epoch);
        let known = partition.producers.keys().any(|(id, _)| *id == key.0);
        if partition.producers.keys().any(|(id, epoch)| *id == key.0 && *epoch > key.1) {
            return (47, -1);
        }
        let state = partition.producers.entry(key).or_default();
        if let Some((.., offset)) = state.iter().find(|(f, l, _)| (*f, *l) == (first, last)) {
            return (0, *offset);
        }
        let expected = state.back().map_or(0, |(_, last, _)| last + 1);
        if first != expected && known {
            return (45, -1);
        }
        let offset = partition.log.len() as i64;
        state.push_back((first, last, offset));
        if state.len() > 5 {
            state.pop_front();
        }
        for record in batch.records() {
            let value = record.unwrap().value.unwrap_or_default().to_vec();
            partition.log.push(String::from_utf8(value).unwrap());
        }
        (0, offset)
    }
}

fn log_start(script: &Script, code: i16) -> i64 {
    if let Script::Answer(_, _, start) = script {
        return *start;
    }
    if code == 0 { 0 } else { -1 }
}

/// Makes the answers as the script wants them.
fn bend(script: &Script, answers: &mut Vec<PartitionProduceResponse>) {
    match script {
        Script::AnswerTwice => {
            let again = answers.clone();
            answers.extend(again);
        }
        Script::Contradict => {
            let again: Vec<_> = answers
                .iter()
                .cloned()
                .map(|a| a.with_error_code(6).with_base_offset(-1))
                .collect();
            answers.extend(again);
        }
        Script::AnswerMore => answers.push(PartitionProduceResponse::default().with_index(77)),
        Script::AnswerLess => {
            answers.pop();
        }
        Script::Honest
        | Script::Refuse(_)
        | Script::Answer(..)
        | Script::Swallow
        | Script::Ignore
        | Script::AppendAndCut
        | Script::Garbage
        | Script::WrongCorrelation
        | Script::Moved(..) => {}
    }
}

/// Who leads now, where the version can say it.
fn hinted(script: &Script, version: i16) -> Option<(LeaderIdAndEpoch, NodeEndpoint)> {
    let Script::Moved(node, epoch) = script else { return None };
    (version >= 10).then(|| hint(*node, *epoch))
}

/// A frame that says to be an answer, and is none.
fn garbage(correlation: i32) -> Bytes {
    let mut garbage = BytesMut::from(&[0, 0, 0, 8][..]);
    garbage.extend_from_slice(&correlation.to_be_bytes());
    garbage.extend_from_slice(&[0xff; 4]);
    garbage.freeze()
}
