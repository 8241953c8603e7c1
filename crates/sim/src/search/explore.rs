//! Breadth first through all states of a scope, so that the first counterexample is a shortest one.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use crate::judge::Anomaly;

use super::fingerprint::Shared;
use super::machine::Machine;
use super::quiet;
use super::scope::Scope;
use super::step::Step;
use super::wide::{self, Course};
use super::world::{Taken, World};

/// What a search found.
///
/// ```
/// use candor_core::{Lane, testing::Counted};
/// use candor_sim::search::{Scope, explore};
/// let report = explore::<Lane<Counted>>(&Scope::BASE, 1_000_000);
/// assert!(report.closed && report.counterexample.is_none());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Of which scope.
    pub scope: &'static str,
    /// Canonical states that were reached.
    pub states: usize,
    /// Steps that were taken.
    pub transitions: usize,
    /// Steps on the longest shortest way to a state.
    pub depth: usize,
    /// Every state was reached; otherwise the limit was, or who watched ended it.
    pub closed: bool,
    /// In wide searches: the states by how many faults, restarts and deadlines led to them.
    pub layers: Vec<usize>,
    /// How runs end: for each record its verdict (`D`elivered, `N`ot delivered, `U`nknown), its
    /// resolution if there is one (`-` for `Never`), and `*` if it stands in the log.
    pub ends: BTreeSet<String>,
    /// The slots that were contested (C), and with how much.
    pub contests: BTreeSet<Contest>,
    /// A schedule that convicts the lane.
    pub counterexample: Option<Counterexample>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scope, states, transitions, depth, closed, layers, ends, .. } = self;
        let how = if *closed { "closed" } else { "not closed" };
        write!(f, "{scope}: {states} states, {transitions} transitions, depth {depth}, ")?;
        write!(f, "{} ends, {how}", ends.len())?;
        if !layers.is_empty() {
            write!(f, "; by what was spent: {layers:?}")?;
        }
        if !self.contests.is_empty() {
            write!(f, "; {} cuts", self.contests.len())?;
        }
        match &self.counterexample {
            Some(counterexample) => write!(f, "\n{counterexample}"),
            None => Ok(()),
        }
    }
}

/// A replacement that was offered (C2).
///
/// ```
/// use candor_sim::search::Contest;
/// let three_for_two = Contest { contested: vec![1, 1], size: 3 };
/// assert_eq!(three_for_two.to_string(), "1+1 by 3");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Contest {
    /// How many records the batches have that were offered from its first sequence on, in order.
    pub contested: Vec<u32>,
    /// How many it has itself.
    pub size: u32,
}

impl fmt::Display for Contest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let contested: Vec<String> = self.contested.iter().map(u32::to_string).collect();
        write!(f, "{} by {}", contested.join("+"), self.size)
    }
}

/// A schedule that convicts a lane, and what the judge says.
///
/// ```
/// use candor_sim::judge::{Anomaly, Class};
/// use candor_sim::search::Counterexample;
/// let c = Counterexample {
///     scope: "base", anomaly: Anomaly::new(Class::Lost), choices: vec![0, 2], story: Vec::new(),
/// };
/// assert_eq!(c.replay(), "candor sim search --scope base --replay 0.2");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counterexample {
    /// In which scope.
    pub scope: &'static str,
    /// What it is convicted of.
    pub anomaly: Anomaly,
    /// Which of the possible steps was taken, from the start on.
    pub choices: Vec<u16>,
    /// What happened, one line each.
    pub story: Vec<String>,
}

/// Lines of a story that are shown.
const MOST_LINES: usize = 120;

impl Counterexample {
    fn new<M: Machine>(scope: &Scope, (anomaly, choices): (Anomaly, Vec<u16>)) -> Self {
        Self { scope: scope.name, anomaly, story: tell::<M>(scope, &choices), choices }
    }

    /// The command that shows it again.
    pub fn replay(&self) -> String {
        let choices: Vec<String> = self.choices.iter().map(u16::to_string).collect();
        format!("candor sim search --scope {} --replay {}", self.scope, choices.join("."))
    }
}

impl fmt::Display for Counterexample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.anomaly)?;
        let (shown, left) = (MOST_LINES.min(self.story.len()), self.story.len());
        for line in &self.story[..shown] {
            writeln!(f, "  {line}")?;
        }
        if left > shown {
            writeln!(f, "  and {} lines more", left - shown)?;
        }
        write!(f, "  replay: {}", self.replay())
    }
}

/// How a state was reached first.
#[derive(Clone, Copy, Debug)]
struct Origin {
    parent: u32,
    choice: u16,
}

/// An anomaly, and the choices that lead to it.
pub(super) type Found = Option<(Anomaly, Vec<u16>)>;

/// What runs showed: see [`Report`].
#[derive(Debug, Default)]
pub(super) struct Shown {
    pub(super) ends: BTreeSet<String>,
    pub(super) contests: BTreeSet<Contest>,
}

impl Shown {
    pub(super) fn into_inner(shown: Mutex<Self>) -> Self {
        shown.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn note_end(shown: &Mutex<Self>, end: String) {
        shown.lock().unwrap_or_else(PoisonError::into_inner).ends.insert(end);
    }

    /// The contest that a step began, if it did.
    pub(super) fn note_contest(shown: &Mutex<Self>, contest: Option<Contest>) {
        if let Some(contest) = contest {
            shown.lock().unwrap_or_else(PoisonError::into_inner).contests.insert(contest);
        }
    }
}

struct Search<'s, M> {
    scope: &'s Scope,
    seen: Shared,
    calm: Shared,
    shown: Mutex<Shown>,
    origins: Vec<Origin>,
    transitions: usize,
    next: Vec<(u32, World<M>)>,
}

/// Explores a scope breadth first, up to so many states: the first counterexample is a shortest
/// one. All states that wait to be expanded are in memory.
pub fn explore<M: Machine>(scope: &Scope, limit: usize) -> Report {
    let mut search = Search::<M> {
        scope,
        seen: Shared::new(),
        calm: Shared::new(),
        shown: Mutex::default(),
        origins: Vec::new(),
        transitions: 0,
        next: Vec::new(),
    };
    let (depth, found) = search.run(limit);
    let Shown { ends, contests } = Shown::into_inner(search.shown);
    Report {
        scope: scope.name,
        states: search.origins.len(),
        transitions: search.transitions,
        depth,
        closed: search.next.is_empty() && found.is_none(),
        layers: Vec::new(),
        ends,
        contests,
        counterexample: found.map(|found| Counterexample::new::<M>(scope, found)),
    }
}

/// Explores a wide scope on so many threads, up to so many states: depth first, in rounds that each
/// may spend more faults than the one before, leaving out states that are contained in others.
/// States, transitions and whether something is found do not depend on the number of threads. The
/// course of a search, a new one for each, tells how far it has come.
pub fn explore_wide<M: Machine>(
    threads: usize,
    scope: &Scope,
    limit: usize,
    course: &Course,
) -> Report {
    let wide = wide::explore::<M>(threads, scope, limit, course);
    Report {
        scope: scope.name,
        states: wide.layers.iter().sum(),
        transitions: wide.transitions,
        depth: wide.deepest,
        closed: wide.closed,
        layers: wide.layers,
        ends: wide.shown.ends,
        contests: wide.shown.contests,
        counterexample: wide.found.map(|found| Counterexample::new::<M>(scope, found)),
    }
}

impl<M: Machine> Search<'_, M> {
    fn run(&mut self, limit: usize) -> (usize, Found) {
        let start = World::new(self.scope);
        if let Err(anomaly) = self.reach(Origin { parent: 0, choice: 0 }, start) {
            return (0, Some((anomaly, Vec::new())));
        }
        let mut depth = 0;
        while !self.next.is_empty() && self.origins.len() < limit {
            for (id, world) in std::mem::take(&mut self.next) {
                if let Err((anomaly, choice)) = self.expand(id, &world) {
                    let mut choices = self.way_to(id);
                    choices.push(choice);
                    return (depth + 1, Some((anomaly, choices)));
                }
            }
            depth += usize::from(!self.next.is_empty());
        }
        (depth, None)
    }

    fn expand(&mut self, id: u32, world: &World<M>) -> Result<(), (Anomaly, u16)> {
        for (choice, step) in (0_u16..).zip(world.steps(self.scope)) {
            let mut next = world.clone();
            match next.take(self.scope, step) {
                Ok(Taken::No) => {}
                Ok(Taken::Yes) => {
                    self.transitions += 1;
                    Shown::note_contest(&self.shown, next.contest.take());
                    let reached = self.reach(Origin { parent: id, choice }, next);
                    reached.map_err(|anomaly| (anomaly, choice))?;
                }
                Err(anomaly) => return Err((anomaly, choice)),
            }
        }
        Ok(())
    }

    fn reach(&mut self, origin: Origin, world: World<M>) -> Result<(), Anomaly> {
        if self.seen.insert(world.fingerprint()) {
            quiet::ends_well(self.scope, &mut world.clone(), &self.calm, &self.shown)?;
            let id = u32::try_from(self.origins.len()).unwrap_or(u32::MAX);
            self.origins.push(origin);
            self.next.push((id, world));
        }
        Ok(())
    }

    fn way_to(&self, mut id: u32) -> Vec<u16> {
        let mut choices = Vec::new();
        while id != 0 {
            let origin = self.origins[id as usize];
            choices.push(origin.choice);
            id = origin.parent;
        }
        choices.reverse();
        choices
    }
}

/// Takes the steps again and tells what happens, the quiet phase at the end included. The last line
/// is `=> fine`, or what was found, or that a schedule names a step that is not there.
pub fn tell<M: Machine>(scope: &Scope, choices: &[u16]) -> Vec<String> {
    let mut world = World::<M>::new(scope);
    world.notes = Some(Vec::new());
    for choice in choices {
        let steps = world.steps(scope);
        let Some(step) = steps.get(usize::from(*choice)).copied() else {
            let offered = steps.len();
            world.note(|| {
                format!("=> there is no step {choice} here: {offered} are counted from 0")
            });
            return world.notes.unwrap_or_default();
        };
        world.note(|| step.to_string());
        if let Err(anomaly) = world.take(scope, step) {
            world.note(|| format!("=> {anomaly}"));
            return world.notes.unwrap_or_default();
        }
    }
    let end = quiet::ends_well(scope, &mut world, &Shared::new(), &Mutex::default());
    world.note(|| end.map_or_else(|anomaly| format!("=> {anomaly}"), |()| "=> fine".to_owned()));
    world.notes.unwrap_or_default()
}

/// The step that a choice means, for those who replay by hand.
pub fn steps_of<M: Machine>(scope: &Scope, choices: &[u16]) -> Vec<Step> {
    let mut world = World::<M>::new(scope);
    let mut steps = Vec::new();
    for choice in choices {
        let Some(step) = world.steps(scope).get(usize::from(*choice)).copied() else { break };
        steps.push(step);
        if world.take(scope, step).is_err() {
            break;
        }
    }
    steps
}
