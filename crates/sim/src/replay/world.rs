//! The world of one scenario: the shipped producer, its connections and brokers, in virtual time.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use candor_core::rules::Rules;
use candor_core::{Instant, RouteId, Span};
use candor_proto::{FlushId, Handed, Input, Loss, Notice, Output, Producer};

use super::book::Book;
use super::brokers::Scripted;
use super::link::{Link, Pending};
use super::offers::{From, Offers};
use super::script::{Brokers, Condition, Scenario, Setup, TopicPlan};
use crate::broker::Profile;
use crate::codec::{METADATA, MetadataResponse, PRODUCE, Request, VersionRange, decode_request};
use crate::judge::{Excuse, Fact, Lane};
use crate::serve::{Hangup, Net, Settings};
use crate::timeline::{Page, Source, What};

/// When scenarios begin.
pub(super) const BEGIN: Instant = Instant::from_millis(1_700_000_000_000);
/// Bytes that `transmit` gives at a time.
const CHUNK: usize = 16 * 1024 * 1024;
/// More rounds than this without time passing are a busy loop.
const ROUNDS: usize = 3_000;
/// And so are more wake-ups than this in one scenario.
const WAKES: u32 = 30_000;

const SERVED: [VersionRange; 4] = [
    VersionRange { api: PRODUCE, min: 3, max: 13 },
    VersionRange { api: METADATA, min: 0, max: 13 },
    VersionRange { api: crate::codec::API_VERSIONS, min: 0, max: 5 },
    VersionRange { api: crate::codec::INIT_PRODUCER_ID, min: 0, max: 6 },
];

/// Who answers.
#[derive(Debug)]
pub(super) enum Side {
    Scripted(Scripted),
    Modelled(Box<Net>),
}

/// A notice, and whether a step expected it.
#[derive(Clone, Debug)]
pub(super) struct Heard {
    pub(super) notice: Notice,
    pub(super) claimed: bool,
}

/// What a broker was asked since somebody last looked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) metadata: u32,
    pub(super) ids: u32,
    pub(super) dials: u32,
}

/// The world.
#[derive(Debug)]
pub(super) struct World<R: Rules> {
    pub(super) producer: Producer<R>,
    pub(super) now: Instant,
    pub(super) setup: Setup,
    pub(super) side: Side,
    pub(super) links: BTreeMap<RouteId, Link>,
    pub(super) conditions: BTreeMap<String, Condition>,
    pub(super) book: Book,
    pub(super) offers: Offers,
    pub(super) notices: Vec<Heard>,
    pub(super) flushes: BTreeMap<String, FlushId>,
    pub(super) flushed: BTreeSet<FlushId>,
    pub(super) closed: bool,
    pub(super) asked: BTreeMap<String, Asked>,
    /// Topics that metadata was asked for since somebody last looked.
    pub(super) asked_about: BTreeSet<String>,
    /// The model answers Produce requests by itself.
    pub(super) auto: bool,
    pub(super) room: usize,
    pub(super) excuses: Vec<Excuse>,
    wakes: u32,
    /// What must not be, found while acting.
    wrongs: Vec<String>,
}

impl<R: Rules> World<R> {
    pub(super) fn new(scenario: &Scenario, name: &str) -> Result<Self, String> {
        let mut setup = scenario.setup.clone();
        if setup.topics.is_empty() {
            let leaders = setup.names.first().cloned().into_iter().collect();
            setup.topics.push(TopicPlan { name: "t".to_owned(), partitions: 1, leaders });
        }
        let producer =
            Producer::new(&setup.config, 42, BEGIN).map_err(|error| error.to_string())?;
        let file = name.rsplit('/').next().unwrap_or(name);
        let text = scenario.text.clone();
        let mut page = Page::new(&scenario.title).source(Source { name: file.to_owned(), text });
        for line in &scenario.about {
            page = page.about(line);
        }
        let mut world = Self {
            room: producer.room(),
            producer,
            now: BEGIN,
            side: side(&setup),
            setup,
            links: BTreeMap::new(),
            conditions: BTreeMap::new(),
            book: Book::new(page, BEGIN),
            offers: Offers::default(),
            notices: Vec::new(),
            flushes: BTreeMap::new(),
            flushed: BTreeSet::new(),
            closed: false,
            asked: BTreeMap::new(),
            asked_about: BTreeSet::new(),
            auto: false,
            excuses: Vec::new(),
            wakes: 0,
            wrongs: Vec::new(),
        };
        world.learn_ids();
        Ok(world)
    }

    /// Keeps in mind which topic has which id.
    pub(super) fn learn_ids(&mut self) {
        match &self.side {
            Side::Scripted(scripted) => {
                for plan in &self.setup.topics {
                    if let Some(id) = scripted.id_of(&plan.name) {
                        self.offers.ids.insert(id, plan.name.clone());
                    }
                }
            }
            Side::Modelled(net) => {
                let nodes = net.nodes();
                let views = nodes
                    .iter()
                    .filter_map(|node| net.cluster().metadata(crate::broker::NodeId(*node)));
                for topic in views.flat_map(|view| view.topics) {
                    self.offers.ids.insert(topic.id, topic.name);
                }
            }
        }
    }

    /// Something happened that is nobody's wish.
    pub(super) fn wrong(&mut self, what: String) {
        self.wrongs.push(what);
    }

    /// The first thing that is wrong, if any.
    pub(super) fn first_wrong(&self) -> Option<String> {
        self.wrongs.first().cloned()
    }

    pub(super) fn happened(&mut self, text: String) {
        self.book.tell(self.now, What::Happened(text));
    }

    /// Does everything that can be done without time passing.
    pub(super) fn settle(&mut self) {
        for _ in 0..ROUNDS {
            let moved = self.poll_all() | self.write_all() | self.serve_all();
            if !moved || !self.wrongs.is_empty() {
                return;
            }
        }
        self.wrong("things go on without time passing: a busy loop".to_owned());
    }

    /// When something happens by itself.
    pub(super) fn next(&self) -> Option<Instant> {
        let producer = self.producer.deadline().map(|deadline| deadline.at);
        let net = match &self.side {
            Side::Modelled(net) => net.deadline().map(Instant::from_micros),
            Side::Scripted(_) => None,
        };
        producer.into_iter().chain(net).min()
    }

    /// Goes to the next time at which something happens, at most to `limit`. False if that is over.
    pub(super) fn step(&mut self, limit: Instant) -> bool {
        let next = self.next().filter(|at| *at <= limit);
        self.now = next.unwrap_or(limit).max(self.now);
        if let Side::Modelled(net) = &mut self.side {
            net.tick(self.now.as_micros());
        }
        self.wakes += 1;
        if self.wakes == WAKES {
            self.wrong(format!("{WAKES} wake-ups: hardly anything asks for so many"));
        }
        self.settle();
        next.is_some() && self.wrongs.is_empty()
    }

    /// Lets time pass.
    pub(super) fn run(&mut self, span: Span) {
        let end = self.now + span;
        while self.step(end) {}
    }

    fn poll_all(&mut self) -> bool {
        let mut some = false;
        while let Some(output) = self.producer.poll(self.now) {
            some = true;
            self.obey(output);
        }
        let deadline = self.producer.deadline();
        if let Some(deadline) = deadline.filter(|deadline| deadline.at <= self.now) {
            self.wrong(format!("after poll gave None, {deadline:?} does not lie ahead"));
        }
        some
    }

    fn obey(&mut self, output: Output) {
        if self.closed {
            self.wrong(format!("{output:?} comes after Closed"));
        }
        match output {
            Output::Connect { conn, address } => self.dial(conn, address.host()),
            Output::Disconnect { conn, .. } => self.lose(conn, None, Loss::Asked),
            Output::Settled(settlement) => {
                if let Err(why) = self.book.settled(self.now, &settlement) {
                    self.wrong(why);
                }
            }
            Output::Notice(notice) => self.hear(notice),
            Output::Flushed(id) => {
                self.flushed.insert(id);
            }
            Output::Closed => self.closed = true,
        }
    }

    fn hear(&mut self, notice: Notice) {
        let (lane, text) = match &notice {
            Notice::Partition { topic, partition, notice } => {
                (Some(format!("{topic}-{partition}")), notice.to_string())
            }
            Notice::ConnectionFailed { .. }
            | Notice::NoProducerId { .. }
            | Notice::TopicRefused { .. }
            | Notice::TopicRecreated { .. } => (None, notice.to_string()),
        };
        self.book.tell(self.now, What::Noticed { lane, text });
        if let Notice::TopicRecreated { topic } = &notice {
            let topic = self.book.topic(topic);
            for partition in 0..64 {
                let lane = Lane { producer: 0, topic, partition };
                self.book.fact(self.now, Fact::Disturbed { lane });
            }
        }
        super::trial::noticed(&mut self.book, self.now, &notice);
        self.notices.push(Heard { notice, claimed: false });
    }

    pub(super) fn condition(&self, host: &str) -> Condition {
        self.conditions.get(host).copied().unwrap_or(Condition::Up)
    }

    fn dial(&mut self, conn: RouteId, host: &str) {
        self.asked.entry(host.to_owned()).or_default().dials += 1;
        let condition = self.condition(host);
        let room = if let Condition::Stuck(room) = condition { Some(room) } else { None };
        let mut link = Link::new(host, room);
        let mut refused = condition == Condition::Down;
        if let Side::Modelled(net) = &mut self.side {
            let at = self.setup.names.iter().position(|name| name == host).unwrap_or(0);
            link.net = u8::try_from(at + 1).ok().and_then(|node| net.connect(node));
            refused |= link.net.is_none();
        }
        link.up = !refused && condition != Condition::Hung;
        let up = link.up;
        self.links.insert(conn, link);
        if refused {
            self.lose(conn, None, Loss::Refused);
        } else if up {
            self.input(Input::Connected { conn });
        }
    }

    pub(super) fn input(&mut self, input: Input) {
        if let Err(misuse) = self.producer.handle(self.now, input) {
            self.wrong(format!("the producer rejects an input: {misuse}"));
        }
    }

    /// A connection is over. What the driver vouches for: all that the transport took, unless it
    /// says otherwise.
    pub(super) fn lose(&mut self, conn: RouteId, handed: Option<Handed>, why: Loss) {
        // A connection may be lost while the order to close it is on its way.
        let Some(link) = self.links.remove(&conn) else { return };
        if let (Side::Modelled(net), Some(id)) = (&mut self.side, link.net) {
            net.hang_up(self.now.as_micros(), id, Hangup::After(0));
        }
        for (offer, partly) in link.unanswered() {
            // Nobody vouches for anything: all of it may have arrived.
            self.ended(offer, partly && handed.is_none());
        }
        let handed = handed.unwrap_or(Handed::AtMost(link.handed));
        self.input(Input::Lost { conn, handed, why });
    }

    fn ended(&mut self, offer: usize, partly: bool) {
        let Some(offered) = self.offers.all.get(offer) else { return };
        let (lane, attempt) = (offered.lane, offer as u64);
        self.book.tell(self.now, What::Ended { attempt, partly });
        self.book.fact(self.now, Fact::Ended { lane, attempt, partly });
    }

    fn write_all(&mut self) -> bool {
        let mut some = false;
        for conn in self.links.keys().copied().collect::<Vec<_>>() {
            some |= self.write(conn);
        }
        some
    }

    fn write(&mut self, conn: RouteId) -> bool {
        let Some(link) = self.links.get_mut(&conn).filter(|link| link.up) else { return false };
        let mut moved = false;
        if !link.is_full() && self.producer.wants_transmit(conn) {
            let mut bufs: Vec<Bytes> = Vec::new();
            let n = self.producer.transmit(self.now, conn, CHUNK, &mut bufs);
            bufs.iter().for_each(|bytes| link.push(bytes));
            moved = n > 0;
        }
        self.read(conn);
        let n = self.links.get_mut(&conn).map_or(0, Link::drain);
        let n = usize::try_from(n).unwrap_or(usize::MAX);
        if n > 0 {
            self.input(Input::Sent { conn, n });
        }
        moved || n > 0
    }

    fn serve_all(&mut self) -> bool {
        let mut some = false;
        for conn in self.links.keys().copied().collect::<Vec<_>>() {
            some |= self.serve(conn);
        }
        some
    }

    /// Looks at the whole requests that the producer gave.
    fn read(&mut self, conn: RouteId) {
        while let Some(link) = self.links.get_mut(&conn) {
            let Some(frame) = link.next_frame() else { break };
            let host = link.host.clone();
            match decode_request(frame.slice(4..), &SERVED) {
                Ok((header, request)) => self.take(
                    conn,
                    &host,
                    Pending {
                        header,
                        request,
                        frame,
                        offers: Vec::new(),
                        given: false,
                        kept: None,
                    },
                ),
                Err(refusal) => self.wrong(format!("a request to {host}: {refusal}")),
            }
        }
    }

    fn take(&mut self, conn: RouteId, host: &str, mut pending: Pending) {
        let asked = self.asked.entry(host.to_owned()).or_default();
        match &pending.request {
            Request::Produce(produce) => {
                let from = From { now: self.now, broker: host, connection: conn.0 };
                let before = self.offers.all.len();
                let taken = self.offers.take(&mut self.book, from, &pending.header, produce);
                pending.offers = (before..self.offers.all.len()).collect();
                if let Err(why) = taken {
                    self.wrong(why);
                }
            }
            Request::Metadata(metadata) => {
                asked.metadata += 1;
                let names = metadata.topics.iter().flatten().filter_map(|one| one.name.clone());
                self.asked_about.extend(names);
            }
            Request::InitProducerId(_) => asked.ids += 1,
            Request::ApiVersions(_)
            | Request::UnknownApiVersions
            | Request::Fetch(_)
            | Request::ListOffsets(_)
            | Request::FindCoordinator(_) => {}
        }
        if let Some(link) = self.links.get_mut(&conn) {
            link.announce(pending);
        }
    }

    /// The broker answers what it answers by itself.
    fn serve(&mut self, conn: RouteId) -> bool {
        let mut some = false;
        while let Some(link) = self.links.get_mut(&conn) {
            if self.conditions.get(&link.host) == Some(&Condition::Mute) {
                break;
            }
            let Some(pending) = link.queue.front_mut() else { break };
            let by_itself = self.auto || !pending.is_produce();
            if !by_itself {
                break;
            }
            match &mut self.side {
                Side::Scripted(scripted) if !pending.is_produce() => {
                    let body = scripted.answer(&pending.header, &pending.request);
                    let frame = pending.header.answer(&body).into();
                    some = true;
                    self.answer(conn, frame);
                }
                Side::Scripted(_) => break,
                Side::Modelled(_) => {
                    if !self.give(conn) {
                        break;
                    }
                    some = true;
                    let Some(frame) = self.kept(conn) else { break };
                    self.answer(conn, frame);
                }
            }
        }
        some | self.collect()
    }

    /// Hands the oldest request of a connection to the model. False if it has it already.
    pub(super) fn give(&mut self, conn: RouteId) -> bool {
        let Some(link) = self.links.get_mut(&conn) else { return false };
        let Some(id) = link.net else { return false };
        let Some(pending) = link.queue.front_mut() else { return false };
        if pending.given {
            return pending.kept.is_some();
        }
        pending.given = true;
        let frame = pending.frame.clone();
        if let Side::Modelled(net) = &mut self.side {
            net.receive(self.now.as_micros(), id, &frame);
        }
        self.collect();
        true
    }

    fn kept(&mut self, conn: RouteId) -> Option<Bytes> {
        self.links.get_mut(&conn)?.queue.front_mut()?.kept.take()
    }

    /// Takes in what the model has to say.
    fn collect(&mut self) -> bool {
        let mut some = false;
        while let Side::Modelled(net) = &mut self.side
            && let Some(output) = net.poll()
        {
            some = true;
            match output {
                crate::serve::Output::Bytes { connection, bytes } => {
                    let open = self.links.values_mut().find(|link| link.net == Some(connection));
                    if let Some(front) = open.and_then(|link| link.queue.front_mut()) {
                        front.kept = Some(bytes.into());
                    }
                }
                crate::serve::Output::Closed { connection } => {
                    let of = |(_, link): &(&RouteId, &Link)| link.net == Some(connection);
                    let conn = self.links.iter().find(of).map(|(conn, _)| *conn);
                    if let Some(conn) = conn {
                        self.lose(conn, None, Loss::Ended);
                    }
                }
            }
        }
        some
    }

    /// The oldest request of a connection is answered with these bytes.
    pub(super) fn answer(&mut self, conn: RouteId, frame: Bytes) {
        let pending = self.links.get_mut(&conn).and_then(|link| link.queue.pop_front());
        let Some(pending) = pending else { return };
        if pending.is_produce() {
            super::answers::heard(&mut self.book, &self.offers, self.now, &pending, &frame);
        } else if matches!(pending.request, Request::Metadata(_)) {
            self.learn_leaders(&pending, &frame);
        }
        self.input(Input::Received { conn, bytes: frame });
    }

    fn learn_leaders(&mut self, pending: &Pending, frame: &Bytes) {
        let read = pending.header.read_answer(frame, MetadataResponse::decode);
        for topic in read.into_iter().flat_map(|metadata| metadata.topics) {
            let Some(name) = topic.name else { continue };
            if topic.error == 0 && topic.id != [0; 16] {
                self.offers.ids.insert(topic.id, name.clone());
            }
            for part in topic.partitions {
                let place = super::words::Place { topic: name.clone(), partition: part.index };
                let told = self.offers.told.entry(place).or_insert(-1);
                *told = part.leader_epoch.max(*told);
            }
        }
    }
}

fn side(setup: &Setup) -> Side {
    match setup.brokers {
        Brokers::Scripted => Side::Scripted(Scripted::new(setup)),
        Brokers::Modelled { profile, min_insync } => {
            let brokers = u8::try_from(setup.names.len()).unwrap_or(u8::MAX);
            let topics =
                setup.topics.iter().map(|plan| (plan.name.clone(), plan.partitions)).collect();
            let mut net = Net::new(Settings {
                profile: profile.unwrap_or(Profile::V4_4),
                brokers,
                replicas: setup.names.len(),
                topics,
                auto_create: None,
                begin: BEGIN.as_micros(),
                ..Settings::default()
            });
            for (node, name) in (1..).zip(&setup.names) {
                net.advertise(node, name, 9092);
            }
            for plan in &setup.topics {
                net.cluster_mut()
                    .configure(&plan.name, |config| config.min_insync_replicas = min_insync);
            }
            Side::Modelled(Box::new(net))
        }
    }
}
