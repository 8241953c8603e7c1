//! Attacks one by one.

use core::time::Duration;

use candor_core::{Proof, Verdict};
use candor_proto::{Config, Fault, Notice};

use super::broker::{Brokers, METADATA, PRODUCE, PRODUCER_ID};
use super::net::{MS, Net, SECOND};

fn config(seeds: &[&str]) -> Config {
    Config::new(seeds.iter().copied()).linger(Duration::ZERO)
}

fn brokers(nodes: i32, partitions: usize) -> Brokers {
    let mut brokers = Brokers::new(nodes);
    brokers.create("t", partitions);
    brokers
}

/// A net in which each partition of `t` was written to.
fn warm(seeds: &[&str], nodes: i32, partitions: usize) -> Net {
    let mut net = Net::new(&config(seeds), brokers(nodes, partitions));
    for partition in 0..partitions as i32 {
        let ticket = net.send("t", Some(partition), 10 * SECOND).unwrap();
        assert!(net.delivered(ticket));
    }
    net
}

fn faults(net: &Net) -> Vec<&Fault> {
    let why = net.notices.iter().filter_map(|notice| match notice {
        Notice::ConnectionFailed { why, .. } => Some(why),
        Notice::Partition { .. }
        | Notice::NoProducerId { .. }
        | Notice::TopicRefused { .. }
        | Notice::TopicRecreated { .. } => None,
    });
    why.collect()
}

/// L1, fault 131: who greets, and then gives no producer id, is not waited for alone.
#[test]
fn a_broker_that_is_silent_about_producer_ids_does_not_hold_up_the_others() {
    let mut net = Net::new(&config(&["b1:9092", "b2:9092"]), brokers(3, 3));
    net.brokers.node(1).mute.insert(PRODUCER_ID);
    let ticket = net.send("t", Some(1), 5 * SECOND).unwrap();
    assert!(net.delivered(ticket), "b2 and b3 have ids");
    assert!(net.brokers.node(1).count(PRODUCER_ID) > 0, "it was asked first");
}

/// The same where nobody else is there: it is asked once at a time, and its answer counts.
#[test]
fn a_lone_broker_may_take_its_time_with_a_producer_id() {
    let mut net = Net::new(&config(&["b1:9092"]), brokers(1, 1));
    net.brokers.node(1).mute.insert(PRODUCER_ID);
    let ticket = net.send("t", Some(0), 100 * SECOND).unwrap();
    net.run(29 * SECOND);
    assert!(net.brokers.node(1).count(PRODUCER_ID) <= 15, "each two seconds at most");
    net.brokers.node(1).mute.clear();
    assert!(net.delivered(ticket));
}

/// L3: nobody is dialled for what nobody needs, though no request ever got as far as to fail.
#[test]
fn nobody_is_dialled_when_the_last_record_ended_while_all_were_away() {
    for hangs in [false, true] {
        let mut net = warm(&["b1:9092", "b2:9092"], 2, 2);
        for node in net.brokers.nodes.values_mut() {
            (node.refuses, node.hangs) = (!hangs, hangs);
        }
        ["b1", "b2"].into_iter().for_each(|host| net.cut(host));
        let ticket = net.send("t", Some(0), 20 * SECOND).unwrap();
        let never = Verdict::NotDelivered(Proof::NeverOffered);
        assert_eq!(net.verdict(ticket), never);
        net.run(15 * SECOND);
        let (dialled, wakes) = (net.connects.len(), net.wakes);
        net.run(3_600 * SECOND);
        assert_eq!(net.connects.len(), dialled, "hangs: {hangs}");
        assert!(net.wakes - wakes < 10, "{}", net.wakes - wakes);
        for node in net.brokers.nodes.values_mut() {
            (node.refuses, node.hangs) = (false, false);
        }
        let ticket = net.send("t", Some(0), SECOND).unwrap();
        assert!(net.delivered(ticket), "who is needed is dialled");
    }
}

/// The same before anything is known.
#[test]
fn nobody_is_dialled_for_an_id_when_the_first_record_ended() {
    let mut net = Net::new(&config(&["b1:9092"]), brokers(1, 1));
    net.brokers.node(1).refuses = true;
    let ticket = net.send("t", Some(0), SECOND).unwrap();
    assert!(!net.delivered(ticket));
    net.run(2 * SECOND);
    let dialled = net.connects.len();
    net.run(3_600 * SECOND);
    assert_eq!(net.connects.len(), dialled);
    net.brokers.node(1).refuses = false;
    let ticket = net.send("t", Some(0), SECOND).unwrap();
    assert!(net.delivered(ticket));
}

/// Who waits for an id, records or not, is not given up.
#[test]
fn an_id_that_is_waited_for_is_asked_for_while_all_are_away() {
    let mut net = Net::new(&config(&["b1:9092"]), brokers(1, 1));
    net.brokers.node(1).refuses = true;
    net.producer.prepare(net.at());
    net.run(30 * SECOND);
    net.brokers.node(1).refuses = false;
    net.run(2 * SECOND);
    assert!(net.producer.is_prepared());
}

/// L1: a second opinion about one topic does not keep another from its first answer.
#[test]
fn a_new_topic_does_not_wait_for_a_second_opinion_that_nobody_gives() {
    let mut brokers = brokers(3, 1);
    brokers.partition("t", 0).epoch = 7;
    let mut net = Net::new(&config(&["b1:9092"]), brokers);
    let ticket = net.send("t", Some(0), 10 * SECOND).unwrap();
    assert!(net.delivered(ticket));
    net.brokers.create("u", 1);
    for node in [2, 3] {
        net.brokers.node(node).hangs = true;
    }
    // S21: one broker says that the leader has a lower epoch.
    net.brokers.partition("t", 0).epoch = 6;
    net.run(301 * SECOND);
    net.send("t", Some(0), 100 * SECOND).unwrap();
    net.run(400 * MS);
    let ticket = net.send("u", Some(0), 3 * SECOND).unwrap();
    assert!(net.delivered(ticket), "b1 knows it");
}

/// KIP-899: where all brokers that are known hang, the bootstrap addresses have their turn soon.
#[test]
fn bootstrap_addresses_have_their_turn_when_every_broker_hangs() {
    let mut net = Net::new(&config(&["seed:9092"]), brokers(3, 3));
    net.brokers.aliases.insert("seed".to_owned(), 1);
    for partition in 0..3 {
        let ticket = net.send("t", Some(partition), SECOND).unwrap();
        assert!(net.delivered(ticket));
    }
    net.run(700 * SECOND);
    assert!(net.links.is_empty(), "idle connections are closed");
    // The cluster moves; nobody answers at the old addresses, nor refuses.
    for (id, node) in &mut net.brokers.nodes {
        node.host = format!("c{id}");
    }
    let ticket = net.send("t", Some(2), 3 * SECOND).unwrap();
    assert!(net.delivered(ticket));
}

/// S17, fault 91: ten minutes are ten minutes, though each answer of a burst says so.
#[test]
fn silence_that_is_asked_for_several_times_at_once_counts_once() {
    let mut net = warm(&["b1:9092"], 1, 5);
    net.brokers.node(1).throttle_ms = i32::MAX;
    let conn = *net.links.keys().next_back().unwrap();
    for partition in 0..5 {
        net.send("t", Some(partition), 7_200 * SECOND).unwrap();
        net.poll();
        net.write(conn);
    }
    (0..4).for_each(|_| assert!(net.serve(conn), "five requests are there"));
    net.brokers.node(1).mute.insert(PRODUCE);
    net.run(629 * SECOND);
    assert_eq!(faults(&net), [&Fault::Unasked; 0], "it is obeyed for long enough");
    net.brokers.node(1).throttle_ms = 0;
    net.run(2 * SECOND);
    assert!(faults(&net).contains(&&Fault::RequestTimeout), "{:?}", net.notices);
}

/// L3: an hour of failures of any kind costs a bounded number of tries, and no memory.
#[test]
fn an_hour_of_failures_costs_little() {
    let mut net = warm(&["b1:9092", "b2:9092"], 2, 2);
    let before = format!("{:?}", net.producer).len();
    for how in 0..5 {
        for node in net.brokers.nodes.values_mut() {
            (node.refuses, node.hangs, node.leaves) = (how == 0, how == 1, how == 2);
            node.mute = [[PRODUCE, METADATA], [22, 18]][how % 2].into();
            node.mute.retain(|_| how > 2);
        }
        ["b1", "b2"].into_iter().for_each(|host| net.cut(host));
        let (dialled, wakes) = (net.connects.len(), net.wakes);
        let ticket = net.send("t", Some(0), 3_600 * SECOND).unwrap();
        net.run(3_590 * SECOND);
        let (dialled, wakes) = (net.connects.len() - dialled, net.wakes - wakes);
        assert!(dialled < 4 * 3_800, "{how}: {dialled} for four addresses, each second");
        assert!(wakes < 30_000, "{how}: {wakes}");
        net.run(20 * SECOND);
        assert!(net.sent[&ticket].verdict.is_some());
        net.notices.clear();
    }
    let after = format!("{:?}", net.producer).len();
    assert!(after < 2 * before, "{before} to {after}");
}

/// L1: a broker that does not hear of the cluster any more answers, and is wrong for ever; it is not
/// the only one that is asked.
#[test]
fn a_broker_that_knows_less_than_others_is_not_asked_alone() {
    for (seeds, code) in [(&["b1:9092"], 3), (&["b1:9092"], 5), (&["b2:9092"], 3)] {
        let mut net = Net::new(&config(seeds), brokers(3, 3));
        net.brokers.node(1).topic_error = code;
        let ticket = net.send("t", Some(2), 5 * SECOND).unwrap();
        assert!(net.delivered(ticket), "{seeds:?} {code}");
        net.brokers.create("u", 1);
        let ticket = net.send("u", None, 5 * SECOND).unwrap();
        assert!(net.delivered(ticket), "{seeds:?} {code}");
    }
}

/// The same for what it cannot say: topic ids, which another broker insists on.
#[test]
fn topic_ids_are_asked_of_who_can_tell_them() {
    let mut net = Net::new(&config(&["b1:9092"]), brokers(3, 3));
    net.brokers.node(1).versions.insert(METADATA, (1, 9));
    net.brokers.node(2).versions.insert(PRODUCE, (13, 13));
    let tickets = [0, 1, 2].map(|it| net.send("t", Some(it), 5 * SECOND).unwrap());
    tickets.into_iter().for_each(|ticket| assert!(net.delivered(ticket), "{ticket}"));
}
