//! What the lane does: offers batches, gives verdicts, asks.

use std::fmt::Display;

use candor_core::{Action, Event, Notice, ProducerId, Settled};

use crate::judge::{Anomaly, Class};

use super::super::explore::Contest;
use super::super::flight::Flight;
use super::super::machine::Machine;
use super::super::scope::Scope;
use super::{MANY, Taken, World};
use crate::words;

impl<M: Machine> World<M> {
    pub(super) fn tell(&mut self, event: Event<'_, candor_core::testing::Counted>) {
        if let Err(misuse) = self.machine.handle(self.now, event) {
            self.convict_misuse(&misuse);
        }
    }

    pub(super) fn convict_misuse(&mut self, misuse: &dyn Display) {
        self.note(|| format!("    the lane refuses: {misuse}"));
        self.convict(Class::Contract);
    }

    pub(super) fn convict(&mut self, class: Class) {
        self.found.push(Anomaly::new(class));
    }

    pub(super) fn offer(&mut self, scope: &Scope) -> Taken {
        let Some(route) = self.view.route else { return Taken::No };
        let Some(offer) = self.machine.offer(self.now, route, usize::MAX) else {
            return Taken::No;
        };
        if offer.route != route {
            self.convict(Class::Contract);
        }
        let flight = Flight::new(&offer, self.view.node, self.view.epoch, scope.records);
        self.note(|| format!("    offers {flight}"));
        let attempt = flight.as_attempt();
        self.contest = attempt.replacement.then(|| Contest {
            contested: self.watch.sizes_from(attempt.first),
            size: attempt.count,
        });
        let found = self.watch.offered(self.now.as_micros(), &attempt);
        self.found.extend(found);
        self.count_identity((flight.batch.pid, flight.batch.epoch));
        self.flights.push(flight);
        Taken::Yes
    }

    pub(super) fn count_identity(&mut self, identity: (i64, i16)) {
        if self.identity != Some(identity) {
            self.identity = Some(identity);
            self.identities = self.identities.saturating_add(1);
        }
        if self.identities > self.limits.epochs {
            self.convict(Class::Wasteful);
        }
    }

    /// The lane says all that it has to say. D1, D6: until it did, it offers nothing.
    pub(super) fn turn(&mut self) {
        let would_offer = self.view.route.is_some() && self.machine.offerable(self.now);
        for _ in 0..MANY {
            match self.machine.poll(self.now) {
                Some(Action::Settled(settled)) => {
                    if would_offer {
                        self.note(|| "    it would offer before it says what is due".to_owned());
                        self.convict(Class::Contract);
                    }
                    self.settled(&settled);
                }
                Some(action) => self.act(action),
                None => return self.after_turn(),
            }
        }
        self.convict(Class::Busy);
    }

    pub(super) fn after_turn(&mut self) {
        let now = self.now.as_micros();
        let late = self.watch.polled(now);
        self.found.extend(late);
        if self.machine.deadline().is_some_and(|deadline| deadline.at <= self.now) {
            self.note(|| "    the lane wants to be polled although it was".to_owned());
            self.convict(Class::Busy);
        }
    }

    /// The cluster gives the producer another id.
    pub(super) fn add_id(&mut self) {
        if let Some(id) = ProducerId::new(self.next_id) {
            self.pool.add(id);
        }
        self.next_id += 1;
    }

    pub(super) fn act(&mut self, action: Action) {
        match action {
            Action::Settled(settled) => self.settled(&settled),
            Action::NeedIdentity => {
                if self.pool.next(self.last_id).is_none() {
                    self.add_id();
                }
                if let Some((index, identity)) = self.pool.next(self.last_id) {
                    self.last_id = Some(index);
                    self.tell(Event::Identity(identity));
                }
            }
            Action::NeedLeader => self.view.asked = true,
            Action::Notice(notice) => {
                self.note(|| format!("    notice: {notice}"));
                let needless = match notice {
                    Notice::DataLoss { .. } => !self.limits.alarms,
                    Notice::Unfenced => !self.limits.unfenced,
                    Notice::StateLost
                    | Notice::IdentityConflict
                    | Notice::Fence { .. }
                    | Notice::Contradiction { .. }
                    | Notice::Stopped => false,
                };
                if needless {
                    self.convict(Class::FalseAlarm);
                }
                self.alarm(notice);
                self.watch.noticed(words::notice(notice));
            }
        }
    }

    /// The lane says that data may be lost: this covers whatever it was handed before.
    fn alarm(&mut self, notice: Notice) {
        match notice {
            Notice::DataLoss { .. } | Notice::Contradiction { .. } => {
                self.alarmed = self.alarmed.map(|_| self.sent);
            }
            Notice::Unfenced
            | Notice::StateLost
            | Notice::IdentityConflict
            | Notice::Fence { .. }
            | Notice::Stopped => {}
        }
    }

    pub(super) fn settled(&mut self, settled: &Settled) {
        let now = self.now.as_micros();
        for (ticket, verdict) in settled.verdicts() {
            self.note(|| format!("    verdict on record {ticket}: {verdict:?}"));
            let found = self.watch.told(now, ticket.0, words::verdict(verdict));
            self.found.extend(found);
        }
        for (ticket, resolution) in settled.resolutions() {
            self.note(|| format!("    resolution of record {ticket}: {resolution:?}"));
            let found = self.watch.resolved(now, ticket.0, words::resolution(resolution));
            self.found.extend(found);
        }
    }
}
