//! Epochs and passes that end while several things are in doubt: what each of them ends as, and
//! whose answer still counts. Written against mutants that everything else let pass.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test's helpers

mod play;

use candor_core::*;
use play::{Behind, MINUTE, Play};

/// Two records in one batch, its attempt open on the connection before, and a replacement for it
/// that carries the second record and was lost.
struct Contested {
    play: Play,
    kept: u64,
    late: AttemptId,
    contest: AttemptId,
}

fn contested() -> Contested {
    let mut play = Play::new();
    play.open_gate(10);
    let ([revoked, kept], late) = play.offer_pair(10 * MINUTE);
    play.next_route();
    let contest = play.contest(revoked).attempt;
    Contested { play, kept, late, contest }
}

fn abandon(play: &mut Play) {
    play.tell(Event::Abandon);
    play.poll();
}

/// A batch whose first attempt's answer is `first_is_lost` or open, and a later one open, when it is
/// given up; contested before, or not.
fn given_up_after_two_attempts(
    contested: bool,
    first_is_lost: bool,
) -> (Play, u64, [AttemptId; 2]) {
    let mut play = Play::new();
    play.open_gate(10);
    let ([revoked, kept], first) = play.offer_pair(10 * MINUTE);
    if first_is_lost {
        play.lose(first);
    }
    play.next_route();
    let second = play.offer_again();
    play.next_route();
    if contested {
        let contest = play.contest(revoked);
        play.lose(contest.attempt);
    }
    abandon(&mut play);
    assert!(matches!(play.verdicts[&kept], Verdict::Unknown(_)));
    (play, kept, [first, second])
}

/// 46, C: "already written" may speak of the replacement, also when all was given up.
#[test]
fn a_46_for_what_was_contested_and_given_up_proves_nothing() {
    for contested in [false, true] {
        let (mut play, kept, [_, second]) = given_up_after_two_attempts(contested, true);
        play.error(second, 46);
        let told = &play.resolutions[&kept];
        assert_eq!(matches!(told, Resolution::Delivered { .. }), !contested, "{told:?}");
    }
}

/// 46: it speaks of an earlier attempt, whose doubtful answer came after all was given up.
#[test]
fn a_46_after_a_late_doubt_says_written() {
    let (mut play, kept, [first, second]) = given_up_after_two_attempts(false, false);
    play.error(first, 7);
    play.error(second, 46);
    let told = &play.resolutions[&kept];
    assert!(matches!(told, Resolution::Delivered { offset: None }), "{told:?}");
}

/// C: a record that two batches carried is refused only once both are, whichever is told first.
#[test]
fn a_shared_record_is_refused_when_both_its_batches_are() {
    for (late_first, refused) in [(false, false), (false, true), (true, false), (true, true)] {
        let Contested { mut play, kept, late, contest } = contested();
        abandon(&mut play);
        if late_first {
            play.error(late, 19);
            assert!(!play.resolutions.contains_key(&kept), "its replacement may be answered");
        }
        match refused {
            true => play.error(contest, 19),
            false => play.lose(contest),
        }
        if !late_first {
            assert!(!play.resolutions.contains_key(&kept), "its own batch may be answered");
            play.error(late, 19);
        }
        let told = &play.resolutions[&kept];
        assert_eq!(matches!(told, Resolution::NotDelivered(_)), refused, "{told:?}");
        assert_eq!(matches!(told, Resolution::Never { .. }), !refused, "{told:?}");
    }
}

/// C: the 0 of another batch that was given up is none of a replacement.
#[test]
fn another_batch_that_was_given_up_speaks_for_itself_alone() {
    let mut play = Play::new();
    play.open_gate(10);
    let ([revoked, kept], _open) = play.offer_pair(10 * MINUTE);
    let (other, late) = play.append_and_offer(10 * MINUTE);
    play.next_route();
    let contest = play.contest(revoked);
    assert!(!contest.batch.records().contains(&(other as u16)));
    abandon(&mut play);
    play.zero(late, 13);
    assert!(matches!(play.resolutions[&other], Resolution::Delivered { .. }));
    assert!(!play.resolutions.contains_key(&kept), "{:?}", play.resolutions[&kept]);
}

/// D6: who has not heard `Unknown` yet hears what became of it, once.
#[test]
fn an_unknown_that_nobody_heard_is_no_verdict() {
    let mut play = Play::new();
    play.open_gate(10);
    let (ticket, attempt) = play.append_and_offer(MINUTE);
    play.tell(Event::Abandon);
    play.zero(attempt, 11);
    assert_eq!(play.verdicts[&ticket], Verdict::Delivered { offset: Offset::new(11) });
    assert!(play.resolutions.is_empty());
}

/// V3, C: behind a slot that nothing will ever fill a replacement cannot be written.
#[test]
fn a_replacement_behind_a_refused_slot_goes_on() {
    let mut play = Play::new();
    play.open_gate(10);
    let Behind { late, revoked, kept, lost, contest, .. } = play.contest_behind_a_head();
    assert_eq!(contest.batch.records(), [kept as u16]);
    play.lose(contest.attempt);
    play.lose(lost);
    play.error(late, 19);
    abandon(&mut play);
    assert!(!play.verdicts.contains_key(&kept), "{:?}", play.verdicts);
    assert!(matches!(play.resolutions[&revoked], Resolution::NotDelivered(_)));
}

/// S6: the answer to what an earlier pass asked counts in no later one.
#[test]
fn an_answer_to_an_earlier_pass_asks_nobody() {
    let mut play = Play::new();
    play.open_gate(10);
    let (_, late) = play.append_and_offer(10 * MINUTE);
    play.append_and_offer(10 * MINUTE);
    play.next_route();
    for _ in 0..2 {
        let asked = play.offer_again();
        play.error(asked, 45);
    }
    play.confirm();
    let first = play.offer_again();
    play.error(first, 45);
    let second = play.offer_again();
    // Only now it is known that the first one was written long ago: another pass begins.
    play.zero(late, 11);
    play.error(second, 45);
    assert!(play.try_offer().is_none(), "its backoff");
    play.wait(2_000);
    assert_eq!(play.try_offer().expect("asked again").first.get(), 42);
}

/// L4: a batch that was certainly not written waits behind a stuck one, whose records all had their
/// word: that is reason enough to leave it.
#[test]
fn what_was_refused_behind_a_stuck_batch_goes_on() {
    let mut play = Play::new();
    play.open_gate(10);
    let (stuck, lost) = play.append_and_offer(100);
    let (waiting, refused) = play.append_and_offer(10 * MINUTE);
    play.lose(lost);
    play.error(refused, 19);
    play.wait(100);
    assert!(matches!(play.verdicts[&stuck], Verdict::Unknown(_)));
    for code in [29, 45] {
        let asked = play.offer_again();
        play.error(asked, code);
    }
    play.confirm();
    let told = play.resolutions.get(&stuck);
    assert!(
        matches!(told, Some(Resolution::Never { reason: NeverReason::Refused, .. })),
        "{told:?}"
    );
    play.wait(10_000);
    let next = play.try_offer().unwrap_or_else(|| panic!("{:?}", play.lane.why(Ticket(waiting))));
    assert_eq!((next.identity.epoch.get(), next.batch.records()), (4, vec![waiting as u16]));
}

/// 46, S8: sequences of another epoch were contested by nobody.
#[test]
fn a_contest_ends_with_its_epoch() {
    let Contested { mut play, contest, .. } = contested();
    play.zero(contest, 11);
    play.wait(10_000);
    assert_eq!(play.epoch_in_use(), 4);
    for base in 0..41 {
        play.open_gate(12 + base);
        play.wait(1);
    }
    let (ticket, _open) = play.append_and_offer(10 * MINUTE);
    play.next_route();
    play.wait(2_000);
    let again = play.try_offer().expect("asked again");
    assert_eq!(again.first.get(), 41, "what was contested before");
    play.error(again.attempt, 46);
    assert_eq!(play.verdicts[&ticket], Verdict::Delivered { offset: None });
}

/// A batch that a 0 behind it passed by without proving it, the broker having been able to forget us;
/// its first attempt is open.
fn passed_unproved() -> (Play, u64, AttemptId) {
    let memory = LaneConfig::default().state_ttl.as_millis() as i64;
    let mut play = Play::new();
    play.join(play.now as i64 - memory + 60_000, MINUTE);
    play.flush();
    let opener = play.offer();
    play.zero(opener, 10);
    let (passed, late) = play.append_and_offer(10 * MINUTE);
    play.append_and_offer(10 * MINUTE);
    play.wait(90_000);
    play.next_route();
    let asked = play.offer_again();
    play.error(asked, 45);
    let asked = play.offer_again();
    play.zero(asked, 12);
    assert!(matches!(play.verdicts[&passed], Verdict::Unknown(_)));
    play.notices.clear();
    (play, passed, late)
}

/// S22: what was passed by unproved and turns out refused ends, in its epoch.
#[test]
fn what_was_passed_and_turns_out_refused_keeps_its_epoch() {
    let (mut play, passed, late) = passed_unproved();
    play.error(late, 19);
    assert_eq!(play.resolutions[&passed], Resolution::NotDelivered(Proof::Overtaken));
    assert_eq!(play.notices, [Notice::StateLost]);
    let (_, next) = play.append_and_offer(10 * MINUTE);
    play.zero(next, 13);
    assert_eq!(play.epoch_in_use(), 3);
}

/// C4: that what was contested is refused by now says nothing against the replacement's 0.
#[test]
fn a_replacement_of_what_was_refused_is_no_lost_state() {
    let Contested { mut play, kept, late, contest } = contested();
    play.error(late, 19);
    play.zero_with_log_start(contest, 11, 0);
    assert_eq!(play.verdicts[&kept], Verdict::Delivered { offset: Offset::new(11) });
    assert!(!play.notices.contains(&Notice::StateLost), "{:?}", play.notices);
}

/// C1, S22: a 0 that concludes nothing about what it contested proves nothing before it either.
#[test]
fn a_replacement_that_concludes_nothing_proves_nothing() {
    for (log_start, proves) in [(0, true), (15, false)] {
        let mut play = Play::new();
        play.open_gate(10);
        let Behind { head, contest, .. } = play.contest_behind_a_head();
        play.zero_with_log_start(contest.attempt, 20, log_start);
        let told = play.verdicts.get(&head);
        assert_eq!(matches!(told, Some(Verdict::Delivered { .. })), proves, "{told:?}");
    }
}
