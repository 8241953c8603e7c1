//! The whole producer: small machines side by side, and the calls that move them.

mod answers;
mod append;
mod connections;
mod metadata;
mod offer;
mod work;

use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use candor_core::rules::{Honest, Rules};
use candor_core::{Deadline, Event, Instant, LaneConfig, RouteId, Span, Ticket, Wakeup};
use candor_wire::RecordBatch;

use crate::budget::{Budget, Doubts};
use crate::cluster::{Asks, Brokers, Cluster, Endpoint, Redial, Waits};
use crate::completion::{FlushId, Flushes};
use crate::config::{Config, ConfigError};
use crate::connection::{Conn, Connection, Terms};
use crate::identity::Identities;
use crate::io::{Input, Misuse, Output};
use crate::jitter::mix;
use crate::lanes::{LaneKey, Lanes};
use crate::router::{Router, TopicKey};
use crate::stats::{Counts, PartitionLeader, Stats};
use crate::tickets::{Held, Tickets};
use crate::timers::Timers;
use crate::worklist::{LaneList, Worklist};

/// An idempotent producer without sockets, clock and threads.
///
/// Every call brings `now`. After any call, [`poll`](Self::poll) until it gives `None`; then
/// [`transmit`](Self::transmit) to every connection that is writable and
/// [wants it](Self::wants_transmit), and call again no later than [`deadline`](Self::deadline) says.
///
/// ```
/// use candor_core::Instant;
/// use candor_proto::{Config, Output, Producer, Record};
///
/// let now = Instant::from_millis(1_700_000_000_000);
/// let mut producer: Producer = Producer::new(&Config::new(["localhost:9092"]), 1, now).unwrap();
/// let ticket = producer.append(now, now, Record::to("orders").key("42").value("created")).unwrap();
/// let Some(Output::Connect { address, .. }) = producer.poll(now) else { panic!() };
/// assert_eq!(address.to_string(), "localhost:9092");
/// assert_eq!(producer.poll(now), None);
/// assert!(producer.deadline().unwrap().at > now);
/// assert_eq!(&*producer.place(ticket).unwrap().0, "orders");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Producer<R: Rules = Honest> {
    clock: Clock,
    limits: Limits,
    terms: Terms,
    life: Life,
    connections: BTreeMap<Conn, Connection>,
    next_conn: u64,
    cluster: Cluster,
    router: Router,
    lanes: Lanes<R>,
    identities: Identities,
    tickets: Tickets,
    budget: Budget,
    doubts: Doubts,
    flushes: Flushes,
    /// Records with smaller tickets are due as soon as they are routed.
    due_before: Ticket,
    timers: Timers,
    /// Lanes that were told something, or whose time came.
    lanes_todo: LaneList,
    /// Everything else.
    todo: Worklist<Chore>,
    outbox: VecDeque<Output>,
    counts: Counts,
}

/// Time never goes back (D1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Clock {
    now: Instant,
    went_back: u64,
}

impl Clock {
    fn at(&mut self, now: Instant) -> Instant {
        if now < self.now {
            self.went_back += 1;
        }
        self.now = self.now.max(now);
        self.now
    }
}

/// Settings that no machine owns alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limits {
    deadline: Span,
    longest_deadline: Span,
    max_request: usize,
    auto_create_topics: bool,
}

/// Whether the producer goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Open,
    Closing { deadline: Instant },
    Closed,
}

/// Something that is to be looked at: `poll` does one after the other, and an idle `poll` none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Chore {
    /// A topic's unrouted records may be routed.
    Route(TopicKey),
    /// Records in unrouted queues are due.
    Unrouted,
    /// Lanes wait for a connection that may be opened.
    Dial(Endpoint),
    /// A connection's timers changed, or went off.
    Connection(Conn),
    /// Metadata may have to be asked for.
    Metadata,
    /// A producer id may have to be asked for.
    Identity,
    /// Verdicts were given: flushes may be over.
    Flushes,
    /// Reported unknowns may hold too much memory.
    Shed,
    /// Closing may be over.
    Close,
}

fn span(duration: Duration) -> Span {
    Span::from_micros(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
}

impl<R: Rules> Producer<R> {
    /// A producer that does nothing yet. All that looks random comes from `seed`.
    ///
    /// # Errors
    ///
    /// The configuration cannot work; the error says what to do.
    pub fn new(config: &Config, seed: u64, now: Instant) -> Result<Self, ConfigError> {
        config.check()?;
        let (first, longest) =
            (span(config.retry_backoff.first), span(config.retry_backoff.longest));
        let redial = Redial {
            first: span(config.reconnect_backoff.first),
            longest: span(config.reconnect_backoff.longest),
            seed: mix(seed, 1),
        };
        Ok(Self {
            clock: Clock { now, went_back: 0 },
            limits: Limits {
                deadline: span(config.deadline),
                longest_deadline: span(config.state_ttl),
                max_request: config.max_request_size,
                auto_create_topics: config.auto_create_topics,
            },
            terms: terms(config),
            life: Life::Open,
            connections: BTreeMap::new(),
            next_conn: 0,
            cluster: Cluster::new(
                Brokers::new(config.addresses()?, redial),
                Asks::new(Waits { first, longest, seed: mix(seed, 2) }),
                span(config.metadata_max_age),
                span(config.metadata_max_idle),
            ),
            router: Router::new(config.partitioning, config.batch_size, mix(seed, 3)),
            lanes: Lanes::new(lane_config(config), mix(seed, 4)),
            identities: Identities::new(first, longest, mix(seed, 5)),
            tickets: Tickets::default(),
            budget: Budget::new(config.memory),
            doubts: Doubts::default(),
            flushes: Flushes::new(),
            due_before: Ticket(0),
            timers: Timers::default(),
            lanes_todo: LaneList::default(),
            todo: Worklist::new(),
            outbox: VecDeque::new(),
            counts: Counts::default(),
        })
    }

    /// Takes a fact about a connection.
    ///
    /// # Errors
    ///
    /// The driver broke the contract; nothing changed.
    pub fn handle(&mut self, now: Instant, input: Input) -> Result<(), Misuse> {
        let now = self.clock.at(now);
        match input {
            Input::Connected { conn } => self.connected(conn),
            Input::Received { conn, bytes } => self.received(now, conn, bytes),
            Input::Sent { conn, n } => self.sent(now, conn, n),
            Input::Lost { conn, handed, why } => self.lost(now, conn, handed, why),
        }
    }

    /// The next order or message; `None` if there is none now. Only `poll` makes records expire.
    #[must_use]
    pub fn poll(&mut self, now: Instant) -> Option<Output> {
        let now = self.clock.at(now);
        loop {
            if let Some(output) = self.outbox.pop_front() {
                return Some(output);
            }
            if !self.step(now) {
                return None;
            }
        }
    }

    /// When to call `poll` again, at the latest. "Never" is `None`.
    pub fn deadline(&self) -> Option<Deadline> {
        let closed = self.life == Life::Closed;
        let idle = self.todo.is_empty() && self.lanes_todo.is_empty();
        if !self.outbox.is_empty() || !(closed || idle) {
            return Some(Deadline { at: self.clock.now, why: Wakeup::Connection });
        }
        if closed { None } else { self.timers.next() }
    }

    /// Appends up to `budget` bytes for this connection to `bufs`, and says how many. Call it when
    /// the connection is writable, and `poll` afterwards. Sequences are bound here, as late as
    /// possible: from here on what is in the bytes is in doubt.
    pub fn transmit(
        &mut self,
        now: Instant,
        conn: RouteId,
        budget: usize,
        bufs: &mut Vec<Bytes>,
    ) -> usize {
        let now = self.clock.at(now);
        self.offer(now, conn, budget);
        let Some(connection) = self.connections.get_mut(&conn) else { return 0 };
        let n = connection.take(now, budget, bufs);
        if n > 0 {
            self.todo.push(Chore::Connection(conn));
        }
        n
    }

    /// Whether `transmit` would give something for this connection now.
    pub fn wants_transmit(&self, conn: RouteId) -> bool {
        let now = self.clock.now;
        let wants = |connection: &Connection| {
            connection.waiting() > 0
                || (connection.may_produce::<R>(now, &self.terms) && self.lanes.has_ready(conn))
        };
        self.connections.get(&conn).is_some_and(wants)
    }

    /// Everything accepted so far is due; [`Output::Flushed`] comes when all of it has its verdict.
    pub fn flush(&mut self, now: Instant) -> FlushId {
        self.clock.at(now);
        self.all_is_due(|| Event::Flush);
        self.todo.push(Chore::Flushes);
        self.flushes.start(self.tickets.next())
    }

    /// Takes no more records. Everything accepted gets its verdict, and every `Unknown` its
    /// resolution, by `deadline`; then comes [`Output::Closed`]. A second call can only shorten it.
    pub fn close(&mut self, now: Instant, deadline: Instant) {
        let now = self.clock.at(now);
        let deadline = match self.life {
            Life::Open => deadline,
            Life::Closing { deadline: before } => before.min(deadline),
            Life::Closed => return,
        };
        self.life = Life::Closing { deadline };
        self.timers.set(crate::timers::Timer::Close, Some(deadline.max(now)), Wakeup::Close);
        for key in self.lanes.keys() {
            let topic = self.lanes.get(key).map(|slot| slot.topic);
            if topic.is_some_and(|topic| !self.router.holds(topic)) {
                self.close_lane(now, key, deadline);
            }
        }
        self.todo.push(Chore::Close);
    }

    /// Bytes that records may still take.
    pub fn room(&self) -> usize {
        let used = self.budget.used() + self.tickets.bytes_with_next();
        self.budget.limit().saturating_sub(used)
    }

    /// Topic and partition of a record that has not ended; no partition if it has none yet.
    pub fn place(&self, ticket: Ticket) -> Option<(Arc<str>, Option<i32>)> {
        match self.tickets.get(ticket)?.held {
            Held::Raw(topic) => Some((self.cluster.name(topic), None)),
            Held::Lane(key) | Held::Unknown(key) => {
                let slot = self.lanes.get(key)?;
                Some((self.cluster.name(slot.topic), Some(slot.partition)))
            }
        }
    }

    /// The leader that a partition's lane was told; `None` if nothing was ever sent there.
    pub fn leader(&self, topic: &str, partition: i32) -> Option<PartitionLeader> {
        let topic = self.cluster.find(topic)?;
        let slot = self.lanes.get(self.lanes.find(topic, partition)?)?;
        let (route, epoch) = slot.told;
        Some(PartitionLeader { route, epoch, changes: slot.tellings })
    }

    /// What happened so far, and what is going on.
    pub fn stats(&self) -> Stats {
        let connections = match self.life {
            Life::Open | Life::Closing { .. } => self.connections.len(),
            Life::Closed => 0,
        };
        Stats {
            counts: self.counts,
            waiting: self.flushes.waiting(),
            memory: self.budget.used() + self.tickets.bytes(),
            memory_limit: self.budget.limit(),
            partitions: self.lanes.len(),
            connections,
            clock_went_back: self.clock.went_back,
        }
    }

    /// Tells a lane something that it cannot refuse, and has it looked at.
    fn tell(&mut self, now: Instant, key: LaneKey, event: Event<'_, RecordBatch>) {
        let Some(slot) = self.lanes.get_mut(key) else { return };
        if slot.lane.handle(now, event).is_err() {
            self.counts.refused_by_lane += 1;
            debug_assert!(false, "a lane refused what the producer told it");
        }
        self.lanes_todo.push(key);
    }

    fn close_lane(&mut self, now: Instant, key: LaneKey, deadline: Instant) {
        self.tell(now, key, Event::Close { deadline });
    }

    /// Everything accepted so far is due, routed or not.
    fn all_is_due(&mut self, due: fn() -> Event<'static, RecordBatch>) {
        self.due_before = self.tickets.next();
        self.hurry(due);
    }

    /// Tells every lane in which something lingers that it is `due`.
    fn hurry(&mut self, due: fn() -> Event<'static, RecordBatch>) {
        let now = self.clock.now;
        while let Some(key) = self.lanes.lingering.pop() {
            self.tell(now, key, due());
        }
    }
}

fn terms(config: &Config) -> Terms {
    Terms {
        client_id: config.client_id.clone(),
        request_timeout: span(config.request_timeout),
        connect_timeout: span(config.connect_timeout),
        idle_timeout: span(config.idle_timeout),
        longest_redial: span(config.reconnect_backoff.longest),
        max_response: config.max_response_size,
        max_in_flight: config.max_in_flight,
        write_window: config.write_window,
    }
}

fn lane_config(config: &Config) -> LaneConfig {
    LaneConfig {
        linger: span(config.linger),
        batch_size: config.batch_size,
        backoff: span(config.retry_backoff.first),
        backoff_max: span(config.retry_backoff.longest),
        jitter: None,
        state_ttl: span(config.state_ttl),
        on_data_loss: config.on_data_loss,
        beyond_memory: config.beyond_memory,
        trust_base_offset: config.trust_base_offset,
    }
}
