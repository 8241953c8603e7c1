//! What a lane says of itself when it is asked: what it holds, whether all is told, what a record
//! waits for. No verdict hangs on these readings; memory, scheduling and support do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test's helpers

mod play;

use candor_core::testing::Counted;
use candor_core::*;
use play::{MINUTE, Play};

fn usage(waiting: usize, unsettled: usize, unknown: usize) -> Usage {
    Usage { waiting, unsettled, unknown }
}

/// A batch of these many records; the ticket of the first.
fn batch(play: &mut Play, records: u64, deadline: u64) -> u64 {
    let first = play.join(play.now as i64, deadline);
    for _ in 1..records {
        play.join(play.now as i64, deadline);
    }
    play.flush();
    first
}

/// L5: records weigh once, where they are; those of whole batches that were told are counted apart.
#[test]
fn what_a_lane_holds_is_counted_where_it_is() {
    let mut play = Play::new();
    play.open_gate(10);
    assert_eq!(play.lane.usage(), usage(0, 0, 0));
    batch(&mut play, 3, 10);
    assert_eq!(play.lane.usage(), usage(3, 0, 0));
    let three = play.offer();
    batch(&mut play, 2, MINUTE);
    let two = play.offer();
    play.append(MINUTE);
    assert_eq!(play.lane.usage(), usage(1, 5, 0));
    assert_eq!(play.lane.usage().total(), 6);
    play.wait(20);
    assert_eq!(play.lane.usage(), usage(1, 5, 3), "the first batch's deadline came");
    play.zero(three, 11);
    assert_eq!(play.lane.usage(), usage(1, 2, 0));
    play.zero(two, 14);
    assert_eq!(play.lane.usage(), usage(1, 0, 0));
}

/// V1: a slot that was given up holds records that wait for another sequence.
#[test]
fn the_records_of_a_slot_that_was_given_up_wait() {
    let mut play = Play::new();
    play.open_gate(10);
    let before = play.append_and_offer(MINUTE).1;
    batch(&mut play, 4, MINUTE);
    let large = play.offer();
    play.error(large, 10);
    assert_eq!(play.lane.usage(), usage(4, 1, 0));
    assert!(!play.lane.is_idle());
    assert_eq!(play.lane.why(Ticket(play.tickets - 1)), Why::Queue);
    play.zero(before, 11);
    assert_eq!(play.lane.usage(), usage(4, 0, 0), "in two batches of another epoch");
    assert_eq!(play.lane.why(Ticket(play.tickets - 1)), Why::Queue);
}

/// C1: while a replacement is in doubt, it weighs beside the batch whose slot it contests.
#[test]
fn a_replacement_weighs_until_its_slot_is_settled() {
    let mut play = Play::new();
    play.open_gate(10);
    let revoked = batch(&mut play, 2, MINUTE);
    let lost = play.offer();
    play.lose(lost);
    play.next_route();
    play.append(MINUTE);
    let contest = play.contest(revoked);
    let held = play.lane.usage();
    assert_eq!(held.total(), 2 + contest.batch.records().len() + held.waiting);
    assert_eq!(held.unsettled, 2 + contest.batch.records().len());
}

/// Idle means that all is told: each of these alone is not.
#[test]
fn a_lane_is_idle_when_everything_was_told() {
    let mut play = Play::new();
    assert!(play.lane.is_idle());
    play.append(10);
    assert!(!play.lane.is_idle(), "a record waits");
    let attempt = play.offer();
    assert!(!play.lane.is_idle(), "an attempt is open");
    play.wait(20);
    assert!(!play.lane.is_idle(), "told Unknown, and not resolved");
    play.tell(Event::Answered { attempt, answer: PartitionResponse::appended(10).into() });
    assert!(!play.lane.is_idle(), "its resolution was not taken out yet");
    play.poll();
    assert!(play.lane.is_idle());
}

/// L4: what was given up is told Never when its last attempt is over, not before.
#[test]
fn a_lane_that_gave_up_is_not_idle_before_its_attempts_are_over() {
    let mut play = Play::new();
    play.open_gate(10);
    let (ticket, attempt) = play.append_and_offer(MINUTE);
    play.tell(Event::Abandon);
    play.poll();
    assert!(matches!(play.verdicts[&ticket], Verdict::Unknown(_)));
    assert!(!play.resolutions.contains_key(&ticket));
    assert!(!play.lane.is_idle());
    assert_eq!(play.lane.why(Ticket(ticket)), Why::Resolution);
    play.lose(attempt);
    assert!(play.resolutions.contains_key(&ticket));
    assert!(play.lane.is_idle());
    assert_eq!(play.lane.why(Ticket(ticket)), Why::Gone);
}

/// S13: an offset that another record of ours has stops the lane until the topic is made anew.
#[test]
fn a_contradiction_stops_a_lane_until_its_topic_is_made_anew() {
    let mut play = Play::new();
    assert!(!play.lane.is_stopped() && !play.lane.awaits_new_topic());
    let (_, attempt) = play.append_and_offer(MINUTE);
    play.zero(attempt, 9);
    assert!(play.lane.is_stopped() && play.lane.awaits_new_topic());
    play.tell(Event::TopicRecreated);
    play.poll();
    assert!(!play.lane.is_stopped() && !play.lane.awaits_new_topic());
}

/// K6 with `Stop`: only a person lifts that, not a topic made anew.
#[test]
fn a_stop_that_was_asked_for_waits_for_no_topic() {
    let stop = LaneConfig { on_data_loss: OnDataLoss::Stop, ..LaneConfig::default() };
    let mut play = Play::with(stop, 3);
    play.open_gate(10);
    let (_, first) = play.append_and_offer(10 * MINUTE);
    play.error(first, 45);
    play.confirm();
    for _ in 0..3 {
        if !play.lane.is_stopped() {
            let again = play.offer_again();
            play.error(again, 45);
            play.confirm();
        }
    }
    assert!(play.lane.is_stopped(), "{:?}", play.notices);
    assert!(!play.lane.awaits_new_topic());
}

/// L6: nobody asks for a producer id before a record needs one, and then once.
#[test]
fn an_identity_is_asked_for_by_the_first_record_and_once() {
    let mut lane: Lane<Counted> = Lane::new(LaneConfig::default(), Instant::EPOCH);
    let asked = |lane: &mut Lane<Counted>, event: Event<'_, Counted>| {
        lane.handle(Instant::EPOCH, event).unwrap();
        let actions = std::iter::from_fn(|| lane.poll(Instant::EPOCH));
        actions.filter(|action| *action == Action::NeedIdentity).count()
    };
    let append = |ticket| {
        Event::Append(Append {
            ticket: Ticket(ticket),
            born: Instant::EPOCH,
            deadline: Instant::from_millis(MINUTE),
            timestamp: 0,
            record: 0,
        })
    };
    let leader = Event::Leader { route: Some(RouteId(1)), epoch: LeaderEpoch(1) };
    assert_eq!(asked(&mut lane, leader), 0);
    assert_eq!(asked(&mut lane, Event::Flush), 0);
    assert_eq!(asked(&mut lane, append(1)), 1);
    assert_eq!(asked(&mut lane, append(2)), 0);
    assert_eq!(lane.why(Ticket(1)), Why::Identity);
}

/// What an answer without an offset looks like: nothing but the code is known.
#[test]
fn an_error_tells_only_its_code() {
    let error = PartitionResponse::error(7);
    let unknown = (error.base_offset, error.log_append_time, error.log_start_offset);
    assert_eq!((error.error_code, unknown), (7, (-1, -1, -1)));
    assert_eq!(Answer::from(error).code(), Some(7));
    assert_eq!(Answer::Missing.code(), None);
}

/// One record from its append to its verdict.
#[test]
fn why_follows_a_record() {
    let mut play = Play::new();
    let linger = LaneConfig::default().linger;
    assert!(linger > Span::ZERO);
    play.open_gate(10);
    play.leader(None);
    let ticket = Ticket(play.join(play.now as i64, MINUTE));
    assert_eq!(play.lane.why(ticket), Why::Leader);
    play.next_route();
    assert_eq!(play.lane.why(ticket), Why::Linger);
    play.wait(linger.as_millis());
    assert_eq!(play.lane.why(ticket), Why::Transmit);
    let attempt = play.offer();
    assert_eq!(play.lane.why(ticket), Why::Transmit, "not handed over yet");
    let behind = Ticket(play.append(MINUTE));
    assert_eq!(play.lane.why(behind), Why::Gate, "the leader is new");
    play.tell(Event::Handed { attempt });
    assert_eq!(play.lane.why(ticket), Why::Answer { attempt });
    play.error(attempt, 7);
    assert_eq!(play.lane.why(behind), Why::Gate, "one at a time behind an error");
    let Why::Backoff { until } = play.lane.why(ticket) else {
        panic!("{:?}", play.lane.why(ticket))
    };
    play.now = until.as_millis() as u64;
    play.poll();
    assert_eq!(play.lane.why(ticket), Why::Transmit);
    play.tell(Event::Hold);
    assert_eq!(play.lane.why(ticket), Why::Hold);
    play.tell(Event::Release);
    play.leader(None);
    assert_eq!(play.lane.why(ticket), Why::Leader);
    play.next_route();
    let again = play.offer();
    play.zero(again, 11);
    assert_eq!(play.lane.why(ticket), Why::Gone);
}

/// S1: five batches may be unsettled; the sixth waits, and a seventh for the sixth.
#[test]
fn why_tells_of_a_full_span() {
    let mut play = Play::new();
    play.open_gate(10);
    let attempts: Vec<_> = (0..5).map(|_| play.append_and_offer(MINUTE).1).collect();
    let sixth = Ticket(play.append(MINUTE));
    let seventh = Ticket(play.append(MINUTE));
    assert_eq!(play.lane.why(sixth), Why::Span);
    assert_eq!(play.lane.why(seventh), Why::Queue);
    assert!(play.try_offer().is_none());
    play.zero(attempts[0], 11);
    assert_eq!(play.lane.why(sixth), Why::Transmit);
}

/// K5, L4: what asks for the leader's confirmation says so.
#[test]
fn why_tells_of_a_confirmation() {
    let mut play = Play::new();
    play.ask_in_vain();
    let Why::Confirmation { epoch } = play.lane.why(Ticket(0)) else {
        panic!("{:?}", play.lane.why(Ticket(0)))
    };
    assert_eq!(epoch, LeaderEpoch(play.epoch));
    play.confirm();
    assert!(!matches!(play.lane.why(Ticket(0)), Why::Confirmation { .. }));
}

/// S9: each lane gets each id once, in the order in which they came.
#[test]
fn a_pool_gives_no_id_twice() {
    let id = |number| ProducerId::new(number).unwrap();
    let mut pool = Pool::default();
    assert!(pool.next(None).is_none());
    assert!(pool.add(id(4)) && pool.add(id(2)) && pool.add(id(9)));
    assert!(!pool.add(id(2)), "known already");
    let mut last = None;
    let mut given = Vec::new();
    while let Some((index, identity)) = pool.next(last) {
        assert_eq!(identity, Identity::fresh(identity.id));
        given.push(identity.id.get());
        last = Some(index);
    }
    assert_eq!(given, [4, 2, 9]);
}

/// L3: behind an open gate a batch may still wait for its time.
#[test]
fn why_tells_of_a_wait_behind_an_open_gate() {
    let mut play = Play::new();
    play.open_gate(10);
    let (refused, first) = play.append_and_offer(MINUTE);
    let (behind, second) = play.append_and_offer(MINUTE);
    play.error(first, 19);
    play.wait(2_000);
    assert_eq!(play.lane.why(Ticket(refused)), Why::Gate, "the other one's answer first");
    play.error(second, 19);
    let again = play.offer();
    play.zero(again, 11);
    assert!(matches!(play.lane.why(Ticket(behind)), Why::Backoff { until } if until > play.now()));
    assert!(play.try_offer().is_none());
    play.wait(2_000);
    assert_eq!(play.lane.why(Ticket(behind)), Why::Transmit);
}
