//! The rest of a wide search, depth first and on several threads: memory holds fingerprints and
//! one way per thread instead of all states that wait.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::judge::Anomaly;

use super::explore::{Found, Ground};
use super::machine::Machine;
use super::step::Step;
use super::world::{Taken, World};

/// What the threads found together.
pub(super) struct Depths {
    pub(super) states: usize,
    pub(super) transitions: usize,
    pub(super) deepest: usize,
    pub(super) closed: bool,
    pub(super) found: Found,
}

/// A state, and the choices that led to it.
type Root<M> = (Vec<u16>, World<M>);

struct Dive<'d, 's, M> {
    ground: &'d Ground<'s>,
    roots: Mutex<Vec<Root<M>>>,
    left: usize,
    states: AtomicUsize,
    transitions: AtomicUsize,
    deepest: AtomicUsize,
    stop: AtomicBool,
    found: Mutex<Found>,
}

/// Explores what can be reached from these states and was not seen yet, up to `left` states.
pub(super) fn deepen<M: Machine>(
    threads: usize,
    ground: &Ground<'_>,
    roots: Vec<Root<M>>,
    left: usize,
) -> Depths {
    let dive = Dive {
        ground,
        roots: Mutex::new(roots),
        left,
        states: AtomicUsize::new(0),
        transitions: AtomicUsize::new(0),
        deepest: AtomicUsize::new(0),
        stop: AtomicBool::new(false),
        found: Mutex::new(None),
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|| dive.work());
        }
        dive.work();
    });
    let found = dive.found.into_inner().unwrap_or_else(PoisonError::into_inner);
    Depths {
        states: dive.states.into_inner(),
        transitions: dive.transitions.into_inner(),
        deepest: dive.deepest.into_inner(),
        closed: !dive.stop.into_inner(),
        found,
    }
}

/// A state whose steps are being taken.
struct Level<M> {
    world: World<M>,
    steps: Vec<Step>,
    next: u16,
}

impl<M: Machine> Dive<'_, '_, M> {
    fn work(&self) {
        loop {
            let root = self.roots.lock().unwrap_or_else(PoisonError::into_inner).pop();
            match root {
                Some((way, world)) if !self.stop.load(Ordering::Relaxed) => self.dive(way, world),
                Some(_) | None => return,
            }
        }
    }

    fn level(&self, world: World<M>) -> Level<M> {
        let steps = world.steps(self.ground.scope);
        Level { world, steps, next: 0 }
    }

    fn dive(&self, mut way: Vec<u16>, world: World<M>) {
        let mut levels = vec![self.level(world)];
        while let Some(level) = levels.last_mut() {
            let Some(&step) = level.steps.get(usize::from(level.next)) else {
                levels.pop();
                way.pop();
                continue;
            };
            let choice = level.next;
            level.next += 1;
            let next = match self.take(&level.world, step) {
                Ok(next) => next,
                Err(anomaly) => {
                    way.push(choice);
                    return self.report(anomaly, way);
                }
            };
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            if let Some(next) = next {
                way.push(choice);
                self.deepest.fetch_max(way.len(), Ordering::Relaxed);
                levels.push(self.level(next));
            }
        }
    }

    /// The state behind a step, if it is possible and new.
    fn take(&self, world: &World<M>, step: Step) -> Result<Option<World<M>>, Anomaly> {
        let mut next = world.clone();
        if next.take(self.ground.scope, step)? == Taken::No {
            return Ok(None);
        }
        self.transitions.fetch_add(1, Ordering::Relaxed);
        if !self.ground.is_new(&next)? {
            return Ok(None);
        }
        if self.states.fetch_add(1, Ordering::Relaxed) + 1 >= self.left {
            self.stop.store(true, Ordering::Relaxed);
        }
        Ok(Some(next))
    }

    fn report(&self, anomaly: Anomaly, way: Vec<u16>) {
        self.stop.store(true, Ordering::Relaxed);
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        // The shortest one of those that the threads find before they stop.
        if found.as_ref().is_none_or(|(_, other)| way.len() < other.len()) {
            *found = Some((anomaly, way));
        }
    }
}
