//! Transitions where two things are nearly the same: one position and another one, an older attempt
//! and a newer one, an epoch and the next. Each schedule was written because a wrong comparison
//! there had passed the traces.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test's helpers

mod play;

use candor_core::*;
use play::{MINUTE, Play};

/// A batch in doubt that was given up while its attempt on the former leader's route is open.
fn given_up_on_the_former_route(play: &mut Play) -> (u64, AttemptId) {
    play.open_gate(10);
    let (ticket, attempt) = play.append_and_offer(MINUTE);
    play.next_route();
    play.tell(Event::Abandon);
    play.poll();
    assert!(matches!(play.verdicts[&ticket], Verdict::Unknown(_)));
    assert!(!play.resolutions.contains_key(&ticket), "its attempt is open");
    play.wait(2_000);
    (ticket, attempt)
}

fn part_of(play: &mut Play, attempt: AttemptId) {
    play.tell(Event::Ended { attempt, handed: HandedOver::Partly });
    play.poll();
}

/// S15: while one batch is given up, another one's attempt that was never whole is a refusal.
#[test]
fn an_end_beside_a_given_up_batch_is_the_live_ones() {
    let mut play = Play::new();
    given_up_on_the_former_route(&mut play);
    let (ticket, attempt) = play.append_and_offer(10);
    part_of(&mut play, attempt);
    play.wait(20);
    assert_eq!(play.verdicts[&ticket], Verdict::NotDelivered(Proof::Refused));
}

/// S15: what comes late for a given-up batch touches nothing of the epoch that goes on.
#[test]
fn a_late_zero_for_a_given_up_batch_opens_no_gate() {
    let mut play = Play::new();
    let (ticket, late) = given_up_on_the_former_route(&mut play);
    let (_, first) = play.append_and_offer(MINUTE);
    play.zero(late, 11);
    assert!(matches!(play.resolutions[&ticket], Resolution::Delivered { .. }));
    play.append(MINUTE);
    assert!(play.try_offer().is_none(), "nothing was acknowledged in this epoch");
    play.zero(first, 12);
    assert!(play.try_offer().is_some());
}

/// 46: an attempt that is still open on another route may be the one that is written.
#[test]
fn a_46_beside_an_older_open_attempt_says_that_one_is_written() {
    let mut play = Play::new();
    play.open_gate(10);
    let (ticket, _open) = play.append_and_offer(MINUTE);
    play.next_route();
    let again = play.offer_again();
    play.error(again, 46);
    assert!(matches!(play.verdicts.get(&ticket), Some(Verdict::Delivered { .. })));
}

/// 46: a younger attempt is not what the broker may have written before.
#[test]
fn a_46_beside_a_younger_open_attempt_does_not() {
    let mut play = Play::new();
    play.open_gate(10);
    let (ticket, first) = play.append_and_offer(MINUTE);
    play.next_route();
    let _younger = play.offer_again();
    play.error(first, 46);
    assert!(!play.verdicts.contains_key(&ticket), "{:?}", play.verdicts);
}

/// 46 for a given-up batch: its own doubts count, not those of another one.
#[test]
fn a_46_after_an_abandon_asks_the_batch_that_was_given_up() {
    let mut play = Play::new();
    play.open_gate(10);
    let (ticket, lost) = play.append_and_offer(MINUTE);
    play.lose(lost);
    let again = play.offer_again();
    play.tell(Event::Abandon);
    play.poll();
    play.error(again, 46);
    let told = &play.resolutions[&ticket];
    assert!(matches!(told, Resolution::Delivered { .. }), "{told:?}");
}

/// CRC errors three times in a row are the record's fault; others in between begin anew.
#[test]
fn corrupt_three_times_in_a_row_is_permanent() {
    let mut play = Play::new();
    play.open_gate(10);
    let ticket = play.append(10 * MINUTE);
    for code in [2, 2, 19, 2, 2] {
        let attempt = play.offer_again();
        play.error(attempt, code);
        assert!(!play.verdicts.contains_key(&ticket), "not yet");
    }
    let attempt = play.offer_again();
    play.error(attempt, 2);
    assert_eq!(play.verdicts[&ticket], Verdict::NotDelivered(Proof::Rejected { code: 2 }));
}
