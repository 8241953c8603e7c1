//! The brokers of a cluster: up, asleep, cut off or down; and what they do by the clock.

use core::ops::Range;

use super::{Cluster, ClusterView, Deposed, NodeId, Partition, Refused, Stop};

/// How often brokers look for expired producers.
const CHECK_MS: i64 = 600_000;
/// How often brokers checkpoint log starts.
const CHECKPOINT_MS: i64 = 60_000;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Machine {
    Up,
    /// Does not fetch; nobody noticed yet.
    Stalled,
    /// Cut off from the other brokers, which noticed; with what it knew then.
    CutOff(ClusterView),
    Down,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Node {
    pub(super) id: NodeId,
    pub(super) machine: Machine,
    /// Producer ids left of its block.
    pub(super) ids: Range<i64>,
}

impl Node {
    pub(super) fn new(id: NodeId) -> Self {
        Self { id, machine: Machine::Up, ids: 0..0 }
    }

    /// Whether it takes requests.
    pub(super) fn is_running(&self) -> bool {
        match self.machine {
            Machine::Up | Machine::Stalled | Machine::CutOff(_) => true,
            Machine::Down => false,
        }
    }

    /// Whether it goes on by what it knew when it was parted from the others.
    fn is_cut_off(&self) -> bool {
        match self.machine {
            Machine::CutOff(_) => true,
            Machine::Up | Machine::Stalled | Machine::Down => false,
        }
    }

    /// Whether the other brokers count on it.
    pub(super) fn is_member(&self) -> bool {
        match self.machine {
            Machine::Up | Machine::Stalled => true,
            Machine::CutOff(_) | Machine::Down => false,
        }
    }
}

/// Periodic work of all brokers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Clockwork {
    check_every: i64,
    next_check: i64,
    next_checkpoint: i64,
}

impl Clockwork {
    pub(super) fn new(now: i64) -> Self {
        let next_check = now.saturating_add(CHECK_MS);
        Self {
            check_every: CHECK_MS,
            next_check,
            next_checkpoint: now.saturating_add(CHECKPOINT_MS),
        }
    }
}

/// Brokers that fail and come back.
impl<C: Clone> Cluster<C> {
    pub(super) fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.iter().find(|node| node.id == id)
    }

    /// Whether a broker takes connections.
    #[must_use]
    pub fn is_running(&self, node: NodeId) -> bool {
        self.node(node).is_some_and(Node::is_running)
    }

    /// Whether a broker serves its clients, but is parted from the others.
    #[must_use]
    pub fn is_cut_off(&self, node: NodeId) -> bool {
        self.node(node).is_some_and(Node::is_cut_off)
    }

    /// A broker goes down; its connections are gone. Others take over what it led.
    pub fn stop(&mut self, node: NodeId, how: Stop) {
        self.set(node, Machine::Down);
        self.each(|partition| partition.stop(node, how));
        self.fill_offices();
    }

    /// A broker that is down comes back with what is on its disk, and a new block of producer ids.
    pub fn start(&mut self, node: NodeId, now: i64) {
        if self.is_running(node) {
            return;
        }
        self.set(node, Machine::Up);
        if let Some(node) = self.nodes.iter_mut().find(|n| n.id == node) {
            node.ids = 0..0;
        }
        self.each(|partition| partition.start(node, now));
    }

    /// A broker stops fetching, and nobody notices: what needs it waits.
    pub fn stall(&mut self, node: NodeId) {
        if self.is_running(node) {
            self.set(node, Machine::Stalled);
        }
    }

    /// A broker is cut off from the others, which take over what it led and drop it from their ISRs.
    /// It goes on serving its clients, believing what it believed (where it alone is in sync, it leads on).
    pub fn cut_off(&mut self, node: NodeId) {
        if !self.node(node).is_some_and(Node::is_member) {
            return;
        }
        let view = self.view();
        self.set(node, Machine::CutOff(view));
        let members: Vec<NodeId> =
            self.nodes.iter().filter(|n| n.is_member()).map(|n| n.id).collect();
        self.each(|partition| {
            if partition.leader() == Some(node) {
                let heir =
                    partition.isr().iter().find(|heir| *heir != node && members.contains(heir));
                if let Some(heir) = heir {
                    // An heir whose log directory failed refuses; then the old one leads on.
                    let _ = partition.elect(heir, Deposed::Unaware);
                }
            } else {
                // Refused where it was not in sync anyway.
                let _ = partition.leave_isr(node);
            }
        });
    }

    /// A broker that was stalled or cut off is back among the others and learns what happened.
    pub fn reconnect(&mut self, node: NodeId) {
        if !self.is_running(node) {
            return;
        }
        self.set(node, Machine::Up);
        self.each(|partition| {
            // Refused where it holds no replica.
            let _ = partition.learn(node);
        });
        self.fill_offices();
    }

    /// The log directory of a broker fails, until it is stopped and started.
    pub fn fail_log_dir(&mut self, node: NodeId) {
        self.each(|partition| partition.fail_log_dir(node));
        self.fill_offices();
    }

    /// Moves the leadership of one partition to an in-sync replica, without a restart. A leader that is
    /// cut off does not hear of it.
    ///
    /// # Errors
    /// As [`Partition::elect`]; [`Refused::NoReplica`] if there is no such partition.
    pub fn move_leader(&mut self, topic: &str, index: usize, to: NodeId) -> Result<(), Refused> {
        let leader = self.partition(topic, index).and_then(Partition::leader);
        let hears = leader.and_then(|leader| self.node(leader)).is_none_or(Node::is_member);
        let partition = self.partition_mut(topic, index).ok_or(Refused::NoReplica)?;
        partition.elect(to, if hears { Deposed::Informed } else { Deposed::Unaware })
    }

    /// Lets all followers that can fetch catch up and join their ISRs.
    pub fn replicate(&mut self, now: i64) {
        let up: Vec<NodeId> =
            self.nodes.iter().filter(|n| n.machine == Machine::Up).map(|n| n.id).collect();
        let reachable: Vec<NodeId> =
            self.nodes.iter().filter(|n| n.is_member()).map(|n| n.id).collect();
        self.each(|partition| {
            if partition.leader().is_none_or(|leader| !reachable.contains(&leader)) {
                return;
            }
            // Twice: the second fetch carries the watermark that the first one moved.
            for node in up.iter().chain(&up) {
                // Refused for the leader, and where there is no replica.
                let _ = partition.catch_up(*node, now);
            }
        });
    }

    /// How often brokers look for expired producers (`producer.id.expiration.check.interval.ms`, 10
    /// minutes); counts from `now`.
    pub fn check_producers_every(&mut self, interval_ms: i64, now: i64) {
        self.clockwork.check_every = interval_ms.max(1);
        self.clockwork.next_check = now.saturating_add(self.clockwork.check_every);
    }

    /// Does what brokers do by the clock: forget expired producers, checkpoint log starts.
    pub fn advance(&mut self, now: i64) {
        if now >= self.clockwork.next_check {
            self.clockwork.next_check = now.saturating_add(self.clockwork.check_every);
            self.each(|partition| partition.expire(now));
        }
        if now >= self.clockwork.next_checkpoint {
            self.clockwork.next_checkpoint = now.saturating_add(CHECKPOINT_MS);
            self.checkpoint();
        }
    }

    /// All running brokers checkpoint their log starts now.
    pub fn checkpoint(&mut self) {
        let nodes: Vec<NodeId> = self.nodes.iter().map(|node| node.id).collect();
        self.each(|partition| nodes.iter().for_each(|node| partition.checkpoint(*node)));
    }

    /// When [`Cluster::advance`] or [`Cluster::completed`] have something to do at the latest.
    #[must_use]
    pub fn next_timer(&self) -> i64 {
        let timers = [self.clockwork.next_check, self.clockwork.next_checkpoint];
        let requests = self.waiting.iter().map(|request| request.deadline);
        timers.into_iter().chain(requests).min().unwrap_or(i64::MAX)
    }

    fn set(&mut self, id: NodeId, machine: Machine) {
        if let Some(node) = self.nodes.iter_mut().find(|node| node.id == id) {
            node.machine = machine;
        }
    }

    fn each(&mut self, act: impl FnMut(&mut Partition<C>)) {
        self.topics.iter_mut().flat_map(|topic| &mut topic.partitions).for_each(act);
    }

    /// Every partition without a leader gets one from its ISR, if one there is up.
    fn fill_offices(&mut self) {
        self.each(|partition| {
            let heirs = partition.isr();
            if partition.leader().is_none() {
                // Refused for those that are down.
                let _ = heirs.iter().find(|heir| partition.elect(*heir, Deposed::Informed).is_ok());
            }
        });
    }
}
