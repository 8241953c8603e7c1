//! A producer, a peer that behaves until it is told not to, and a meter on what the producer holds.

use std::alloc::System;
use std::collections::{BTreeMap, VecDeque};

use bytes::{Bytes, BytesMut};
use candor_core::{Instant, RouteId, Span};
use candor_fuzz_bodies::next_request;
use candor_proto::{Config, Fault, Handed, Input, Loss, Notice, Output, Producer, Record};
use candor_sim::codec::{
    API_VERSIONS, ApiVersionsResponse, Endpoint, INIT_PRODUCER_ID, InitProducerIdResponse,
    METADATA, MetadataPartition, MetadataResponse, MetadataTopic, PRODUCE, Request, RequestHeader,
    VersionRange,
};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static COUNTED: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// What a producer may hold without having received anything, in bytes.
const FREE: isize = 64 << 10;

/// Bytes that it may hold for every byte received.
const FACTOR: isize = 4;

const START: Instant = Instant::from_millis(1_700_000_000_000);

/// What the producer is waiting for when the peer turns hostile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Greeting,
    Metadata,
    Identity,
    Produce,
}

impl Stage {
    const fn api(self) -> i16 {
        match self {
            Self::Greeting => API_VERSIONS,
            Self::Metadata => METADATA,
            Self::Identity => INIT_PRODUCER_ID,
            Self::Produce => PRODUCE,
        }
    }
}

/// Highest versions that the peer speaks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Speaks {
    pub(crate) produce: i16,
    pub(crate) metadata: i16,
    pub(crate) identity: i16,
}

impl Speaks {
    /// The newest of all.
    pub(crate) const NEWEST: Self = Self { produce: 13, metadata: 13, identity: 5 };
    /// Versions without tags.
    pub(crate) const OLD: Self = Self { produce: 3, metadata: 1, identity: 0 };
}

/// Counts what the producer allocates and frees, and nothing else.
#[derive(Debug, Default)]
struct Meter {
    /// Whether the peer is hostile by now.
    on: bool,
    live: isize,
    received: isize,
    /// The most that was held at once, from above: what was held before a call and all that the
    /// call allocated.
    highest: isize,
    /// The same, less what is allowed by the bytes received until then.
    excess: isize,
}

impl Meter {
    fn run<T>(&mut self, call: impl FnOnce() -> T) -> T {
        let before = COUNTED.stats();
        let result = call();
        let after = COUNTED.stats();
        if self.on {
            let gained = (after.bytes_allocated - before.bytes_allocated) as isize;
            let freed = (after.bytes_deallocated - before.bytes_deallocated) as isize;
            self.highest = self.highest.max(self.live + gained);
            self.excess = self.excess.max(self.live + gained - FACTOR * self.received - FREE);
            self.live += gained - freed;
        }
        result
    }
}

#[derive(Default)]
struct Line {
    inbox: BytesMut,
    asked: VecDeque<(RequestHeader, Request)>,
}

/// What a hostile stream cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    pub(crate) received: isize,
    pub(crate) highest: isize,
    pub(crate) left: isize,
    /// By how much it is above what is allowed; not above 0 if it is not.
    pub(crate) excess: isize,
}

pub(crate) struct Peer {
    producer: Producer,
    now: Instant,
    speaks: Speaks,
    lines: BTreeMap<RouteId, Line>,
    meter: Meter,
    scratch: Vec<u8>,
    pub(crate) faults: Vec<Fault>,
}

impl Peer {
    /// Two records for different partitions, and a peer that answers until `stage` is reached.
    pub(crate) fn at(stage: Stage, speaks: Speaks) -> Self {
        let config = Config::new(["b1:9092"]).client_id("growth");
        let mut peer = Self {
            producer: Producer::new(&config, 7, START).expect("it can work"),
            now: START,
            speaks,
            lines: BTreeMap::new(),
            meter: Meter::default(),
            scratch: Vec::with_capacity(1 << 20),
            faults: Vec::with_capacity(64),
        };
        peer.append();
        for _ in 0..1_000 {
            peer.settle();
            if peer.line_at(stage).is_some() {
                return peer;
            }
            if !peer.answer_one() {
                peer.now = peer.producer.deadline().expect("it has work").at;
            }
        }
        panic!("{stage:?} is never reached");
    }

    /// A record for each of two partitions.
    fn append(&mut self) {
        let Self { meter, producer, now, .. } = self;
        for partition in [0, 1] {
            meter.run(|| {
                let record = Record::to("t").partition(partition).value("v");
                producer.append(*now, *now, record).map(|_| ()).expect("there is room");
            });
        }
    }

    /// From now on every byte counts.
    pub(crate) fn turn_hostile(&mut self) {
        self.meter.on = true;
    }

    /// The connection whose oldest request is of that stage.
    pub(crate) fn line_at(&self, stage: Stage) -> Option<RouteId> {
        let at = |line: &Line| line.asked.front().is_some_and(|(h, _)| h.api == stage.api());
        self.lines.iter().find(|(_, line)| at(line)).map(|(conn, _)| *conn)
    }

    /// The oldest request of a connection.
    pub(crate) fn take_request(&mut self, conn: RouteId) -> RequestHeader {
        let line = self.lines.get_mut(&conn).expect("the connection is there");
        line.asked.pop_front().expect("something was asked").0
    }

    /// Bytes arrive, so many at a time.
    pub(crate) fn send(&mut self, conn: RouteId, bytes: &[u8], chunk: usize) {
        for chunk in bytes.chunks(chunk) {
            if !self.lines.contains_key(&conn) {
                return;
            }
            self.meter.received += chunk.len() as isize;
            let Self { meter, producer, now, .. } = self;
            meter.run(|| {
                let bytes = Bytes::copy_from_slice(chunk);
                producer.handle(*now, Input::Received { conn, bytes }).expect("a legal call");
            });
            self.settle();
        }
    }

    pub(crate) fn lose(&mut self, conn: RouteId) {
        if self.lines.remove(&conn).is_some() {
            let input = Input::Lost { conn, handed: Handed::Unknown, why: Loss::Broken };
            let Self { meter, producer, now, .. } = self;
            meter.run(|| producer.handle(*now, input).expect("a legal call"));
        }
    }

    /// Time passes until the producer asks for `stage`, being answered whatever else it asks.
    pub(crate) fn until(&mut self, stage: Stage) -> RouteId {
        for _ in 0..200 {
            if self.producer.stats().waiting == 0 {
                self.append();
            }
            self.settle();
            if let Some(conn) = self.line_at(stage) {
                return conn;
            }
            if !self.answer_one() {
                let deadline = self.producer.deadline().expect("it has work");
                self.now = self.now.max(deadline.at) + Span::from_millis(1);
            }
        }
        panic!("{stage:?} is never reached again");
    }

    pub(crate) fn cost(&self) -> Cost {
        let Meter { live, received, highest, excess, .. } = self.meter;
        Cost { received, highest, left: live, excess }
    }

    /// Everything that happens without the peer.
    fn settle(&mut self) {
        for _ in 0..10_000 {
            let Self { meter, producer, now, faults, .. } = self;
            let order = meter.run(|| match producer.poll(*now)? {
                Output::Connect { conn, .. } => Some(Order::Connect(conn)),
                Output::Disconnect { conn, .. } => Some(Order::Disconnect(conn)),
                Output::Notice(Notice::ConnectionFailed { why, .. }) => Some(Order::Fault(why)),
                Output::Notice(_) | Output::Settled(_) | Output::Flushed(_) | Output::Closed => {
                    Some(Order::Nothing)
                }
            });
            match order {
                None => break,
                Some(Order::Nothing) => {}
                Some(Order::Fault(why)) => {
                    if faults.len() < faults.capacity() {
                        faults.push(why);
                    }
                }
                Some(Order::Connect(conn)) => {
                    self.lines.insert(conn, Line::default());
                    self.handle(Input::Connected { conn });
                }
                Some(Order::Disconnect(conn)) => {
                    self.lines.remove(&conn);
                    let handed = Handed::Unknown;
                    self.handle(Input::Lost { conn, handed, why: Loss::Asked });
                }
            }
        }
        self.transmit();
    }

    fn handle(&mut self, input: Input) {
        let Self { meter, producer, now, .. } = self;
        meter.run(|| producer.handle(*now, input).expect("a legal call"));
    }

    fn transmit(&mut self) {
        let Self { meter, producer, now, lines, scratch, .. } = self;
        for (conn, line) in lines {
            scratch.clear();
            let n = meter.run(|| {
                let mut bufs = Vec::new();
                let n = producer.transmit(*now, *conn, 1 << 20, &mut bufs);
                bufs.iter().for_each(|bytes| scratch.extend_from_slice(bytes));
                n
            });
            if n > 0 {
                meter.run(|| producer.handle(*now, Input::Sent { conn: *conn, n })).expect("legal");
                line.inbox.extend_from_slice(scratch);
                line.asked.extend(core::iter::from_fn(|| next_request(&mut line.inbox)));
            }
        }
    }

    /// Answers one request, of whatever kind but Produce, as it should be.
    fn answer_one(&mut self) -> bool {
        let asked = |line: &Line| line.asked.front().is_some_and(|(h, _)| h.api != PRODUCE);
        let Some((conn, _)) = self.lines.iter().find(|(_, line)| asked(line)) else { return false };
        let conn = *conn;
        let header = self.take_request(conn);
        let version = header.version;
        let body = match header.api {
            API_VERSIONS => versions(self.speaks).encode(version),
            METADATA => topic(2, 5, [9; 16]).encode(version),
            _ => InitProducerIdResponse { error: 0, producer_id: 4_000, producer_epoch: 0 }
                .encode(version),
        };
        self.send(conn, &header.answer(&body), usize::MAX);
        true
    }
}

enum Order {
    Nothing,
    Connect(RouteId),
    Disconnect(RouteId),
    Fault(Fault),
}

/// What the peer speaks.
pub(crate) fn versions(speaks: Speaks) -> ApiVersionsResponse {
    let range = |api, max| VersionRange { api, min: 0, max };
    let apis = vec![
        range(PRODUCE, speaks.produce),
        range(METADATA, speaks.metadata),
        range(API_VERSIONS, 4),
        range(INIT_PRODUCER_ID, speaks.identity),
    ];
    ApiVersionsResponse { apis, ..ApiVersionsResponse::refused(0) }
}

/// The topic `t` with so many partitions, all led by broker 1.
pub(crate) fn topic(partitions: i32, epoch: i32, id: [u8; 16]) -> MetadataResponse {
    let partition = |index| MetadataPartition {
        error: 0,
        index,
        leader: 1,
        leader_epoch: epoch,
        replicas: vec![],
        isr: vec![],
        offline: vec![],
    };
    MetadataResponse {
        brokers: vec![Endpoint { node: 1, host: "b1".to_owned(), port: 9092, rack: None }],
        cluster_id: None,
        controller: 1,
        topics: vec![MetadataTopic {
            error: 0,
            name: Some("t".to_owned()),
            id,
            partitions: (0..partitions).map(partition).collect(),
        }],
        error: 0,
    }
}
