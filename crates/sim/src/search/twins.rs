//! Two partitions of one producer: they share its ids, its connections and the brokers, and nothing
//! else (S9). What one of them lives through must be what it could have lived through alone.

use std::collections::{BTreeSet, VecDeque};

use crate::judge::Anomaly;

use super::explore::Shown;
use super::fingerprint::{Fingerprint, Shared, pair};
use super::machine::Machine;
use super::quiet;
use super::scope::{Fault, Scope};
use super::step::Step;
use super::world::{Taken, World};

/// What the search of two partitions found.
///
/// ```
/// use candor_sim::search::{Scope, Shipped, Twins, explore_twins};
/// let twins: Twins = explore_twins::<Shipped>(&Scope { records: &[], ..Scope::BASE }, 1_000);
/// assert!(twins.closed && twins.states > 0 && twins.found.is_none());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Twins {
    /// Canonical states of both together.
    pub states: usize,
    /// Steps that were taken.
    pub transitions: usize,
    /// Every state was reached.
    pub closed: bool,
    /// What convicts a lane, and how it came to it: which partition (0 or 1) took which step.
    pub found: Option<(Anomaly, Vec<(usize, Step)>)>,
    /// The states of each partition by itself.
    lives: [BTreeSet<Fingerprint>; 2],
}

/// Both partitions, and how they came to be so.
#[derive(Clone)]
struct Both<M> {
    worlds: [World<M>; 2],
    way: Vec<(usize, Step)>,
}

/// Explores two partitions that each go through `scope`; what goes wrong counts for both together.
pub fn explore_twins<M: Machine>(scope: &Scope, limit: usize) -> Twins {
    let mut twins = Twins {
        states: 0,
        transitions: 0,
        closed: false,
        found: None,
        lives: [BTreeSet::new(), BTreeSet::new()],
    };
    let grounds = Grounds { seen: Shared::new(), calm: [Shared::new(), Shared::new()] };
    let first = World::<M>::new(scope);
    let mut second = World::<M>::new(scope);
    let shared = second.share(scope, &first).map_err(|anomaly| (anomaly, Vec::new()));
    let start = Both { worlds: [first, second], way: Vec::new() };
    let mut next = VecDeque::new();
    if let Err(found) = shared.and_then(|()| grounds.reach(scope, start, &mut next, &mut twins)) {
        twins.found = Some(found);
        return twins;
    }
    while let Some(both) = next.pop_front() {
        if twins.states >= limit {
            return twins;
        }
        for side in [0, 1] {
            for step in both.worlds[side].steps(scope) {
                let moved = both.after(scope, side, step);
                let reached = moved.and_then(|moved| match moved {
                    None => Ok(()),
                    Some(moved) => {
                        twins.transitions += 1;
                        grounds.reach(scope, moved, &mut next, &mut twins)
                    }
                });
                if let Err(found) = reached {
                    twins.found = Some(found);
                    return twins;
                }
            }
        }
    }
    twins.closed = true;
    twins
}

/// Whether each partition lived through exactly what one of them lives through alone.
pub fn independent<M: Machine>(scope: &Scope, twins: &Twins) -> bool {
    let alone = alone::<M>(scope);
    twins.lives.iter().all(|lives| *lives == alone)
}

/// The states of a partition that is alone.
fn alone<M: Machine>(scope: &Scope) -> BTreeSet<Fingerprint> {
    let mut seen = BTreeSet::new();
    let start = World::<M>::new(scope);
    seen.insert(start.fingerprint());
    let mut next = vec![start];
    while let Some(world) = next.pop() {
        for step in world.steps(scope) {
            let mut moved = world.clone();
            let taken = moved.take(scope, step);
            if matches!(taken, Ok(Taken::Yes)) && seen.insert(moved.fingerprint()) {
                next.push(moved);
            }
        }
    }
    seen
}

struct Grounds {
    seen: Shared,
    calm: [Shared; 2],
}

type Found = (Anomaly, Vec<(usize, Step)>);

impl Grounds {
    fn reach<M: Machine>(
        &self,
        scope: &Scope,
        both: Both<M>,
        next: &mut VecDeque<Both<M>>,
        twins: &mut Twins,
    ) -> Result<(), Found> {
        let prints = both.worlds.each_ref().map(World::fingerprint);
        if !self.seen.insert(pair(prints)) {
            return Ok(());
        }
        twins.states += 1;
        for side in [0, 1] {
            if twins.lives[side].insert(prints[side]) {
                let mut world = both.worlds[side].clone();
                let shown = std::sync::Mutex::new(Shown::default());
                quiet::ends_well(scope, &mut world, &self.calm[side], &shown)
                    .map_err(|anomaly| (anomaly, both.way.clone()))?;
            }
        }
        next.push_back(both);
        Ok(())
    }
}

impl<M: Machine> Both<M> {
    /// Both after a step of one. Connections and brokers are the same for both.
    fn after(&self, scope: &Scope, side: usize, step: Step) -> Result<Option<Self>, Found> {
        let mut both = self.clone();
        both.way.push((side, step));
        let convict = |way: &[(usize, Step)]| {
            let way = way.to_vec();
            move |anomaly| (anomaly, way)
        };
        let [first, second] = &mut both.worlds;
        let (one, other) = if side == 0 { (first, second) } else { (second, first) };
        if one.take(scope, step).map_err(convict(&both.way))? == Taken::No {
            return Ok(None);
        }
        if is_shared(step) {
            // It may have nothing to lose there.
            let _ = other.take(scope, step).map_err(convict(&both.way))?;
        }
        other.share(scope, one).map_err(convict(&both.way))?;
        Ok(Some(both))
    }
}

/// Whether a step happens to both partitions.
fn is_shared(step: Step) -> bool {
    match step {
        Step::Fault(Fault::LoseWhole | Fault::LoseCut | Fault::LoseGone, _)
        | Step::Restart { .. } => true,
        Step::Fault(..)
        | Step::Say(..)
        | Step::Append
        | Step::Offer
        | Step::Deliver(_)
        | Step::Answer(_)
        | Step::Replicate
        | Step::Learn
        | Step::Follow
        | Step::Tick
        | Step::Expire
        | Step::Cancel(_)
        | Step::Revoke(_)
        | Step::Abandon
        | Step::Close => false,
    }
}
