//! Parts of the lane alone, where no verdict shows how they work: room, order, what is forgotten.
#![allow(clippy::unwrap_used, clippy::expect_used)] // a test's helpers

use alloc::vec;
use alloc::vec::Vec;

use super::attempt::{Attempt, Attempts, Passage};
use super::batch::{Entry, Heard, Past, Records, Retry, SealedBatch, Tally};
use super::offer::splitmix64;
use super::span::{Position, Span};
use crate::ids::{AttemptId, Identity, LeaderEpoch, ProducerId, RouteId, Sequence, Ticket};
use crate::rules::Honest;
use crate::testing::Counted;
use crate::time::Instant;

fn entry(ticket: u64, deadline: u64) -> Entry {
    Entry {
        ticket: Ticket(ticket),
        deadline: Instant::from_millis(deadline),
        taken_back: false,
        heard: Heard::Nothing,
    }
}

/// Records 0, 1, 2, ... in order, due at the tenth millisecond of their number.
fn records(count: u64) -> Records<Counted> {
    let mut records = Records::empty();
    for ticket in 0..count {
        records.push(entry(ticket, 10 * ticket), 0, ticket as u16);
    }
    records
}

fn tickets(records: &Records<Counted>) -> Vec<u64> {
    records.entries.iter().map(|entry| entry.ticket.0).collect()
}

/// D3: the payload may lag behind, by no more than half of it, and never where it is read.
#[test]
fn a_payload_is_rewritten_once_half_of_it_left() {
    let mut records = records(8);
    let mut left = Vec::new();
    for ticket in 0..4 {
        left.extend(records.take(|_, entry| entry.ticket == Ticket(ticket)));
        assert_eq!(records.payload.records().len(), 8, "four of eight are no more than half");
    }
    assert_eq!(tickets(&records), [4, 5, 6, 7]);
    assert!(left.iter().all(|told| told.index == 0), "places among those that were there");
    records.take(|_, entry| entry.ticket == Ticket(6));
    assert_eq!(records.payload.records(), [4, 5, 7]);
    records.take(|position, _| position == 1);
    assert_eq!(records.payload.records(), [4, 5, 7]);
    let behind = records.split_off(1);
    assert_eq!((records.payload.records(), behind.payload.records()), (vec![4], vec![7]));
}

/// Places that had left stand between those that leave, and before and behind them.
#[test]
fn places_are_those_of_the_payload() {
    let mut records = records(9);
    records.take(|_, entry| [1, 4, 8].contains(&entry.ticket.0));
    records.take(|_, entry| entry.ticket == Ticket(3));
    let behind = records.split_off(3);
    assert_eq!(records.payload.records(), [0, 2, 5]);
    assert_eq!(behind.payload.records(), [6, 7]);
    assert_eq!((tickets(&records), tickets(&behind)), (vec![0, 2, 5], vec![6, 7]));
}

/// V4: a batch is halved until it fits, and not once more.
#[test]
fn a_batch_that_fits_is_not_cut() {
    let sizes = |limit| {
        let (past, retry) = (Past::NeverOffered, Retry::AT_ONCE);
        let mut batch = SealedBatch { records: records(7), past, retry };
        let rest = batch.cut(limit);
        let all = core::iter::once(&batch).chain(&rest);
        all.map(|part| part.records.entries.len()).collect::<Vec<_>>()
    };
    assert_eq!(sizes(7), [7]);
    assert_eq!(sizes(6), [4, 3]);
    assert_eq!(sizes(4), [4, 3]);
    assert_eq!(sizes(3), [2, 2, 3]);
    assert_eq!(sizes(0), [1, 1, 2, 3], "one record cannot be cut");
}

/// A new batch gets the room of the one before it and an eighth more.
#[test]
fn room_is_made_for_a_batch_like_the_last_one() {
    let mut next: Records<Counted> = Records::empty();
    next.reserve(records(16).extent());
    assert_eq!(next.entries.capacity(), 18);
}

/// D4: taking a record back moves its deadline, and marks it only if that was still to come.
#[test]
fn taking_back_leaves_the_others_to_their_deadlines() {
    let mut records = records(4);
    assert!(records.cancel(Ticket(3), Instant::from_millis(25)));
    assert!(records.cancel(Ticket(2), Instant::from_millis(20)), "20 was its deadline anyway");
    let marked: Vec<_> = records.entries.iter().map(|entry| entry.taken_back).collect();
    assert_eq!(marked, [false, false, false, true]);
    assert_eq!(records.take_these(&[Ticket(3)]).len(), 1);
    assert!(!records.cancel(Ticket(3), Instant::from_millis(25)), "it has left");
    let due: Vec<_> =
        records.expire::<Honest>(Instant::from_millis(15)).iter().map(|it| it.ticket.0).collect();
    assert_eq!((due, tickets(&records)), (vec![0, 1], vec![2]));
}

/// Few of many leave by themselves, and all the same with places, order and the payload behind it.
#[test]
fn a_few_leave_as_if_all_were_looked_at() {
    let leaving = [3, 4, 17, 39].map(Ticket);
    let (mut one_by_one, mut at_once) = (records(40), records(40));
    for first in [Ticket(0), Ticket(20)] {
        one_by_one.take_these(&[first]);
        at_once.take(|_, entry| entry.ticket == first);
    }
    let told = one_by_one.take_these(&leaving);
    assert_eq!(told, at_once.take(|_, entry| leaving.contains(&entry.ticket)));
    assert_eq!(told.iter().map(|it| it.index).collect::<Vec<_>>(), [2, 3, 16, 37]);
    assert_eq!(tickets(&one_by_one), tickets(&at_once));
    assert_eq!(one_by_one.expiry(), at_once.expiry());
    let (behind, also) = (one_by_one.split_off(10), at_once.split_off(10));
    assert_eq!(one_by_one.payload.records(), at_once.payload.records());
    assert_eq!(behind.payload.records(), also.payload.records());
}

/// Of each route the oldest doubt counts; of routes that nobody answers on, only the oldest at all.
#[test]
fn a_tally_keeps_the_oldest_doubt_and_those_of_routes_in_use() {
    let (a, b, c) = (RouteId(1), RouteId(2), RouteId(3));
    let mut tally = Tally::default();
    for (route, attempt) in [(b, 4), (a, 7), (b, 6), (a, 5), (c, 9)] {
        tally.add_doubt(route, AttemptId(attempt));
    }
    let doubts = |tally: &Tally| tally.doubts().map(|(r, a)| (r.0, a.0)).collect::<Vec<_>>();
    assert_eq!(doubts(&tally), [(2, 4), (1, 5), (3, 9)]);
    assert_eq!(tally.oldest_doubt(), Some(AttemptId(4)));
    tally.forget_routes(|route| route == c);
    assert_eq!(doubts(&tally), [(2, 4), (3, 9)]);
    assert_eq!((tally.doubt_on(a), tally.doubt_on(c)), (None, Some(AttemptId(9))));
    tally.forget_routes(|_| false);
    assert_eq!(doubts(&tally), [(2, 4)]);
}

/// Ages are told by rank, so that states of a search do not differ by numbers that only grow.
#[test]
fn attempts_are_ranked_by_age() {
    let mut attempts = Attempts::default();
    let ids: Vec<_> = (0..3)
        .map(|n| {
            attempts.add(|id| Attempt {
                id,
                position: Position(n),
                route: RouteId(n),
                leader_epoch: LeaderEpoch(1),
                passage: Passage::Pass(1),
                first: true,
                orphaned: false,
                handed: false,
                settled: None,
                log: 0,
            })
        })
        .collect();
    let ranks = |attempts: &Attempts| ids.iter().map(|id| attempts.rank(*id)).collect::<Vec<_>>();
    assert_eq!(ranks(&attempts), [0, 1, 2]);
    attempts.take(ids[0]);
    assert_eq!(ranks(&attempts)[1..], [0, 1]);
    assert!(!attempts.uses(RouteId(0)) && attempts.uses(RouteId(1)) && attempts.uses(RouteId(2)));
}

/// The numbers that others publish for the seed 1234567.
#[test]
fn splitmix_is_what_others_call_so() {
    let published = [
        6_457_827_717_110_365_317,
        3_203_168_211_198_807_973,
        9_817_491_932_198_370_423,
        4_593_380_528_125_082_431,
    ];
    let mut seed = 1_234_567_u64;
    for number in published {
        assert_eq!(splitmix64(seed), number);
        seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    }
}

/// A span in which three records were offered in the place of others, at this sequence.
fn contested_by_three(first: i32) -> Span<Counted> {
    let first = Sequence::new(first).unwrap();
    let identity = Identity::fresh(ProducerId::new(7).unwrap());
    let retry = Retry::AT_ONCE;
    let sealed = SealedBatch { records: records(3), past: Past::NeverOffered, retry };
    let mut span = Span::new();
    let target = span.end();
    span.contest(sealed.sequence(identity, first, Instant::EPOCH), target);
    span
}

/// C, L5: a contest is remembered until all that it was about is decided.
#[test]
fn contests_are_remembered_as_long_as_they_matter() {
    let after = |first, oldest| {
        let mut span = contested_by_three(first);
        span.take_replacement();
        span.forget_contests(Sequence::new(oldest).unwrap());
        span.contests().len()
    };
    assert_eq!([0, 9, 10, 12, 13, 900].map(|oldest| after(10, oldest)), [1, 1, 1, 1, 0, 0]);
    let last = i32::MAX - 1;
    assert_eq!([last - 1, last, 0, 1].map(|oldest| after(last, oldest)), [1, 1, 1, 0]);
}

/// 46, C: a replacement of three at this sequence is in the way of whoever shares one number with it.
#[test]
fn what_overlaps_with_a_replacement_is_contested() {
    for first in [10, i32::MAX - 1] {
        let span = contested_by_three(first);
        let contested = |before: i32, count| {
            let place = first.wrapping_sub(before) & i32::MAX;
            span.is_contested(Sequence::new(place).unwrap(), count)
        };
        assert_eq!([3, 4, 5, 9].map(|count| contested(3, count)), [false, true, true, true]);
        assert_eq!([1, 3, 4].map(|count| contested(0, count)), [true, true, true]);
        assert_eq!([-1, -2, -3, -4].map(|behind| contested(behind, 1)), [true, true, false, false]);
    }
}
