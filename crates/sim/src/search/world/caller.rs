//! What the caller does: sends, cancels, closes, waits.

use candor_core::{Append, Event, Span, Ticket, Wakeup};

use crate::judge::Anomaly;

use super::super::machine::Machine;
use super::super::scope::{Plan, Scope, Ticks};
use super::{START, Taken, World};

impl<M: Machine> World<M> {
    pub(super) fn append(&mut self, scope: &Scope) -> Taken {
        match scope.records.get(self.sent) {
            Some(plan) if !self.closed => {
                self.send(*plan);
                Taken::Yes
            }
            Some(_) | None => Taken::No,
        }
    }

    /// Sends a record outside of the scenario.
    pub(in crate::search) fn send_now(&mut self, plan: Plan) -> Result<(), Anomaly> {
        self.send(plan);
        self.turn();
        self.verdict()
    }

    pub(super) fn send(&mut self, plan: Plan) {
        let record = self.sent as u64;
        let deadline = START + Span::from_millis(plan.due_ms);
        let deadline = deadline.max(self.now + Span::from_millis(1));
        self.sent += 1;
        let append = Append {
            ticket: Ticket(record),
            born: self.now,
            deadline,
            timestamp: START.as_millis() - plan.stamped_ago_ms,
            record: record as u16,
        };
        self.watch.intended(record, deadline.as_micros());
        let stopped = self.machine.is_stopped();
        match self.machine.handle(self.now, Event::Append(append)) {
            Ok(()) => {
                let found = self.watch.accepted(record);
                self.found.extend(found);
            }
            Err(_) if stopped => {
                let found = self.watch.refused(record);
                self.found.extend(found);
            }
            Err(misuse) => self.convict_misuse(&misuse),
        }
    }

    pub(super) fn cancel(&mut self, record: u64) -> Taken {
        let bit = 1 << record;
        if record >= self.sent as u64 || self.cancelled & bit != 0 || self.closed {
            return Taken::No;
        }
        self.cancelled |= bit;
        self.watch.cancelled(self.now.as_micros(), record);
        self.tell(Event::Cancel(Ticket(record)));
        Taken::Yes
    }

    /// C: a revoke is a cancel, and if the record is in doubt, its slot is contested.
    pub(super) fn revoke(&mut self, record: u64) -> Taken {
        let bit = 1 << record;
        if record >= self.sent as u64 || self.revoked & bit != 0 || self.closed {
            return Taken::No;
        }
        self.revoked |= bit;
        self.cancelled |= bit;
        self.watch.cancelled(self.now.as_micros(), record);
        self.tell(Event::Revoke(Ticket(record)));
        Taken::Yes
    }

    pub(super) fn abandon(&mut self) -> Taken {
        if self.abandoned || self.closed {
            return Taken::No;
        }
        self.abandoned = true;
        self.watch.disturbed();
        self.tell(Event::Abandon);
        Taken::Yes
    }

    pub(super) fn close(&mut self, scope: &Scope) -> Taken {
        let Some(left) = scope.closes.filter(|_| !self.closed) else { return Taken::No };
        self.closed = true;
        let deadline = self.now + Span::from_millis(left);
        self.watch.closing(deadline.as_micros());
        self.tell(Event::Close { deadline });
        Taken::Yes
    }

    pub(super) fn tick(&mut self, scope: &Scope) -> Taken {
        match self.machine.deadline() {
            Some(deadline) if deadline.at > self.now => {
                self.now = deadline.at;
                if let Ticks::Deadlines(_) = scope.ticks {
                    self.budget.ticks = self.budget.ticks.saturating_sub(1);
                }
                self.note(|| format!("    it is {:?}", deadline.why));
                Taken::Yes
            }
            Some(_) | None => Taken::No,
        }
    }

    pub(super) fn may_tick(&self, ticks: Ticks) -> bool {
        let Some(deadline) = self.machine.deadline() else { return false };
        match ticks {
            Ticks::Never => false,
            Ticks::Wakeups => matches!(deadline.why, Wakeup::Linger | Wakeup::Backoff),
            Ticks::Always => true,
            Ticks::Deadlines(_) => self.budget.ticks > 0 && deadline.why == Wakeup::Verdict,
        }
    }
}
