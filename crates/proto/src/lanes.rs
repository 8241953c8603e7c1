//! One lane per partition, and what the outside keeps beside each.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use candor_core::rules::Rules;
use candor_core::{AttemptId, Instant, Lane, LaneConfig, LeaderEpoch, PoolIndex, RouteId};
use candor_wire::{NodeId, RecordBatch};

use crate::budget::LaneDoubt;
use crate::jitter::mix;
use crate::router::TopicKey;
use crate::worklist::LaneList;

/// Names a lane inside a producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct LaneKey(pub(crate) u32);

/// A lane, and what is kept beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slot<R: Rules> {
    pub(crate) lane: Lane<RecordBatch, R>,
    pub(crate) topic: TopicKey,
    pub(crate) partition: i32,
    /// Where it was told its leader is.
    pub(crate) told: (Option<RouteId>, LeaderEpoch),
    /// How often it was told.
    pub(crate) tellings: u32,
    /// The broker that it is attached to while it has work.
    pub(crate) at: Option<NodeId>,
    /// The last of the pool's ids that it got.
    pub(crate) identity: Option<PoolIndex>,
    /// L7: connections lost in a row with a request of it open and no answer.
    pub(crate) losses: u32,
    pub(crate) doubt: LaneDoubt,
    pub(crate) unsent: Unsent,
}

impl<R: Rules> Slot<R> {
    /// Gives back the room that was kept for more records.
    pub(crate) fn shrink(&mut self) {
        self.lane.shrink();
        self.unsent.attempts.shrink_to_fit();
        self.unsent.deferred.shrink_to_fit();
    }
}

/// S16: bytes of attempts that are not sent yet live on, and count, whatever became of their records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unsent {
    /// Sorted.
    attempts: Vec<AttemptId>,
    /// Bytes to be given back once all attempts up to this one are out.
    deferred: VecDeque<(AttemptId, usize)>,
}

impl Unsent {
    /// An attempt was queued.
    pub(crate) fn offered(&mut self, attempt: AttemptId) {
        if let Err(place) = self.attempts.binary_search(&attempt) {
            self.attempts.insert(place, attempt);
        }
    }

    /// Records ended: gives the bytes that may be given back now.
    pub(crate) fn ended(&mut self, bytes: usize) -> usize {
        let Some(last) = self.attempts.last().copied() else { return bytes };
        match self.deferred.back_mut() {
            Some((attempt, deferred)) if *attempt == last => *deferred += bytes,
            Some(_) | None => self.deferred.push_back((last, bytes)),
        }
        0
    }

    /// An attempt is out, or its connection over: gives the bytes that may be given back now.
    pub(crate) fn out(&mut self, attempt: AttemptId) -> usize {
        if let Ok(place) = self.attempts.binary_search(&attempt) {
            self.attempts.remove(place);
        }
        let first = self.attempts.first().copied();
        let mut bytes = 0;
        while let Some(&(last, deferred)) = self.deferred.front() {
            if first.is_some_and(|first| first <= last) {
                break;
            }
            bytes += deferred;
            self.deferred.pop_front();
        }
        bytes
    }
}

/// All lanes of a producer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lanes<R: Rules> {
    slots: Vec<Slot<R>>,
    by_place: BTreeMap<(TopicKey, i32), LaneKey>,
    /// Lanes that may have a batch for a connection.
    ready: BTreeMap<RouteId, LaneList>,
    /// Lanes that got records since the last flush.
    pub(crate) lingering: LaneList,
    /// Lanes with work whose partition has no leader that can be reached.
    pub(crate) leaderless: BTreeSet<LaneKey>,
    config: LaneConfig,
    seed: u64,
}

impl<R: Rules> Lanes<R> {
    pub(crate) fn new(config: LaneConfig, seed: u64) -> Self {
        Self {
            slots: Vec::new(),
            by_place: BTreeMap::new(),
            ready: BTreeMap::new(),
            lingering: LaneList::default(),
            leaderless: BTreeSet::new(),
            config,
            seed,
        }
    }

    pub(crate) fn get(&self, key: LaneKey) -> Option<&Slot<R>> {
        self.slots.get(key.0 as usize)
    }

    pub(crate) fn get_mut(&mut self, key: LaneKey) -> Option<&mut Slot<R>> {
        self.slots.get_mut(key.0 as usize)
    }

    /// The lane of a partition, if it has one.
    pub(crate) fn find(&self, topic: TopicKey, partition: i32) -> Option<LaneKey> {
        self.by_place.get(&(topic, partition)).copied()
    }

    /// The lane of a partition; made if there is none.
    pub(crate) fn at(&mut self, topic: TopicKey, partition: i32, now: Instant) -> LaneKey {
        if let Some(key) = self.find(topic, partition) {
            return key;
        }
        let key = LaneKey(self.slots.len() as u32);
        let jitter = Some(mix(self.seed, u64::from(key.0)));
        self.slots.push(Slot {
            lane: Lane::new(LaneConfig { jitter, ..self.config.clone() }, now),
            topic,
            partition,
            told: (None, LeaderEpoch::UNKNOWN),
            tellings: 0,
            at: None,
            identity: None,
            losses: 0,
            doubt: LaneDoubt::default(),
            unsent: Unsent::default(),
        });
        self.by_place.insert((topic, partition), key);
        key
    }

    /// The lanes of a topic.
    pub(crate) fn of_topic(&self, topic: TopicKey) -> impl Iterator<Item = LaneKey> + '_ {
        self.by_place.range((topic, i32::MIN)..=(topic, i32::MAX)).map(|(_, key)| *key)
    }

    /// All lanes.
    pub(crate) fn keys(&self) -> impl Iterator<Item = LaneKey> + use<R> {
        (0..self.slots.len() as u32).map(LaneKey)
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The lane has, or may have, a batch for this connection.
    pub(crate) fn is_ready(&mut self, key: LaneKey, conn: RouteId) {
        self.ready.entry(conn).or_default().push(key);
    }

    /// Whether some lane may have a batch for the connection.
    pub(crate) fn has_ready(&self, conn: RouteId) -> bool {
        self.ready.get(&conn).is_some_and(|list| !list.is_empty())
    }

    /// Takes the lanes that may have a batch for the connection; put them back with
    /// [`put_ready`](Self::put_ready).
    pub(crate) fn take_ready(&mut self, conn: RouteId) -> LaneList {
        self.ready.get_mut(&conn).map(core::mem::take).unwrap_or_default()
    }

    /// Puts them back, and the room that they had: it is needed again with the next batch.
    pub(crate) fn put_ready(&mut self, conn: RouteId, list: LaneList) {
        if let Some(seat) = self.ready.get_mut(&conn) {
            *seat = list;
        }
    }

    /// The connection is over: nothing is ready for it any more.
    pub(crate) fn forget_ready(&mut self, conn: RouteId) {
        self.ready.remove(&conn);
    }
}

#[cfg(test)]
mod tests {
    use candor_core::rules::Honest;

    use super::*;

    /// `docs/assumptions.md` tells so: it is what stays of a partition for ever.
    #[test]
    fn a_lane_that_rests_takes_less_than_a_thousand_bytes() {
        assert!(size_of::<Slot<Honest>>() + size_of::<((TopicKey, i32), LaneKey)>() < 1_000);
    }

    #[test]
    fn bytes_count_until_every_attempt_that_may_hold_them_is_out() {
        let mut unsent = Unsent::default();
        assert_eq!(unsent.ended(5), 5);
        unsent.offered(AttemptId(1));
        unsent.offered(AttemptId(2));
        assert_eq!(unsent.ended(7), 0);
        unsent.offered(AttemptId(3));
        assert_eq!(unsent.out(AttemptId(2)), 0);
        assert_eq!(unsent.out(AttemptId(1)), 7, "the third came later");
        assert_eq!(unsent.ended(1), 0);
        assert_eq!(unsent.out(AttemptId(3)), 1);
    }
}
