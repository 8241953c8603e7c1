//! What a broker appends that knows nothing of us any more is excused; what stands beside it is not.

use candor_sim::judge::{Class, Excuse, ExcuseKind, Fact, History, Reply, Said, Settings, judge};

use super::stories::*;

/// Everything before an offset was deleted, which is all that there was.
fn deleted(to: i64) -> Excuse {
    Excuse {
        kind: ExcuseKind::Purge,
        topic: 0,
        partition: 0,
        from: to,
        to,
        since: 0,
        until: u64::MAX,
    }
}

/// Somebody no longer waits for a record, is told that it is unknown, and never more.
fn give_up(run: &mut Run, records: &[u64]) {
    for &record in records {
        run.fact(Fact::Cancelled { record });
        run.now -= 1;
        run.tell(&[record], |_| Said::Unknown).resolve(record, Said::Unknown);
    }
}

/// Record 1 at offset 0, if `kept` then record 2 behind it; record 3 is given up in doubt, record 4
/// stands in the log without it.
fn skipped(kept: bool) -> Run {
    let mut run = Run::new();
    run.send(&[1]).deliver(AT, 0, &[1]);
    let mut next = 1;
    if kept {
        run.send(&[2]).deliver(seq(next), 1, &[2]);
        next += 1;
    }
    run.send(&[3, 4]);
    let lost = run.offer(seq(next), &[3]);
    run.end(lost, false).fact(Fact::Cancelled { record: 3 });
    run.now -= 1;
    run.tell(&[3], |_| Said::Unknown);
    run.deliver(Shape { connection: 2, ..seq(next + 1) }, 2, &[4]).resolve(3, Said::Unknown);
    run
}

#[test]
fn a_gap_is_excused_where_all_that_the_broker_knew_was_deleted() {
    let run = |kept: bool, excuses: &[Excuse]| {
        let mut run = skipped(kept);
        run.history.excuses = excuses.to_vec();
        run.history
    };
    clean(&run(false, &[deleted(1)]));
    clean(&run(true, &[deleted(2)]));
    assert_eq!(judge(&run(false, &[deleted(1)])).excused[0].1.kind, ExcuseKind::Forgotten);
    convicts(&run(false, &[]), Class::SeqGap, 4);
    // The broker still knew record 2.
    convicts(&run(true, &[deleted(1)]), Class::SeqGap, 4);
    convicts(&run(true, &[Excuse { partition: 1, ..deleted(2) }]), Class::SeqGap, 4);
    // Record 4 was there already.
    convicts(&run(false, &[Excuse { to: 3, ..deleted(1) }]), Class::SeqGap, 4);
}

#[test]
fn a_sequence_may_come_back_where_all_that_the_broker_knew_was_deleted() {
    let run = |kept: bool| {
        let mut run = Run::new();
        run.send(&[1]).deliver(AT, 0, &[1]);
        if kept {
            run.send(&[2]).deliver(seq(1), 1, &[2]);
        }
        run.store(AT, 2, &[1]);
        run.history.excuses = vec![deleted(1)];
        run.history
    };
    clean(&run(false));
    convicts(&run(true), Class::SeqReuse, 1);
}

/// A first batch is contested, its replacement is written, and then the batch itself behind that.
fn contested(acknowledged: bool, last_word: Said, excuses: &[Excuse]) -> History {
    let mut run = Run::new();
    run.send(&[1, 2, 3]);
    let batch = run.offer(AT, &[1]);
    run.end(batch, false).fact(Fact::Cancelled { record: 1 });
    run.now -= 1;
    run.tell(&[1], |_| Said::Unknown);
    let rival = run.replace(Shape { connection: 2, ..AT }, &[2, 3]);
    run.store(AT, 0, &[2, 3]);
    if acknowledged {
        run.answer(rival, Reply::appended(0));
    } else {
        run.end(rival, false);
    }
    let again = run.offer(Shape { connection: 3, ..AT }, &[1]);
    run.store(AT, 2, &[1]).end(again, false).resolve(1, last_word);
    give_up(&mut run, &[2, 3]);
    run.history.excuses = excuses.to_vec();
    run.history
}

/// A3: before a first acknowledgement a log start tells nothing.
#[test]
fn a_first_batch_may_stand_behind_the_replacement_that_was_deleted() {
    let of = |excuse: Excuse| contested(false, Said::Unknown, &[excuse]);
    clean(&of(deleted(2)));
    let excused = judge(&of(deleted(2))).excused;
    let kind = |class| excused.iter().find(|(it, _)| it.anomaly.class == class).unwrap().1.kind;
    assert_eq!(kind(Class::Reorder), ExcuseKind::Again);
    assert_eq!(kind(Class::SeqReuse), ExcuseKind::Forgotten);
    for history in [
        contested(false, Said::Unknown, &[]),
        // A record of the replacement was left, and with it what the broker knew.
        of(deleted(1)),
        // The batch was there before anything was deleted.
        of(Excuse { to: 3, ..deleted(2) }),
        of(Excuse { partition: 1, ..deleted(2) }),
        // The producer was told that the replacement is there.
        contested(true, Said::Unknown, &[deleted(2)]),
    ] {
        convicts(&history, Class::Reorder, 1);
    }
    convicts(&contested(false, Said::NotDelivered, &[deleted(2)]), Class::Ghost, 1);
}

/// Two batches are written, and their answers lost; both are deleted, and written again.
fn rewritten(excuses: &[Excuse], more: impl Fn(&mut Run)) -> History {
    let mut run = Run::new();
    run.send(&[1, 2, 3]);
    run.deliver(AT, 0, &[1]);
    for (first, record) in [(1, 2), (2, 3)] {
        let lost = run.offer(seq(first), &[record]);
        run.store(seq(first), i64::from(first), &[record]).end(lost, false);
        if first == 1 {
            more(&mut run);
        }
    }
    for (first, record) in [(1, 2), (2, 3)] {
        run.offer(Shape { connection: 2, ..seq(first) }, &[record]);
    }
    run.store(seq(1), 3, &[2]).store(seq(2), 4, &[3]);
    run.history.excuses = excuses.to_vec();
    run.history
}

fn duplicates(history: &History) -> Vec<Option<u64>> {
    let found = judge(history).anomalies.into_iter().map(|finding| finding.anomaly);
    found.filter(|it| it.class == Class::Duplicate).map(|it| it.record).collect()
}

#[test]
fn what_was_in_doubt_may_be_written_again_where_all_that_the_broker_knew_was_deleted() {
    assert!(duplicates(&rewritten(&[deleted(3)], |_| ())).is_empty());
    assert_eq!(duplicates(&rewritten(&[], |_| ())), [Some(2), Some(3)]);
    // The broker still knew record 3, and with it what came before.
    assert_eq!(duplicates(&rewritten(&[deleted(2)], |_| ())), [Some(2), Some(3)]);
    // Nobody sends again what was acknowledged.
    let told = rewritten(&[deleted(3)], |run| _ = run.answer(1, Reply::appended(1)));
    assert_eq!(duplicates(&told), [Some(2)]);
}

#[test]
fn every_copy_needs_an_excuse_of_its_own() {
    let thrice = |excuses: &[Excuse]| {
        let mut run = Run::new();
        run.send(&[1]);
        run.offer(AT, &[1]);
        run.store(AT, 0, &[1]).store(AT, 1, &[1]).store(AT, 2, &[1]);
        run.history.excuses = excuses.to_vec();
        run.history
    };
    assert_eq!(duplicates(&thrice(&[deleted(1), deleted(2)])), []);
    assert_eq!(duplicates(&thrice(&[deleted(1)])), [Some(1)]);
    assert_eq!(duplicates(&thrice(&[deleted(2)])), [Some(1)]);
}

/// A timestamp beyond every broker's memory, and one that is not, if a run begins at [`LATER`].
const OLD: i64 = 0;
const FRESH: i64 = 1;
/// In microseconds.
const TTL: u64 = 500;
const LATER: u64 = 600;

fn stamped(history: &mut History, stamps: &[i64]) {
    for (id, stamp) in (0..).zip(stamps) {
        stamp_one(history, id, *stamp);
    }
}

/// A batch as it was offered, and as it stands in the log.
fn stamp_one(history: &mut History, id: u64, stamp: i64) {
    let attempt = attempt_of(history, id);
    attempt.max_timestamp = stamp;
    let (epoch, first) = (attempt.epoch, attempt.first);
    let batches = history.logs[0].batches.iter_mut();
    let mine = batches.filter(|batch| (batch.epoch, batch.first) == (epoch, first));
    mine.for_each(|batch| batch.max_timestamp = Some(stamp));
}

fn aging(now: u64) -> Run {
    let mut run = Run::new();
    run.now = now;
    run.history.settings = Settings { state_ttl: Some(TTL), ..Settings::default() };
    run
}

/// The answer for record 1 is lost, it is offered again and delivered; record 2 is delivered; then
/// the first copy of record 1 comes.
fn repeated(now: u64, stamp: i64) -> Run {
    let mut run = aging(now);
    run.send(&[1, 2, 3]);
    let lost = run.offer(AT, &[1]);
    run.end(lost, false);
    run.deliver(Shape { connection: 2, ..AT }, 0, &[1]);
    run.deliver(Shape { connection: 2, ..seq(1) }, 1, &[2]);
    run.store(AT, 2, &[1]);
    stamped(&mut run.history, &[FRESH, FRESH, stamp]);
    run
}

fn expired(run: &mut Run) -> History {
    run.now = DUE - 1;
    run.tell(&[3], |_| Said::NotDelivered);
    run.history.clone()
}

#[test]
fn a_copy_that_was_on_its_way_when_the_broker_forgot_us_is_excused() {
    let old = expired(&mut repeated(LATER, OLD));
    clean(&old);
    let excused = judge(&old).excused;
    assert!(excused.iter().all(|(_, excuse)| excuse.kind == ExcuseKind::LateCopy));
    // The clock at the end of the history makes everything old.
    let fresh = repeated(LATER, FRESH).tapped(|run| {
        run.deliver(Shape { connection: 2, ..seq(2) }, 3, &[3]);
        stamp_one(&mut run.history, 3, FRESH);
    });
    for class in [Class::Duplicate, Class::SeqReuse] {
        convicts(&fresh, class, 1);
    }
    // Where the topic has its own timestamps, those of records age nothing.
    let mut own = old;
    own.settings.timestamps_count = false;
    append_times(&mut own);
    convicts(&own, Class::Duplicate, 1);
}

/// The log has the times at which its batches were appended.
fn append_times(history: &mut History) {
    for batch in &mut history.logs[0].batches {
        batch.max_timestamp = Some(DUE as i64);
    }
}

/// One batch, offered until `last`, appended under a timestamp and again; the logs are read later.
fn again(stamp: i64, last: u64, next: Shape, read_at: u64) -> History {
    let mut run = aging(LATER);
    run.send(&[1]);
    for _ in 0..2 {
        let lost = run.offer(AT, &[1]);
        run.end(lost, false);
        run.now = last;
    }
    run.store(AT, 0, &[1]).store(next, 1, &[1]);
    stamped(&mut run.history, &[stamp]);
    give_up(&mut run, &[1]);
    run.history.read_at = read_at;
    run.history
}

/// Producer state goes by the timestamp in the log, also that of the batch itself.
#[test]
fn a_late_copy_of_the_newest_batch_itself_is_excused_once_the_broker_forgot_it() {
    let (over, early) = (FRESH as u64 * 1_000 + TTL, LATER + 100);
    clean(&again(FRESH, early, AT, over));
    assert!(judge(&again(FRESH, early, AT, over)).excused.len() > 1);
    for class in [Class::Duplicate, Class::SeqReuse] {
        // It was remembered when the logs were read, or sent once more after it was not.
        convicts(&again(FRESH, early, AT, over - 1), class, 1);
        convicts(&again(FRESH, over, AT, over + 100), class, 1);
        // Nobody knows.
        let mut unknown = again(FRESH, early, AT, over);
        unknown.logs[0].batches[0].max_timestamp = None;
        convicts(&unknown, class, 1);
    }
    // What any broker takes shows nothing: this one stands twice by the producer's fault.
    convicts(&again(FRESH, early, seq(1), over), Class::Duplicate, 1);
    convicts(&again(FRESH, early, Shape { epoch: 1, ..AT }, over), Class::Duplicate, 1);
}

#[test]
fn a_copy_that_came_before_the_broker_forgot_us_is_not_excused() {
    let early = |behind: bool| {
        let mut run = repeated(10, OLD);
        if behind {
            run.deliver(Shape { connection: 2, ..seq(2) }, 3, &[3]);
            run.history.clone()
        } else {
            expired(&mut run)
        }
    };
    clean(&early(false));
    convicts(&early(true), Class::Duplicate, 1);
}

#[test]
fn what_was_sent_again_after_the_broker_forgot_us_is_not_excused() {
    let again = repeated(LATER, OLD).tapped(|run| {
        run.offer(Shape { connection: 3, ..AT }, &[1]);
        stamp_one(&mut run.history, 3, FRESH);
    });
    convicts(&again, Class::Duplicate, 1);
}

#[test]
fn late_copies_may_follow_each_other() {
    let run = |first_is_there: bool| {
        let mut run = aging(LATER);
        run.send(&[1, 2, 3]);
        run.deliver(AT, 0, &[1]).deliver(seq(1), 1, &[2]).deliver(seq(2), 2, &[3]);
        stamped(&mut run.history, &[FRESH, FRESH, if first_is_there { OLD } else { FRESH }]);
        run.store(AT, 3, &[1]).store(seq(1), 4, &[2]);
        run.now = LATER + TTL;
        run.fact(Fact::Stall { from: 0, to: 0 });
        run.history.settings.state_ttl = Some(LATER);
        run.history
    };
    clean(&run(true));
    convicts(&run(false), Class::Duplicate, 2);
}

#[test]
fn what_was_given_up_may_stand_behind_old_timestamps_unless_it_was_told_not_delivered() {
    let run = |stamp: i64, said: Said| {
        let mut run = aging(LATER);
        run.send(&[1, 2]);
        let lost = run.offer(AT, &[1]);
        run.end(lost, false).fact(Fact::Cancelled { record: 1 });
        run.now -= 1;
        run.tell(&[1], |_| said);
        if said == Said::Unknown {
            run.resolve(1, Said::Unknown);
        }
        run.deliver(Shape { connection: 2, epoch: 1, ..AT }, 0, &[2]).store(AT, 1, &[1]);
        stamped(&mut run.history, &[FRESH, stamp]);
        run.history
    };
    clean(&run(OLD, Said::Unknown));
    convicts(&run(FRESH, Said::Unknown), Class::Reorder, 1);
    convicts(&run(OLD, Said::NotDelivered), Class::Ghost, 1);
}

/// C, S20: what other content took the slot of is kept out by the memory of the broker alone.
#[test]
fn what_lost_its_slot_may_come_once_the_broker_forgot_us() {
    #[derive(Clone, Copy, PartialEq)]
    enum Told {
        Before,
        Behind,
    }
    let run = |told: Told, elsewhere: bool, newest: i64, deleted_at: Option<u64>| {
        let mut run = aging(LATER);
        let purge = deleted_at.map(|since| Excuse { since, ..deleted(3) });
        run.history.excuses.extend(purge);
        run.send(&[1, 2, 3]);
        let lost = run.offer(AT, &[1]);
        run.end(lost, false).fact(Fact::Cancelled { record: 1 });
        run.now -= 1;
        run.tell(&[1], |_| Said::Unknown);
        let place = if elsewhere { Shape { epoch: 1, ..AT } } else { AT };
        let rival = run.replace(Shape { connection: 2, ..place }, &[2, 3]);
        if told == Told::Before {
            run.resolve(1, Said::NotDelivered);
        }
        run.store(place, 0, &[2, 3]).answer(rival, Reply::appended(0));
        run.tell(&[2], |_| Said::Delivered(Some(0))).tell(&[3], |_| Said::Delivered(Some(1)));
        if told == Told::Behind {
            run.resolve(1, Said::NotDelivered);
        }
        run.send(&[4]).deliver(Shape { connection: 2, epoch: 2, ..AT }, 2, &[4]);
        run.store(AT, 3, &[1]);
        stamped(&mut run.history, &[FRESH, FRESH, newest]);
        run.history
    };
    clean(&run(Told::Behind, false, OLD, None));
    // The broker remembered it; nothing had taken its slot yet; nothing ever took it.
    convicts(&run(Told::Behind, false, FRESH, None), Class::Ghost, 1);
    convicts(&run(Told::Before, false, OLD, None), Class::Ghost, 1);
    convicts(&run(Told::Behind, true, OLD, None), Class::Ghost, 1);
    // Likewise where all that the broker knew us by was deleted, once the slot had been taken.
    clean(&run(Told::Behind, false, FRESH, Some(u64::MAX)));
    convicts(&run(Told::Before, false, FRESH, Some(u64::MAX)), Class::Ghost, 1);
    convicts(&run(Told::Behind, true, FRESH, Some(u64::MAX)), Class::Ghost, 1);
    convicts(&run(Told::Behind, false, FRESH, Some(0)), Class::Ghost, 1);
}

/// C1: a 0 in the place of what is in doubt is a proof only where the log reaches back.
#[test]
fn what_other_content_merely_took_the_place_of_is_not_told_to_be_missing() {
    let run = |log_start: i64, log_starts: bool| {
        let mut run = Run::new();
        run.history.settings.log_starts = log_starts;
        run.send(&[1, 2]);
        let batch = run.offer(AT, &[1, 2]);
        run.end(batch, false);
        for record in [1, 2] {
            run.fact(Fact::Cancelled { record });
            run.now -= 1;
            run.tell(&[record], |_| Said::Unknown);
        }
        run.send(&[3]);
        let rival = run.replace(Shape { connection: 2, ..AT }, &[3]);
        run.store(AT, 5, &[3]).answer(rival, Reply { log_start, ..Reply::appended(5) });
        run.tell(&[3], |_| Said::Delivered(Some(5)));
        run.resolve(1, Said::NotDelivered).resolve(2, Said::NotDelivered);
        run.history
    };
    clean(&run(0, true));
    convicts(&run(5, true), Class::Hasty, 1);
    // Whoever is not shown where the log begins cannot tell.
    clean(&run(5, false));
}

/// V2, V3: who lies behind a refused batch is awaited, unless the lane gave up what lies before it.
#[test]
fn an_epoch_that_gives_up_what_is_in_doubt_awaits_nobody() {
    let run = |doubt: bool, never_first: bool| {
        let mut run = Run::new();
        run.send(&[1, 2, 3, 4]).deliver(AT, 0, &[1]);
        let before = run.offer(seq(1), &[2]);
        let refused = run.offer(seq(2), &[3]);
        let behind = run.offer(seq(3), &[4]);
        if doubt {
            run.end(before, false).fact(Fact::Cancelled { record: 2 });
            run.now -= 1;
            run.tell(&[2], |_| Said::Unknown);
        } else {
            run.store(seq(1), 1, &[2]).answer(before, Reply::appended(1));
            run.tell(&[2], |_| Said::Delivered(Some(1)));
        }
        run.answer(refused, Reply::of(87)).tell(&[3], |_| Said::NotDelivered);
        if never_first {
            run.resolve(2, Said::Unknown);
        }
        run.deliver(Shape { epoch: 1, ..AT }, 2, &[4]).answer(behind, Reply::of(45));
        if doubt && !never_first {
            run.resolve(2, Said::Unknown);
        }
        run.history
    };
    clean(&run(true, false));
    clean(&run(true, true));
    convicts(&run(false, false), Class::EarlyBump, 4);
}

trait Tapped {
    fn tapped(self, more: impl FnOnce(&mut Self)) -> History;
}

impl Tapped for Run {
    fn tapped(mut self, more: impl FnOnce(&mut Self)) -> History {
        more(&mut self);
        self.history
    }
}
