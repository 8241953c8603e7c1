//! Rules 8 and 9: requests, metadata, connections.

use candor_core::Span;
use candor_core::rules::{Honest, Rules};

use crate::answers;

#[test]
fn a_window_has_room_until_it_is_full() {
    let room = [0, 99, 100, 101].map(|unsent| Honest::window_has_room(unsent, 100));
    assert_eq!(room, [true, true, false, false]);
    assert!(!Honest::window_has_room(0, 0));
}

#[test]
fn partitions_in_requests() {
    assert!(!Honest::may_repeat_in_request());
    assert_eq!([0, 1, 2, 3].map(Honest::goes_alone), [false, false, true, true]);
    assert!(Honest::is_another_topic(false) && !Honest::is_another_topic(true));
}

#[test]
fn two_answers_count_by_two_brokers_or_by_time() {
    let age = Span::from_secs(300);
    for (apart, old_enough) in [(0, false), (299_999, false), (300_000, true), (300_001, true)] {
        let apart = Span::from_millis(apart);
        assert!(Honest::two_answers_count(true, apart, age));
        assert_eq!(Honest::two_answers_count(false, apart, age), old_enough);
    }
}

/// K5: a broker that is left alone need not insist for as long as one that has company.
#[test]
fn how_long_one_broker_insists() {
    let insists = |others_failed, backoff, age| {
        let [backoff, age] = [backoff, age].map(Span::from_secs);
        Honest::insistence(others_failed, backoff, age)
    };
    assert_eq!(insists(false, 1, 300), Span::from_secs(300));
    assert_eq!(insists(true, 1, 300), Span::from_secs(1));
    assert_eq!(insists(true, 400, 300), Span::from_secs(300));
}

#[test]
fn answers_belong_by_number() {
    assert!(Honest::answer_belongs(7, 7));
    assert!(!Honest::answer_belongs(7, 8) && !Honest::answer_belongs(7, 6));
}

#[test]
fn bytes_are_out_when_all_of_the_frame_is() {
    let out = [99, 100, 101].map(|sent| Honest::bytes_are_out(100, sent));
    assert_eq!(out, [false, true, true]);
}

#[test]
fn an_idle_connection_may_end() {
    let longest = Span::from_secs(1);
    for [open, long] in answers() {
        let up_for = if long { Span::from_millis(1_001) } else { longest };
        let failure = Honest::end_is_failure(usize::from(open), up_for, longest);
        assert_eq!(failure, open || !long, "{open} {long}");
    }
}
