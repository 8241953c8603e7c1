//! One replica: its log, and what its broker believes about leadership.

use super::log::Log;
use super::{NodeId, NodeSet};

/// How a broker goes down.
///
/// ```
/// use candor_sim::broker::{NodeId, Partition, Profile, Stop};
/// let mut partition = Partition::<u8>::new(Profile::V4_4, &[NodeId(1)]);
/// partition.stop(NodeId(1), Stop::Crash);
/// assert_eq!(partition.leader(), None);
/// partition.start(NodeId(1), 0);
/// assert_eq!(partition.leader(), Some(NodeId(1)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stop {
    /// SIGTERM: log start and producer snapshots are written.
    Clean,
    /// kill -9: the log is all there, the rest as of the last checkpoint.
    Crash,
}

/// What a running broker believes to be for this partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Role {
    Leader(Reign),
    /// `synced`: has fetched from the leader of this epoch, so that its end counts there.
    Follower {
        epoch: i32,
        synced: bool,
    },
}

/// A leadership as its holder sees it; after a silent deposition it goes on seeing it so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Reign {
    /// Leader epoch.
    pub(super) epoch: i32,
    /// Leader epoch at which it took over: later ones it kept its place through.
    pub(super) since: i32,
    /// The ISR it knows.
    pub(super) isr: NodeSet,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Life {
    Up(Role),
    /// Running, but the log directory of this partition failed.
    DirFailed,
    Down(Stop),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Replica<C> {
    pub(super) node: NodeId,
    pub(super) life: Life,
    /// High watermark as this replica knows it.
    pub(super) watermark: i64,
    pub(super) log: Log<C>,
}

impl<C: Clone> Replica<C> {
    pub(super) fn new(node: NodeId, epoch: i32) -> Self {
        let life = Life::Up(Role::Follower { epoch, synced: false });
        Self { node, life, watermark: 0, log: Log::new() }
    }

    pub(super) fn reign(&self) -> Option<&Reign> {
        match &self.life {
            Life::Up(Role::Leader(reign)) => Some(reign),
            Life::Up(Role::Follower { .. }) | Life::DirFailed | Life::Down(_) => None,
        }
    }

    pub(super) fn is_up(&self) -> bool {
        matches!(self.life, Life::Up(_))
    }

    /// Whether its end offset counts for a leader of `epoch`.
    pub(super) fn follows(&self, epoch: i32) -> bool {
        self.life == Life::Up(Role::Follower { epoch, synced: true })
    }
}
