//! Scenarios that hold under the honest rules, and that a planted bug must break.

use core::time::Duration;

use candor_core::rules::Rules;
use candor_proto::Record;

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
