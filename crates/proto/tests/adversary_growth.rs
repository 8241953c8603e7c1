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

#[test]
fn topics_made_anew_leave_little_behind() {
    let (few, many) = grows(|world, n| {
        world.cluster.create("t", (n % 250) as u8 + 2, 2);
        world.say("x");
        world.run(ms(3_000));
    });
    assert!(many - few < 270 * 100, "{few} bytes after 30, {many} after 300");
}
