//! Single schedules that once broke the lane, or were meant to. Each names the rule that it is
//! about; ids are those of `docs/rules.md`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test's helpers

mod play;

use candor_core::*;
use play::{MINUTE, Play};

/// D5: `close(deadline)` always returns by its deadline, also when somebody else closes later.
#[test]
fn a_later_close_does_not_move_an_earlier_one() {
    let mut play = Play::new();
    let ticket = play.append(MINUTE);
    let first = Instant::from_millis(play.now + 10);
    let second = Instant::from_millis(play.now + 10_000);
    play.tell(Event::Close { deadline: first });
    play.tell(Event::Close { deadline: second });
    play.wait(10);
    assert!(play.verdicts.contains_key(&ticket), "close is late");
}

/// K5, K6: a batch is asked in two passes, a confirmed leader between them. A second pass that
/// had its 0 is over: what a new batch is answered later starts from the beginning.
#[test]
fn a_second_pass_ends_with_what_it_asked() {
    let mut play = Play::new();
    play.ask_in_vain();
    play.confirm();
    let again = play.offer_again();
    play.zero(again, 10);
    let (_, next) = play.append_and_offer(10 * MINUTE);
    play.error(next, 45);
    assert_eq!(play.notices, [], "one 45 is no loss");
    assert_eq!(play.epoch_in_use(), 3);
}

/// The same, the first batch being settled by a late answer while the leader is confirmed.
#[test]
fn a_late_answer_ends_a_second_pass() {
    let mut play = Play::new();
    let (ticket, lost) = play.ask_again_in_vain();
    play.zero(lost, 11);
    assert!(matches!(play.verdicts[&ticket], Verdict::Delivered { .. }));
    play.confirm();
    let (_, next) = play.append_and_offer(10 * MINUTE);
    play.error(next, 45);
    assert_eq!(play.notices, [], "one 45 is no loss");
    assert_eq!(play.epoch_in_use(), 3);
}

/// Rules 1: `Never` comes with facts for a log scan. A scan that starts behind the last
/// acknowledged offset must find the batch: what was acknowledged behind it does not count.
#[test]
fn a_scan_starts_before_the_batch_in_doubt() {
    let mut play = Play::new();
    play.open_gate(10);
    let (ticket, lost) = play.append_and_offer(10 * MINUTE);
    let (_, later) = play.append_and_offer(10 * MINUTE);
    play.say(lost, Answer::Missing);
    // The log start lies past what was acknowledged: this 0 proves nothing (S22).
    play.zero_with_log_start(later, 20, 11);
    let Verdict::Unknown(told) = play.verdicts[&ticket] else { panic!("no proof") };
    assert_eq!(told.last_acknowledged, Offset::new(10));
    play.wait(1);
    let Some(Resolution::Never { facts, .. }) = play.resolutions.get(&ticket) else {
        panic!("not resent (S20): {:?}", play.resolutions)
    };
    assert_eq!(facts.last_acknowledged, Offset::new(10), "the batch stands before offset 20");
}

/// S20: a batch in doubt with an old timestamp may be in the log, be the newest one there, and be
/// forgotten with everything before it: what is sent behind it then is taken with any sequence. So
/// nothing is sent behind it, nothing is concluded by V3, and no 0 behind it proves anything.
#[test]
fn nothing_is_sent_behind_an_old_timestamp_in_doubt() {
    let mut play = Play::new();
    play.open_gate(10);
    let day = 25 * 3_600_000;
    play.join(play.now as i64 - day, 10 * MINUTE);
    play.flush();
    let old = play.offer();
    play.append(10 * MINUTE);
    assert!(play.try_offer().is_none(), "the gate is open");
    play.zero(old, 11);
    let next = play.offer();
    play.zero(next, 12);
    play.append_and_offer(MINUTE);
    play.append_and_offer(MINUTE);
}

/// S20, S22: the timestamp of the batch whose 0 proves is no doubt about those before it.
#[test]
fn a_0_with_an_old_timestamp_proves_what_is_before_it() {
    let mut play = Play::new();
    play.open_gate(10);
    let (ticket, missing) = play.append_and_offer(10 * MINUTE);
    let day = 25 * 3_600_000;
    play.join(play.now as i64 - day, 10 * MINUTE);
    play.flush();
    let old = play.offer();
    play.say(missing, Answer::Missing);
    play.zero(old, 12);
    let told = play.verdicts.get(&ticket);
    assert!(matches!(told, Some(Verdict::Delivered { .. })), "not proved: {told:?}");
}

/// S20, T62: the newest written batch is the clock of the broker's memory. Here it is old, so a
/// copy of what is in doubt before it would be taken as if it were new.
#[test]
fn nothing_is_resent_before_an_old_batch_that_is_written() {
    let mut play = Play::new();
    play.open_gate(10);
    let (ticket, seven) = play.append_and_offer(10 * MINUTE);
    let day = 25 * 3_600_000;
    play.join(play.now as i64 - day, 10 * MINUTE);
    play.flush();
    let old = play.offer();
    play.error(seven, 7);
    play.zero(old, 12);
    // Proved, or not to be found out: both are right, to ask once more is not.
    play.wait(2_000);
    assert!(play.try_offer().is_none(), "resent to a broker that may have forgotten us");
    let proved = matches!(play.verdicts.get(&ticket), Some(Verdict::Delivered { .. }));
    assert!(proved || play.resolutions.contains_key(&ticket));
}

/// S22, 46: who certainly is not written hears that, and is not told `Unknown` first.
#[test]
fn a_46_overtakes_what_is_refused() {
    let mut play = Play::new();
    play.open_gate(10);
    let (ticket, first) = play.append_and_offer(10 * MINUTE);
    let (_, second) = play.append_and_offer(10 * MINUTE);
    play.error(first, 19);
    play.say(second, Answer::Missing);
    let again = play.offer_again();
    play.error(again, 45);
    let again = play.offer_again();
    play.error(again, 46);
    let told = play.verdicts.get(&ticket);
    assert!(matches!(told, Some(Verdict::NotDelivered(_))), "all its attempts failed: {told:?}");
}

/// Order: what stays of a vacated batch is not sent behind a successor that a 46 shows to be there.
#[test]
fn a_46_overtakes_what_was_vacated() {
    let mut play = Play::new();
    play.open_gate(10);
    play.join(play.now as i64, 5_000);
    let stays = play.join(play.now as i64, 10 * MINUTE);
    play.flush();
    let first = play.offer();
    let (_, second) = play.append_and_offer(10 * MINUTE);
    play.error(first, 19);
    play.say(second, Answer::Missing);
    let again = play.offer_again();
    play.error(again, 45);
    let again = play.offer_again(); // the second one; the first record's time is up now
    play.wait(2_000);
    play.error(again, 46);
    let told = play.verdicts.get(&stays);
    assert!(matches!(told, Some(Verdict::NotDelivered(_))), "sent behind its successor: {told:?}");
}

/// D5: what is learned after close is thrown away, without a notice.
#[test]
fn nothing_is_said_after_close() {
    let mut play = Play::new();
    play.open_gate(10);
    let (_, refused) = play.append_and_offer(10 * MINUTE);
    let (_, behind) = play.append_and_offer(10 * MINUTE);
    play.error(refused, 19);
    play.tell(Event::Close { deadline: play.now() });
    play.poll();
    assert!(play.lane.is_idle());
    play.zero(behind, 12);
    assert_eq!(play.notices, []);
}

/// L4: an abandon that waited for a confirmed leader has no cause any more when a late 0 came.
#[test]
fn a_late_0_calls_an_abandon_off() {
    let mut play = Play::new();
    play.open_gate(10);
    let (ticket, lost) = play.append_and_offer(3_000);
    play.next_route();
    let again = play.offer_again();
    play.wait(2_000);
    play.error(again, 29);
    play.append(MINUTE);
    play.zero(lost, 11);
    assert!(matches!(play.resolutions[&ticket], Resolution::Delivered { .. }));
    play.confirm();
    assert_eq!(play.epoch_in_use(), 3, "nothing was given up");
}

/// S10: 32767 is a fence; after its batch is written, also by a 46, nothing else is sent under it.
#[test]
fn a_46_at_the_fence_ends_it_as_well() {
    let mut play = Play::with(LaneConfig::default(), 32_766);
    play.open_gate(10);
    let (_, lost) = play.append_and_offer(MINUTE);
    play.lose(lost);
    play.tell(Event::Shed);
    play.poll();
    assert_eq!(play.epoch_in_use(), 32_767);
    play.append(10 * MINUTE);
    let fence = play.offer_again();
    play.say(fence, Answer::Missing);
    let again = play.offer_again();
    play.error(again, 46);
    play.append(10 * MINUTE);
    assert!(play.try_offer().is_none(), "something else is sent at 32767");
}

/// Rules 1: the facts of a doubt name an offset that somebody acknowledged, not one that follows
/// from how many records were concluded written behind it.
#[test]
fn a_scan_starts_where_something_was_acknowledged() {
    let mut play = Play::new();
    play.open_gate(10);
    let (_, somewhere) = play.append_and_offer(10 * MINUTE);
    play.zero(somewhere, -1);
    let (ticket, _) = play.append_and_offer(MINUTE);
    play.wait(MINUTE);
    let Verdict::Unknown(told) = play.verdicts[&ticket] else { panic!("in doubt") };
    assert_eq!(told.last_acknowledged, Offset::new(10));
}
