//! Brokers that say what the scenario has them say: everything but Produce is answered at once.

use std::collections::{BTreeMap, VecDeque};

use super::script::{Meta, Setup, TopicPlan};
use crate::codec::{
    API_VERSIONS, ApiVersionsResponse, Endpoint, INIT_PRODUCER_ID, InitProducerIdResponse,
    METADATA, MetadataPartition, MetadataRequest, MetadataResponse, MetadataTopic, PRODUCE,
    Request, RequestHeader, Uuid, VersionRange,
};

/// Highest versions that a scripted broker serves.
const VERSIONS: [(i16, i16); 4] =
    [(PRODUCE, 13), (METADATA, 13), (API_VERSIONS, 4), (INIT_PRODUCER_ID, 5)];
/// Brokers listen here; hosts have their names.
const PORT: i32 = 9092;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Topic {
    id: u8,
    error: i16,
    missing: bool,
    /// Leader, as a place in the list of names, and leader epoch.
    partitions: Vec<(Option<usize>, i32)>,
}

/// The cluster as the scenario tells it.
#[derive(Clone, Debug)]
pub(super) struct Scripted {
    names: Vec<String>,
    topics: BTreeMap<String, Topic>,
    versions: BTreeMap<i16, i16>,
    identity: (i64, i16),
    given: VecDeque<Result<(i64, i16), i16>>,
    rebootstrap: bool,
}

/// Wishes that contradict the scenario's own setup.
pub(super) type Wish = Result<(), String>;

impl Scripted {
    pub(super) fn new(setup: &Setup) -> Self {
        let mut scripted = Self {
            names: setup.names.clone(),
            topics: BTreeMap::new(),
            versions: VERSIONS.into_iter().collect(),
            identity: setup.identity,
            given: VecDeque::new(),
            rebootstrap: false,
        };
        scripted.versions.extend(setup.versions.iter().map(|(api, max)| (*api, *max)));
        for (number, plan) in (1..).zip(&setup.topics) {
            scripted.create(number, plan);
        }
        scripted
    }

    fn create(&mut self, id: u8, plan: &TopicPlan) {
        let leader = |index: usize| {
            let named = plan.leaders.get(index % plan.leaders.len().max(1));
            let at = named.and_then(|name| self.names.iter().position(|one| one == name));
            Some(at.unwrap_or(0))
        };
        let partitions = (0..plan.partitions).map(|index| (leader(index), 1)).collect();
        let topic = Topic { id, error: 0, missing: false, partitions };
        self.topics.insert(plan.name.clone(), topic);
    }

    /// The answer to anything but a Produce request.
    pub(super) fn answer(&mut self, header: &RequestHeader, request: &Request) -> Vec<u8> {
        let version = header.version;
        match request {
            Request::ApiVersions(_) => {
                let range =
                    |(api, max): (&i16, &i16)| VersionRange { api: *api, min: 0, max: *max };
                let apis = self.versions.iter().map(range).collect();
                ApiVersionsResponse { apis, ..ApiVersionsResponse::refused(0) }.encode(version)
            }
            Request::UnknownApiVersions => {
                let max = self.versions.get(&API_VERSIONS).copied().unwrap_or(0);
                ApiVersionsResponse::fallback(max).encode(0)
            }
            Request::Metadata(metadata) => self.metadata(metadata, version).encode(version),
            Request::InitProducerId(_) => self.give().encode(version),
            Request::Produce(_)
            | Request::Fetch(_)
            | Request::ListOffsets(_)
            | Request::FindCoordinator(_) => Vec::new(),
        }
    }

    fn give(&mut self) -> InitProducerIdResponse {
        let given = self.given.pop_front().unwrap_or_else(|| {
            let identity = self.identity;
            self.identity = (identity.0 + 1, 0);
            Ok(identity)
        });
        match given {
            Ok((producer_id, producer_epoch)) => {
                InitProducerIdResponse { error: 0, producer_id, producer_epoch }
            }
            Err(error) => InitProducerIdResponse { error, producer_id: -1, producer_epoch: -1 },
        }
    }

    /// What the next InitProducerId gets.
    pub(super) fn will_give(&mut self, what: Result<(i64, i16), i16>) {
        self.given.push_back(what);
    }

    fn metadata(&self, request: &MetadataRequest, version: i16) -> MetadataResponse {
        let brokers = (1..).zip(&self.names).map(|(node, host)| endpoint(node, host));
        let wanted = request.topics.iter().flatten().filter_map(|query| query.name.clone());
        MetadataResponse {
            brokers: brokers.collect(),
            cluster_id: Some("replay".to_owned()),
            controller: 1,
            topics: wanted.map(|name| self.describe(name, version)).collect(),
            error: if self.rebootstrap && version >= 13 { 129 } else { 0 },
        }
    }

    fn describe(&self, name: String, version: i16) -> MetadataTopic {
        let found = self.topics.get(&name).filter(|topic| !topic.missing);
        let (error, id, partitions) = match found {
            None => (3, [0; 16], Vec::new()),
            Some(topic) if topic.error != 0 => (topic.error, [0; 16], Vec::new()),
            Some(topic) => (0, uuid(topic.id), topic.describe()),
        };
        let id = if version >= 10 { id } else { [0; 16] };
        MetadataTopic { error, name: Some(name), id, partitions }
    }

    /// Topics by id.
    pub(super) fn id_of(&self, topic: &str) -> Option<Uuid> {
        self.topics.get(topic).map(|topic| uuid(topic.id))
    }

    /// The host and node of a broker.
    pub(super) fn endpoint(&self, name: &str) -> Option<Endpoint> {
        let at = self.names.iter().position(|one| one == name)?;
        Some(endpoint(i32::try_from(at).ok()? + 1, name))
    }

    /// What brokers say changes.
    pub(super) fn change(&mut self, meta: &Meta) -> Wish {
        match meta {
            Meta::Rebootstrap => self.rebootstrap = true,
            Meta::Usual => self.rebootstrap = false,
            Meta::Leader { place, broker, epoch } => {
                let at = match broker {
                    Some(name) => Some(
                        self.names
                            .iter()
                            .position(|one| one == name)
                            .ok_or_else(|| format!("{name} is no broker that could lead"))?,
                    ),
                    None => None,
                };
                let index = usize::try_from(place.partition).unwrap_or(usize::MAX);
                let partition = self.topic(&place.topic)?.partitions.get_mut(index);
                let partition = partition.ok_or_else(|| format!("there is no {place}"))?;
                *partition = (at, epoch.unwrap_or(partition.1 + 1));
            }
            Meta::Missing { topic } => self.topic(topic)?.missing = true,
            Meta::Back { topic } => {
                let topic = self.topic(topic)?;
                (topic.missing, topic.error) = (false, 0);
            }
            Meta::Refused { topic, code } => self.topic(topic)?.error = *code,
            Meta::Renewed { topic } => {
                let topic = self.topic(topic)?;
                (topic.id, topic.missing) = (topic.id + 100, false);
                topic.partitions.iter_mut().for_each(|(_, epoch)| *epoch = 0);
            }
            Meta::Grown { topic, partitions } => {
                let topic = self.topic(topic)?;
                let first = topic.partitions.first().copied().unwrap_or((Some(0), 1));
                topic.partitions.resize(*partitions, first);
            }
        }
        Ok(())
    }

    fn topic(&mut self, name: &str) -> Result<&mut Topic, String> {
        self.topics.get_mut(name).ok_or_else(|| format!("there is no topic {name}"))
    }
}

impl Topic {
    fn describe(&self) -> Vec<MetadataPartition> {
        let one = |(index, (leader, leader_epoch)): (i32, &(Option<usize>, i32))| {
            let leader = leader.and_then(|at| i32::try_from(at + 1).ok());
            MetadataPartition {
                error: if leader.is_none() { 5 } else { 0 },
                index,
                leader: leader.unwrap_or(-1),
                leader_epoch: *leader_epoch,
                replicas: leader.into_iter().collect(),
                isr: leader.into_iter().collect(),
                offline: Vec::new(),
            }
        };
        (0..).zip(&self.partitions).map(one).collect()
    }
}

fn uuid(id: u8) -> Uuid {
    let mut uuid = [0; 16];
    (uuid[0], uuid[15]) = (id, 1);
    uuid
}

fn endpoint(node: i32, host: &str) -> Endpoint {
    Endpoint { node, host: host.to_owned(), port: PORT, rack: None }
}
