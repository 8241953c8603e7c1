//! Which partition a record goes to, and where it waits until that can be said (rule U1).

use std::collections::{BTreeMap, BTreeSet};

use candor_core::{Instant, Ticket};

use crate::partitioner::{Partitioning, Sticky, partition_for_key};
use crate::record::Record;

/// Names a topic inside a producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TopicKey(pub(crate) u32);

/// A record that waits for its topic's partitions to become known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Raw {
    /// When `send` was called.
    pub(crate) born: Instant,
    /// When its verdict is due.
    pub(crate) deadline: Instant,
    /// The record, with nothing borrowed.
    pub(crate) record: Record<'static>,
}

/// The unrouted queues and the choice of partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Router {
    partitioning: Partitioning,
    batch_size: usize,
    seed: u64,
    queues: BTreeMap<TopicKey, BTreeMap<Ticket, Raw>>,
    expiries: BTreeSet<(Instant, Ticket, TopicKey)>,
    sticky: BTreeMap<TopicKey, Sticky>,
}

impl Router {
    pub(crate) const fn new(partitioning: Partitioning, batch_size: usize, seed: u64) -> Self {
        Self {
            partitioning,
            batch_size,
            seed,
            queues: BTreeMap::new(),
            expiries: BTreeSet::new(),
            sticky: BTreeMap::new(),
        }
    }

    /// Whether records of the topic wait; newer ones must then wait behind them.
    pub(crate) fn holds(&self, topic: TopicKey) -> bool {
        self.queues.contains_key(&topic)
    }

    /// The topics with records that wait.
    pub(crate) fn topics(&self) -> impl Iterator<Item = TopicKey> + '_ {
        self.queues.keys().copied()
    }

    /// Queues a record behind the others of its topic.
    pub(crate) fn hold(&mut self, topic: TopicKey, ticket: Ticket, raw: Raw) {
        self.expiries.insert((raw.deadline, ticket, topic));
        self.queues.entry(topic).or_default().insert(ticket, raw);
    }

    /// Takes out the oldest record of the topic.
    pub(crate) fn next(&mut self, topic: TopicKey) -> Option<(Ticket, Raw)> {
        let (ticket, _) = self.queues.get(&topic)?.first_key_value()?;
        let ticket = *ticket;
        self.take(topic, ticket).map(|raw| (ticket, raw))
    }

    /// Takes out this record, whatever its place.
    pub(crate) fn take(&mut self, topic: TopicKey, ticket: Ticket) -> Option<Raw> {
        let queue = self.queues.get_mut(&topic)?;
        let raw = queue.remove(&ticket)?;
        if queue.is_empty() {
            self.queues.remove(&topic);
        }
        self.expiries.remove(&(raw.deadline, ticket, topic));
        Some(raw)
    }

    /// The topic, of which no records wait, is forgotten.
    pub(crate) fn forget(&mut self, topic: TopicKey) {
        self.sticky.remove(&topic);
    }

    /// When the next of them is due.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.expiries.first().map(|(at, ..)| *at)
    }

    /// One record whose time is up, if there is one.
    pub(crate) fn due(&self, now: Instant) -> Option<(TopicKey, Ticket)> {
        let &(at, ticket, topic) = self.expiries.first()?;
        (at <= now).then_some((topic, ticket))
    }

    /// The partition of a record among `count` (> 0) of them, of which `led` have a leader. The
    /// caller's own choice wins, then the key, then one partition after the other; those without a
    /// leader are used only if no partition has one.
    pub(crate) fn choose(
        &mut self,
        topic: TopicKey,
        record: &Record<'_>,
        count: u32,
        led: &[u32],
    ) -> u32 {
        if let Some(asked) = record.asked_partition() {
            return asked;
        }
        match (self.partitioning, record.key_bytes()) {
            (Partitioning::Hashed, Some(key)) => partition_for_key(key, count),
            (Partitioning::Hashed, None) | (Partitioning::Sticky, _) => {
                let (seed, batch_size) = (self.seed, self.batch_size);
                let sticky = self
                    .sticky
                    .entry(topic)
                    .or_insert_with(|| Sticky::new(seed, u64::from(topic.0)));
                let size = record.payload_bytes();
                sticky.pick(led, size, batch_size).unwrap_or_else(|| sticky.any(count))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: TopicKey = TopicKey(0);

    fn raw(deadline: u64) -> Raw {
        Raw {
            born: Instant::EPOCH,
            deadline: Instant::from_millis(deadline),
            record: Record::to("t").value("v"),
        }
    }

    fn router() -> Router {
        Router::new(Partitioning::Hashed, 100, 7)
    }

    #[test]
    fn records_wait_in_order_and_leave_once() {
        let mut router = router();
        router.hold(T, Ticket(1), raw(9));
        router.hold(T, Ticket(2), raw(5));
        router.hold(T, Ticket(3), raw(7));
        assert_eq!(router.due(Instant::from_millis(4)), None);
        assert_eq!(router.due(Instant::from_millis(5)), Some((T, Ticket(2))));
        assert!(router.take(T, Ticket(2)).is_some());
        assert!(router.take(T, Ticket(2)).is_none());
        assert_eq!(router.next(T).map(|(ticket, _)| ticket), Some(Ticket(1)));
        assert_eq!(router.deadline(), Some(Instant::from_millis(7)));
        assert_eq!(router.next(T).map(|(ticket, _)| ticket), Some(Ticket(3)));
        assert!(!router.holds(T) && router.deadline().is_none());
    }

    #[test]
    fn the_callers_choice_wins_then_the_key_then_leaders() {
        let mut router = router();
        let keyed = Record::to("t").key("1");
        assert_eq!(router.choose(T, &keyed.clone().partition(0), 12, &[]), 0);
        assert_eq!(router.choose(T, &keyed, 12, &[7]), 3);
        assert_eq!(router.choose(T, &Record::to("t"), 12, &[7]), 7);
        assert!(router.choose(T, &Record::to("t"), 12, &[]) < 12);
        let mut sticky = Router::new(Partitioning::Sticky, 100, 7);
        assert_eq!(sticky.choose(T, &keyed, 12, &[7]), 7);
    }
}
