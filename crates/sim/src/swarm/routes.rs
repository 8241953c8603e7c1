//! Which leader each partition's lane believes in. Requests do not say so, but the judge needs it to
//! know which attempts a lane has orphaned (S7): what the producer was told is followed here by
//! rule S21. Where that is not certain the lane is *murky*, and its attempts are judged one by one.

use std::collections::{BTreeMap, BTreeSet};

use candor_core::RouteId;

use super::scenario::TopicPlan;
use crate::codec::{MetadataResponse, MetadataTopic, Uuid};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Belief {
    leader: Option<i32>,
    epoch: Option<i32>,
    /// Grows with every change that an attempt shows.
    generation: i32,
    /// It is not certain that the lane believes this.
    murky: bool,
    /// Older leaders were told of more than once: it may follow one.
    gullible: bool,
    was_murky: bool,
    /// Something changed since the last attempt. An idle lane hears only of what is so when it has
    /// work again.
    stirred: bool,
    /// Somebody told of this older leader, once.
    rumour: Option<(Option<i32>, i32)>,
    /// What the last attempt was made in.
    seen: Option<(Option<i32>, Option<i32>, RouteId)>,
}

/// What the producer was told of leaders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Routes {
    beliefs: BTreeMap<(u32, i32), Belief>,
    ids: BTreeMap<u32, (Uuid, BTreeSet<Uuid>)>,
    /// Topics of which an id was told that they had before: told again, the producer goes back to it
    /// (S18). From then on nothing about their lanes is certain.
    doubtful: BTreeSet<u32>,
    brokers: BTreeSet<i32>,
}

impl Routes {
    /// What stands for the leader epoch of an attempt that is offered now.
    pub(super) fn leader_epoch(&mut self, topic: u32, partition: i32, conn: RouteId) -> i32 {
        let belief = self.beliefs.entry((topic, partition)).or_default();
        let here = Some((belief.leader, belief.epoch, conn));
        if belief.seen != here {
            belief.seen = here;
            belief.generation += 1;
            // A new connection orphans everything; so does a newer epoch.
            belief.murky = false;
        } else if belief.stirred {
            (belief.murky, belief.was_murky) = (true, true);
        }
        belief.stirred = false;
        if self.doubtful.contains(&topic) {
            (belief.murky, belief.was_murky) = (true, true);
        }
        if belief.murky {
            belief.generation += 1;
        }
        belief.generation
    }

    /// Whether going to this node means to follow an older leader that was told of once.
    pub(super) fn is_rumour(&self, topic: u32, partition: i32, node: i32) -> bool {
        !self.doubtful.contains(&topic)
            && self.beliefs.get(&(topic, partition)).is_some_and(|belief| {
                let told = belief.rumour.is_some_and(|(leader, _)| leader == Some(node));
                told && !belief.gullible && belief.leader != Some(node)
            })
    }

    /// Whether it was ever uncertain what a lane believes.
    pub(super) fn was_murky(&self, topic: u32, partition: i32) -> bool {
        self.beliefs.get(&(topic, partition)).is_some_and(|belief| belief.was_murky)
    }

    /// The producer reads a metadata answer.
    pub(super) fn hear(&mut self, metadata: &MetadataResponse, plans: &[TopicPlan]) {
        self.hear_brokers(metadata);
        for topic in &metadata.topics {
            let index = plans.iter().position(|plan| Some(&plan.name) == topic.name.as_ref());
            let Some(index) = index.and_then(|index| u32::try_from(index).ok()) else { continue };
            if topic.error != 0 || topic.partitions.is_empty() || !self.hear_id(index, topic) {
                continue;
            }
            for partition in &topic.partitions {
                let leader = (partition.leader >= 0).then_some(partition.leader);
                self.hear_leader(index, partition.index, leader, partition.leader_epoch);
            }
        }
    }

    /// A broker that is not listed any more, or again, changes the way to it.
    fn hear_brokers(&mut self, metadata: &MetadataResponse) {
        let listed: BTreeSet<i32> = metadata.brokers.iter().map(|broker| broker.node).collect();
        let changed: BTreeSet<i32> = self.brokers.symmetric_difference(&listed).copied().collect();
        for belief in self.beliefs.values_mut() {
            belief.stirred |= belief.leader.is_some_and(|leader| changed.contains(&leader));
        }
        self.brokers = listed;
    }

    /// False if the answer is of a topic that is gone.
    fn hear_id(&mut self, index: u32, topic: &MetadataTopic) -> bool {
        if topic.id == [0; 16] {
            return true;
        }
        let (id, retired) = self.ids.entry(index).or_insert_with(|| (topic.id, BTreeSet::new()));
        if retired.contains(&topic.id) {
            self.doubtful.insert(index);
            return false;
        }
        if *id != topic.id {
            retired.insert(*id);
            *id = topic.id;
            for (_, belief) in self.beliefs.range_mut((index, i32::MIN)..=(index, i32::MAX)) {
                let (generation, was_murky) = (belief.generation + 1, belief.was_murky);
                *belief = Belief { generation, was_murky, ..Belief::default() };
            }
        }
        true
    }

    fn hear_leader(&mut self, topic: u32, partition: i32, leader: Option<i32>, epoch: i32) {
        let belief = self.beliefs.entry((topic, partition)).or_default();
        if (belief.leader, belief.epoch) == (leader, Some(epoch)) {
            // It brings a lane back that followed an older one.
            belief.stirred |= belief.gullible;
            return;
        }
        match belief.epoch {
            Some(known) if epoch < known => {
                belief.stirred = true;
                // A second word for it, from whomever, and the lane may believe it.
                let again = belief.rumour.is_some();
                belief.rumour = (!again).then_some((leader, epoch));
                belief.gullible |= again;
            }
            Some(_) | None => {
                (belief.rumour, belief.gullible) = (None, false);
                (belief.leader, belief.epoch, belief.stirred) = (leader, Some(epoch), true);
            }
        }
    }

    /// The producer reads a hint beside an error: followed if it is newer.
    pub(super) fn hear_hint(&mut self, topic: u32, partition: i32, leader: i32, epoch: i32) {
        let belief = self.beliefs.entry((topic, partition)).or_default();
        if belief.epoch.is_none_or(|known| epoch > known) {
            (belief.leader, belief.epoch, belief.stirred) = (Some(leader), Some(epoch), true);
        }
    }
}
