//! Single schedules around a contested slot (rule C): what once broke the lane, or was meant to.
//! Ids are those of `docs/rules.md`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test's helpers

mod play;

use std::cell::Cell;

use candor_core::rules::{CutFacts, Honest, Rules};
use candor_core::testing::Counted;
use candor_core::*;
use play::{Behind, MINUTE, Play, preset};

/// A head that was answered 45, and a replacement under way for the batch behind it.
fn contested_behind() -> (Play, Behind) {
    let mut play = Play::new();
    play.open_gate(10);
    let behind = play.contest_behind_a_head();
    (play, behind)
}

/// A record that is revoked, a pair behind it whose batch was refused, and the replacement that
/// carries the pair.
fn contested_by_a_pair() -> (Play, u64, [u64; 2], Offer<Counted>) {
    let mut play = Play::new();
    play.open_gate(10);
    let (revoked, lost) = play.append_and_offer(10 * MINUTE);
    let (pair, second) = play.offer_pair(10 * MINUTE);
    play.error(lost, 7);
    play.error(second, 19);
    let contest = play.contest(revoked);
    assert_eq!(contest.batch.records(), pair.map(|ticket| ticket as u16));
    (play, revoked, pair, contest)
}

/// D3, C: B2 was refused, and one of its records was told so while a replacement that does not
/// carry it is in doubt. B2 gives up its slot once the replacement is decided; until then it is
/// not offered again, or the record told `NotDelivered` would be written.
#[test]
fn what_was_told_not_delivered_is_not_offered_again() {
    let mut play = Play::with(LaneConfig { batch_size: 2, ..LaneConfig::default() }, 3);
    play.open_gate(10);
    let revoked = play.join(play.now as i64, 10 * MINUTE);
    let kept = play.join(play.now as i64, 10 * MINUTE);
    let short = play.join(play.now as i64, MINUTE / 2);
    let long = play.join(play.now as i64, 10 * MINUTE);
    play.flush();
    let (first, second) = (play.offer(), play.offer());
    play.error(first, 7);
    play.error(second, 19);
    let contest = play.contest(revoked);
    assert_eq!(contest.batch.records(), [kept as u16], "no more would fit");
    play.lose(contest.attempt);
    play.next_route();
    play.wait(MINUTE / 2);
    assert_eq!(play.verdicts[&short], Verdict::NotDelivered(Proof::Refused));
    // For a moment the topic is closed to us: neither answer decides anything.
    let contest = play.offer();
    play.error(contest, 29);
    let asked = play.offer_again();
    play.error(asked, 29);
    play.wait(2_000);
    assert!(play.try_offer().is_none(), "a record that was told NotDelivered is offered");
    // The lane goes on all the same.
    play.confirm();
    let contest = play.offer_again();
    play.error(contest, 45);
    let asked = play.offer_again();
    play.zero(asked, 11);
    assert!(matches!(play.verdicts[&kept], Verdict::Delivered { .. }));
    assert!(matches!(play.resolutions[&revoked], Resolution::Delivered { .. }));
    assert_eq!(play.epoch_in_use(), 4, "its slot is given up");
    play.wait(2_000);
    assert_eq!(play.try_offer().unwrap().batch.records(), [long as u16]);
}

/// C4, L3: on another connection to the leader that refused it a contest starts over, but no sooner
/// than any other attempt; a newer leader is asked at once.
#[test]
fn a_contest_that_starts_over_keeps_its_backoff() {
    for newer in [false, true] {
        let mut play = Play::new();
        play.open_gate(10);
        let ([revoked, _], lost) = play.offer_pair(10 * MINUTE);
        play.error(lost, 7);
        let contest = play.contest(revoked);
        play.error(contest.attempt, 45);
        play.epoch += i32::from(newer);
        play.next_route();
        let at_once = play.try_offer();
        assert_eq!(at_once.is_some_and(|offer| offer.replacement), newer);
        play.wait(2_000);
        assert_eq!(play.try_offer().is_some_and(|offer| offer.replacement), !newer);
    }
}

/// L5: a record that a replacement carries has no verdict only because its own batch speaks for
/// it: it is no reported `Unknown`, and nobody is to be shed for it.
#[test]
fn a_replacement_of_live_records_is_no_reported_unknown() {
    let mut play = Play::new();
    play.open_gate(10);
    let revoked = play.join(play.now as i64, 10 * MINUTE);
    let kept = play.join(play.now as i64, MINUTE);
    play.flush();
    let lost = play.offer();
    play.error(lost, 7);
    play.contest(revoked);
    let usage = play.lane.usage();
    assert_eq!((usage.unsettled, usage.unknown), (3, 0));
    play.wait(MINUTE);
    assert!(matches!(play.verdicts[&kept], Verdict::Unknown(_)));
    assert_eq!(play.lane.usage().unknown, 3, "now it is");
}

/// V2: what stands behind a vacated slot is awaited, a replacement included: its 0 would tell that
/// the broker forgot us, and what it carries would be written twice if it were sent anew.
#[test]
fn a_replacement_behind_a_vacated_slot_is_awaited() {
    let (mut play, Behind { head, late, revoked, kept, lost, contest }) = contested_behind();
    play.tell(Event::Cancel(Ticket(head)));
    play.poll();
    play.error(late, 19);
    assert_eq!(play.epoch_in_use(), 3, "an answer is still to come");
    // All was deleted, and then a replica led that never saw us.
    play.zero_with_log_start(contest.attempt, 20, 15);
    assert_eq!(play.verdicts[&kept], Verdict::Delivered { offset: Offset::new(20) });
    play.lose(lost);
    assert!(matches!(play.resolutions[&revoked], Resolution::Never { .. }));
    assert!(matches!(play.resolutions[&head], Resolution::NotDelivered(_)));
}

/// C, L5: what was contested and decided is forgotten, also on a lane that never rests.
#[test]
fn decided_contests_are_forgotten() {
    let mut play = Play::new();
    play.open_gate(10);
    let pair = |play: &mut Play| {
        let first = play.join(play.now as i64, 10 * MINUTE);
        play.join(play.now as i64, 10 * MINUTE);
        play.flush();
        (first, play.offer())
    };
    let mut ahead = pair(&mut play);
    let mut size = 0;
    for round in 0..20 {
        let (behind, attempt) = pair(&mut play);
        play.error(ahead.1, 7);
        play.error(attempt, 7);
        let contest = play.contest(ahead.0);
        play.error(contest.attempt, 45);
        let asked = play.offer_again();
        play.zero(asked, 11 + 2 * round);
        assert!(play.resolutions.contains_key(&ahead.0));
        ahead = (behind, play.offer_again());
        let now = format!("{:?}", play.lane).matches("Contest {").count();
        size = size.max(now);
    }
    assert!(size <= 2, "{size} contests are remembered");
}

/// C4, V1: a refused replacement carries copies of what stands in the batches that it contests.
/// When one of these gives up its slot, its records go their own way: nothing else may carry them,
/// or they would be written twice.
#[test]
fn a_replacement_does_not_outlive_a_batch_that_gave_up_its_slot() {
    let mut play = Play::new();
    play.open_gate(10);
    let (revoked, lost) = play.append_and_offer(10 * MINUTE);
    let cancelled = play.join(play.now as i64, 10 * MINUTE);
    let kept = [0, 1].map(|_| play.join(play.now as i64, 10 * MINUTE));
    play.flush();
    let late = play.offer();
    play.next_route();
    play.tell(Event::Cancel(Ticket(cancelled)));
    let contest = play.contest(revoked);
    assert_eq!(contest.batch.records(), kept.map(|ticket| ticket as u16));
    play.error(contest.attempt, 19);
    // The old connection tells that the second batch was never taken.
    play.error(late, 19);
    assert!(matches!(play.resolutions[&cancelled], Resolution::NotDelivered(_)));
    play.wait(2_000);
    let asked = play.try_offer().unwrap();
    assert_eq!(asked.batch.records(), [revoked as u16], "no content is left: it is asked itself");
    play.zero(asked.attempt, 11);
    play.lose(lost);
    assert_eq!(play.epoch_in_use(), 4);
    play.wait(2_000);
    let next = play.try_offer().unwrap();
    assert_eq!(next.batch.records(), kept.map(|ticket| ticket as u16));
}

/// The same, the code being permanent: its records would be told `NotDelivered` and be written.
#[test]
fn a_replacement_does_not_carry_what_was_told_not_delivered() {
    let (mut play, revoked, pair, contest) = contested_by_a_pair();
    // Its answer is late; the batches themselves are asked, and refused for good.
    play.next_route();
    let again = play.offer_again();
    play.error(again, 29);
    let asked = play.offer_again();
    play.error(asked, 29);
    let asked = play.offer_again();
    play.error(asked, 29);
    assert!(!play.verdicts.contains_key(&pair[0]), "the replacement may be in the log (D3)");
    play.next_route();
    play.error(contest.attempt, 19);
    assert!(matches!(play.verdicts[&pair[0]], Verdict::NotDelivered(_)));
    play.wait(2_000);
    let asked = play.try_offer().unwrap();
    assert_eq!(asked.batch.records(), [revoked as u16]);
}

/// S22, C1: a 0 behind what is certainly not written means that the broker lost our state. Then
/// the slot of a replacement proves nothing either: what it contested may be in the log.
#[test]
fn a_slot_taken_behind_a_refused_batch_proves_nothing() {
    let (mut play, Behind { head, late, revoked, kept, lost, contest }) = contested_behind();
    play.error(late, 19);
    play.zero(contest.attempt, 20);
    assert_eq!(play.verdicts[&kept], Verdict::Delivered { offset: Offset::new(20) });
    assert_eq!(play.verdicts[&head], Verdict::NotDelivered(Proof::Overtaken));
    assert!(play.notices.contains(&Notice::StateLost));
    play.lose(lost);
    let resolution = play.resolutions[&revoked];
    assert!(matches!(resolution, Resolution::Never { reason: NeverReason::StateLost, .. }));
}

/// Rules 1, V3: what an abandon leaves in doubt only because of a replacement is to be looked for
/// where that stands, and ends with it: the batches themselves are certainly not written.
#[test]
fn facts_name_the_replacement_where_nothing_else_is_in_doubt() {
    let mut play = Play::new();
    play.open_gate(10);
    let (revoked, late) = play.append_and_offer(10 * MINUTE);
    let (shared, open) = play.append_and_offer(10 * MINUTE);
    play.append(10 * MINUTE);
    play.next_route();
    let contest = play.contest(revoked);
    play.lose(contest.attempt);
    play.error(late, 19);
    play.tell(Event::Abandon);
    play.poll();
    assert!(matches!(play.resolutions[&revoked], Resolution::NotDelivered(_)));
    let Resolution::Never { reason, facts } = play.resolutions[&shared] else { panic!() };
    assert_eq!(reason, NeverReason::Abandoned);
    let records = contest.batch.records();
    assert_eq!((facts.first, facts.count as usize), (contest.first, records.len()));
    assert_eq!(u64::from(records[facts.index as usize]), shared);
    play.error(open, 45);
}

/// L4: a stuck head is not abandoned while a replacement in doubt carries somebody who still waits
/// for a verdict: with the abandon it would be `Unknown` long before its time is up.
#[test]
fn a_replacement_in_doubt_with_live_records_is_not_abandoned() {
    let (mut play, _, pair, contest) = contested_by_a_pair();
    play.lose(contest.attempt);
    play.append(10 * MINUTE);
    play.next_route();
    for _ in 0..3 {
        let asked = play.offer_again();
        play.error(asked, 29);
    }
    play.wait(2_000);
    assert!(play.try_offer().is_none(), "everything was asked");
    play.confirm();
    assert!(!play.verdicts.contains_key(&pair[0]), "{:?}", play.verdicts);
    assert_eq!(play.epoch_in_use(), 3, "nothing was given up");
}

/// S13: nothing follows from a 0 that contradicts what was concluded, a fence included.
#[test]
fn a_slot_taken_without_room_raises_no_fence() {
    let mut play = Play::new();
    play.open_gate(10);
    let (_, lost) = play.append_and_offer(MINUTE);
    play.lose(lost);
    play.tell(Event::Shed);
    play.poll();
    // The next epoch's first 0 names no offset: it is no fence, but opens the gate.
    play.append(MINUTE);
    let opener = play.offer_again();
    play.zero(opener, -1);
    assert_eq!(play.notices, []);
    let (_, late) = play.append_and_offer(10 * MINUTE);
    let revoked = play.join(play.now as i64, 10 * MINUTE);
    play.join(play.now as i64, 10 * MINUTE);
    play.flush();
    play.offer();
    play.next_route();
    let asked = play.offer_again();
    play.error(asked, 45);
    let contest = play.contest(revoked);
    // Offset 11 is the opener's, so that 12 is the head's.
    play.zero(contest.attempt, 12);
    let contradiction = Notice::Contradiction { offset: Offset::new(12) };
    assert_eq!(play.notices, [contradiction]);
    play.lose(late);
}

/// A batch of so many records, of which the first one is revoked; the next ones expire one by one, a
/// second apart. What was lost was offered on the connection before.
fn revoked_of(records: u64) -> Play {
    let config = LaneConfig { batch_size: usize::MAX, ..LaneConfig::default() };
    let mut play = Play::with(config, 3);
    play.open_gate(10);
    for place in 0..records {
        play.join(play.now as i64, 10_000 * MINUTE + 1_000 * place);
    }
    play.flush();
    play.offer();
    play.next_route();
    play
}

/// L5, S4: each record that expires makes another content. A slot that is contested a thousand
/// times remembers one size for each, and no records.
#[test]
fn a_slot_that_is_contested_for_ever_takes_little_room() {
    const RECORDS: u64 = 1_500;
    let mut play = revoked_of(RECORDS);
    let mut contest = play.contest(1);
    let mut rounds = 0;
    for left in (1..RECORDS - 1).rev() {
        assert!(contest.batch.records().len() as u64 >= left.min(2), "{rounds}");
        play.error(contest.attempt, 19);
        // The oldest one that is left expires, and with it the content.
        let oldest = contest.batch.records()[0];
        play.tell(Event::Cancel(Ticket(oldest.into())));
        play.wait(2_000);
        let Some(next) = play.try_offer().filter(|offer| offer.replacement) else { break };
        contest = next;
        rounds += 1;
    }
    assert!(rounds > 1_000, "{rounds} contents");
    let lane = format!("{:?}", play.lane);
    let contests = lane.split_once("contests: [").unwrap().1.split_once(']').unwrap().0;
    let remembered = contests.matches("Contest {").count() as u64;
    assert!((1_000..=RECORDS).contains(&remembered), "{remembered} contests");
    assert_eq!(contests.matches("Ticket(").count() as u64, remembered, "one record each");
}

thread_local! {
    static ASKED: Cell<usize> = const { Cell::new(0) };
}

/// Counts how often a size is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counting;

impl Rules for Counting {
    fn cut_is_legal(facts: &CutFacts<'_>) -> bool {
        ASKED.set(ASKED.get() + 1);
        Honest::cut_is_legal(facts)
    }
}

/// A large batch whose slot is to be contested is looked at when something is offered, not whenever
/// somebody asks when that will be; and a size that fits is found at once.
#[test]
fn sizes_are_looked_at_once_for_an_offer() {
    let now = Instant::from_millis(1_700_000_000_000);
    let later = now + Span::from_secs(2);
    let config = LaneConfig { batch_size: usize::MAX, ..LaneConfig::default() };
    let mut lane = Lane::<Counted, Counting>::preset(config, now, preset(3));
    lane.handle(now, Event::Leader { route: Some(RouteId(1)), epoch: LeaderEpoch(1) }).unwrap();
    for ticket in 0..4_000 {
        let (deadline, timestamp) = (now + Span::from_secs(600), now.as_millis());
        let ticket = Ticket(ticket);
        let append = Append { ticket, born: now, deadline, timestamp, record: 0 };
        lane.handle(now, Event::Append(append)).unwrap();
    }
    lane.handle(now, Event::Flush).unwrap();
    let lost = lane.offer(now, RouteId(1), usize::MAX).unwrap().attempt;
    let handed = HandedOver::PerhapsWhole;
    lane.handle(now, Event::Ended { attempt: lost, handed }).unwrap();
    lane.handle(now, Event::Revoke(Ticket(0))).unwrap();
    while lane.poll(now).is_some() {}
    for _ in 0..100 {
        assert!(lane.deadline().is_some());
        assert!(!lane.offerable(now), "not before the backoff");
    }
    assert_eq!(ASKED.get(), 0);
    assert!(lane.offer(later, RouteId(1), usize::MAX).unwrap().replacement);
    assert!((1..8).contains(&ASKED.get()), "{} sizes", ASKED.get());
}

/// A record that is revoked, asked for itself again, and the two records of a replacement in doubt
/// for it that was answered 45 since.
fn asked_beside_a_replacement(mut play: Play, revoked: u64, lost: AttemptId) -> (Play, [u64; 2]) {
    play.lose(lost);
    play.next_route();
    let newer = [(); 2].map(|()| play.append(10 * MINUTE));
    let contest = play.contest(revoked);
    assert_eq!(contest.batch.records(), newer.map(|ticket| ticket as u16));
    play.lose(contest.attempt);
    play.next_route();
    let again = play.offer_again();
    play.error(again, 45);
    (play, newer)
}

/// C4, A3: the replacement may have been written, deleted and forgotten, so that the contested batch
/// was taken in its place: its 0 tells that the replacement is not written only where the 0 of the
/// replacement would tell as much of the batch (C1).
#[test]
fn the_zero_of_a_contested_batch_concludes_no_more_than_that_of_its_replacement() {
    // The first slot of a producer to which nothing was acknowledged; offset 9 was, another epoch's.
    for (acknowledged, log_start, conclusive) in
        [(false, 0, true), (false, 3, false), (true, 9, true), (true, 12, false)]
    {
        let (mut play, revoked) = match acknowledged {
            false => Play::fresh(),
            true => {
                let mut play = Play::new();
                let revoked = play.append(MINUTE);
                (play, revoked)
            }
        };
        let lost = play.offer();
        let (mut play, newer) = asked_beside_a_replacement(play, revoked, lost);
        let (asked, epoch) = (play.offer(), play.epoch_in_use());
        play.zero_with_log_start(asked, 12, log_start);
        assert!(matches!(play.resolutions[&revoked], Resolution::Delivered { .. }));
        let case = format!("log start {log_start}, acknowledged before: {acknowledged}");
        match conclusive {
            true => {
                assert!(newer.iter().all(|it| !play.verdicts.contains_key(it)), "{case}");
                assert_eq!(play.epoch_in_use(), epoch, "{case}");
                assert_eq!(play.try_offer().unwrap().batch.records(), newer.map(|it| it as u16));
            }
            false => {
                for ticket in newer {
                    assert!(matches!(play.verdicts[&ticket], Verdict::Unknown(_)), "{case}");
                    let told = &play.resolutions[&ticket];
                    assert!(matches!(told, Resolution::Never { .. }), "{case}: {told:?}");
                }
                assert_eq!(play.epoch_in_use(), epoch + 1, "{case}: what may come late is fenced");
            }
        }
    }
}

/// C4: where the answer of the replacement is still to come, it counts when it does. Its offset lies
/// before that of the batch, which was written later (S13).
#[test]
fn a_replacement_beside_a_written_batch_is_awaited() {
    let (mut play, revoked) = Play::fresh();
    let lost = play.offer();
    play.lose(lost);
    play.next_route();
    let newer = [(); 2].map(|()| play.append(10 * MINUTE));
    let contest = play.contest(revoked).attempt;
    play.next_route();
    let again = play.offer_again();
    play.error(again, 45);
    let asked = play.offer();
    play.zero_with_log_start(asked, 12, 3);
    for ticket in newer {
        assert!(matches!(play.verdicts[&ticket], Verdict::Unknown(_)));
        assert!(!play.resolutions.contains_key(&ticket), "its attempt is open");
    }
    play.zero_with_log_start(contest, 10, 3);
    for ticket in newer {
        assert!(matches!(play.resolutions[&ticket], Resolution::Delivered { .. }));
    }
}
