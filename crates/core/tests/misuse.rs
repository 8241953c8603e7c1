//! Embedders that break the contract: a typed error, and a lane as it was before.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test's helpers

mod play;

use candor_core::testing::Counted;
use candor_core::*;
use play::{MINUTE, Play, preset};

/// Tells an event that is none of the lane's: the error, if the lane is the same as before.
fn misuse(play: &mut Play, event: Event<'_, Counted>) -> Misuse {
    let before = play.lane.clone();
    let told = play.lane.handle(play.now(), event).expect_err("no legal event");
    assert_eq!(play.lane, before, "{told}");
    told
}

fn append(play: &Play, ticket: u64) -> Event<'static, Counted> {
    Event::Append(Append {
        ticket: Ticket(ticket),
        born: play.now(),
        deadline: Instant::from_millis(play.now + MINUTE),
        timestamp: play.now as i64,
        record: 0,
    })
}

#[test]
fn ids_epochs_and_sequences_are_never_negative() {
    assert!(ProducerId::new(-1).is_none() && ProducerId::new(0).is_some());
    assert!(ProducerEpoch::new(-1).is_none() && ProducerEpoch::new(0).is_some());
    assert!(Sequence::new(-1).is_none() && Sequence::new(0).is_some());
    assert!(Offset::new(-1).is_none() && Offset::new(0).is_some());
}

#[test]
fn tickets_grow() {
    let mut play = Play::new();
    play.append(MINUTE);
    let last = play.append(MINUTE);
    for ticket in [0, last] {
        let again = append(&play, ticket);
        assert_eq!(misuse(&mut play, again), Misuse::TicketOrder);
    }
    let next = append(&play, last + 1);
    play.tell(next);
}

#[test]
fn what_became_of_an_attempt_is_reported_once() {
    let mut play = Play::new();
    let (_, attempt) = play.append_and_offer(MINUTE);
    play.zero(attempt, 10);
    let answer = Answer::from(PartitionResponse::appended(10));
    let unknown = Misuse::UnknownAttempt(attempt);
    assert_eq!(misuse(&mut play, Event::Answered { attempt, answer }), unknown);
    assert_eq!(misuse(&mut play, Event::Handed { attempt }), unknown);
    let handed = HandedOver::PerhapsWhole;
    assert_eq!(misuse(&mut play, Event::Ended { attempt, handed }), unknown);
}

#[test]
fn an_identity_comes_when_it_was_asked_for() {
    let mut play = Play::new();
    let identity = preset(4).identity;
    assert_eq!(misuse(&mut play, Event::Identity(identity)), Misuse::UnexpectedIdentity);
}

#[test]
fn nothing_is_appended_behind_the_end() {
    let mut closed = Play::new();
    closed.append(MINUTE);
    closed.tell(Event::Close { deadline: Instant::from_millis(closed.now + 10) });
    let late = append(&closed, 7);
    assert_eq!(misuse(&mut closed, late), Misuse::Closed);
    closed.wait(20);
    let late = append(&closed, 7);
    assert_eq!(misuse(&mut closed, late), Misuse::Closed);

    let mut stopped = Play::new();
    let (_, attempt) = stopped.append_and_offer(MINUTE);
    stopped.zero(attempt, 3);
    assert!(stopped.lane.is_stopped(), "offset 9 was acknowledged before");
    let late = append(&stopped, 7);
    assert_eq!(misuse(&mut stopped, late), Misuse::Stopped);
}

/// K1: only the leader's connection is offered anything.
#[test]
fn another_connection_is_offered_nothing() {
    let mut play = Play::new();
    play.append(MINUTE);
    let elsewhere = RouteId(play.route + 1);
    assert!(play.lane.offer(play.now(), elsewhere, usize::MAX).is_none());
    assert!(play.try_offer().is_some());
}
