//! What a producer holds after many of everything: nothing may grow with what is over.

#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use core::time::Duration;

use candor_proto::{Loss, Record};
use support::{Cluster, Script, World, config, ms};

/// The length of everything that the producer holds, written out.
fn size(world: &World) -> usize {
    format!("{:?}", world.producer).len()
}

/// Does it a few times, and then many times: the size must not follow.
fn grows(mut again: impl FnMut(&mut World, u64)) -> (usize, usize) {
    let mut world: World = World::warm(&config(), Cluster::new(2, 2));
    let mut sizes = [0; 2];
    let mut n = 0;
    for (size_then, times) in sizes.iter_mut().zip([30, 270]) {
        for _ in 0..times {
            again(&mut world, n);
            n += 1;
        }
        world.run(ms(5_000));
        assert_eq!(world.producer.stats().waiting, 0);
        world.verdicts.clear();
        world.resolutions.clear();
        *size_then = size(&world);
    }
    (sizes[0], sizes[1])
}

#[track_caller]
fn assert_still(again: impl FnMut(&mut World, u64)) {
    let (few, many) = grows(again);
    assert!(many < few + few / 10, "{few} bytes after 30, {many} after 300");
}

#[test]
fn records_leave_nothing_behind() {
    assert_still(|world, n| {
        for _ in 0..50 {
            world.send(Record::to("t").partition((n % 2) as u32).value("x"));
        }
        world.run(ms(10));
    });
}

#[test]
fn reconnects_leave_nothing_behind() {
    assert_still(|world, _| {
        world.say("x");
        world.cluster.script = [Script::AppendAndCut].into();
        world.run(ms(1_500));
        world.cut("b1");
        world.run(ms(1_500));
    });
}

#[test]
fn new_epochs_leave_nothing_behind() {
    assert_still(|world, _| {
        world.cluster.script = [Script::Refuse(29)].into();
        world.say("x");
        world.run(ms(1_500));
    });
}

#[test]
fn abandoned_and_revoked_records_leave_nothing_behind() {
    assert_still(|world, n| {
        world.cluster.script = [Script::Swallow].into();
        let ticket = world.say("x");
        world.settle();
        world.cut("b1");
        if n % 2 == 0 {
            world.producer.revoke(world.now, ticket).unwrap();
            (0..4).for_each(|_| _ = world.say("y"));
        } else {
            world.producer.abandon(world.now, "t", 0).unwrap();
        }
        world.run(ms(2_500));
    });
}

#[test]
fn flushes_and_cancels_leave_nothing_behind() {
    assert_still(|world, _| {
        let ticket = world.say("x");
        world.producer.flush(world.now);
        world.producer.cancel(world.now, ticket);
        world.say("y");
        world.run(ms(10));
    });
}

#[test]
fn brokers_that_move_leave_nothing_behind() {
    assert_still(|world, n| {
        world.cluster.partition("t", 0).leader = 1 + (n % 2) as i32;
        world.cluster.partition("t", 0).epoch += 1;
        world.say("x");
        world.run(ms(1_000));
        let seeds = world.conns("seed");
        seeds.into_iter().for_each(|conn| world.lose(conn, Loss::Ended));
    });
}

#[test]
fn expired_records_of_topics_that_do_not_exist_cost_little() {
    let (few, many) = grows(|world, n| {
        let name = format!("none-{n}");
        world.send(Record::to(name).deadline(Duration::from_millis(300)).value("x"));
        world.run(ms(400));
    });
    assert!(many - few < 270 * 400, "{few} bytes after 30, {many} after 300");
}

/// KIP-526: after ten minutes at most (`metadata_max_idle` and `metadata_max_age`), whatever became of
/// the records: they expired, were cancelled, or were refused with their topic.
#[test]
fn topics_that_never_had_a_partition_are_forgotten() {
    for error in [3, 17, 29] {
        assert_still(|world, n| {
            // Half a page of tickets, so that the page in use is as full after 30 times and after 300.
            for name in 0..128 {
                let name = format!("none-{n}-{name}");
                world.cluster.create(&name, 0, 1);
                world.cluster.topics.get_mut(&name).unwrap().error = error;
                let record = Record::to(name).deadline(Duration::from_millis(300)).value("x");
                let ticket = world.send(record);
                if n % 2 == 0 {
                    world.producer.cancel(world.now, ticket);
                }
            }
            world.run(ms(if n % 30 == 29 { 601_000 } else { 400 }));
            world.cluster.topics.retain(|name, _| name == "t");
            world.notices.clear();
            world.cluster.metadata_requests.clear();
        });
    }
}

/// Who is forgotten is a stranger when it comes again, and who has a record that waits is not
/// forgotten.
#[test]
fn a_forgotten_topic_may_come_back() {
    let mut world: World = World::warm(&config(), Cluster::new(1, 1));
    let gone = world.send(Record::to("u").deadline(Duration::from_secs(1)).value("x"));
    let kept = world.send(Record::to("w").deadline(Duration::from_secs(3_600)).value("x"));
    world.run(ms(1_200_000));
    let held = format!("{:?}", world.producer);
    assert!(!held.contains("\"u\"") && held.contains("\"w\""));
    assert!(world.verdict(gone).is_some() && world.verdict(kept).is_none());
    world.cluster.create("u", 8, 1);
    world.cluster.create("w", 9, 1);
    let again = world.send(Record::to("u").value("y"));
    world.run_until_told(&[again, kept]);
    world.assert_offset(again, 0);
    world.assert_offset(kept, 0);
}

/// KIP-526: an idle topic is not asked for, and asked for again by the first record.
#[test]
fn idle_topics_are_not_asked_for() {
    let mut cluster = Cluster::new(1, 1);
    cluster.create("u", 8, 1);
    let mut world: World = World::warm(&config(), cluster);
    let record = Record::to("u").value("x");
    let first = world.send(record.clone());
    world.run_until_told(&[first]);
    for _ in 0..40 {
        world.say("x");
        world.run(ms(30_000));
    }
    let asks_for = |world: &World, name: &str| {
        let asked = |topics: &&Vec<String>| topics.iter().any(|topic| topic == name);
        world.cluster.metadata_requests.iter().filter(asked).count()
    };
    world.cluster.metadata_requests.clear();
    for _ in 0..40 {
        world.say("x");
        world.run(ms(30_000));
    }
    assert_eq!((asks_for(&world, "t"), asks_for(&world, "u")), (4, 0), "in twenty minutes");
    let again = world.send(record);
    world.run_until_told(&[again]);
    world.assert_offset(again, 1);
    world.run(ms(1_000));
    assert_eq!(asks_for(&world, "u"), 1);
}

/// S18: the last 32 ids are remembered.
#[test]
fn topics_made_anew_leave_little_behind() {
    assert_still(|world, n| {
        for id in 0..3 {
            world.cluster.create("t", ((3 * n + id) % 250) as u8 + 2, 2);
            world.say("x");
            world.run(ms(3_000));
        }
    });
}
