//! Records go in, bytes go out, verdicts come back.

#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use core::time::Duration;

use candor_core::{Instant, Proof, RouteId, Verdict, Why};
use candor_proto::{
    Handed, Input, Loss, Misuse, Notice, Producer, Record, Waiting, WhyRefused, partition_for_key,
};
use support::{Cluster, START, Script, World, config, ms};

#[test]
fn a_record_is_delivered_without_time_passing() {
    let mut world = World::new(&config(), Cluster::new(3, 3));
    let ticket = world.say("a");
    world.settle();
    world.assert_offset(ticket, 0);
    assert_eq!(world.cluster.log("t", 0), ["a"]);
    let seen = &world.cluster.seen[0];
    assert_eq!((seen.node, seen.version, seen.timeout_ms), (1, 13, 15_000));
    assert_eq!(world.cluster.id_requests, 1);
    assert_eq!(world.cluster.metadata_requests, [["t"]]);
}

#[test]
fn nothing_happens_without_records() {
    let mut world = World::new(&config(), Cluster::new(1, 1));
    world.run(ms(3_600_000));
    assert_eq!((world.producer.deadline(), world.connects.len()), (None, 0));
}

#[test]
fn an_idle_producer_sleeps_for_long() {
    let mut world = World::new(&config(), Cluster::new(1, 1));
    let ticket = world.say("a");
    world.run_until_told(&[ticket]);
    let before = world.polls;
    world.run(ms(3_600_000));
    assert!(world.polls - before < 100, "{} polls in an idle hour", world.polls - before);
    assert!(world.links.is_empty(), "idle connections are closed");
    let again = world.say("b");
    world.settle();
    world.assert_offset(again, 1);
}

#[test]
fn keys_decide_partitions_and_the_topic_may_grow() {
    let mut world = World::new(&config(), Cluster::new(3, 3));
    let first = world.send(Record::to("t").key("hello").value("old"));
    world.settle();
    world.assert_offset(first, 0);
    let old = partition_for_key(b"hello", 3) as usize;
    assert_eq!(world.cluster.log("t", old), ["old"]);
    let new = partition_for_key(b"hello", 12) as usize;
    assert_ne!(old, new);
    let nodes = world.cluster.nodes.clone();
    let topic = world.cluster.topics.get_mut("t").unwrap();
    while topic.partitions.len() < 12 {
        let leader = nodes[topic.partitions.len() % nodes.len()];
        topic.partitions.push(support::broker::Partition::led_by(leader));
    }
    world.run(ms(300_001));
    world.send(Record::to("t").key("hello").value("stays, and asks again"));
    world.settle();
    let grown = world.send(Record::to("t").key("hello").value("new"));
    world.settle();
    assert!(matches!(world.verdict(grown), Some(Verdict::Delivered { .. })));
    assert_eq!(world.cluster.log("t", new).last().map(String::as_str), Some("new"));
}

#[test]
fn records_of_an_unknown_topic_wait_and_then_go_in_order() {
    let mut world = World::new(&config(), Cluster::new(1, 1));
    let tickets: Vec<_> =
        (0..3).map(|n| world.send(Record::to("late").value(format!("{n}")))).collect();
    world.run(ms(5_000));
    assert!(world.verdicts.is_empty());
    assert_eq!(world.producer.why(tickets[0]), Waiting::Metadata);
    assert_eq!(world.producer.place(tickets[0]).unwrap().1, None);
    assert!(world.cluster.metadata_requests.len() < 20, "{:?}", world.cluster.metadata_requests);
    world.cluster.create("late", 9, 1);
    world.run_until_told(&tickets);
    assert_eq!(world.cluster.log("late", 0), ["0", "1", "2"]);
}

#[test]
fn records_of_an_unknown_topic_end_at_their_own_deadlines() {
    let mut world = World::new(&config(), Cluster::new(1, 1));
    let short = Record::to("never").value("a").deadline(Duration::from_millis(700));
    let (long, short) = (world.send(Record::to("never").value("b")), world.send(short));
    world.run(ms(200_000));
    let not = Verdict::NotDelivered(Proof::NeverOffered);
    assert_eq!(world.verdicts[&short], (START + ms(700), not));
    assert_eq!(world.verdicts[&long], (START + ms(120_000), not));
    assert!(world.cluster.metadata_requests.len() < 200, "no hammering");
    let fresh = World::new(&config(), Cluster::new(1, 1));
    assert_eq!(world.producer.room(), fresh.producer.room());
}

#[test]
fn newer_records_wait_behind_those_that_are_not_routed_yet() {
    let mut world = World::new(&config(), Cluster::new(1, 1));
    world.say("0");
    while world.cluster.metadata_requests.is_empty() {
        world.poll_all();
        world.write_all();
        world.answer_all();
    }
    let second = world.say("1");
    assert_eq!(world.producer.place(second).unwrap().1, None);
    world.settle();
    assert_eq!(world.cluster.log("t", 0), ["0", "1"]);
}

#[test]
fn a_forbidden_topic_ends_its_records_at_once_and_no_others() {
    let mut world = World::new(&config(), Cluster::new(1, 1));
    world.cluster.create("bad", 9, 1);
    world.cluster.topics.get_mut("bad").unwrap().error = 29;
    let bad = world.send(Record::to("bad").value("x"));
    let good = world.say("a");
    world.settle();
    assert_eq!(world.verdict(bad), Some(Verdict::NotDelivered(Proof::Rejected { code: 29 })));
    world.assert_offset(good, 0);
    assert!(matches!(&world.notices[..], [Notice::TopicRefused { .. }]), "{:?}", world.notices);
    world.run(ms(299_000));
    assert_eq!(world.cluster.metadata_requests.len(), 1, "it is not asked for again");
    world.cluster.topics.get_mut("bad").unwrap().error = 0;
    let healed = world.send(Record::to("bad").value("y"));
    world.run_until_told(&[healed]);
    world.assert_offset(healed, 0);
}

#[test]
fn metadata_without_ids_means_produce_by_name() {
    let mut cluster = Cluster::new(1, 1);
    cluster.versions.insert(3, (0, 9));
    let mut world = World::new(&config(), cluster);
    let ticket = world.say("a");
    world.settle();
    world.assert_offset(ticket, 0);
    assert_eq!(world.cluster.seen[0].version, 11);
}

#[test]
fn brokers_of_kafka_2_1_are_spoken_to_in_their_versions() {
    let mut cluster = Cluster::new(2, 2);
    cluster.versions = [(0, (0, 7)), (3, (0, 7)), (18, (0, 2)), (22, (0, 1))].into();
    let mut world = World::new(&config(), cluster);
    let ticket = world.say("a");
    world.settle();
    world.assert_offset(ticket, 0);
    assert_eq!(world.cluster.seen[0].version, 7);
}

#[test]
fn brokers_without_a_version_in_common_are_named() {
    let mut cluster = Cluster::new(1, 1);
    cluster.versions.insert(0, (0, 2));
    let mut world = World::new(&config(), cluster);
    let ticket = world.say("a");
    world.run(ms(121_000));
    assert_eq!(world.verdict(ticket), Some(Verdict::NotDelivered(Proof::NeverOffered)));
    assert!(world.notices[0].to_string().contains("no version of Produce in common"));
}

#[test]
fn refused_producer_ids_are_asked_for_until_they_come() {
    let mut cluster = Cluster::new(1, 1);
    cluster.init_errors = [31, 31, 31].into();
    let mut world = World::new(&config(), cluster);
    let ticket = world.say("a");
    world.settle();
    assert_eq!(world.producer.why(ticket), Waiting::Partition(Why::Identity));
    world.run_until_told(&[ticket]);
    world.assert_offset(ticket, 0);
    assert!(world.now > START + ms(300) && world.now < START + ms(1500), "{:?}", world.now);
    let said = world.notices.iter().filter(|n| matches!(n, Notice::NoProducerId { .. })).count();
    assert_eq!(said, 1, "said once: {:?}", world.notices);
}

#[test]
fn throttling_is_obeyed_and_moves_no_deadline() {
    let mut world = World::new(&config(), Cluster::new(1, 1));
    let first = world.say("a");
    world.cluster.throttle_ms = 400_000;
    world.settle();
    world.assert_offset(first, 0);
    world.cluster.throttle_ms = 0;
    let second = world.say("b");
    world.settle();
    let until = START + ms(400_000);
    assert_eq!(world.producer.why(second), Waiting::Throttle { until });
    world.run(ms(121_000));
    let (at, verdict) = world.verdicts[&second];
    assert_eq!((at, verdict), (START + ms(120_000), Verdict::NotDelivered(Proof::NeverOffered)));
    world.run(ms(278_000));
    let third = world.say("c");
    world.run(ms(2_000));
    world.assert_offset(third, 1);
    assert!(world.verdicts[&third].0 >= until, "not before the broker may be spoken to");
}

#[test]
fn sizes_and_names_that_cannot_be_are_refused_at_once() {
    let mut world = World::new(&config().memory(2_000_000), Cluster::new(1, 1));
    let now = world.now;
    let mut refused = |record| world.producer.append(now, now, record).unwrap_err().why;
    assert_eq!(refused(Record::to("a b")), WhyRefused::BadTopic);
    assert_eq!(refused(Record::to("t").partition(u32::MAX)), WhyRefused::BadPartition);
    let large = vec![0; 1024 * 1024];
    assert!(matches!(refused(Record::to("t").value(large)), WhyRefused::TooLarge { .. }));
    assert_eq!(world.producer.stats().memory, 0, "nothing refused is kept");
    assert_eq!(world.producer.stats().counts.accepted, 0);
}

#[test]
fn cancelling_before_the_offer_proves_that_nothing_was_sent() {
    let config = config().linger(Duration::from_millis(500));
    let mut world = World::new(&config, Cluster::new(1, 1));
    let (a, b) = (world.say("a"), world.say("b"));
    world.settle();
    assert_eq!(world.producer.why(a), Waiting::Partition(Why::Linger));
    world.producer.cancel(world.now, a);
    world.settle();
    assert_eq!(world.verdict(a), Some(Verdict::NotDelivered(Proof::TakenBack)));
    world.run_until_told(&[b]);
    world.assert_offset(b, 0);
    world.producer.cancel(world.now, a);
    world.settle();
    assert_eq!(world.producer.why(a), Waiting::Gone);
}

#[test]
fn the_driver_is_told_when_it_breaks_the_contract() {
    let mut producer: Producer = Producer::new(&config(), 1, START).unwrap();
    let conn = RouteId(0);
    let unknown = Err(Misuse::UnknownConnection(conn));
    assert_eq!(producer.handle(START, Input::Connected { conn }), unknown);
    producer.append(START, START, Record::to("t")).unwrap();
    while producer.poll(START).is_some() {}
    let bytes = bytes::Bytes::from_static(b"x");
    let early = producer.handle(START, Input::Received { conn, bytes });
    assert_eq!(early, Err(Misuse::NotConnected(conn)));
    producer.handle(START, Input::Connected { conn }).unwrap();
    let twice = producer.handle(START, Input::Connected { conn });
    assert_eq!(twice, Err(Misuse::AlreadyConnected(conn)));
    let mut bufs = Vec::new();
    let n = producer.transmit(START, conn, 10, &mut bufs);
    assert_eq!(n, 10);
    let sent = producer.handle(START, Input::Sent { conn, n: 11 });
    assert_eq!(sent, Err(Misuse::SentTooMuch { conn, n: 11 }));
    let lost = Input::Lost { conn, handed: Handed::Unknown, why: Loss::Broken };
    producer.handle(START, lost.clone()).unwrap();
    assert_eq!(producer.handle(START, lost), unknown);
}

#[test]
fn time_that_goes_back_is_clamped_and_counted() {
    let mut world = World::new(&config(), Cluster::new(1, 1));
    world.cluster.script = [Script::Refuse(19)].into();
    let ticket = world.say("a");
    world.settle();
    assert_eq!(world.producer.poll(Instant::EPOCH), None);
    assert!(world.producer.deadline().unwrap().at > START);
    assert_eq!(world.producer.stats().clock_went_back, 1);
    world.run_until_told(&[ticket]);
    world.assert_offset(ticket, 0);
}

#[test]
fn the_same_inputs_give_the_same_outputs_and_a_clone_goes_its_own_way() {
    let run = |steps: u64| {
        let mut world = World::new(&config(), Cluster::new(3, 7));
        world.cluster.script = [Script::Refuse(19), Script::AppendAndCut, Script::Swallow].into();
        for step in 0..steps {
            world.send(Record::to("t").value(format!("{step}")));
            world.run(ms(step * 37));
        }
        world
    };
    let (one, other) = (run(20), run(20));
    assert_eq!(one.verdicts, other.verdicts);
    assert!(one.producer == other.producer);
    let copy = one.producer.clone();
    let mut one = one;
    one.say("more");
    assert!(one.producer != copy && copy == other.producer);
}

/// U2: a partition that is not there may still be added; meanwhile people are told what is wrong.
#[test]
fn who_waits_for_a_partition_that_is_not_there_hears_how_many_there_are() {
    let mut world = World::new(&config(), Cluster::new(1, 3));
    let ticket = world.send(Record::to("t").partition(3).value("a"));
    world.settle();
    let why = world.producer.why(ticket);
    assert_eq!(why, Waiting::NoPartition { partition: 3, partitions: 3 });
    let told = "it waits for partition 3, but its topic has 3, counted from 0";
    assert_eq!(why.to_string(), told);
    let never =
        world.send(Record::to("t").partition(9).value("a").deadline(Duration::from_secs(1)));
    world.run_until_told(&[never]);
    let why = Proof::NoPartition { partitions: 3 };
    assert_eq!(world.verdict(never), Some(Verdict::NotDelivered(why)));
    let led = world.cluster.partition("t", 2).leader;
    world
        .cluster
        .topics
        .get_mut("t")
        .unwrap()
        .partitions
        .push(support::broker::Partition::led_by(led));
    world.run_until_told(&[ticket]);
    world.assert_offset(ticket, 0);
    let beyond = Record::to("t").partition(u32::MAX);
    let refused = world.producer.append(world.now, world.now, beyond).unwrap_err();
    assert!(refused.why.to_string().ends_with("from 0 to 2147483647"), "{}", refused.why);
}

#[test]
fn a_closed_producer_holds_nothing() {
    let mut world = World::new(&config(), Cluster::new(2, 2));
    let ticket = world.say("a");
    world.run_until_told(&[ticket]);
    let stats = world.producer.stats();
    assert!(stats.connections > 0 && stats.memory > 0, "{stats:?}");
    world.producer.close(world.now, world.after(1_000));
    // The order to close connections is on its way; nobody said yet that they are over.
    while world.producer.poll(world.now).is_some() {}
    let stats = world.producer.stats();
    assert_eq!((stats.connections, stats.memory, stats.waiting), (0, 0, 0));
    assert_eq!(stats.counts.delivered, 1, "what happened stays");
}
