//! D1, D3, D4: what the end of a record costs does not grow with what else waits; and who is told
//! what, and in which order, is what walking over everything would give. Work is counted, not timed.

#![allow(clippy::unwrap_used, reason = "a test fails by panic")]

mod play;

use std::cell::Cell;
use std::collections::BTreeMap;

use candor_core::rules::{Honest, Rules};
use candor_core::testing::Counted;
use candor_core::*;
use play::Play;
use proptest::prelude::*;

thread_local! {
    /// How often a batch was measured, or anything was asked whether it is due.
    static WORK: Cell<u64> = const { Cell::new(0) };
}

fn work() {
    WORK.set(WORK.get() + 1);
}

/// The honest rules, counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counting;

impl Rules for Counting {
    fn expired(now: Instant, deadline: Instant) -> bool {
        work();
        Honest::expired(now, deadline)
    }
}

/// A payload that counts how often it is measured, and each record that is moved to take out others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Measured(Counted);

impl Payload for Measured {
    type Record<'r> = u16;
    type Frozen = Self;

    fn empty() -> Self {
        Self::default()
    }
    fn size_with(&self, timestamp: i64, record: &u16) -> usize {
        self.0.size_with(timestamp, record)
    }
    fn push(&mut self, timestamp: i64, record: u16) {
        self.0.push(timestamp, record);
    }
    fn remove(&mut self, index: u32) {
        self.0.remove(index);
    }
    fn remove_all(&mut self, indexes: &[u32]) {
        (0..Payload::count(self)).for_each(|_| work());
        self.0.remove_all(indexes);
    }
    fn split_off(&mut self, at: u32) -> Self {
        Self(self.0.split_off(at))
    }
    fn join(&mut self, behind: Self) {
        self.0.join(behind.0);
    }
    fn count(&self) -> u32 {
        Payload::count(&self.0)
    }
    fn bytes(&self) -> usize {
        work();
        Payload::bytes(&self.0)
    }
    fn max_timestamp(&self) -> i64 {
        Payload::max_timestamp(&self.0)
    }
    fn freeze(self, _: Identity, _: Sequence) -> Self {
        self
    }
}

impl Frozen for Measured {
    type Open = Self;

    fn thaw(self) -> Self {
        self
    }
    fn count(&self) -> u32 {
        Payload::count(self)
    }
    fn bytes(&self) -> usize {
        Payload::bytes(self)
    }
    fn max_timestamp(&self) -> i64 {
        Payload::max_timestamp(self)
    }
}

type Idle = Lane<Measured, Counting>;

fn at(micros: u64) -> Instant {
    Instant::from_micros(1_000_000_000_000 + micros)
}

/// A lane without a leader, with these deadlines, and a flush behind every so many records.
fn waiting(deadlines: impl IntoIterator<Item = u64>, per_batch: usize) -> Idle {
    let mut lane = Idle::new(LaneConfig::default(), at(0));
    for (number, deadline) in deadlines.into_iter().enumerate() {
        let deadline = at(deadline);
        let ticket = Ticket(number as u64);
        let append = Append { ticket, born: at(0), deadline, timestamp: 1, record: 1 };
        lane.handle(at(0), Event::Append(append)).unwrap();
        if (number + 1).is_multiple_of(per_batch) {
            lane.handle(at(0), Event::Flush).unwrap();
        }
    }
    lane
}

/// All that the lane has to say at this time.
fn heard(lane: &mut Idle, now: Instant) -> Vec<Settled> {
    let actions = std::iter::from_fn(|| lane.poll(now));
    let settled = actions.filter_map(|action| match action {
        Action::Settled(settled) => Some(settled),
        Action::Notice(_) | Action::NeedIdentity | Action::NeedLeader => None,
    });
    settled.collect()
}

/// What the ends of `count` records cost, each at a time of its own.
fn cost(count: u64, per_batch: usize, deadline: impl Fn(u64) -> u64, cancelled: bool) -> u64 {
    let mut lane = waiting((0..count).map(|number| 1_000 + deadline(number)), per_batch);
    WORK.set(0);
    for number in 0..count {
        let now = if cancelled { at(number) } else { at(1_000 + number) };
        if cancelled {
            lane.handle(now, Event::Cancel(Ticket(number))).unwrap();
        }
        let told: usize = heard(&mut lane, now).iter().map(|it| it.records.len()).sum();
        assert_eq!(told, 1);
    }
    assert!(lane.is_idle());
    WORK.get()
}

#[test]
fn a_record_that_ends_costs_the_same_however_many_wait() {
    // The third is a permutation that is neither ascending nor descending: 4,099 is prime.
    for per_batch in [1, 10, usize::MAX] {
        for (order, ends) in [("ascending", 0), ("descending", 1), ("mixed", 2), ("cancelled", 3)] {
            let count = 4_098;
            let deadline = |number| match ends {
                1 => count - 1 - number,
                2 => (number + 1) * 1_000 % 4_099 - 1,
                _ => number,
            };
            let all = cost(count, per_batch, deadline, ends == 3);
            assert!(all < 30 * count, "{order}, {per_batch} per batch: {all}");
        }
    }
}

/// A record as the second hand knows it.
#[derive(Clone, Debug)]
struct Waits {
    ticket: u64,
    deadline: u64,
    taken_back: bool,
}

/// The second hand: batches as plain lists, walked over from the front.
fn walk(batches: &mut [Vec<Waits>], now: u64) -> Vec<Settled> {
    let mut take = |due: &dyn Fn(&Waits) -> bool| {
        let taken = batches.iter_mut().map(|batch| {
            let gone = batch.iter().enumerate().filter(|(_, it)| due(it));
            let told = |(index, it): (usize, &Waits)| Told {
                ticket: Ticket(it.ticket),
                index: index as u32,
                unknown: false,
            };
            let gone: Vec<Told> = gone.map(told).collect();
            batch.retain(|it| !due(it));
            gone
        });
        taken.collect::<Vec<_>>()
    };
    let taken_back = take(&|it| it.taken_back && it.deadline <= now).concat();
    let due = take(&|it| it.deadline <= now);
    let settled = |records, proof| Settled { records, outcome: Outcome::NotDelivered(proof) };
    let told = [settled(taken_back, Proof::TakenBack)].into_iter();
    let told = told.chain(due.into_iter().map(|records| settled(records, Proof::NeverOffered)));
    told.filter(|it| !it.records.is_empty()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_due_is_told_as_if_everything_was_walked_over(
        deadlines in prop::collection::vec(1..40_u64, 1..60),
        per_batch in prop::sample::select(vec![1, 3, 20, 100]),
        steps in prop::collection::vec((0..9_u64, prop::option::of(0..60_usize)), 1..20),
    ) {
        let mut lane = waiting(deadlines.clone(), per_batch);
        let all: Vec<_> = deadlines.iter().zip(0..).map(|(deadline, ticket)| {
            Waits { ticket, deadline: *deadline, taken_back: false }
        }).collect();
        let mut batches: Vec<Vec<Waits>> = all.chunks(per_batch).map(<[_]>::to_vec).collect();
        let mut now = 0;
        for (step, cancelled) in steps {
            now += step;
            if let Some(ticket) = cancelled {
                lane.handle(at(now), Event::Cancel(Ticket(ticket as u64))).unwrap();
                let found = batches.iter_mut().flatten().find(|it| it.ticket == ticket as u64);
                if let Some(it) = found.filter(|it| now < it.deadline) {
                    (it.deadline, it.taken_back) = (now, true);
                }
            }
            prop_assert_eq!(heard(&mut lane, at(now)), walk(&mut batches, now));
            let next = batches.iter().flatten().map(|it| at(it.deadline)).min();
            prop_assert_eq!(lane.deadline().map(|it| it.at).filter(|_| next.is_some()), next);
            prop_assert_eq!(lane.usage().waiting == 0, next.is_none());
        }
    }

    /// The same where batches leave, and come back in halves (10): who is due is told, and nobody else.
    #[test]
    fn who_is_due_is_told_whatever_left_and_came_back(
        deadlines in prop::collection::vec(1..900_u64, 1..60),
        per_batch in 1..9_usize,
        steps in prop::collection::vec((0..60_u64, 0..4_u8, 0..60_u64), 1..60),
    ) {
        let mut play = Play::new();
        let mut due = BTreeMap::new();
        for (number, deadline) in deadlines.into_iter().enumerate() {
            let ticket = play.join(play.now as i64, deadline);
            due.insert(ticket, play.now + deadline);
            if number % per_batch == 0 {
                play.flush();
            }
        }
        let mut offset = 10;
        for (wait, what, ticket) in steps {
            play.wait(wait);
            match what {
                0 => {
                    play.tell(Event::Cancel(Ticket(ticket)));
                    due.entry(ticket).and_modify(|at| *at = play.now.min(*at));
                    play.poll();
                }
                1 | 2 => {
                    if let Some(offer) = play.try_offer() {
                        if what == 1 {
                            play.zero(offer.attempt, offset);
                            offset += 10;
                        } else {
                            play.error(offer.attempt, 10);
                        }
                    }
                }
                _ => play.flush(),
            }
            for (ticket, at) in &due {
                let early = matches!(
                    play.verdicts.get(ticket),
                    Some(
                        Verdict::Delivered { .. }
                            | Verdict::NotDelivered(Proof::Rejected { code: 10 })
                    )
                );
                let told = play.verdicts.contains_key(ticket);
                prop_assert_eq!(told, early || *at <= play.now, "{} due at {}", ticket, at);
            }
            prop_assert!(play.lane.deadline().is_none_or(|it| it.at > play.now()));
        }
    }
}
