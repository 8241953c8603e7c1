//! Whose turn it is: what is not offered yet, although it waits and its connection is there.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test's helpers

mod play;

use candor_core::*;
use play::{MINUTE, Play, preset};

/// V2: behind a slot that was given up nothing is sent again, whoever is asked in vain before it.
#[test]
fn nothing_behind_a_slot_that_was_given_up_is_sent_again() {
    let mut play = Play::new();
    play.open_gate(10);
    let (_, before) = play.append_and_offer(10 * MINUTE);
    let (_, given_up) = play.append_and_offer(10 * MINUTE);
    let (_, behind) = play.append_and_offer(10 * MINUTE);
    play.lose(before);
    play.error(given_up, 87);
    play.lose(behind);
    play.wait(2_000);
    let asked = play.try_offer().expect("the first is asked");
    assert_eq!(asked.first.get(), 41);
    play.error(asked.attempt, 45);
    for _ in 0..5 {
        play.confirm();
        play.wait(2_000);
        let Some(offer) = play.try_offer() else { continue };
        assert_eq!(offer.first.get(), 41);
        play.error(offer.attempt, 45);
    }
}

/// V2: nor is anything new sent under its epoch, though the gate is open.
#[test]
fn nothing_new_follows_a_slot_that_was_given_up() {
    let mut play = Play::new();
    play.open_gate(10);
    let (_, before) = play.append_and_offer(MINUTE);
    let (_, given_up) = play.append_and_offer(MINUTE);
    play.error(given_up, 87);
    play.append(MINUTE);
    assert!(play.try_offer().is_none());
    play.zero(before, 11);
    play.wait(2_000);
    let next = play.try_offer().expect("the next epoch");
    assert_eq!((next.identity.epoch.get(), next.first.get()), (4, 0));
}

/// L1: a batch that may still grow waits for its linger, whatever else is allowed.
#[test]
fn a_batch_that_lingers_is_not_offered_before() {
    let mut play = Play::new();
    let linger = LaneConfig::default().linger.as_millis();
    play.join(play.now as i64, MINUTE);
    let due = play.lane.deadline().expect("a deadline");
    assert_eq!((due.at, due.why), (Instant::from_millis(play.now + linger), Wakeup::Linger));
    assert!(play.try_offer().is_none());
    play.wait(linger - 1);
    assert!(play.try_offer().is_none());
    play.wait(1);
    assert!(play.try_offer().is_some());
}

/// L1: it lingers for itself, and not for one that left before.
#[test]
fn a_record_does_not_inherit_the_linger_of_one_that_left() {
    let mut play = Play::new();
    play.leader(None);
    let left = play.join(play.now as i64, 4);
    play.wait(50);
    assert_eq!(play.verdicts[&left], Verdict::NotDelivered(Proof::NeverOffered));
    play.next_route();
    play.join(play.now as i64, MINUTE);
    assert!(play.try_offer().is_none());
    play.wait(LaneConfig::default().linger.as_millis());
    assert!(play.try_offer().is_some());
}

/// L5: where memory is short a batch may go at once, and whoever comes before it does still joins it;
/// after a flush nobody joins.
#[test]
fn what_is_due_may_still_grow_and_what_is_flushed_may_not() {
    for (event, records) in [(Event::Due, 2), (Event::Flush, 1)] {
        let mut play = Play::new();
        play.join(play.now as i64, MINUTE);
        assert!(play.try_offer().is_none());
        play.tell(event);
        play.join(play.now as i64, MINUTE);
        let offer = play.try_offer().expect("due");
        assert_eq!(offer.batch.records().len(), records);
    }
    let mut play = Play::new();
    play.tell(Event::Due);
    play.join(play.now as i64, MINUTE);
    assert!(play.try_offer().is_none(), "nothing was there to be due");
}

/// C2: a replacement waits for what is in flight.
#[test]
fn a_slot_is_not_contested_beside_something_in_flight() {
    let mut play = Play::new();
    play.open_gate(10);
    let (revoked, asked) = play.append_and_offer(10 * MINUTE);
    let (_, beside) = play.append_and_offer(10 * MINUTE);
    play.error(asked, 7);
    play.revoke(revoked);
    play.wait(2_000);
    assert!(play.try_offer().is_none());
    play.error(beside, 7);
    play.append(MINUTE);
    play.wait(2_000);
    assert!(play.try_offer().expect("whoever was asked first").first.get() == 41);
}

/// S18: what was given up for another reason than a lost state keeps that reason, where the topic is
/// made anew after a contradiction.
#[test]
fn a_new_topic_ends_a_stop_and_leaves_other_reasons_alone() {
    let mut play = Play::new();
    play.open_gate(10);
    let (given_up, open) = play.append_and_offer(MINUTE);
    play.next_route();
    play.tell(Event::Abandon);
    play.poll();
    play.wait(2_000);
    let (_, wrong) = play.append_and_offer(MINUTE);
    play.zero(wrong, 3);
    assert!(play.lane.is_stopped());
    play.tell(Event::TopicRecreated);
    play.poll();
    assert!(!play.lane.is_stopped());
    play.lose(open);
    let Resolution::Never { reason, .. } = play.resolutions[&given_up] else { panic!("in doubt") };
    assert_eq!(reason, NeverReason::Abandoned);
}

/// S20: nothing is sent again that its broker may have forgotten, even before anybody polled.
#[test]
fn a_doubt_beyond_memory_is_not_offered_before_the_poll_that_ends_it() {
    let mut play = Play::new();
    play.open_gate(10);
    let (_, lost) = play.append_and_offer(1_000 * MINUTE);
    play.lose(lost);
    play.now += LaneConfig::default().state_ttl.as_millis();
    assert!(play.try_offer().is_none());
}

/// S20: one batch that lies behind deleted records is enough.
#[test]
fn one_of_two_behind_a_moved_log_start_is_enough() {
    let mut play = Play::new();
    play.open_gate(10);
    let (_, first) = play.append_and_offer(10 * MINUTE);
    let (_, telling) = play.append_and_offer(10 * MINUTE);
    let moved = PartitionResponse { log_start_offset: 15, ..PartitionResponse::error(19) };
    play.tell(Event::Answered { attempt: telling, answer: moved.into() });
    let handed = HandedOver::PerhapsWhole;
    play.tell(Event::Ended { attempt: first, handed });
    play.now += 2_000;
    assert!(play.try_offer().is_none(), "{:?}", play.lane.why(Ticket(1)));
}

/// S13: an answer is compared with the log that it is about.
#[test]
fn a_late_zero_of_the_former_topic_contradicts_nothing() {
    for recreated in [false, true] {
        let mut play = Play::new();
        play.open_gate(10);
        let (_, late) = play.append_and_offer(MINUTE);
        play.next_route();
        let again = play.offer_again();
        play.zero(again, 11);
        if recreated {
            play.tell(Event::TopicRecreated);
            play.poll();
        }
        play.zero(late, 3);
        assert_eq!(play.lane.is_stopped(), !recreated);
    }
}

/// S10: at the last epoch nothing is sent behind the 0 that opens it.
#[test]
fn a_used_up_epoch_sends_one_batch() {
    let mut play = Play::with(LaneConfig::default(), i16::MAX);
    play.append(MINUTE);
    assert!(play.try_offer().is_none(), "acknowledged, so used up");
    let other = ProducerId::new(8).unwrap();
    play.tell(Event::Identity(Identity { id: other, ..preset(0).identity }));
    assert_eq!(play.offer_again(), AttemptId(0));
}
