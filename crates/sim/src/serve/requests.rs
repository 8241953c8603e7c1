//! What brokers make of requests, and what befalls them.

use super::fault::{Moment, Plan, Upset};
use super::net::{ConnectionId, Net, millis};
use super::{answers, produce, versions};
use crate::broker::{self, NodeId, Scripted, Stop, code};
use crate::codec::{
    API_VERSIONS, ApiVersionsResponse, FetchRequest, FetchResponse, InitProducerIdResponse,
    MetadataRequest, ProduceRequest, Request, RequestHeader, TopicKey, Uuid, error,
};

/// Who asks, and when.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    pub(super) node: u8,
    /// Microseconds since the Unix epoch.
    pub(super) now: u64,
}

/// What a request led to.
pub(super) enum Reaction {
    /// This body, to be sent.
    Answer(Vec<u8>),
    /// This body, but not before so many microseconds: there is nothing to fetch.
    Later(Vec<u8>, u64),
    /// The model decides later, at the latest at this time in microseconds.
    Waiting(broker::RequestId, u64),
    /// Nothing to say, and nothing wrong.
    Silent,
    /// The connection ends.
    Close,
    /// Never answered, and nothing behind it either.
    Stuck,
}

/// Requests.
impl Net {
    /// The partitions that a request is about, for the triggers that count them.
    pub(super) fn partitions_of(&self, request: &Request) -> Vec<(String, i32)> {
        match request {
            Request::Produce(produce) => self.partitions_in(produce),
            Request::ApiVersions(_)
            | Request::UnknownApiVersions
            | Request::Metadata(_)
            | Request::InitProducerId(_)
            | Request::Fetch(_)
            | Request::ListOffsets(_)
            | Request::FindCoordinator(_) => Vec::new(),
        }
    }

    fn partitions_in(&self, produce: &ProduceRequest) -> Vec<(String, i32)> {
        let mut all = Vec::new();
        for topic in &produce.topics {
            let name = match &topic.key {
                TopicKey::Name(name) => Some(name.clone()),
                TopicKey::Id(id) => self.topic_name(id),
            };
            let keys = topic.partitions.iter().filter_map(|one| Some((name.clone()?, one.index)));
            all.extend(keys);
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    fn topic_name(&self, id: &Uuid) -> Option<String> {
        let mut views = self.nodes.iter().filter_map(|node| self.cluster.metadata(NodeId(*node)));
        let topics = views.next()?.topics;
        topics.into_iter().find(|topic| topic.id == *id).map(|topic| topic.name)
    }

    pub(super) fn act(
        &mut self,
        asked: Asked,
        header: &RequestHeader,
        request: Request,
        plan: &Plan,
    ) -> Reaction {
        let version = header.version;
        let profile = self.cluster.profile();
        let cluster = &mut self.cluster;
        Reaction::Answer(match request {
            Request::Produce(produce) => return self.produce(asked, version, &produce, plan),
            Request::Fetch(fetch) => return self.fetch(asked, version, &fetch),
            Request::Metadata(metadata) => return self.metadata(asked, version, &metadata),
            Request::UnknownApiVersions => {
                let served = versions::served(profile);
                let known = served.iter().find(|range| range.api == API_VERSIONS);
                ApiVersionsResponse::fallback(known.map_or(0, |range| range.max)).encode(0)
            }
            Request::ApiVersions(of) => {
                answers::api_versions(profile, &of, version).encode(version)
            }
            Request::InitProducerId(of) => match plan.script(None, -1, Moment::Before) {
                Some(code) => InitProducerIdResponse::refused(code).encode(version),
                None => answers::init_producer_id(cluster, asked.node, &of).encode(version),
            },
            Request::ListOffsets(of) => {
                answers::list_offsets(cluster, asked.node, &of).encode(version)
            }
            Request::FindCoordinator(of) => of.refuse(version, error::COORDINATOR_NOT_AVAILABLE),
        })
    }

    fn metadata(&mut self, asked: Asked, version: i16, request: &MetadataRequest) -> Reaction {
        let Some(view) = self.cluster.metadata(NodeId(asked.node)) else { return Reaction::Close };
        if let (true, Some(partitions)) = (request.allow_auto_topic_creation, self.auto_create) {
            // As with real brokers the request that creates a topic does not see it yet.
            for name in answers::wanted(&view, request) {
                self.cluster.create_topic(&name, partitions, self.replicas);
            }
        }
        let response = answers::metadata(&view, &self.endpoints, request);
        Reaction::Answer(response.encode(version))
    }

    fn fetch(&mut self, asked: Asked, version: i16, request: &FetchRequest) -> Reaction {
        let response = answers::fetch(&self.cluster, asked.node, request);
        let body = response.encode(version);
        let wait = u64::try_from(request.max_wait_ms).unwrap_or(0) * 1_000;
        match is_idle(&response) && request.min_bytes > 0 && wait > 0 {
            true => Reaction::Later(body, wait),
            false => Reaction::Answer(body),
        }
    }

    fn produce(
        &mut self,
        asked: Asked,
        version: i16,
        request: &ProduceRequest,
        plan: &Plan,
    ) -> Reaction {
        if request.has_null_records() {
            return Reaction::Stuck;
        }
        let model = produce::to_model(request, version);
        let answers = if request.transactional_id.is_some() {
            // No transactional id is known here, so nobody may write under one.
            produce::refuse_all(model, code::TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        } else {
            if !plan.answers.is_empty() {
                self.script(request, plan);
            }
            match self.cluster.produce(NodeId(asked.node), millis(asked.now), model) {
                broker::Reply::Answers(answers) => answers,
                broker::Reply::Waiting(id) => {
                    let wait = u64::try_from(request.timeout_ms).unwrap_or(0);
                    let deadline = (asked.now / 1_000).saturating_add(wait);
                    return Reaction::Waiting(id, deadline.saturating_mul(1_000));
                }
                broker::Reply::Silent => return Reaction::Silent,
                broker::Reply::Close => return Reaction::Close,
            }
        };
        Reaction::Answer(
            produce::to_wire(&answers, &self.endpoints, plan.throttle_ms).encode(version),
        )
    }

    /// Hands the answers that faults put in to the model, which gives them to the next append.
    fn script(&mut self, request: &ProduceRequest, plan: &Plan) {
        for (topic, index) in self.partitions_in(request) {
            let Some(at) = usize::try_from(index).ok() else { continue };
            let Some(partition) = self.cluster.partition_mut(&topic, at) else { continue };
            if let Some(code) = plan.script(Some(&topic), index, Moment::Before) {
                partition.script(Scripted::Before(code));
            } else if let Some(code) = plan.script(Some(&topic), index, Moment::After) {
                partition.script(Scripted::After { code, show_offset: true });
            }
        }
    }
}

/// Upsets.
impl Net {
    pub(super) fn befall_all(&mut self, now: u64, upsets: &[Upset]) {
        upsets.iter().for_each(|upset| self.befall(now, upset));
    }

    pub(super) fn befall(&mut self, now: u64, upset: &Upset) {
        match upset {
            Upset::MoveLeader { topic, partition, to } => {
                let index = usize::try_from(*partition).unwrap_or(usize::MAX);
                // A replica that cannot lead now leaves things as they are.
                let _refused = self.cluster.move_leader(topic, index, NodeId(*to));
            }
            Upset::ForgetProducers { topic, partition } => self.forget(topic, *partition),
            Upset::Stop { node, crash } => self.stop(*node, *crash),
            Upset::Restart { node, crash } => {
                self.stop(*node, *crash);
                self.cluster.start(NodeId(*node), millis(now));
            }
            Upset::RecreateTopic { topic } => {
                let partitions =
                    self.cluster.partitions().filter(|(name, ..)| name == topic).count();
                if self.cluster.delete_topic(topic) {
                    self.cluster.create_topic(topic, partitions, self.replicas);
                }
            }
        }
    }

    fn forget(&mut self, topic: &str, partition: i32) {
        let index = usize::try_from(partition).unwrap_or(usize::MAX);
        let Some(partition) = self.cluster.partition_mut(topic, index) else { return };
        let nodes: Vec<NodeId> = partition.nodes().collect();
        for node in nodes {
            let known: Vec<i64> = partition.producers(node).map(broker::Known::pid).collect();
            known.into_iter().for_each(|pid| partition.forget(node, pid));
        }
    }

    /// A broker goes down, and its connections with it.
    fn stop(&mut self, node: u8, crash: bool) {
        self.cluster.stop(NodeId(node), if crash { Stop::Crash } else { Stop::Clean });
        let ended = self.connections.iter().filter(|(_, open)| open.node == node);
        let ended: Vec<ConnectionId> = ended.map(|(id, _)| *id).collect();
        ended.into_iter().for_each(|id| self.close(id));
    }
}

/// Whether a fetch brought neither records nor an error.
fn is_idle(response: &FetchResponse) -> bool {
    let all = response.topics.iter().flat_map(|(_, partitions)| partitions);
    all.clone().all(|one| one.error == 0 && one.records.is_empty())
}
