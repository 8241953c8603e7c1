//! A producer, a small cluster, and virtual time between them.

#![allow(clippy::unwrap_used, clippy::panic, dead_code)]
#![allow(unreachable_pub, reason = "shared by several test crates")]

pub mod broker;
pub mod scenarios;
#[path = "../speech/mod.rs"]
mod speech;

use std::collections::{BTreeMap, BTreeSet};

pub use broker::{Cluster, Script};
use bytes::{Bytes, BytesMut};
use candor_core::rules::{Honest, Rules};
use candor_core::{Instant, Resolution, RouteId, Span, Ticket, Verdict};
use candor_proto::{
    Address, Config, Fault, FlushId, Handed, Input, Loss, Notice, Output, Producer, Record,
};

pub const START: Instant = Instant::from_millis(1_700_000_000_000);

pub fn ms(milliseconds: u64) -> Span {
    Span::from_millis(milliseconds)
}

/// One connection as the driver sees it.
pub struct Link {
    pub address: Address,
    /// Bytes that the broker did not handle yet.
    inbox: BytesMut,
    up: bool,
    /// Bytes taken from the producer.
    pub taken: u64,
    /// Bytes handed to the transport.
    pub handed: u64,
}

impl Link {
    /// The broker never hears of what it was sent and did not handle.
    pub fn forget_requests(&mut self) {
        self.inbox.clear();
    }
}

/// Everything.
pub struct World<R: Rules = Honest> {
    pub producer: Producer<R>,
    pub now: Instant,
    pub cluster: Cluster,
    pub links: BTreeMap<RouteId, Link>,
    /// Hosts that refuse connections.
    pub down: BTreeSet<String>,
    /// Hosts that let a connection hang.
    pub hung: BTreeSet<String>,
    /// Hosts that accept, and then say nothing.
    pub mute: BTreeSet<String>,
    /// Hosts whose transport takes no bytes.
    pub stuck: BTreeSet<String>,
    /// The driver never reports what was sent.
    pub forgets_sent: bool,
    /// Bytes that a transport takes at a time, and gives at a time.
    pub chunk: usize,
    pub verdicts: BTreeMap<Ticket, (Instant, Verdict)>,
    pub resolutions: BTreeMap<Ticket, (Instant, Resolution)>,
    pub notices: Vec<Notice>,
    pub flushed: Vec<FlushId>,
    pub connects: Vec<(Instant, String)>,
    pub closed: Option<Instant>,
    pub polls: u64,
}

pub fn config() -> Config {
    Config::new(["seed:9092"]).linger(core::time::Duration::ZERO)
}

impl World {
    pub fn new(config: &Config, cluster: Cluster) -> Self {
        Self::under(config, cluster)
    }
}

impl<R: Rules> World<R> {
    /// A world in which topic `t` was used already: leaders, id and gate are there.
    pub fn warm(config: &Config, cluster: Cluster) -> Self {
        let mut world = Self::under(config, cluster);
        let ticket = world.say("warm");
        world.settle();
        world.assert_offset(ticket, 0);
        world.cluster.seen.clear();
        world.notices.clear();
        world
    }

    /// Why connections failed, in the order in which it was told.
    pub fn faults(&self) -> Vec<&Fault> {
        let why = self.notices.iter().filter_map(|notice| match notice {
            Notice::ConnectionFailed { why, .. } => Some(why),
            Notice::Partition { .. }
            | Notice::NoProducerId { .. }
            | Notice::TopicRefused { .. }
            | Notice::TopicRecreated { .. } => None,
        });
        why.collect()
    }

    /// A world whose producer decides so.
    pub fn under(config: &Config, cluster: Cluster) -> Self {
        Self {
            producer: Producer::new(config, 42, START).unwrap(),
            now: START,
            cluster,
            links: BTreeMap::new(),
            down: BTreeSet::new(),
            hung: BTreeSet::new(),
            mute: BTreeSet::new(),
            stuck: BTreeSet::new(),
            forgets_sent: false,
            chunk: 64 * 1024,
            verdicts: BTreeMap::new(),
            resolutions: BTreeMap::new(),
            notices: Vec::new(),
            flushed: Vec::new(),
            connects: Vec::new(),
            closed: None,
            polls: 0,
        }
    }

    pub fn send(&mut self, record: Record<'_>) -> Ticket {
        self.producer.append(self.now, self.now, record).unwrap()
    }

    /// A record with this value for partition 0 of topic `t`.
    pub fn say(&mut self, value: &str) -> Ticket {
        self.send(Record::to("t").partition(0).value(value))
    }

    pub fn after(&self, milliseconds: u64) -> Instant {
        self.now + ms(milliseconds)
    }

    /// Lets time pass, handling everything that is due on the way.
    pub fn run(&mut self, span: Span) {
        let end = self.now + span;
        loop {
            self.settle();
            match self.producer.deadline() {
                Some(deadline) if deadline.at <= end => self.now = deadline.at,
                Some(_) | None => break,
            }
        }
        self.now = end;
        self.settle();
    }

    /// Runs until every record has its verdict.
    pub fn run_until_told(&mut self, tickets: &[Ticket]) {
        for _ in 0..100_000 {
            self.settle();
            if tickets.iter().all(|ticket| self.verdicts.contains_key(ticket)) {
                return;
            }
            let deadline = self.producer.deadline();
            self.now = deadline.unwrap_or_else(|| panic!("nothing is to come")).at;
        }
        panic!("no verdict in 100,000 steps");
    }

    pub fn verdict(&self, ticket: Ticket) -> Option<Verdict> {
        self.verdicts.get(&ticket).map(|(_, verdict)| *verdict)
    }

    #[track_caller]
    pub fn assert_offset(&self, ticket: Ticket, expected: i64) {
        match self.verdict(ticket) {
            Some(Verdict::Delivered { offset: Some(offset) }) => assert_eq!(offset.get(), expected),
            other => panic!("{ticket} at {expected}: {other:?}"),
        }
    }

    /// Does everything that can be done without time passing.
    pub fn settle(&mut self) {
        for _ in 0..1_000_000 {
            let polled = self.poll_all();
            let written = self.write_all();
            let answered = self.answer_all();
            if !(polled || written || answered) {
                return;
            }
        }
        panic!("a busy loop");
    }

    pub fn poll_all(&mut self) -> bool {
        let mut some = false;
        loop {
            self.polls += 1;
            match self.producer.poll(self.now) {
                Some(output) => self.obey(output),
                None => break,
            }
            some = true;
        }
        let deadline = self.producer.deadline();
        assert!(deadline.is_none_or(|deadline| deadline.at > self.now), "{deadline:?}");
        some
    }

    fn obey(&mut self, output: Output) {
        assert_eq!(self.closed, None, "{output:?} after Closed");
        match output {
            Output::Connect { conn, address } => {
                let host = address.host().to_owned();
                self.connects.push((self.now, host.clone()));
                let link = Link { address, inbox: BytesMut::new(), up: false, taken: 0, handed: 0 };
                self.links.insert(conn, link);
                if self.down.contains(&host) {
                    self.lose(conn, Loss::Refused);
                } else if !self.hung.contains(&host) {
                    self.links.get_mut(&conn).unwrap().up = true;
                    self.producer.handle(self.now, Input::Connected { conn }).unwrap();
                }
            }
            Output::Disconnect { conn, .. } => self.lose(conn, Loss::Asked),
            Output::Settled(settlement) => {
                for (ticket, verdict) in settlement.settled.verdicts() {
                    let before = self.verdicts.insert(ticket, (self.now, verdict));
                    assert_eq!(before, None, "a second verdict for {ticket}");
                }
                for (ticket, resolution) in settlement.settled.resolutions() {
                    assert!(matches!(self.verdict(ticket), Some(Verdict::Unknown(_))));
                    let before = self.resolutions.insert(ticket, (self.now, resolution));
                    assert_eq!(before, None, "a second resolution for {ticket}");
                }
            }
            Output::Notice(notice) => self.notices.push(notice),
            Output::Flushed(id) => self.flushed.push(id),
            Output::Closed => self.closed = Some(self.now),
        }
    }

    /// The connection is over, with everything taken handed over, unless the transport was stuck.
    pub fn lose(&mut self, conn: RouteId, why: Loss) {
        // A connection may be lost while the order to close it is on its way.
        let Some(link) = self.links.remove(&conn) else { return };
        let handed = Handed::AtMost(link.handed);
        self.producer.handle(self.now, Input::Lost { conn, handed, why }).unwrap();
    }

    /// Cuts every connection to a host.
    pub fn cut(&mut self, host: &str) {
        for conn in self.conns(host) {
            self.lose(conn, Loss::Broken);
        }
    }

    pub fn conns(&self, host: &str) -> Vec<RouteId> {
        let to_host = self.links.iter().filter(|(_, link)| link.address.host() == host);
        to_host.map(|(conn, _)| *conn).collect()
    }

    pub fn write_all(&mut self) -> bool {
        let mut some = false;
        for (conn, link) in &mut self.links {
            if !link.up || !self.producer.wants_transmit(*conn) {
                continue;
            }
            let mut bufs: Vec<Bytes> = Vec::new();
            let n = self.producer.transmit(self.now, *conn, self.chunk, &mut bufs);
            assert_eq!(n, bufs.iter().map(Bytes::len).sum::<usize>());
            if n == 0 {
                continue;
            }
            link.taken += n as u64;
            if !self.stuck.contains(link.address.host()) {
                bufs.iter().for_each(|bytes| link.inbox.extend_from_slice(bytes));
                link.handed += n as u64;
                if !self.forgets_sent {
                    self.producer.handle(self.now, Input::Sent { conn: *conn, n }).unwrap();
                }
            }
            some = true;
        }
        some
    }

    pub fn answer_all(&mut self) -> bool {
        let mut some = false;
        let conns: Vec<_> = self.links.keys().copied().collect();
        for conn in conns {
            while self.answer_one(conn) {
                some = true;
            }
        }
        some
    }

    /// Has the broker handle one request of this connection.
    pub fn answer_one(&mut self, conn: RouteId) -> bool {
        let Some((node, request)) = self.next_request(conn) else { return false };
        let reaction = self.cluster.handle(node, request);
        for bytes in reaction.reply.iter().flat_map(|reply| reply.chunks(self.chunk)) {
            let bytes = Bytes::copy_from_slice(bytes);
            self.producer.handle(self.now, Input::Received { conn, bytes }).unwrap();
        }
        if reaction.cut {
            self.lose(conn, Loss::Broken);
        }
        true
    }

    fn next_request(&mut self, conn: RouteId) -> Option<(i32, Bytes)> {
        let link = self.links.get_mut(&conn)?;
        let host = link.address.host().to_owned();
        if self.mute.contains(&host) {
            return None;
        }
        let frame = candor_wire::split_frame(&mut link.inbox, 1 << 30).unwrap()?;
        let node = host.strip_prefix('b').and_then(|node| node.parse().ok());
        Some((node.unwrap_or(self.cluster.nodes[0]), frame))
    }
}
