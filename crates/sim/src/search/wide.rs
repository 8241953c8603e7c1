//! Wide scopes: depth first and on several threads, so that memory holds fingerprints and one way
//! per thread; in rounds, so that a state is not looked at that another one contains.
//!
//! A state with more left of the budget (faults, restarts, deadlines) can do whatever the same state
//! with less of it can do, and then some: what may happen need not. So a state is left out once it
//! was reached with at least as much left of everything. Round `n` takes only ways that spend at most
//! `n`: whoever could contain a state is known before the state itself is reached, and which states
//! are left out does not depend on the order.
//!
//! What is *still* (see [`World::is_still`]) has a coarser form, that of the leader's memory; whether
//! a state with more left contains it is asked by its full form.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::judge::Anomaly;

use super::explore::{Found, Shown};
use super::fingerprint::Shared;
use super::machine::Machine;
use super::quiet;
use super::scope::Scope;
use super::step::Step;
use super::table::{Table, Visit};
use super::world::{Budgets, Taken, World};

/// What the threads found together.
pub(super) struct Wide {
    /// States by what was spent to reach them.
    pub(super) layers: Vec<usize>,
    pub(super) transitions: usize,
    pub(super) deepest: usize,
    pub(super) closed: bool,
    pub(super) found: Found,
    pub(super) shown: Shown,
}

/// Some steps of a state, and the choices that led to it.
struct Job<M> {
    way: Vec<u16>,
    level: Level<M>,
}

/// A state whose steps are being taken.
#[derive(Clone)]
struct Level<M> {
    world: World<M>,
    steps: Vec<Step>,
    next: u16,
    /// It was never seen before this round.
    new: bool,
    /// Steps that cost something are taken for the first time.
    pays: bool,
}

struct Jobs<M> {
    waiting: Vec<Job<M>>,
    busy: usize,
}

struct Round<'r, M> {
    search: &'r Search<'r>,
    /// Ways may spend so much.
    most: u32,
    jobs: Mutex<Jobs<M>>,
    wake: Condvar,
    hungry: AtomicUsize,
}

/// How far a wide search has come, for those who watch it from another thread, and may end it.
///
/// ```
/// use candor_core::{Lane, testing::Counted};
/// use candor_sim::search::{Course, Scope, explore_wide};
/// let course = Course::default();
/// course.end();
/// let report = explore_wide::<Lane<Counted>>(1, &Scope::BASE, 1_000_000, &course);
/// assert!(!report.closed && report.states == course.states());
/// ```
#[derive(Debug, Default)]
pub struct Course {
    states: AtomicUsize,
    transitions: AtomicUsize,
    round: AtomicUsize,
    end: AtomicBool,
}

impl Course {
    /// Canonical states that were reached.
    pub fn states(&self) -> usize {
        self.states.load(Ordering::Relaxed)
    }

    /// Steps that were taken.
    pub fn transitions(&self) -> usize {
        self.transitions.load(Ordering::Relaxed)
    }

    /// How many faults, restarts and deadlines together the ways of this round may spend.
    pub fn round(&self) -> usize {
        self.round.load(Ordering::Relaxed)
    }

    /// The search stops where it is, and has not closed.
    pub fn end(&self) {
        self.end.store(true, Ordering::Relaxed);
    }

    fn is_ended(&self) -> bool {
        self.end.load(Ordering::Relaxed)
    }
}

struct Search<'s> {
    scope: &'s Scope,
    budgets: Budgets,
    table: Table,
    calm: Shared,
    shown: Mutex<Shown>,
    limit: usize,
    layers: Vec<AtomicUsize>,
    course: &'s Course,
    deepest: AtomicUsize,
    found: Mutex<Found>,
}

/// Explores a scope on so many threads, up to `limit` states.
pub(super) fn explore<M: Machine>(
    threads: usize,
    scope: &Scope,
    limit: usize,
    course: &Course,
) -> Wide {
    let budgets = Budgets::of(scope);
    let rounds = budgets.most();
    let search = Search {
        scope,
        budgets,
        table: Table::new(),
        calm: Shared::new(),
        shown: Mutex::default(),
        limit,
        layers: (0..=rounds).map(|_| AtomicUsize::new(0)).collect(),
        course,
        deepest: AtomicUsize::new(0),
        found: Mutex::new(None),
    };
    for most in 0..=rounds {
        if !course.is_ended() {
            course.round.store(most as usize, Ordering::Relaxed);
            search.table.forget_walks();
            search.round::<M>(threads, most);
        }
    }
    Wide {
        layers: search.layers.into_iter().map(AtomicUsize::into_inner).collect(),
        transitions: course.transitions(),
        deepest: search.deepest.into_inner(),
        closed: !course.is_ended(),
        found: search.found.into_inner().unwrap_or_else(PoisonError::into_inner),
        shown: Shown::into_inner(search.shown),
    }
}

impl Search<'_> {
    fn round<M: Machine>(&self, threads: usize, most: u32) {
        let round = Round {
            search: self,
            most,
            jobs: Mutex::new(Jobs { waiting: Vec::new(), busy: 0 }),
            wake: Condvar::new(),
            hungry: AtomicUsize::new(0),
        };
        match round.reach(World::<M>::new(self.scope)) {
            Ok(Some(level)) => round.jobs().waiting.push(Job { way: Vec::new(), level }),
            Ok(None) => {}
            Err(anomaly) => self.report(anomaly, Vec::new()),
        }
        thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(|| round.work());
            }
            round.work();
        });
    }

    /// Whether this state is new, or to be walked through again; its quiet phase must end well.
    fn visit<M: Machine>(&self, world: &World<M>) -> Result<Visit, Anomaly> {
        let budget = self.budgets.bit(world.budget);
        let above = self.budgets.above(world.budget);
        let form = world.form(&self.budgets);
        if form.full.is_some_and(|full| self.table.holds(full, above)) {
            return Ok(Visit::Contained);
        }
        let visit = self.table.visit(form.print, budget, above);
        if visit == Visit::New {
            quiet::ends_well(self.scope, &mut world.clone(), &self.calm, &self.shown)?;
            self.layers[self.budgets.spent(world.budget) as usize].fetch_add(1, Ordering::Relaxed);
            if self.course.states.fetch_add(1, Ordering::Relaxed) + 1 >= self.limit {
                self.course.end();
            }
        }
        Ok(visit)
    }

    fn report(&self, anomaly: Anomaly, way: Vec<u16>) {
        self.course.end();
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        // The shortest one of those that the threads find before they stop.
        if found.as_ref().is_none_or(|(_, other)| way.len() < other.len()) {
            *found = Some((anomaly, way));
        }
    }
}

impl<M: Machine> Round<'_, M> {
    fn jobs(&self) -> MutexGuard<'_, Jobs<M>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stopped(&self) -> bool {
        self.search.course.is_ended()
    }

    fn work(&self) {
        while let Some(job) = self.take_job() {
            self.dive(job);
            let mut jobs = self.jobs();
            jobs.busy -= 1;
            drop(jobs);
            self.wake.notify_all();
        }
    }

    fn take_job(&self) -> Option<Job<M>> {
        let mut jobs = self.jobs();
        loop {
            if self.stopped() {
                return None;
            }
            if let Some(job) = jobs.waiting.pop() {
                jobs.busy += 1;
                return Some(job);
            }
            if jobs.busy == 0 {
                return None;
            }
            self.hungry.fetch_add(1, Ordering::Relaxed);
            jobs = self.wake.wait(jobs).unwrap_or_else(PoisonError::into_inner);
            self.hungry.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Hands the rest of the uppermost state that has one to a thread that has nothing to do.
    fn share(&self, way: &[u16], levels: &mut [Level<M>]) {
        if self.hungry.load(Ordering::Relaxed) == 0 {
            return;
        }
        let rest = |level: &Level<M>| usize::from(level.next) < level.steps.len();
        let Some(at) = levels.iter().position(rest) else { return };
        let level = levels[at].clone();
        levels[at].next = u16::MAX;
        // The way holds one choice less than there are levels.
        let before = way.len() + 1 - levels.len() + at;
        self.jobs().waiting.push(Job { way: way[..before].to_vec(), level });
        self.wake.notify_one();
    }

    fn dive(&self, Job { mut way, level }: Job<M>) {
        let mut levels = vec![level];
        while let Some(level) = levels.last_mut() {
            let Some(&step) = level.steps.get(usize::from(level.next)) else {
                levels.pop();
                way.pop();
                continue;
            };
            let choice = level.next;
            level.next += 1;
            let next = match self.take(level, step) {
                Ok(next) => next,
                Err(anomaly) => {
                    way.push(choice);
                    return self.search.report(anomaly, way);
                }
            };
            if self.stopped() {
                return;
            }
            if let Some(next) = next {
                way.push(choice);
                self.search.deepest.fetch_max(way.len(), Ordering::Relaxed);
                levels.push(next);
                self.share(&way, &mut levels);
            }
        }
    }

    /// The state behind a step, if it is possible and to be walked through.
    fn take(&self, level: &Level<M>, step: Step) -> Result<Option<Level<M>>, Anomaly> {
        let Search { scope, budgets, .. } = self.search;
        let costs = budgets.costs(step);
        if costs && budgets.spent(level.world.budget) >= self.most {
            return Ok(None);
        }
        let mut next = level.world.clone();
        if next.take(scope, step)? == Taken::No {
            return Ok(None);
        }
        Shown::note_contest(&self.search.shown, next.contest.take());
        if if costs { level.pays } else { level.new } {
            self.search.course.transitions.fetch_add(1, Ordering::Relaxed);
        }
        self.reach(next)
    }

    fn reach(&self, world: World<M>) -> Result<Option<Level<M>>, Anomaly> {
        let new = match self.search.visit(&world)? {
            Visit::New => true,
            Visit::Again => false,
            Visit::Contained => return Ok(None),
        };
        let steps = world.steps(self.search.scope);
        let pays = self.search.budgets.spent(world.budget) + 1 == self.most;
        Ok(Some(Level { world, steps, next: 0, new, pays }))
    }
}
