//! A producer, its driver and a network in virtual time: bytes take a while, come in pieces or
//! together, and a ledger hears everything that is said of a record.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::{Bytes, BytesMut};
use candor_core::{Instant, Outcome, Resolution, RouteId, Ticket, Verdict};
use candor_proto::{Config, Handed, Input, Loss, Notice, Output, Producer, Record};

use super::broker::Brokers;
use super::dice::Dice;

pub const MS: u64 = 1_000;
pub const SECOND: u64 = 1_000 * MS;
pub const START: u64 = 1_700_000_000 * SECOND;

/// Time that a test gives to what takes no time.
const STEPS: usize = 200_000;

/// One connection, from the driver's side.
#[derive(Debug)]
pub struct Link {
    pub host: String,
    node: Option<i32>,
    /// When the transport is up; `None`: it hangs.
    up_at: Option<u64>,
    up: bool,
    handed: u64,
    /// Handed over, and not reported.
    unreported: usize,
    /// Handed over, and no whole frame yet.
    partial: BytesMut,
    /// Requests on their way.
    there: VecDeque<(u64, Bytes)>,
    /// Pieces of answers on their way.
    back: VecDeque<(u64, Bytes)>,
    /// The broker ends it then.
    ends_at: Option<u64>,
}

/// What was said of a record.
#[derive(Clone, Debug)]
pub struct Sent {
    pub topic: String,
    pub partition: Option<i32>,
    pub due: u64,
    pub verdict: Option<(u64, Verdict)>,
    pub resolution: Option<Resolution>,
}

pub struct Net {
    pub producer: Producer,
    pub now: u64,
    pub brokers: Brokers,
    pub links: BTreeMap<RouteId, Link>,
    pub sent: BTreeMap<Ticket, Sent>,
    /// Records without a verdict, by the time at which it is due.
    due: BTreeSet<(u64, Ticket)>,
    pub notices: Vec<Notice>,
    pub connects: Vec<(u64, String)>,
    pub closed: Option<u64>,
    pub flushed: usize,
    /// How often time went on.
    pub wakes: u64,
    /// Longest way of a message; 0: none takes time.
    pub latency: u64,
    /// Largest piece in which bytes go and come.
    pub piece: usize,
    /// The driver tells how much was sent.
    pub reports: bool,
    /// The driver knows how much was handed over.
    pub knows: bool,
    pub dice: Dice,
    /// Requests whose connection is gone, and that arrive all the same: when, where.
    pub ghosts: Vec<(u64, i32, Bytes)>,
    /// So many of what was on its way when a connection ended become ghosts, one in so many.
    pub haunted: u64,
}

impl Net {
    pub fn new(config: &Config, brokers: Brokers) -> Self {
        Self::seeded(config, brokers, 7)
    }

    pub fn seeded(config: &Config, brokers: Brokers, seed: u64) -> Self {
        Self {
            producer: Producer::new(config, seed, Instant::from_micros(START)).unwrap(),
            now: START,
            brokers,
            links: BTreeMap::new(),
            sent: BTreeMap::new(),
            due: BTreeSet::new(),
            notices: Vec::new(),
            connects: Vec::new(),
            closed: None,
            flushed: 0,
            wakes: 0,
            latency: 0,
            piece: usize::MAX,
            reports: true,
            knows: true,
            dice: Dice(seed),
            ghosts: Vec::new(),
            haunted: 0,
        }
    }

    pub fn at(&self) -> Instant {
        Instant::from_micros(self.now)
    }

    /// Sends a record that is named by its ticket. Whether it was accepted.
    pub fn send(&mut self, topic: &str, partition: Option<i32>, within: u64) -> Option<Ticket> {
        self.send_with(topic, partition, within, 4, None)
    }

    pub fn send_with(
        &mut self,
        topic: &str,
        partition: Option<i32>,
        within: u64,
        size: usize,
        stamp: Option<i64>,
    ) -> Option<Ticket> {
        let name = self.producer.stats().counts.accepted;
        let within = core::time::Duration::from_micros(within);
        let mut record = Record::to(topic).deadline(within).value(format!("{name:.<size$}"));
        if let Some(partition) = partition {
            record = record.partition(partition as u32);
        }
        if let Some(stamp) = stamp {
            record = record.timestamp(stamp);
        }
        let due = self.producer.deadline_of(self.at(), &record).as_micros();
        let ticket = self.producer.append(self.at(), self.at(), record).ok()?;
        assert_eq!(ticket, Ticket(name), "tickets are dense");
        let (topic, verdict, resolution) = (topic.to_owned(), None, None);
        self.due.insert((due, ticket));
        self.sent.insert(ticket, Sent { topic, partition, due, verdict, resolution });
        Some(ticket)
    }

    /// The verdict of a record is due then, if not before.
    fn bring_forward(&mut self, ticket: Ticket, at: u64) {
        let Some(sent) = self.sent.get_mut(&ticket) else { return };
        if sent.verdict.is_none() && at < sent.due {
            self.due.remove(&(sent.due, ticket));
            self.due.insert((at, ticket));
            sent.due = at;
        }
    }

    pub fn cancel(&mut self, ticket: Ticket) {
        self.producer.cancel(self.at(), ticket);
        self.bring_forward(ticket, self.now);
    }

    pub fn revoke(&mut self, ticket: Ticket) {
        let ended = self.producer.revoke(self.at(), ticket).is_err();
        let Some(sent) = self.sent.get(&ticket) else { return };
        let told = match sent.verdict {
            Some((_, Verdict::Unknown(_))) => sent.resolution.is_some(),
            verdict => verdict.is_some(),
        };
        // What ended and was not told yet is told by the next poll.
        assert!(ended || !told, "{ticket}: {sent:?}");
        self.bring_forward(ticket, self.now);
    }

    pub fn close(&mut self, within: u64) {
        let deadline = self.now.saturating_add(within);
        self.producer.close(self.at(), Instant::from_micros(deadline));
        let tickets: Vec<Ticket> = self.due.iter().map(|it| it.1).collect();
        tickets.into_iter().for_each(|ticket| self.bring_forward(ticket, deadline));
    }

    // ---- time ---------------------------------------------------------------------------------------

    /// When something happens next.
    pub fn next(&self) -> Option<u64> {
        let links = self.links.values().flat_map(|link| {
            let up = link.up_at.filter(|_| !link.up);
            let moved = link.there.front().into_iter().chain(link.back.front());
            let ends = link.ends_at.filter(|_| link.back.is_empty());
            up.into_iter().chain(moved.map(|it| it.0)).chain(ends)
        });
        let wake = self.producer.deadline().map(|deadline| deadline.at.as_micros());
        links.chain(wake).chain(self.ghosts.iter().map(|ghost| ghost.0)).min()
    }

    /// Time passes, and everything happens when it is due.
    pub fn run(&mut self, span: u64) {
        let end = self.now.saturating_add(span);
        let (from, before) = (self.now, self.wakes);
        self.settle();
        while let Some(next) = self.next().filter(|next| *next <= end) {
            self.now = self.now.max(next);
            self.wakes += 1;
            self.settle();
            let (passed, woken) = (self.now - from, self.wakes - before);
            assert!(woken < 5_000 + passed / 100, "{woken} wake-ups in {passed} us: it spins");
        }
        self.now = end;
        self.settle();
    }

    /// Only time passes, and nobody looks.
    pub fn jump(&mut self, span: u64) {
        self.now = self.now.saturating_add(span);
    }

    /// Until this record has its verdict.
    pub fn verdict(&mut self, ticket: Ticket) -> Verdict {
        self.settle();
        while self.sent[&ticket].verdict.is_none() {
            let next = self.next().unwrap();
            assert!(next <= self.sent[&ticket].due, "asleep beyond the deadline");
            self.now = next.max(self.now);
            self.settle();
        }
        self.sent[&ticket].verdict.unwrap().1
    }

    pub fn delivered(&mut self, ticket: Ticket) -> bool {
        matches!(self.verdict(ticket), Verdict::Delivered { .. })
    }

    /// Everything that is due now.
    pub fn settle(&mut self) {
        for _ in 0..STEPS {
            if !self.step() {
                return;
            }
        }
        panic!("a busy loop: {:?}", self.producer.deadline());
    }

    /// One round; whether something moved.
    pub fn step(&mut self) -> bool {
        let mut moved = self.poll();
        self.haunt(self.now);
        let conns: Vec<RouteId> = self.links.keys().copied().collect();
        for conn in conns {
            moved |= self.open(conn) | self.write(conn) | self.serve(conn) | self.read(conn);
        }
        moved
    }

    /// What is due of the past arrives, in its order.
    pub fn haunt(&mut self, now: u64) {
        let (due, later) = self.ghosts.drain(..).partition(|ghost| ghost.0 <= now);
        self.ghosts = later;
        let mut due: Vec<_> = due;
        due.sort_by_key(|ghost| ghost.0);
        for (_, node, request) in due {
            self.brokers.late(node, request);
        }
    }

    fn way(&mut self) -> u64 {
        let slow = if self.latency > 0 && self.dice.below(30) == 0 { 100 } else { 1 };
        self.now + self.dice.below(self.latency * slow + 1)
    }

    // ---- the driver ---------------------------------------------------------------------------------

    /// Takes everything that the producer says now.
    pub fn poll(&mut self) -> bool {
        let mut some = false;
        while let Some(output) = self.producer.poll(self.at()) {
            some = true;
            self.obey(output);
        }
        let late = self.due.first().filter(|it| it.0 <= self.now);
        assert!(late.is_none(), "no verdict in time at {}: {late:?}", self.now);
        let wake = self.producer.deadline();
        assert!(wake.is_none_or(|it| it.at.as_micros() > self.now), "not ahead: {wake:?}");
        some
    }

    fn obey(&mut self, output: Output) {
        assert_eq!(self.closed, None, "{output:?} after Closed");
        match output {
            Output::Connect { conn, address } => self.connect(conn, address.host()),
            Output::Disconnect { conn, .. } => self.lose(conn, Loss::Asked),
            Output::Notice(notice) => self.notices.push(notice),
            Output::Flushed(_) => self.flushed += 1,
            Output::Closed => self.closed = Some(self.now),
            Output::Settled(settlement) => {
                let settled = &settlement.settled;
                let unknown = matches!(settled.outcome, Outcome::Unknown(_));
                assert!(!unknown || settled.records.iter().all(|it| !it.unknown));
                for (ticket, verdict) in settled.verdicts() {
                    let sent = self.sent.get_mut(&ticket).unwrap();
                    assert_eq!(sent.verdict, None, "a second verdict for {ticket}");
                    sent.partition = sent.partition.or(settlement.partition);
                    assert_eq!(*settlement.topic, *sent.topic);
                    sent.verdict = Some((self.now, verdict));
                    self.due.remove(&(sent.due, ticket));
                }
                for (ticket, resolution) in settled.resolutions() {
                    let sent = self.sent.get_mut(&ticket).unwrap();
                    assert!(matches!(sent.verdict, Some((_, Verdict::Unknown(_)))), "{ticket}");
                    assert_eq!(sent.resolution, None, "a second resolution for {ticket}");
                    sent.resolution = Some(resolution);
                }
            }
        }
    }

    fn connect(&mut self, conn: RouteId, host: &str) {
        self.connects.push((self.now, host.to_owned()));
        let node = self.brokers.at(host);
        let behaves = node.map(|id| self.brokers.nodes[&id].clone());
        let hangs = behaves.as_ref().is_none_or(|it| it.hangs) || host.starts_with("hung");
        let up_at = (!hangs).then(|| self.way());
        let link = Link {
            host: host.to_owned(),
            node,
            up_at,
            up: false,
            handed: 0,
            unreported: 0,
            partial: BytesMut::new(),
            there: VecDeque::new(),
            back: VecDeque::new(),
            ends_at: None,
        };
        self.links.insert(conn, link);
        if behaves.is_some_and(|it| it.refuses) && !host.starts_with("hung") {
            self.lose(conn, Loss::Refused);
        }
    }

    /// The connection is over; what was handed over is heard or not, as chance has it.
    pub fn lose(&mut self, conn: RouteId, why: Loss) {
        let Some(mut link) = self.links.remove(&conn) else { return };
        let handed = if self.knows { Handed::AtMost(link.handed) } else { Handed::Unknown };
        let heard = self.dice.below(link.there.len() as u64 + 1);
        if let Some(node) = link.node {
            for (n, (_, request)) in link.there.drain(..).enumerate() {
                let later = n as u64 >= heard;
                if !later {
                    self.brokers.handle(node, request);
                } else if self.haunted > 0 && self.dice.below(self.haunted) == 0 {
                    let due = self.now + self.dice.below(90 * SECOND);
                    self.ghosts.push((due, node, request));
                }
            }
        }
        self.producer.handle(self.at(), Input::Lost { conn, handed, why }).unwrap();
    }

    pub fn cut(&mut self, host: &str) {
        let to_host = self.links.iter().filter(|(_, link)| link.host == host);
        let conns: Vec<RouteId> = to_host.map(|(conn, _)| *conn).collect();
        conns.into_iter().for_each(|conn| self.lose(conn, Loss::Broken));
    }

    /// The same for all connections to a node, at whatever host.
    pub fn cut_node(&mut self, node: i32) {
        let to_node = self.links.iter().filter(|(_, link)| link.node == Some(node));
        let conns: Vec<RouteId> = to_node.map(|(conn, _)| *conn).collect();
        conns.into_iter().for_each(|conn| self.lose(conn, Loss::Broken));
    }

    /// A connection that hung comes up after all.
    pub fn unhang(&mut self, host: &str) {
        let at = self.now;
        let to_host = self.links.values_mut().filter(|link| link.host == host && !link.up);
        to_host.for_each(|link| link.up_at = Some(at));
    }

    fn open(&mut self, conn: RouteId) -> bool {
        let now = self.now;
        let Some(link) = self.links.get_mut(&conn) else { return false };
        if link.up || link.up_at.is_none_or(|at| at > now) {
            return false;
        }
        link.up = true;
        self.producer.handle(self.at(), Input::Connected { conn }).unwrap();
        true
    }

    pub fn write(&mut self, conn: RouteId) -> bool {
        let at = self.at();
        if !self.links.get(&conn).is_some_and(|link| link.up) || !self.producer.wants_transmit(conn)
        {
            return false;
        }
        let most = if self.piece == usize::MAX {
            1 << 20
        } else {
            1 + self.dice.below(self.piece as u64) as usize
        };
        let mut bufs: Vec<Bytes> = Vec::new();
        let n = self.producer.transmit(at, conn, most, &mut bufs);
        assert!(n <= most && n == bufs.iter().map(Bytes::len).sum::<usize>());
        if n == 0 {
            return true;
        }
        let due = self.way();
        let link = self.links.get_mut(&conn).unwrap();
        bufs.iter().for_each(|bytes| link.partial.extend_from_slice(bytes));
        link.handed += n as u64;
        link.unreported += n;
        let due = link.there.back().map_or(due, |it| it.0.max(due));
        while let Some(frame) = candor_wire::split_frame(&mut link.partial, 1 << 30).unwrap() {
            link.there.push_back((due, frame));
        }
        if self.reports {
            let n = core::mem::take(&mut link.unreported);
            self.producer.handle(at, Input::Sent { conn, n }).unwrap();
        }
        true
    }

    /// The broker takes one request.
    pub fn serve(&mut self, conn: RouteId) -> bool {
        let now = self.now;
        let Some(link) = self.links.get_mut(&conn) else { return false };
        if link.there.front().is_none_or(|it| it.0 > now) {
            return false;
        }
        let Some((_, request)) = link.there.pop_front() else { return false };
        // Somebody who accepts connections, and nothing more.
        let Some(node) = link.node else { return true };
        let reply = self.brokers.handle(node, request);
        let mut due = self.way();
        let pieces = self.pieces(reply.bytes);
        let ends = reply.cut.then_some(due);
        let Some(link) = self.links.get_mut(&conn) else { return false };
        due = link.back.back().map_or(due, |it| it.0.max(due));
        link.back.extend(pieces.into_iter().map(|piece| (due, piece)));
        link.ends_at = link.ends_at.or_else(|| ends.map(|at| at.max(due)));
        true
    }

    /// An answer in pieces; a piece may be empty of meaning, never of bytes.
    fn pieces(&mut self, bytes: Option<Bytes>) -> Vec<Bytes> {
        let mut rest = bytes.unwrap_or_default();
        let mut pieces = Vec::new();
        while !rest.is_empty() {
            let most = self.piece.min(rest.len()) as u64;
            let n = if self.piece == usize::MAX { most } else { 1 + self.dice.below(most) };
            pieces.push(rest.split_to(n as usize));
        }
        pieces
    }

    /// Brings what came, in one go or piece by piece.
    fn read(&mut self, conn: RouteId) -> bool {
        let now = self.now;
        let Some(link) = self.links.get_mut(&conn) else { return false };
        let due = link.back.iter().take_while(|it| it.0 <= now).count();
        if due == 0 {
            let ends = link.ends_at.is_some_and(|at| at <= now) && link.back.is_empty();
            if ends {
                self.lose(conn, Loss::Ended);
            }
            return ends;
        }
        let together = self.dice.below(2) == 0;
        let n = if together { due } else { 1 };
        let bytes: Vec<u8> = link.back.drain(..n).flat_map(|it| it.1).collect();
        self.producer.handle(self.at(), Input::Received { conn, bytes: bytes.into() }).unwrap();
        true
    }
}
