//! The producer ids of a producer, shared by its lanes.

use alloc::vec::Vec;

use crate::ids::{Identity, ProducerId};

/// Gives each lane the ids in the order in which they came, and none of them twice (rule S9).
/// Many lanes may use one id: brokers keep state per partition.
///
/// ```
/// use candor_core::{Pool, ProducerId};
/// let mut pool = Pool::default();
/// assert!(pool.next(None).is_none()); // ask the cluster: InitProducerId
/// pool.add(ProducerId::new(4000).unwrap());
/// let (index, identity) = pool.next(None).unwrap();
/// assert_eq!(identity.id.get(), 4000);
/// assert!(pool.next(Some(index)).is_none()); // this lane needs a fresh one
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pool {
    ids: Vec<ProducerId>,
}

/// Which of the pool's ids a lane got last.
///
/// ```
/// # use candor_core::{Pool, ProducerId};
/// # let mut pool = Pool::default();
/// # pool.add(ProducerId::new(1).unwrap());
/// # pool.add(ProducerId::new(2).unwrap());
/// let (first, _) = pool.next(None).unwrap();
/// let (second, _) = pool.next(Some(first)).unwrap();
/// assert!(first < second);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PoolIndex(usize);

impl Pool {
    /// Takes in an id that InitProducerId gave. One that is known already is ignored. Whether it is
    /// new.
    pub fn add(&mut self, id: ProducerId) -> bool {
        let new = !self.ids.contains(&id);
        if new {
            self.ids.push(id);
        }
        new
    }

    /// The first id that came after the one a lane got last; `None`: ask the cluster for one.
    pub fn next(&self, last: Option<PoolIndex>) -> Option<(PoolIndex, Identity)> {
        let index = last.map_or(0, |PoolIndex(last)| last + 1);
        let id = self.ids.get(index)?;
        Some((PoolIndex(index), Identity::fresh(*id)))
    }
}
