#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test's helpers

//! Records that are deleted while others are in doubt, and brokers that know nobody afterwards: what
//! the log starts in answers allow to be concluded, and what not (S20, V3, C1, C4).

mod play;
#[path = "adversary_purge/random.rs"]
mod random;

use candor_core::*;
use play::{MINUTE, Play};
use random::Run;

/// 19, with this log start beside it.
fn refused_at(log_start_offset: i64) -> PartitionResponse {
    PartitionResponse { log_start_offset, ..PartitionResponse::error(19) }
}

fn ended_never(play: &Play, ticket: u64) -> bool {
    matches!(play.resolutions.get(&ticket), Some(Resolution::Never { .. }))
}

/// A batch refused by this code, between two in doubt; then the 0 of the one before it shows that the
/// log starts behind what was acknowledged when they were offered. Gives the record behind it.
fn broken_and_known_again(code: i16) -> (Play, u64) {
    let mut play = Play::new();
    play.open_gate(10);
    let (_, head) = play.append_and_offer(10 * MINUTE);
    let (_, refused) = play.append_and_offer(10 * MINUTE);
    let (last, lost) = play.append_and_offer(10 * MINUTE);
    play.error(refused, code);
    play.lose(head);
    play.lose(lost);
    play.next_route();
    let head = play.offer_again();
    play.zero_with_log_start(head, 12, 12);
    play.wait(2_000);
    (play, last)
}

/// V3, S20: opener @10; B1, B2, B3 pipelined, B2 refused by 87, B1 and B3 lost; the log is deleted up
/// to 11, the broker restarts and knows nobody, and the late copy of B3 comes, @11; the same again up
/// to 12, and B1 asked again gets 0 @12, log start 12: B3 was written, whoever is known now.
#[test]
fn a_zero_from_a_broker_that_forgot_us_makes_no_slot_unreachable() {
    let (mut play, last) = broken_and_known_again(87);
    assert!(ended_never(&play, last));
    assert_eq!(play.try_offer(), None);
}

/// S20, V3: the same schedule where B2 was refused by 19 and gives nothing up: what is abandoned since
/// it may not be resent is not concluded to be unreachable either.
#[test]
fn what_may_not_be_resent_is_not_unreachable_either() {
    let (play, last) = broken_and_known_again(19);
    assert!(ended_never(&play, last));
    assert_eq!(play.lane.why(Ticket(last)), Why::Gone);
}

/// V3: the same answers with a log start that reaches back: B3 is unreachable, and goes on.
#[test]
fn behind_a_vacated_slot_the_known_broker_wrote_nothing() {
    let mut play = Play::new();
    play.open_gate(10);
    let (_, head) = play.append_and_offer(10 * MINUTE);
    let (_, refused) = play.append_and_offer(10 * MINUTE);
    let (last, lost) = play.append_and_offer(10 * MINUTE);
    play.error(refused, 87);
    play.lose(head);
    play.lose(lost);
    play.next_route();
    let head = play.offer_again();
    play.zero_with_log_start(head, 11, 10);
    play.wait(2_000);
    assert_eq!(play.try_offer().map(|it| it.batch.records()), Some(vec![last as u16]));
}

/// C1: B1 is the first batch of a producer, its replacement is written @0 and its answer is late;
/// the log is deleted up to 5, the broker restarts, and the late copy of B1 comes, @5; the replacement
/// asked again gets 19, log start 5; then the late 0 @0, log start 0, tells nothing of B1.
#[test]
fn a_late_zero_of_a_replacement_is_read_with_the_log_start_seen_since() {
    let (mut play, revoked) = Play::fresh();
    let first = play.offer();
    play.lose(first);
    play.append(10 * MINUTE);
    play.append(10 * MINUTE);
    let contest = play.contest(revoked);
    play.next_route();
    let again = play.offer_again();
    play.say(again, refused_at(5));
    play.zero_with_log_start(contest.attempt, 0, 0);
    assert!(ended_never(&play, revoked));
}

/// C4: B1 is the first batch of a producer, written @0, and its answer is late; the log is deleted up
/// to 5, the broker restarts, and the replacement is written @5 and its answer lost; asked again it
/// gets 19, log start 5; then the late 0 @0, log start 0, tells nothing of the replacement.
#[test]
fn a_late_zero_of_the_contested_is_read_with_the_log_start_seen_since() {
    let (mut play, revoked) = Play::fresh();
    let first = play.offer();
    play.next_route();
    let newer = play.append(10 * MINUTE);
    play.append(10 * MINUTE);
    let contest = play.contest(revoked);
    play.lose(contest.attempt);
    play.next_route();
    let again = play.offer_again();
    play.say(again, refused_at(5));
    play.zero_with_log_start(first, 0, 0);
    assert!(ended_never(&play, newer));
}

/// A is given up with its attempt open; under the next epoch B is written @1 and its answer lost; the
/// log is deleted up to 2, the broker restarts, and B asked again gets 19, log start 2; then the 0 of A
/// comes, at an offset and with a log start.
fn a_zero_behind_its_epoch(base: i64, log_start: i64) -> (Play, u64) {
    let (mut play, _) = Play::fresh();
    let late = play.offer();
    play.tell(Event::Abandon);
    play.next_route();
    let doubtful = play.append(10 * MINUTE);
    let lost = play.offer_again();
    play.lose(lost);
    let again = play.offer_again();
    play.say(again, refused_at(2));
    play.zero_with_log_start(late, base, log_start);
    play.wait(2_000);
    (play, doubtful)
}

/// S20: the late 0 of A @0 tells what that log start meant: B is not resent.
#[test]
fn a_late_zero_of_an_older_epoch_tells_what_a_log_start_meant() {
    let (mut play, doubtful) = a_zero_behind_its_epoch(0, 0);
    assert_eq!(play.try_offer(), None);
    assert!(ended_never(&play, doubtful));
}

/// S20: the same with a log start that the late 0 does not lie before: B is resent.
#[test]
fn a_late_zero_of_an_older_epoch_behind_the_log_start_takes_nothing_away() {
    let (mut play, doubtful) = a_zero_behind_its_epoch(2, 2);
    assert_eq!(play.try_offer().map(|it| it.batch.records()), Some(vec![doubtful as u16]));
}

/// L3: a newer leader spares B1 its wait, the replacement of B1 is offered at once instead, refused, and
/// dissolved by a cancel; another connection at the same leader epoch does not spare B1 a wait again.
#[test]
fn a_replacement_uses_the_retry_at_once_of_what_it_contests() {
    let mut play = Play::new();
    play.open_gate(10);
    let ([revoked, kept], lost) = play.offer_pair(10 * MINUTE);
    play.lose(lost);
    play.revoke(revoked);
    play.epoch += 1;
    play.next_route();
    let contest = play.try_offer().expect("a replacement, at once");
    assert!(contest.replacement);
    play.wait(1_000);
    play.error(contest.attempt, 19);
    play.tell(Event::Cancel(Ticket(kept)));
    play.poll();
    play.next_route();
    assert_eq!(play.try_offer(), None);
    play.offer_again();
}

/// K5, K6: after 19 hours of silence B1 to B4 pipelined, B3 refused for good, the others
/// lost, two hours without a leader. The broker, restarted, knows B2 only: B1 gets 45, B2 gets 0 and does
/// not prove B1, which gets 45 again and again. B2 is written behind it, and B4, in doubt behind the
/// vacated slot, is not later: nothing is lost.
#[test]
fn what_is_in_doubt_behind_a_vacated_slot_hides_nothing_written() {
    const HOUR: u64 = 60 * MINUTE;
    let config = LaneConfig { on_data_loss: OnDataLoss::Stop, ..LaneConfig::default() };
    let mut play = Play::with(config, 3);
    play.open_gate(10);
    play.wait(19 * HOUR);
    let (first, lost) = play.append_and_offer(MINUTE);
    let (second, also_lost) = play.append_and_offer(MINUTE);
    let (_, refused) = play.append_and_offer(MINUTE);
    let (_, lost_behind) = play.append_and_offer(MINUTE);
    play.error(refused, 87);
    for attempt in [lost, also_lost, lost_behind] {
        play.lose(attempt);
    }
    play.wait(2 * HOUR);
    play.next_route();
    let asked = play.offer_again();
    play.error(asked, 45);
    let asked = play.offer_again();
    play.zero(asked, 12);
    assert!(matches!(play.resolutions[&second], Resolution::Delivered { .. }));
    for _ in 0..3 {
        let Some(asked) = play.try_offer() else { break };
        play.error(asked.attempt, 45);
        play.wait(2_000);
        play.confirm();
    }
    assert!(ended_never(&play, first));
    assert!(!play.lane.is_stopped());
    assert!(!play.notices.iter().any(|it| matches!(it, Notice::DataLoss { .. })));
}

/// Rules 1 to 7: random schedules of up to 80 steps with deleted records, brokers that forget, late
/// copies and late answers, judged by the log of the broker. `PURGE_SEEDS` of them, from `PURGE_FROM`.
#[test]
fn random_schedules_of_deleted_records_are_judged_by_the_log() {
    let number = |name: &str| std::env::var(name).ok().and_then(|it| it.parse::<u64>().ok());
    let from = number("PURGE_FROM").unwrap_or(0);
    let seeds = from..from + number("PURGE_SEEDS").unwrap_or(2_000);
    for run in seeds.map(Run::of) {
        if let Some(anomaly) = run.anomaly() {
            panic!("{anomaly}\n{run}");
        }
    }
}
