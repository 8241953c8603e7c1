//! The judge is judged: good histories are clean, and each edit of one is found, as the right
//! class, at the right record.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's helpers may fail the test")]

use candor_sim::judge::{
    Attempt, Class, Entry, Fact, History, LogBatch, Noticed, Observer, Reply, Said, Settings,
    Stored, judge,
};

#[path = "judge/forgiven.rs"]
mod forgiven;
#[path = "judge/forgotten.rs"]
mod forgotten;
#[path = "judge/stories.rs"]
mod stories;

use stories::*;

#[test]
fn good_history_is_clean() {
    clean(&good());
}

#[test]
fn edits_of_verdicts() {
    for record in [1, 4, 7] {
        edited(Class::NoVerdict, record, |history| {
            verdict_of(history, record).fact = Fact::Stall { from: 0, to: 0 };
        });
        edited(Class::Flip, record, |history| {
            let twice = verdict_of(history, record).clone();
            history.entries.push(twice);
        });
        edited(Class::Flip, record, |history| {
            let fact = Fact::Resolution { record, said: Said::Delivered(None) };
            history.entries.push(Entry { at: DUE, fact });
        });
        edited(Class::Ghost, record, |history| say(history, record, Said::NotDelivered));
        edited(Class::WrongOffset, record, |history| {
            say(history, record, Said::Delivered(Some(99)));
        });
        edited(Class::Late, record, |history| verdict_of(history, record).at = DUE + 1);
        edited(Class::Coward, record, |history| say(history, record, Said::Unknown));
    }
    edited(Class::Coward, 5, |history| say(history, 5, Said::Unknown));
    edited(Class::Lost, 5, |history| say(history, 5, Said::Delivered(None)));
    edited(Class::Hasty, 5, |history| verdict_of(history, 5).at = DUE / 2);
    edited(Class::GhostRefused, 7, |history| {
        let at = position(history, |fact| matches!(fact, Fact::Accepted { record: 7 }));
        history.entries[at].fact = Fact::Refused { record: 7 };
    });
}

#[test]
fn edits_of_resolutions_and_of_the_door() {
    edited(Class::NoResolution, 6, |history| {
        resolution_of(history, 6).fact = Fact::Stall { from: 0, to: 0 };
    });
    edited(Class::Flip, 6, |history| {
        let twice = resolution_of(history, 6).clone();
        history.entries.push(twice);
    });
    for (said, class) in [(Said::NotDelivered, Class::Ghost), (Said::Unknown, Class::Coward)] {
        edited(class, 6, |history| {
            resolution_of(history, 6).fact = Fact::Resolution { record: 6, said };
        });
    }
    edited(Class::Insane, 77, |history| {
        history.entries.push(Entry { at: DUE, fact: Fact::Accepted { record: 77 } });
    });
    edited(Class::Insane, 7, |history| {
        history.entries.push(Entry { at: DUE, fact: Fact::Refused { record: 7 } });
    });
}

#[test]
fn a_sleeping_host_is_forgiven_no_more_than_it_slept() {
    let mut history = good();
    verdict_of(&mut history, 8).at = DUE + 5;
    let nap = Entry { at: 0, fact: Fact::Stall { from: DUE - 100, to: DUE + 5 } };
    // Lanes exist from their first intent on.
    history.entries.insert(1, nap);
    clean(&history);
    verdict_of(&mut history, 8).at = DUE + 6;
    convicts(&history, Class::Late, 8);
}

#[test]
fn edits_of_the_log() {
    edited(Class::Lost, 3, |history| batch(history, 12).records[0] = Stored::Foreign);
    edited(Class::Lost, 8, |history| {
        batch(history, 15).records.pop();
    });
    edited(Class::Reorder, 3, |history| batch(history, 12).records.swap(0, 1));
    edited(Class::WrongOffset, 7, |history| batch(history, 15).base_offset = 16);
    for class in [Class::Duplicate, Class::SeqReuse] {
        edited(class, 1, |history| {
            let mut copy = batch(history, 10).clone();
            copy.base_offset = 17;
            history.logs[0].batches.push(copy);
        });
    }
    edited(Class::SeqGap, 7, |history| batch(history, 15).first = 6);
    edited(Class::SeqGap, 6, |history| {
        history.logs[0].batches.retain(|batch| batch.base_offset != 12);
    });
    edited(Class::Ghost, 5, |history| {
        history.logs[0].batches.push(LogBatch {
            base_offset: 17,
            producer_id: 4000,
            epoch: 0,
            first: 7,
            max_timestamp: None,
            records: vec![Stored::Ours(5)],
        });
    });
    edited(Class::Misrouted, 1, |history| {
        let moved = history.logs[0].batches.remove(0);
        history.logs[1].batches.push(moved);
    });
    for (stored, class) in [(Stored::Foreign, Class::Foreign), (Stored::Corrupt, Class::Corrupt)] {
        let mut history = good();
        batch(&mut history, 14).records.push(stored);
        assert!(judge(&history).anomalies.iter().any(|finding| finding.anomaly.class == class));
    }
}

#[test]
fn a_record_in_the_log_of_another_lane_is_misrouted() {
    let mut run = Run::new();
    run.fact(Fact::Intent { record: 1, lane: OTHER, due: DUE });
    run.fact(Fact::Accepted { record: 1 });
    run.now = DUE - 2;
    run.tell(&[1], |_| Said::NotDelivered);
    run.store(AT, 3, &[1]);
    convicts(&run.history, Class::Misrouted, 1);
    convicts(&run.history, Class::Ghost, 1);
}

#[test]
fn gaps() {
    // Delivered behind one that is missing and was told nothing; nobody closed yet.
    let mut run = Run::new();
    run.send(&[1, 2]);
    run.deliver(AT, 0, &[2]);
    run.history.closed = false;
    convicts(&run.history, Class::SilentGap, 1);
    // Told, but too late.
    run.now = DUE - 1;
    run.tell(&[1], |_| Said::NotDelivered);
    convicts(&run.history, Class::LateBadNews, 1);
    // In the log, but told after its successor.
    let mut run = Run::new();
    run.send(&[1, 2]);
    let first = run.offer(AT, &[1]);
    run.store(AT, 0, &[1]);
    run.answer(first, Reply::appended(0));
    run.deliver(seq(1), 1, &[2]);
    run.tell(&[1], |_| Said::Delivered(Some(0)));
    convicts(&run.history, Class::OutOfTurn, 1);
}

#[test]
fn nothing_follows_a_gap_where_the_policy_is_to_stop() {
    let mut run = Run::new();
    run.send(&[1, 2]);
    run.fact(Fact::Cancelled { record: 1 });
    let cancelled = run.now;
    run.now = cancelled - 1;
    run.tell(&[1], |_| Said::NotDelivered);
    run.deliver(AT, 0, &[2]);
    clean(&run.history);
    run.history.settings.stop = true;
    convicts(&run.history, Class::GapAfterStop, 2);
}

#[test]
fn edits_of_identities() {
    edited(Class::IdentityReused, 3, |history| attempt_of(history, 2).content += 1);
    edited(Class::NotFrozen, 3, |history| {
        let attempt = attempt_of(history, 2);
        attempt.records.pop();
        attempt.count = 1;
    });
    edited(Class::NotFrozen, 4, |history| {
        let attempt = attempt_of(history, 2);
        attempt.records.remove(0);
        (attempt.first, attempt.count) = (3, 1);
    });
    edited(Class::IdentityReused, 6, |history| attempt_of(history, 3).first = 2);
    edited(Class::IdentityReused, 7, |history| attempt_of(history, 4).first = 0);
    edited(Class::SeqGap, 7, |history| attempt_of(history, 4).first = 7);
    edited(Class::SeqGap, 1, |history| attempt_of(history, 0).first = 1);
    // Renumbered within the epoch.
    edited(Class::SecondIdentity, 3, |history| attempt_of(history, 2).first = 4);
    edited(Class::EarlyBump, 3, |history| {
        let attempt = attempt_of(history, 2);
        (attempt.epoch, attempt.first) = (1, 0);
    });
    edited(Class::EpochBack, 7, |history| {
        let attempt = attempt_of(history, 3);
        (attempt.epoch, attempt.first) = (1, 0);
    });
    edited(Class::EpochBack, 7, |history| {
        let attempt = attempt_of(history, 3);
        (attempt.producer_id, attempt.first) = (4001, 0);
    });
}

#[test]
fn a_record_that_was_told_is_never_offered_under_another_identity() {
    let mut run = Run::new();
    run.send(&[1]);
    let first = run.offer(AT, &[1]);
    run.end(first, false);
    run.now = DUE - 1;
    run.tell(&[1], |_| Said::Unknown);
    let bumped = Shape { epoch: 1, connection: 2, ..AT };
    let second = run.offer(bumped, &[1]);
    run.store(bumped, 0, &[1]).answer(second, Reply::appended(0));
    run.resolve(1, Said::Delivered(Some(0)));
    convicts(&run.history, Class::SecondIdentity, 1);
}

/// A head that was refused for good and gave up its slot, and a successor in doubt behind it.
fn vacated() -> Run {
    let mut run = Run::new();
    run.send(&[1, 2, 3, 4]);
    run.deliver(AT, 0, &[1]);
    let head = run.offer(seq(1), &[2]);
    let behind = run.offer(seq(2), &[3]);
    run.answer(head, Reply::of(87)).tell(&[2], |_| Said::NotDelivered);
    run.end(behind, false);
    run
}

#[test]
fn a_vacated_slot_ends_its_epoch() {
    let next = Shape { epoch: 1, connection: 2, ..AT };
    let mut run = vacated();
    run.deliver(next, 1, &[3]);
    run.deliver(Shape { first: 1, ..next }, 2, &[4]);
    clean(&run.history);

    let mut run = vacated();
    run.deliver(Shape { connection: 2, ..seq(3) }, 1, &[4]);
    convicts(&run.history, Class::SlotReused, 4);

    // The vacated batch itself once more.
    let mut run = vacated();
    run.offer(Shape { connection: 2, ..seq(1) }, &[2]);
    convicts(&run.history, Class::SlotReused, 2);

    // Its successor is still awaited.
    let mut run = Run::new();
    run.send(&[1, 2, 3]);
    run.deliver(AT, 0, &[1]);
    let head = run.offer(seq(1), &[2]);
    run.offer(seq(2), &[3]);
    run.answer(head, Reply::of(87)).tell(&[2], |_| Said::NotDelivered);
    run.deliver(Shape { epoch: 1, ..AT }, 1, &[3]);
    convicts(&run.history, Class::EarlyBump, 3);
}

/// Two batches in flight, behind one that was answered 0 or 7.
fn two_in_flight(open: bool) -> History {
    let mut run = Run::new();
    run.send(&[1, 2, 3]);
    let first = run.offer(AT, &[1]);
    run.store(AT, 0, &[1]);
    if open {
        run.answer(first, Reply::appended(0));
        run.tell(&[1], |_| Said::Delivered(Some(0)));
    } else {
        run.answer(first, Reply::of(7));
    }
    run.offer(seq(1), &[2]);
    run.offer(seq(2), &[3]);
    run.history.closed = false;
    run.history
}

#[test]
fn one_batch_at_a_time_until_the_gate_is_open() {
    clean(&two_in_flight(true));
    convicts(&two_in_flight(false), Class::GateBroken, 3);
    // Another connection, or a newer leader epoch on the same, closes it again.
    let mut history = two_in_flight(true);
    attempt_of(&mut history, 1).connection = 2;
    attempt_of(&mut history, 2).connection = 2;
    convicts(&history, Class::GateBroken, 3);
    let mut history = two_in_flight(true);
    attempt_of(&mut history, 1).leader_epoch = 8;
    attempt_of(&mut history, 2).leader_epoch = 8;
    convicts(&history, Class::GateBroken, 3);
    // So does any answer but 0.
    let mut run = Run::new();
    run.send(&[1, 2, 3]);
    run.deliver(AT, 0, &[1]);
    let refused = run.offer(seq(1), &[2]);
    run.offer(seq(2), &[3]);
    run.answer(refused, Reply::of(19));
    run.offer(seq(1), &[2]);
    convicts(&run.history, Class::GateBroken, 2);
}

#[test]
fn five_batches_span_at_most() {
    let spanning = |batches: u64| {
        let mut run = Run::new();
        let records: Vec<u64> = (1..=batches + 1).collect();
        run.send(&records);
        run.deliver(AT, 0, &[1]);
        run.offer(seq(1), &[2]);
        for (first, record) in (2..).zip(3..=batches + 1) {
            let attempt = run.offer(seq(first), &[record]);
            run.answer(attempt, Reply::appended(i64::from(first)));
        }
        run.history.closed = false;
        run.history
    };
    clean(&spanning(5));
    convicts(&spanning(6), Class::SpanBroken, 7);
}

#[test]
fn nothing_in_doubt_is_resent_once_the_broker_may_have_forgotten() {
    let ttl = 10_000;
    let stale = |age: u64, timestamp: i64| {
        let mut run = Run::new();
        run.history.settings = Settings { state_ttl: Some(ttl), ..Settings::default() };
        run.history.settings.timestamps_count = timestamp >= 0;
        run.now = 5_000_000;
        run.fact(Fact::Intent { record: 1, lane: LANE, due: 9_000_000 });
        run.fact(Fact::Accepted { record: 1 });
        let first = run.offer(AT, &[1]);
        let offered = run.now;
        run.end(first, false);
        run.now = offered + age - 1;
        run.offer(Shape { connection: 2, ..AT }, &[1]);
        for id in [0, 1] {
            attempt_of(&mut run.history, id).max_timestamp = timestamp;
        }
        run.history.closed = false;
        run.history
    };
    clean(&stale(ttl - 1, -1));
    convicts(&stale(ttl, -1), Class::StaleResend, 1);
    clean(&stale(100, 5_000));
    convicts(&stale(100, 4_990), Class::StaleResend, 1);

    // The log moved past what was acknowledged.
    let purged = |log_start: i64| {
        let mut run = Run::new();
        run.send(&[1, 2, 3]);
        run.deliver(AT, 0, &[1]);
        let lost = run.offer(seq(1), &[2]);
        let seen = run.offer(seq(2), &[3]);
        run.answer(seen, Reply { log_start, ..Reply::of(45) }).end(lost, false);
        run.offer(Shape { connection: 2, ..seq(1) }, &[2]);
        run.history.closed = false;
        run.history
    };
    clean(&purged(0));
    convicts(&purged(1), Class::StaleResend, 2);
}

/// Records 2 to 4 in two batches in doubt; 2 is revoked: a replacement with `kept` of the others.
fn revoke(kept: &[u64], epoch_after: i16) -> History {
    let mut run = Run::new();
    run.send(&[1, 2, 3, 4, 5, 6]);
    run.deliver(AT, 0, &[1]);
    let first = run.offer(seq(1), &[2, 3]);
    let second = run.offer(seq(3), &[4]);
    run.end(first, false).end(second, false);
    run.fact(Fact::Cancelled { record: 2 });
    run.now -= 1;
    run.tell(&[2], |_| Said::Unknown);
    let contest = Shape { connection: 2, ..seq(1) };
    let replacement = run.replace(contest, kept);
    run.store(contest, 1, kept).answer(replacement, Reply::appended(1));
    run.resolve(2, Said::NotDelivered);
    run.tell(kept, |index| Said::Delivered(Some(1 + index as i64)));
    let rest: Vec<u64> = (3..=6).filter(|record| !kept.contains(record)).collect();
    if !rest.is_empty() {
        let first = if epoch_after == 0 { 4 } else { 0 };
        let shape = Shape { connection: 2, epoch: epoch_after, first, ..AT };
        run.deliver(shape, 1 + kept.len() as i64, &rest);
    }
    run.history
}

#[test]
fn a_replacement_must_not_open_the_way_for_what_it_contests() {
    clean(&revoke(&[3, 4, 5], 1));
    clean(&revoke(&[3], 1));
    // It has the length of the first batch, which is also the first sequence of the second.
    convicts(&revoke(&[3, 4], 1), Class::IllegalCut, 3);
    // Something new in the epoch that it ended.
    convicts(&revoke(&[3, 4, 5], 0), Class::SlotReused, 6);
    // The same cut without the right to contest.
    let mut history = revoke(&[3, 4, 5], 1);
    attempt_of(&mut history, 3).replacement = false;
    convicts(&history, Class::NotFrozen, 3);
    // The end of a replacement on the first sequence of a batch further behind.
    let mut history = revoke(&[3, 4, 5], 1);
    let second = attempt_of(&mut history, 2);
    second.count = 2;
    second.records = vec![4, 5];
    let third = Attempt { id: 9, first: 5, count: 1, records: vec![6], ..second.clone() };
    attempt_of(&mut history, 3).records = vec![3, 4, 5, 6];
    attempt_of(&mut history, 3).count = 4;
    let at = position(&history, |f| matches!(f, Fact::Ended { attempt: 1, .. }));
    let fact = Fact::Offered { lane: LANE, attempt: third };
    history.entries.insert(at, Entry { at: 20, fact });
    convicts(&history, Class::IllegalCut, 3);
}

#[test]
fn a_killed_producer_owes_nothing_more() {
    let mut run = Run::new();
    run.send(&[1]);
    convicts(&run.history, Class::NoVerdict, 1);
    run.fact(Fact::Killed { producer: 0 });
    clean(&run.history);
}

#[test]
fn trusting_the_base_offset_makes_an_unknown_cowardly() {
    let mut run = Run::new();
    run.send(&[1]);
    let attempt = run.offer(AT, &[1]);
    run.answer(attempt, Reply::of(6));
    run.now = DUE - 1;
    run.tell(&[1], |_| Said::Unknown).resolve(1, Said::Unknown);
    clean(&run.history);
    run.history.settings.trust_base_offset = true;
    convicts(&run.history, Class::Coward, 1);
}

#[test]
fn an_early_unknown_needs_a_reason() {
    let mut run = Run::new();
    run.send(&[1]);
    let attempt = run.offer(AT, &[1]);
    run.tell(&[1], |_| Said::Unknown);
    run.end(attempt, false).resolve(1, Said::Unknown);
    convicts(&run.history, Class::Hasty, 1);
    let told = verdict_of(&mut run.history, 1).at;
    run.history.entries.insert(2, Entry { at: told, fact: Fact::Cancelled { record: 1 } });
    clean(&run.history);
}

#[test]
fn only_what_was_announced_as_unfenced_may_stand_behind_newer_records() {
    let run = |announced: bool| {
        let mut run = Run::new();
        run.send(&[1, 2]);
        let first = run.offer(AT, &[1]);
        run.end(first, false);
        run.fact(Fact::Cancelled { record: 1 });
        run.now -= 1;
        run.tell(&[1], |_| Said::Unknown).resolve(1, Said::Unknown);
        if announced {
            run.fact(Fact::Notice { lane: LANE, notice: Noticed::Unfenced });
        }
        let fresh = Shape { connection: 2, id: 4001, ..AT };
        run.deliver(fresh, 0, &[2]);
        run.store(AT, 1, &[1]);
        run.history
    };
    clean(&run(true));
    convicts(&run(false), Class::Reorder, 1);
}

#[test]
fn nobody_gives_up_while_an_answer_may_still_come() {
    let mut run = Run::new();
    run.send(&[1]);
    let attempt = run.offer(AT, &[1]);
    run.fact(Fact::Cancelled { record: 1 });
    run.now -= 1;
    run.tell(&[1], |_| Said::Unknown);
    let mut early = run.history.clone();
    early.entries.push(Entry { at: 90, fact: Fact::Resolution { record: 1, said: Said::Unknown } });
    convicts(&early, Class::Hasty, 1);
    run.end(attempt, false).resolve(1, Said::Unknown);
    clean(&run.history);
}

#[test]
fn an_answer_that_contradicts_a_conclusion_must_not_go_unheeded() {
    let run = |heeded: bool| {
        let mut watch = Observer::new(Settings::default());
        let offer = |id, record, epoch, first| Attempt {
            id,
            connection: 1,
            leader_epoch: 0,
            producer_id: 4000,
            epoch,
            first,
            count: 1,
            content: record,
            records: vec![record],
            max_timestamp: -1,
            replacement: false,
        };
        for record in [1, 2] {
            watch.intended(record, 1_000);
            watch.accepted(record);
        }
        watch.offered(1, &offer(0, 1, 0, 0));
        watch.answered(2, 0, Some(Reply::appended(0)));
        watch.told(2, 1, Said::Delivered(Some(0)));
        watch.offered(3, &offer(1, 2, 0, 1));
        // Its route is gone, but its connection lives; it is told to be certainly not written.
        watch.routed(Some(2), 1);
        watch.told(1_000, 2, Said::NotDelivered);
        assert!(watch.polled(1_000).is_empty());
        watch.answered(1_001, 1, Some(Reply::appended(1)));
        if heeded {
            watch.noticed(Noticed::Contradiction);
        }
        watch.polled(1_001)
    };
    assert_eq!(run(false)[0].class, Class::Unheeded);
    assert!(run(true).is_empty());
}

#[test]
fn offsets_of_delivered_records_grow() {
    let mut run = Run::new();
    run.send(&[1, 2]);
    run.deliver(AT, 5, &[1]);
    run.deliver(seq(1), 5, &[2]);
    convicts(&run.history, Class::OffsetBack, 2);
}

#[test]
fn retries_keep_their_distance_but_for_a_newer_leader_epoch() {
    let run = |leader_epoch: i32| {
        let mut run = Run::new();
        run.history.settings.backoff = 50;
        run.send(&[1]);
        let first = run.offer(AT, &[1]);
        run.end(first, false);
        let again = run.offer(Shape { connection: 2, ..AT }, &[1]);
        attempt_of(&mut run.history, again).leader_epoch = leader_epoch;
        run.history.closed = false;
        run.history
    };
    convicts(&run(7), Class::Busy, 1);
    clean(&run(8));
}

#[test]
fn the_last_epoch_is_a_fence_only() {
    let mut run = Run::new();
    run.send(&[1, 2]);
    let last = Shape { epoch: i16::MAX, ..AT };
    run.deliver(last, 0, &[1]);
    clean(&run.history.clone().tap(|history| history.closed = false));
    run.deliver(Shape { first: 1, ..last }, 1, &[2]);
    convicts(&run.history, Class::SlotReused, 2);
}

trait Tap: Sized {
    fn tap(self, edit: impl FnOnce(&mut Self)) -> Self;
}

impl Tap for History {
    fn tap(mut self, edit: impl FnOnce(&mut Self)) -> Self {
        edit(&mut self);
        self
    }
}

/// V3: an abandon does not wait for what lies behind a refused batch.
#[test]
fn what_lies_behind_a_refused_batch_goes_on_after_an_abandon() {
    let run = |abandoned: bool| {
        let mut run = Run::new();
        run.send(&[1, 2, 3]);
        run.deliver(AT, 0, &[1]);
        let head = run.offer(seq(1), &[2]);
        let behind = run.offer(seq(2), &[3]);
        run.answer(head, Reply::of(87)).tell(&[2], |_| Said::NotDelivered);
        if abandoned {
            run.fact(Fact::Abandoned { lane: LANE });
        }
        run.deliver(Shape { epoch: 1, ..AT }, 1, &[3]);
        run.answer(behind, Reply::of(45));
        run.history
    };
    clean(&run(true));
    convicts(&run(false), Class::EarlyBump, 3);
}

#[test]
fn an_abandon_has_everything_in_doubt_told_at_once() {
    let run = |abandoned: bool, later: u64| {
        let mut run = Run::new();
        run.send(&[1, 2, 3]);
        run.deliver(AT, 0, &[1]);
        let doubt = run.offer(seq(1), &[2]);
        if abandoned {
            run.fact(Fact::Abandoned { lane: LANE });
            run.now += later;
        }
        run.now -= 1;
        run.tell(&[2], |_| Said::Unknown);
        run.end(doubt, false).resolve(2, Said::Unknown);
        run.deliver(Shape { epoch: 1, connection: 2, ..AT }, 1, &[3]);
        run.history
    };
    clean(&run(true, 0));
    convicts(&run(true, 1), Class::Late, 2);
    convicts(&run(false, 0), Class::Hasty, 2);
    // Not told at all, and left behind.
    let mut untold = run(true, 0);
    let at = position(&untold, |fact| matches!(fact, Fact::Verdict { record: 2, .. }));
    untold.entries.remove(at);
    convicts(&untold, Class::EarlyBump, 2);
}

/// C1: where the log does not reach back, the 0 of a replacement leaves what it contested in doubt.
#[test]
fn a_replacement_that_tells_nothing_explains_an_early_unknown() {
    let run = |log_start: i64| {
        let mut run = Run::new();
        run.send(&[1, 2, 3]);
        let batch = run.offer(AT, &[1, 2, 3]);
        run.end(batch, false).fact(Fact::Cancelled { record: 1 });
        run.now -= 1;
        run.tell(&[1], |_| Said::Unknown);
        let second = Shape { connection: 2, ..AT };
        let rival = run.replace(second, &[2]);
        run.store(AT, 5, &[2]).answer(rival, Reply { log_start, ..Reply::appended(5) });
        run.tell(&[2], |_| Said::Delivered(Some(5))).tell(&[3], |_| Said::Unknown);
        run.resolve(1, Said::Unknown).resolve(3, Said::Unknown);
        run.history
    };
    clean(&run(5));
    convicts(&run(0), Class::Hasty, 3);
}

/// A 46 proves what was offered *before*: nothing was before the first attempt.
#[test]
fn a_46_for_the_first_attempt_proves_nothing_whatever_was_offered_since() {
    let run = |first_hears_it: bool| {
        let mut run = Run::new();
        run.send(&[1]);
        let first = run.offer(AT, &[1]);
        let again = run.offer(Shape { connection: 2, ..AT }, &[1]);
        let (told, other) = if first_hears_it { (first, again) } else { (again, first) };
        for (attempt, code) in [(told, 46), (other, 45)] {
            run.answer(attempt, Reply::of(code));
        }
        run.fact(Fact::Notice { lane: LANE, notice: Noticed::StateLost });
        run.deliver(Shape { connection: 2, epoch: 1, ..AT }, 0, &[1]);
        run.history
    };
    clean(&run(true));
    convicts(&run(false), Class::SecondIdentity, 1);
}

/// K5: who knows that a record is not written does not ask for it.
#[test]
fn an_alarm_needs_no_word_on_what_turned_out_refused() {
    let run = |passes: usize| {
        let mut run = Run::new();
        let second = Shape { connection: 2, ..AT };
        run.send(&[1, 2]);
        let lost = run.offer(AT, &[1]);
        run.end(lost, false);
        for pass in 0..passes {
            let asked = run.offer(second, &[1]);
            run.answer(asked, Reply::of(45));
            if pass == 0 {
                let other = run.offer(Shape { first: 1, ..second }, &[2]);
                run.fact(Fact::Cancelled { record: 2 });
                run.now -= 1;
                run.tell(&[2], |_| Said::Unknown).answer(other, Reply::of(74));
                run.resolve(2, Said::NotDelivered);
            }
        }
        run.fact(Fact::Notice { lane: LANE, notice: Noticed::DataLoss });
        run.tell(&[1], |_| Said::Unknown).resolve(1, Said::Unknown);
        run.history
    };
    clean(&run(2));
    convicts(&run(1), Class::FalseAlarm, 1);
}

/// S18: a late answer of the log that is gone tells nothing of places in the new one.
#[test]
fn an_alarm_needs_no_word_on_what_gave_up_its_slot_with_another() {
    let run = |cancelled: bool| {
        let mut run = Run::new();
        let second = Shape { connection: 2, ..AT };
        run.send(&[1, 2, 3]);
        let lost = run.offer(AT, &[1]);
        run.end(lost, false);
        let asked = run.offer(second, &[1]);
        run.answer(asked, Reply::of(45));
        let between = run.offer(Shape { first: 1, ..second }, &[2]);
        run.answer(between, Reply::of(45));
        let behind = run.offer(Shape { first: 2, ..second }, &[3]);
        if cancelled {
            run.fact(Fact::Cancelled { record: 3 });
            run.now -= 1;
            run.tell(&[3], |_| Said::Unknown).answer(behind, Reply::of(45));
            run.resolve(3, Said::NotDelivered);
        } else {
            run.answer(behind, Reply::of(45));
        }
        let asked = run.offer(second, &[1]);
        run.answer(asked, Reply::of(45));
        run.fact(Fact::Notice { lane: LANE, notice: Noticed::DataLoss });
        run.tell(&[1], |_| Said::Unknown).resolve(1, Said::Unknown);
        run.tell(if cancelled { &[2] } else { &[2, 3] }, |_| Said::NotDelivered);
        run.history
    };
    clean(&run(true));
    convicts(&run(false), Class::FalseAlarm, 2);
}

#[test]
fn offsets_of_another_log_do_not_count() {
    let run = |late: bool| {
        let mut run = Run::new();
        run.send(&[1, 2, 3]).deliver(AT, 5, &[1]);
        let open = late.then(|| run.offer(seq(1), &[2]));
        run.fact(Fact::Disturbed { lane: LANE });
        let open = open.unwrap_or_else(|| run.offer(seq(1), &[2]));
        run.store(seq(1), 6, &[2]).answer(open, Reply::appended(6));
        run.tell(&[2], |_| Said::Delivered(Some(6)));
        run.deliver(Shape { connection: 2, epoch: 1, ..AT }, 0, &[3]);
        run.history
    };
    clean(&run(true));
    convicts(&run(false), Class::OffsetBack, 3);
}

/// K6: with the broker's state goes what the log start was compared with.
#[test]
fn two_passes_in_vain_forget_what_was_acknowledged() {
    let run = |passes: usize| {
        let mut run = Run::new();
        let second = Shape { connection: 2, ..AT };
        run.send(&[1, 2, 3]).deliver(AT, 5, &[1]);
        let lost = run.offer(seq(1), &[2]);
        run.end(lost, false);
        for _ in 0..passes {
            let asked = run.offer(Shape { first: 1, ..second }, &[2]);
            run.answer(asked, Reply::of(45));
        }
        run.fact(Fact::Notice { lane: LANE, notice: Noticed::StateLost });
        run.tell(&[2], |_| Said::Unknown).resolve(2, Said::Unknown);
        let doubt = run.offer(Shape { epoch: 1, ..second }, &[3]);
        run.answer(doubt, Reply { log_start: 9, ..Reply::of(999) });
        run.offer(Shape { epoch: 1, ..second }, &[3]);
        run.history.closed = false;
        run.history
    };
    clean(&run(2));
    convicts(&run(1), Class::StaleResend, 3);
}
