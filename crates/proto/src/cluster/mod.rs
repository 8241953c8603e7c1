//! What is known of the cluster: topics, leaders, brokers; and what is still to be asked.

mod asks;
mod brokers;
mod topic;
mod topics;

use std::collections::BTreeSet;
use std::sync::Arc;

use candor_core::rules::Rules;
use candor_core::{Instant, LeaderEpoch, RouteId, Span};
use candor_wire::{ErrorCode, metadata};

pub(crate) use asks::{Ask, Asks, Waits};
pub(crate) use brokers::{Brokers, Endpoint, Redial};
pub(crate) use topic::{Agreement, Heard, IdChange, Source, Told, Topic};
use topics::Topics;

use crate::address::Address;
use crate::fault::Fault;
use crate::router::TopicKey;

/// Metadata below this version may tell stale leader epochs (`hasReliableLeaderEpochs`).
const RELIABLE_EPOCHS: i16 = 9;

/// What an answer changed, in the order in which it is to be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Change {
    /// The connection goes to an address that its broker no longer has.
    Moved(RouteId),
    /// The topic was deleted and made anew (S18).
    Recreated(TopicKey),
    /// The cluster will never take records for it (U1).
    Refused(TopicKey, ErrorCode),
    /// Another leader or epoch is followed, of a partition with a lane.
    Leader(TopicKey, i32),
    /// The partition's leader is confirmed (K5, L4).
    Confirmed(TopicKey, i32, LeaderEpoch),
    /// One answer is not enough (S21): ask another broker at once.
    AskAnother(TopicKey),
    /// Nor are two from the same broker: ask another after a wait.
    Undecided(TopicKey),
    /// The topic has partitions: its unrouted queue may go.
    Routable(TopicKey),
}

impl Change {
    /// Whether the answer was not enough.
    pub(crate) const fn wants_more(&self) -> bool {
        match self {
            Self::AskAnother(_) | Self::Undecided(_) => true,
            Self::Moved(_)
            | Self::Recreated(_)
            | Self::Refused(..)
            | Self::Leader(..)
            | Self::Confirmed(..)
            | Self::Routable(_) => false,
        }
    }
}

/// What is known of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cluster {
    id: Option<Arc<str>>,
    topics: Topics,
    pub(crate) brokers: Brokers,
    pub(crate) asks: Asks,
    /// Partitions whose lane waits for a confirmation.
    questions: BTreeSet<(TopicKey, i32)>,
    age: Span,
    idle: Span,
    /// When everything in use is asked for again.
    next_round: Option<Instant>,
}

impl Cluster {
    pub(crate) fn new(brokers: Brokers, asks: Asks, age: Span, idle: Span) -> Self {
        Self {
            id: None,
            topics: Topics::default(),
            brokers,
            asks,
            questions: BTreeSet::new(),
            age,
            idle,
            next_round: None,
        }
    }

    /// The cluster's id, once a broker told it.
    pub(crate) fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    pub(crate) fn find(&self, name: &str) -> Option<TopicKey> {
        self.topics.find(name)
    }

    pub(crate) fn topic(&self, key: TopicKey) -> Option<&Topic> {
        self.topics.get(key)
    }

    /// The topic's name.
    pub(crate) fn name(&self, key: TopicKey) -> Arc<str> {
        self.topic(key).map_or_else(|| Arc::from(""), |topic| topic.name.clone())
    }

    /// The topic, which is in use now: asked for if it is new, or if what is known is old.
    pub(crate) fn using(&mut self, known: Option<TopicKey>, name: &str, now: Instant) -> TopicKey {
        let key = match known {
            Some(key) => key,
            None => {
                let key = self.topics.add(name, now);
                self.asks.at_once(key);
                key
            }
        };
        self.next_round.get_or_insert(now + self.age);
        if let Some(topic) = self.topics.get_mut(key) {
            topic.last_used = now;
            if topic.updated.is_none_or(|at| at + self.age < now) {
                self.asks.again(key);
            }
        }
        key
    }

    /// The leader that is followed.
    pub(crate) fn followed(&self, topic: TopicKey, partition: i32) -> Told {
        let nobody = Told { leader: None, epoch: LeaderEpoch::UNKNOWN };
        let partition = self.topic(topic).and_then(|topic| topic.partition(partition));
        partition.map_or(nobody, topic::Partition::followed)
    }

    /// A lane doubts its leader (NeedLeader).
    pub(crate) fn ask(&mut self, topic: TopicKey, partition: i32) {
        let after = self.asks.sent();
        let found = self.topics.get_mut(topic);
        if let Some(partition) = found.and_then(|topic| topic.partition_mut(partition)) {
            partition.ask(after);
        }
        self.questions.insert((topic, partition));
        self.asks.again(topic);
    }

    /// The lane has no work any more, and no doubt.
    pub(crate) fn forget_question(&mut self, topic: TopicKey, partition: i32) {
        self.questions.remove(&(topic, partition));
    }

    /// When metadata is to be looked at again.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let asks = self.asks.deadline();
        asks.into_iter().chain(self.next_round).min()
    }

    /// Metadata grows old: asks for everything in use again (KIP-526). Gives the topics that are idle.
    pub(crate) fn grow_old(&mut self, now: Instant) -> Vec<TopicKey> {
        if self.next_round.is_none_or(|at| at > now) {
            return Vec::new();
        }
        let in_use = |topic: &Topic| topic.last_used + self.idle > now;
        let (used, idle): (Vec<_>, Vec<_>) =
            self.topics.iter().partition(|(_, topic)| in_use(topic));
        let keys = |topics: Vec<(TopicKey, _)>| topics.into_iter().map(|(key, _)| key);
        let (used, idle): (Vec<_>, Vec<_>) = (keys(used).collect(), keys(idle).collect());
        self.next_round = (!used.is_empty()).then_some(now + self.age);
        used.into_iter().for_each(|topic| self.asks.again(topic));
        idle
    }

    /// Nothing is left of the topic, and nobody waits for it.
    pub(crate) fn forget(&mut self, topic: TopicKey) {
        self.topics.forget(topic);
    }

    /// KIP-951: takes in a newer leader that a broker hinted at; true if it is followed.
    pub(crate) fn hint<R: Rules>(&mut self, topic: TopicKey, partition: i32, told: Told) -> bool {
        let found = self.topics.get_mut(topic);
        found.is_some_and(|topic| topic.take_hint::<R>(partition, told))
    }

    /// Takes in a metadata answer. `ours` tells which partitions have a lane: of the others only
    /// their leaders are kept.
    pub(crate) fn take<R: Rules>(
        &mut self,
        answer: &metadata::Response<'_>,
        version: i16,
        by: Source,
        ours: impl Fn(TopicKey, i32) -> bool,
    ) -> Result<BTreeSet<Change>, Fault> {
        if answer.error == ErrorCode::REBOOTSTRAP_REQUIRED {
            return Err(Fault::Rebootstrap);
        }
        self.take_cluster_id(answer.cluster_id)?;
        let mut changes = BTreeSet::new();
        self.take_brokers(answer, &ours, &mut changes);
        let mut seen = BTreeSet::new();
        for info in answer.topics {
            let Some(key) = info.name.and_then(|name| self.find(name)) else { continue };
            // Nobody tells of a topic twice; if somebody does, the first time counts.
            if seen.insert(key) {
                self.take_topic::<R>(key, &info, version, by, &ours, &mut changes);
            }
        }
        for change in &changes {
            if let Change::Leader(topic, partition) | Change::Confirmed(topic, partition, _) =
                change
            {
                self.questions.remove(&(*topic, *partition));
            }
        }
        Ok(changes)
    }

    fn take_brokers(
        &mut self,
        answer: &metadata::Response<'_>,
        ours: &impl Fn(TopicKey, i32) -> bool,
        changes: &mut BTreeSet<Change>,
    ) {
        let mut wanted = BTreeSet::new();
        for info in answer.topics {
            let Some(key) = info.name.and_then(|name| self.find(name)) else { continue };
            let with_lane = info.partitions.iter().filter(|one| ours(key, one.index));
            wanted.extend(with_lane.filter_map(|one| one.leader));
        }
        let brokers = answer.brokers.iter().filter_map(|broker| {
            let address = Address::new(broker.host, i32::from(broker.port))?;
            Some((broker.node, address))
        });
        self.brokers.take_list(brokers, &wanted, |conn| _ = changes.insert(Change::Moved(conn)));
    }

    /// BRK-18: one cluster for life.
    fn take_cluster_id(&mut self, told: Option<&str>) -> Result<(), Fault> {
        match (&self.id, told) {
            (Some(ours), Some(theirs)) if **ours != *theirs => Err(Fault::ForeignCluster),
            (None, Some(theirs)) => {
                self.id = Some(theirs.into());
                Ok(())
            }
            (Some(_), Some(_)) | (_, None) => Ok(()),
        }
    }

    fn take_topic<R: Rules>(
        &mut self,
        key: TopicKey,
        info: &metadata::TopicInfo<'_>,
        version: i16,
        by: Source,
        ours: &impl Fn(TopicKey, i32) -> bool,
        changes: &mut BTreeSet<Change>,
    ) {
        let rule = Agreement {
            age: self.age,
            patience: self.asks.longest_wait(),
            alone: self.brokers.listed() <= 1,
            forsaken: by.broker.and_then(|broker| self.brokers.others_failed(broker)),
        };
        let Some(topic) = self.topics.get_mut(key) else { return };
        if matches!(
            info.error,
            ErrorCode::INVALID_TOPIC_EXCEPTION | ErrorCode::TOPIC_AUTHORIZATION_FAILED
        ) {
            changes.insert(Change::Refused(key, info.error));
            return;
        }
        if !info.error.is_none() || info.partitions.is_empty() {
            return;
        }
        match topic.take_id::<R>(info.id, by, rule) {
            IdChange::Stale => {
                changes.insert(Change::AskAnother(key));
                return;
            }
            IdChange::Undecided => {
                changes.insert(Change::Undecided(key));
                return;
            }
            IdChange::Recreated => _ = changes.insert(Change::Recreated(key)),
            IdChange::Same => {}
        }
        let leaders = info.partitions.iter().map(|one| (one.index, told(&one, version)));
        topic.take_leaders::<R>(leaders, by, rule, |partition, told, heard| {
            let ours = || ours(key, partition);
            let change = match heard {
                Heard::Nothing => None,
                Heard::Waiting => Some(Change::Undecided(key)),
                Heard::Changed => ours().then_some(Change::Leader(key, partition)),
                Heard::AskAnother => Some(Change::AskAnother(key)),
                Heard::Confirmed => ours().then_some(Change::Confirmed(key, partition, told.epoch)),
            };
            changes.extend(change);
        });
        changes.insert(Change::Routable(key));
    }

    /// What is asked for until it is answered: topics with open questions.
    pub(crate) fn open_questions(&self) -> impl Iterator<Item = TopicKey> + '_ {
        self.questions.iter().map(|(topic, _)| *topic)
    }
}

/// What an answer of this version tells of a partition's leader.
const fn told(partition: &metadata::Partition<'_>, version: i16) -> Told {
    let reliable = version >= RELIABLE_EPOCHS;
    let epoch = if reliable { partition.leader_epoch } else { LeaderEpoch::UNKNOWN };
    Told { leader: partition.leader, epoch }
}

#[cfg(test)]
mod tests {
    use candor_wire::NodeId;

    use super::*;

    #[test]
    fn old_metadata_tells_no_epochs() {
        let partition = metadata::Partition {
            error: ErrorCode::NONE,
            index: 0,
            leader: NodeId::new(1),
            leader_epoch: LeaderEpoch(7),
            replicas: metadata::Nodes::default(),
            in_sync: metadata::Nodes::default(),
            offline: metadata::Nodes::default(),
        };
        assert_eq!(told(&partition, 8).epoch, LeaderEpoch::UNKNOWN);
        assert_eq!(told(&partition, 9).epoch, LeaderEpoch(7));
    }
}
