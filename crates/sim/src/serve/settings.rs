//! What a served cluster is made of.

use super::fault::Fault;
use crate::broker::Profile;

/// What a cluster is made of.
///
/// ```
/// use candor_sim::serve::{Net, Settings};
/// let three = Settings { brokers: 3, replicas: 3, ..Settings::default() };
/// assert_eq!(Net::new(three).nodes(), [1, 2, 3]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The version that all brokers imitate. Default: 4.4.
    pub profile: Profile,
    /// How many brokers; their ids begin at 1. Default: 1.
    pub brokers: u8,
    /// How many replicas a partition has, at most one per broker. Default: 1.
    pub replicas: usize,
    /// Topics that exist from the start, with their numbers of partitions. Default: none.
    pub topics: Vec<(String, usize)>,
    /// How many partitions a topic gets that is created because somebody asked for it; `None`
    /// creates none. Default: 1.
    pub auto_create: Option<usize>,
    /// When the cluster begins, in microseconds since the Unix epoch. Default: 0.
    pub begin: u64,
    /// Who lets followers fetch. Default: the cluster, at once.
    pub replication: Replication,
    /// Faults to come. Default: none.
    pub faults: Vec<Fault>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            profile: Profile::V4_4,
            brokers: 1,
            replicas: 1,
            topics: Vec::new(),
            auto_create: Some(1),
            begin: 0,
            replication: Replication::AtOnce,
            faults: Vec::new(),
        }
    }
}

/// Who lets followers fetch.
///
/// ```
/// use candor_sim::serve::{Replication, Settings};
/// assert_eq!(Settings::default().replication, Replication::AtOnce);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replication {
    /// The cluster, after each append: nothing waits.
    AtOnce,
    /// Whoever drives the cluster, through its partitions.
    ByHand,
}
