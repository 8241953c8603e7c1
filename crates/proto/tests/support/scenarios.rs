//! Scenarios that hold under the honest rules, and that a planted bug must break.

use core::time::Duration;

use candor_core::rules::Rules;
use candor_proto::{Notice, Record};

use super::{Cluster, START, Script, World, config, ms};

/// S21: two answers count as two if they come from two brokers.
pub fn two_brokers_are_two<R: Rules>() {
    let mut cluster = Cluster::new(3, 1);
    cluster.partition("t", 0).epoch = 7;
    let mut world = World::<R>::warm(&config(), cluster);
    world.cluster.partition("t", 0).leader = 2;
    world.cluster.partition("t", 0).epoch = 6;
    let ticket = world.say("a");
    world.run_until_told(&[ticket]);
    world.assert_offset(ticket, 1);
    assert_eq!(world.cluster.seen.last().unwrap().node, 2);
    assert!(world.now < START + ms(2_000), "{:?}", world.now.since(START));
}

/// L3, S21: a broker refuses with 6 and names itself, one leader epoch newer each time.
pub fn hints_make_no_busy_loop<R: Rules>() {
    let mut world = World::<R>::warm(&config(), Cluster::new(1, 1));
    world.cluster.script = (1..1_000).map(|epoch| Script::Moved(1, epoch)).collect();
    let ticket = world.say("a");
    world.settle();
    assert!(world.cluster.seen.len() <= 2, "{} requests in no time", world.cluster.seen.len());
    world.run(ms(10_000));
    assert!(world.cluster.seen.len() < 200, "{} requests in ten seconds", world.cluster.seen.len());
    world.cluster.script.clear();
    world.run_until_told(&[ticket]);
    world.assert_offset(ticket, 1);
}

/// L7: a partition whose request was lost twice goes alone, until something is answered.
pub fn who_is_lost_twice_goes_alone<R: Rules>() {
    let hurried = config()
        .retry_backoff(Duration::from_millis(1))
        .retry_backoff_max(Duration::from_millis(1));
    let mut world = World::<R>::warm(&hurried, Cluster::new(1, 2));
    let other = world.send(Record::to("t").partition(1).value("warm"));
    world.run_until_told(&[other]);
    world.cluster.seen.clear();
    world.cluster.script = [Script::AppendAndCut, Script::AppendAndCut].into();
    let tickets = [0, 1].map(|n| world.send(Record::to("t").partition(n).value("a")));
    world.run_until_told(&tickets);
    tickets.iter().for_each(|ticket| world.assert_offset(*ticket, 1));
    let sizes: Vec<usize> = world.cluster.seen.iter().map(|seen| seen.batches.len()).collect();
    assert_eq!(sizes, [2, 2, 1, 1], "L7");
    let together = [0, 1].map(|n| world.send(Record::to("t").partition(n).value("b")));
    world.run_until_told(&together);
    let last = world.cluster.seen.last().map(|seen| seen.batches.len());
    assert_eq!(last, Some(2), "an answer ends it");
}

/// K5: where one broker is left, its word counts as two after a wait.
pub fn one_broker_that_is_left_confirms_a_leader_after_a_wait<R: Rules>() {
    let told = loss_is_told_after::<R>(Other::Down);
    assert!((1_000..10_000).contains(&told), "{told} ms");
}

/// K5: a broker that can be reached may still know another leader.
pub fn a_broker_that_knows_nothing_yet_is_waited_for<R: Rules>() {
    let told = loss_is_told_after::<R>(Other::Unaware);
    assert!(told >= 250_000, "{told} ms");
}

/// The other broker of two.
pub enum Other {
    Down,
    Silent,
    Unaware,
}

/// The leader lost what it was sent. After how many milliseconds the loss is told.
pub fn loss_is_told_after<R: Rules>(other: Other) -> u64 {
    let mut world = World::<R>::warm(&config(), Cluster::new(2, 1));
    match other {
        Other::Down => _ = world.down.insert("b2".to_owned()),
        Other::Silent => _ = world.mute.insert("b2".to_owned()),
        Other::Unaware => world.cluster.unaware = Some(2),
    };
    world.down.insert("seed".to_owned());
    world.cut("seed");
    world.cluster.script = vec![Script::Refuse(45); 6].into();
    world.send(Record::to("t").partition(0).value("a").deadline(Duration::from_secs(600)));
    let is_told = |notice: &Notice| match notice {
        Notice::Partition { notice, .. } => matches!(notice, candor_core::Notice::DataLoss { .. }),
        Notice::ConnectionFailed { .. }
        | Notice::NoProducerId { .. }
        | Notice::TopicRefused { .. }
        | Notice::TopicRecreated { .. } => false,
    };
    for millis in (0..600_000).step_by(100) {
        if world.notices.iter().any(is_told) {
            return millis;
        }
        world.run(ms(100));
    }
    600_000
}
