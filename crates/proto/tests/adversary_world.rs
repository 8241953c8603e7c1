//! Attacks where several parts of the producer meet: what is asked for while a broker wants silence,
//! what closing waits for, and brokers that say legal but odd things.

#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use core::time::Duration;

use candor_core::rules::Honest;
use candor_core::{Instant, Proof, Verdict};
use candor_proto::{Config, Input, Misuse, Record, WhyRefused};
use support::{Cluster, START, Script, World, config, ms, scenarios};

/// A world whose only connection is to its only broker.
fn alone() -> World {
    let mut world =
        World::warm(&Config::new(["b1:9092"]).linger(Duration::ZERO), Cluster::new(1, 1));
    // Two connections: bootstrap and broker. The first one made is the bootstrap's.
    let seed = world.conns("b1")[0];
    world.run(ms(5_000));
    world.lose(seed, candor_proto::Loss::Ended);
    world.settle();
    assert_eq!(world.conns("b1").len(), 1);
    world
}

/// L7, KIP-219: the end of a throttle is waited for by whoever asks for metadata meanwhile.
#[test]
fn a_new_topic_is_asked_for_when_the_throttle_ends() {
    let mut world = alone();
    world.cluster.create("late", 9, 1);
    world.cluster.throttle_ms = 3_000;
    let ticket = world.say("a");
    world.settle();
    world.assert_offset(ticket, 1);
    world.cluster.throttle_ms = 0;
    let late = world.send(Record::to("late").value("b"));
    world.run(ms(4_000));
    world.assert_offset(late, 0);
}

/// D5: closing is over when everything was told, whoever was told last.
#[test]
fn closing_does_not_wait_when_the_last_record_never_had_a_partition() {
    let mut world = alone();
    let late = world.send(Record::to("late").deadline(Duration::from_secs(2)).value("b"));
    world.settle();
    world.producer.close(world.now, Instant::NEVER);
    world.run(ms(2_000));
    assert_eq!(world.verdict(late), Some(Verdict::NotDelivered(Proof::NeverOffered)));
    assert_eq!(world.closed, Some(world.now));
}

/// The same for one that is cancelled.
#[test]
fn closing_ends_with_a_cancelled_record_that_never_had_a_partition() {
    let mut world = alone();
    let late = world.send(Record::to("late").value("b"));
    world.settle();
    world.producer.close(world.now, world.after(60_000));
    world.settle();
    world.producer.cancel(world.now, late);
    world.settle();
    assert_eq!(world.verdict(late), Some(Verdict::NotDelivered(Proof::TakenBack)));
    assert_eq!(world.closed, Some(world.now));
}

/// L3: a broker that gives the same producer id again is not asked without end.
#[test]
fn a_broker_that_repeats_its_producer_id_is_not_hammered() {
    let mut world: World = World::warm(&config(), Cluster::new(1, 1));
    world.cluster.same_id = true;
    world.cluster.script = [Script::Refuse(47)].into();
    let ticket = world.say("a");
    let before = world.cluster.id_requests;
    world.run(ms(10_000));
    let asked = world.cluster.id_requests - before;
    assert!((2..40).contains(&asked), "asked {asked} times in 10 s");
    assert_eq!(world.verdict(ticket), None);
    world.cluster.same_id = false;
    world.run(ms(2_000));
    assert!(matches!(world.verdict(ticket), Some(Verdict::Delivered { .. })));
}

/// A broker that takes topics by id only, and never tells one.
#[test]
fn topics_without_id_at_a_broker_that_wants_ids_make_no_busy_loop() {
    let mut cluster = Cluster::new(1, 1);
    cluster.versions.insert(0, (13, 13));
    cluster.versions.insert(3, (0, 9));
    let mut world = World::new(&config(), cluster);
    let ticket = world.send(Record::to("t").deadline(Duration::from_secs(5)).value("a"));
    world.run(ms(5_000));
    assert!(matches!(world.verdict(ticket), Some(Verdict::NotDelivered(_))));
    assert!(world.now == START + ms(5_000));
}

/// `Input::Sent`: whoever never reports it loses memory and precision, and goes on all the same.
#[test]
fn a_driver_that_never_reports_what_was_sent_goes_on() {
    let mut world: World = World::warm(&config().write_window(10_000), Cluster::new(1, 1));
    world.forgets_sent = true;
    for n in 0..40 {
        let ticket = world.say(&"x".repeat(2_000));
        world.run(ms(1_000));
        world.assert_offset(ticket, n + 1);
    }
    let conns = world.conns("b1");
    conns.into_iter().for_each(|conn| world.lose(conn, candor_proto::Loss::Broken));
    let ticket = world.say("last");
    world.run(ms(5_000));
    world.assert_offset(ticket, 41);
    assert_eq!(world.producer.stats().waiting, 0);
}

/// What is reported sent after it was answered is no mistake.
#[test]
fn sent_may_be_reported_after_the_answer() {
    let mut world: World = World::warm(&config().write_window(10_000), Cluster::new(1, 1));
    world.forgets_sent = true;
    let before: Vec<_> = world.links.iter().map(|(conn, link)| (*conn, link.taken)).collect();
    for n in 0..3 {
        let ticket = world.say(&"x".repeat(2_000));
        world.settle();
        world.assert_offset(ticket, n + 1);
    }
    for (conn, before) in before {
        let n = (world.links[&conn].taken - before) as usize;
        let input = |n| Input::Sent { conn, n };
        assert_eq!(world.producer.handle(world.now, input(n)), Ok(()));
        assert_eq!(
            world.producer.handle(world.now, input(1)),
            Err(Misuse::SentTooMuch { conn, n: 1 })
        );
    }
}

/// Answers at the edges of their numbers stop nobody else, and break nothing.
#[test]
fn answers_at_the_edges_of_their_numbers_break_nothing() {
    for (code, base, start) in [
        (0, i64::MAX, 0),
        (0, -1, -1),
        (0, i64::MIN, i64::MAX),
        (0, i64::MAX - 1, i64::MAX),
        (7, i64::MAX, i64::MAX),
        (45, i64::MIN, i64::MIN),
    ] {
        let mut world: World = World::warm(&config(), Cluster::new(1, 2));
        world.cluster.script =
            [Script::Answer(code, base, start), Script::Answer(0, -1, i64::MAX)].into();
        let deadline = Duration::from_secs(20);
        let odd: Vec<_> = (0..3)
            .map(|_| world.send(Record::to("t").partition(0).deadline(deadline).value("a")))
            .collect();
        let other = world.send(Record::to("t").partition(1).value("b"));
        world.run(ms(20_000));
        assert!(odd.iter().all(|ticket| world.verdict(*ticket).is_some()), "{code} {base} {start}");
        assert!(matches!(world.verdict(other), Some(Verdict::Delivered { .. })));
        world.producer.close(world.now, world.after(1_000));
        world.run(ms(1_000));
        assert!(world.closed.is_some());
    }
}

/// S9, S10: a partition that used up the epochs of a producer id takes another; the others stay.
#[test]
fn a_partition_that_used_up_its_epochs_leaves_the_others_alone() {
    let millisecond = Duration::from_millis(1);
    let config = config().retry_backoff(millisecond).retry_backoff_max(millisecond);
    let mut world: World = World::warm(&config, Cluster::new(1, 2));
    let other = world.send(Record::to("t").partition(1).value("a"));
    world.settle();
    world.assert_offset(other, 0);
    for _ in 0..32_767 {
        world.cluster.script = [Script::Refuse(29)].into();
        let refused = world.say("x");
        world.run(ms(2));
        assert!(matches!(world.verdict(refused), Some(Verdict::NotDelivered(_))));
    }
    assert_eq!(world.cluster.offered("t", 0).last(), Some(&(32_766, 0, 1)));
    assert_eq!(world.cluster.id_requests, 1);
    let tickets =
        [0, 1].map(|partition| world.send(Record::to("t").partition(partition).value("b")));
    world.run(ms(10));
    world.assert_offset(tickets[0], 1);
    world.assert_offset(tickets[1], 1);
    assert_eq!(world.cluster.offered("t", 0).last(), Some(&(0, 0, 1)));
    assert_eq!(world.cluster.offered("t", 1).last(), Some(&(0, 1, 1)));
    assert_eq!(world.cluster.id_requests, 2);
}

/// D1, D2: a record that is due before anything can happen is never offered, whoever calls first.
#[test]
fn a_record_that_is_due_at_once_is_never_offered() {
    let mut world: World = World::warm(&config(), Cluster::new(1, 1));
    let conn = world.conns("b1").into_iter().next_back().unwrap();
    for deadline in [Duration::ZERO, Duration::from_nanos(999)] {
        let due = world.send(Record::to("t").partition(0).deadline(deadline).value("x"));
        let mut bufs = Vec::new();
        assert_eq!(world.producer.transmit(world.now, conn, 1 << 20, &mut bufs), 0);
        world.settle();
        assert_eq!(world.verdict(due), Some(Verdict::NotDelivered(Proof::NeverOffered)));
    }
    let hour = Duration::from_secs(3_600);
    let late = Record::to("t").partition(0).deadline(hour).value("x");
    let born = Instant::from_micros(world.now.as_micros() - 3_600_000_000);
    let late = world.producer.append(world.now, born, late).unwrap();
    let early = Record::to("t").partition(0).deadline(Duration::MAX).value("y");
    let early = world.producer.append(world.now, Instant::NEVER, early).unwrap();
    world.settle();
    assert_eq!(world.verdict(late), Some(Verdict::NotDelivered(Proof::NeverOffered)));
    world.assert_offset(early, 1);
    assert_eq!(world.cluster.log("t", 0), ["warm", "y"]);
}

/// A driver that comes an hour late tells what it heard before it lets anything expire.
#[test]
fn an_hour_late_answers_still_come_before_deadlines() {
    let mut world: World = World::warm(&config(), Cluster::new(1, 2));
    let first = world.say("a");
    let waits = world.send(Record::to("late").value("c"));
    world.poll_all();
    world.write_all();
    let second = world.send(Record::to("t").partition(1).value("b"));
    world.now = world.after(3_600_000);
    world.answer_all();
    world.settle();
    world.assert_offset(first, 1);
    for ticket in [waits, second] {
        assert_eq!(world.verdict(ticket), Some(Verdict::NotDelivered(Proof::NeverOffered)));
    }
    let next = world.say("d");
    world.run(ms(2_000));
    world.assert_offset(next, 2);
}

/// L3: a record that does not fit changes nothing: who tries again and again makes no busy loop of it.
#[test]
fn a_record_that_does_not_fit_wakes_nobody() {
    let mut world: World = World::new(&config().memory(6_000), Cluster::new(1, 1));
    world.down.insert("seed".to_owned());
    let refused = loop {
        let record = Record::to("late").value("x");
        match world.producer.append(world.now, world.now, record) {
            Ok(_) => world.settle(),
            Err(refused) => break refused,
        }
    };
    assert_eq!(refused.why, WhyRefused::Full);
    world.settle();
    for topic in ["late", "another"] {
        let before = world.producer.clone();
        let record = Record::to(topic).value("x");
        let refused = world.producer.append(world.now, world.now, record).unwrap_err();
        assert_eq!(refused.why, WhyRefused::Full);
        assert!(world.producer == before, "something of {topic} was kept");
        assert!(world.producer.deadline().unwrap().at > world.now);
    }
}

/// A full memory while a leader is away does not cut what waits into batches of one record.
#[test]
fn a_full_memory_leaves_batches_as_large_as_they_are() {
    let mut world: World = World::warm(&config().memory(200_000), Cluster::new(1, 1));
    world.down.extend(["b1".to_owned(), "seed".to_owned()]);
    ["b1", "seed"].into_iter().for_each(|host| world.cut(host));
    let value = "x".repeat(100);
    let mut n = 0;
    for _ in 0..3_050 {
        loop {
            n += 1;
            let deadline = Duration::from_millis(20_000 + n * 37 % 10_000);
            let record = Record::to("t").partition(0).deadline(deadline).value(&value);
            if world.producer.append(world.now, world.now, record).is_err() {
                break;
            }
        }
        world.run(ms(10));
    }
    world.cluster.seen.clear();
    world.down.clear();
    let waiting = world.producer.stats().waiting;
    world.run(ms(5_000));
    let offered = world.cluster.offered("t", 0);
    assert!(waiting > 500 && offered.len() < 20, "{waiting} in {} batches", offered.len());
}

/// S21: a connection that was on its way to an address which is no longer the broker's would speak for
/// it with somebody else's voice.
#[test]
fn nobody_greets_at_an_address_that_is_no_longer_right() {
    let config = config().metadata_max_age(Duration::from_secs(1));
    let mut world: World = World::new(&config, Cluster::new(1, 1));
    world.mute.insert("b1".to_owned());
    let ticket = world.say("a");
    world.run(ms(500));
    let before = world.conns("b1");
    assert_eq!(before.len(), 1);
    world.cluster.port = 9093;
    world.run(ms(1_500));
    world.mute.clear();
    world.run(ms(100));
    world.assert_offset(ticket, 0);
    let after = world.conns("b1");
    assert!(after.len() == 1 && after != before, "{after:?}");
}

/// L3: a broker that names a newer leader with each refusal, itself, is followed once without a wait.
#[test]
fn a_broker_that_makes_up_leader_epochs_makes_no_busy_loop() {
    scenarios::hints_make_no_busy_loop::<Honest>();
}
