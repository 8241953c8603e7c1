//! The producer's caller: sends records of all sorts, cancels, flushes, closes.

use core::time::Duration;

use candor_core::Instant;
use candor_core::rules::Rules;
use candor_proto::{Record, WhyRefused};

use super::book::{Book, Page, lane};
use super::mark::{self, Shape};
use super::meddle::Step;
use super::rows::{Rule, Trouble};
use super::scenario::{Dice, MS, SECOND};
use super::tally::count;
use super::world::{Event, World};
use crate::judge::{Class, Fact, Lane};

const HOUR_MS: i64 = 3_600_000;
/// In how many of a thousand turns a record is revoked, where that happens at all.
const REVOKES: u32 = 160;
/// Of a thousand batches that a lost connection leaves in doubt, how many are revoked at once.
const REGRETS: u32 = 900;
/// Of a thousand of those, before how many somebody deletes what the partition holds.
const DELETED_FIRST: u32 = 700;
/// In how many turns of a thousand a partition is abandoned.
const ABANDONS: u32 = 20;

/// A record to be sent.
struct Draft {
    topic: u32,
    partition: Option<u32>,
    key: Option<Vec<u8>>,
    filler: usize,
    shape: Shape,
    timestamp: Option<i64>,
    deadline: Option<u64>,
    born: u64,
}

impl<R: Rules> World<R> {
    /// The caller's turn.
    pub(super) fn call(&mut self) {
        if self.left_to_send == 0 || self.closed {
            return;
        }
        self.rng = self.steps.turn();
        let burst = if self.rng.permille(200) { self.rng.u64(1..self.scenario.burst) } else { 1 };
        for _ in 0..burst.min(self.left_to_send) {
            self.left_to_send -= 1;
            let (happens, rng) = self.steps.record();
            self.rng = rng;
            if happens {
                let draft = self.draw_record();
                self.send(&draft);
            }
        }
        self.lay_ambush();
        if self.draws(Trouble::Cancel) {
            self.cancel_some();
        }
        if self.draws(Trouble::Flush) {
            self.trouble(Trouble::Flush, format_args!(""));
            let now = self.clock.tell();
            self.producer.flush(now);
        }
        let spread = self.scenario.trouble_for / self.scenario.records.max(1);
        let pause = self.scenario.pause.unwrap_or(spread);
        let after = self.rng.about(pause);
        self.schedule(after, Event::Caller);
        if self.wishes(Trouble::Revoke, REVOKES) {
            self.revoke_some();
        }
        if self.wishes(Trouble::Abandon, ABANDONS) {
            self.abandon_some();
        }
    }

    /// Whether the caller gives up something in this turn, so many times of a thousand.
    fn wishes(&mut self, trouble: Trouble, permille: u32) -> bool {
        let wanted = self.rough && self.scenario.has(trouble) && self.rng.permille(permille);
        wanted && self.befalls(trouble)
    }

    /// Sends some records to one partition, each in a batch of its own, where something awaits them.
    fn lay_ambush(&mut self) {
        let Some((steps, old)) = self.draw_ambush() else { return };
        let Some((_, topic, partition, _)) = self.some_partition() else { return };
        self.meddler.lay((topic, partition), steps);
        let now = (self.clock.now / 1_000) as i64;
        let aged = now - (self.scenario.state_ttl / 1_000) as i64 - 1_000;
        for place in 0..steps.len() {
            // With an old timestamp acknowledged last, the broker is not known to remember us.
            let timestamp = (old && place == 1).then_some(aged);
            let draft = Draft {
                topic,
                partition: u32::try_from(partition).ok(),
                key: None,
                filler: self.scenario.batch_size,
                shape: Shape::Value,
                timestamp,
                deadline: Some(self.scenario.longest_deadline),
                born: self.clock.now,
            };
            self.send(&draft);
        }
    }

    /// What some batches in a row run into, and whether the second of them is stamped long ago.
    fn draw_ambush(&mut self) -> Option<(&'static [Step], bool)> {
        if self.draws(Trouble::Forgotten) {
            Some((&[Step::Pass, Step::Forget, Step::Pass], false))
        } else if self.draws(Trouble::ReloadInDoubt) {
            Some((&[Step::Pass, Step::Pass, Step::Doubt, Step::DoubtAndReload], true))
        } else if self.draws(Trouble::Deleted) {
            let purges: [&[Step]; 2] = [
                &[Step::Pass, Step::DoubtAndPurge, Step::Pass, Step::Pass],
                &[Step::Pass, Step::Purge],
            ];
            self.rng.pick(&purges).map(|steps| (steps, false))
        } else {
            None
        }
    }

    fn draw_record(&mut self) -> Draft {
        let topics = self.scenario.topics.len();
        let topic = self.rng.usize(0..topics);
        let partitions = self.scenario.topics[topic].partitions as u32;
        let partition = match self.rng.u32(0..10) {
            0..=4 => Some(self.rng.u32(0..partitions)),
            5 if self.rough && self.rng.permille(300) => Some(partitions + self.rng.u32(0..2)),
            _ => None,
        };
        let key = (self.rng.bool()).then(|| vec![b'k'; self.rng.usize(0..6)]);
        let key = key.map(|mut key| {
            if let Some(last) = key.last_mut() {
                *last = self.rng.u8(..);
            }
            key
        });
        let shape = match self.rng.u32(0..20) {
            0 => Shape::NullValue,
            1 => Shape::EmptyValue,
            _ => Shape::Value,
        };
        let now = self.clock.now;
        Draft {
            topic: topic as u32,
            partition,
            key,
            filler: self.rng.usize(0..=self.scenario.biggest_record),
            shape,
            timestamp: self.draw_timestamp(),
            deadline: self.draw_deadline(),
            born: if self.rng.permille(100) { now - self.rng.about(10 * MS) } else { now },
        }
    }

    fn draw_timestamp(&mut self) -> Option<i64> {
        let now = (self.clock.now / 1_000) as i64;
        if self.is_drawn(Trouble::FutureTimestamp) {
            self.trouble(Trouble::FutureTimestamp, format_args!(""));
            return Some(now + 2 * HOUR_MS);
        }
        if self.is_drawn(Trouble::OldTimestamps) {
            self.trouble(Trouble::OldTimestamps, format_args!(""));
            let ttl = (self.scenario.state_ttl / 1_000) as i64;
            let age = self.rng.pick(&[ttl + 1_000, ttl * 2, ttl - 2_000])?;
            return Some(if self.rng.permille(200) { -1 } else { now - age });
        }
        None
    }

    fn draw_deadline(&mut self) -> Option<u64> {
        if self.is_drawn(Trouble::ShortDeadline) {
            self.trouble(Trouble::ShortDeadline, format_args!(""));
            return Some(if self.rng.bool() { 0 } else { self.rng.about(20 * MS) });
        }
        let longest = self.scenario.longest_deadline;
        match self.rng.u32(0..3) {
            _ if !self.rough => None,
            0 => None,
            1 => Some(self.rng.u64(MS..=longest)),
            _ => Some(longest),
        }
    }

    fn send(&mut self, draft: &Draft) -> Option<u64> {
        let name = self.scenario.topics[draft.topic as usize].name.clone();
        let now = self.clock.tell();
        let at = self.clock.believed();
        let born = draft.born.min(at);
        let longest = self.scenario.longest_deadline.min(self.scenario.state_ttl);
        // What is over when it is sent is told by the first poll behind it.
        let due = born + draft.deadline.unwrap_or(longest).min(self.scenario.state_ttl);
        let due = due.max(at);
        let page = Page {
            topic: draft.topic,
            asked: draft.partition.and_then(|partition| i32::try_from(partition).ok()),
            allowed: self.allowed(draft),
            place: None,
            due,
            bytes: draft.filler + draft.key.as_ref().map_or(0, Vec::len),
            said: None,
            resolved: None,
        };
        let number = self.book.intend(self.clock.now, at, page);
        let key = draft.key.as_deref();
        let marked = mark::marked(self.run, number, draft.topic, key, draft.filler);
        let record = build(&name, draft, &marked);
        match self.producer.append(now, Instant::from_micros(draft.born), record) {
            Ok(ticket) => {
                self.book.accepted(self.clock.now, at, number, ticket);
                match self.producer.place(ticket) {
                    Some((_, Some(place))) => {
                        self.book.placed(self.clock.now, number, Some(place));
                    }
                    Some((_, None)) => {
                        self.book.raw.insert(number);
                    }
                    None => {
                        let text = format!("record {number} was accepted and is nowhere");
                        self.book.complain(self.clock.now, Class::Contract, Some(number), text);
                    }
                }
                Some(number)
            }
            Err(refused) => {
                let why = refused.why;
                self.refused(number, why);
                None
            }
        }
    }

    /// Partitions that a key may go to: by its hash, for every count that the topic ever had.
    fn allowed(&self, draft: &Draft) -> Vec<i32> {
        let Some(key) = draft.key.as_deref().filter(|_| !self.scenario.sticky) else {
            return Vec::new();
        };
        if draft.partition.is_some() {
            return Vec::new();
        }
        let hash = murmur(key) & 0x7fff_ffff;
        (1..=12).map(|count| (hash % count) as i32).collect()
    }

    fn refused(&mut self, number: u64, why: WhyRefused) {
        let (now, at) = (self.clock.now, self.clock.believed());
        self.book.line(now, format_args!("record {number} refused: {why}"));
        self.book.fact(now, at, Fact::Refused { record: number });
        match why {
            WhyRefused::Full => self.trouble(Trouble::BufferFull, format_args!("")),
            WhyRefused::Stopped => {
                let stopped = self.stopped.clone();
                let topic = self.book.lane(number).map(|lane| lane.topic);
                if !stopped.iter().any(|(stopped, _)| Some(*stopped) == topic) {
                    let text = format!("record {number} refused by a lane that gave no notice");
                    self.book.complain(now, Class::Contract, Some(number), text);
                }
            }
            WhyRefused::Closed if self.closed || self.closing => {}
            WhyRefused::TooLarge { .. } if self.scenario.has(Trouble::BufferFull) => {}
            WhyRefused::TooLarge { .. }
            | WhyRefused::BadTopic
            | WhyRefused::BadPartition
            | WhyRefused::Closed => {
                let text = format!("record {number} refused: {why}");
                self.book.complain(now, Class::Contract, Some(number), text);
            }
        }
    }

    fn cancel_some(&mut self) {
        let all = self.book.untold.len();
        if all == 0 {
            return;
        }
        let at = self.rng.usize(0..all);
        let Some(record) = self.book.untold.iter().nth(at).copied() else { return };
        let Some(ticket) = self.book.ticket(record) else { return };
        self.trouble(Trouble::Cancel, format_args!("record {record}"));
        count(Rule::Cancelled);
        let now = self.clock.tell();
        let believed = self.clock.believed();
        self.book.fact(self.clock.now, believed, Fact::Cancelled { record });
        self.producer.cancel(now, ticket);
    }

    /// Some record shall never be written, or be known to be: one that is unknown, or one of which
    /// something was offered, or any.
    fn revoke_some(&mut self) {
        let unknown: Vec<u64> = self.book.unresolved.iter().copied().collect();
        let offered = self.links.values().flat_map(|link| &link.offered);
        let offered = offered.flat_map(|one| one.records.iter().copied());
        let offered: Vec<u64> = offered.filter(|it| self.book.untold.contains(it)).collect();
        let untold: Vec<u64> = self.book.untold.iter().copied().collect();
        let wanted = match self.rng.u32(0..10) {
            0..=3 => [unknown, offered, untold],
            4..=7 => [offered, unknown, untold],
            _ => [untold, offered, unknown],
        };
        let from = wanted.iter().find(|some| !some.is_empty());
        if let Some(record) = from.and_then(|some| self.rng.pick(some)) {
            self.revoke(record);
        }
    }

    /// What a lost connection leaves in doubt is revoked while the lane looks for another one (C1).
    pub(super) fn regret(&mut self, lane: Lane, records: &[u64]) {
        if !self.wishes(Trouble::Revoke, REGRETS) {
            return;
        }
        if self.scenario.has(Trouble::Deleted) && self.rng.permille(DELETED_FIRST) {
            self.schedule(0, Event::Purge(lane));
        }
        let open = |record: &&u64| {
            self.book.untold.contains(record) || self.book.unresolved.contains(record)
        };
        if let Some(record) = records.iter().find(open).copied() {
            self.revoke(record);
        }
    }

    fn revoke(&mut self, record: u64) {
        let Some(ticket) = self.book.ticket(record) else { return };
        self.trouble(Trouble::Revoke, format_args!("record {record}"));
        let (now, believed) = (self.clock.tell(), self.clock.believed());
        if self.book.untold.contains(&record) {
            // Its verdict is due as after a cancel.
            self.book.fact(self.clock.now, believed, Fact::Cancelled { record });
        }
        self.book.revoked.insert(record);
        if let Err(ended) = self.producer.revoke(now, ticket) {
            self.book.line(self.clock.now, format_args!("{ended}"));
            self.book.over.push(record);
        }
    }

    /// What is in doubt on some partition is given up.
    fn abandon_some(&mut self) {
        let Book { untold, unresolved, .. } = &self.book;
        let from = if unresolved.is_empty() { untold } else { unresolved };
        let all: Vec<u64> = from.iter().copied().collect();
        let Some(record) = self.rng.pick(&all) else { return };
        let Some(home) = self.book.lane(record).filter(|lane| lane.partition >= 0) else { return };
        let name = self.scenario.topics[home.topic as usize].name.clone();
        self.trouble(Trouble::Abandon, format_args!("{home}"));
        let (now, believed) = (self.clock.tell(), self.clock.believed());
        self.book.fact(self.clock.now, believed, Fact::Abandoned { lane: home });
        match self.producer.abandon(now, &name, home.partition) {
            Ok(()) => count(Rule::AbandonedByCaller),
            Err(unused) => self.book.line(self.clock.now, format_args!("{unused}")),
        }
    }

    /// The caller closes the producer, giving it so long.
    pub(super) fn close(&mut self, for_long: u64) -> u64 {
        let now = self.clock.tell();
        let believed = self.clock.believed();
        let due = believed + for_long;
        self.closing = true;
        self.book.fact(self.clock.now, believed, Fact::Closing { producer: 0, due });
        self.producer.close(now, Instant::from_micros(due));
        self.turn();
        due
    }

    /// A record for every partition that was written to, and one for each topic. Gives their numbers.
    pub(super) fn send_fresh(&mut self) -> Vec<u64> {
        let mut places: Vec<(u32, Option<u32>)> = Vec::new();
        for topic in 0..self.scenario.topics.len() as u32 {
            places.push((topic, None));
            let name = &self.scenario.topics[topic as usize].name;
            let there = self.net.cluster().partitions().filter(|(n, ..)| *n == name).count();
            places.extend((0..there as u32).map(|partition| (topic, Some(partition))));
        }
        let deadline = 30 * SECOND + 5 * self.scenario.request_timeout;
        let deadline = Some(deadline.min(self.scenario.state_ttl));
        let mut sent = Vec::new();
        for (topic, partition) in places {
            let draft = Draft {
                topic,
                partition,
                key: None,
                filler: 10,
                shape: Shape::Value,
                timestamp: None,
                deadline,
                born: self.clock.now,
            };
            sent.extend(self.send(&draft));
        }
        self.turn();
        sent
    }

    /// Whether the lane of a record stopped, which it announced.
    pub(super) fn is_stopped(&self, record: u64) -> bool {
        let home = self.book.lane(record).unwrap_or(lane(0, -1));
        self.stopped.contains(&(home.topic, home.partition))
    }
}

fn build<'a>(name: &'a str, draft: &'a Draft, marked: &'a [u8]) -> Record<'a> {
    let mut record = Record::to(name);
    if let Some(key) = &draft.key {
        record = record.key(key);
    }
    record = match draft.shape {
        Shape::Value => record.value(marked),
        Shape::NullValue => record.header(mark::HEADER, marked),
        Shape::EmptyValue => record.value("").header_null("nothing").header(mark::HEADER, marked),
    };
    if let Some(partition) = draft.partition {
        record = record.partition(partition);
    }
    if let Some(timestamp) = draft.timestamp {
        record = record.timestamp(timestamp);
    }
    if let Some(deadline) = draft.deadline {
        record = record.deadline(Duration::from_micros(deadline));
    }
    record
}

/// MurmurHash2 as Kafka partitions by it, by another hand than the producer's.
fn murmur(key: &[u8]) -> u32 {
    const M: u32 = 0x5bd1_e995;
    let mut hash = 0x9747_b28c ^ key.len() as u32;
    let mut at = 0;
    while at + 4 <= key.len() {
        let mut word = u32::from(key[at])
            | u32::from(key[at + 1]) << 8
            | u32::from(key[at + 2]) << 16
            | u32::from(key[at + 3]) << 24;
        word = word.wrapping_mul(M);
        word = (word ^ (word >> 24)).wrapping_mul(M);
        hash = hash.wrapping_mul(M) ^ word;
        at += 4;
    }
    let rest = &key[at..];
    if !rest.is_empty() {
        for (place, byte) in rest.iter().enumerate().rev() {
            hash ^= u32::from(*byte) << (8 * place);
        }
        hash = hash.wrapping_mul(M);
    }
    hash = (hash ^ (hash >> 13)).wrapping_mul(M);
    hash ^ (hash >> 15)
}
