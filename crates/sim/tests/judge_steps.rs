//! The judge step by step: what is awaited, and which cuts of a contested slot are legal (C2), as
//! the broker has it.
#![allow(clippy::panic, reason = "a test's helpers may fail the test")]

use candor_sim::broker::{ACKS_ALL, Batch, Call, NodeId, Outcome, Partition, Profile};
use candor_sim::judge::{Anomaly, Attempt, Class, LogIs, Observer, Reply, Said, Settings};

const DUE: u64 = 1_000;

fn watch(records: u64) -> Observer {
    let mut watch = Observer::new(Settings { log: LogIs::Live, ..Settings::default() });
    watch.routed(Some(1), 0);
    for record in 0..records {
        watch.intended(record, DUE);
        assert!(watch.accepted(record).is_empty());
    }
    watch
}

/// A batch of these records; attempts are called by their order.
fn attempt(id: u64, connection: u64, at: (i16, i32), records: &[u64]) -> Attempt {
    Attempt {
        id,
        connection,
        leader_epoch: 0,
        producer_id: 4_000,
        epoch: at.0,
        first: at.1,
        count: records.len() as u32,
        content: records.iter().fold(1, |hash, record| hash * 31 + record),
        records: records.to_vec(),
        max_timestamp: -1,
        replacement: false,
    }
}

fn delivered(watch: &mut Observer, attempt: &Attempt, base: i64) {
    assert!(watch.offered(0, attempt).is_empty());
    watch.answered(0, attempt.id, Some(Reply::appended(base)));
    for (record, offset) in attempt.records.iter().zip(base..) {
        assert!(watch.committed(*record, offset).is_empty());
        assert!(watch.told(0, *record, Said::Delivered(Some(offset))).is_empty());
    }
}

/// Record 1 is refused for good, record 2 behind it goes on under the next epoch: the attempt of the
/// old one, which nobody answers, is nothing that its resolution has to wait for (V3).
#[test]
fn an_attempt_that_is_out_of_the_way_is_not_awaited() {
    let mut watch = watch(3);
    delivered(&mut watch, &attempt(0, 1, (0, 0), &[0]), 0);
    assert!(watch.offered(0, &attempt(1, 1, (0, 1), &[1])).is_empty());
    assert!(watch.offered(0, &attempt(2, 1, (0, 2), &[2])).is_empty());
    watch.answered(0, 1, Some(Reply::of(87)));
    assert!(watch.told(0, 1, Said::NotDelivered).is_empty());
    watch.routed(Some(2), 1);
    let again = Attempt { leader_epoch: 1, ..attempt(3, 2, (1, 0), &[2]) };
    assert!(watch.offered(0, &again).is_empty());
    watch.ended(3, false);
    assert!(watch.told(DUE, 2, Said::Unknown).is_empty());
    assert!(watch.resolved(DUE, 2, Said::Unknown).is_empty());
    assert!(watch.polled(DUE).is_empty());
}

/// The same, but the attempt that is still open is the one that counts.
#[test]
fn an_attempt_that_may_still_be_written_is_awaited() {
    let mut watch = watch(1);
    assert!(watch.offered(0, &attempt(0, 1, (0, 0), &[0])).is_empty());
    assert!(watch.told(DUE, 0, Said::Unknown).is_empty());
    let found = watch.resolved(DUE, 0, Said::Unknown);
    assert_eq!(found.iter().map(|it| it.class).collect::<Vec<_>>(), [Class::Hasty]);
}

/// Record 2 was answered 7 and proved by the 0 of record 3 (S22), behind a replacement that was refused.
/// The log's start moves past it later: nothing that is resent then is stale.
#[test]
fn what_was_proved_makes_no_resend_stale() {
    let mut watch = watch(6);
    let alone = |id, connection, record: u64| {
        attempt(id, connection, (0, i32::try_from(record).unwrap_or(0)), &[record])
    };
    delivered(&mut watch, &alone(0, 1, 0), 0);
    assert!(watch.offered(0, &alone(1, 1, 1)).is_empty());
    watch.ended(1, false);
    watch.cancelled(0, 1);
    assert!(watch.told(0, 1, Said::Unknown).is_empty());
    watch.routed(Some(2), 0);
    let replacement = Attempt { replacement: true, ..attempt(2, 2, (0, 1), &[2, 3]) };
    assert!(watch.offered(0, &replacement).is_empty());
    watch.answered(0, 2, Some(Reply::of(45)));
    assert!(watch.offered(0, &alone(3, 2, 1)).is_empty());
    watch.answered(0, 3, Some(Reply::appended(1)));
    assert!(watch.committed(1, 1).is_empty());
    assert!(watch.resolved(0, 1, Said::Delivered(Some(1))).is_empty());
    assert!(watch.offered(0, &alone(4, 2, 2)).is_empty());
    assert!(watch.offered(0, &alone(5, 2, 3)).is_empty());
    watch.answered(0, 4, Some(Reply::of(7)));
    watch.answered(0, 5, Some(Reply::appended(3)));
    assert!(watch.committed(2, 2).is_empty() && watch.committed(3, 3).is_empty());
    assert!(watch.told(0, 2, Said::Delivered(None)).is_empty());
    assert!(watch.told(0, 3, Said::Delivered(Some(3))).is_empty());
    assert!(watch.offered(0, &alone(6, 2, 4)).is_empty());
    watch.answered(0, 6, Some(Reply { log_start: 4, ..Reply::appended(4) }));
    assert!(watch.committed(4, 4).is_empty());
    assert!(watch.told(0, 4, Said::Delivered(Some(4))).is_empty());
    assert!(watch.offered(0, &alone(7, 2, 5)).is_empty());
    watch.ended(7, false);
    watch.routed(Some(3), 1);
    let again = Attempt { leader_epoch: 1, ..alone(8, 3, 5) };
    assert_eq!(watch.offered(0, &again), []);
}

/// Batches of these sizes in doubt, of which none arrived, behind one record that was delivered;
/// their first record is revoked, and `size` others take the slot.
fn contest(sizes: &[usize], size: usize, bend: impl FnOnce(&mut Observer)) -> Vec<Anomaly> {
    let mut watch = watch(40);
    delivered(&mut watch, &attempt(0, 1, (0, 0), &[0]), 0);
    let mut first = 1;
    for (id, size) in (1..).zip(sizes) {
        let records: Vec<u64> = (first..).take(*size).collect();
        let offer = attempt(id, 1, (0, i32::try_from(first).unwrap_or(0)), &records);
        assert!(watch.offered(0, &offer).is_empty());
        first += *size as u64;
    }
    (1..).zip(sizes).for_each(|(id, _)| watch.ended(id, false));
    watch.cancelled(0, 1);
    assert!(watch.told(0, 1, Said::Unknown).is_empty());
    watch.routed(Some(2), 0);
    bend(&mut watch);
    let records: Vec<u64> = (2..).take(size).collect();
    let replacement = Attempt { replacement: true, ..attempt(9, 2, (0, 1), &records) };
    watch.offered(0, &replacement)
}

/// Whether the broker lets in what a replacement of this size was to keep out, or takes it for what
/// it contests: whatever arrived before it, and in whatever order the rest arrives late.
fn broker_is_fooled(sizes: &[usize], size: usize) -> bool {
    let mut firsts = Vec::new();
    let mut next = 1;
    for size in sizes {
        firsts.push(next);
        next += i32::try_from(*size).unwrap_or(0);
    }
    let send = |partition: &mut Partition<usize>, first: i32, count: usize, content: usize| {
        let call = Call { node: NodeId(1), now: 0, acks: ACKS_ALL, version: 12 };
        let count = i32::try_from(count).unwrap_or(0);
        match partition.produce(call, &Batch::new(4_000, 0, first, count, 0, content)) {
            Outcome::Answer(answer) => answer.code,
            Outcome::Wait(_) => unreachable!("a lone replica commits at once"),
        }
    };
    (0..=sizes.len()).any(|arrived| {
        let mut partition = Partition::new(Profile::V4_4, &[NodeId(1)]);
        send(&mut partition, 0, 1, 99);
        for at in 0..arrived {
            send(&mut partition, firsts[at], sizes[at], at);
        }
        let took = send(&mut partition, 1, size, 50) == 0;
        if took != (arrived == 0) {
            return true;
        }
        let end = partition.log().len();
        // Twice over all of them, in both directions: every order in which one opens the way for
        // another is among them.
        let late = (0..sizes.len()).chain((0..sizes.len()).rev());
        for at in late.clone().chain(late) {
            send(&mut partition, firsts[at], sizes[at], at);
        }
        took && partition.log().len() > end
    })
}

/// Two and three batches in doubt, every cut: a legal one (C2) is exactly one that no late copy
/// passes, and every other is convicted (T41, T59).
#[test]
fn a_cut_is_legal_exactly_if_the_broker_keeps_out_what_it_contests() {
    let mut legal = 0;
    for one in 1..=3 {
        for two in 1..=3 {
            for three in 0..=3 {
                let sizes = [one, two, three];
                let sizes = if three == 0 { &sizes[..2] } else { &sizes[..] };
                for size in 1..=sizes.iter().sum::<usize>() + 2 {
                    let found = contest(sizes, size, |_| {});
                    let fooled = broker_is_fooled(sizes, size);
                    let classes: Vec<Class> = found.iter().map(|it| it.class).collect();
                    let expected: &[Class] = if fooled { &[Class::IllegalCut] } else { &[] };
                    assert_eq!(classes, expected, "{sizes:?} cut to {size}");
                    legal += usize::from(!fooled);
                }
            }
        }
    }
    assert!(legal > 100, "{legal}");
}

/// C1, C2: nothing behind the first one is written, and the replacement is alone in flight.
#[test]
fn a_replacement_is_alone_and_contests_only_what_is_in_doubt() {
    let class = |found: Vec<Anomaly>| found.first().map(|it| it.class);
    assert_eq!(class(contest(&[1, 1, 1], 5, |_| {})), None);
    let written = |watch: &mut Observer| {
        assert!(watch.offered(0, &attempt(7, 2, (0, 2), &[2])).is_empty());
        watch.answered(0, 7, Some(Reply::appended(5)));
    };
    assert_eq!(class(contest(&[1, 1, 1], 5, written)), Some(Class::IllegalCut));
    let open = |watch: &mut Observer| {
        assert!(watch.offered(0, &attempt(7, 2, (0, 1), &[1])).is_empty());
    };
    assert_eq!(class(contest(&[1, 1, 1], 5, open)), Some(Class::GateBroken));
}
