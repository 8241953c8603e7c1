//! Random faults under many seeds, and many partitions at once.

#![allow(clippy::unwrap_used, clippy::panic)]

mod dice;
mod support;

use core::time::Duration;
use std::collections::BTreeMap;

use bytes::Bytes;
use candor_core::{Proof, Resolution, RouteId, Ticket, Verdict};
use candor_proto::{Config, Handed, Input, Loss, Output, Producer, Record};
use dice::Dice;
use support::{Cluster, START, Script, World, config, ms};

impl Dice {
    fn script(&mut self) -> Script {
        match self.below(16) {
            0 => Script::Swallow,
            1 => Script::Ignore,
            2 | 3 => Script::AppendAndCut,
            4 => Script::Contradict,
            5 => Script::AnswerTwice,
            6 => Script::AnswerLess,
            7 => Script::Garbage,
            8 => Script::WrongCorrelation,
            9 => Script::Refuse(19),
            10 => Script::Refuse(7),
            11 => Script::Refuse(6),
            12 => Script::Refuse(87),
            13 => Script::Refuse(29),
            14 => Script::Refuse(-1),
            _ => Script::Honest,
        }
    }
}

fn disturb(world: &mut World, dice: &mut Dice) {
    let host = format!("b{}", 1 + dice.below(3));
    match dice.below(12) {
        0 => world.cut(&host),
        1 => {
            let partition = world.cluster.partition("t", dice.below(4) as usize);
            partition.leader = 1 + dice.below(3) as i32;
            partition.epoch += 1;
        }
        2 => {
            world.down.insert(host.clone());
            world.cut(&host);
        }
        3 => {
            world.mute.insert(host);
        }
        4 => {
            world.stuck.insert(host);
        }
        5 => {
            world.down.remove(&host);
            world.mute.remove(&host);
            world.stuck.remove(&host);
            world.cut(&host);
        }
        6 => world.cluster.throttle_ms = (dice.below(3) * 700) as i32,
        _ => {
            let script = dice.script();
            world.cluster.script.push_back(script);
        }
    }
}

fn calm(world: &mut World) {
    world.down.clear();
    world.mute.clear();
    world.stuck.clear();
    world.cluster.script.clear();
    world.cluster.throttle_ms = 0;
    (1..=3).for_each(|node| world.cut(&format!("b{node}")));
}

fn judge(world: &World, sent: &BTreeMap<Ticket, (usize, String)>) {
    let mut place: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for partition in 0..4 {
        for (offset, value) in world.cluster.log("t", partition).iter().enumerate() {
            assert_eq!(place.insert(value, (partition, offset)), None, "{value} twice");
        }
    }
    let mut last = [None; 4];
    for (ticket, (partition, value)) in sent {
        let found = place.get(value.as_str()).copied();
        let (_, verdict) = world.verdicts[ticket];
        match verdict {
            Verdict::Delivered { offset } => {
                let (p, at) = found.unwrap_or_else(|| panic!("{value} is not in the log"));
                assert_eq!(p, *partition);
                assert!(offset.is_none_or(|offset| offset.get() == at as i64), "{value}");
                assert!(last[p] < Some(at), "{value} stands before its predecessor");
                last[p] = Some(at);
            }
            Verdict::NotDelivered(_) => assert_eq!(found, None, "{value} is in the log"),
            Verdict::Unknown(_) => match world.resolutions[ticket].1 {
                Resolution::Delivered { .. } => assert!(found.is_some(), "{value}"),
                Resolution::NotDelivered(_) => assert_eq!(found, None, "{value}"),
                Resolution::Never { .. } => {}
            },
        }
    }
}

fn run(seed: u64) -> [u64; 3] {
    let mut dice = Dice(seed);
    let config = Config::new(["b1:9092", "b2:9092"])
        .linger(Duration::from_millis(dice.below(3) * 4))
        .batch_size([100, 1_000, 100_000][dice.below(3) as usize])
        .memory([6_000, 100_000][dice.below(2) as usize]);
    let mut world = World::new(&config, Cluster::new(3, 4));
    world.chunk = [3, 50, 1 << 16][dice.below(3) as usize];
    let mut sent = BTreeMap::new();
    for step in 0..250 {
        if dice.below(4) == 0 {
            disturb(&mut world, &mut dice);
        }
        let partition = dice.below(4) as usize;
        let value = format!("{step}");
        let time = Duration::from_millis([200, 3_000, 120_000][dice.below(3) as usize]);
        let record = Record::to("t").partition(partition as u32).deadline(time).value(&value);
        if let Ok(ticket) = world.producer.append(world.now, world.now, record) {
            sent.insert(ticket, (partition, value));
        }
        if dice.below(20) == 0
            && let Some((ticket, _)) = sent.last_key_value()
        {
            world.producer.cancel(world.now, *ticket);
        }
        world.run(ms([0, 1, 7, 100, 1_500][dice.below(5) as usize]));
    }
    calm(&mut world);
    world.run(ms(60_000));
    let fresh = world.say("fresh");
    world.run(ms(3_000));
    assert!(matches!(world.verdict(fresh), Some(Verdict::Delivered { .. })), "seed {seed}");
    world.producer.close(world.now, world.after(10_000));
    world.run(ms(10_000));
    assert!(world.closed.is_some());
    judge(&world, &sent);
    let counts = world.producer.stats().counts;
    assert_eq!(counts.refused_by_lane, 0);
    assert_eq!(counts.accepted, counts.delivered + counts.not_delivered + counts.unknown);
    assert_eq!(counts.unknown, counts.resolved);
    assert_eq!(world.producer.stats().waiting, 0);
    [counts.delivered, counts.not_delivered, counts.unknown]
}

#[test]
fn verdicts_are_true_whatever_happens() {
    let mut total = [0; 3];
    for seed in 0..150 {
        let counts = run(seed);
        total.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    assert!(total.iter().all(|sum| *sum > 100), "every kind of verdict was seen: {total:?}");
}

#[test]
fn ten_thousand_partitions_are_served_in_turn() {
    let mut world = World::new(&config(), Cluster::new(3, 10_000));
    let tickets: Vec<_> = (0..10_000)
        .map(|partition| world.send(Record::to("t").partition(partition).value("x")))
        .collect();
    world.settle();
    assert_eq!(world.now, START);
    assert!(tickets.iter().all(|t| matches!(world.verdict(*t), Some(Verdict::Delivered { .. }))));
    let counts = world.producer.stats().counts;
    assert_eq!((counts.offers, world.cluster.id_requests), (10_000, 1));
    assert!(counts.requests < 30, "{} requests", counts.requests);
    let polls = world.polls;
    let one = world.send(Record::to("t").partition(7).value("y"));
    world.settle();
    world.assert_offset(one, 1);
    assert!(world.polls - polls < 20, "one record costs as much as before");
}

#[test]
fn no_partition_starves_while_others_always_have_work() {
    let config = config().max_request_size(3_000).batch_size(500);
    let mut world = World::new(&config, Cluster::new(1, 100));
    for _ in 0..10 {
        for partition in 0..100 {
            world.send(Record::to("t").partition(partition).value("x".repeat(400)));
        }
    }
    world.settle();
    let mut offered = [0_i32; 100];
    for seen in &world.cluster.seen {
        seen.batches.iter().for_each(|batch| offered[batch.1 as usize] += 1);
        let (least, most) = (offered.iter().min().unwrap(), offered.iter().max().unwrap());
        // A partition whose gate is closed stays one behind for a round.
        assert!(most - least <= 2, "{least}..{most}");
    }
    assert_eq!(offered, [10; 100]);
}

#[test]
fn any_bytes_end_the_connection_and_nothing_else() {
    for seed in 0..2_000 {
        let mut dice = Dice(seed);
        let mut producer: Producer = Producer::new(&config(), seed, START).unwrap();
        let ticket = producer.append(START, START, Record::to("t").value("x")).unwrap();
        let mut now = START;
        let mut verdict = None;
        for _ in 0..200 {
            while let Some(output) = producer.poll(now) {
                match output {
                    Output::Connect { conn, .. } => {
                        producer.handle(now, Input::Connected { conn }).unwrap();
                        producer.transmit(now, conn, 1 << 20, &mut Vec::new());
                        let bytes = noise(&mut dice);
                        producer.handle(now, Input::Received { conn, bytes }).unwrap();
                    }
                    Output::Disconnect { conn, .. } => lose(&mut producer, conn, now),
                    Output::Settled(settlement) => {
                        verdict = settlement.settled.verdicts().next();
                    }
                    Output::Notice(_) | Output::Flushed(_) | Output::Closed => {}
                }
            }
            let Some(deadline) = producer.deadline() else { break };
            now = deadline.at;
        }
        let expected = Verdict::NotDelivered(Proof::NeverOffered);
        assert!(verdict.is_none_or(|told| told == (ticket, expected)), "{verdict:?}");
    }
}

#[test]
fn a_driver_that_does_anything_gets_errors_and_never_a_panic() {
    for seed in 0..500 {
        let mut dice = Dice(seed);
        let config = config().memory(10_000).deadline(Duration::from_secs(5));
        let mut producer: Producer = Producer::new(&config, seed, START).unwrap();
        let (mut now, mut told) = (START, BTreeMap::new());
        for _ in 0..300 {
            let conn = RouteId(dice.below(4));
            match dice.below(12) {
                0 => now = now + ms(dice.below(3_000)),
                1 => now = START + ms(dice.below(1_000)),
                2 => _ = producer.append(now, now, Record::to("t").value("x")),
                3 => producer.cancel(now, Ticket(dice.below(30))),
                4 => _ = producer.flush(now),
                5 => _ = producer.handle(now, Input::Connected { conn }),
                6 => {
                    let bytes = noise(&mut dice);
                    _ = producer.handle(now, Input::Received { conn, bytes });
                }
                7 => _ = producer.handle(now, Input::Sent { conn, n: dice.below(60) as usize }),
                8 if dice.below(4) == 0 => lose(&mut producer, conn, now),
                9 => {
                    let budget = dice.below(50) as usize;
                    assert!(producer.transmit(now, conn, budget, &mut Vec::new()) <= budget);
                }
                10 if dice.below(50) == 0 => producer.close(now, now + ms(dice.below(1_000))),
                _ => _ = producer.why(Ticket(dice.below(30))),
            }
            while let Some(output) = producer.poll(now) {
                let Output::Settled(settlement) = output else { continue };
                for (ticket, verdict) in settlement.settled.verdicts() {
                    assert_eq!(told.insert(ticket, verdict), None);
                }
            }
        }
        producer.close(now, now);
        now = now + ms(10_000);
        let last: Vec<_> = core::iter::from_fn(|| producer.poll(now)).collect();
        let in_last = last.iter().filter_map(|output| match output {
            Output::Settled(settlement) => Some(settlement.settled.verdicts().count()),
            Output::Connect { .. }
            | Output::Disconnect { .. }
            | Output::Notice(_)
            | Output::Flushed(_)
            | Output::Closed => None,
        });
        let verdicts = told.len() + in_last.sum::<usize>();
        assert_eq!(producer.stats().counts.accepted, verdicts as u64, "seed {seed}");
        assert_eq!(producer.deadline(), None);
    }
}

fn lose(producer: &mut Producer, conn: RouteId, now: candor_core::Instant) {
    let lost = Input::Lost { conn, handed: Handed::Unknown, why: Loss::Asked };
    // Whoever does anything may report an end twice.
    let _ = producer.handle(now, lost);
}

/// Bytes that look more or less like an answer to the greeting.
fn noise(dice: &mut Dice) -> Bytes {
    let length = dice.below(40) as usize;
    let mut bytes: Vec<u8> = (0..length).map(|_| dice.below(256) as u8).collect();
    if dice.below(3) > 0 && length >= 8 {
        bytes[..8].copy_from_slice(&[0, 0, 0, (length - 4) as u8, 0, 0, 0, 0]);
    }
    if dice.below(2) == 0 && length >= 14 {
        bytes[8..14].fill(0);
    }
    bytes.into()
}
