//! One partition, and the order in which a leader decides about an append.

use super::answer::LeaderHint;
use super::log::{Entry, Record};
use super::producers::{Claim, Known};
use super::replica::{Life, Reign, Replica, Role};
use super::{
    Answer, Batch, Config, NodeId, NodeSet, Outcome, Profile, Progress, TimestampType, Wait, code,
    validate,
};

/// `acks` of a request that waits for all in-sync replicas.
pub const ACKS_ALL: i16 = -1;
/// `acks` of a request that waits for the leader alone.
pub const ACKS_LEADER: i16 = 1;
/// `acks` of a request without an answer.
pub const ACKS_NONE: i16 = 0;

/// The circumstances of an append.
///
/// ```
/// use candor_sim::broker::{ACKS_ALL, Call, NodeId};
/// let call = Call { node: NodeId(1), now: 1_700_000_000_000, acks: ACKS_ALL, version: 11 };
/// assert_eq!(Call { node: NodeId(2), ..call }.acks, -1);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Call {
    /// The broker that judges.
    pub node: NodeId,
    /// That broker's clock, in milliseconds since the Unix epoch.
    pub now: i64,
    /// `acks` as the request has it.
    pub acks: i16,
    /// Version of the Produce request.
    pub version: i16,
}

/// A code to be answered to the next append, whatever the rules say. Each is used up by one
/// append at any leader.
///
/// ```
/// use candor_sim::broker::{ACKS_ALL, Batch, Call, NodeId, Outcome, Partition, Profile, Scripted};
/// let mut partition = Partition::new(Profile::V4_4, &[NodeId(1)]);
/// partition.script(Scripted::After { code: -1, show_offset: false });
/// let call = Call { node: NodeId(1), now: 0, acks: ACKS_ALL, version: 12 };
/// let Outcome::Answer(answer) = partition.produce(call, &Batch::new(7, 0, 0, 1, 0, 'a')) else { panic!() };
/// assert_eq!((answer.code, answer.base_offset), (-1, -1));
/// assert_eq!(partition.entries(NodeId(1)).len(), 1);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scripted {
    /// Answer this and append nothing.
    Before(i16),
    /// Judge and append as usual; answer this if that went well, and without waiting for replicas.
    After {
        /// The error code.
        code: i16,
        /// Whether the answer carries the real offset or -1.
        show_offset: bool,
    },
}

/// One partition with its replicas: the model's unit, complete without a cluster.
///
/// The first replica leads at leader epoch 0 and all are in sync. Faults are methods (see the
/// groups below); each is a step of its own, so that a search can put anything between two.
///
/// ```
/// use candor_sim::broker::{ACKS_ALL, Batch, Call, NodeId, Outcome, Partition, Profile};
/// let mut partition = Partition::new(Profile::V3_9, &[NodeId(1)]);
/// let call = Call { node: NodeId(1), now: 0, acks: ACKS_ALL, version: 11 };
/// let mut send = |first, count| match partition.produce(call, &Batch::new(7, 0, first, count, 0, 'x')) {
///     Outcome::Answer(answer) => (answer.code, answer.base_offset),
///     Outcome::Wait(_) => unreachable!("a lone replica commits at once"),
/// };
/// assert_eq!(send(0, 2), (0, 0));
/// assert_eq!(send(3, 1), (45, -1)); // a gap
/// assert_eq!(send(2, 1), (0, 2));
/// assert_eq!(send(0, 2), (0, 0)); // a repeat
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Partition<C> {
    pub(super) profile: Profile,
    pub(super) config: Config,
    /// The leader as the controller has it; `None` while no candidate is up.
    pub(super) leader: Option<NodeId>,
    pub(super) leader_epoch: i32,
    pub(super) isr: NodeSet,
    pub(super) replicas: Vec<Replica<C>>,
    script: Vec<Scripted>,
    pub(super) refusal: Option<i16>,
}

/// Building, settings and views.
impl<C: Clone> Partition<C> {
    /// An empty partition. Without replicas it has no leader and refuses everything.
    #[must_use]
    pub fn new(profile: Profile, nodes: &[NodeId]) -> Self {
        let isr: NodeSet = nodes.iter().copied().collect();
        let mut replicas: Vec<Replica<C>> = isr.iter().map(|node| Replica::new(node, 0)).collect();
        let leader = nodes.first().copied();
        for replica in &mut replicas {
            replica.life = Life::Up(if Some(replica.node) == leader {
                Role::Leader(Reign { epoch: 0, since: 0, isr })
            } else {
                Role::Follower { epoch: 0, synced: true }
            });
        }
        Self {
            profile,
            config: profile.default_config(),
            leader,
            leader_epoch: 0,
            isr,
            replicas,
            script: Vec::new(),
            refusal: None,
        }
    }

    /// The version it imitates.
    #[must_use]
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// Its settings.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Its settings, to be changed.
    pub fn config_mut(&mut self) -> &mut Config {
        &mut self.config
    }

    /// Its leader, as the controller has it.
    #[must_use]
    pub fn leader(&self) -> Option<NodeId> {
        self.leader
    }

    /// The leader epoch: grows with every election.
    #[must_use]
    pub fn leader_epoch(&self) -> i32 {
        self.leader_epoch
    }

    /// The in-sync replicas, as the controller has them.
    #[must_use]
    pub fn isr(&self) -> NodeSet {
        self.isr
    }

    /// The brokers that hold it, ascending.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.replicas.iter().map(|replica| replica.node)
    }

    /// Whether this broker believes to lead, rightly or not.
    #[must_use]
    pub fn believes_to_lead(&self, node: NodeId) -> bool {
        self.replica(node).is_some_and(|replica| replica.reign().is_some())
    }

    /// All batches on a replica's disk, also those below its log start and above its high watermark.
    #[must_use]
    pub fn entries(&self, node: NodeId) -> &[Entry<C>] {
        self.replica(node).map_or(&[], |replica| replica.log.entries())
    }

    /// All batches a consumer could ever read at the leader (or, without one, at the in-sync replica with the
    /// longest log), committed or not yet.
    #[must_use]
    pub fn log(&self) -> &[Entry<C>] {
        self.authority().map_or(&[], |replica| replica.log.readable())
    }

    /// The records below the high watermark of that same replica, in offset order.
    pub fn committed(&self) -> impl Iterator<Item = Record<'_, C>> {
        let (entries, start, watermark) = match self.authority() {
            Some(replica) => (replica.log.readable(), replica.log.start(), replica.watermark),
            None => (&[][..], 0, 0),
        };
        let records = entries.iter().flat_map(|entry| {
            (0..entry.count).map(move |index| Record {
                offset: entry.base_offset + i64::from(index),
                index,
                entry,
            })
        });
        records.filter(move |record| (start..watermark).contains(&record.offset))
    }

    /// Offset of the next record at a replica; `None` if the broker holds none.
    #[must_use]
    pub fn end_offset(&self, node: NodeId) -> Option<i64> {
        self.replica(node).map(|replica| replica.log.end())
    }

    /// First readable offset at a replica.
    #[must_use]
    pub fn start_offset(&self, node: NodeId) -> Option<i64> {
        self.replica(node).map(|replica| replica.log.start())
    }

    /// High watermark as a replica knows it.
    #[must_use]
    pub fn high_watermark(&self, node: NodeId) -> Option<i64> {
        self.replica(node).map(|replica| replica.watermark)
    }

    /// What a replica remembers of a producer.
    #[must_use]
    pub fn known(&self, node: NodeId, pid: i64) -> Option<&Known> {
        self.replica(node)?.log.producers().get(pid)
    }

    /// All producers a replica remembers, by ascending id.
    pub fn producers(&self, node: NodeId) -> impl Iterator<Item = &Known> {
        self.replica(node).into_iter().flat_map(|replica| replica.log.producers().iter())
    }

    pub(super) fn replica(&self, node: NodeId) -> Option<&Replica<C>> {
        self.replicas.iter().find(|replica| replica.node == node)
    }

    pub(super) fn replica_mut(&mut self, node: NodeId) -> Option<&mut Replica<C>> {
        self.replicas.iter_mut().find(|replica| replica.node == node)
    }

    /// The replica whose log counts.
    fn authority(&self) -> Option<&Replica<C>> {
        match self.leader {
            Some(leader) => self.replica(leader),
            None => {
                let candidates =
                    self.replicas.iter().filter(|replica| self.isr.contains(replica.node));
                candidates.max_by_key(|replica| replica.log.end())
            }
        }
    }
}

/// Appending.
impl<C: Clone> Partition<C> {
    /// Answers one of the next appends with a code of your choice; several are used in turn.
    pub fn script(&mut self, scripted: Scripted) {
        self.script.push(scripted);
    }

    /// From now on every append is refused with this code before anything else is looked at (29,
    /// say, or 31), until it is lifted with `None`.
    pub fn refuse_with(&mut self, code: Option<i16>) {
        self.refusal = code;
    }

    /// Judges a batch, and appends it if it is due.
    ///
    /// With `acks` 0 the outcome is what the broker *would* say: it sends nothing, and closes the
    /// connection instead of an error.
    pub fn produce(&mut self, call: Call, batch: &Batch<C>) -> Outcome {
        if let Some(code) = self.refusal {
            return Outcome::Answer(Answer::error(code));
        }
        let scripted = if self.script.is_empty() { None } else { Some(self.script.remove(0)) };
        let after = match scripted {
            Some(Scripted::Before(code)) => return Outcome::Answer(Answer::error(code)),
            Some(Scripted::After { code, show_offset }) => Some((code, show_offset)),
            None => None,
        };
        let success = match self.judge(call, batch) {
            Ok(success) => success,
            Err(refused) => return Outcome::Answer(refused),
        };
        match after {
            Some((code, true)) => Outcome::Answer(Answer { code, ..success }),
            Some((code, false)) => Outcome::Answer(Answer { code, ..Answer::error(code) }),
            None => self.acknowledge(call, batch.count, success),
        }
    }

    /// The decision procedure: the first rule that objects decides.
    fn judge(&mut self, call: Call, batch: &Batch<C>) -> Result<Answer, Answer> {
        validate::shape(batch, call.version)?;
        if !matches!(call.acks, ACKS_ALL | ACKS_LEADER | ACKS_NONE) {
            return Err(Answer::error(code::INVALID_REQUIRED_ACKS));
        }
        let reign = self.leadership(call.node)?;
        let (profile, config) = (self.profile, self.config);
        let Some(replica) = self.replica_mut(call.node) else {
            return Err(Answer::error(code::NOT_LEADER_OR_FOLLOWER));
        };
        let start = replica.log.start();
        if call.acks == ACKS_ALL && reign.isr.len() < config.min_insync_replicas {
            return Err(Answer::error_at(code::NOT_ENOUGH_REPLICAS, start));
        }
        validate::content(batch, &config, call.now, start)?;
        if batch.pid >= 0 {
            let claim = Claim {
                pid: batch.pid,
                epoch: batch.epoch,
                first: batch.first,
                count: batch.count,
            };
            if let Some(repeated) = replica.log.producers().repeat_of(claim) {
                return Ok(success(repeated.base_offset, repeated.stamp, start));
            }
            let (virgin, origin) = (replica.log.end() == 0, config.first_sequence);
            let checked = replica.log.producers().check(claim, profile.no_state(), virgin, origin);
            checked.map_err(|code| Answer::error_at(code, start))?;
        }
        let appended = store(replica, reign.epoch, &config, call.now, batch);
        self.advance(call.node);
        Ok(appended)
    }

    /// Step 3: whether this broker believes to lead.
    fn leadership(&self, node: NodeId) -> Result<Reign, Answer> {
        let failed = |code| Answer { current_leader: self.hint(), ..Answer::error(code) };
        let Some(replica) = self.replica(node) else {
            return Err(failed(code::NOT_LEADER_OR_FOLLOWER));
        };
        match replica.life {
            Life::Up(Role::Leader(reign)) => Ok(reign),
            Life::Up(Role::Follower { .. }) | Life::Down(_) => {
                Err(failed(code::NOT_LEADER_OR_FOLLOWER))
            }
            Life::DirFailed => Err(Answer::error(code::KAFKA_STORAGE_ERROR)),
        }
    }

    fn hint(&self) -> Option<LeaderHint> {
        self.leader.map(|node| LeaderHint { node, epoch: self.leader_epoch })
    }

    /// Answers at once, or once the high watermark has passed the batch.
    fn acknowledge(&self, call: Call, count: i32, success: Answer) -> Outcome {
        let Some(reign) = self.replica(call.node).and_then(Replica::reign) else {
            return Outcome::Answer(success);
        };
        if call.acks != ACKS_ALL {
            return Outcome::Answer(success);
        }
        let needs = success.base_offset + i64::from(count);
        let wait = Wait { node: call.node, reign: reign.since, needs, success };
        match self.progress(&wait) {
            Progress::Answer(answer) => Outcome::Answer(answer),
            Progress::Waiting | Progress::Gone => Outcome::Wait(wait),
        }
    }

    /// How a waiting answer stands. Ask after every change: what is decided is not kept here.
    pub fn progress(&self, wait: &Wait) -> Progress {
        let Some(replica) = self.replica(wait.node) else {
            return Progress::Answer(wait.failed(code::NOT_LEADER_OR_FOLLOWER));
        };
        match replica.life {
            Life::Down(_) => Progress::Gone,
            Life::DirFailed => Progress::Answer(wait.failed(code::KAFKA_STORAGE_ERROR)),
            Life::Up(Role::Leader(reign)) if reign.since == wait.reign => {
                if replica.watermark < wait.needs {
                    Progress::Waiting
                } else if reign.isr.len() < self.config.min_insync_replicas {
                    Progress::Answer(wait.failed(code::NOT_ENOUGH_REPLICAS_AFTER_APPEND))
                } else {
                    Progress::Answer(wait.success.clone())
                }
            }
            Life::Up(Role::Leader(_) | Role::Follower { .. }) => {
                let answer = wait.failed(code::NOT_LEADER_OR_FOLLOWER);
                Progress::Answer(Answer { current_leader: self.hint(), ..answer })
            }
        }
    }
}

fn success(base_offset: i64, log_append_time: i64, log_start_offset: i64) -> Answer {
    Answer { base_offset, log_append_time, log_start_offset, ..Answer::error(code::NONE) }
}

/// Step 10: into the leader's log.
fn store<C: Clone>(
    replica: &mut Replica<C>,
    leader_epoch: i32,
    config: &Config,
    now: i64,
    batch: &Batch<C>,
) -> Answer {
    let base_offset = replica.log.end();
    // Bit 3 of a client is replaced by the topic's own.
    let (stamp, append_time, attributes) = match config.timestamp_type {
        TimestampType::CreateTime => (batch.stamps.max(), -1, batch.attributes & !8),
        TimestampType::LogAppendTime => (now, now, batch.attributes | 8),
    };
    replica.log.append(Entry {
        base_offset,
        count: batch.count,
        leader_epoch,
        pid: batch.pid,
        epoch: batch.epoch,
        first: batch.first,
        attributes,
        stamp,
        content: batch.content.clone(),
    });
    success(base_offset, append_time, replica.log.start())
}
