//! What happens between the lane and its brokers.

use candor_core::{Event, HandedOver, LeaderEpoch, RouteId};

use crate::broker::{ACKS_ALL, Answer, Batch, Call, NodeId, Outcome, Scripted, code};
use crate::judge::Reply;

use super::super::flight::{Content, Flight, Stage};
use super::super::machine::Machine;
use super::super::scope::{Fault, Say, Scope};
use super::{Taken, View, World, translate};

impl<M: Machine> World<M> {
    /// A frame arrives. A connection's requests are judged one at a time.
    pub(super) fn deliver(&mut self, scope: &Scope, index: u8, say: Option<Say>) -> Taken {
        let index = usize::from(index);
        let Some(flight) = self.flights.get(index) else { return Taken::No };
        let behind = |other: &Flight| {
            other.route == flight.route && !matches!(other.stage, Stage::Answered(_))
        };
        if flight.stage != Stage::Sent || self.flights[..index].iter().any(behind) {
            return Taken::No;
        }
        if flight.stale {
            self.flights[index].stage = Stage::Answered(Answer::error(code::UNKNOWN_TOPIC_ID));
            return Taken::Yes;
        }
        let (node, batch) = (flight.node, flight.batch.clone());
        match say {
            None => {}
            Some(Say::Before(code)) => self.partition.script(Scripted::Before(code)),
            Some(Say::After(code)) => {
                self.partition.script(Scripted::After { code, show_offset: true });
            }
            Some(Say::AfterBlind(code)) => {
                self.partition.script(Scripted::After { code, show_offset: false });
            }
            Some(Say::Below) if self.is_below(node, &batch) => {}
            Some(Say::Below) => return Taken::No,
        }
        let says_46 = scope.says_46 || say == Some(Say::Below);
        let below = says_46 && self.is_below(node, &batch);
        let call = Call { node, now: self.now.as_millis(), acks: ACKS_ALL, version: 12 };
        let stage = match self.partition.produce(call, &batch) {
            Outcome::Answer(answer) if below && answer.code == 45 => {
                Stage::Answered(Answer { code: 46, ..answer })
            }
            Outcome::Answer(answer) => Stage::Answered(answer),
            Outcome::Wait(wait) => Stage::Waiting(wait),
        };
        self.note(|| format!("    the broker: {stage:?}"));
        self.flights[index].stage = stage;
        Taken::Yes
    }

    /// Whether the batch's sequence lies below what the broker expects of its epoch.
    pub(super) fn is_below(&self, node: NodeId, batch: &Batch<Content>) -> bool {
        self.partition.known(node, batch.pid).is_some_and(|known| {
            let ahead = known.newest().last().wrapping_sub(batch.last()) & i32::MAX;
            known.epoch() == batch.epoch && ahead < i32::MAX / 2
        })
    }

    pub(super) fn answer(&mut self, index: u8) -> Taken {
        let index = usize::from(index);
        let Some(flight) = self.flights.get(index) else { return Taken::No };
        let first = !self.flights[..index].iter().any(|other| other.route == flight.route);
        let Stage::Answered(answer) = &flight.stage else { return Taken::No };
        if !flight.alive || !first {
            return Taken::No;
        }
        let (attempt, answer) = (flight.attempt, answer.clone());
        self.flights.remove(index);
        self.note(|| format!("    code {} at {}", answer.code, answer.base_offset));
        let reply = Reply {
            code: answer.code,
            base_offset: answer.base_offset,
            log_start: answer.log_start_offset,
        };
        self.watch.answered(self.now.as_micros(), attempt.0, Some(reply));
        self.tell(Event::Answered { attempt, answer: translate::core_answer(answer) });
        Taken::Yes
    }

    pub(super) fn may_follow(&self) -> bool {
        let now = self.partition.leader().map(|node| (node, self.partition.leader_epoch()));
        let news = now != Some((self.view.node, self.view.epoch)) || self.view.route.is_none();
        now.is_some() && (news || self.view.asked)
    }

    /// The lane hears where the leader is, or that it is where it was.
    pub(super) fn follow(&mut self) -> Taken {
        let Some(node) = self.partition.leader() else { return Taken::No };
        let epoch = self.partition.leader_epoch();
        let same = self.view.node == node && self.view.epoch == epoch;
        if same && self.view.route.is_some() {
            if !self.view.asked {
                return Taken::No;
            }
            self.view.asked = false;
            self.note(|| format!("    confirmed: broker {} at leader epoch {epoch}", node.0));
            self.tell(Event::LeaderConfirmed { epoch: LeaderEpoch(epoch) });
            return Taken::Yes;
        }
        let route = self.link(node);
        self.view = View { node, epoch, route: Some(route), asked: false };
        self.note(|| format!("    broker {} at leader epoch {epoch}, {route:?}", node.0));
        self.watch.routed(Some(route.0), epoch);
        self.tell(Event::Leader { route: Some(route), epoch: LeaderEpoch(epoch) });
        Taken::Yes
    }

    pub(super) fn link(&mut self, node: NodeId) -> RouteId {
        let link = &mut self.links[usize::from(node.0 - 1)];
        *link.get_or_insert_with(|| {
            self.routes += 1;
            RouteId(self.routes)
        })
    }

    pub(super) fn reroute(&mut self) -> Taken {
        if self.view.route.is_none() {
            return Taken::No;
        }
        self.links[usize::from(self.view.node.0 - 1)] = None;
        let route = self.link(self.view.node);
        self.view.route = Some(route);
        self.watch.routed(Some(route.0), self.view.epoch);
        self.tell(Event::Leader { route: Some(route), epoch: LeaderEpoch(self.view.epoch) });
        Taken::Yes
    }

    /// A connection is over: the lane hears of each attempt on it, and that it has no route.
    pub(super) fn lose(&mut self, node: NodeId, how: Fault) -> Taken {
        let Some(route) = self.links[usize::from(node.0 - 1)].take() else { return Taken::No };
        let mut kept = Vec::new();
        for mut flight in std::mem::take(&mut self.flights) {
            if flight.route != route || !flight.alive {
                kept.push(flight);
                continue;
            }
            let arrived = flight.stage != Stage::Sent;
            let partly = how == Fault::LoseCut && !arrived;
            let handed = if partly { HandedOver::Partly } else { HandedOver::PerhapsWhole };
            self.watch.ended(flight.attempt.0, partly);
            self.tell(Event::Ended { attempt: flight.attempt, handed });
            flight.alive = false;
            let lives_on = match flight.stage {
                Stage::Sent => how == Fault::LoseWhole,
                Stage::Waiting(_) => true,
                Stage::Answered(_) => false,
            };
            if lives_on {
                kept.push(flight);
            }
        }
        self.flights = kept;
        if self.view.route == Some(route) {
            self.view.route = None;
            self.watch.routed(None, self.view.epoch);
            self.tell(Event::Leader { route: None, epoch: LeaderEpoch(self.view.epoch) });
        }
        Taken::Yes
    }
}
