//! What the producer was told of leaders, followed by rules S18 and S21, and what its lanes say of it.
//! The judge takes a lane's own word for when it was told another leader (S7), since an idle lane hears
//! of nothing, and nobody else knows when it listens again. Where what brokers said leaves no choice,
//! that word is held against it.

use std::collections::{BTreeMap, BTreeSet};

use candor_proto::PartitionLeader;

use super::scenario::TopicPlan;
use crate::codec::{MetadataResponse, MetadataTopic, Uuid};
use crate::judge::{Fact, Lane};

/// A leader, and its epoch.
type Told = (Option<i32>, i32);

/// Which leader of a partition is followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Belief {
    /// Nobody told of one, or it is not certain which.
    #[default]
    Open,
    /// The one with the highest epoch, which was told last.
    Certain {
        followed: Told,
        /// Somebody told of this older one, once (S21).
        rumour: Option<Told>,
    },
    /// Older ones were told of more than once, or a newer one by a hint: any may be followed. This was
    /// the highest.
    Gullible { highest: Told },
}

impl Belief {
    const fn follow(followed: Told) -> Self {
        Self::Certain { followed, rumour: None }
    }

    /// A metadata answer.
    fn hear(self, told: Told) -> Self {
        match self {
            Self::Certain { followed, rumour } if told.1 < followed.1 => match rumour {
                None => Self::Certain { followed, rumour: Some(told) },
                // A second word for it, from whomever.
                Some(_) => Self::Gullible { highest: followed },
            },
            Self::Gullible { highest } if told.1 < highest.1 => self,
            Self::Open | Self::Certain { .. } | Self::Gullible { .. } => Self::follow(told),
        }
    }

    /// A hint beside an error: if it is newer it may be followed, unless another one was just now.
    fn hint(self, told: Told) -> Self {
        match self {
            Self::Certain { followed: highest, .. } | Self::Gullible { highest }
                if told.1 <= highest.1 =>
            {
                self
            }
            Self::Open | Self::Certain { .. } | Self::Gullible { .. } => {
                Self::Gullible { highest: told }
            }
        }
    }
}

/// What the producer was told of leaders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Routes {
    beliefs: BTreeMap<(u32, i32), Belief>,
    ids: BTreeMap<u32, (Uuid, BTreeSet<Uuid>)>,
    /// Topics of which an id was told that they had before: told again, the producer goes back to it
    /// (S18). From then on nothing about their leaders is certain.
    doubtful: BTreeSet<u32>,
    /// How often lanes had been told of a leader when that was looked at last.
    changes: BTreeMap<Lane, u32>,
}

impl Routes {
    /// What the judge is to know of a lane that may have been told of another leader since it was
    /// looked at last, if it was: everything that is open was orphaned then, though the same leader
    /// may be followed again.
    pub(super) fn changed(&mut self, lane: Lane, leader: PartitionLeader) -> Option<Fact> {
        let before = self.changes.insert(lane, leader.changes);
        let connection = None;
        let leader_epoch = leader.epoch.0;
        (before != Some(leader.changes)).then_some(Fact::Routed { lane, connection, leader_epoch })
    }

    /// The leader that the lane of a partition has to follow, and its epoch, as far as that is certain.
    pub(super) fn followed(&self, topic: u32, partition: i32) -> Option<Told> {
        match self.beliefs.get(&(topic, partition))? {
            Belief::Certain { followed, .. } => {
                (!self.doubtful.contains(&topic)).then_some(*followed)
            }
            Belief::Open | Belief::Gullible { .. } => None,
        }
    }

    /// The producer reads a metadata answer.
    pub(super) fn hear(&mut self, metadata: &MetadataResponse, plans: &[TopicPlan]) {
        for topic in &metadata.topics {
            let index = plans.iter().position(|plan| Some(&plan.name) == topic.name.as_ref());
            let Some(index) = index.and_then(|index| u32::try_from(index).ok()) else { continue };
            if topic.error != 0 || topic.partitions.is_empty() || !self.hear_id(index, topic) {
                continue;
            }
            for partition in &topic.partitions {
                let leader = (partition.leader >= 0).then_some(partition.leader);
                let belief = self.beliefs.entry((index, partition.index)).or_default();
                *belief = belief.hear((leader, partition.leader_epoch));
            }
        }
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
                *belief = Belief::Open;
            }
        }
        true
    }

    /// The producer reads a hint beside an error.
    pub(super) fn hear_hint(&mut self, topic: u32, partition: i32, leader: i32, epoch: i32) {
        let belief = self.beliefs.entry((topic, partition)).or_default();
        *belief = belief.hint((Some(leader), epoch));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: Told = (Some(1), 7);
    const OLD: Told = (Some(2), 6);

    fn certain(belief: Belief) -> Option<Told> {
        let beliefs = [((0, 0), belief)].into();
        Routes { beliefs, ..Routes::default() }.followed(0, 0)
    }

    #[test]
    fn an_older_leader_is_a_rumour_and_the_newer_one_is_followed() {
        let once = Belief::Open.hear(NEW).hear(OLD);
        assert_eq!(certain(once), Some(NEW));
        assert_eq!(certain(once.hear(OLD)), None);
        assert_eq!(certain(once.hear(OLD).hear(NEW)), Some(NEW));
        assert_eq!(certain(once.hear(NEW).hear(OLD)), Some(NEW), "nothing older is remembered");
        assert_eq!(certain(once.hear(OLD).hear(OLD).hear((Some(3), 7))), Some((Some(3), 7)));
    }

    #[test]
    fn hints_lead_forwards_only() {
        let known = Belief::Open.hear(NEW);
        assert_eq!(certain(known.hint((Some(3), 7))), Some(NEW));
        assert_eq!(certain(known.hint((Some(3), 8))), None);
        assert_eq!(certain(known.hint((Some(3), 8)).hear((Some(3), 8))), Some((Some(3), 8)));
        assert_eq!(certain(known.hint((Some(3), 8)).hear(NEW)), None);
        assert_eq!(certain(known.hear(OLD).hear(OLD).hint((Some(3), 7))), None);
        assert_eq!(certain(Belief::Open.hint(NEW)), None);
        assert_eq!(certain(Belief::Open.hint(NEW).hear(OLD)), None);
    }

    #[test]
    fn a_lane_that_was_told_twice_lost_what_was_open_though_it_is_where_it_was() {
        let lane = Lane { producer: 0, topic: 0, partition: 0 };
        let epoch = candor_core::LeaderEpoch(3);
        let leader = |changes| PartitionLeader { route: None, epoch, changes };
        let mut routes = Routes::default();
        assert!(routes.changed(lane, leader(1)).is_some());
        assert_eq!(routes.changed(lane, leader(1)), None);
        let told = Fact::Routed { lane, connection: None, leader_epoch: 3 };
        assert_eq!(routes.changed(lane, leader(3)), Some(told));
    }
}
