//! Metadata is asked for and taken in.

use candor_core::rules::Rules;
use candor_core::{Event, Instant, Proof, Wakeup};
use candor_wire::{NodeId, init_producer_id, metadata};

use super::{Chore, Producer};
use crate::address::Address;
use crate::cluster::{Ask, Change, Endpoint, Source};
use crate::connection::{Conn, Connection, Request};
use crate::fault::Fault;
use crate::io::{Notice, Output};
use crate::lanes::Slot;
use crate::router::TopicKey;
use crate::timers::Timer;

/// Where a request that any broker can answer may go.
enum Way {
    Over(Conn),
    /// Nowhere, until something happens that looks at it again.
    Blocked,
}

impl<R: Rules> Producer<R> {
    /// Asks for metadata, if it is due.
    pub(super) fn ask_metadata(&mut self, now: Instant) {
        self.grow_old(now);
        if self.tickets.is_empty() {
            self.cluster.asks.rest(self.cluster.brokers.nobody_works());
        }
        if self.cluster.asks.is_due(now) {
            let asked = self.cluster.asks.asked();
            let silent = self.asked_broker(asked);
            match self.way(now, silent.or_else(|| self.cluster.asks.avoided())) {
                Way::Over(conn) if asked != Some(conn) => self.send_metadata(now, conn),
                Way::Over(_) => {
                    self.dial_somebody(now);
                    self.cluster.asks.wait_on(now);
                }
                Way::Blocked => {}
            }
        }
        let at = self.cluster.deadline().filter(|at| *at > now);
        self.timers.set(Timer::Metadata, at, Wakeup::Metadata);
    }

    /// An idle topic is forgotten if none of its records got as far as a partition; else its lanes
    /// give back what they do not need.
    fn grow_old(&mut self, now: Instant) {
        for topic in self.cluster.grow_old(now) {
            let lanes: Vec<_> = self.lanes.of_topic(topic).collect();
            if lanes.is_empty() && !self.router.holds(topic) {
                self.cluster.forget(topic);
                self.router.forget(topic);
            }
            for key in lanes {
                self.lanes.get_mut(key).into_iter().for_each(Slot::shrink);
            }
        }
    }

    fn send_metadata(&mut self, now: Instant, conn: Conn) {
        let Self { connections, cluster, terms, limits, .. } = self;
        let Some(connection) = connections.get_mut(&conn) else { return };
        let Some(versions) = connection.versions() else { return };
        let ask = cluster.asks.start(now, conn);
        let names: Vec<_> =
            ask.topics.iter().filter_map(|key| cluster.topic(*key)).map(|t| &*t.name).collect();
        let request = metadata::Request {
            topics: metadata::Topics::Names(&names),
            allow_auto_topic_creation: limits.auto_create_topics,
        };
        match request.encode(versions.metadata, &connection.header(terms)) {
            Ok(frame) => {
                let expires = R::request_expires(now, terms.request_timeout);
                let request = Request::Metadata(ask);
                connection.push(request, versions.metadata, [frame], expires);
            }
            Err(_) => cluster.asks.lost::<R>(now, ask),
        }
        self.todo.push(Chore::Connection(conn));
    }

    /// Asks for a producer id, if one is wanted; another broker, if the one that was asked is silent.
    pub(super) fn ask_identity(&mut self, now: Instant) {
        if self.tickets.is_empty() {
            self.identities.rest(self.cluster.brokers.nobody_works());
        }
        if self.identities.is_due(now) {
            let asked = self.identities.asked();
            match self.way(now, self.asked_broker(asked)) {
                Way::Over(conn) if asked != Some(conn) => self.send_identity(now, conn),
                Way::Over(_) => {
                    self.dial_somebody(now);
                    self.identities.wait_on(now);
                }
                Way::Blocked => {}
            }
        }
        let at = self.identities.deadline().filter(|at| *at > now);
        self.timers.set(Timer::Identity, at, Wakeup::Backoff);
    }

    fn send_identity(&mut self, now: Instant, conn: Conn) {
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        let Some(versions) = connection.versions() else { return };
        let version = versions.init_producer_id;
        let request = init_producer_id::Request::idempotent();
        if let Ok(frame) = request.encode(version, &connection.header(&self.terms)) {
            let expires = R::request_expires(now, self.terms.request_timeout);
            connection.push(Request::ProducerId, version, [frame], expires);
            self.identities.start(now, conn);
            self.todo.push(Chore::Connection(conn));
        }
    }

    /// The broker that a request went to, if it is known which one it is.
    fn asked_broker(&self, asked: Option<Conn>) -> Option<Endpoint> {
        let endpoint = self.connections.get(&asked?)?.endpoint;
        endpoint.broker().map(Endpoint::Broker)
    }

    /// The least busy connection that may speak; another broker's than `avoid` if that is possible.
    /// Without one, somebody is dialled.
    fn way(&mut self, now: Instant, avoid: Option<Endpoint>) -> Way {
        // Who answers at a bootstrap address nobody knows: it could be the same broker.
        let avoided = |connection: &Connection| {
            let broker = connection.endpoint.broker();
            avoid.is_some_and(|who| broker.is_none() || broker == who.broker())
        };
        let best = self
            .connections
            .iter()
            .filter(|(_, connection)| connection.may_ask::<R>(now))
            .min_by_key(|(_, connection)| {
                let seed = connection.endpoint.broker().is_none();
                (avoided(connection), connection.open_requests(), seed)
            });
        match best {
            Some((conn, connection)) if !avoided(connection) => Way::Over(*conn),
            Some((conn, _)) => {
                let conn = *conn;
                if self.dial_somebody(now) { Way::Blocked } else { Way::Over(conn) }
            }
            None => {
                self.dial_somebody(now);
                self.await_throttles(now);
                Way::Blocked
            }
        }
    }

    /// Somebody waits from now on for the end of every throttle.
    fn await_throttles(&mut self, now: Instant) {
        let throttled = self.connections.iter().filter(|(_, c)| c.throttled::<R>(now).is_some());
        throttled.for_each(|(conn, _)| self.todo.push(Chore::Connection(*conn)));
    }

    /// Whether a connection is about to be there. Of those that are being opened, only the ones that
    /// are still promising are waited for, and keep others from being dialled; when they no longer are,
    /// this is looked at again.
    fn dial_somebody(&mut self, now: Instant) -> bool {
        let opening = self.connections.iter().filter(|(_, it)| it.is_promising(now));
        let promising: Vec<_> = opening.map(|(conn, it)| (*conn, it.endpoint)).collect();
        for (conn, _) in &promising {
            self.todo.push(Chore::Connection(*conn));
        }
        let endpoints = promising.iter().map(|(_, endpoint)| *endpoint);
        let is_slow = |conn| {
            let connection = self.connections.get(&conn);
            connection.is_some_and(|it| it.is_opening() && !it.is_promising(now))
        };
        match self.cluster.brokers.dial_anybody(endpoints, is_slow) {
            Some(endpoint) => {
                self.dial(now, endpoint);
                true
            }
            None => !promising.is_empty(),
        }
    }

    /// Takes in a metadata answer.
    pub(super) fn metadata(
        &mut self,
        now: Instant,
        conn: Conn,
        ask: Ask,
        response: &metadata::Response<'_>,
        version: i16,
    ) -> Result<(), Fault> {
        self.throttle(now, conn, response.throttle_ms);
        let endpoint = self.connections.get(&conn).map(|connection| connection.endpoint);
        let broker = endpoint.and_then(Endpoint::broker);
        let by = Source { broker, at: now, request: ask.number };
        let Self { cluster, lanes, .. } = self;
        let ours = |topic, partition| lanes.find(topic, partition).is_some();
        let changes = match cluster.take::<R>(response, version, by, ours) {
            Ok(changes) => changes,
            Err(fault) => {
                self.cluster.asks.lost::<R>(now, ask);
                return Err(fault);
            }
        };
        let settled = !changes.iter().any(Change::wants_more);
        for change in changes {
            self.change(now, change, by);
        }
        if self.want_what_is_open(now, ask.number, settled) {
            // L1: it may know less than others, for as long as it likes.
            self.cluster.asks.avoid(endpoint);
        }
        Ok(())
    }

    fn change(&mut self, now: Instant, change: Change, by: Source) {
        match change {
            Change::Routable(topic) => {
                if self.router.holds(topic) {
                    self.todo.push(Chore::Route(topic));
                }
            }
            Change::Recreated(topic) => {
                let lanes: Vec<_> = self.lanes.of_topic(topic).collect();
                lanes.into_iter().for_each(|key| self.tell(now, key, Event::TopicRecreated));
                let topic = self.cluster.name(topic);
                self.outbox.push_back(Output::Notice(Notice::TopicRecreated { topic }));
            }
            Change::Refused(topic, code) => {
                while let Some((ticket, _)) = self.router.next(topic) {
                    self.end_raw(topic, ticket, Proof::Rejected { code: code.0 });
                }
                let topic = self.cluster.name(topic);
                self.outbox.push_back(Output::Notice(Notice::TopicRefused { topic, code }));
            }
            Change::Leader(topic, partition) => {
                if let Some(key) = self.lanes.find(topic, partition) {
                    // At once: the lane's question is gone with the old leader, and should the next
                    // answer bring that one back, the lane would never hear of either (K5, L4).
                    self.place_lane(now, key);
                    self.lanes_todo.push(key);
                }
            }
            Change::Confirmed(topic, partition, epoch) => {
                if let Some(key) = self.lanes.find(topic, partition) {
                    self.place_lane(now, key);
                    self.tell(now, key, Event::LeaderConfirmed { epoch });
                }
            }
            Change::Moved(conn) => self.drain_connection(conn),
            Change::AskAnother(topic) => {
                self.cluster.asks.elsewhere(topic, by.request);
                self.cluster.asks.avoid(by.broker.map(Endpoint::Broker));
            }
            Change::Undecided(topic) => {
                self.cluster.asks.again(topic);
                self.cluster.asks.avoid(by.broker.map(Endpoint::Broker));
            }
        }
    }

    /// L1: what is still open is asked for again, after a wait. Whether there is something.
    fn want_what_is_open(&mut self, now: Instant, answered: u64, settled: bool) -> bool {
        let lost: Vec<_> = self.lanes.leaderless.iter().copied().collect();
        for key in lost {
            self.place_lane(now, key);
            self.lanes_todo.push(key);
        }
        let leaderless = self.lanes.leaderless.iter().filter_map(|key| self.lanes.get(*key));
        let open: Vec<TopicKey> = leaderless
            .map(|slot| slot.topic)
            .chain(self.router.topics().filter(|topic| !self.is_routable(*topic)))
            .chain(self.cluster.open_questions())
            .collect();
        self.cluster.asks.answered::<R>(now, answered, settled && open.is_empty());
        open.iter().for_each(|topic| self.cluster.asks.again(*topic));
        self.todo.push(Chore::Metadata);
        !open.is_empty()
    }

    pub(super) fn is_routable(&self, topic: TopicKey) -> bool {
        self.cluster.topic(topic).is_some_and(|topic| topic.count() > 0)
    }

    /// Takes in a broker's address. A connection to another one is drained.
    pub(super) fn take_address(&mut self, node: NodeId, address: Address) {
        let endpoint = Endpoint::Broker(node);
        let moved = self.cluster.brokers.take_address(node, address);
        if let Some(conn) = moved {
            self.drain_connection(conn);
            for key in self.cluster.brokers.lanes(endpoint) {
                self.lanes_todo.push(key);
            }
        }
    }

    /// The connection goes to an address that is no longer its broker's. One that is still being
    /// opened would speak for the broker with somebody else's voice (S21).
    fn drain_connection(&mut self, conn: Conn) {
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        if connection.is_opening() {
            return self.leave(self.clock.now, conn);
        }
        connection.drain();
        for key in self.cluster.brokers.lanes(connection.endpoint) {
            self.lanes_todo.push(key);
        }
        self.todo.push(Chore::Connection(conn));
    }
}
