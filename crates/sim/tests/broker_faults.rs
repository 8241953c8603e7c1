//! What the vectors do not reach: watermarks that lag, leaders that do not know of their fall, replicas that
//! lie behind, requests of several partitions, stale metadata; and a safety property over random schedules.

use candor_sim::broker::*;

const ONE: NodeId = NodeId(1);
const TWO: NodeId = NodeId(2);
const THREE: NodeId = NodeId(3);
const ALL: [NodeId; 3] = [ONE, TWO, THREE];

fn call(node: NodeId) -> Call {
    Call { node, now: 0, acks: ACKS_ALL, version: 12 }
}

fn batch(first: i32, count: i32) -> Batch<u32> {
    Batch::new(7, 0, first, count, 0, 0)
}

/// Replicas 1 to 3 with `(0, first, 1)` for each sequence, all committed and known to be.
fn written(records: i32) -> Partition<u32> {
    let mut partition = Partition::new(Profile::V4_4, &ALL);
    for first in 0..records {
        assert!(matches!(partition.produce(call(ONE), &batch(first, 1)), Outcome::Wait(_)));
        partition.settle(0);
    }
    partition
}

fn wait(outcome: Outcome) -> Option<Wait> {
    match outcome {
        Outcome::Wait(wait) => Some(wait),
        Outcome::Answer(_) => None,
    }
}

fn answer(outcome: Outcome) -> Option<Answer> {
    match outcome {
        Outcome::Answer(answer) => Some(answer),
        Outcome::Wait(_) => None,
    }
}

fn offsets(partition: &Partition<u32>) -> Vec<i64> {
    partition.committed().map(|record| record.offset).collect()
}

#[test]
fn after_a_failover_less_is_served_than_was_acknowledged() {
    let mut partition = written(1);
    let pending = wait(partition.produce(call(ONE), &batch(1, 1))).unwrap();
    assert!(partition.fetch(TWO, 0).unwrap());
    assert_eq!(partition.progress(&pending), Progress::Waiting);
    assert!(partition.fetch(THREE, 0).unwrap());
    assert!(matches!(
        partition.progress(&pending),
        Progress::Answer(Answer { code: 0, base_offset: 1, .. })
    ));
    assert_eq!(offsets(&partition), [0, 1]);
    partition.stop(ONE, Stop::Crash);
    partition.elect(TWO, Deposed::Informed).unwrap();
    assert_eq!(offsets(&partition), [0]);
    assert!(partition.fetch(THREE, 0).unwrap());
    assert_eq!(offsets(&partition), [0, 1]);
}

#[test]
fn an_answer_that_waits_does_not_survive_there_and_back_but_a_mere_new_epoch() {
    let mut partition = written(1);
    let pending = wait(partition.produce(call(ONE), &batch(1, 1))).unwrap();
    partition.elect(ONE, Deposed::Informed).unwrap();
    assert_eq!((partition.leader_epoch(), partition.progress(&pending)), (1, Progress::Waiting));
    let mut moved = partition.clone();
    moved.elect(TWO, Deposed::Informed).unwrap();
    moved.settle(0);
    moved.elect(ONE, Deposed::Informed).unwrap();
    moved.settle(0);
    // Offset 1 never came to 2, so that it is free again: 0 would be a lie.
    assert_eq!(moved.end_offset(ONE), Some(1));
    assert!(matches!(
        moved.progress(&pending),
        Progress::Answer(Answer { code: 6, base_offset: 1, .. })
    ));
    partition.settle(0);
    assert!(matches!(
        partition.progress(&pending),
        Progress::Answer(Answer { code: 0, base_offset: 1, .. })
    ));
}

#[test]
fn a_follower_joins_only_with_all_that_its_leader_began_with() {
    let mut partition = written(1);
    partition.leave_isr(THREE).unwrap();
    let _ = wait(partition.produce(call(ONE), &batch(1, 1))).unwrap();
    partition.fetch(TWO, 0).unwrap();
    assert_eq!(partition.high_watermark(ONE), Some(2));
    // 3 has offset 0 alone, which is where the watermark of 2 lags; it must not count as in sync.
    partition.stop(ONE, Stop::Crash);
    partition.elect(TWO, Deposed::Informed).unwrap();
    assert_eq!(partition.join_isr(THREE), Err(Refused::NotInSync));
    partition.fetch(THREE, 0).unwrap();
    assert_eq!(partition.join_isr(THREE), Ok(()));
}

#[test]
fn a_leader_that_does_not_know_of_its_fall_commits_nothing() {
    let mut partition = written(1);
    partition.elect(TWO, Deposed::Unaware).unwrap();
    let zombie = wait(partition.produce(call(ONE), &batch(1, 3))).unwrap();
    let one = Call { acks: ACKS_LEADER, ..call(ONE) };
    assert_eq!(answer(partition.produce(one, &batch(4, 1))).unwrap().base_offset, 4);
    partition.settle(0);
    // Nor when nobody is left to hold it up.
    partition.leave_isr(THREE).unwrap();
    partition.remove_replica(THREE).unwrap();
    assert_eq!(partition.progress(&zombie), Progress::Waiting);
    assert_eq!(zombie.timed_out().base_offset, 1);
    assert_eq!(answer(partition.produce(call(TWO), &batch(1, 1))).unwrap().base_offset, 1);
    assert_eq!(partition.fetch(ONE, 0), Err(Refused::Leads));
    partition.learn(ONE).unwrap();
    let Progress::Answer(answer) = partition.progress(&zombie) else { panic!("an answer is due") };
    assert_eq!((answer.code, answer.base_offset), (6, 1));
    assert_eq!(answer.current_leader, Some(LeaderHint { node: TWO, epoch: 1 }));
    // Its tail goes with the first fetch, and so does what it remembered of it.
    assert_eq!(partition.end_offset(ONE), Some(5));
    partition.catch_up(ONE, 0).unwrap();
    assert_eq!(partition.entries(ONE), partition.entries(TWO));
    assert_eq!(partition.known(ONE, 7), partition.known(TWO, 7));
}

#[test]
fn truncation_reloads_memory_from_the_last_snapshot() {
    let mut partition = written(3);
    partition.roll(ONE);
    partition.elect(TWO, Deposed::Unaware).unwrap();
    let _ = partition.produce(call(ONE), &batch(3, 1));
    let _ = partition.produce(call(ONE), &batch(4, 1));
    partition.learn(ONE).unwrap();
    partition.fetch(ONE, 0).unwrap();
    // The snapshot of the roll kept the newest of three.
    let firsts = |node| {
        partition.known(node, 7).unwrap().batches().iter().map(|b| b.first).collect::<Vec<_>>()
    };
    assert_eq!(firsts(ONE), [2]);
    assert_eq!(firsts(TWO), [0, 1, 2]);
}

#[test]
fn a_replica_behind_the_log_start_begins_anew() {
    let mut partition = written(1);
    partition.stop(THREE, Stop::Clean);
    let other = |first| Batch::new(8, 0, first, 1, 0, 0);
    for first in 0..3 {
        let _ = partition.produce(call(ONE), &other(first));
        partition.settle(0);
    }
    partition.delete_records(3).unwrap();
    partition.start(THREE, 0);
    partition.catch_up(THREE, 0).unwrap();
    let held: Vec<i64> = partition.entries(THREE).iter().map(|entry| entry.base_offset).collect();
    assert_eq!((held, partition.start_offset(THREE)), (vec![3], Some(3)));
    assert_eq!(partition.known(THREE, 7), None);
    assert_eq!(partition.known(THREE, 8).unwrap().newest().first, 2);
    assert!(partition.known(TWO, 7).is_some());
}

#[test]
fn unclean_elections_lose_what_was_acknowledged() {
    let mut partition = written(1);
    partition.leave_isr(THREE).unwrap();
    let pending = wait(partition.produce(call(ONE), &batch(1, 1))).unwrap();
    partition.fetch(TWO, 0).unwrap();
    assert!(matches!(partition.progress(&pending), Progress::Answer(Answer { code: 0, .. })));
    assert_eq!(partition.elect(THREE, Deposed::Informed), Err(Refused::NotInSync));
    partition.elect_unclean(THREE, Deposed::Informed).unwrap();
    partition.settle(0);
    assert_eq!(partition.log().len(), 1);
    assert_eq!(partition.isr().len(), 3);
    assert_eq!(partition.entries(ONE), partition.entries(THREE));
}

#[test]
fn answers_that_wait_end_with_their_directory_broker_or_topic() {
    let mut partition = written(1);
    let pending = wait(partition.produce(call(ONE), &batch(1, 1))).unwrap();
    assert_eq!((pending.vanished().code, pending.vanished().base_offset), (3, 1));
    let mut failed = partition.clone();
    failed.fail_log_dir(ONE);
    assert!(matches!(
        failed.progress(&pending),
        Progress::Answer(Answer { code: 56, base_offset: 1, .. })
    ));
    let refused = answer(failed.produce(call(ONE), &batch(2, 1))).unwrap();
    assert_eq!((refused.code, refused.base_offset), (56, -1));
    partition.stop(ONE, Stop::Crash);
    assert_eq!(partition.progress(&pending), Progress::Gone);
}

#[test]
fn codes_can_be_scripted_before_and_after_the_append() {
    let mut partition = Partition::new(Profile::V4_4, &[ONE]);
    partition.script(Scripted::Before(2));
    partition.script(Scripted::After { code: 56, show_offset: true });
    partition.refuse_with(Some(29));
    assert_eq!(answer(partition.produce(call(ONE), &batch(0, 1))).unwrap().code, 29);
    partition.refuse_with(None);
    assert_eq!(answer(partition.produce(call(ONE), &batch(0, 1))).unwrap().code, 2);
    assert_eq!(partition.end_offset(ONE), Some(0));
    let after = answer(partition.produce(call(ONE), &batch(0, 1))).unwrap();
    assert_eq!((after.code, after.base_offset, partition.end_offset(ONE)), (56, 0, Some(1)));
    assert_eq!(answer(partition.produce(call(ONE), &batch(0, 1))).unwrap().code, 0);
}

fn part(partition: i32, batch: Batch<u32>) -> ProducePart<u32> {
    ProducePart { topic: TopicRef::Name("t".into()), partition, batch }
}

fn request(parts: Vec<ProducePart<u32>>) -> ProduceRequest<u32> {
    ProduceRequest { acks: ACKS_ALL, timeout_ms: 100, version: 9, parts }
}

#[test]
fn one_slow_partition_holds_back_the_whole_answer() {
    let mut cluster = Cluster::new(Profile::V4_4, &[ONE, TWO], 0);
    cluster.create_topic("t", 1, 1);
    assert!(cluster.add_partitions("t", 2, 2));
    // P0 has one replica, P2 two and node 1 as leader.
    cluster.stall(TWO);
    let Reply::Waiting(id) =
        cluster.produce(ONE, 0, request(vec![part(0, batch(0, 1)), part(2, batch(0, 1))]))
    else {
        panic!("P2 is not replicated")
    };
    cluster.replicate(50);
    assert_eq!(cluster.completed(99), []);
    assert_eq!(cluster.next_timer(), 100);
    let done = cluster.completed(100);
    let codes: Vec<(i32, i16, i64)> = done[0]
        .1
        .iter()
        .map(|part| (part.partition, part.answer.code, part.answer.base_offset))
        .collect();
    assert_eq!((done[0].0, codes), (id, vec![(2, 7, 0), (0, 0, 0)]));
    // A topic deleted under a waiting request, and a broker that goes down with one.
    let Reply::Waiting(_) = cluster.produce(ONE, 200, request(vec![part(2, batch(1, 1))])) else {
        panic!()
    };
    let mut crashed = cluster.clone();
    crashed.stop(ONE, Stop::Crash);
    assert_eq!(crashed.completed(1_000), []);
    cluster.delete_topic("t");
    let answer = cluster.completed(201).remove(0).1.remove(0).answer;
    assert_eq!((answer.code, answer.base_offset), (3, 1));
}

#[test]
fn a_transactional_batch_spoils_its_whole_request() {
    let mut cluster = Cluster::new(Profile::V4_4, &[ONE], 0);
    cluster.create_topic("t", 2, 1);
    let transactional = Batch { attributes: 0x10, ..batch(0, 1) };
    let Reply::Answers(answers) =
        cluster.produce(ONE, 0, request(vec![part(0, batch(0, 1)), part(1, transactional)]))
    else {
        panic!("nothing waits")
    };
    assert!(answers.iter().all(|part| part.answer.code == 53));
    assert_eq!(cluster.partition("t", 0).unwrap().entries(ONE), []);
}

#[test]
fn a_broker_that_is_cut_off_tells_old_metadata_and_runs_out_of_ids() {
    let mut cluster = Cluster::<u32>::new(Profile::V4_4, &[ONE, TWO], 0);
    cluster.create_topic("t", 1, 2);
    let pids: Vec<i64> = [ONE, TWO, ONE]
        .iter()
        .map(|node| cluster.init_producer_id(*node, None, -1, -1).unwrap().0)
        .collect();
    assert_eq!(pids, [0, 1_000, 1]);
    let old = cluster.metadata(ONE).unwrap();
    cluster.cut_off(ONE);
    cluster.create_topic("u", 1, 1);
    assert_eq!(cluster.metadata(ONE), Some(old));
    let new = cluster.metadata(TWO).unwrap();
    assert_eq!((new.brokers.as_slice(), new.topics.len()), (&[TWO][..], 2));
    assert_eq!(new.topics[0].partitions[0].leader, Some(TWO));
    let left = (0..2_000).filter(|_| cluster.init_producer_id(ONE, None, -1, -1).is_ok()).count();
    assert_eq!(left, 998);
    assert_eq!(cluster.init_producer_id(ONE, None, -1, -1), Err(14));
    cluster.reconnect(ONE);
    assert_eq!(cluster.metadata(ONE), cluster.metadata(TWO));
    assert_eq!(cluster.init_producer_id(ONE, None, -1, -1), Ok((2_000, 0)));
    cluster.stop(TWO, Stop::Clean);
    assert_eq!(cluster.metadata(TWO), None);
    assert_eq!(cluster.produce(TWO, 0, request(vec![])), Reply::Close);
}

/// One random step of a partition of three replicas.
fn shake(partition: &mut Partition<u32>, rng: &mut fastrand::Rng) {
    let node = *rng.choice(ALL).as_ref().unwrap_or(&ONE);
    let old = if rng.bool() { Deposed::Informed } else { Deposed::Unaware };
    // Steps that cannot happen now change nothing; that is fine here.
    match rng.u8(0..12) {
        0 => drop(partition.elect(node, old)),
        1 if rng.u8(0..4) == 0 => {
            partition.stop(node, if rng.bool() { Stop::Clean } else { Stop::Crash })
        }
        2 | 3 => partition.start(node, 0),
        4 => drop(partition.learn(node)),
        5 => drop(partition.leave_isr(node)),
        6 => drop(partition.join_isr(node)),
        7 => partition.roll(node),
        _ => drop(partition.fetch(node, 0)),
    }
}

/// A2: what was acknowledged with acks=all is in the log of every later leader that was elected cleanly, at its
/// offset, and remembered there; and replicas agree below their watermarks.
#[test]
fn acknowledged_batches_survive_every_clean_schedule() {
    let (mut acknowledged, mut refused) = (0, 0);
    for seed in 0..3_000 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut partition = Partition::new(Profile::V4_4, &ALL);
        let mut waiting: Vec<(Wait, u32)> = Vec::new();
        let mut durable: Vec<(i64, u32)> = Vec::new();
        for step in 0..60_u32 {
            if rng.u8(0..3) == 0 {
                let node = *rng.choice(ALL).as_ref().unwrap_or(&ONE);
                let next = partition.known(node, 7).map_or(0, |known| known.newest().last() + 1);
                let sent = Batch { content: step, ..batch(next, 1) };
                match partition.produce(call(node), &sent) {
                    Outcome::Wait(wait) => waiting.push((wait, step)),
                    Outcome::Answer(answer) if answer.code == 0 => {
                        durable.push((answer.base_offset, step))
                    }
                    Outcome::Answer(_) => refused += 1,
                }
            } else {
                shake(&mut partition, &mut rng);
            }
            waiting.retain(|(wait, content)| match partition.progress(wait) {
                Progress::Waiting => true,
                Progress::Answer(answer) => {
                    if answer.code == 0 {
                        durable.push((answer.base_offset, *content));
                    }
                    false
                }
                Progress::Gone => false,
            });
            let Some(leader) = partition.leader() else { continue };
            let log = partition.entries(leader);
            for (offset, content) in &durable {
                let found = log
                    .iter()
                    .any(|entry| (entry.base_offset, entry.content) == (*offset, *content));
                assert!(found, "seed {seed}, step {step}: offset {offset} lost at {leader}");
            }
            if let (Some(newest), Some(known)) = (log.last(), partition.known(leader, 7)) {
                assert_eq!(
                    known.newest().base_offset,
                    newest.base_offset,
                    "seed {seed}, step {step}"
                );
            }
        }
        acknowledged += durable.len();
    }
    assert!(
        acknowledged > 5_000 && refused > 1_000,
        "{acknowledged} acknowledged, {refused} refused"
    );
}

#[test]
fn whole_segments_below_a_durable_log_start_go_and_no_others() {
    let bases = |partition: &Partition<u32>| {
        partition.entries(ONE).iter().map(|entry| entry.base_offset).collect::<Vec<_>>()
    };
    let mut rolled = written(2);
    rolled.roll(ONE);
    let _ = rolled.produce(call(ONE), &batch(2, 1));
    rolled.settle(0);
    rolled.delete_records(3).unwrap();
    assert_eq!(bases(&rolled), [0, 1, 2]);
    rolled.checkpoint(ONE);
    assert_eq!(bases(&rolled), [2]);
    assert_eq!(rolled.log(), []);
    // A segment border that was truncated away is none any more.
    let mut truncated = written(3);
    truncated.elect(TWO, Deposed::Unaware).unwrap();
    let _ = truncated.produce(call(ONE), &batch(3, 2));
    truncated.roll(ONE);
    truncated.learn(ONE).unwrap();
    let _ = truncated.produce(call(TWO), &batch(3, 2));
    truncated.settle(0);
    truncated.elect(ONE, Deposed::Informed).unwrap();
    truncated.settle(0);
    truncated.delete_records(5).unwrap();
    truncated.checkpoint(ONE);
    assert_eq!(bases(&truncated), [0, 1, 2, 3]);
}
