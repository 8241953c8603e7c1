//! What happens to replicas: fetching, elections, restarts, forgetting.

use super::replica::{Life, Reign, Replica, Role};
use super::{NodeId, NodeSet, Partition, Stop};

/// Why a fault cannot happen now. Nothing was changed.
///
/// ```
/// use candor_sim::broker::{Deposed, NodeId, Partition, Profile, Refused};
/// let mut partition = Partition::<u8>::new(Profile::V4_4, &[NodeId(1)]);
/// assert_eq!(partition.elect(NodeId(9), Deposed::Informed), Err(Refused::NoReplica));
/// assert_eq!(Refused::NoReplica.to_string(), "that broker holds no replica of the partition");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refused {
    /// The broker holds no replica.
    #[error("that broker holds no replica of the partition")]
    NoReplica,
    /// The broker holds a replica already.
    #[error("that broker holds a replica of the partition already")]
    HasReplica,
    /// The broker is down, or its log directory failed: start it first.
    #[error("that broker is down or its log directory failed: start it first")]
    NotUp,
    /// The broker is not in the ISR: let it fetch and join, or elect it uncleanly.
    #[error("that broker is not in the ISR: let it fetch and join first")]
    NotInSync,
    /// There is no leader that is up: elect one.
    #[error("the partition has no leader that is up: elect one first")]
    NoLeader,
    /// The broker believes to lead, so that it does not fetch: let it learn first.
    #[error("that broker believes to be leader: let it learn first")]
    Leads,
    /// The offset is past the high watermark or before 0.
    #[error("that offset is not below the high watermark")]
    OutOfRange,
}

/// Whether a deposed leader hears of it.
///
/// ```
/// use candor_sim::broker::{Deposed, NodeId, Partition, Profile};
/// let (one, two) = (NodeId(1), NodeId(2));
/// let mut partition = Partition::<u8>::new(Profile::V4_4, &[one, two]);
/// partition.elect(two, Deposed::Unaware)?;
/// assert!(partition.believes_to_lead(one) && partition.believes_to_lead(two));
/// assert!(!partition.isr().contains(one));
/// partition.learn(one)?;
/// assert!(!partition.believes_to_lead(one));
/// # Ok::<(), candor_sim::broker::Refused>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Deposed {
    /// It follows at once, and stays in the ISR.
    Informed,
    /// It was cut off or asleep: fenced, taken from the ISR, and believing to lead until it
    /// [learns](Partition::learn) better.
    Unaware,
}

/// Replication and the ISR.
impl<C: Clone> Partition<C> {
    /// One fetch of a follower: copies all that is missing from the leader, after truncating what the
    /// leader does not have if this is the first fetch from it. Returns whether anything changed.
    ///
    /// The leader counts what was copied at once; the follower learns of the new high watermark with
    /// its *next* fetch, as in Kafka.
    ///
    /// # Errors
    /// [`Refused::NoReplica`], [`Refused::NotUp`], [`Refused::Leads`], [`Refused::NoLeader`].
    pub fn fetch(&mut self, node: NodeId, now: i64) -> Result<bool, Refused> {
        let epoch = self.leader_epoch;
        let expiration = self.config.producer_expiration_ms;
        let (follower, leader) = self.pair(node)?;
        let before = (follower.log.end(), follower.watermark, follower.log.start(), follower.life);
        if !follower.follows(epoch) {
            let common = common_end(follower, leader);
            if common < follower.log.end() {
                follower.log.truncate(common, now, expiration);
                follower.watermark = follower.watermark.min(common);
            }
            follower.life = Life::Up(Role::Follower { epoch, synced: true });
        }
        let start = leader.log.start();
        if follower.log.end() < start {
            follower.log.restart_at(start);
        }
        for entry in leader.log.entries() {
            if entry.last_offset() >= follower.log.end() {
                follower.log.append(entry.clone());
            }
        }
        follower.watermark = follower.watermark.max(leader.watermark.min(follower.log.end()));
        follower.log.delete_before(start.min(follower.watermark));
        let after = (follower.log.end(), follower.watermark, follower.log.start(), follower.life);
        let leader = leader.node;
        Ok(self.advance(leader) || before != after)
    }

    /// Adds a follower to the ISR.
    ///
    /// # Errors
    /// [`Refused::NotInSync`] until it has fetched from this leader (a fetch brings all that the leader had
    /// when it took over, which may be more than its lagging high watermark) and while it lacks
    /// anything committed; otherwise as [`Partition::fetch`].
    pub fn join_isr(&mut self, node: NodeId) -> Result<(), Refused> {
        let epoch = self.leader_epoch;
        let (follower, leader) = self.pair(node)?;
        if !follower.follows(epoch) || follower.log.end() < leader.watermark {
            return Err(Refused::NotInSync);
        }
        let leader = leader.node;
        self.isr.insert(node);
        self.tell_isr();
        self.advance(leader);
        Ok(())
    }

    /// The leader drops a follower that lags.
    ///
    /// # Errors
    /// As [`Partition::fetch`]; [`Refused::NotInSync`] if it is not in the ISR.
    pub fn leave_isr(&mut self, node: NodeId) -> Result<(), Refused> {
        self.replica(node).ok_or(Refused::NoReplica)?;
        let leader = self.current_leader()?.node;
        if leader == node {
            return Err(Refused::Leads);
        }
        if !self.isr.contains(node) {
            return Err(Refused::NotInSync);
        }
        self.isr.remove(node);
        self.tell_isr();
        self.advance(leader);
        Ok(())
    }

    /// One fetch of a follower, which joins the ISR if it has caught up by that.
    ///
    /// # Errors
    /// As [`Partition::fetch`] and [`Partition::join_isr`].
    pub fn catch_up(&mut self, node: NodeId, now: i64) -> Result<(), Refused> {
        self.fetch(node, now)?;
        self.join_isr(node)
    }

    /// Lets every follower that can catch up, and hear of the new high watermark.
    pub fn settle(&mut self, now: i64) {
        let nodes: Vec<NodeId> = self.nodes().collect();
        // Twice: the second fetch carries the watermark that the first one moved.
        for node in nodes.iter().chain(&nodes) {
            // Refused for the leader, and for those that are not up.
            let _ = self.catch_up(*node, now);
        }
    }

    fn current_leader(&self) -> Result<&Replica<C>, Refused> {
        let leader = self.leader.and_then(|leader| self.replica(leader));
        leader.filter(|leader| leader.reign().is_some()).ok_or(Refused::NoLeader)
    }

    /// A follower that may fetch, and the leader it fetches from.
    fn pair(&mut self, node: NodeId) -> Result<(&mut Replica<C>, &Replica<C>), Refused> {
        let leader = self.current_leader().map(|leader| leader.node);
        match self.replica(node).ok_or(Refused::NoReplica)?.life {
            Life::Up(Role::Follower { .. }) => {}
            Life::Up(Role::Leader(_)) => return Err(Refused::Leads),
            Life::DirFailed | Life::Down(_) => return Err(Refused::NotUp),
        }
        let leader = leader?;
        let (mut follower, mut source) = (None, None);
        for replica in &mut self.replicas {
            if replica.node == node {
                follower = Some(replica);
            } else if replica.node == leader {
                source = Some(&*replica);
            }
        }
        Ok((follower.ok_or(Refused::NoReplica)?, source.ok_or(Refused::NoLeader)?))
    }

    /// Tells the current leader the controller's ISR.
    fn tell_isr(&mut self) {
        let isr = self.isr;
        let Some(leader) = self.leader.and_then(|leader| self.replica_mut(leader)) else { return };
        if let Life::Up(Role::Leader(reign)) = &mut leader.life {
            reign.isr = isr;
        }
    }

    /// Moves a leader's high watermark to what its whole ISR has. Returns whether it moved.
    pub(super) fn advance(&mut self, node: NodeId) -> bool {
        let Some((leader, reign)) = self.replica(node).and_then(|r| Some((r, *r.reign()?))) else {
            return false;
        };
        if self.profile.holds_watermark() && reign.isr.len() < self.config.min_insync_replicas {
            return false;
        }
        // Nothing is known of a member that does not fetch from this reign: the watermark stays.
        let end_of = |member: NodeId| match self.replica(member) {
            Some(replica) if member == node || replica.follows(reign.epoch) => replica.log.end(),
            Some(_) | None => leader.watermark,
        };
        let Some(reached) =
            reign.isr.iter().map(end_of).min().filter(|end| *end > leader.watermark)
        else {
            return false;
        };
        let Some(leader) = self.replica_mut(node) else { return false };
        leader.watermark = reached;
        true
    }
}

/// Where the follower's log stops being a prefix of the leader's.
fn common_end<C: Clone>(follower: &Replica<C>, leader: &Replica<C>) -> i64 {
    let theirs = leader.log.entries();
    let agreed = |base: i64, epoch: i32| {
        let at = theirs.binary_search_by_key(&base, |entry| entry.base_offset);
        at.is_ok_and(|at| theirs[at].leader_epoch == epoch)
    };
    let oldest = theirs.first().map_or_else(|| leader.log.start(), |entry| entry.base_offset);
    let mine = follower.log.entries().iter().filter(|entry| entry.base_offset >= oldest);
    let parted =
        mine.map(|e| (e.base_offset, e.leader_epoch)).find(|(base, epoch)| !agreed(*base, *epoch));
    parted.map_or_else(|| follower.log.end(), |(base, _)| base)
}

/// Elections, replicas that come and go.
impl<C: Clone> Partition<C> {
    /// Elects an in-sync replica. It keeps its own log and memory; followers learn of it at once.
    ///
    /// # Errors
    /// [`Refused::NoReplica`], [`Refused::NotUp`], [`Refused::NotInSync`].
    pub fn elect(&mut self, node: NodeId, old: Deposed) -> Result<(), Refused> {
        let candidate = self.replica(node).ok_or(Refused::NoReplica)?;
        if !candidate.is_up() {
            return Err(Refused::NotUp);
        }
        if !self.isr.contains(node) {
            return Err(Refused::NotInSync);
        }
        self.enthrone(node, old);
        Ok(())
    }

    /// Elects any replica that is up, also one that lacks what was acknowledged (A2 is broken).
    /// The ISR is that replica alone.
    ///
    /// # Errors
    /// [`Refused::NoReplica`], [`Refused::NotUp`].
    pub fn elect_unclean(&mut self, node: NodeId, old: Deposed) -> Result<(), Refused> {
        let candidate = self.replica(node).ok_or(Refused::NoReplica)?;
        if !candidate.is_up() {
            return Err(Refused::NotUp);
        }
        self.isr = NodeSet::of(node);
        self.enthrone(node, old);
        Ok(())
    }

    fn enthrone(&mut self, node: NodeId, old: Deposed) {
        let deposed = self.leader.replace(node).filter(|leader| *leader != node);
        self.leader_epoch += 1;
        if let (Some(deposed), Deposed::Unaware) = (deposed, old) {
            self.isr.remove(deposed);
        }
        let informed = |replica: &Replica<C>| {
            replica.node == node
                || match replica.life {
                    // A leader that does not know of its fall learns of it from `learn` alone.
                    Life::Up(Role::Leader(_)) => {
                        deposed == Some(replica.node) && old == Deposed::Informed
                    }
                    Life::Up(Role::Follower { .. }) => true,
                    Life::DirFailed | Life::Down(_) => false,
                }
        };
        let hear: Vec<NodeId> =
            self.replicas.iter().filter(|r| informed(r)).map(|r| r.node).collect();
        hear.into_iter().for_each(|node| self.inform(node));
        self.advance(node);
    }

    /// A running broker hears who leads, and acts on it.
    fn inform(&mut self, node: NodeId) {
        let (epoch, isr, leads) = (self.leader_epoch, self.isr, self.leader == Some(node));
        let Some(replica) = self.replica_mut(node) else { return };
        let Life::Up(role) = &mut replica.life else { return };
        *role = match (*role, leads) {
            (Role::Leader(reign), true) => Role::Leader(Reign { epoch, isr, ..reign }),
            (Role::Follower { .. }, true) => Role::Leader(Reign { epoch, since: epoch, isr }),
            (Role::Follower { epoch: known, synced }, false) if known == epoch => {
                Role::Follower { epoch, synced }
            }
            (Role::Leader(_) | Role::Follower { .. }, false) => {
                Role::Follower { epoch, synced: false }
            }
        };
    }

    /// A broker that was cut off or asleep hears who leads. Its pending answers become 6.
    ///
    /// # Errors
    /// [`Refused::NoReplica`], [`Refused::NotUp`].
    pub fn learn(&mut self, node: NodeId) -> Result<(), Refused> {
        if !self.replica(node).ok_or(Refused::NoReplica)?.is_up() {
            return Err(Refused::NotUp);
        }
        self.inform(node);
        self.advance(node);
        Ok(())
    }

    /// Adds an empty replica on a broker; it has to fetch, and to join the ISR.
    ///
    /// # Errors
    /// [`Refused::HasReplica`].
    pub fn add_replica(&mut self, node: NodeId) -> Result<(), Refused> {
        match self.replicas.binary_search_by_key(&node, |replica| replica.node) {
            Ok(_) => Err(Refused::HasReplica),
            Err(at) => {
                self.replicas.insert(at, Replica::new(node, self.leader_epoch));
                Ok(())
            }
        }
    }

    /// Takes a replica away, with its log.
    ///
    /// # Errors
    /// [`Refused::NoReplica`]; [`Refused::Leads`] for the leader: elect another one first.
    pub fn remove_replica(&mut self, node: NodeId) -> Result<(), Refused> {
        self.replica(node).ok_or(Refused::NoReplica)?;
        if self.leader == Some(node) {
            return Err(Refused::Leads);
        }
        self.replicas.retain(|replica| replica.node != node);
        self.isr.remove(node);
        self.tell_isr();
        if let Some(leader) = self.leader {
            self.advance(leader);
        }
        Ok(())
    }
}

/// Restarts and forgetting.
impl<C: Clone> Partition<C> {
    /// A broker goes down. It leaves the ISR unless it is the last one there; if it led, nobody leads
    /// until somebody is elected. What waited for its answer is [gone](super::Progress::Gone).
    pub fn stop(&mut self, node: NodeId, how: Stop) {
        let Some(replica) = self.replica_mut(node) else { return };
        match (replica.life, how) {
            (Life::Down(_), _) => return,
            (Life::Up(_), Stop::Clean) => replica.log.close(),
            (Life::Up(_), Stop::Crash) | (Life::DirFailed, _) => {}
        }
        replica.life = Life::Down(how);
        self.abdicate(node);
    }

    /// The log directory of a broker fails: 56 to everything until the broker was stopped and started.
    pub fn fail_log_dir(&mut self, node: NodeId) {
        let Some(replica) = self.replica_mut(node) else { return };
        if replica.is_up() {
            replica.life = Life::DirFailed;
            self.abdicate(node);
        }
    }

    /// The controller takes a broker that is not up out of the ISR and of office.
    fn abdicate(&mut self, node: NodeId) {
        if self.leader == Some(node) {
            self.leader = None;
        }
        if self.isr.len() > 1 {
            self.isr.remove(node);
        }
        self.tell_isr();
        if let Some(leader) = self.leader {
            self.advance(leader);
        }
    }

    /// A broker that was down comes back: its memory is reloaded (the newest batch of each producer
    /// at most). It follows, or leads again if nobody else may.
    pub fn start(&mut self, node: NodeId, now: i64) {
        let expiration = self.config.producer_expiration_ms;
        let epoch = self.leader_epoch;
        let Some(replica) = self.replica_mut(node) else { return };
        let Life::Down(how) = replica.life else { return };
        match how {
            Stop::Clean => {}
            Stop::Crash => replica.log.recover(now, expiration),
        }
        replica.log.reload(replica.log.end(), now, expiration);
        replica.life = Life::Up(Role::Follower { epoch, synced: false });
        if self.leader.is_none() && self.isr.contains(node) {
            self.enthrone(node, Deposed::Informed);
        }
    }

    /// The periodic check of every running broker: producers whose newest batch is stamped too long ago
    /// are forgotten (S20).
    pub fn expire(&mut self, now: i64) {
        let expiration = self.config.producer_expiration_ms;
        let running = self.replicas.iter_mut().filter(|replica| replica.is_up());
        running.for_each(|replica| replica.log.producers_mut().expire(now, expiration));
    }

    /// A replica forgets one producer, for no reason.
    pub fn forget(&mut self, node: NodeId, pid: i64) {
        if let Some(replica) = self.replica_mut(node) {
            replica.log.producers_mut().forget(pid);
        }
    }

    /// DeleteRecords at the leader: everything before `offset` becomes unreadable. Followers hear of it
    /// when they fetch.
    ///
    /// # Errors
    /// [`Refused::NoLeader`]; [`Refused::OutOfRange`] past the high watermark.
    pub fn delete_records(&mut self, offset: i64) -> Result<(), Refused> {
        let leader = self.current_leader()?;
        if !(0..=leader.watermark).contains(&offset) {
            return Err(Refused::OutOfRange);
        }
        let node = leader.node;
        if let Some(replica) = self.replica_mut(node) {
            replica.log.delete_before(offset);
        }
        Ok(())
    }

    /// A running broker checkpoints its log starts (every 60 s): a crash no longer undoes
    /// DeleteRecords, and segments wholly below the log start are deleted.
    pub fn checkpoint(&mut self, node: NodeId) {
        if let Some(replica) = self.replica_mut(node).filter(|replica| replica.is_up()) {
            replica.log.checkpoint();
        }
    }

    /// A running broker closes its active segment and writes a producer snapshot.
    pub fn roll(&mut self, node: NodeId) {
        if let Some(replica) = self.replica_mut(node).filter(|replica| replica.is_up()) {
            replica.log.roll();
        }
    }
}
