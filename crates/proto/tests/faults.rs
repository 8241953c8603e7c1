//! Things go wrong between the producer and the brokers.

#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use core::time::Duration;

use bytes::Bytes;
use candor_core::rules::Honest;
use candor_core::{NeverReason, Proof, Resolution, Verdict};
use candor_proto::{
    Config, Ended, Fault, Handed, Input, Loss, Notice, Output, Producer, Record, Waiting,
    WhyRefused,
};
use support::{Cluster, START, Script, World, config, ms, scenarios};

#[test]
fn a_cut_after_the_append_is_resent_unchanged_and_delivered_once() {
    let mut world = World::<Honest>::warm(&config(), Cluster::new(1, 1));
    world.cluster.script = [Script::AppendAndCut].into();
    let ticket = world.say("a");
    world.run_until_told(&[ticket]);
    world.assert_offset(ticket, 1);
    assert_eq!(world.cluster.log("t", 0), ["warm", "a"]);
    assert_eq!(world.cluster.offered("t", 0), [(0, 1, 1), (0, 1, 1)]);
    assert_eq!(world.faults(), [&Fault::Lost(Loss::Broken)]);
}

#[test]
fn a_silent_broker_loses_its_connection_and_the_batch_goes_again() {
    let mut world = World::<Honest>::warm(&config(), Cluster::new(1, 1));
    world.cluster.script = [Script::Swallow].into();
    let ticket = world.say("a");
    world.run_until_told(&[ticket]);
    world.assert_offset(ticket, 1);
    assert_eq!(world.faults(), [&Fault::RequestTimeout]);
    assert!(world.now >= START + ms(30_000) && world.now < START + ms(32_000));
}

#[test]
fn bytes_that_were_never_handed_over_leave_no_doubt() {
    let mut world = World::<Honest>::warm(&config(), Cluster::new(1, 1));
    world.stuck.insert("b1".to_owned());
    let ticket = world.say("a");
    world.settle();
    assert_eq!(world.producer.why(ticket), Waiting::Partition(candor_core::Why::Transmit));
    world.down.insert("b1".to_owned());
    world.run(ms(120_000));
    assert_eq!(world.verdict(ticket), Some(Verdict::NotDelivered(Proof::Refused)));
}

#[test]
fn bytes_that_may_have_been_handed_over_leave_doubt() {
    let mut world = World::<Honest>::warm(&config(), Cluster::new(1, 1));
    world.stuck.insert("b1".to_owned());
    let ticket = world.say("a");
    world.settle();
    world.down.insert("b1".to_owned());
    let conn = world.conns("b1")[0];
    world.links.remove(&conn);
    let lost = Input::Lost { conn, handed: Handed::Unknown, why: Loss::Broken };
    world.producer.handle(world.now, lost).unwrap();
    world.run(ms(119_999));
    assert_eq!(world.verdict(ticket), None);
    world.run(ms(1));
    assert!(matches!(world.verdict(ticket), Some(Verdict::Unknown(_))));
    world.down.clear();
    world.stuck.clear();
    world.run(ms(2_000));
    let (_, resolution) = world.resolutions[&ticket];
    assert!(matches!(resolution, Resolution::Delivered { .. }), "{resolution:?}");
    assert_eq!(world.cluster.log("t", 0), ["warm", "a"]);
}

#[test]
fn answers_that_cannot_be_believed_end_the_connection_and_decide_nothing() {
    for (script, expected) in [
        (Script::Garbage, "malformed"),
        (Script::WrongCorrelation, "out of turn"),
        (Script::Contradict, "contradicts"),
    ] {
        let mut world = World::<Honest>::warm(&config(), Cluster::new(1, 1));
        world.cluster.script = [script.clone()].into();
        let ticket = world.say("a");
        world.settle();
        assert_eq!(world.verdict(ticket), None, "{script:?}");
        world.run_until_told(&[ticket]);
        world.assert_offset(ticket, 1);
        assert!(world.faults()[0].to_string().contains(expected), "{:?}", world.faults());
        assert_eq!(world.cluster.log("t", 0), ["warm", "a"]);
    }
}

#[test]
fn answers_for_more_than_was_asked_count_and_end_the_connection() {
    for script in [Script::AnswerTwice, Script::AnswerMore] {
        let mut world = World::<Honest>::warm(&config(), Cluster::new(1, 1));
        world.cluster.script = [script].into();
        let ticket = world.say("a");
        world.settle();
        world.assert_offset(ticket, 1);
        assert_eq!(world.faults(), [&Fault::Contradiction]);
    }
}

#[test]
fn a_partition_left_out_of_an_answer_is_in_doubt_alone() {
    let mut world = World::<Honest>::warm(&config(), Cluster::new(1, 2));
    world.send(Record::to("t").partition(1).value("warm"));
    world.settle();
    world.cluster.script = [Script::AnswerLess].into();
    let here = world.send(Record::to("t").partition(0).value("a"));
    let left_out = world.send(Record::to("t").partition(1).value("b"));
    world.settle();
    world.assert_offset(here, 1);
    assert_eq!(world.verdict(left_out), None);
    world.run_until_told(&[left_out]);
    world.assert_offset(left_out, 1);
    assert_eq!(world.faults(), [&Fault::Contradiction; 0]);
}

#[test]
fn a_dead_leader_is_not_waited_for() {
    let mut world = World::<Honest>::warm(&config(), Cluster::new(3, 1));
    world.down.insert("b1".to_owned());
    world.cluster.partition("t", 0).leader = 2;
    world.cluster.partition("t", 0).epoch = 1;
    world.cut("b1");
    let ticket = world.say("a");
    world.run_until_told(&[ticket]);
    world.assert_offset(ticket, 1);
    assert!(world.now < START + ms(500), "{:?}", world.now.since(START));
    assert_eq!(world.cluster.seen[0].node, 2);
}

#[test]
fn a_leader_that_dies_with_a_request_open_makes_others_be_asked() {
    let mut world = World::<Honest>::warm(&config(), Cluster::new(3, 1));
    world.cluster.script = [Script::Swallow].into();
    let ticket = world.say("a");
    world.settle();
    world.hung.insert("b1".to_owned());
    world.cluster.partition("t", 0).leader = 2;
    world.cluster.partition("t", 0).epoch = 1;
    world.cut("b1");
    world.run_until_told(&[ticket]);
    world.assert_offset(ticket, 1);
    assert!(world.now < START + ms(1_000), "{:?}", world.now.since(START));
}

#[test]
fn what_a_broker_says_it_holds_us_back_is_no_part_of_the_timeout() {
    let mut world = World::<Honest>::warm(&config(), Cluster::new(1, 1));
    world.mute.insert("b1".to_owned());
    let first = world.say("a");
    world.settle();
    let second = world.say("b");
    world.settle();
    let conn = world.conns("b1")[0];
    world.cluster.throttle_ms = 20_000;
    world.mute.clear();
    assert!(world.answer_one(conn), "the request is there");
    world.mute.insert("b1".to_owned());
    world.run(ms(49_000));
    world.assert_offset(first, 1);
    assert_eq!((world.verdict(second), world.faults().len()), (None, 0));
    world.mute.clear();
    world.settle();
    world.assert_offset(second, 2);
}

/// S17: 24 days fit the field. What is open then is given up after minutes, and found out.
#[test]
fn a_broker_that_asks_for_weeks_of_silence_gets_minutes() {
    let mut world = World::<Honest>::warm(&config(), Cluster::new(1, 1));
    world.mute.insert("b1".to_owned());
    let (first, second) = (world.say("a"), world.say("b"));
    world.settle();
    let third = world.say("c");
    world.settle();
    let conn = world.conns("b1")[0];
    world.cluster.throttle_ms = i32::MAX;
    world.mute.clear();
    assert!(world.answer_one(conn), "the request is there");
    world.mute.insert("b1".to_owned());
    world.cluster.throttle_ms = 0;
    world.settle();
    world.assert_offset(first, 1);
    world.assert_offset(second, 2);
    world.run(ms(629_000));
    assert!(matches!(world.verdict(third), Some(Verdict::Unknown(_))));
    assert_eq!(world.faults().len(), 0, "it is obeyed for long enough");
    world.mute.clear();
    world.links.get_mut(&conn).unwrap().forget_requests();
    world.run(ms(2_000));
    assert_eq!(world.faults(), [&Fault::RequestTimeout]);
    assert!(matches!(world.resolutions[&third].1, Resolution::Delivered { .. }));
    assert_eq!(world.cluster.log("t", 0), ["warm", "a", "b", "c"]);
}

/// The same with nothing open: the connection is left as one that is idle, and another one made.
#[test]
fn a_connection_that_is_to_be_silent_for_weeks_is_left() {
    let mut world = World::<Honest>::warm(&config(), Cluster::new(1, 1));
    world.cluster.throttle_ms = i32::MAX;
    let first = world.say("a");
    world.settle();
    world.assert_offset(first, 1);
    world.cluster.throttle_ms = 0;
    world.run(ms(530_000));
    let second = world.say("b");
    world.run(ms(9_000));
    assert_eq!(world.verdict(second), None, "it is obeyed for long enough");
    world.run(ms(2_000));
    world.assert_offset(second, 2);
    assert_eq!(world.faults(), [&Fault::Contradiction; 0]);
}

#[test]
fn a_leader_that_swallows_connections_does_not_hide_the_others() {
    let mut world = World::<Honest>::warm(&config(), Cluster::new(3, 1));
    world.hung.insert("b1".to_owned());
    world.cluster.partition("t", 0).leader = 2;
    world.cluster.partition("t", 0).epoch = 1;
    world.cut("b1");
    world.cut("seed");
    let ticket = world.say("a");
    world.run_until_told(&[ticket]);
    world.assert_offset(ticket, 1);
    assert!(world.now < START + ms(1_000), "{:?}", world.now.since(START));
}

#[test]
fn a_silent_broker_that_owes_metadata_does_not_hold_up_the_others() {
    let mut world = World::<Honest>::warm(&config(), Cluster::new(3, 3));
    for partition in 0..3 {
        world.send(Record::to("t").partition(partition).value("warm"));
    }
    world.settle();
    world.mute.insert("b1".to_owned());
    world.cluster.partition("t", 1).leader = 3;
    world.cluster.partition("t", 1).epoch = 1;
    let ticket = world.send(Record::to("t").partition(1).value("a"));
    world.run_until_told(&[ticket]);
    world.assert_offset(ticket, 1);
    assert!(world.now > START + ms(1_000), "the silent broker was asked first");
    assert!(world.now < START + ms(3_000), "{:?}", world.now.since(START));
}

#[test]
fn a_leader_hint_is_followed_without_metadata() {
    let mut world = World::<Honest>::warm(&config(), Cluster::new(2, 1));
    world.cluster.partition("t", 0).leader = 2;
    world.cluster.partition("t", 0).epoch = 3;
    world.cluster.script = [Script::Moved(2, 3)].into();
    let asked = world.cluster.metadata_requests.len();
    let ticket = world.say("a");
    let now = world.now;
    world.settle();
    world.assert_offset(ticket, 1);
    assert_eq!((world.now, world.cluster.seen.last().unwrap().node), (now, 2));
    assert!(world.cluster.metadata_requests.len() <= asked + 1);
}

#[test]
fn older_hints_and_older_leaders_are_not_followed() {
    let mut cluster = Cluster::new(3, 1);
    cluster.partition("t", 0).epoch = 7;
    let mut world = World::<Honest>::warm(&config(), cluster);
    world.cluster.script = [Script::Moved(2, 7), Script::Moved(2, 6)].into();
    let ticket = world.say("a");
    world.run_until_told(&[ticket]);
    world.assert_offset(ticket, 1);
    assert!(world.cluster.seen.iter().all(|seen| seen.node == 1));
}

#[test]
fn a_lower_epoch_is_followed_once_two_brokers_say_so() {
    scenarios::two_brokers_are_two::<Honest>();
}

#[test]
fn what_is_in_doubt_never_goes_to_a_topic_made_anew() {
    let mut world = World::<Honest>::warm(&config(), Cluster::new(1, 1));
    world.cluster.script = [Script::AppendAndCut].into();
    let doubtful = world.say("a");
    world.settle();
    world.cluster.create("t", 2, 1);
    let behind = world.say("b");
    world.run_until_told(&[doubtful, behind]);
    assert!(matches!(world.verdict(doubtful), Some(Verdict::Unknown(_))));
    let (_, resolution) = world.resolutions[&doubtful];
    assert!(
        matches!(resolution, Resolution::Never { reason: NeverReason::TopicRecreated, .. }),
        "{resolution:?}"
    );
    world.assert_offset(behind, 0);
    assert_eq!(world.cluster.log("t", 0), ["b"]);
    assert!(world.notices.contains(&Notice::TopicRecreated { topic: "t".into() }));
}

/// S13, S18: by name, the new log answers before its id is seen. Nobody waits for metadata to grow old.
#[test]
fn a_topic_made_anew_is_looked_for_where_its_log_contradicts_us() {
    let mut cluster = Cluster::new(1, 1);
    cluster.versions.insert(0, (0, 12));
    let mut world: World = World::warm(&config(), cluster);
    world.cluster.create("t", 2, 1);
    let doubtful = world.say("a");
    world.run_until_told(&[doubtful]);
    assert!(matches!(world.verdict(doubtful), Some(Verdict::Unknown(_))));
    world.run(ms(2_000));
    assert!(world.notices.contains(&Notice::TopicRecreated { topic: "t".into() }));
    let ticket = world.say("b");
    world.run_until_told(&[ticket]);
    world.assert_offset(ticket, 1);
    assert_eq!(world.cluster.log("t", 0), ["a", "b"]);
}

/// Where the first broker that was asked knew nothing of it yet, whoever writes asks again.
#[test]
fn a_topic_made_anew_is_looked_for_again_by_whoever_writes_to_it() {
    let mut cluster = Cluster::new(1, 1);
    cluster.versions.insert(0, (0, 12));
    let mut world: World = World::warm(&config(), cluster);
    let old = world.cluster.topics["t"].id.clone();
    world.cluster.create("t", 2, 1);
    let new = world.cluster.topics["t"].id.clone();
    world.cluster.topics.get_mut("t").unwrap().id = old;
    world.say("a");
    world.run(ms(2_000));
    world.cluster.topics.get_mut("t").unwrap().id = new;
    let record = Record::to("t").partition(0).value("b");
    let refused = world.producer.append(world.now, world.now, record).unwrap_err();
    assert_eq!(refused.why, WhyRefused::Stopped);
    world.run(ms(2_000));
    let ticket = world.say("b");
    world.run_until_told(&[ticket]);
    world.assert_offset(ticket, 1);
}

#[test]
fn one_broker_that_is_left_confirms_a_leader_after_a_wait() {
    scenarios::one_broker_that_is_left_confirms_a_leader_after_a_wait::<Honest>();
}

#[test]
fn a_broker_that_is_only_silent_is_waited_for() {
    let told = scenarios::loss_is_told_after::<Honest>(scenarios::Other::Silent);
    assert!((10_000..60_000).contains(&told), "{told} ms");
}

#[test]
fn connections_are_tried_again_after_growing_waits() {
    let mut world = World::new(&Config::new(["seed:1", "other:1"]), Cluster::new(1, 1));
    world.down.extend(["seed".to_owned(), "other".to_owned()]);
    let ticket = world.say("a");
    world.run(ms(60_000));
    let hosts: Vec<_> = world.connects.iter().map(|(_, host)| host.as_str()).collect();
    assert_eq!(hosts[..4], ["seed", "other", "seed", "other"]);
    assert!((60..250).contains(&hosts.len()), "{} tries in a minute", hosts.len());
    world.down.clear();
    world.run(ms(2_000));
    world.assert_offset(ticket, 0);
}

/// L1: an address that hangs does not hide the others until `connect_timeout`.
#[test]
fn a_bootstrap_address_that_hangs_is_not_waited_for_alone() {
    for hung in 1..5 {
        let seeds = ["h1:1", "h2:1", "h3:1", "h4:1"].into_iter().take(hung).chain(["seed:1"]);
        let mut world = World::new(&Config::new(seeds), Cluster::new(1, 1));
        world.hung.extend((1..5).map(|host| format!("h{host}")));
        let ticket = world.say("a");
        world.run_until_told(&[ticket]);
        world.assert_offset(ticket, 0);
        assert!(world.now < START + ms(600 * hung as u64), "{hung}: {:?}", world.now.since(START));
    }
}

/// The same with a broker that metadata names, for whoever needs any of them but the one that answered.
#[test]
fn a_second_opinion_is_not_waited_for_where_a_connection_hangs() {
    let mut cluster = Cluster::new(3, 1);
    cluster.partition("t", 0).epoch = 7;
    let mut world: World = World::warm(&config(), cluster);
    world.down.insert("seed".to_owned());
    world.cut("seed");
    world.hung.insert("b2".to_owned());
    world.cluster.partition("t", 0).leader = 3;
    world.cluster.partition("t", 0).epoch = 6;
    let ticket = world.say("a");
    world.run_until_told(&[ticket]);
    world.assert_offset(ticket, 1);
    assert!(world.now < START + ms(2_000), "{:?}", world.now.since(START));
}

/// Where everything hangs, each address is dialled once at a time, and all of them in turn.
#[test]
fn addresses_that_hang_are_not_dialled_in_a_hurry() {
    let seeds: Vec<String> = (0..40).map(|host| format!("h{host}:1")).collect();
    let mut world = World::new(&Config::new(seeds), Cluster::new(1, 1));
    world.hung.extend((0..40).map(|host| format!("h{host}")));
    world.say("a");
    let most = (0..600).map(|_| {
        world.run(ms(100));
        world.links.len()
    });
    assert_eq!(most.max(), Some(20), "one each half second, for ten seconds");
    let tries = world.connects.len();
    assert!((115..=121).contains(&tries), "{tries} tries in a minute");
    assert!(world.polls < 2_000, "{}", world.polls);
}

#[test]
fn brokers_that_are_away_are_not_tried_while_nobody_needs_them() {
    let mut cluster = Cluster::new(1, 1);
    cluster.init_errors = vec![31; 500].into();
    let mut world = World::new(&config(), cluster);
    let ticket = world.say("a");
    world.run(ms(121_000));
    assert_eq!(world.verdict(ticket), Some(Verdict::NotDelivered(Proof::NeverOffered)));
    world.down.extend(["seed".to_owned(), "b1".to_owned()]);
    world.cut("seed");
    world.cut("b1");
    let (asked, connects, polls) = (world.cluster.id_requests, world.connects.len(), world.polls);
    world.run(ms(3_600_000));
    assert_eq!((world.cluster.id_requests, world.connects.len()), (asked, connects));
    assert!(world.polls - polls < 50, "{}", world.polls - polls);
    world.down.clear();
    world.cluster.init_errors.clear();
    let again = world.say("b");
    world.run(ms(2_000));
    world.assert_offset(again, 0);
}

#[test]
fn a_broker_that_accepts_and_says_nothing_is_given_up() {
    let mut world = World::new(&Config::new(["mute:1", "seed:1"]), Cluster::new(1, 1));
    world.mute.insert("mute".to_owned());
    let ticket = world.say("a");
    world.run_until_told(&[ticket]);
    world.assert_offset(ticket, 0);
    assert!(world.now <= START + ms(600), "it is not waited for alone");
    world.run(ms(10_000));
    assert_eq!(world.faults(), [&Fault::ConnectTimeout]);
}

#[test]
fn a_greeting_that_leads_to_an_end_keeps_the_waits_growing() {
    let mut world = World::new(&config(), Cluster::new(1, 1));
    world.mute.insert("seed".to_owned());
    world.say("a");
    for _ in 0..10 {
        world.run(ms(1_100));
        world.cut("seed");
    }
    world.run(ms(5_000));
    assert!(world.connects.len() <= 12, "{}", world.connects.len());
}

#[test]
fn rebootstrap_drops_everything_and_starts_from_the_seeds() {
    let mut world = World::<Honest>::warm(&config(), Cluster::new(2, 2));
    let before = world.connects.len();
    world.cluster.metadata_error = 129;
    world.cluster.script = [Script::Refuse(5)].into();
    let ticket = world.say("a");
    world.settle();
    world.run(ms(100));
    world.cluster.metadata_error = 0;
    world.run_until_told(&[ticket]);
    world.assert_offset(ticket, 1);
    assert!(world.faults().contains(&&Fault::Rebootstrap), "{:?}", world.notices);
    assert!(world.connects[before..].iter().any(|(_, host)| host == "seed"));
    assert_eq!(world.cluster.offered("t", 0).last(), Some(&(0, 1, 1)), "sequences survive");
}

#[test]
fn nothing_is_written_into_another_cluster() {
    let mut world = World::<Honest>::warm(&config(), Cluster::new(1, 1));
    world.cluster.id = "two".to_owned();
    world.cluster.create("t", 2, 1);
    world.cluster.script = [Script::Refuse(5); 1].into();
    let ticket = world.say("a");
    world.settle();
    world.cluster.seen.clear();
    world.run(ms(121_000));
    assert!(world.verdict(ticket).is_some());
    assert!(world.faults().contains(&&Fault::ForeignCluster));
}

#[test]
fn memory_has_a_bound_and_comes_back() {
    let mut world = World::new(&config().memory(20_000), Cluster::new(1, 1));
    world.down.insert("seed".to_owned());
    let mut tickets = Vec::new();
    let refused = loop {
        let record = Record::to("t").partition(0).value("x".repeat(100));
        match world.producer.append(world.now, world.now, record) {
            Ok(ticket) => tickets.push(ticket),
            Err(refused) => break refused,
        }
    };
    assert_eq!(refused.why, WhyRefused::Full);
    assert_eq!(refused.record.value_bytes().unwrap().len(), 100);
    assert!(world.producer.stats().memory <= 20_000);
    assert!((30..60).contains(&tickets.len()), "{}", tickets.len());
    world.down.clear();
    world.run_until_told(&tickets);
    assert!(world.producer.room() > 15_000);
    let more = world.say("y");
    world.settle();
    assert!(matches!(world.verdict(more), Some(Verdict::Delivered { .. })));
}

#[test]
fn the_bound_holds_for_records_in_flight() {
    let mut world = World::<Honest>::warm(&config().memory(20_000), Cluster::new(1, 1));
    world.mute.insert("b1".to_owned());
    let mut accepted = 0;
    let why = loop {
        let record = Record::to("t").partition(0).value("x".repeat(100));
        match world.producer.append(world.now, world.now, record) {
            Ok(_) => accepted += 1,
            Err(refused) => break refused.why,
        }
        world.settle();
        assert!(world.producer.stats().memory <= 20_000);
    };
    assert_eq!(why, WhyRefused::Full);
    assert!((40..90).contains(&accepted), "{accepted}");
}

#[test]
fn a_full_memory_ends_lingering() {
    let config = config().memory(8_000).linger(Duration::from_secs(10));
    let mut world = World::new(&config, Cluster::new(1, 1));
    let now = world.now;
    while world.producer.append(now, now, Record::to("t").value("x")).is_ok() {}
    world.settle();
    assert!(!world.verdicts.is_empty(), "nothing left although the memory is full");
    assert_eq!(world.now, now);
}

#[test]
fn reported_unknowns_hold_no_more_than_their_share() {
    let config = config().memory(150_000).deadline(Duration::from_secs(1));
    let mut world = World::new(&config, Cluster::new(2, 2));
    let warm: Vec<_> = [0, 1]
        .map(|p| world.send(Record::to("t").partition(p).value("warm")))
        .into_iter()
        .collect();
    world.run_until_told(&warm);
    world.mute.insert("b1".to_owned());
    for _ in 0..40 {
        let record = || Record::to("t").partition(0).value("x".repeat(10_000));
        let _ = world.producer.append(world.now, world.now, record());
        world.run(ms(500));
        let healthy = world.send(Record::to("t").partition(1).value("fine"));
        world.settle();
        assert!(matches!(world.verdict(healthy), Some(Verdict::Delivered { .. })));
    }
    assert!(world.producer.stats().memory <= 150_000);
    world.run(ms(31_000));
    let shed = world.resolutions.values().filter(|(_, resolution)| {
        matches!(resolution, Resolution::Never { reason: NeverReason::MemoryPressure, .. })
    });
    assert!(shed.count() > 0, "{:?}", world.resolutions);
}

#[test]
fn flush_waits_for_verdicts_and_makes_everything_due() {
    let config = config().linger(Duration::from_secs(60));
    let mut world = World::new(&config, Cluster::new(1, 3));
    for partition in 0..3 {
        world.send(Record::to("t").partition(partition).value("x"));
    }
    let id = world.producer.flush(world.now);
    let later = world.send(Record::to("t").partition(0).value("lingers"));
    world.settle();
    assert_eq!(world.flushed, [id]);
    assert_eq!(world.verdicts.len(), 3);
    assert_eq!((world.verdict(later), world.now), (None, START));
    let empty = world.producer.flush(world.now);
    world.settle();
    assert_eq!(world.flushed, [id, empty]);
}

#[test]
fn close_delivers_what_it_can_and_then_says_so() {
    let config = config().linger(Duration::from_secs(60));
    let mut world = World::new(&config, Cluster::new(1, 1));
    let ticket = world.say("a");
    world.producer.close(world.now, world.after(5_000));
    let refused = world.producer.append(world.now, world.now, Record::to("t")).unwrap_err();
    assert_eq!(refused.why, WhyRefused::Closed);
    world.settle();
    world.assert_offset(ticket, 0);
    assert_eq!(world.closed, Some(START));
    assert!(world.links.is_empty());
    assert_eq!(world.producer.deadline(), None);
}

/// S16: an answer says that the broker has a request, not that the driver is done with its bytes.
#[test]
fn bytes_count_until_they_are_sent_though_their_answer_came() {
    for lost in [false, true] {
        let mut world = World::<Honest>::warm(&config(), Cluster::new(1, 1));
        let before = world.producer.stats().memory;
        let ticket = world.send(Record::to("t").partition(0).value("x".repeat(5_000)));
        world.poll_all();
        let conn = world.conns("b1")[0];
        let mut request: Vec<Bytes> = Vec::new();
        let n = world.producer.transmit(world.now, conn, usize::MAX, &mut request);
        world.producer.handle(world.now, Input::Sent { conn, n: n - 1 }).unwrap();
        let frame = Bytes::from(request.concat()).slice(4..);
        let bytes = world.cluster.handle(1, frame).reply.unwrap();
        world.producer.handle(world.now, Input::Received { conn, bytes }).unwrap();
        world.poll_all();
        world.assert_offset(ticket, 1);
        assert!(world.producer.stats().memory > before + 5_000, "given back too early");
        match lost {
            true => world.lose(conn, Loss::Broken),
            false => world.producer.handle(world.now, Input::Sent { conn, n: 1 }).unwrap(),
        }
        assert_eq!(world.producer.stats().memory, before);
    }
}

#[test]
fn close_ends_by_its_deadline_whatever_happens() {
    let mut world = World::<Honest>::warm(&config(), Cluster::new(1, 1));
    world.cluster.script = [Script::Swallow].into();
    let doubtful = world.say("a");
    world.settle();
    let raw = world.send(Record::to("nowhere").value("b"));
    world.mute.insert("b1".to_owned());
    let id = world.producer.flush(world.now);
    world.producer.close(world.now, world.after(3_000));
    world.run(ms(2_999));
    assert_eq!((world.closed, world.verdicts.len()), (None, 1));
    world.run(ms(1));
    assert_eq!(world.closed, Some(START + ms(3_000)));
    assert_eq!(world.verdict(raw), Some(Verdict::NotDelivered(Proof::NeverOffered)));
    assert!(matches!(world.verdict(doubtful), Some(Verdict::Unknown(_))));
    let (_, resolution) = world.resolutions[&doubtful];
    assert!(matches!(resolution, Resolution::Never { reason: NeverReason::Closed, .. }));
    assert_eq!(world.flushed, [id]);
}

#[test]
fn a_request_lost_twice_is_split_to_one_partition_each() {
    let mut world = World::<Honest>::warm(&config(), Cluster::new(1, 4));
    let send = |world: &mut World| -> Vec<_> {
        (0..4).map(|p| world.send(Record::to("t").partition(p).value("x"))).collect()
    };
    let warm = send(&mut world);
    world.run_until_told(&warm);
    world.cluster.seen.clear();
    let lost = 8;
    world.cluster.script = vec![Script::AppendAndCut; lost].into();
    let tickets = send(&mut world);
    world.run_until_told(&tickets);
    let mut losses = [0; 4];
    assert_eq!(world.cluster.seen[0].batches.len(), 4);
    for (number, seen) in world.cluster.seen.iter().enumerate() {
        for batch in &seen.batches {
            let partition = batch.1 as usize;
            assert!(losses[partition] < 2 || seen.batches.len() == 1, "{seen:?}");
            losses[partition] = if number < lost { losses[partition] + 1 } else { 0 };
        }
    }
}

#[test]
fn nothing_new_is_offered_while_the_window_is_full() {
    let config = config().write_window(1_000).batch_size(500);
    let mut world = World::<Honest>::warm(&config, Cluster::new(1, 2));
    world.send(Record::to("t").partition(1).value("warm"));
    world.settle();
    world.stuck.insert("b1".to_owned());
    for _ in 0..20 {
        for partition in 0..2 {
            world.send(Record::to("t").partition(partition).value("x".repeat(400)));
        }
    }
    let before = world.producer.stats().counts.offers;
    world.settle();
    let offers = world.producer.stats().counts.offers - before;
    assert!((2..=4).contains(&offers), "{offers} offers into a window of 1000 bytes");
}

#[test]
fn a_wrong_peer_is_named() {
    let mut producer: Producer = Producer::new(&config(), 1, START).unwrap();
    producer.append(START, START, Record::to("t")).unwrap();
    let Some(Output::Connect { conn, .. }) = producer.poll(START) else { panic!() };
    producer.handle(START, Input::Connected { conn }).unwrap();
    let bytes = Bytes::from_static(b"HTTP/1.1 400 Bad Request\r\n");
    producer.handle(START, Input::Received { conn, bytes }).unwrap();
    let outputs: Vec<_> = core::iter::from_fn(|| producer.poll(START)).collect();
    assert_eq!(outputs[0], Output::Disconnect { conn, abort: true });
    let Output::Notice(notice) = &outputs[1] else { panic!("{outputs:?}") };
    assert!(notice.to_string().contains("HTTP server"), "{notice}");
}

#[test]
fn after_two_losses_without_an_answer_each_partition_goes_alone() {
    scenarios::who_is_lost_twice_goes_alone::<Honest>();
}

#[test]
fn a_revoked_record_loses_its_place_to_others_or_is_known_to_have_it() {
    for (script, written) in [(Script::Ignore, false), (Script::Swallow, true)] {
        let mut world = World::<Honest>::warm(&config(), Cluster::new(1, 1));
        world.cluster.script = [script].into();
        let (a, b) = (world.say("a"), world.say("b"));
        world.settle();
        world.producer.revoke(world.now, a).unwrap();
        world.settle();
        assert!(matches!(world.verdict(a), Some(Verdict::Unknown(_))));
        world.cut("b1");
        world.run(ms(5_000));
        let (_, resolution) = world.resolutions[&a];
        if written {
            assert!(
                matches!(resolution, Resolution::Delivered { offset: Some(at) } if at.get() == 1)
            );
            assert_eq!(world.cluster.log("t", 0), ["warm", "a", "b"]);
        } else {
            assert_eq!(resolution, Resolution::NotDelivered(Proof::SlotTaken));
            assert_eq!(world.cluster.log("t", 0), ["warm", "b"]);
        }
        world.assert_offset(b, 1 + i64::from(written));
        assert_eq!(world.producer.revoke(world.now, a), Err(Ended(a)));
    }
}

#[test]
fn a_record_that_was_not_offered_is_revoked_as_it_is_cancelled() {
    let mut world = World::new(&config(), Cluster::new(1, 1));
    let raw = world.say("raw");
    world.producer.revoke(world.now, raw).unwrap();
    world.settle();
    assert_eq!(world.verdict(raw), Some(Verdict::NotDelivered(Proof::TakenBack)));
}

#[test]
fn what_is_abandoned_is_not_sent_again_and_its_fence_is_told() {
    let mut world = World::<Honest>::warm(&config(), Cluster::new(1, 1));
    world.cluster.script = [Script::Ignore].into();
    let lost = world.say("lost");
    world.settle();
    world.cut("b1");
    assert!(world.producer.abandon(world.now, "t", 1).is_err());
    world.producer.abandon(world.now, "t", 0).unwrap();
    let next = world.say("next");
    world.run(ms(5_000));
    let (_, resolution) = world.resolutions[&lost];
    assert!(matches!(resolution, Resolution::Never { reason: NeverReason::Abandoned, .. }));
    world.assert_offset(next, 1);
    assert_eq!(world.cluster.log("t", 0), ["warm", "next"]);
    let fence = world.notices.iter().find_map(|notice| match notice {
        Notice::Partition { notice: candor_core::Notice::Fence { offset }, .. } => {
            Some(offset.get())
        }
        Notice::Partition { .. }
        | Notice::ConnectionFailed { .. }
        | Notice::NoProducerId { .. }
        | Notice::TopicRefused { .. }
        | Notice::TopicRecreated { .. } => None,
    });
    assert_eq!(fence, Some(1));
}
