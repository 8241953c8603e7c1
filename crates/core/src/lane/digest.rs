//! The canonical form of a lane's state: relative times that saturate, small ids, and no counter
//! that steers nothing.

use alloc::vec::Vec;

use crate::ids::{LeaderEpoch, RouteId};
use crate::payload::Payload;
use crate::rules::{Mark, Rules, SettledAs, Stage};
use crate::time::{Instant, Span};

use super::attempt::{Attempt, Passage};
use super::batch::{SealedBatch, SequencedBatch, Wish};
use super::gate::{Confirmation, Gate};
use super::given_up::Rival;
use super::memory::offset_word;
use super::span::{Position, Replacement, Slot};
use super::{Holding, Lane, Life};

/// A state that searches may compare: two lanes with equal digests behave alike, as long as their
/// records differ only in content.
///
/// ```
/// use candor_core::{Instant, Lane, LaneConfig, testing::Counted};
/// let early: Lane<Counted> = Lane::new(LaneConfig::default(), Instant::from_millis(1));
/// let late: Lane<Counted> = Lane::new(LaneConfig::default(), Instant::from_millis(2));
/// assert_eq!(early.digest(Instant::from_millis(1)), late.digest(Instant::from_millis(2)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Digest(pub Vec<u64>);

/// How a digest calls connections and leader epochs, which have no meaning but to differ, and to
/// come before or after each other. Somebody who sees all of them can give small names.
///
/// ```
/// use candor_core::{Instant, Lane, LaneConfig, Names, RouteId, LeaderEpoch, testing::Counted};
/// let lane: Lane<Counted> = Lane::new(LaneConfig::default(), Instant::EPOCH);
/// let names = Names { route: &|_| 0, epoch: &|_| 0 };
/// assert_ne!(lane.digest_by(Instant::EPOCH, names).0, Vec::<u64>::new());
/// assert_eq!((Names::PLAIN.route)(RouteId(7)), 7);
/// assert_eq!((Names::PLAIN.epoch)(LeaderEpoch(3)), 3);
/// ```
#[derive(Clone, Copy)]
pub struct Names<'a> {
    /// Routes that differ have names that differ, as long as they are in use: a route is out of
    /// use once no attempt on it is unanswered and the lane can never be told of it again.
    pub route: &'a dyn Fn(RouteId) -> u64,
    /// Leader epochs that differ have names that differ, in the same order.
    pub epoch: &'a dyn Fn(LeaderEpoch) -> u64,
}

impl Names<'_> {
    /// Their own numbers.
    pub const PLAIN: Self = Self { route: &|route| route.0, epoch: &|epoch| epoch.0 as u64 };
}

impl core::fmt::Debug for Names<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Names")
    }
}

/// Times further away than this are all the same.
const HORIZON: Span = Span::from_secs(100 * 24 * 3600);
const MIDDLE: u64 = HORIZON.as_micros();

fn relative_to(now: Instant) -> impl Fn(Instant) -> u64 + Copy {
    move |at| {
        if at >= now {
            MIDDLE + at.since(now).as_micros().min(MIDDLE)
        } else {
            MIDDLE - now.since(at).as_micros().min(MIDDLE)
        }
    }
}

/// Times that only matter while they lie ahead.
fn ahead_of(now: Instant) -> impl Fn(Instant) -> u64 + Copy {
    move |at| at.since(now).as_micros().min(MIDDLE)
}

struct Words<'a, P: Payload, R: Rules> {
    lane: &'a Lane<P, R>,
    now: Instant,
    names: Names<'a>,
    first: u64,
    words: Vec<u64>,
}

impl<P: Payload, R: Rules> Lane<P, R> {
    /// The canonical state at `now`.
    pub fn digest(&self, now: Instant) -> Digest {
        self.digest_by(now, Names::PLAIN)
    }

    /// The canonical state at `now`, connections and leader epochs being called by these names.
    pub fn digest_by(&self, now: Instant, names: Names<'_>) -> Digest {
        let oldest = self.attempts.iter().map(|attempt| attempt.position);
        let given_up = self.given_up.iter().map(|it| it.position);
        let span = self.span.iter().map(|(position, _)| position);
        let first = span.chain(oldest).chain(given_up).min().unwrap_or_else(|| self.span.end()).0;
        let mut words = Words { lane: self, now, names, first, words: Vec::with_capacity(64) };
        words.lane();
        words.span();
        words.attempts();
        words.given_up();
        Digest(words.words)
    }
}

impl<P: Payload, R: Rules> Words<'_, P, R> {
    fn word(&mut self, word: u64) {
        self.words.push(word);
    }

    fn position(&mut self, position: Position) {
        self.word(position.0.saturating_add(1).saturating_sub(self.first));
    }

    fn epoch(&mut self, epoch: LeaderEpoch) {
        self.word((self.names.epoch)(epoch));
    }

    /// A time that only `state_ttl` asks about.
    fn age(&self, at: Instant) -> u64 {
        if self.remembers_for_ever() { 1 } else { relative_to(self.now)(at) }
    }

    fn remembers_for_ever(&self) -> bool {
        self.lane.config.state_ttl >= HORIZON
    }

    /// Where nobody waits between attempts, it does not matter how many failed.
    fn failures(&mut self, failures: u32) {
        let waits = self.lane.config.backoff_max > Span::ZERO;
        self.word(if waits { u64::from(failures.min(8)) } else { 0 });
    }

    fn lane(&mut self) {
        let lane = self.lane;
        let ahead = ahead_of(self.now);
        self.word(match lane.life {
            Life::Running => 1,
            Life::Closed => 2,
            Life::Stopped { cause, close: None } => 3 + cause as u64,
            Life::Stopped { cause, close: Some(at) } => (1 + cause as u64) << 60 | ahead(at),
            Life::Closing { deadline } => 1_000 + ahead(deadline),
        });
        match lane.identity {
            Holding::Nothing(_) => self.word(0),
            Holding::Asked(_) => self.word(1),
            Holding::Adopted(adopted) => {
                self.word(2 + u64::from(adopted.acknowledged));
                self.word(adopted.identity.id.get() as u64);
                self.word(adopted.identity.epoch.get() as u64);
                self.word(adopted.next.get() as u64);
            }
        }
        self.word(ahead(lane.renewal.not_before));
        self.failures(lane.renewal.failures);
        let route = lane.leader.route.map_or(0, |route| (self.names.route)(route) + 1);
        self.word(route);
        self.epoch(lane.leader.epoch);
        self.epoch(lane.leader.highest);
        self.gate();
        self.word(u64::from(lane.conflicts));
        self.word(u64::from(lane.unfenced) | u64::from(lane.held) << 1);
        self.word(lane.out.len() as u64);
        let mut memory = Vec::with_capacity(6);
        lane.memory.digest(|word| memory.push(word), |at| self.age(at));
        self.words.append(&mut memory);
        let words = &mut self.words;
        let waits = lane.config.backoff_max > Span::ZERO;
        lane.intake.digest(|word| words.push(word), ahead, waits);
        if let Some(established) = lane.memory.established() {
            self.position(established);
        }
    }

    fn gate(&mut self) {
        match self.lane.gate {
            Gate::Open { opener } => {
                self.word(1);
                self.position(opener);
            }
            Gate::Closed(pass) => {
                let stage = match pass.stage {
                    Stage::First => 0,
                    Stage::Second => 1,
                };
                self.word(match pass.confirmation {
                    Confirmation::NotNeeded => 2 + stage,
                    Confirmation::BeforeSecondPass => 4 + stage,
                    Confirmation::BeforeAbandon => 6 + stage,
                });
            }
        }
    }

    fn span(&mut self) {
        for (position, slot) in self.lane.span.iter() {
            self.position(position);
            match slot {
                Slot::Unsettled(batch) => self.batch(batch),
                Slot::Written { base, count } => {
                    self.word(offset_word(*base));
                    self.word(u64::from(*count));
                }
                Slot::Replacement(Replacement { batch, target }) => {
                    self.word(u64::MAX - 2);
                    self.position(*target);
                    self.batch(batch);
                }
                Slot::Vacated { first, kept } => {
                    self.word(u64::MAX);
                    self.word(first.get() as u64);
                    kept.iter().for_each(|batch| self.sealed(batch));
                }
                Slot::Overtaken => self.word(u64::MAX - 1),
            }
        }
        for contest in self.lane.span.contests() {
            self.word((contest.first.get() as u64) << 32 | u64::from(contest.count));
            self.word(contest.last.0);
        }
    }

    fn sealed(&mut self, batch: &SealedBatch<P>) {
        let ahead = ahead_of(self.now);
        self.word(batch.past as u64);
        self.word(ahead(batch.retry.not_before));
        for entry in &batch.records.entries {
            self.word(entry.ticket.0);
            self.word(ahead(entry.deadline));
        }
    }

    fn batch(&mut self, batch: &SequencedBatch<P>) {
        let ahead = ahead_of(self.now);
        for entry in &batch.entries {
            self.word(entry.ticket.0 << 2 | entry.heard as u64);
            self.word(if entry.is_untold() { ahead(entry.deadline) } else { 0 });
        }
        self.word(batch.first.get() as u64);
        self.word(ahead(batch.retry.not_before));
        self.word(batch.spared.map_or(0, |end| 1 + ahead(end)));
        self.failures(batch.retry.failures);
        self.word(u64::from(batch.tally.offered == batch.tally.refused));
        self.word(u64::from(batch.tally.offered == 1));
        self.word(match batch.mark {
            Mark::Unasked => 0,
            Mark::OutOfOrder => 1,
            Mark::UnknownProducer => 2,
            Mark::Refused { behind_out_of_order } => 3 + u64::from(behind_out_of_order),
        });
        self.word(match batch.wish {
            Wish::Settle => 0,
            Wish::Contest => 1,
            Wish::Contested { not_before } => 2 + ahead(not_before),
        });
        if let Some(refusal) = &batch.permanent {
            self.word(refusal.code as u64 + 100);
            self.word(u64::from(refusal.in_a_row.min(3)));
        }
        self.word(u64::from(batch.corrupt_in_a_row.min(3)));
        let age = self.age(batch.first_offer);
        self.word(age);
        self.word(u64::from(batch.log_start_moved_past));
        for (route, attempt) in batch.tally.doubts() {
            self.word((self.names.route)(route));
            self.word(self.lane.attempts.rank(attempt) as u64);
        }
    }

    fn attempts(&mut self) {
        for attempt in self.lane.attempts.iter() {
            self.attempt(attempt);
        }
    }

    fn attempt(&mut self, attempt: &Attempt) {
        self.position(attempt.position);
        self.word((self.names.route)(attempt.route));
        self.epoch(attempt.leader_epoch);
        let flags = [attempt.first, attempt.orphaned, attempt.handed];
        self.word(flags.iter().fold(1, |word, flag| word << 1 | u64::from(*flag)));
        self.word(u64::from(self.lane.memory.log != attempt.log));
        match attempt.passage {
            Passage::Gate { opener } => self.position(opener),
            Passage::Pass(_) => self.word(u64::from(self.lane.is_of_this_pass(attempt)) + 1_000),
        }
        self.word(match attempt.settled {
            None => 0,
            Some(SettledAs::NotWritten) => 1,
            Some(SettledAs::Forgotten) => 2,
            Some(SettledAs::Written { base }) => 3 + offset_word(Some(base)),
            Some(SettledAs::Concluded { bounds, count }) => {
                offset_word(bounds.previous_end) << 40
                    | offset_word(bounds.next_base) << 20
                    | u64::from(count) << 10
                    | bounds.room_before.min(31) << 5
                    | bounds.room_behind.min(31)
            }
        });
    }

    fn given_up(&mut self) {
        for given_up in &self.lane.given_up {
            self.position(given_up.position);
            for told in &given_up.records {
                self.word(told.ticket.0);
            }
            self.word(given_up.reason as u64);
            self.word(offset_word(given_up.fence));
            self.word(u64::from(self.lane.memory.log != given_up.log));
            self.word(given_up.standing::<R>() as u64);
            self.word(u64::from(given_up.contested));
            match &given_up.rival {
                Rival::None => self.word(0),
                Rival::Doubtful => self.word(1),
                Rival::Waiting { position, indexes } => {
                    self.word(2);
                    self.position(*position);
                    indexes.iter().for_each(|index| self.word(u64::from(*index)));
                }
            }
        }
    }
}
