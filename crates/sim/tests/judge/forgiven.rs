//! What is forgiven for a reason, and to whom it is not.

use candor_sim::judge::{Class, Entry, Excuse, ExcuseKind, Fact, Noticed, Reply, Said, judge};

use super::stories::*;

#[test]
fn losing_acknowledged_data_is_the_brokers_fault_and_may_be_excused() {
    let mut history = good();
    history.logs[0].batches.pop();
    let report = judge(&history);
    let lost: Vec<_> = report.anomalies.iter().filter(|f| f.anomaly.class == Class::Lost).collect();
    assert_eq!(lost.len(), 2);
    assert!(lost.iter().all(|finding| finding.to_string().ends_with("blame: broker")));

    let excuse = Excuse {
        kind: ExcuseKind::Truncation,
        topic: 0,
        partition: 0,
        from: 15,
        to: 17,
        since: 0,
        until: DUE,
    };
    history.excuses.push(excuse);
    assert!(judge(&history).is_clean());
    assert_eq!(judge(&history).excused.len(), 2);
    // Of other offsets, or for another class, it is none.
    history.excuses[0].to = 16;
    convicts(&history, Class::Lost, 8);
    history.excuses[0] = Excuse { kind: ExcuseKind::StateExpiry, ..excuse };
    convicts(&history, Class::Lost, 7);
}

#[test]
fn a_gap_in_the_log_is_forgiven_where_the_producer_told_of_it() {
    let mut history = good();
    batch(&mut history, 15).first = 9;
    convicts(&history, Class::SeqGap, 7);
    let notice = Fact::Notice { lane: LANE, notice: Noticed::StateLost };
    history.entries.push(Entry { at: DUE, fact: notice });
    clean(&history);
}

#[test]
fn a_gap_is_not_forgiven_to_an_identity_that_was_over_before_its_state_was_lost() {
    let told = |epoch: i16| {
        let mut run = Run { history: good(), attempts: 100, now: DUE };
        batch(&mut run.history, 15).first = 9;
        run.fact(Fact::Intent { record: 10, lane: LANE, due: 2 * DUE });
        run.fact(Fact::Accepted { record: 10 });
        let first = if epoch == 0 { 7 } else { 0 };
        run.offer(Shape { connection: 2, epoch, first, ..AT }, &[10]);
        run.fact(Fact::Notice { lane: LANE, notice: Noticed::StateLost });
        let found = judge(&run.history).anomalies;
        found.iter().any(|it| it.anomaly.class == Class::SeqGap && it.anomaly.record == Some(7))
    };
    assert!(!told(0));
    assert!(told(1));
}

#[test]
fn haste_is_forgiven_to_what_is_hidden_and_to_nothing_else() {
    let mut run = Run::new();
    run.send(&[1, 2]);
    let lost = run.offer(AT, &[1, 2]);
    run.end(lost, false);
    run.tell(&[1, 2], |_| Said::Unknown).resolve(1, Said::Unknown).resolve(2, Said::Unknown);
    convicts(&run.history, Class::Hasty, 1);
    let told = position(&run.history, |fact| matches!(fact, Fact::Verdict { .. }));
    let hidden = Entry { at: run.history.entries[told].at, fact: Fact::Hidden { record: 1 } };
    run.history.entries.insert(told, hidden);
    convicts(&run.history, Class::Hasty, 2);
    let hasty = judge(&run.history).anomalies.into_iter().map(|it| it.anomaly.record);
    assert_eq!(hasty.collect::<Vec<_>>(), [Some(2)]);
}

/// S20: doubt about a batch begins anew where all its attempts were refused: a log start that moved
/// before that is no reason not to send it, or what stands behind it, again.
#[test]
fn a_log_start_that_moved_is_forgiven_to_what_was_refused_since() {
    let run = |code: i16| {
        let mut run = Run::new();
        run.send(&[1, 2, 3, 4, 5]).deliver(AT, 0, &[1]);
        let next = run.offer(seq(1), &[2]);
        let third = run.offer(seq(2), &[3]);
        let fourth = run.offer(seq(3), &[4]);
        run.store(seq(1), 1, &[2]).answer(next, Reply { log_start: 1, ..Reply::appended(1) });
        run.tell(&[2], |_| Said::Delivered(Some(1)));
        let fifth = run.offer(seq(4), &[5]);
        run.answer(third, Reply::of(2))
            .answer(fourth, Reply::of(code))
            .answer(fifth, Reply::of(-1));
        run.deliver(seq(2), 2, &[3]);
        run.offer(seq(3), &[4]);
        run.offer(seq(4), &[5]);
        run.history.closed = false;
        run.history
    };
    clean(&run(45));
    convicts(&run(-1), Class::StaleResend, 4);
}

/// 46 proves nothing where other content was ever offered, whatever became of that.
#[test]
fn a_46_is_forgiven_where_a_replacement_once_reached_over_the_batch() {
    let run = |first: i32| {
        let mut run = Run::new();
        run.send(&[1, 2, 3, 4, 5, 6]).deliver(AT, 0, &[1]);
        let lost = run.offer(seq(1), &[2]);
        run.end(lost, false).fact(Fact::Cancelled { record: 2 });
        run.now -= 1;
        run.tell(&[2], |_| Said::Unknown);
        let shape = Shape { connection: 2, ..seq(1) };
        let rival = run.replace(shape, &[3, 4]);
        run.answer(rival, Reply::of(-1));
        let again = run.offer(shape, &[2]);
        run.store(shape, 1, &[2]).answer(again, Reply::appended(1));
        run.resolve(2, Said::Delivered(Some(1)));
        for record in [3, 4] {
            run.fact(Fact::Cancelled { record });
            run.now -= 1;
            run.tell(&[record], |_| Said::NotDelivered);
        }
        if first == 3 {
            run.deliver(Shape { first: 2, ..shape }, 2, &[5]);
        }
        for code in [-1, 46] {
            let attempt = run.offer(Shape { first, ..shape }, &[6]);
            run.answer(attempt, Reply::of(code));
        }
        run.fact(Fact::Closing { producer: 0, due: run.now + 3 });
        if first == 2 {
            run.tell(&[5], |_| Said::NotDelivered);
        }
        run.tell(&[6], |_| Said::Unknown).resolve(6, Said::Unknown);
        run.history
    };
    clean(&run(2));
    // It did not reach as far as there.
    convicts(&run(3), Class::Coward, 6);
}

/// V1, K5: what is to be split, say, is not asked for again, though nothing was told of it yet.
#[test]
fn an_alarm_is_forgiven_though_what_was_refused_for_good_was_asked_once() {
    let run = |code: i16| {
        let mut run = Run::new();
        run.send(&[1, 2, 3]).deliver(AT, 0, &[1]);
        let lost = run.offer(seq(1), &[2]);
        let refused = run.offer(seq(2), &[3]);
        run.end(lost, false).answer(refused, Reply::of(code));
        for _ in 0..2 {
            let asked = run.offer(Shape { connection: 2, ..seq(1) }, &[2]);
            run.answer(asked, Reply::of(45));
        }
        run.fact(Fact::Notice { lane: LANE, notice: Noticed::DataLoss });
        run.tell(&[2], |_| Said::Unknown).resolve(2, Said::Unknown);
        run.deliver(Shape { connection: 2, epoch: 1, ..AT }, 1, &[3]);
        run.history
    };
    clean(&run(18));
    convicts(&run(19), Class::FalseAlarm, 3);
}

/// C4, K5: nobody asks for a replacement again once what it contests is written.
#[test]
fn an_alarm_is_forgiven_though_a_replacement_that_was_refuted_was_asked_once() {
    let run = |passes: usize| {
        let mut run = Run::new();
        run.send(&[1, 2, 3, 4]).deliver(AT, 0, &[1]);
        let lost = run.offer(seq(1), &[2]);
        run.end(lost, false).fact(Fact::Cancelled { record: 2 });
        run.now -= 1;
        run.tell(&[2], |_| Said::Unknown);
        let shape = Shape { connection: 2, ..seq(1) };
        let rival = run.replace(shape, &[3, 4]);
        run.answer(rival, Reply::of(-1));
        let again = run.offer(shape, &[2]);
        run.store(shape, 1, &[2]).answer(again, Reply::appended(1));
        run.resolve(2, Said::Delivered(Some(1)));
        let doubt = run.offer(Shape { first: 2, ..shape }, &[3, 4]);
        run.answer(doubt, Reply::of(-1));
        for _ in 0..passes {
            let asked = run.offer(Shape { first: 2, ..shape }, &[3, 4]);
            run.answer(asked, Reply::of(45));
        }
        run.fact(Fact::Notice { lane: LANE, notice: Noticed::DataLoss });
        run.tell(&[3, 4], |_| Said::Unknown).resolve(3, Said::Unknown).resolve(4, Said::Unknown);
        run.history
    };
    clean(&run(2));
    convicts(&run(1), Class::FalseAlarm, 3);
}
