//! Which steps are possible in a state.

use super::super::flight::Stage;
use super::super::machine::Machine;
use super::super::scope::{Fault, Scope};
use super::super::step::Step;
use super::World;

/// The steps that may be possible here, in an order that never changes.
impl<M: Machine> World<M> {
    pub(in crate::search) fn steps(&self, scope: &Scope) -> Vec<Step> {
        let mut steps = Vec::with_capacity(32);
        if self.sent < scope.records.len() && !self.closed {
            steps.push(Step::Append);
        }
        if self.view.route.is_some() && self.machine.offerable(self.now) {
            steps.push(Step::Offer);
        }
        self.flight_steps(scope, &mut steps);
        if !self.is_replicated() {
            steps.push(Step::Replicate);
        }
        if self.astray().next().is_some() {
            steps.push(Step::Learn);
        }
        if self.may_follow() {
            steps.push(Step::Follow);
        }
        if self.may_tick(scope.ticks) {
            steps.push(Step::Tick);
        }
        if scope.expires_ms.is_some() {
            steps.push(Step::Expire);
        }
        steps.extend(scope.cancels.iter().map(|record| Step::Cancel(*record)));
        steps.extend(scope.revokes.iter().map(|record| Step::Revoke(*record)));
        steps.extend((scope.abandons && !self.abandoned).then_some(Step::Abandon));
        if scope.closes.is_some() {
            steps.push(Step::Close);
        }
        self.fault_steps(scope, &mut steps);
        steps
    }

    fn flight_steps(&self, scope: &Scope, steps: &mut Vec<Step>) {
        for (index, flight) in (0_u8..).zip(&self.flights) {
            let mut before = self.flights[..usize::from(index)]
                .iter()
                .filter(|other| other.route == flight.route);
            match flight.stage {
                Stage::Sent if before.all(|other| matches!(other.stage, Stage::Answered(_))) => {
                    steps.push(Step::Deliver(index));
                    if self.budget.faults > 0 {
                        steps.extend(scope.codes.iter().map(|say| Step::Say(index, *say)));
                    }
                }
                Stage::Answered(_) if flight.alive && before.next().is_none() => {
                    steps.push(Step::Answer(index));
                }
                Stage::Sent | Stage::Waiting(_) | Stage::Answered(_) => {}
            }
        }
    }

    fn fault_steps(&self, scope: &Scope, steps: &mut Vec<Step>) {
        let nodes = || (1_u8..).take(scope.replicas);
        if self.budget.faults > 0 {
            for fault in scope.kinds {
                match fault {
                    Fault::LoseWhole | Fault::LoseCut | Fault::LoseGone => {
                        let linked = |node: &u8| self.links[usize::from(node - 1)].is_some();
                        let lost = nodes().filter(linked).map(|node| Step::Fault(*fault, node));
                        steps.extend(lost);
                    }
                    Fault::Elect
                    | Fault::Depose
                    | Fault::Reign
                    | Fault::Reroute
                    | Fault::Timeout
                    | Fault::Purge
                    | Fault::Recreate
                    | Fault::Shrink
                    | Fault::Refuse
                    | Fault::Lift
                    | Fault::Shed
                    | Fault::Forget
                    | Fault::Lag
                    | Fault::Unclean
                    | Fault::Neighbour => steps.push(Step::Fault(*fault, 0)),
                }
            }
        }
        if self.budget.restarts > 0 {
            for node in nodes() {
                steps.push(Step::Restart { node, clean: true });
                steps.push(Step::Restart { node, clean: false });
            }
        }
    }
}
