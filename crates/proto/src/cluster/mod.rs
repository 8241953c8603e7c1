//! What is known of the cluster: topics, leaders, brokers; and what is still to be asked.

mod asks;
mod brokers;
mod topic;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use candor_core::rules::Rules;
use candor_core::{Instant, LeaderEpoch, RouteId, Span};
use candor_wire::{ErrorCode, metadata};

pub(crate) use asks::{Ask, Asks, Waits};
pub(crate) use brokers::{Brokers, Endpoint, Redial};
pub(crate) use topic::{Agreement, Heard, IdChange, Source, Told, Topic};

use crate::address::Address;
use crate::fault::Fault;
use crate::router::TopicKey;

/// Metadata below this version may tell stale leader epochs (`hasReliableLeaderEpochs`).
const RELIABLE_EPOCHS: i16 = 9;

/// What an answer changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// The topic has partitions: its unrouted queue may go.
    Routable(TopicKey),
    /// The topic was deleted and made anew (S18).
    Recreated(TopicKey),
    /// The cluster will never take records for it (U1).
    Refused(TopicKey, ErrorCode),
    /// Another leader or epoch is followed.
    Leader(TopicKey, i32),
    /// The partition's leader is confirmed (K5, L4).
    Confirmed(TopicKey, i32, LeaderEpoch),
    /// One answer is not enough (S21): ask another broker at once.
    AskAnother(TopicKey),
    /// Nor are two from the same broker: ask another after a wait.
    Undecided(TopicKey),
    /// The connection goes to an address that its broker no longer has.
    Moved(RouteId),
}

/// What is known of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cluster {
    id: Option<Arc<str>>,
    topics: Vec<Topic>,
    by_name: BTreeMap<Arc<str>, TopicKey>,
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
    pub(crate) const fn new(brokers: Brokers, asks: Asks, age: Span, idle: Span) -> Self {
        Self {
            id: None,
            topics: Vec::new(),
            by_name: BTreeMap::new(),
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
        self.by_name.get(name).copied()
    }

    pub(crate) fn topic(&self, key: TopicKey) -> Option<&Topic> {
        self.topics.get(key.0 as usize)
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
                let key = TopicKey(self.topics.len() as u32);
                let name: Arc<str> = name.into();
                self.topics.push(Topic::new(name.clone(), now));
                self.by_name.insert(name, key);
                self.asks.at_once(key);
                key
            }
        };
        self.next_round.get_or_insert(now + self.age);
        if let Some(topic) = self.topics.get_mut(key.0 as usize) {
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
        let found = self.topics.get_mut(topic.0 as usize);
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

    /// Metadata grows old: asks for everything in use again.
    pub(crate) fn grow_old(&mut self, now: Instant) {
        if self.next_round.is_none_or(|at| at > now) {
            return;
        }
        let in_use = |topic: &Topic| topic.last_used + self.idle > now;
        let used = self.topics.iter().enumerate().filter(|(_, topic)| in_use(topic));
        let used: Vec<_> = used.map(|(index, _)| TopicKey(index as u32)).collect();
        self.next_round = (!used.is_empty()).then_some(now + self.age);
        used.into_iter().for_each(|topic| self.asks.again(topic));
    }

    /// KIP-951: takes in a newer leader that a broker hinted at; true if it is followed.
    pub(crate) fn hint(&mut self, topic: TopicKey, partition: i32, told: Told) -> bool {
        let found = self.topics.get_mut(topic.0 as usize);
        found.is_some_and(|topic| topic.take_hint(partition, told))
    }

    /// Takes in a metadata answer.
    pub(crate) fn take<R: Rules>(
        &mut self,
        answer: &metadata::Response<'_>,
        version: i16,
        by: Source,
    ) -> Result<Vec<Change>, Fault> {
        if answer.error == ErrorCode::REBOOTSTRAP_REQUIRED {
            return Err(Fault::Rebootstrap);
        }
        self.take_cluster_id(answer.cluster_id)?;
        let brokers = answer.brokers.iter().filter_map(|broker| {
            let address = Address::new(broker.host, i32::from(broker.port))?;
            Some((broker.node, address))
        });
        let mut changes: Vec<_> =
            self.brokers.take_list(brokers).into_iter().map(Change::Moved).collect();
        for info in &answer.topics {
            self.take_topic::<R>(info, version, by, &mut changes);
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
        info: &metadata::TopicInfo<'_>,
        version: i16,
        by: Source,
        changes: &mut Vec<Change>,
    ) {
        let Some(key) = info.name.and_then(|name| self.find(name)) else { return };
        let rule = Agreement { age: self.age, alone: self.brokers.listed() <= 1 };
        let Some(topic) = self.topics.get_mut(key.0 as usize) else { return };
        if matches!(
            info.error,
            ErrorCode::INVALID_TOPIC_EXCEPTION | ErrorCode::TOPIC_AUTHORIZATION_FAILED
        ) {
            changes.push(Change::Refused(key, info.error));
            return;
        }
        if !info.error.is_none() || info.partitions.is_empty() {
            return;
        }
        match topic.take_id(info.id, by, rule) {
            IdChange::Stale => return changes.push(Change::AskAnother(key)),
            IdChange::Undecided => return changes.push(Change::Undecided(key)),
            IdChange::Recreated => changes.push(Change::Recreated(key)),
            IdChange::Same => {}
        }
        let leaders = leaders(&info.partitions, version);
        topic.take_leaders::<R>(&leaders, by, rule, |partition, heard| match heard {
            Heard::Nothing => {}
            Heard::Waiting => changes.push(Change::Undecided(key)),
            Heard::Changed => changes.push(Change::Leader(key, partition)),
            Heard::AskAnother => changes.push(Change::AskAnother(key)),
            Heard::Confirmed => {
                let told = leaders.get(partition as usize).copied().flatten();
                let epoch = told.map_or(LeaderEpoch::UNKNOWN, |told| told.epoch);
                changes.push(Change::Confirmed(key, partition, epoch));
            }
        });
        changes.push(Change::Routable(key));
    }

    /// What is asked for until it is answered: topics with open questions.
    pub(crate) fn open_questions(&self) -> impl Iterator<Item = TopicKey> + '_ {
        self.questions.iter().map(|(topic, _)| *topic)
    }
}

/// Leaders by index. Indexes beyond the number of entries are not believed: partitions count from 0
/// without gaps.
fn leaders(partitions: &[metadata::Partition<'_>], version: i16) -> Vec<Option<Told>> {
    let mut leaders = vec![None; partitions.len()];
    for partition in partitions {
        let index = usize::try_from(partition.index).ok();
        if let Some(slot) = index.and_then(|index| leaders.get_mut(index)) {
            let epoch = if version < RELIABLE_EPOCHS {
                LeaderEpoch::UNKNOWN
            } else {
                partition.leader_epoch
            };
            *slot = Some(Told { leader: partition.leader, epoch });
        }
    }
    leaders
}

#[cfg(test)]
mod tests {
    use candor_wire::NodeId;

    use super::*;

    fn told(index: i32, epoch: i32) -> metadata::Partition<'static> {
        metadata::Partition {
            error: ErrorCode::NONE,
            index,
            leader: NodeId::new(1),
            leader_epoch: LeaderEpoch(epoch),
            replicas: metadata::Nodes::default(),
            in_sync: metadata::Nodes::default(),
            offline: metadata::Nodes::default(),
        }
    }

    #[test]
    fn old_metadata_tells_no_epochs() {
        let epoch = |version| leaders(&[told(0, 7)], version)[0].map(|told| told.epoch);
        assert_eq!(epoch(8), Some(LeaderEpoch::UNKNOWN));
        assert_eq!(epoch(9), Some(LeaderEpoch(7)));
    }

    #[test]
    fn partitions_that_cannot_be_are_not_believed() {
        let leaders = leaders(&[told(1, 3), told(i32::MAX, 3), told(-1, 3)], 12);
        let known: Vec<_> = leaders.iter().map(Option::is_some).collect();
        assert_eq!(known, [false, true, false]);
    }
}
