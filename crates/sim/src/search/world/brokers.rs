//! What happens to brokers, and what the judge sees of their logs.

use candor_core::Event;

use crate::broker::{Deposed, NodeId, Partition, Progress, Stop};
use crate::judge::Said;

use super::super::flight::{Flight, Stage, records};
use super::super::machine::Machine;
use super::super::scope::{Fault, Scope};
use super::{FOLLOWER, LEADER, Taken, World};

impl<M: Machine> World<M> {
    pub(super) fn replicate(&mut self) -> Taken {
        if self.is_replicated() {
            return Taken::No;
        }
        self.partition.settle(self.now.as_millis());
        Taken::Yes
    }

    /// Once nothing can befall the brokers any more, how late a follower fetches is only how late
    /// an answer comes: one of the two suffices.
    pub(super) fn hasten(&mut self, scope: &Scope) {
        let safe = self.budget.faults == 0 && self.budget.restarts == 0;
        if scope.replicas > 1 && (scope.eager || safe) {
            self.partition.settle(self.now.as_millis());
        }
    }

    pub(super) fn learn(&mut self) -> Taken {
        let astray: Vec<NodeId> = self.astray().collect();
        if astray.is_empty() {
            return Taken::No;
        }
        for node in astray {
            // It is up and holds a replica, or it would not believe to lead.
            let _ = self.partition.learn(node);
        }
        Taken::Yes
    }

    /// Brokers that believe to lead and do not.
    pub(super) fn astray(&self) -> impl Iterator<Item = NodeId> + '_ {
        let leader = self.partition.leader();
        let lost =
            move |node: &NodeId| Some(*node) != leader && self.partition.believes_to_lead(*node);
        self.partition.nodes().filter(lost)
    }

    /// Whether a fetch would change nothing.
    pub(super) fn is_replicated(&self) -> bool {
        let Some(leader) = self.partition.leader() else { return true };
        let partition = &self.partition;
        let end = partition.end_offset(leader);
        let start = partition.start_offset(leader).unwrap_or_default();
        let readable =
            |node| partition.entries(node).iter().filter(move |entry| entry.last_offset() >= start);
        partition.nodes().all(|node| {
            partition.isr().contains(node)
                && partition.high_watermark(node) == end
                && partition.start_offset(node) == partition.start_offset(leader)
                && readable(node).eq(readable(leader))
        })
    }

    /// A fault that is paid for if it happens.
    pub(super) fn paid(&mut self, fault: impl FnOnce(&mut Self) -> Taken) -> Taken {
        if self.budget.faults == 0 {
            return Taken::No;
        }
        let taken = fault(self);
        if taken == Taken::Yes {
            self.budget.faults -= 1;
        }
        taken
    }

    pub(super) fn fault(&mut self, scope: &Scope, fault: Fault, node: NodeId) -> Taken {
        match fault {
            Fault::LoseWhole | Fault::LoseCut | Fault::LoseGone => self.lose(node, fault),
            Fault::Elect => self.elect(Deposed::Informed),
            Fault::Depose => self.elect(Deposed::Unaware),
            Fault::Reign => match self.partition.leader() {
                Some(leader) if self.partition.elect(leader, Deposed::Informed).is_ok() => {
                    Taken::Yes
                }
                Some(_) | None => Taken::No,
            },
            Fault::Reroute => self.reroute(),
            Fault::Timeout => self.time_out(),
            Fault::Purge => self.purge(),
            Fault::Recreate => self.recreate(scope),
            Fault::Shrink => {
                let config = self.partition.config_mut();
                let before = std::mem::replace(&mut config.max_message_bytes, 1);
                if before == 1 { Taken::No } else { Taken::Yes }
            }
            Fault::Refuse => self.refuse(Some(scope.refusal)),
            Fault::Lift => self.refuse(None),
            Fault::Neighbour => {
                self.machine.neighbour_bumps();
                Taken::Yes
            }
            Fault::Shed => {
                self.watch.disturbed();
                self.tell(Event::Shed);
                Taken::Yes
            }
            Fault::Forget => self.forget(),
            Fault::Lag => match self.partition.leave_isr(self.other()) {
                Ok(()) => Taken::Yes,
                Err(_) => Taken::No,
            },
            Fault::Unclean => self.elect_unclean(),
        }
    }

    pub(in crate::search) fn refuse(&mut self, code: Option<i16>) -> Taken {
        if self.refusing == code.is_some() {
            return Taken::No;
        }
        self.refusing = code.is_some();
        self.partition.refuse_with(code);
        Taken::Yes
    }

    /// The broker that does not lead.
    pub(super) fn other(&self) -> NodeId {
        if self.partition.leader() == Some(LEADER) { FOLLOWER } else { LEADER }
    }

    pub(super) fn elect(&mut self, old: Deposed) -> Taken {
        match self.partition.elect(self.other(), old) {
            Ok(()) => Taken::Yes,
            Err(_) => Taken::No,
        }
    }

    pub(super) fn elect_unclean(&mut self) -> Taken {
        let other = self.other();
        if self.partition.isr().contains(other) {
            return Taken::No;
        }
        if self.partition.elect_unclean(other, Deposed::Informed).is_err() {
            return Taken::No;
        }
        self.excused = true;
        self.alarmed.get_or_insert(0);
        // Its log may differ from what was shown anywhere: all of it is shown again.
        self.shown = self.leader_start();
        self.watch.truncated(self.shown);
        Taken::Yes
    }

    pub(super) fn forget(&mut self) -> Taken {
        let Some(leader) = self.partition.leader() else { return Taken::No };
        let ids: Vec<i64> = self.partition.producers(leader).map(|known| known.pid()).collect();
        if ids.is_empty() {
            return Taken::No;
        }
        for node in self.partition.nodes().collect::<Vec<_>>() {
            ids.iter().for_each(|id| self.partition.forget(node, *id));
        }
        self.excused = true;
        self.known.clear();
        Taken::Yes
    }

    /// The oldest request that waits for replication gets 7.
    pub(super) fn time_out(&mut self) -> Taken {
        for flight in &mut self.flights {
            if let Stage::Waiting(wait) = &flight.stage {
                flight.stage = Stage::Answered(wait.timed_out());
                return Taken::Yes;
            }
        }
        Taken::No
    }

    /// Deletes what the caller knows to be delivered (A3 allows no more).
    pub(super) fn purge(&mut self) -> Taken {
        let start = self.leader_start();
        let kept = self.partition.committed().find(|record| {
            let number = records(record.entry.content).nth(record.index as usize).unwrap_or(0);
            let told = number.checked_sub(1).and_then(|number| self.watch.verdict(number));
            number != 0 && !matches!(told, Some(Said::Delivered(_)))
        });
        let upto = kept.map_or(self.shown, |record| record.offset).min(self.shown);
        if upto <= start || self.partition.delete_records(upto).is_err() {
            return Taken::No;
        }
        self.partition.settle(self.now.as_millis());
        for node in [LEADER, FOLLOWER] {
            self.partition.checkpoint(node);
        }
        Taken::Yes
    }

    pub(super) fn leader_start(&self) -> i64 {
        let leader = self.partition.leader();
        leader.and_then(|leader| self.partition.start_offset(leader)).unwrap_or_default()
    }

    pub(super) fn recreate(&mut self, scope: &Scope) -> Taken {
        let nodes: Vec<NodeId> = self.partition.nodes().collect();
        let config = *self.partition.config();
        self.partition = Partition::new(scope.profile, &nodes);
        *self.partition.config_mut() = config;
        self.shown = 0;
        for flight in &mut self.flights {
            flight.stale = true;
            if let Stage::Waiting(wait) = &flight.stage {
                flight.stage = Stage::Answered(wait.vanished());
            }
        }
        self.watch.disturbed();
        self.tell(Event::TopicRecreated);
        Taken::Yes
    }

    pub(super) fn restart(&mut self, node: NodeId, clean: bool) -> Taken {
        if self.budget.restarts == 0 || !self.partition.nodes().any(|held| held == node) {
            return Taken::No;
        }
        self.budget.restarts -= 1;
        let how = if clean { Stop::Clean } else { Stop::Crash };
        let led = self.partition.leader() == Some(node);
        self.lose(node, Fault::LoseWhole);
        self.partition.stop(node, how);
        if led {
            let other = if node == LEADER { FOLLOWER } else { LEADER };
            // Refused if the other one is not in sync: then the leader comes back as such.
            let _ = self.partition.elect(other, Deposed::Informed);
        }
        self.partition.start(node, self.now.as_millis());
        Taken::Yes
    }

    pub(super) fn expire(&mut self, scope: &Scope) -> Taken {
        let late = |flight: &Flight| flight.alive && flight.stage == Stage::Sent;
        if scope.expires_ms.is_none() || self.flights.iter().any(late) {
            // A frame that outlives the broker's memory is beyond anybody's promise (A3, A5).
            return Taken::No;
        }
        self.partition.expire(self.now.as_millis());
        Taken::Yes
    }

    /// Frames of dead connections that nobody can protect from: the leader forgot their producer, so
    /// that it would take them again (A3; the published limit).
    pub(super) fn bury(&mut self) {
        let Some(leader) = self.partition.leader() else { return };
        let known: Vec<i64> = self.partition.producers(leader).map(|known| known.pid()).collect();
        let knew = std::mem::replace(&mut self.known, known);
        let forgotten = |id: &i64| knew.contains(id) && !self.known.contains(id);
        let buried = |flight: &Flight| flight.stage == Stage::Sent && forgotten(&flight.batch.pid);
        let links: Vec<NodeId> = self
            .flights
            .iter()
            .filter(|flight| flight.alive && buried(flight))
            .map(|flight| flight.node)
            .collect();
        self.flights.retain(|flight| flight.alive || !buried(flight));
        for node in links {
            self.lose(node, Fault::LoseGone);
        }
    }

    /// Answers that were waiting and are decided now.
    pub(super) fn wake_waiting(&mut self) {
        let partition = &self.partition;
        for flight in &mut self.flights {
            let Stage::Waiting(wait) = &flight.stage else { continue };
            match partition.progress(wait) {
                Progress::Waiting => {}
                Progress::Answer(answer) => flight.stage = Stage::Answered(answer),
                // The connection went with the broker.
                Progress::Gone => flight.stage = Stage::Answered(wait.vanished()),
            }
        }
        // Nobody hears the answer on a dead connection.
        self.flights.retain(|flight| flight.alive || !matches!(flight.stage, Stage::Answered(_)));
    }

    /// Shows the judge what was committed since.
    pub(super) fn show_log(&mut self) {
        let fresh: Vec<(u64, i64)> = self
            .partition
            .committed()
            .filter(|record| record.offset >= self.shown)
            .map(|record| {
                let number = records(record.entry.content).nth(record.index as usize);
                (number.unwrap_or(0), record.offset)
            })
            .collect();
        for (number, offset) in fresh {
            self.shown = self.shown.max(offset + 1);
            // Zero: what a preset put there.
            if let Some(record) = number.checked_sub(1) {
                let found = self.watch.committed(record, offset);
                self.found.extend(found);
            }
        }
    }
}
