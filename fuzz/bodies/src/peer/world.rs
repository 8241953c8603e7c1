//! The producer, its driver and the peer, in virtual time.

use core::time::Duration;
use std::collections::BTreeMap;

use bytes::Bytes;
use candor_core::rules::Rules;
use candor_core::{Instant, RouteId, Span, Ticket, Verdict};
use candor_proto::{Config, Handed, Input, Loss, Output, Producer, Record, Settlement};
use candor_sim::codec::Request;

use super::answers::{Cluster, PARTITIONS};
use super::link::Link;
use crate::{Tally, feed::Feed};

const START: Instant = Instant::from_millis(1_700_000_000_000);

/// More rounds than anything needs that happens without time passing.
const BUSY: usize = 20_000;

/// Error codes that mean something to a producer, and some that do not.
const CODES: [i16; 24] =
    [0, 2, 3, 5, 6, 7, 10, 13, 17, 18, 19, 29, 35, 41, 45, 46, 47, 56, 58, 59, 87, 100, -1, 999];

/// What is known of a record that was accepted.
struct Sent {
    deadline: Instant,
    verdict: Option<Verdict>,
    resolved: bool,
}

/// What the peer does without being told by the input.
struct Habits {
    connects: bool,
    transmits: bool,
    greets: bool,
    describes: bool,
}

pub(super) struct World<R: Rules> {
    producer: Producer<R>,
    now: Instant,
    cluster: Cluster,
    habits: Habits,
    links: BTreeMap<RouteId, Link>,
    records: BTreeMap<Ticket, Sent>,
    closing: bool,
    closed: bool,
}

impl<R: Rules> World<R> {
    pub(super) fn new(feed: &mut Feed<'_>) -> Self {
        let cluster = Cluster::new(feed);
        let habits = feed.byte();
        let limits = feed.byte();
        let config = Config::new(["b1:9092", "b2:9092"])
            .linger(Duration::from_millis(u64::from(limits & 1) * 5))
            .batch_size([100, 16_384][usize::from(limits >> 1 & 1)])
            .memory([6_000, 1 << 20][usize::from(limits >> 2 & 1)])
            .max_in_flight([1, 5][usize::from(limits >> 3 & 1)])
            .trust_base_offset(limits & 16 != 0)
            .max_response_size(4_096);
        Self {
            producer: Producer::new(&config, limits.into(), START).expect("it can work"),
            now: START,
            cluster,
            habits: Habits {
                connects: habits & 1 == 0,
                transmits: habits & 2 == 0,
                greets: habits & 4 == 0,
                describes: habits & 8 == 0,
            },
            links: BTreeMap::new(),
            records: BTreeMap::new(),
            closing: false,
            closed: false,
        }
    }

    /// One thing that happens.
    pub(super) fn step(&mut self, feed: &mut Feed<'_>) {
        match feed.byte() % 18 {
            0..=2 => self.append(feed),
            3 | 4 => self.pass_time(feed),
            5 => self.connect(feed),
            6 => self.transmit_some(feed),
            7 | 8 => self.answer(feed, 0),
            9 | 10 => {
                let error = feed.pick(&CODES);
                self.answer(feed, error);
            }
            11 => self.answer_torn(feed),
            12 => self.answer_with(feed),
            13 => self.say_anything(feed),
            14 => self.lose(feed),
            15 => self.cluster_changes(feed),
            16 => self.caller_acts(feed),
            _ => self.answer_out_of_turn(feed),
        }
    }

    fn append(&mut self, feed: &mut Feed<'_>) {
        let byte = feed.byte();
        let time = [100, 2_000, 30_000, 120_000][usize::from(byte >> 2 & 3)];
        let value = &[byte; 100][..usize::from(byte >> 1) % 100];
        let mut record = Record::to("t").value(value).deadline(Duration::from_millis(time));
        if byte & 3 < 3 {
            record = record.partition(u32::from(byte & 3));
        }
        let deadline = self.producer.deadline_of(self.now, &record);
        if let Ok(ticket) = self.producer.append(self.now, self.now, record) {
            let sent = Sent { deadline, verdict: None, resolved: false };
            assert!(self.records.insert(ticket, sent).is_none(), "{ticket} was issued twice");
            assert!(!self.closing, "a closing producer takes no records");
        }
    }

    fn pass_time(&mut self, feed: &mut Feed<'_>) {
        let byte = feed.byte();
        self.now = match (byte & 7, self.producer.deadline()) {
            (0..=4, Some(deadline)) => deadline.at,
            (5, _) => self.now + Span::from_millis(7),
            (6, _) => self.now + Span::from_millis(u64::from(byte) * 20),
            _ => self.now + Span::from_secs(u64::from(byte >> 3) * 10),
        };
    }

    /// One of the connections, by the next byte.
    fn some_link(&self, feed: &mut Feed<'_>, wanted: impl Fn(&Link) -> bool) -> Option<RouteId> {
        let links = self.links.iter().filter(|(_, link)| wanted(link));
        let all: Vec<_> = links.map(|(conn, _)| *conn).collect();
        let byte = usize::from(feed.byte());
        (!all.is_empty()).then(|| all[byte % all.len()])
    }

    fn connect(&mut self, feed: &mut Feed<'_>) {
        let Some(conn) = self.some_link(feed, |link| !link.up) else { return };
        match feed.byte() % 4 {
            0 => self.over(conn, Handed::AtMost(0), Loss::Refused),
            1 => self.over(conn, Handed::Unknown, Loss::Unresolved),
            _ => self.connected(conn),
        }
    }

    fn connected(&mut self, conn: RouteId) {
        if let Some(link) = self.links.get_mut(&conn) {
            link.up = true;
            self.handle(Input::Connected { conn });
        }
    }

    fn transmit_some(&mut self, feed: &mut Feed<'_>) {
        let Some(conn) = self.some_link(feed, |link| link.up) else { return };
        let budget = usize::from(feed.byte()) * 4;
        self.transmit(conn, budget);
        let Some(link) = self.links.get_mut(&conn) else { return };
        let unsent = link.taken - link.sent;
        let n = if feed.byte() & 1 == 0 { unsent } else { unsent / 2 };
        link.sent += n;
        self.handle(Input::Sent { conn, n: n as usize });
    }

    fn transmit(&mut self, conn: RouteId, budget: usize) -> usize {
        let mut bufs: Vec<Bytes> = Vec::new();
        let n = self.producer.transmit(self.now, conn, budget, &mut bufs);
        assert!(n <= budget, "more than asked for");
        assert_eq!(n, bufs.iter().map(Bytes::len).sum::<usize>());
        if let Some(link) = self.links.get_mut(&conn) {
            link.taken += n as u64;
            link.write(&bufs);
        }
        n
    }

    /// The answer to the oldest request of a connection.
    fn next_answer(&mut self, feed: &mut Feed<'_>, error: i16) -> Option<(RouteId, Vec<u8>)> {
        let conn = self.some_link(feed, |link| !link.asked.is_empty())?;
        let (header, request) = self.links.get_mut(&conn)?.asked.pop_front()?;
        let body = self.cluster.answer(&header, &request, error);
        Some((conn, header.answer(&body)))
    }

    fn answer(&mut self, feed: &mut Feed<'_>, error: i16) {
        if let Some((conn, frame)) = self.next_answer(feed, error) {
            self.receive(conn, &frame);
        }
    }

    /// A right answer in which some bytes are not.
    fn answer_torn(&mut self, feed: &mut Feed<'_>) {
        let Some((conn, mut frame)) = self.next_answer(feed, 0) else { return };
        for _ in 0..1 + feed.byte() % 4 {
            let (at, byte) = (usize::from(feed.byte()), feed.byte());
            let length = frame.len();
            frame[at % length] ^= byte;
        }
        let cut = usize::from(feed.byte());
        let (one, other) = frame.split_at(cut.min(frame.len()));
        self.receive(conn, one);
        self.receive(conn, other);
    }

    /// A right header, and a body that the input has.
    fn answer_with(&mut self, feed: &mut Feed<'_>) {
        let Some(conn) = self.some_link(feed, |link| !link.asked.is_empty()) else { return };
        let n = usize::from(feed.byte());
        let body = feed.take(n);
        let asked = self.links.get_mut(&conn).and_then(|link| link.asked.pop_front());
        if let Some((header, _)) = asked {
            self.receive(conn, &header.answer(body));
        }
    }

    fn say_anything(&mut self, feed: &mut Feed<'_>) {
        let Some(conn) = self.some_link(feed, |link| link.up) else { return };
        let n = usize::from(feed.byte());
        let bytes = feed.take(n);
        self.receive(conn, bytes);
    }

    /// The newest request is answered first, or the oldest one twice.
    fn answer_out_of_turn(&mut self, feed: &mut Feed<'_>) {
        let Some(conn) = self.some_link(feed, |link| !link.asked.is_empty()) else { return };
        let twice = feed.byte() & 1 == 0;
        let Some(link) = self.links.get_mut(&conn) else { return };
        let asked = if twice { link.asked.pop_front() } else { link.asked.pop_back() };
        let Some((header, request)) = asked else { return };
        for _ in 0..1 + usize::from(twice) {
            let body = self.cluster.answer(&header, &request, 0);
            self.receive(conn, &header.answer(&body));
        }
    }

    fn receive(&mut self, conn: RouteId, bytes: &[u8]) {
        if self.links.get(&conn).is_some_and(|link| link.up) {
            self.handle(Input::Received { conn, bytes: Bytes::copy_from_slice(bytes) });
            self.poll_all();
        }
    }

    fn lose(&mut self, feed: &mut Feed<'_>) {
        let Some(conn) = self.some_link(feed, |_| true) else { return };
        let sent = self.links.get(&conn).map_or(0, |link| link.sent);
        let handed = if feed.byte() & 1 == 0 { Handed::Unknown } else { Handed::AtMost(sent) };
        self.over(conn, handed, Loss::Broken);
    }

    fn over(&mut self, conn: RouteId, handed: Handed, why: Loss) {
        if self.links.remove(&conn).is_some() {
            self.handle(Input::Lost { conn, handed, why });
        }
    }

    fn cluster_changes(&mut self, feed: &mut Feed<'_>) {
        match feed.byte() % 8 {
            0 => self.cluster.life = self.cluster.life % 9 + 1,
            1 => self.cluster.throttle_ms = i32::from(feed.i16()),
            2 => self.cluster.turn -= 1,
            _ => self.cluster.turn += 1,
        }
    }

    fn caller_acts(&mut self, feed: &mut Feed<'_>) {
        let byte = feed.byte();
        match byte % 8 {
            0..=3 => {
                let ticket = Ticket((byte >> 3).into());
                self.producer.cancel(self.now, ticket);
                if let Some(sent) = self.records.get_mut(&ticket) {
                    sent.deadline = sent.deadline.min(self.now);
                }
            }
            4 | 5 => _ = self.producer.flush(self.now),
            6 => {
                let ticket = Ticket((byte >> 3).into());
                let _ = (self.producer.why(ticket), self.producer.place(ticket));
            }
            _ if byte > 0xf0 => self.close(Span::from_millis(u64::from(byte) * 10)),
            _ => self.producer.prepare(self.now),
        }
    }

    fn handle(&mut self, input: Input) {
        let told = self.producer.handle(self.now, input);
        assert_eq!(told, Ok(()), "the driver kept its contract");
    }

    fn poll_all(&mut self) -> bool {
        let mut some = false;
        for _ in 0..BUSY {
            let Some(output) = self.producer.poll(self.now) else {
                self.check_deadlines();
                return some;
            };
            self.obey(output);
            some = true;
        }
        panic!("poll never ends");
    }

    fn obey(&mut self, output: Output) {
        assert!(!self.closed, "{output:?} after Closed");
        match output {
            Output::Connect { conn, .. } => {
                let before = self.links.insert(conn, Link::new());
                assert!(before.is_none(), "a name was used twice");
                if self.habits.connects {
                    self.connected(conn);
                }
            }
            Output::Disconnect { conn, .. } => {
                let taken = self.links.get(&conn).map_or(0, |link| link.taken);
                self.over(conn, Handed::AtMost(taken), Loss::Asked);
            }
            Output::Settled(settlement) => self.settled(&settlement),
            Output::Notice(notice) => assert!(!notice.to_string().is_empty()),
            Output::Flushed(_) => {}
            Output::Closed => self.closed = true,
        }
    }

    fn settled(&mut self, settlement: &Settlement) {
        assert_eq!(&*settlement.topic, "t");
        assert!(settlement.partition.is_none_or(|p| (0..PARTITIONS).contains(&p)));
        for (ticket, verdict) in settlement.settled.verdicts() {
            let sent = self.records.get_mut(&ticket).expect("it was accepted");
            assert_eq!(sent.verdict.replace(verdict), None, "a second verdict for {ticket}");
        }
        for (ticket, resolution) in settlement.settled.resolutions() {
            let sent = self.records.get_mut(&ticket).expect("it was accepted");
            assert!(
                matches!(sent.verdict, Some(Verdict::Unknown(_))),
                "{resolution:?} for {ticket}"
            );
            assert!(!sent.resolved, "a second resolution for {ticket}");
            sent.resolved = true;
        }
    }

    /// D1: after `poll`, nobody waits whose time has come; and nothing wants to be called at once.
    fn check_deadlines(&self) {
        for (ticket, sent) in &self.records {
            assert!(
                sent.verdict.is_some() || sent.deadline > self.now,
                "{ticket} has no verdict at its deadline"
            );
        }
        let stats = self.producer.stats();
        assert_eq!(stats.counts.refused_by_lane, 0, "a lane refused what it was told");
        let untold = self.records.values().filter(|sent| sent.verdict.is_none()).count();
        assert_eq!(stats.waiting, untold as u64);
        let deadline = self.producer.deadline();
        assert!(deadline.is_none_or(|deadline| deadline.at > self.now), "{deadline:?}");
    }

    /// Everything that happens by itself, without time passing.
    pub(super) fn settle(&mut self) {
        for _ in 0..BUSY {
            let mut some = self.poll_all();
            let up: Vec<_> =
                self.links.iter().filter(|(_, link)| link.up).map(|(conn, _)| *conn).collect();
            for conn in up {
                some |= self.habits.transmits && self.transmit_all(conn);
                some |= self.serve(conn);
            }
            if !some {
                return;
            }
        }
        panic!("a busy loop");
    }

    fn transmit_all(&mut self, conn: RouteId) -> bool {
        let n = self.transmit(conn, 1 << 16);
        if let Some(link) = self.links.get_mut(&conn)
            && n > 0
        {
            link.sent += n as u64;
            self.handle(Input::Sent { conn, n });
        }
        n > 0
    }

    /// Answers what the peer answers by habit.
    fn serve(&mut self, conn: RouteId) -> bool {
        let Some(link) = self.links.get_mut(&conn) else { return false };
        let by_habit = match link.asked.front() {
            Some((_, Request::ApiVersions(_) | Request::UnknownApiVersions)) => self.habits.greets,
            Some((_, Request::Metadata(_) | Request::InitProducerId(_))) => self.habits.describes,
            Some((
                _,
                Request::Produce(_)
                | Request::Fetch(_)
                | Request::ListOffsets(_)
                | Request::FindCoordinator(_),
            ))
            | None => false,
        };
        if !by_habit {
            return false;
        }
        let Some((header, request)) = link.asked.pop_front() else { return false };
        let body = self.cluster.answer(&header, &request, 0);
        self.receive(conn, &header.answer(&body));
        true
    }

    fn close(&mut self, span: Span) {
        self.producer.close(self.now, self.now + span);
        self.closing = true;
    }

    /// The producer is closed, and the peer says nothing any more.
    pub(super) fn finish(&mut self) {
        self.habits.greets = false;
        self.habits.describes = false;
        let end = self.now + Span::from_secs(5);
        self.close(Span::from_secs(5));
        for _ in 0..BUSY {
            self.settle();
            if self.closed {
                break;
            }
            let deadline = self.producer.deadline().expect("it is not closed yet");
            assert!(deadline.at <= end, "{deadline:?} is after the end of everything");
            self.now = deadline.at;
        }
        assert!(self.closed, "it never closes");
        for (ticket, sent) in &self.records {
            let unknown = matches!(sent.verdict, Some(Verdict::Unknown(_)));
            assert!(sent.verdict.is_some(), "{ticket} has no verdict");
            assert_eq!(unknown, sent.resolved, "{ticket}: {:?}", sent.verdict);
        }
        let counts = self.producer.stats().counts;
        assert_eq!(counts.accepted, self.records.len() as u64);
        assert_eq!(counts.accepted, counts.delivered + counts.not_delivered + counts.unknown);
        assert_eq!(counts.unknown, counts.resolved);
        assert_eq!(self.producer.deadline(), None);
    }

    /// How the records ended.
    pub(super) fn tally(&self) -> Tally {
        let one = |sent: &Sent| Tally::count(sent.verdict, sent.resolved);
        self.records.values().map(one).fold(Tally::default(), |all, one| all + one)
    }
}
