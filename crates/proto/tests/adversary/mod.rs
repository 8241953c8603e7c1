//! A producer among truthful brokers, a network that delays, and a driver that may be slow; and a
//! ledger that is kept apart from all of them.

#![allow(unreachable_pub, reason = "a test's own helpers")]

pub mod cluster;
pub mod judge;
pub mod log;
#[path = "../speech/mod.rs"]
mod speech;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::{Bytes, BytesMut};
use candor_core::{Instant, Resolution, RouteId, Ticket, Verdict};
use candor_proto::{Config, FlushId, Handed, Input, Loss, Notice, Output, Producer, Record};

use cluster::{Channel, Cluster, NODES};

pub const START: u64 = 1_700_000_000_000_000;

/// One connection, seen from between.
#[derive(Debug, Default)]
pub struct Link {
    pub node: i32,
    up: bool,
    /// Given by the producer, not handed to the transport yet.
    held: BytesMut,
    handed: u64,
    /// Handed over, and no whole frame yet.
    partial: BytesMut,
    channel: Channel,
    /// Answers on their way back.
    back: VecDeque<Bytes>,
    unreported: usize,
}

impl Link {
    /// Nothing is on its way to the broker.
    pub fn is_quiet(&self) -> bool {
        self.held.is_empty() && self.channel.requests.is_empty()
    }
}

/// A record, as its sender sees it.
#[derive(Debug)]
pub struct Sent {
    pub topic: &'static str,
    /// Asked for, or chosen.
    pub partition: Option<i32>,
    pub deadline: u64,
    pub verdict: Option<(u64, Verdict)>,
    pub resolution: Option<Resolution>,
}

pub struct World {
    pub producer: Producer,
    pub now: u64,
    pub cluster: Cluster,
    pub links: BTreeMap<RouteId, Link>,
    /// Requests whose connection is gone, and that may still be processed.
    pub ghosts: Vec<Channel>,
    pub sent: BTreeMap<Ticket, Sent>,
    due: BTreeSet<(u64, Ticket)>,
    pub down: BTreeSet<i32>,
    pub hung: BTreeSet<i32>,
    pub mute: BTreeSet<i32>,
    /// Nodes to which nothing is handed over.
    pub stuck: BTreeSet<i32>,
    /// The driver reports what was sent.
    pub reports: bool,
    pub flushes: BTreeMap<FlushId, u64>,
    pub flushed: BTreeSet<FlushId>,
    pub notices: Vec<Notice>,
    pub closing: Option<u64>,
    pub closed: Option<u64>,
    facts: VecDeque<Input>,
    /// The clock goes back so far at the next poll.
    pub clock_back: u64,
    /// D6: offsets of verdicts ascend; not where a topic is made anew.
    pub ascend: bool,
    last_offsets: BTreeMap<(String, Option<i32>), i64>,
    memory: usize,
    pub polls: u64,
}

impl World {
    pub fn new(config: &Config, memory: usize, cluster: Cluster) -> Self {
        Self {
            producer: Producer::new(config, 11, Instant::from_micros(START)).unwrap(),
            now: START,
            cluster,
            links: BTreeMap::new(),
            ghosts: Vec::new(),
            sent: BTreeMap::new(),
            due: BTreeSet::new(),
            down: BTreeSet::new(),
            hung: BTreeSet::new(),
            mute: BTreeSet::new(),
            stuck: BTreeSet::new(),
            reports: true,
            flushes: BTreeMap::new(),
            flushed: BTreeSet::new(),
            notices: Vec::new(),
            closing: None,
            closed: None,
            facts: VecDeque::new(),
            clock_back: 0,
            ascend: true,
            last_offsets: BTreeMap::new(),
            memory,
            polls: 0,
        }
    }

    pub fn at(&self) -> Instant {
        Instant::from_micros(self.now)
    }

    pub fn send(
        &mut self,
        topic: &'static str,
        partition: Option<i32>,
        within: u64,
        stamp: Option<i64>,
        size: usize,
    ) -> Option<Ticket> {
        let name = self.producer.stats().counts.accepted;
        let value = format!("{name:.<size$}");
        let deadline = core::time::Duration::from_micros(within);
        let mut record = Record::to(topic).deadline(deadline).value(value);
        if let Some(partition) = partition {
            record = record.partition(partition as u32);
        }
        if let Some(stamp) = stamp {
            record = record.timestamp(stamp);
        }
        let deadline = self.producer.deadline_of(self.at(), &record).as_micros();
        let ticket = self.producer.append(self.at(), self.at(), record).ok()?;
        assert_eq!(ticket.0, name, "tickets are dense");
        let record = Sent { topic, partition, deadline, verdict: None, resolution: None };
        self.sent.insert(ticket, record);
        self.due.insert((deadline, ticket));
        Some(ticket)
    }

    pub fn cancel(&mut self, ticket: Ticket) {
        self.producer.cancel(self.at(), ticket);
        self.is_due(ticket);
    }

    pub fn revoke(&mut self, ticket: Ticket) {
        if self.producer.revoke(self.at(), ticket).is_ok() {
            self.is_due(ticket);
        }
    }

    fn is_due(&mut self, ticket: Ticket) {
        let Some(sent) = self.sent.get_mut(&ticket).filter(|it| it.verdict.is_none()) else {
            return;
        };
        self.due.remove(&(sent.deadline, ticket));
        sent.deadline = sent.deadline.min(self.now);
        self.due.insert((sent.deadline, ticket));
    }

    pub fn close(&mut self, within: u64) {
        let deadline = self.now.saturating_add(within);
        self.producer.close(self.at(), Instant::from_micros(deadline));
        self.closing = Some(self.closing.unwrap_or(u64::MAX).min(deadline));
    }

    // ---- the driver -------------------------------------------------------------------------------

    /// Takes everything that the producer says now. Whether it said something.
    pub fn poll(&mut self) -> bool {
        let mut some = false;
        let now = Instant::from_micros(self.now - core::mem::take(&mut self.clock_back));
        while let Some(output) = self.producer.poll(now).or_else(|| self.producer.poll(self.at())) {
            self.polls += 1;
            some = true;
            self.obey(output);
        }
        self.polls += 1;
        let overdue = self.due.first().filter(|(at, _)| *at <= self.now);
        assert_eq!(overdue, None, "no verdict by the first poll at {}", self.now);
        let over = self.closing.is_some_and(|at| at <= self.now);
        assert!(!over || self.closed.is_some(), "not closed in time");
        if self.closing.is_some() && self.closed.is_none() {
            let open = |sent: &Sent| match sent.verdict {
                Some((_, Verdict::Unknown(_))) => sent.resolution.is_none(),
                verdict => verdict.is_none(),
            };
            assert!(self.sent.values().any(open), "everything was told, and it is not closed");
        }
        let stats = self.producer.stats();
        assert!(stats.memory <= self.memory, "{} bytes", stats.memory);
        let wake = self.producer.deadline().map(|deadline| deadline.at.as_micros());
        assert!(wake.is_none_or(|at| at > self.now), "wants to be polled again at once");
        let next = self.due.first().map(|(at, _)| *at).into_iter().chain(self.closing).min();
        if self.closed.is_none()
            && let Some(next) = next
        {
            assert!(wake.is_some_and(|at| at <= next), "asleep till {wake:?}, due at {next}");
        }
        some
    }

    fn obey(&mut self, output: Output) {
        assert_eq!(self.closed, None, "{output:?} after Closed");
        match output {
            Output::Connect { conn, address } => {
                let host = address.host().to_owned();
                let node: i32 = host.strip_prefix('b').unwrap().parse().unwrap();
                let channel = Channel::new(node, VecDeque::new());
                self.links.insert(conn, Link { node, channel, ..Link::default() });
                if self.down.contains(&node) {
                    self.lose(conn, Handed::AtMost(0), Loss::Refused, false);
                } else if !self.hung.contains(&node) {
                    self.links.get_mut(&conn).unwrap().up = true;
                    self.facts.push_back(Input::Connected { conn });
                }
            }
            Output::Disconnect { conn, .. } => {
                let Some(link) = self.links.get(&conn) else { return };
                let handed = Handed::AtMost(link.handed);
                self.lose(conn, handed, Loss::Asked, true);
            }
            Output::Settled(told) => self.hear(&told.topic, told.partition, &told.settled),
            Output::Notice(notice) => self.notices.push(notice),
            Output::Flushed(id) => {
                let end = self.flushes[&id];
                let open = self.sent.iter().find(|(t, it)| t.0 < end && it.verdict.is_none());
                assert!(open.is_none(), "flushed before {open:?}");
                assert!(self.flushed.insert(id), "flushed twice");
            }
            Output::Closed => self.closed = Some(self.now),
        }
    }

    fn hear(&mut self, topic: &str, place: Option<i32>, settled: &candor_core::Settled) {
        for (ticket, verdict) in settled.verdicts() {
            let sent = self.sent.get_mut(&ticket).unwrap();
            assert_eq!(sent.verdict, None, "a second verdict for {ticket}");
            assert!(
                sent.topic == topic
                    && (place.is_none() || sent.partition.is_none_or(|it| place == Some(it)))
            );
            sent.partition = sent.partition.or(place);
            sent.verdict = Some((self.now, verdict));
            if let Verdict::Delivered { offset: Some(offset) } = verdict {
                let before = self.last_offsets.insert((topic.to_owned(), place), offset.get());
                let ascends = before.is_none_or(|it| it < offset.get());
                assert!(ascends || !self.ascend, "{ticket} at {offset} behind {before:?}");
            }
            self.due.remove(&(sent.deadline, ticket));
        }
        for (ticket, resolution) in settled.resolutions() {
            let sent = self.sent.get_mut(&ticket).unwrap();
            assert!(matches!(sent.verdict, Some((_, Verdict::Unknown(_)))), "{ticket}");
            assert_eq!(sent.resolution, None, "a second resolution for {ticket}");
            assert!(sent.topic == topic && sent.partition == place, "{ticket}");
            sent.resolution = Some(resolution);
        }
    }

    /// A connection is over. What was handed over may still arrive, if it `haunts`.
    pub fn lose(&mut self, conn: RouteId, handed: Handed, why: Loss, haunts: bool) {
        let Some(link) = self.links.remove(&conn) else { return };
        if haunts {
            self.ghosts.push(link.channel);
        }
        // What was said of it before comes before.
        self.facts.push_back(Input::Lost { conn, handed, why });
    }

    pub fn cut(&mut self, node: i32, haunts: bool, knows: bool) {
        let ours = self.links.iter().filter(|(_, link)| link.node == node);
        let conns: Vec<_> = ours.map(|(conn, link)| (*conn, link.handed)).collect();
        for (conn, handed) in conns {
            let handed = if knows { Handed::AtMost(handed) } else { Handed::Unknown };
            self.lose(conn, handed, Loss::Broken, haunts);
        }
    }

    fn tell(&mut self) -> bool {
        let some = !self.facts.is_empty();
        while let Some(fact) = self.facts.pop_front() {
            self.producer.handle(self.at(), fact).unwrap();
        }
        some
    }

    /// Takes bytes from the producer and hands them to the network, so many at most.
    fn write(&mut self, conn: RouteId, most: usize) -> bool {
        let at = self.at();
        let Some(link) = self.links.get_mut(&conn).filter(|link| link.up) else { return false };
        let mut taken = 0;
        if self.producer.wants_transmit(conn) {
            let mut bufs: Vec<Bytes> = Vec::new();
            taken = self.producer.transmit(at, conn, most, &mut bufs);
            bufs.iter().for_each(|bytes| link.held.extend_from_slice(bytes));
        }
        if self.stuck.contains(&link.node) {
            return taken > 0;
        }
        let n = link.held.len().min(most);
        link.partial.extend_from_slice(&link.held.split_to(n));
        link.handed += n as u64;
        link.unreported += n;
        while let Some(frame) = candor_wire::split_frame(&mut link.partial, 1 << 30).unwrap() {
            link.channel.requests.push_back(frame);
        }
        if self.reports && link.unreported > 0 {
            let n = core::mem::take(&mut link.unreported);
            self.facts.push_back(Input::Sent { conn, n });
        }
        taken + n > 0
    }

    /// Has the broker look at this connection once, and brings one of its answers back.
    fn answer(&mut self, conn: RouteId) -> bool {
        let Some(link) = self.links.get_mut(&conn) else { return false };
        if self.mute.contains(&link.node) {
            return false;
        }
        let before = link.channel.requests.len();
        let reply = self.cluster.process(&mut link.channel, self.now);
        let some = link.channel.requests.len() != before;
        link.back.extend(reply);
        match link.back.pop_front() {
            Some(bytes) => {
                self.facts.push_back(Input::Received { conn, bytes });
                true
            }
            None => some,
        }
    }

    /// One round of everything: whether something moved.
    pub fn round(&mut self, most: usize) -> bool {
        let mut some = self.tell();
        some |= self.poll();
        let conns: Vec<_> = self.links.keys().copied().collect();
        for conn in conns {
            some |= self.write(conn, most);
            some |= self.answer(conn);
        }
        some
    }

    /// So many rounds at most, and what is due is said.
    pub fn pump(&mut self, rounds: usize, most: usize) {
        for _ in 0..rounds {
            if !self.round(most) {
                return;
            }
        }
        assert!(
            rounds < 100_000,
            "a busy loop: {:?} {:?} {:?}",
            self.cluster.requests,
            self.producer.stats(),
            self.links
        );
    }

    pub fn settle(&mut self) {
        self.pump(100_000, 1 << 20);
    }

    /// Everything up to then happens in its time.
    pub fn run(&mut self, span: u64) {
        let end = self.now + span;
        loop {
            self.settle();
            let brokers = self.links.values().filter_map(|link| link.channel.due());
            let wake = self.producer.deadline().map(|deadline| deadline.at.as_micros());
            match brokers.chain(wake).filter(|at| *at > self.now).min() {
                Some(at) if at <= end => self.now = at,
                Some(_) | None => break,
            }
        }
        self.now = end;
        self.settle();
    }

    /// A request of the past arrives after all; or never.
    pub fn haunt(&mut self, which: usize, arrives: bool) {
        if self.ghosts.is_empty() {
            return;
        }
        let at = which % self.ghosts.len();
        let mut ghost = self.ghosts.swap_remove(at);
        if arrives && self.cluster.process(&mut ghost, self.now).is_none() {
            // It waits for followers; nobody waits for its answer.
            self.cluster.replicate();
        }
        if arrives && !ghost.requests.is_empty() {
            let node = ghost.node;
            let requests = ghost.requests;
            self.ghosts.push(Channel::new(node, requests));
        }
    }

    pub fn heal(&mut self) {
        self.down.clear();
        self.hung.clear();
        self.mute.clear();
        self.stuck.clear();
        self.cluster.stale.clear();
        self.cluster.forgetful.clear();
        self.cluster.trouble.clear();
        self.cluster.topic_errors.clear();
        self.cluster.init_errors.clear();
        self.cluster.throttle_ms = 0;
        self.reports = true;
        for name in ["x", "y"] {
            if !self.cluster.topics.contains_key(name) {
                self.cluster.create(name, 3);
            }
        }
        for (at, partition) in self.cluster.partitions().into_iter().enumerate() {
            partition.stalled = false;
            if partition.leader < 0 {
                partition.leader = 1 + at as i32 % NODES;
                partition.epoch += 1;
            }
        }
        (1..=NODES).for_each(|node| self.cut(node, true, true));
    }
}
