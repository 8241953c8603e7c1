//! Brokers that may be odd in every legal way, and in some that are not; what they acknowledge is in
//! their logs all the same.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use candor_wire::BatchReader;
use kafka_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::produce_response::{PartitionProduceResponse, TopicProduceResponse};
use kafka_protocol::messages::{
    BrokerId, MetadataRequest, MetadataResponse, ProduceRequest, ProduceResponse, TopicName,
};
use kafka_protocol::protocol::{Decodable, decode_request_header_from_buffer};

use super::log::{Batch, Log};
use super::speech::{frame, producer_id, text, topic_id, versions};

pub const PRODUCE: i16 = 0;
pub const METADATA: i16 = 3;
pub const GREETING: i16 = 18;
pub const PRODUCER_ID: i16 = 22;

#[derive(Clone, Debug)]
pub struct Partition {
    pub leader: i32,
    pub epoch: i32,
    pub log: Log,
}

#[derive(Clone, Debug)]
pub struct Topic {
    pub id: u8,
    pub partitions: Vec<Partition>,
}

/// How a Produce answer differs from an honest one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bent {
    /// Refused with this code, before the append.
    Refused(i16),
    /// Appended, and this code is said.
    Coded(i16),
    /// Appended, and the answer has no topic at all.
    Empty,
    /// Appended, and a partition that nobody asked about comes first.
    Extra,
    /// Appended, and each partition twice.
    Twice,
    /// Appended, and the answer never comes.
    Swallowed,
    /// Appended, and another correlation id is said.
    Astray,
    /// Appended, and the answer is cut short inside its frame.
    Short,
    /// Appended, then the connection ends.
    Cut,
}

/// How a node behaves.
#[derive(Clone, Debug)]
pub struct Node {
    /// Where it listens.
    pub host: String,
    pub refuses: bool,
    pub hangs: bool,
    /// APIs that it does not answer.
    pub mute: BTreeSet<i16>,
    /// API keys with oldest and newest version.
    pub versions: BTreeMap<i16, (i16, i16)>,
    pub throttle_ms: i32,
    pub bent: VecDeque<Bent>,
    /// Metadata names no brokers.
    pub nameless: bool,
    /// Metadata names this node as the leader of everything, in the epochs that are true.
    pub misleads: Option<i32>,
    /// Metadata says this of every topic.
    pub topic_error: i16,
    /// Answers to requests for producer ids: codes, oldest first.
    pub id_errors: VecDeque<i16>,
    /// The connection ends right after the greeting.
    pub leaves: bool,
    /// What it was asked: API, version.
    pub asked: Vec<(i16, i16)>,
}

impl Node {
    fn new(id: i32) -> Self {
        let versions = [(PRODUCE, (3, 13)), (METADATA, (1, 13)), (GREETING, (0, 4))];
        Self {
            host: format!("b{id}"),
            refuses: false,
            hangs: false,
            mute: BTreeSet::new(),
            versions: versions.into_iter().chain([(PRODUCER_ID, (0, 5))]).collect(),
            throttle_ms: 0,
            bent: VecDeque::new(),
            nameless: false,
            misleads: None,
            topic_error: 0,
            id_errors: VecDeque::new(),
            leaves: false,
            asked: Vec::new(),
        }
    }

    pub fn count(&self, api: i16) -> usize {
        self.asked.iter().filter(|(asked, _)| *asked == api).count()
    }
}

pub struct Brokers {
    pub nodes: BTreeMap<i32, Node>,
    /// Hosts that lead to a node beside its own.
    pub aliases: BTreeMap<String, i32>,
    pub topics: BTreeMap<String, Topic>,
    /// Logs of topics that were made anew.
    pub gone: Vec<(String, usize, Log)>,
    /// The next producer id, and by how much it grows.
    pub next_pid: (i64, i64),
    next_topic: u8,
}

/// What comes of a request.
pub struct Reply {
    pub bytes: Option<Bytes>,
    pub cut: bool,
}

impl Brokers {
    pub fn new(nodes: i32) -> Self {
        Self {
            nodes: (1..=nodes).map(|id| (id, Node::new(id))).collect(),
            aliases: BTreeMap::new(),
            topics: BTreeMap::new(),
            gone: Vec::new(),
            next_pid: (5_000, 1),
            next_topic: 0,
        }
    }

    pub fn node(&mut self, id: i32) -> &mut Node {
        self.nodes.get_mut(&id).unwrap()
    }

    /// Makes a topic, or makes it anew.
    pub fn create(&mut self, name: &str, partitions: usize) {
        self.next_topic += 1;
        let nodes = self.nodes.len();
        let partition =
            |n: usize| Partition { leader: (n % nodes) as i32 + 1, epoch: 0, log: Log::default() };
        let topic =
            Topic { id: self.next_topic, partitions: (0..partitions).map(partition).collect() };
        if let Some(old) = self.topics.insert(name.to_owned(), topic) {
            for (n, partition) in old.partitions.into_iter().enumerate() {
                self.gone.push((name.to_owned(), n, partition.log));
            }
        }
    }

    pub fn partition(&mut self, topic: &str, n: usize) -> &mut Partition {
        &mut self.topics.get_mut(topic).unwrap().partitions[n]
    }

    /// Who answers at a host.
    pub fn at(&self, host: &str) -> Option<i32> {
        let own = self.nodes.iter().find(|(_, node)| node.host == host).map(|(id, _)| *id);
        own.or_else(|| self.aliases.get(host).copied())
    }

    pub fn handle(&mut self, id: i32, mut bytes: Bytes) -> Reply {
        let header = decode_request_header_from_buffer(&mut bytes).unwrap();
        let (api, version) = (header.request_api_key, header.request_api_version);
        let correlation = header.correlation_id;
        let node = self.node(id);
        node.asked.push((api, version));
        let (oldest, newest) = node.versions[&api];
        if node.mute.contains(&api) {
            return Reply { bytes: None, cut: false };
        }
        assert!(api == GREETING || (oldest..=newest).contains(&version), "S17: {api} v{version}");
        let mut cut = false;
        let reply = match api {
            GREETING => {
                cut = node.leaves;
                self.greet(id, version, correlation)
            }
            METADATA => {
                let request = MetadataRequest::decode(&mut bytes, version).unwrap();
                self.metadata(id, &request, version, correlation)
            }
            PRODUCER_ID => self.give_id(id, version, correlation),
            PRODUCE => {
                let request = ProduceRequest::decode(&mut bytes, version).unwrap();
                return self.produce(id, &request, version, correlation);
            }
            other => panic!("nobody asks for api {other}"),
        };
        Reply { bytes: Some(reply), cut }
    }

    /// A request of a connection that is gone: nobody hears what is said of it.
    pub fn late(&mut self, id: i32, mut bytes: Bytes) {
        let header = decode_request_header_from_buffer(&mut bytes).unwrap();
        if header.request_api_key == PRODUCE {
            let version = header.request_api_version;
            let request = ProduceRequest::decode(&mut bytes, version).unwrap();
            self.produce(id, &request, version, 0);
        }
    }

    fn greet(&mut self, id: i32, version: i16, correlation: i32) -> Bytes {
        let node = self.node(id);
        let newest = node.versions[&GREETING].1;
        let keys = node.versions.iter().map(|(key, (oldest, newest))| (*key, *oldest, *newest));
        if version > newest {
            return frame(&versions(keys, 35), 0, correlation);
        }
        let response = versions(keys, 0).with_throttle_time_ms(node.throttle_ms);
        frame(&response, version, correlation)
    }

    fn give_id(&mut self, id: i32, version: i16, correlation: i32) -> Bytes {
        let node = self.node(id);
        let error = node.id_errors.pop_front().unwrap_or(0);
        let throttle = node.throttle_ms;
        let pid = self.next_pid.0;
        if error == 0 {
            self.next_pid.0 += self.next_pid.1;
        }
        frame(&producer_id(pid, error).with_throttle_time_ms(throttle), version, correlation)
    }

    fn metadata(&self, id: i32, request: &MetadataRequest, version: i16, to: i32) -> Bytes {
        let node = &self.nodes[&id];
        let names = request.topics.iter().flatten().filter_map(|topic| topic.name.clone());
        let topics = names.map(|name| {
            let described = MetadataResponseTopic::default().with_name(Some(name.clone()));
            let Some(topic) = self.topics.get(&*name.0) else {
                return described.with_error_code(3);
            };
            if node.topic_error != 0 {
                return described.with_error_code(node.topic_error);
            }
            let partitions = topic.partitions.iter().enumerate().map(|(index, it)| {
                let leader = node.misleads.unwrap_or(it.leader);
                MetadataResponsePartition::default()
                    .with_error_code(if leader < 0 { 5 } else { 0 })
                    .with_partition_index(index as i32)
                    .with_leader_id(BrokerId(leader))
                    .with_leader_epoch(if version >= 7 { it.epoch } else { -1 })
            });
            let described = described.with_partitions(partitions.collect());
            if version < 10 {
                return described;
            }
            described.with_topic_id(topic_id(topic.id).parse().unwrap())
        });
        let listed = self.nodes.iter().filter(|_| !node.nameless);
        let brokers = listed.map(|(id, node)| {
            MetadataResponseBroker::default()
                .with_node_id(BrokerId(*id))
                .with_host(text(&node.host))
                .with_port(9092)
        });
        let response = MetadataResponse::default()
            .with_brokers(brokers.collect())
            .with_throttle_time_ms(if version >= 3 { node.throttle_ms } else { 0 })
            .with_controller_id(BrokerId(-1))
            .with_cluster_id((version >= 2).then(|| text("one")))
            .with_topics(topics.collect());
        frame(&response, version, to)
    }

    fn produce(&mut self, id: i32, request: &ProduceRequest, version: i16, to: i32) -> Reply {
        let bent = self.node(id).bent.pop_front();
        let throttle = self.node(id).throttle_ms;
        let mut responses = Vec::new();
        for topic in &request.topic_data {
            let name = match version {
                ..13 => Some(topic.name.0.to_string()),
                _ => self.named(&topic.topic_id.to_string()),
            };
            let mut answers = Vec::new();
            if bent == Some(Bent::Extra) {
                answers.push(PartitionProduceResponse::default().with_index(4_242));
            }
            for data in &topic.partition_data {
                let (batch, rest) = BatchReader::read(data.records.as_ref().unwrap()).unwrap();
                assert!(rest.is_empty());
                let (code, offset) = match bent {
                    Some(Bent::Refused(code)) => (code, -1),
                    _ => self.append(id, name.as_deref(), data.index as usize, &batch),
                };
                let code = match bent {
                    Some(Bent::Coded(said)) if code == 0 => said,
                    _ => code,
                };
                let answer = PartitionProduceResponse::default()
                    .with_index(data.index)
                    .with_error_code(code)
                    .with_base_offset(offset)
                    .with_log_append_time_ms(-1)
                    .with_log_start_offset(if code == 0 { 0 } else { -1 });
                answers.extend((bent == Some(Bent::Twice)).then(|| answer.clone()));
                answers.push(answer);
            }
            let response = TopicProduceResponse::default()
                .with_name(TopicName(topic.name.0.clone()))
                .with_topic_id(topic.topic_id);
            responses.push(response.with_partition_responses(answers));
        }
        if bent == Some(Bent::Empty) {
            responses.clear();
        }
        let response =
            ProduceResponse::default().with_responses(responses).with_throttle_time_ms(throttle);
        let to = to + i32::from(bent == Some(Bent::Astray));
        let mut bytes = Some(frame(&response, version, to));
        if bent == Some(Bent::Short) {
            let short = 4 + 4 + 1;
            let cut = bytes.as_ref().unwrap().slice(4..short);
            bytes = Some([&((short - 4) as u32).to_be_bytes()[..], &cut].concat().into());
        }
        let silent = matches!(bent, Some(Bent::Swallowed | Bent::Cut));
        Reply { bytes: bytes.filter(|_| !silent), cut: bent == Some(Bent::Cut) }
    }

    fn named(&self, id: &str) -> Option<String> {
        self.topics.iter().find(|(_, it)| topic_id(it.id) == id).map(|(name, _)| name.clone())
    }

    fn append(
        &mut self,
        node: i32,
        topic: Option<&str>,
        index: usize,
        batch: &BatchReader<'_>,
    ) -> (i16, i64) {
        let Some(topic) = topic else { return (100, -1) };
        let found = self.topics.get_mut(topic).and_then(|it| it.partitions.get_mut(index));
        let Some(partition) = found else { return (3, -1) };
        if partition.leader != node {
            return (6, -1);
        }
        let name = |value: &[u8]| {
            std::str::from_utf8(value).unwrap().trim_end_matches('.').parse().unwrap()
        };
        let header = batch.header();
        partition.log.append(Batch {
            pid: header.producer_id,
            epoch: header.producer_epoch,
            first: header.base_sequence,
            names: batch.records().map(|record| name(record.unwrap().value.unwrap())).collect(),
        })
    }
}
