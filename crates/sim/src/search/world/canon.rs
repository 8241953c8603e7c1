//! The canonical form of a state: what differs here differs in what can follow.
//!
//! - Connections, brokers and leader epochs are called by small names: nobody looks at anything but
//!   whether they are the same, and which leader epoch is newer. Brokers may change places.
//! - On connections that are over, frames wait in their order and no answer is heard: which of them
//!   broke first does not matter.
//! - Where nothing can befall the brokers any more, their logs were shown and steer nothing; what
//!   is left is the leader's memory.

use std::hash::Hash;

use candor_core::{LeaderEpoch, Names as LaneNames, RouteId};

use crate::broker::{Names, NodeId};

use super::super::fingerprint::{Fingerprint, Mixer};
use super::super::flight::{Flight, Stage};
use super::super::machine::Machine;
use super::{Budgets, FOLLOWER, LEADER, World};

/// The canonical forms of a state.
#[derive(Clone, Copy, Debug)]
pub(in crate::search) struct Form {
    pub(in crate::search) print: Fingerprint,
    /// If `print` is the coarser form: the one that states with more left have.
    pub(in crate::search) full: Option<Fingerprint>,
}

/// Names of the connections that the lane may still hear of.
struct Routes(Vec<RouteId>);

impl Routes {
    fn name(&self, route: RouteId) -> u64 {
        self.0.iter().position(|known| *known == route).map_or(0, |at| at as u64 + 1)
    }
}

impl<M: Machine> World<M> {
    /// The canonical state.
    pub(in crate::search) fn fingerprint(&self) -> Fingerprint {
        let mut mixer = Mixer::new();
        self.essence(self.is_still(), &mut mixer);
        (self.budget, self.wishes()).hash(&mut mixer);
        mixer.fingerprint()
    }

    /// The canonical state, whatever is left of its budget if budgets are compared.
    pub(in crate::search) fn form(&self, budgets: &Budgets) -> Form {
        if !budgets.are_few() {
            return Form { print: self.fingerprint(), full: None };
        }
        let print = |still| {
            let mut mixer = Mixer::new();
            self.essence(still, &mut mixer);
            self.wishes().hash(&mut mixer);
            mixer.fingerprint()
        };
        let still = self.is_still();
        Form { print: print(still), full: still.then(|| print(false)) }
    }

    /// What the caller may no longer wish for.
    fn wishes(&self) -> (u32, u32, bool) {
        (self.cancelled, self.revoked, self.abandoned)
    }

    /// The canonical state in a quiet phase: without what only says what may still go wrong. `part`:
    /// in which part of it.
    pub(in crate::search) fn calm_fingerprint(&self, part: bool) -> Fingerprint {
        let mut mixer = Mixer::new();
        (true, part).hash(&mut mixer);
        self.essence(self.is_still(), &mut mixer);
        mixer.fingerprint()
    }

    /// Everything but the budget. `still`: in the coarser form.
    fn essence(&self, still: bool, into: &mut Mixer) {
        if self.plain {
            return self.plain_essence(into);
        }
        let alive = || self.flights.iter().filter(|flight| flight.alive);
        let told = alive().map(|flight| flight.leader_epoch).chain([self.view.epoch]);
        let names = Names::of(&self.partition, told);
        let routes = self.routes_in_use(&names);
        let lane = LaneNames {
            route: &|route| routes.name(route),
            epoch: &|LeaderEpoch(epoch)| u64::from(names.epoch(epoch)),
        };
        self.machine.fingerprint(self.now, lane, into);
        still.hash(into);
        if still {
            self.partition.still_fingerprint(into);
        } else {
            self.partition.fingerprint(&names, into);
            self.shown.hash(into);
        }
        for flight in alive() {
            routes.name(flight.route).hash(into);
            flight.fingerprint(&names, into);
        }
        self.dead_fingerprint(&names, into);
        self.view_fingerprint(&names, &routes, into);
        (self.sent, self.closed, self.refusing, self.excused, self.alarmed).hash(into);
        if !self.ageless || self.sent < self.records {
            self.now.hash(into);
        }
        if self.limits.epochs < u8::MAX {
            (self.identity, self.identities).hash(into);
        }
        self.watch.fingerprint(self.now.as_micros(), into);
    }

    /// Everything as it is.
    fn plain_essence(&self, into: &mut Mixer) {
        let names = Names::plain();
        self.machine.fingerprint(self.now, LaneNames::PLAIN, into);
        self.partition.fingerprint(&names, into);
        for flight in &self.flights {
            (flight.route, flight.alive).hash(into);
            flight.fingerprint(&names, into);
        }
        (self.now, self.view, self.links, self.shown).hash(into);
        (self.sent, self.closed, self.refusing, self.excused, self.alarmed).hash(into);
        (self.identity, self.identities).hash(into);
        self.watch.fingerprint(self.now.as_micros(), into);
    }

    fn routes_in_use(&self, names: &Names) -> Routes {
        let mut routes: Vec<RouteId> = self.view.route.into_iter().collect();
        let alive = self.flights.iter().filter(|flight| flight.alive).map(|flight| flight.route);
        let mut links = self.links;
        if names.node(LEADER) > names.node(FOLLOWER) {
            links.reverse();
        }
        for route in alive.chain(links.into_iter().flatten()) {
            if !routes.contains(&route) {
                routes.push(route);
            }
        }
        Routes(routes)
    }

    fn view_fingerprint(&self, names: &Names, routes: &Routes, into: &mut Mixer) {
        (names.node(self.view.node), names.epoch(self.view.epoch), self.view.asked).hash(into);
        self.view.route.map(|route| routes.name(route)).hash(into);
        let mut links = [(0, 0); 2];
        for (at, link) in self.links.iter().enumerate() {
            let node = names.node(NodeId(at as u8 + 1));
            links[at] = (node, link.map_or(0, |route| routes.name(route)));
        }
        links.sort_unstable();
        links.hash(into);
    }

    /// Frames on connections that are over: in order on each, and in no order among them.
    fn dead_fingerprint(&self, names: &Names, into: &mut Mixer) {
        let mut dead: Vec<(RouteId, Mixer)> = Vec::new();
        for flight in self.flights.iter().filter(|flight| !flight.alive) {
            let at = dead.iter().position(|(route, _)| *route == flight.route);
            let at = at.unwrap_or_else(|| {
                dead.push((flight.route, Mixer::new()));
                dead.len() - 1
            });
            flight.fingerprint(names, &mut dead[at].1);
        }
        let mut prints: Vec<Fingerprint> = dead.iter().map(|(_, it)| it.fingerprint()).collect();
        prints.sort_unstable();
        prints.hash(into);
    }

    /// Whether nothing can befall the brokers any more, and every follower is in step.
    pub(super) fn is_still(&self) -> bool {
        self.is_safe() && self.astray().next().is_none() && self.is_replicated()
    }

    /// Whether nothing can befall the brokers any more.
    pub(super) fn is_safe(&self) -> bool {
        self.budget.faults == 0 && self.budget.restarts == 0
    }

    /// Takes away frames that can change nothing any more: nobody hears their answers, and no
    /// broker will ever append them (S19).
    pub(super) fn bury_passed(&mut self) {
        let still = self.is_still();
        let keeps = |flight: &Flight| {
            if flight.alive {
                return true;
            }
            let behind = |other: &Flight| other.route == flight.route && other != flight;
            if matches!(flight.stage, Stage::Waiting(_)) {
                return self.flights.iter().any(behind);
            }
            let batch = &flight.batch;
            let passed = self.partition.is_passed(flight.node, batch.pid, batch.epoch, batch.first);
            let elsewhere = still && self.partition.leader() != Some(flight.node);
            !(flight.stale || elsewhere || self.remembers && passed)
        };
        let kept: Vec<bool> = self.flights.iter().map(keeps).collect();
        let mut kept = kept.iter();
        self.flights.retain(|_| kept.next().copied().unwrap_or(true));
    }
}
