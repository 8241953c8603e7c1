//! Brokers, topics, producer ids, and requests that wait.

use super::fleet::{Machine, Node};
use super::request::{Pending, Waiting};
use super::{
    ACKS_NONE, Answer, Batch, Call, Config, NodeId, NodeSet, Outcome, PartAnswer, Partition,
    ProduceRequest, Profile, Progress, Reply, RequestId, TopicRef, code,
};

/// How many producer ids a broker takes from the controller at once.
const ID_BLOCK: i64 = 1_000;

/// A whole cluster: the model behind servers and swarms.
///
/// It moves only when told to. Call [`Cluster::advance`] as time passes, [`Cluster::replicate`] to let followers
/// fetch, and after every change collect [`Cluster::completed`].
///
/// ```
/// use candor_sim::broker::*;
/// let mut cluster = Cluster::new(Profile::V4_4, &[NodeId(1), NodeId(2)], 0);
/// cluster.create_topic("orders", 1, 2);
/// let (pid, epoch) = cluster.init_producer_id(NodeId(1), None, -1, -1).unwrap();
/// let topic = TopicRef::Name("orders".into());
/// let part = ProducePart { topic, partition: 0, batch: Batch::new(pid, epoch, 0, 1, 0, "created") };
/// let request = ProduceRequest { acks: ACKS_ALL, timeout_ms: 1_000, version: 12, parts: vec![part] };
/// let Reply::Waiting(id) = cluster.produce(NodeId(1), 0, request) else { panic!() };
/// cluster.replicate(5);
/// let (done, answers) = cluster.completed(5).remove(0);
/// assert_eq!((done, answers[0].answer.code), (id, 0));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Cluster<C> {
    pub(super) profile: Profile,
    defaults: Config,
    pub(super) nodes: Vec<Node>,
    pub(super) topics: Vec<Topic<C>>,
    pub(super) waiting: Vec<Waiting>,
    pub(super) clockwork: super::fleet::Clockwork,
    requests: u64,
    topics_made: u64,
    next_block: i64,
}

/// A topic with its partitions.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Topic<C> {
    name: String,
    id: [u8; 16],
    pub(super) partitions: Vec<Partition<C>>,
}

/// What a broker tells of the cluster: possibly stale, if it is cut off.
///
/// ```
/// use candor_sim::broker::{Cluster, NodeId, Profile};
/// let mut cluster = Cluster::<u8>::new(Profile::V4_4, &[NodeId(1)], 0);
/// cluster.create_topic("orders", 3, 1);
/// let view = cluster.metadata(NodeId(1)).expect("up");
/// assert_eq!(view.topics[0].partitions.len(), 3);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClusterView {
    /// Brokers that are up.
    pub brokers: Vec<NodeId>,
    /// The controller: the lowest broker that is up.
    pub controller: Option<NodeId>,
    /// The topics, in order of creation.
    pub topics: Vec<TopicView>,
}

/// A topic in a [`ClusterView`].
///
/// ```
/// use candor_sim::broker::TopicView;
/// let empty = TopicView { name: "orders".into(), id: [1; 16], partitions: vec![] };
/// assert!(empty.partitions.is_empty());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TopicView {
    /// Its name.
    pub name: String,
    /// Its id.
    pub id: [u8; 16],
    /// Its partitions by index.
    pub partitions: Vec<PartitionView>,
}

/// A partition in a [`ClusterView`].
///
/// ```
/// use candor_sim::broker::{NodeId, NodeSet, PartitionView};
/// let alone = NodeSet::of(NodeId(1));
/// let view = PartitionView { leader: None, leader_epoch: 3, replicas: alone, isr: alone };
/// assert_eq!(view.leader, None); // brokers say LEADER_NOT_AVAILABLE (5)
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PartitionView {
    /// The leader, if any.
    pub leader: Option<NodeId>,
    /// Its epoch.
    pub leader_epoch: i32,
    /// All replicas.
    pub replicas: NodeSet,
    /// The in-sync ones.
    pub isr: NodeSet,
}

/// Topics and views.
impl<C: Clone> Cluster<C> {
    /// Brokers without topics, at `now`.
    #[must_use]
    pub fn new(profile: Profile, nodes: &[NodeId], now: i64) -> Self {
        let set: NodeSet = nodes.iter().copied().collect();
        Self {
            profile,
            defaults: profile.default_config(),
            nodes: set.iter().map(Node::new).collect(),
            topics: Vec::new(),
            waiting: Vec::new(),
            clockwork: super::fleet::Clockwork::new(now),
            requests: 0,
            topics_made: 0,
            next_block: 0,
        }
    }

    /// The version it imitates.
    #[must_use]
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// Settings of topics to be created.
    pub fn defaults_mut(&mut self) -> &mut Config {
        &mut self.defaults
    }

    /// Creates a topic; leaders go round the brokers that are up, replicas to the ones behind them.
    /// Returns its new id, or the id of the topic that has that name already.
    pub fn create_topic(&mut self, name: &str, partitions: usize, replicas: usize) -> [u8; 16] {
        if let Some(topic) = self.topics.iter().find(|topic| topic.name == name) {
            return topic.id;
        }
        self.topics_made += 1;
        // The layout of a random UUID, so that no client takes it for a reserved one.
        let mut id = *b"\0\0\0\0\0\0\x40\0\x80topic\0\0";
        id[..6].copy_from_slice(&self.topics_made.to_be_bytes()[2..]);
        self.topics.push(Topic { name: name.to_owned(), id, partitions: Vec::new() });
        self.add_partitions(name, partitions, replicas);
        id
    }

    /// Adds partitions to a topic. Returns whether there is such a topic.
    pub fn add_partitions(&mut self, name: &str, more: usize, replicas: usize) -> bool {
        let up: Vec<NodeId> =
            self.nodes.iter().filter(|node| node.is_member()).map(|node| node.id).collect();
        let (profile, defaults) = (self.profile, self.defaults);
        let Some(topic) = self.topics.iter_mut().find(|topic| topic.name == name) else {
            return false;
        };
        let have = topic.partitions.len();
        for index in have..have + more {
            let shift = index.checked_rem(up.len()).unwrap_or(0);
            let chosen: Vec<NodeId> =
                up.iter().cycle().skip(shift).take(replicas.min(up.len())).copied().collect();
            let mut partition = Partition::new(profile, &chosen);
            *partition.config_mut() =
                topic.partitions.first().map_or(defaults, |first| *first.config());
            topic.partitions.push(partition);
        }
        true
    }

    /// Deletes a topic with all that is in it. Returns whether there was one. Answers that waited for
    /// it become 3 with their offset.
    pub fn delete_topic(&mut self, name: &str) -> bool {
        let before = self.topics.len();
        self.topics.retain(|topic| topic.name != name);
        self.topics.len() < before
    }

    /// Changes the settings of a topic. Returns whether there is one.
    pub fn configure(&mut self, name: &str, mut change: impl FnMut(&mut Config)) -> bool {
        let Some(topic) = self.topics.iter_mut().find(|topic| topic.name == name) else {
            return false;
        };
        topic.partitions.iter_mut().for_each(|partition| change(partition.config_mut()));
        true
    }

    /// A partition, if there is one.
    #[must_use]
    pub fn partition(&self, name: &str, index: usize) -> Option<&Partition<C>> {
        self.topics.iter().find(|topic| topic.name == name)?.partitions.get(index)
    }

    /// A partition, to do things to that concern it alone.
    pub fn partition_mut(&mut self, name: &str, index: usize) -> Option<&mut Partition<C>> {
        self.topics.iter_mut().find(|topic| topic.name == name)?.partitions.get_mut(index)
    }

    /// Every partition with its topic's name and its index.
    pub fn partitions(&self) -> impl Iterator<Item = (&str, usize, &Partition<C>)> {
        let of_topic = |topic: &'_ Topic<C>| topic.partitions.len();
        self.topics.iter().flat_map(move |topic| {
            (0..of_topic(topic))
                .filter_map(move |i| Some((topic.name.as_str(), i, topic.partitions.get(i)?)))
        })
    }

    /// What a broker answers to Metadata; `None` if it is down. A broker that is cut off tells what it
    /// knew when it was.
    #[must_use]
    pub fn metadata(&self, node: NodeId) -> Option<ClusterView> {
        match &self.node(node)?.machine {
            Machine::Up | Machine::Stalled => Some(self.view()),
            Machine::CutOff(view) => Some(view.clone()),
            Machine::Down => None,
        }
    }

    pub(super) fn view(&self) -> ClusterView {
        let members = self.nodes.iter().filter(|node| node.is_member());
        let brokers: Vec<NodeId> = members.map(|node| node.id).collect();
        let look = |partition: &Partition<C>| PartitionView {
            leader: partition.leader(),
            leader_epoch: partition.leader_epoch(),
            replicas: partition.nodes().collect(),
            isr: partition.isr(),
        };
        let topics = self.topics.iter().map(|topic| TopicView {
            name: topic.name.clone(),
            id: topic.id,
            partitions: topic.partitions.iter().map(look).collect(),
        });
        ClusterView { controller: brokers.first().copied(), brokers, topics: topics.collect() }
    }

    fn find(&self, topic: &TopicRef) -> Result<usize, i16> {
        match topic {
            TopicRef::Name(name) => self.topics.iter().position(|t| t.name == *name),
            TopicRef::Id(id) => self.topics.iter().position(|t| t.id == *id),
        }
        .ok_or(match topic {
            TopicRef::Name(_) => code::UNKNOWN_TOPIC_OR_PARTITION,
            TopicRef::Id(_) => code::UNKNOWN_TOPIC_ID,
        })
    }
}

/// Requests.
impl<C: Clone> Cluster<C> {
    /// InitProducerId for a producer without transactions: always a new id, at epoch 0.
    ///
    /// # Errors
    /// 42 for an empty transactional id, or if only one of `pid` and `epoch` is -1; 53 for any
    /// other transactional id (not modelled); 14 if the broker has no ids left and cannot get any.
    pub fn init_producer_id(
        &mut self,
        node: NodeId,
        transactional_id: Option<&str>,
        pid: i64,
        epoch: i16,
    ) -> Result<(i64, i16), i16> {
        match transactional_id {
            Some("") => return Err(code::INVALID_REQUEST),
            Some(_) => return Err(code::TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
            None => {}
        }
        if (pid == -1) != (epoch == -1) {
            return Err(code::INVALID_REQUEST);
        }
        let fresh = self.next_block;
        let Some(node) = self.nodes.iter_mut().find(|n| n.id == node && n.is_running()) else {
            return Err(code::COORDINATOR_LOAD_IN_PROGRESS);
        };
        if node.ids.is_empty() {
            if !node.is_member() {
                return Err(code::COORDINATOR_LOAD_IN_PROGRESS);
            }
            node.ids = fresh..fresh + ID_BLOCK;
            self.next_block += ID_BLOCK;
        }
        let pid = node.ids.start;
        node.ids.start += 1;
        Ok((pid, 0))
    }

    /// Hands a Produce request to a broker, as early or late as the network likes.
    pub fn produce(&mut self, node: NodeId, now: i64, request: ProduceRequest<C>) -> Reply {
        if !self.node(node).is_some_and(Node::is_running) {
            return Reply::Close;
        }
        let ProduceRequest { acks, timeout_ms, version, parts } = request;
        let call = Call { node, now, acks, version };
        let forbidden = parts.iter().any(|part| part.batch.is_transactional());
        let mut judged: Vec<(TopicRef, i32, Pending)> = Vec::new();
        let mut seen: Vec<(TopicRef, i32)> = Vec::new();
        // From the back: of a partition that stands there twice, only the last entry is looked at. The
        // answers come in that order, because nobody may rely on theirs (U4).
        for part in parts.into_iter().rev() {
            if seen.iter().any(|(topic, index)| (topic, *index) == (&part.topic, part.partition)) {
                continue;
            }
            seen.push((part.topic.clone(), part.partition));
            let pending = if forbidden {
                Pending::Settled(Answer::error(code::TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
            } else {
                self.append(call, &part.topic, part.partition, &part.batch)
            };
            judged.push((part.topic, part.partition, pending));
        }
        if acks == ACKS_NONE {
            let failed = judged
                .iter()
                .any(|(_, _, p)| matches!(p, Pending::Settled(a) if a.code != code::NONE));
            return if failed { Reply::Close } else { Reply::Silent };
        }
        self.requests += 1;
        let deadline = now.saturating_add(i64::from(timeout_ms.max(0)));
        let waiting = Waiting { id: RequestId(self.requests), node, deadline, parts: judged };
        match answers(&waiting) {
            Some(answers) => Reply::Answers(answers),
            None => {
                let id = waiting.id;
                self.waiting.push(waiting);
                Reply::Waiting(id)
            }
        }
    }

    fn append(&mut self, call: Call, topic: &TopicRef, index: i32, batch: &Batch<C>) -> Pending {
        let at = match self.find(topic) {
            Ok(at) => at,
            Err(code) => return Pending::Settled(Answer::error(code)),
        };
        let topic = &mut self.topics[at];
        let index = usize::try_from(index).ok();
        let Some(partition) = index.and_then(|index| topic.partitions.get_mut(index)) else {
            return Pending::Settled(Answer::error(code::UNKNOWN_TOPIC_OR_PARTITION));
        };
        match partition.produce(call, batch) {
            Outcome::Answer(answer) => Pending::Settled(answer),
            Outcome::Wait(wait) => Pending::Waits { topic: topic.id, wait },
        }
    }

    /// The waiting requests that are answered by now, oldest first: all their partitions replicated or
    /// failed, or their time over. Requests at brokers that went down are dropped: their
    /// connections are gone.
    pub fn completed(&mut self, now: i64) -> Vec<(RequestId, Vec<PartAnswer>)> {
        let mut completed = Vec::new();
        let mut waiting = core::mem::take(&mut self.waiting);
        waiting.retain_mut(|request| {
            if !self.node(request.node).is_some_and(Node::is_running) {
                return false;
            }
            for (_, index, pending) in &mut request.parts {
                self.settle(*index, pending, now >= request.deadline);
            }
            match answers(request) {
                Some(answers) => {
                    completed.push((request.id, answers));
                    false
                }
                None => true,
            }
        });
        self.waiting = waiting;
        completed
    }

    fn settle(&self, index: i32, pending: &mut Pending, late: bool) {
        let Pending::Waits { topic, wait } = pending else { return };
        let topic = self.topics.iter().find(|known| known.id == *topic);
        let partition =
            topic.zip(usize::try_from(index).ok()).and_then(|(t, index)| t.partitions.get(index));
        let answer = match partition.map(|partition| partition.progress(wait)) {
            None => wait.vanished(),
            Some(Progress::Answer(answer)) => answer,
            Some(Progress::Waiting | Progress::Gone) if late => wait.timed_out(),
            Some(Progress::Waiting | Progress::Gone) => return,
        };
        *pending = Pending::Settled(answer);
    }
}

/// The answers of a request of which nothing waits any more.
fn answers(request: &Waiting) -> Option<Vec<PartAnswer>> {
    let settled = request.parts.iter().map(|(topic, partition, pending)| match pending {
        Pending::Settled(answer) => {
            Some(PartAnswer { topic: topic.clone(), partition: *partition, answer: answer.clone() })
        }
        Pending::Waits { .. } => None,
    });
    settled.collect()
}
