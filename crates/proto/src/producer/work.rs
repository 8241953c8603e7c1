//! What `poll` does, one small thing after the other.

use candor_core::rules::Rules;
use candor_core::{Action, Deadline, Event, Instant, Outcome, Proof, Settled, Span, Ticket};

use super::offer::naming;
use super::{Chore, Life, Producer};
use crate::cluster::{Endpoint, Topic};
use crate::connection::Connection;
use crate::io::{Notice, Output, Settlement};
use crate::lanes::LaneKey;
use crate::tickets::Held;
use crate::timers::{Timer, Timers};
use crate::worklist::{LaneList, Worklist};

impl<R: Rules> Producer<R> {
    /// Does one thing; false if there is nothing to do.
    pub(super) fn step(&mut self, now: Instant) -> bool {
        if self.life == Life::Closed {
            self.todo = Worklist::new();
            self.lanes_todo = LaneList::default();
            self.timers = Timers::default();
            return false;
        }
        if let Some(timer) = self.timers.pop_due(now) {
            self.went_off(timer);
            return true;
        }
        if let Some(key) = self.lanes_todo.pop() {
            self.look_at_lane(now, key);
            return true;
        }
        let Some(chore) = self.todo.pop() else { return false };
        match chore {
            Chore::Route(topic) => self.drain(now, topic),
            Chore::Unrouted => self.expire_unrouted(now),
            Chore::Dial(endpoint) => {
                if self.cluster.brokers.wants_dial(endpoint) {
                    self.dial(now, endpoint);
                }
            }
            Chore::Connection(conn) => self.look_at_connection(now, conn),
            Chore::Metadata => self.ask_metadata(now),
            Chore::Identity => self.ask_identity(now),
            Chore::Flushes => {
                if let Some(id) = self.flushes.poll() {
                    self.outbox.push_back(Output::Flushed(id));
                    self.todo.push(Chore::Flushes);
                }
            }
            Chore::Shed => self.shed(now),
            Chore::Close => self.finish(now),
        }
        true
    }

    fn went_off(&mut self, timer: Timer) {
        match timer {
            Timer::Lane(key) => self.lanes_todo.push(key),
            Timer::Connection(conn) => {
                self.todo.push(Chore::Connection(conn));
                // The end of a throttle lets others ask, too.
                self.todo.push(Chore::Metadata);
                self.todo.push(Chore::Identity);
            }
            Timer::Dial(endpoint) => {
                self.cluster.brokers.may_dial_again(endpoint);
                self.todo.push(Chore::Dial(endpoint));
                self.todo.push(Chore::Metadata);
                self.todo.push(Chore::Identity);
            }
            Timer::Metadata => self.todo.push(Chore::Metadata),
            Timer::Identity => self.todo.push(Chore::Identity),
            Timer::Unrouted => self.todo.push(Chore::Unrouted),
            Timer::Close => {
                for key in self.lanes.keys() {
                    self.lanes_todo.push(key);
                }
                self.todo.push(Chore::Close);
            }
        }
    }

    /// Tells the lane where its leader is, hears what it has to say, and notes when and where it
    /// wants to go on.
    fn look_at_lane(&mut self, now: Instant, key: LaneKey) {
        self.place_lane(now, key);
        while let Some(action) = self.lanes.get_mut(key).and_then(|slot| slot.lane.poll(now)) {
            self.act(now, key, action);
        }
        self.leave_if_idle(key);
        let Some(slot) = self.lanes.get(key) else { return };
        // A deadline that is not ahead after a poll must not make a busy loop.
        let ahead = now + Span::from_micros(1);
        let deadline = slot
            .lane
            .deadline()
            .map(|deadline| Deadline { at: deadline.at.max(ahead), ..deadline });
        let route = slot.told.0.filter(|_| slot.lane.offerable(now));
        self.timers.arm(Timer::Lane(key), deadline);
        if let Some(conn) = route {
            self.lanes.is_ready(key, conn);
            // The end of the throttle is to be waited for now.
            if self.connections.get(&conn).is_some_and(|c| c.throttled::<R>(now).is_some()) {
                self.todo.push(Chore::Connection(conn));
            }
        }
    }

    /// S7: a lane with work is attached to its leader's broker and knows the way there.
    pub(super) fn place_lane(&mut self, now: Instant, key: LaneKey) {
        let Some(slot) = self.lanes.get_mut(key) else { return };
        if slot.lane.is_idle() {
            return;
        }
        let leader = self.cluster.followed(slot.topic, slot.partition);
        let newly = slot.at != leader.leader;
        if newly {
            if let Some(before) = slot.at.take() {
                self.cluster.brokers.detach(before, key);
            }
            slot.at = leader.leader.filter(|node| self.cluster.brokers.attach(*node, key));
        }
        let (topic, told) = (slot.topic, slot.told);
        let endpoint = slot.at.map(Endpoint::Broker);
        if newly && endpoint.is_some_and(|endpoint| self.cluster.brokers.is_suspect(endpoint)) {
            self.cluster.asks.again(topic);
            self.todo.push(Chore::Metadata);
        }
        let connection = endpoint.and_then(|at| self.cluster.brokers.connection(at));
        let versions =
            connection.and_then(|conn| self.connections.get(&conn)).and_then(Connection::versions);
        // To a broker that takes topics by id only, one without an id has no way.
        let id = self.cluster.topic(topic).and_then(Topic::id);
        let has_name = versions.map(|versions| naming(versions, id).is_some());
        let place = (connection.filter(|_| has_name == Some(true)), leader.epoch);
        match endpoint.filter(|_| has_name != Some(false)) {
            None => {
                if self.lanes.leaderless.insert(key) {
                    self.cluster.asks.again(topic);
                    self.todo.push(Chore::Metadata);
                }
            }
            Some(endpoint) => {
                self.lanes.leaderless.remove(&key);
                if connection.is_none() && self.cluster.brokers.wants_dial(endpoint) {
                    self.todo.push(Chore::Dial(endpoint));
                }
            }
        }
        if told != place {
            if let Some(slot) = self.lanes.get_mut(key) {
                slot.told = place;
                slot.tellings = slot.tellings.wrapping_add(1);
            }
            self.tell(now, key, Event::Leader { route: place.0, epoch: place.1 });
        }
    }

    /// A lane without work needs no broker.
    fn leave_if_idle(&mut self, key: LaneKey) {
        let Some(slot) = self.lanes.get_mut(key) else { return };
        if slot.lane.is_idle() {
            if let Some(node) = slot.at.take() {
                self.cluster.brokers.detach(node, key);
            }
            self.cluster.forget_question(slot.topic, slot.partition);
            self.lanes.leaderless.remove(&key);
        }
    }

    fn act(&mut self, now: Instant, key: LaneKey, action: Action) {
        let Some(slot) = self.lanes.get(key) else { return };
        let (topic, partition) = (slot.topic, slot.partition);
        match action {
            Action::Settled(settled) => self.settle(key, settled),
            Action::Notice(notice) => {
                let topic = self.cluster.name(topic);
                let notice = Notice::Partition { topic, partition, notice };
                self.outbox.push_back(Output::Notice(notice));
                self.look_for_new_topic(key);
            }
            Action::NeedIdentity => self.give_or_want_identity(now, key),
            Action::NeedLeader => {
                self.cluster.ask(topic, partition);
                self.todo.push(Chore::Metadata);
            }
        }
    }

    /// S13, S18: below Produce 13 the log of a topic that was made anew answers by name, and may do so
    /// before its id is seen. Then the lane stopped, and the new id lets it go on.
    pub(super) fn look_for_new_topic(&mut self, key: LaneKey) {
        let Some(slot) = self.lanes.get(key) else { return };
        if slot.lane.awaits_new_topic() {
            self.cluster.asks.again(slot.topic);
            self.todo.push(Chore::Metadata);
        }
    }

    /// S9: an id that this lane never had, from the pool if it has one.
    pub(super) fn give_or_want_identity(&mut self, now: Instant, key: LaneKey) {
        if !self.give_identity(now, key) {
            self.identities.want(key);
            self.todo.push(Chore::Identity);
        }
    }

    fn give_identity(&mut self, now: Instant, key: LaneKey) -> bool {
        let last = self.lanes.get(key).and_then(|slot| slot.identity);
        let Some((index, identity)) = self.identities.pool.next(last) else { return false };
        if let Some(slot) = self.lanes.get_mut(key) {
            slot.identity = Some(index);
        }
        self.tell(now, key, Event::Identity(identity));
        true
    }

    /// Passes verdicts and resolutions on, and gives back what the records held.
    fn settle(&mut self, key: LaneKey, mut settled: Settled) {
        if settled.outcome == Outcome::NotDelivered(Proof::NeverOffered)
            && let Some(partitions) = self.lacks_partition(key)
        {
            settled.outcome = Outcome::NotDelivered(Proof::NoPartition { partitions });
        }
        let ends = !matches!(settled.outcome, Outcome::Unknown(_));
        let (mut freed, mut resolved, mut reported) = (0, 0, 0);
        for told in &settled.records {
            let entry = if ends {
                self.tickets.end(told.ticket)
            } else {
                self.tickets.moved(told.ticket, Held::Unknown(key))
            };
            let bytes = entry.map_or(0, |entry| entry.bytes as usize);
            match (ends, told.unknown) {
                (true, true) => resolved += bytes,
                (true, false) | (false, true) => {}
                (false, false) => reported += bytes,
            }
            freed += if ends { bytes } else { 0 };
            self.count(&settled.outcome, told.unknown, told.ticket);
        }
        if let Some(slot) = self.lanes.get_mut(key) {
            self.budget.release(slot.unsent.ended(freed));
            if resolved > 0 {
                self.doubts.resolved(key, &mut slot.doubt, resolved);
            }
            if reported > 0 {
                self.doubts.reported(key, &mut slot.doubt, reported);
                self.todo.push(Chore::Shed);
            }
            let (topic, partition) = (self.cluster.name(slot.topic), Some(slot.partition));
            self.outbox.push_back(Output::Settled(Settlement { topic, partition, settled }));
        }
        self.todo.push(Chore::Flushes);
        self.todo.push(Chore::Close);
    }

    fn count(&mut self, outcome: &Outcome, unknown: bool, ticket: Ticket) {
        if unknown {
            self.counts.resolved += 1;
            return;
        }
        self.flushes.told(ticket);
        match outcome {
            Outcome::Delivered { .. } => self.counts.delivered += 1,
            Outcome::NotDelivered(_) => self.counts.not_delivered += 1,
            Outcome::Unknown(_) => self.counts.unknown += 1,
            Outcome::Never { .. } => {
                self.counts.unknown += 1;
                self.counts.resolved += 1;
            }
        }
    }

    /// L5: relieves the lane with the oldest reported unknown, while they hold too much.
    fn shed(&mut self, now: Instant) {
        let Some(key) = self.doubts.victim::<R>(self.budget.limit()) else { return };
        if let Some(slot) = self.lanes.get_mut(key) {
            self.doubts.shed(key, &mut slot.doubt);
        }
        self.tell(now, key, Event::Shed);
        self.todo.push(Chore::Shed);
    }

    /// D5: closing is over when everything was told, at the latest at its deadline.
    fn finish(&mut self, now: Instant) {
        let Life::Closing { deadline } = self.life else { return };
        if now >= deadline {
            self.end_unrouted();
        }
        if !self.todo.is_empty() {
            // Whatever is still to be done comes first.
            return self.todo.push(Chore::Close);
        }
        let over = self.tickets.is_empty() && !self.flushes.is_pending();
        if !over && now < deadline {
            return;
        }
        let open: Vec<_> = self
            .connections
            .iter()
            .filter(|(_, connection)| !connection.is_closing())
            .map(|(conn, _)| *conn)
            .collect();
        open.into_iter().for_each(|conn| self.leave(now, conn));
        self.life = Life::Closed;
        self.tickets.finish();
        self.outbox.push_back(Output::Closed);
    }

    /// What never got a partition was never offered.
    fn end_unrouted(&mut self) {
        let topics: Vec<_> = self.router.topics().collect();
        for topic in topics {
            while let Some((ticket, _)) = self.router.next(topic) {
                self.end_raw(topic, ticket, Proof::NeverOffered);
            }
        }
    }
}
