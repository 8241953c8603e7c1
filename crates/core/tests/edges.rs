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
    give_up_on_the_former_route(play, ticket);
    (ticket, attempt)
}

fn give_up_on_the_former_route(play: &mut Play, ticket: u64) {
    play.next_route();
    play.tell(Event::Abandon);
    play.poll();
    assert!(matches!(play.verdicts[&ticket], Verdict::Unknown(_)));
    assert!(!play.resolutions.contains_key(&ticket), "its attempt is open");
    play.wait(2_000);
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

/// V2, D3: records of a slot that was given up hear at their own deadline, whoever is waited for;
/// the others go on.
#[test]
fn records_of_a_slot_that_was_given_up_are_told_one_by_one() {
    let mut play = Play::new();
    play.open_gate(10);
    let (_, before) = play.append_and_offer(MINUTE);
    let deadlines = [50, MINUTE, 50, MINUTE];
    let tickets = deadlines.map(|deadline| play.join(play.now as i64, deadline));
    play.flush();
    let large = play.offer();
    play.error(large, 10);
    assert!(play.verdicts.is_empty() || !play.verdicts.contains_key(&tickets[0]));
    play.wait(60);
    for (ticket, deadline) in tickets.iter().zip(deadlines) {
        assert_eq!(play.verdicts.contains_key(ticket), deadline == 50, "{ticket}");
    }
    play.zero(before, 11);
    let mut base = 12;
    while play.verdicts.len() < 6 {
        let attempt = play.offer_again();
        play.zero(attempt, base);
        base += 1;
    }
    for (ticket, deadline) in tickets.iter().zip(deadlines) {
        let delivered = matches!(play.verdicts[ticket], Verdict::Delivered { .. });
        assert_eq!(delivered, deadline == MINUTE, "{ticket}");
    }
}

/// V2: behind a slot that was given up nothing is asked again: no broker takes it there.
#[test]
fn nothing_is_resent_behind_a_slot_that_was_given_up() {
    let mut play = Play::new();
    play.open_gate(10);
    let (_, before) = play.append_and_offer(MINUTE);
    let (_, refused) = play.append_and_offer(MINUTE);
    let (_, behind) = play.append_and_offer(MINUTE);
    play.lose(behind);
    play.error(refused, 87);
    play.wait(2_000);
    assert!(play.try_offer().is_none());
    play.zero(before, 11);
    play.wait(2_000);
    assert!(play.epoch_in_use() == 4 && play.try_offer().is_some(), "under the next epoch");
}

/// L8: a batch goes where there is exactly room for it, first and again, and not where it is short
/// of one byte.
#[test]
fn an_offer_fits_the_room_that_is_there() {
    let mut play = Play::new();
    for ticket in 0..3 {
        assert_eq!(play.join(play.now as i64, MINUTE), ticket);
    }
    play.flush();
    let offer = |play: &mut Play, max| play.lane.offer(play.now(), RouteId(play.route), max);
    assert!(offer(&mut play, 2).is_none());
    let attempt = offer(&mut play, 3).expect("it fits").attempt;
    play.error(attempt, 7);
    play.wait(2_000);
    assert!(offer(&mut play, 2).is_none());
    assert!(offer(&mut play, 3).is_some());
}

/// D5: a lane that is closing goes on until its deadline, and offers nothing at it.
#[test]
fn a_closing_lane_offers_before_its_deadline_only() {
    let mut play = Play::new();
    play.append(MINUTE);
    play.tell(Event::Close { deadline: Instant::from_millis(play.now + 10) });
    let attempt = play.offer();
    play.error(attempt, 87);
    let mut play = Play::new();
    play.append(MINUTE);
    play.tell(Event::Close { deadline: Instant::from_millis(play.now + 10) });
    play.now += 10;
    assert!(play.try_offer().is_none());
}

/// Nothing can be offered to nobody; nor while a leader's confirmation is awaited (K5).
#[test]
fn nothing_is_offerable_without_a_leader_or_before_its_confirmation() {
    let mut play = Play::new();
    play.join(-1, 10 * MINUTE);
    play.flush();
    assert!(play.lane.offerable(play.now()));
    play.leader(None);
    assert!(!play.lane.offerable(play.now()));
    play.next_route();
    let attempt = play.offer();
    play.error(attempt, 45);
    play.wait(2_000);
    assert!(!play.lane.offerable(play.now()), "the leader is not confirmed");
    play.confirm();
    play.wait(2_000);
    assert!(play.lane.offerable(play.now()));
}

/// What was never to be woken for is not told as a time; a bound that is out of date holds nothing
/// up, and a verdict that is due goes before every offer (D6).
#[test]
fn deadlines_are_those_of_records_that_wait() {
    let mut play = Play::new();
    assert_eq!(play.lane.deadline(), None);
    play.open_gate(10);
    let (_, short) = play.append_and_offer(10);
    play.append(MINUTE);
    play.zero(short, 11);
    play.now += 20;
    assert!(play.try_offer().is_some(), "the record whose deadline that was has its verdict");
    play.append(10);
    play.now += 10;
    assert!(play.try_offer().is_none(), "its verdict comes first");
    play.poll();
    assert_eq!(play.verdicts[&3], Verdict::NotDelivered(Proof::NeverOffered));
}

/// K5: a pass that waits for its leader's confirmation is over when nothing is left to ask.
#[test]
fn a_confirmation_is_not_waited_for_without_a_question() {
    let mut play = Play::new();
    let (ticket, lost) = play.ask_again_in_vain();
    play.append(10 * MINUTE);
    assert!(play.try_offer().is_none());
    play.zero(lost, 11);
    assert!(matches!(play.verdicts[&ticket], Verdict::Delivered { .. }));
    play.wait(2_000);
    assert!(play.try_offer().is_some());
}

/// C, L4: what a replacement carries is not known before the replacement is, also when both were
/// given up.
#[test]
fn what_was_given_up_with_its_replacement_ends_with_it() {
    let mut play = Play::new();
    play.open_gate(10);
    let (revoked, lost) = play.append_and_offer(MINUTE);
    play.lose(lost);
    play.next_route();
    play.join(play.now as i64, MINUTE);
    play.append(MINUTE);
    let contest = play.contest(revoked);
    play.tell(Event::Abandon);
    play.poll();
    assert!(!play.lane.is_idle());
    play.lose(contest.attempt);
    assert!(play.lane.is_idle(), "{:?}", play.resolutions);
}

/// C, D3: a batch whose attempts were all refused is in doubt for as long as a replacement that
/// carries its records is.
#[test]
fn a_record_is_unknown_while_a_replacement_that_carries_it_is_in_doubt() {
    let mut play = Play::new();
    play.open_gate(10);
    let revoked = play.join(play.now as i64, MINUTE);
    let shared = play.join(play.now as i64, 3_000);
    play.flush();
    let first = play.offer();
    play.next_route();
    play.append(MINUTE);
    let contest = play.contest(revoked);
    assert!(contest.batch.records().contains(&(shared as u16)), "{contest:?}");
    play.lose(contest.attempt);
    play.error(first, 19);
    play.wait(3_000);
    assert!(matches!(play.verdicts[&shared], Verdict::Unknown(_)), "{:?}", play.verdicts);
}

/// S20: somebody deletes records past all that is known to be ours in the log: the broker may have
/// forgotten us, and what is in doubt is not sent again. What was written late under an older epoch
/// counts for that, although it moves no counter (S15).
#[test]
fn a_late_zero_of_an_older_epoch_tells_what_the_log_has_lost() {
    let waits_with = |acknowledged_before: bool, log_start_offset| {
        let (mut play, ticket) = match acknowledged_before {
            false => Play::fresh(),
            true => {
                let mut play = Play::new();
                let ticket = play.append(MINUTE);
                (play, ticket)
            }
        };
        let late = play.offer();
        give_up_on_the_former_route(&mut play, ticket);
        let (_, doubt) = play.append_and_offer(MINUTE);
        play.zero(late, 20);
        assert!(matches!(play.resolutions[&ticket], Resolution::Delivered { .. }));
        let answer = PartitionResponse { log_start_offset, ..PartitionResponse::error(121) };
        play.say(doubt, answer);
        play.wait(2_000);
        play.try_offer().is_none()
    };
    for acknowledged_before in [false, true] {
        assert!(!waits_with(acknowledged_before, 20), "our newest batch is in the log");
        assert!(waits_with(acknowledged_before, 21), "nothing of ours may be in the log any more");
    }
}

/// S18: what is in doubt in a topic that is gone is not sent to the next one, also behind a refused
/// batch: that slot is no proof for another log (V3).
#[test]
fn a_refused_slot_proves_nothing_for_a_topic_made_anew() {
    let mut play = Play::new();
    play.open_gate(10);
    let (_, refused) = play.append_and_offer(MINUTE);
    let (ticket, lost) = play.append_and_offer(MINUTE);
    play.error(refused, 19);
    play.lose(lost);
    play.tell(Event::TopicRecreated);
    play.poll();
    assert!(matches!(play.verdicts[&ticket], Verdict::Unknown(_)), "{:?}", play.verdicts);
}

/// S18: a topic made anew closes the gate, and costs no epoch of which nothing was used.
#[test]
fn a_topic_made_anew_knows_nobody_and_may_know_an_unused_epoch() {
    let mut play = Play::new();
    play.open_gate(10);
    play.tell(Event::TopicRecreated);
    play.append(MINUTE);
    play.append(MINUTE);
    play.wait(2_000);
    assert_eq!(play.epoch_in_use(), 4);
    play.offer();
    assert!(play.try_offer().is_none(), "one at a time until a 0");

    let (mut play, _) = Play::fresh();
    play.tell(Event::TopicRecreated);
    play.poll();
    assert_eq!(play.epoch_in_use(), 0);
}

/// C, S4: on a contested slot a 46 may speak of the other content, also after an abandon.
#[test]
fn a_46_proves_nothing_on_a_contested_slot_that_was_given_up() {
    let mut play = Play::new();
    play.open_gate(10);
    let (revoked, first) = play.append_and_offer(MINUTE);
    play.lose(first);
    let again = play.offer_again();
    play.next_route();
    play.join(play.now as i64, MINUTE);
    play.append(MINUTE);
    let contest = play.contest(revoked);
    play.lose(contest.attempt);
    play.tell(Event::Abandon);
    play.poll();
    play.error(again, 46);
    let resolution = play.resolutions.get(&revoked);
    assert!(matches!(resolution, Some(Resolution::Never { .. })), "{resolution:?}");
}

/// S13: what was concluded to be written between two offsets takes its room there.
#[test]
fn what_lies_between_takes_its_room() {
    for (base, fits) in [(17, true), (18, false)] {
        let mut play = Play::new();
        play.open_gate(10);
        let (_, late) = play.append_and_offer(10 * MINUTE);
        play.join(play.now as i64, 10 * MINUTE);
        let (pair, _open) = play.append_and_offer(10 * MINUTE);
        play.append_and_offer(10 * MINUTE);
        play.next_route();
        let asked = play.offer_again();
        play.error(asked, 45);
        let asked = play.offer_again();
        play.error(asked, 46);
        assert!(matches!(play.verdicts[&pair], Verdict::Delivered { offset: None }));
        let asked = play.offer_again();
        play.zero(asked, 20);
        play.zero(late, base);
        assert_eq!(play.lane.is_stopped(), !fits, "{:?}", play.notices);
    }
}

/// S22: where it is not sure that the broker remembered us all the time, a 0 proves what stands before
/// it by what that was answered: 45 says that the broker misses it, 59 that it knows nothing.
#[test]
fn a_zero_proves_nothing_behind_a_59() {
    for (code, proves) in [(45, true), (59, false)] {
        let mut play = Play::new();
        play.open_gate(10);
        let (doubtful, lost) = play.append_and_offer(10 * MINUTE);
        let (_, behind) = play.append_and_offer(10 * MINUTE);
        // While this one is in doubt, its age may have made the broker forget us.
        play.join(0, 10 * MINUTE);
        play.flush();
        let old = play.offer();
        play.wait(10);
        play.error(old, 19);
        play.lose(lost);
        play.lose(behind);
        let asked = play.offer_again();
        play.error(asked, code);
        let asked = play.offer_again();
        play.zero(asked, 12);
        let told = &play.verdicts.get(&doubtful);
        assert_eq!(matches!(told, Some(Verdict::Delivered { .. })), proves, "{told:?}");
    }
}

/// S22: where it is not sure that the broker remembered us all the time, a 0 still proves what went
/// before it over the same connection while the gate was open, answered or not.
#[test]
fn a_zero_proves_what_went_before_it_on_its_connection() {
    for lost_before in [false, true] {
        let mut play = Play::new();
        play.open_gate(10);
        let (before, first) = play.append_and_offer(10 * MINUTE);
        let (_, second) = play.append_and_offer(10 * MINUTE);
        play.join(0, 10 * MINUTE);
        play.flush();
        let old = play.offer();
        play.wait(10);
        play.error(old, 19);
        if lost_before {
            play.lose(first);
        }
        play.zero(second, 12);
        let told = &play.verdicts.get(&before);
        assert!(matches!(told, Some(Verdict::Delivered { offset: None })), "{told:?}");
    }
}

/// V4: what is too large is halved, down to single records.
#[test]
fn too_large_batches_are_halved_down_to_one() {
    for (records, halves) in [(2, vec![1, 1]), (3, vec![2, 1]), (4, vec![2, 2])] {
        let mut play = Play::new();
        for _ in 0..records {
            play.join(play.now as i64, MINUTE);
        }
        play.flush();
        let large = play.offer();
        play.error(large, 10);
        let mut base = 10;
        for half in halves {
            play.wait(2_000);
            let offer = play.try_offer().expect("a half");
            assert_eq!(offer.batch.records().len(), half, "of {records}");
            play.zero(offer.attempt, base);
            base += half as i64;
        }
        assert_eq!(play.verdicts.len(), records);
    }
    let mut play = Play::new();
    let (ticket, large) = play.append_and_offer(MINUTE);
    play.error(large, 10);
    assert_eq!(play.verdicts[&ticket], Verdict::NotDelivered(Proof::Rejected { code: 10 }));
}

/// S7: an attempt that a change of leader orphaned opens no gate, though its connection leads again.
#[test]
fn an_orphan_opens_no_gate_on_its_own_connection() {
    let mut play = Play::new();
    let (_, orphan) = play.append_and_offer(10 * MINUTE);
    let route = play.route;
    play.leader(Some(route + 1));
    play.leader(Some(route));
    play.zero(orphan, 10);
    let (_, first) = play.append_and_offer(10 * MINUTE);
    play.append(10 * MINUTE);
    assert!(play.try_offer().is_none(), "nobody opened the gate");
    play.zero(first, 11);
    assert!(play.try_offer().is_some());
}

/// L3: a newer epoch without a leader allows no retry at an older one; its own leader, once there is
/// one, is asked at once.
#[test]
fn an_epoch_without_a_leader_allows_no_immediate_retry() {
    for newer in [false, true] {
        let mut play = Play::new();
        play.open_gate(10);
        let (_, attempt) = play.append_and_offer(10 * MINUTE);
        play.epoch += 1;
        play.leader(None);
        play.error(attempt, 6);
        if !newer {
            play.epoch -= 1;
        }
        play.next_route();
        assert_eq!(play.try_offer().is_some(), newer, "the newer epoch has a leader: {newer}");
        if !newer {
            play.wait(2_000);
            assert!(play.try_offer().is_some());
        }
    }
}

/// L3: the immediate retry that a newer leader epoch allows is one at its leader. If that is not asked
/// in time, nothing is left of it at an older one.
#[test]
fn an_immediate_retry_is_none_at_an_older_leader() {
    for answered_before in [false, true] {
        let mut play = Play::new();
        play.open_gate(10);
        let (_, attempt) = play.append_and_offer(10 * MINUTE);
        if answered_before {
            play.error(attempt, 6);
        }
        play.epoch += 1;
        play.next_route();
        if !answered_before {
            play.error(attempt, 6);
        }
        play.epoch -= 1;
        play.next_route();
        assert!(play.try_offer().is_none(), "answered before: {answered_before}");
        play.wait(2_000);
        assert!(play.try_offer().is_some());
    }
}
