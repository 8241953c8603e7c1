//! Connections begin, speak and end.

use bytes::Bytes;
use candor_core::rules::Rules;
use candor_core::{Deadline, Event, HandedOver, Instant, Wakeup};

use super::{Chore, Producer};
use crate::cluster::Endpoint;
use crate::connection::{Answer, Conn, Connection, Entry, Expected, Expiry, Request};
use crate::fault::{Fault, Loss};
use crate::io::{Handed, Misuse, Notice, Output};
use crate::timers::Timer;

impl<R: Rules> Producer<R> {
    /// Opens a connection to an endpoint that has none.
    pub(super) fn dial(&mut self, now: Instant, endpoint: Endpoint) {
        let conn = candor_core::RouteId(self.next_conn);
        let Some(address) = self.cluster.brokers.opening(endpoint, conn) else { return };
        self.next_conn += 1;
        let connection = Connection::new(endpoint, address.clone(), now, &self.terms);
        self.connections.insert(conn, connection);
        self.outbox.push_back(Output::Connect { conn, address });
        self.todo.push(Chore::Connection(conn));
    }

    pub(super) fn connected(&mut self, conn: Conn) -> Result<(), Misuse> {
        let connection = self.connections.get_mut(&conn).ok_or(Misuse::UnknownConnection(conn))?;
        if connection.is_closing() {
            return Ok(());
        }
        let expected = match (self.cluster.id(), connection.endpoint.broker()) {
            (Some(cluster_id), Some(node)) => Some(Expected { cluster_id, node }),
            (None, _) | (_, None) => None,
        };
        if !connection.connected(&self.terms, expected) {
            return Err(Misuse::AlreadyConnected(conn));
        }
        self.todo.push(Chore::Connection(conn));
        Ok(())
    }

    pub(super) fn received(
        &mut self,
        now: Instant,
        conn: Conn,
        bytes: Bytes,
    ) -> Result<(), Misuse> {
        let connection = self.connections.get_mut(&conn).ok_or(Misuse::UnknownConnection(conn))?;
        if connection.is_connecting() {
            return Err(Misuse::NotConnected(conn));
        }
        connection.received(now, bytes);
        if let Err(fault) = self.listen(now, conn) {
            self.fail(now, conn, fault);
        }
        self.todo.push(Chore::Connection(conn));
        Ok(())
    }

    /// Takes in every whole answer.
    fn listen(&mut self, now: Instant, conn: Conn) -> Result<(), Fault> {
        loop {
            let Some(connection) = self.connections.get_mut(&conn) else { return Ok(()) };
            match connection.next_answer::<R>(now, &self.terms)? {
                None => return Ok(()),
                Some(Answer::GreetAgain) => {}
                Some(Answer::Greeted) => {
                    let endpoint = connection.endpoint;
                    self.cluster.brokers.greeted(endpoint);
                    self.look_at_lanes_of(endpoint);
                    self.todo.push(Chore::Metadata);
                    self.todo.push(Chore::Identity);
                }
                Some(Answer::Body(body)) => self.answer(now, conn, body)?,
            }
        }
    }

    fn look_at_lanes_of(&mut self, endpoint: Endpoint) {
        for key in self.cluster.brokers.lanes(endpoint) {
            self.lanes_todo.push(key);
        }
    }

    pub(super) fn sent(&mut self, now: Instant, conn: Conn, n: usize) -> Result<(), Misuse> {
        let connection = self.connections.get_mut(&conn).ok_or(Misuse::UnknownConnection(conn))?;
        let mut passed: Vec<Entry> = Vec::new();
        if !connection.sent::<R>(now, n as u64, |entry| passed.push(entry.clone())) {
            return Err(Misuse::SentTooMuch { conn, n });
        }
        for entry in passed {
            self.out(&entry);
            if let Some(slot) = self.lanes.get_mut(entry.lane) {
                // An attempt that the lane has forgotten needs no such precision.
                let _ = slot.lane.handle(now, Event::Handed { attempt: entry.attempt });
            }
        }
        self.todo.push(Chore::Connection(conn));
        Ok(())
    }

    /// S16: the bytes of an attempt are out, or will never be.
    pub(super) fn out(&mut self, entry: &Entry) {
        if let Some(slot) = self.lanes.get_mut(entry.lane) {
            self.budget.release(slot.unsent.out(entry.attempt));
        }
    }

    pub(super) fn lost(
        &mut self,
        now: Instant,
        conn: Conn,
        handed: Handed,
        why: Loss,
    ) -> Result<(), Misuse> {
        let connection = self.connections.get(&conn).ok_or(Misuse::UnknownConnection(conn))?;
        if !connection.is_closing() {
            let idle = connection.ends_idle::<R>(now, &self.terms);
            self.end(now, conn, if idle { None } else { Some(Fault::Lost(why)) });
        }
        let Some(mut connection) = self.connections.remove(&conn) else { return Ok(()) };
        connection.take_ahead().for_each(|entry| self.out(&entry));
        let at_most = match handed {
            Handed::AtMost(n) => Some(n),
            Handed::Unknown => None,
        };
        for (request, handed) in connection.over(at_most) {
            match request {
                Request::Produce(entries) => self.unanswered(now, &entries, handed),
                Request::Greeting | Request::Metadata(_) | Request::ProducerId => {}
            }
        }
        self.timers.arm(Timer::Connection(conn), None);
        self.lanes.forget_ready(conn);
        self.todo.push(Chore::Close);
        Ok(())
    }

    /// A Produce request will never be answered.
    fn unanswered(&mut self, now: Instant, entries: &[Entry], handed: HandedOver) {
        for entry in entries {
            self.out(entry);
            if let Some(slot) = self.lanes.get_mut(entry.lane)
                && handed == HandedOver::PerhapsWhole
            {
                slot.losses = slot.losses.saturating_add(1);
            }
            self.tell(now, entry.lane, Event::Ended { attempt: entry.attempt, handed });
        }
    }

    /// Gives a connection up. What was open on it stays so until the driver says how much was handed
    /// over.
    pub(super) fn fail(&mut self, now: Instant, conn: Conn, fault: Fault) {
        let rebootstrap = fault == Fault::Rebootstrap;
        self.outbox.push_back(Output::Disconnect { conn, abort: true });
        self.end(now, conn, Some(fault));
        if rebootstrap {
            self.rebootstrap(now);
        }
    }

    /// KIP-1102: all connections are dropped, and the bootstrap addresses are asked (fault 105).
    fn rebootstrap(&mut self, now: Instant) {
        let others: Vec<_> = self
            .connections
            .iter()
            .filter(|(_, connection)| !connection.is_closing())
            .map(|(conn, _)| *conn)
            .collect();
        for conn in others {
            self.outbox.push_back(Output::Disconnect { conn, abort: true });
            self.end(now, conn, Some(Fault::Rebootstrap));
        }
        for key in self.cluster.brokers.forget_all() {
            if let Some(slot) = self.lanes.get_mut(key) {
                slot.at = None;
            }
            self.lanes_todo.push(key);
        }
        self.cluster.asks.brokers();
        self.todo.push(Chore::Metadata);
    }

    /// Closes a connection in order: nothing is open on it.
    pub(super) fn leave(&mut self, now: Instant, conn: Conn) {
        self.outbox.push_back(Output::Disconnect { conn, abort: false });
        self.end(now, conn, None);
    }

    /// The connection is of no more use; a fault counts against its endpoint.
    fn end(&mut self, now: Instant, conn: Conn, fault: Option<Fault>) {
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        let (endpoint, address) = (connection.endpoint, connection.address.clone());
        let asked = connection.close();
        let failed = fault.is_some();
        for request in asked {
            match request {
                Request::Metadata(ask) => self.cluster.asks.lost::<R>(now, ask),
                Request::ProducerId => {
                    self.identities.failed::<R>(now, conn, None);
                }
                Request::Greeting | Request::Produce(_) => {}
            }
        }
        if let Some(until) = self.cluster.brokers.closed::<R>(endpoint, conn, now, failed) {
            self.timers.set(Timer::Dial(endpoint), Some(until), Wakeup::Connection);
        }
        if failed {
            self.ask_elsewhere(endpoint);
        }
        self.look_at_lanes_of(endpoint);
        if let Some(why) = fault {
            self.counts.failures += 1;
            self.outbox.push_back(Output::Notice(Notice::ConnectionFailed { address, why }));
        }
        self.todo.push(Chore::Metadata);
        self.todo.push(Chore::Identity);
        self.todo.push(Chore::Connection(conn));
    }

    /// Fault 31: a failed connection makes metadata doubtful: others are asked.
    fn ask_elsewhere(&mut self, endpoint: Endpoint) {
        let topics: Vec<_> = self
            .cluster
            .brokers
            .lanes(endpoint)
            .filter_map(|key| self.lanes.get(key).map(|slot| slot.topic))
            .collect();
        topics.into_iter().for_each(|topic| self.cluster.asks.again(topic));
        self.cluster.asks.avoid(endpoint.broker().map(Endpoint::Broker));
    }

    /// Looks at a connection's timers.
    pub(super) fn look_at_connection(&mut self, now: Instant, conn: Conn) {
        let Some(connection) = self.connections.get(&conn) else { return };
        match connection.expired(now, &self.terms) {
            Some(Expiry::Fault(fault)) => return self.fail(now, conn, fault),
            Some(Expiry::Idle) => return self.leave(now, conn),
            None if connection.is_drained() => return self.leave(now, conn),
            None => {}
        }
        let waits = self.lanes.has_ready(conn)
            || self.cluster.asks.deadline().is_some()
            || self.identities.deadline().is_some();
        let deadline: Option<Deadline> = connection.deadline::<R>(now, &self.terms, waits);
        self.timers.arm(Timer::Connection(conn), deadline);
    }
}
