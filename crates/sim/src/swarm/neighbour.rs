//! Other producers of the same cluster. They write to the same partitions, over connections that
//! never fail by themselves; what befalls the brokers befalls them as well.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use candor_core::rules::Rules;
use candor_core::{Instant, RouteId, Ticket};
use candor_proto::{Address, ConfigError, Handed, Input, Loss, Misuse, Output, Producer, Record};
use fastrand::Rng;

use super::mark;
use super::scenario::{BEGIN, Dice, MS, SECOND, Scenario};
use super::tally::Counting;
use super::wires::node_of;
use super::world::{Event, World};
use crate::codec::Batch;
use crate::judge::{Class, Entry, Fact, History, Lane, Log, Said, Settings, Stored};
use crate::serve::{ConnectionId, Hangup, Net};
use crate::words;

/// The number of the first one in the ledgers.
const FIRST: u32 = 1;
/// How many there are at most.
pub(super) const NEIGHBOURS: u64 = 3;

/// One connection of it.
#[derive(Debug)]
struct Wire {
    server: ConnectionId,
    sent: u64,
}

/// Another producer, and its ledger.
#[derive(Debug)]
pub(super) struct Neighbour<R: Rules> {
    /// Its number in the ledgers.
    number: u32,
    producer: Producer<Counting<R>>,
    wires: BTreeMap<RouteId, Wire>,
    /// What it is to be told.
    inbox: Vec<Input>,
    rng: Rng,
    left: u64,
    entries: Vec<Entry>,
    records: BTreeMap<Ticket, u64>,
    sent: u64,
    /// What its records are marked with.
    pub(super) run: u32,
    closing: bool,
    closed: bool,
    next_wake: u64,
}

impl<R: Rules> Neighbour<R> {
    /// The one with this place among them.
    pub(super) fn new(scenario: &Scenario, seed: u64, place: u32) -> Result<Self, ConfigError> {
        let run = (seed ^ (seed >> 32)) as u32;
        // Nobody else marks records like this.
        let run = !run ^ place << 24;
        let seed = seed.rotate_left(8 * place);
        Ok(Self {
            number: FIRST + place,
            producer: Producer::new(&scenario.config(), !seed, Instant::from_micros(BEGIN))?,
            wires: BTreeMap::new(),
            inbox: Vec::new(),
            rng: Rng::with_seed(!seed),
            left: scenario.neighbour_records,
            entries: Vec::new(),
            records: BTreeMap::new(),
            sent: 0,
            run,
            closing: false,
            closed: false,
            next_wake: 0,
        })
    }

    fn note(&mut self, now: u64, fact: Fact) {
        self.entries.push(Entry { at: now, fact });
    }

    fn route_of(&self, server: ConnectionId) -> Option<RouteId> {
        self.wires.iter().find(|(_, wire)| wire.server == server).map(|(conn, _)| *conn)
    }

    /// Whether bytes from a broker are for it. If so it has them at its next turn.
    pub(super) fn hear(&mut self, server: ConnectionId, bytes: &[u8]) -> bool {
        let Some(conn) = self.route_of(server) else { return false };
        self.inbox.push(Input::Received { conn, bytes: Bytes::copy_from_slice(bytes) });
        true
    }

    /// Whether the connection that a broker closed is one of its own.
    pub(super) fn hang_up(&mut self, server: ConnectionId) -> bool {
        let Some(conn) = self.route_of(server) else { return false };
        let sent = self.wires.remove(&conn).map_or(0, |wire| wire.sent);
        self.inbox.push(Input::Lost { conn, handed: Handed::AtMost(sent), why: Loss::Ended });
        true
    }

    /// Whether a batch is one of its own.
    pub(super) fn wrote(&self, topic: u32, batch: &Batch) -> bool {
        let records = Stored::all(batch, |record| mark::read(self.run, topic, record));
        records.iter().any(|stored| matches!(stored, Stored::Ours(_)))
    }

    /// Whether it was told something since its last turn.
    pub(super) fn has_heard(&self) -> bool {
        !self.inbox.is_empty()
    }

    fn settle(&mut self, now: u64, ticket: Ticket, said: Said, again: bool) {
        let Some(record) = self.records.get(&ticket).copied() else { return };
        let fact = match again {
            false => Fact::Verdict { record, said },
            true => Fact::Resolution { record, said },
        };
        self.note(now, fact);
    }
}

/// What it does.
impl<R: Rules> Neighbour<R> {
    /// Hears what there is to hear, and does what it wants to do. Gives whether there was anything.
    fn turn(&mut self, now: u64, net: &mut Net) -> Result<bool, Misuse> {
        let at = Instant::from_micros(now);
        let mut moved = false;
        loop {
            let mut again = false;
            for input in std::mem::take(&mut self.inbox) {
                again = true;
                self.producer.handle(at, input)?;
            }
            while let Some(output) = self.producer.poll(at) {
                again = true;
                self.output(now, output, net);
            }
            let conns: Vec<RouteId> = self.wires.keys().copied().collect();
            for conn in conns {
                again |= self.transmit(now, conn, net);
            }
            if !again {
                return Ok(moved);
            }
            moved = true;
        }
    }

    fn transmit(&mut self, now: u64, conn: RouteId, net: &mut Net) -> bool {
        if !self.producer.wants_transmit(conn) {
            return false;
        }
        let mut bufs: Vec<Bytes> = Vec::new();
        let n = self.producer.transmit(Instant::from_micros(now), conn, 1 << 20, &mut bufs);
        let Some(wire) = self.wires.get_mut(&conn).filter(|_| n > 0) else { return false };
        wire.sent += n as u64;
        net.receive(now, wire.server, &bufs.concat());
        self.inbox.push(Input::Sent { conn, n });
        true
    }

    fn output(&mut self, now: u64, output: Output, net: &mut Net) {
        match output {
            Output::Connect { conn, address } => self.dial(conn, &address, net),
            Output::Disconnect { conn, .. } => {
                let sent = self.wires.remove(&conn).map_or(0, |wire| {
                    net.hang_up(now, wire.server, Hangup::Fin);
                    wire.sent
                });
                let handed = Handed::AtMost(sent);
                self.inbox.push(Input::Lost { conn, handed, why: Loss::Asked });
            }
            Output::Settled(settlement) => {
                for (ticket, verdict) in settlement.settled.verdicts() {
                    self.settle(now, ticket, words::verdict(verdict), false);
                }
                for (ticket, resolution) in settlement.settled.resolutions() {
                    self.settle(now, ticket, words::resolution(resolution), true);
                }
            }
            Output::Closed => self.closed = true,
            Output::Notice(_) | Output::Flushed(_) => {}
        }
    }

    fn dial(&mut self, conn: RouteId, address: &Address, net: &mut Net) {
        let input = match net.connect(node_of(address)) {
            Some(server) => {
                self.wires.insert(conn, Wire { server, sent: 0 });
                Input::Connected { conn }
            }
            None => Input::Lost { conn, handed: Handed::AtMost(0), why: Loss::Refused },
        };
        self.inbox.push(input);
    }

    /// Sends a record to some partition, by name.
    fn send(&mut self, now: u64, scenario: &Scenario) {
        let topic = self.rng.usize(0..scenario.topics.len());
        let Some(plan) = scenario.topics.get(topic) else { return };
        let partition = self.rng.u32(0..plan.partitions as u32);
        let record = self.sent;
        self.sent += 1;
        self.left = self.left.saturating_sub(1);
        let topic = topic as u32;
        let lane = Lane { producer: self.number, topic, partition: partition as i32 };
        let longest = scenario.longest_deadline.min(scenario.state_ttl);
        let lasts = self.rng.u64(MS..=longest);
        self.note(now, Fact::Intent { record, lane, due: now + lasts });
        let filler = self.rng.usize(0..=scenario.biggest_record);
        let marked = mark::marked(self.run, record, topic, None, filler);
        let sends = Record::to(&plan.name).value(&marked).partition(partition);
        let sends = sends.deadline(Duration::from_micros(lasts));
        let at = Instant::from_micros(now);
        match self.producer.append(at, at, sends) {
            Ok(ticket) => {
                self.records.insert(ticket, record);
                self.note(now, Fact::Accepted { record });
            }
            Err(_) => self.note(now, Fact::Refused { record }),
        }
    }
}

/// What the world does with it.
impl<R: Rules> World<R> {
    /// Neighbours that were told something have their turns.
    pub(super) fn neighbours_hear(&mut self) {
        while let Some(place) = self.neighbours.iter().position(Neighbour::has_heard) {
            self.neighbours_turn(place);
        }
    }

    /// A neighbour has something to do, or to hear.
    pub(super) fn neighbours_turn(&mut self, place: usize) {
        let now = self.clock.now;
        let mut goes_on = true;
        while goes_on {
            let Some(one) = self.neighbours.get_mut(place) else { return };
            let did = one.turn(now, &mut self.net);
            if let Err(misuse) = &did {
                let text = format!("the neighbour calls a fact a misuse: {misuse}");
                self.book.complain(now, Class::Contract, None, text);
            }
            self.pump();
            let heard = self.neighbours.get(place).is_some_and(Neighbour::has_heard);
            goes_on = did.is_ok_and(|moved| moved) && heard;
        }
        let Some(one) = self.neighbours.get_mut(place) else { return };
        if let Some(deadline) = one.producer.deadline() {
            let at = deadline.at.as_micros().max(now + 1);
            if one.next_wake <= now || at < one.next_wake {
                one.next_wake = at;
                self.schedule_at(at, Event::Neighbour(place));
            }
        }
    }

    /// One sends a record, and will send another.
    pub(super) fn neighbour_sends(&mut self, place: usize) {
        let now = self.clock.now;
        let one = self.neighbours.get_mut(place);
        let Some(one) = one.filter(|one| one.left > 0 && !one.closing) else { return };
        one.send(now, &self.scenario);
        let after =
            one.rng.about(self.scenario.trouble_for / self.scenario.neighbour_records.max(1));
        self.schedule(after, Event::NeighbourSends(place));
        self.neighbours_turn(place);
    }

    /// They say their last words.
    pub(super) fn close_neighbours(&mut self) {
        let now = self.clock.now;
        let due = now + 20 * SECOND;
        for place in 0..self.neighbours.len() {
            let one = &mut self.neighbours[place];
            one.closing = true;
            one.note(now, Fact::Closing { producer: one.number, due });
            one.producer.close(Instant::from_micros(now), Instant::from_micros(due));
            self.neighbours_turn(place);
        }
        let is_open = |world: &Self| world.neighbours.iter().any(|one| !one.closed);
        while is_open(self) && self.step(due) {}
        if is_open(self) {
            let text = "a neighbour is not closed though its deadline is over".to_owned();
            self.book.complain(self.clock.now, Class::Late, None, text);
        }
    }

    /// Whether a batch is a neighbour's.
    pub(super) fn is_neighbours(&self, topic: u32, batch: &Batch) -> bool {
        self.neighbours.iter().any(|one| one.wrote(topic, batch))
    }

    /// What one did to a topic, and what came of that, for the judge.
    pub(super) fn neighbours_history(&self, place: usize, topic: u32) -> Option<History> {
        let one = self.neighbours.get(place)?;
        let plan = self.scenario.topics.get(topic as usize)?;
        let mut mine: BTreeSet<u64> = BTreeSet::new();
        let of_topic = |entry: &&Entry| match &entry.fact {
            Fact::Intent { record, lane, .. } => lane.topic == topic && mine.insert(*record),
            Fact::Accepted { record }
            | Fact::Refused { record }
            | Fact::Verdict { record, .. }
            | Fact::Resolution { record, .. } => mine.contains(record),
            Fact::Cancelled { .. }
            | Fact::Closing { .. }
            | Fact::Killed { .. }
            | Fact::Stall { .. }
            | Fact::Notice { .. }
            | Fact::Disturbed { .. }
            | Fact::Hidden { .. }
            | Fact::Abandoned { .. }
            | Fact::Offered { .. }
            | Fact::Answered { .. }
            | Fact::Ended { .. }
            | Fact::Routed { .. } => true,
        };
        let entries = one.entries.iter().filter(of_topic).cloned().collect();
        let there = self.net.cluster().partitions().filter(|(name, ..)| *name == plan.name).count();
        let log = |partition: i32| Log {
            topic,
            partition,
            batches: self.read_log_of(one, &plan.name, topic, partition),
        };
        let logs = (0..i32::try_from(there).unwrap_or(0)).map(log).collect();
        let settings = Settings { wire: false, slack: 0, ..Settings::default() };
        let (read_at, excuses) = (self.clock.now, Vec::new());
        Some(History { settings, entries, logs, read_at, excuses, closed: one.closed })
    }
}
