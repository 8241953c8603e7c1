//! The driver and its handles over the simulator's brokers, in virtual time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panic")]

mod world;

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::Duration;

use candor_driver::{
    Config, ConnectError, Never, NeverReason, NotDelivered, Proof, Record, Resolution, Runtime,
    Verdict, Waiting, WhyNot, WhyRefused,
};
use candor_sim::serve::{Effect, Fault, Settings};
use world::stage::{
    cancel_behind_a_stuck_socket, filled, holding, is_pending, log, record, release, settings,
};
use world::{Executor, World};

type Producer = candor_driver::Producer<World>;

const SECOND: Duration = Duration::from_secs(1);

fn start(settings: Settings) -> (Executor, Producer) {
    start_with(settings, |config| config)
}

fn start_with(settings: Settings, set: impl FnOnce(Config) -> Config) -> (Executor, Producer) {
    let executor = Executor::new(settings);
    let config = set(Config::new(executor.world.bootstrap()));
    let producer = Producer::lazy_on(executor.world.clone(), config).unwrap();
    (executor, producer)
}

fn texts(numbers: impl IntoIterator<Item = usize>) -> Vec<String> {
    numbers.into_iter().map(|n| n.to_string()).collect()
}

fn offset(verdict: &Verdict) -> Option<i64> {
    match verdict {
        Verdict::Delivered(at) => at.offset,
        Verdict::NotDelivered(_) | Verdict::Unknown(_) => panic!("{verdict:?}"),
    }
}

fn why_not(verdict: Verdict) -> WhyNot {
    match verdict {
        Verdict::NotDelivered(no) => no.why,
        Verdict::Delivered(_) | Verdict::Unknown(_) => panic!("{verdict:?}"),
    }
}

fn unknown(verdict: Verdict) -> candor_driver::Unknown {
    match verdict {
        Verdict::Unknown(unknown) => unknown,
        Verdict::Delivered(_) | Verdict::NotDelivered(_) => panic!("{verdict:?}"),
    }
}

#[test]
fn a_record_is_delivered_where_the_verdict_says() {
    let (mut executor, producer) = start(settings(1));
    let verdict = executor.block_on(producer.send(record(1)));
    let Verdict::Delivered(at) = verdict else { panic!("{verdict:?}") };
    assert_eq!(at.to_string(), "t-0@0");
    assert_eq!(log(&executor.world, 0), ["1"]);
}

/// A task that sends another record while it is woken, on the thread of whoever wakes it.
struct SendsOn(Producer, Mutex<Option<candor_driver::Handle>>);

impl std::task::Wake for SendsOn {
    fn wake(self: Arc<Self>) {
        *self.1.lock().unwrap() = Some(self.0.try_send(record(2)).unwrap());
    }
}

#[test]
fn who_is_woken_may_send_at_once() {
    let (mut executor, producer) = start(holding(1));
    let mut first = producer.try_send(record(1)).unwrap();
    let task = Arc::new(SendsOn(producer, Mutex::new(None)));
    let waker = Waker::from(Arc::clone(&task));
    assert!(pin!(&mut first).poll(&mut Context::from_waker(&waker)).is_pending());
    executor.pass(SECOND);
    let before = executor.world.now();
    executor.world.with(release);
    executor.settle();
    let second = task.1.lock().unwrap().take().expect("it was woken");
    // Neither did the waker meet a lock, nor was the ring of the doorbell lost in the turn.
    assert!(executor.block_on(second).is_delivered());
    assert!(executor.world.elapsed_since(before) < SECOND);
    assert!(executor.block_on(first).is_delivered());
}

#[test]
fn records_sent_together_keep_their_order_and_share_batches() {
    let (mut executor, producer) = start(settings(1));
    let handles = executor.block_on(async {
        let mut handles = Vec::new();
        for n in 0..20 {
            handles.push(producer.enqueue(record(n)).await.unwrap());
        }
        handles
    });
    for (n, handle) in handles.into_iter().enumerate() {
        assert_eq!(offset(&executor.block_on(handle)), Some(n as i64));
    }
    assert_eq!(log(&executor.world, 0), texts(0..20));
    assert_eq!(producer.stats().machine.counts.offers, 1);
}

#[test]
fn send_all_gives_verdicts_in_order_even_when_memory_is_short() {
    let (mut executor, producer) =
        start_with(settings(3), |config| config.memory(200_000).batch_size(4_000));
    let records = (0..5_000).map(|n| record(n).partition(n as u32 % 3));
    let verdicts = executor.block_on(producer.send_all(records));
    assert_eq!(verdicts.len(), 5_000);
    for (n, verdict) in verdicts.iter().enumerate() {
        assert_eq!(offset(verdict), Some(n as i64 / 3));
    }
    for partition in 0..3 {
        assert_eq!(log(&executor.world, partition), texts((partition..5_000).step_by(3)));
    }
}

#[test]
fn waiting_for_room_is_in_order_and_counts_against_the_deadline() {
    let (mut executor, producer) =
        start_with(holding(1), |config| config.memory(70_000).linger(Duration::ZERO));
    let big = |n| filled(n, 9_000);
    let mut accepted = Vec::new();
    let refused = loop {
        match producer.try_send(big(accepted.len())) {
            Ok(handle) => accepted.push(handle),
            Err(refused) => break refused,
        }
    };
    assert_eq!((refused.why, refused.record), (WhyRefused::Full, big(accepted.len())));
    let first = producer.enqueue(big(100));
    let short = producer.send(big(101).deadline(3 * SECOND));
    let third = producer.enqueue(big(102));
    let (mut first, mut short, mut third) = (pin!(first), pin!(short), pin!(third));
    assert!(is_pending(first.as_mut()) && is_pending(short.as_mut()) && is_pending(third.as_mut()));
    let before = executor.world.now();
    assert_eq!(why_not(executor.block_on(short)), WhyNot::NoRoom);
    assert_eq!(executor.world.elapsed_since(before), 3 * SECOND);
    assert_eq!(producer.try_send(record(0)).unwrap_err().why, WhyRefused::Full);
    assert_eq!(producer.stats().in_line, 2);
    executor.world.with(release);
    let (first, third) = (executor.block_on(first), executor.block_on(third));
    let (first, third) = (first.unwrap(), third.unwrap());
    assert!(first.ticket() < third.ticket());
    assert!(executor.block_on(third).is_delivered() && executor.block_on(first).is_delivered());
    let last = log(&executor.world, 0).split_off(accepted.len());
    assert_eq!(last, ["100", "102"]);
}

#[test]
fn who_leaves_the_line_makes_room_for_the_next() {
    let (mut executor, producer) = start_with(holding(1), |config| config.memory(70_000));
    let held = producer.try_send(filled(0, 30_000)).unwrap();
    executor.pass(SECOND);
    let too_much = producer.enqueue(filled(0, 50_000));
    let fits = producer.enqueue(filled(0, 1_000));
    let mut fits = pin!(fits);
    {
        let mut too_much = pin!(too_much);
        assert!(is_pending(too_much.as_mut()) && is_pending(fits.as_mut()));
        executor.pass(SECOND);
    }
    let before = executor.world.now();
    let fits = executor.block_on(fits).unwrap();
    assert_eq!(executor.world.elapsed_since(before), Duration::ZERO);
    assert!(matches!(fits.why(), Waiting::Partition(_)));
    drop((held, fits));
}

#[test]
fn a_flush_waits_for_those_who_wait_for_room() {
    let (mut executor, producer) = start_with(holding(1), |config| config.memory(70_000));
    let held = producer.try_send(filled(0, 30_000)).unwrap();
    executor.pass(SECOND);
    let (mut waits, mut flush) = (pin!(producer.send(filled(1, 50_000))), pin!(producer.flush()));
    assert!(is_pending(waits.as_mut()));
    assert_eq!(producer.stats().in_line, 1);
    assert!(is_pending(flush.as_mut()));
    executor.world.with(release);
    executor.block_on(flush);
    assert_eq!(producer.stats().machine.counts.delivered, 2);
    drop(held);
}

#[test]
fn what_was_never_offered_is_cancelled_for_good() {
    let (mut executor, producer) = start_with(settings(1), |config| config.linger(SECOND));
    let handle = executor.block_on(producer.enqueue(record(1))).unwrap();
    handle.cancel();
    let why = why_not(executor.block_on(handle));
    assert_eq!(why, WhyNot::Proven(Proof::TakenBack));
    assert!(executor.block_on(producer.send(record(2))).is_delivered());
    assert_eq!(log(&executor.world, 0), ["2"]);
}

#[test]
fn until_is_prompt_and_truthful_and_the_record_is_resolved_later() {
    let (mut executor, producer) = start(holding(1));
    let before = executor.world.now();
    let sleep = executor.world.sleep_until(before + SECOND);
    let verdict = executor.block_on(producer.send(record(1)).until(sleep));
    assert_eq!(executor.world.elapsed_since(before), SECOND);
    let unknown = unknown(verdict);
    assert_eq!((unknown.topic(), unknown.partition()), ("t", Some(0)));
    let mut resolved = pin!(unknown.resolved());
    assert!(is_pending(resolved.as_mut()));
    assert_eq!(executor.world.lock().net.held().len(), 1, "still paused");
    executor.world.with(release);
    let Resolution::Delivered(at) = executor.block_on(resolved) else { panic!() };
    assert_eq!(at.to_string(), "t-0@0");
}

#[test]
fn until_stops_what_has_not_begun() {
    let (mut executor, producer) = start(settings(1));
    let verdict = executor.block_on(producer.send(record(1)).until(std::future::ready(())));
    assert_eq!(why_not(verdict), WhyNot::Cancelled);
    assert_eq!(producer.stats().machine.counts.accepted, 0);
}

#[test]
fn a_deadline_is_kept_while_the_broker_is_silent() {
    let (mut executor, producer) = start(holding(1));
    let before = executor.world.now();
    let verdict = executor.block_on(producer.send(record(1).deadline(2 * SECOND)));
    assert_eq!(executor.world.elapsed_since(before), 2 * SECOND);
    drop(unknown(verdict));
}

#[test]
fn dropping_a_send_cancels_and_dropping_a_handle_detaches() {
    let (mut executor, producer) = start_with(settings(1), |config| config.linger(SECOND));
    {
        let mut send = pin!(producer.send(record(1)));
        assert!(is_pending(send.as_mut()));
    }
    drop(executor.block_on(producer.enqueue(record(2))).unwrap());
    executor.block_on(producer.flush());
    assert_eq!(log(&executor.world, 0), ["2"]);
    assert_eq!(producer.stats().unclaimed, 2);
    assert_eq!(producer.stats().machine.counts.not_delivered, 1);
}

#[test]
fn a_send_that_is_dropped_in_doubt_goes_on_alone() {
    let (mut executor, producer) = start(holding(1));
    {
        let mut send = pin!(producer.send(record(1)));
        assert!(is_pending(send.as_mut()));
        executor.pass(SECOND);
    }
    executor.pass(SECOND);
    let counts = producer.stats().machine.counts;
    assert_eq!((counts.unknown, producer.stats().unclaimed), (1, 1));
    executor.world.with(release);
    assert!(executor.block_on(producer.send(record(2))).is_delivered());
    assert_eq!(log(&executor.world, 0), ["1", "2"]);
    assert_eq!(producer.stats().resolutions.resolved_delivered, 1);
}

/// Two records in one batch whose first request meets this; the first one is revoked then.
fn revoke_after(effect: Effect) -> (Executor, Resolution, Verdict) {
    let faults = vec![Fault::on_produce(1, effect)];
    let (mut executor, producer) = start(Settings { faults, ..settings(1) });
    let (revoked, kept) = executor.block_on(async {
        let first = producer.enqueue(record(1)).await.unwrap();
        (first, producer.enqueue(record(2)).await.unwrap())
    });
    executor.pass(Duration::from_millis(20));
    assert!(producer.stats().machine.counts.offers == 1, "it was offered once, and lost");
    let outcome = executor.block_on(revoked.revoke());
    let verdict = executor.block_on(kept);
    (executor, outcome, verdict)
}

#[test]
fn a_revoked_record_that_was_not_written_never_is() {
    let (executor, outcome, kept) = revoke_after(Effect::CutRequest(20));
    let Resolution::NotDelivered(no) = outcome else { panic!("{outcome:?}") };
    assert_eq!(no.why, WhyNot::Proven(Proof::SlotTaken));
    assert_eq!((no.topic.as_ref(), no.partition), ("t", Some(0)));
    assert_eq!(offset(&kept), Some(0));
    assert_eq!(log(&executor.world, 0), ["2"]);
}

#[test]
fn a_revoked_record_that_was_written_is_known_to_be() {
    let (executor, outcome, kept) = revoke_after(Effect::CutReply(4));
    let Resolution::Delivered(at) = outcome else { panic!("{outcome:?}") };
    assert_eq!(at.to_string(), "t-0@0");
    assert_eq!(offset(&kept), Some(1));
    assert_eq!(log(&executor.world, 0), ["1", "2"]);
}

#[test]
fn an_unknown_can_be_revoked_later() {
    let faults = vec![Fault::on_produce(1, Effect::CutRequest(20))];
    let (mut executor, producer) = start(Settings { faults, ..settings(1) });
    let lost = producer.send(record(1).deadline(Duration::from_millis(20)));
    let unknown = unknown(executor.block_on(lost));
    let mut revoked = pin!(unknown.revoke());
    assert!(is_pending(revoked.as_mut()));
    // A lone record needs two newer ones to take its place.
    let newer = executor.block_on(async {
        let first = producer.enqueue(record(2)).await.unwrap();
        (first, producer.enqueue(record(3)).await.unwrap())
    });
    let Resolution::NotDelivered(no) = executor.block_on(revoked) else { panic!() };
    assert_eq!(no.why, WhyNot::Proven(Proof::SlotTaken));
    assert!(executor.block_on(newer.0).is_delivered() && executor.block_on(newer.1).is_delivered());
    assert_eq!(log(&executor.world, 0), ["2", "3"]);
}

#[test]
fn revoking_what_was_never_offered_is_as_cancelling() {
    let (mut executor, producer) = start_with(settings(1), |config| config.linger(SECOND));
    let handle = executor.block_on(producer.enqueue(record(1))).unwrap();
    let Resolution::NotDelivered(no) = executor.block_on(handle.revoke()) else { panic!() };
    assert_eq!(no.why, WhyNot::Proven(Proof::TakenBack));
}

#[test]
fn abandoning_gives_up_what_is_in_doubt_and_nothing_else() {
    let faults = vec![Fault::on_produce(1, Effect::CutRequest(20))];
    let (mut executor, producer) = start(Settings { faults, ..settings(1) });
    let mut notices = producer.notices();
    let lost = producer.send(record(1).deadline(Duration::from_millis(20)));
    let unknown = unknown(executor.block_on(lost));
    assert!(producer.abandon("t", 7).is_err() && producer.abandon("other", 0).is_err());
    producer.abandon("t", 0).unwrap();
    let Resolution::Never(never) = executor.block_on(unknown.resolved()) else { panic!() };
    assert_eq!(never.reason, NeverReason::Abandoned);
    assert!(executor.block_on(producer.send(record(2))).is_delivered());
    assert_eq!(log(&executor.world, 0), ["2"]);
    let fenced = executor.block_on(async {
        while let Some(notice) = notices.next().await {
            if notice.to_string().contains("nothing older can appear from offset 0 on") {
                return true;
            }
        }
        false
    });
    assert!(fenced);
}

#[test]
fn when_the_driver_goes_everybody_hears_the_truth() {
    let (mut executor, producer) = start_with(holding(1), |config| config.memory(70_000));
    let mut notices = producer.notices();
    let in_doubt = executor.block_on(producer.enqueue(filled(1, 30_000))).unwrap();
    executor.pass(SECOND);
    let never_offered = executor.block_on(producer.enqueue(record(2))).unwrap();
    let too_much = filled(3, 50_000);
    let (mut waits, mut flush) = (pin!(producer.send(too_much)), pin!(producer.flush()));
    assert!(is_pending(waits.as_mut()) && is_pending(flush.as_mut()));
    let mut close = pin!(producer.close(3600 * SECOND));
    assert!(is_pending(close.as_mut()));
    executor.shut_down();
    let unknown = unknown(executor.block_on(in_doubt));
    let Resolution::Never(never) = executor.block_on(unknown.resolved()) else { panic!() };
    assert!(matches!(never, Never { reason: NeverReason::Closed, facts: Some(_), .. }));
    let why = why_not(executor.block_on(never_offered));
    assert_eq!(why, WhyNot::Proven(Proof::NeverOffered));
    assert_eq!(why_not(executor.block_on(waits)), WhyNot::DriverGone);
    executor.block_on(flush);
    let summary = executor.block_on(close);
    assert_eq!((summary.accepted, summary.unknown, summary.not_delivered), (2, 1, 1));
    assert_eq!(summary.resolutions.never, 1);
    while executor.block_on(notices.next()).is_some() {}
    let late = executor.block_on(producer.send(record(4)));
    assert_eq!(why_not(late), WhyNot::Refused(WhyRefused::Closed));
    executor.block_on(producer.flush());
}

#[test]
fn the_last_handle_closes_in_the_background() {
    let (mut executor, producer) = start(settings(1));
    let clone = producer.clone();
    let handle = executor.block_on(producer.enqueue(record(1))).unwrap();
    drop(producer);
    let second = executor.block_on(clone.enqueue(record(2))).unwrap();
    drop(clone);
    assert!(executor.block_on(second).is_delivered() && executor.block_on(handle).is_delivered());
    executor.pass(SECOND);
    assert_eq!(executor.tasks(), 0, "the driver has ended");
}

#[test]
fn close_waits_for_what_is_under_way_and_counts_it() {
    let (mut executor, producer) =
        start_with(settings(1), |config| config.memory(70_000).batch_size(2_000));
    let records: Vec<_> = (0..1_000).map(record).collect();
    let mut all = pin!(producer.send_all(records));
    assert!(is_pending(all.as_mut()));
    let summary = executor.block_on(producer.close(10 * SECOND));
    let verdicts = executor.block_on(all);
    let delivered = verdicts.iter().filter(|verdict| verdict.is_delivered()).count() as u64;
    assert_eq!((summary.delivered, summary.accepted), (delivered, delivered));
    assert!(delivered > 100);
    let stats = producer.stats().machine;
    assert_eq!((stats.connections, stats.memory, stats.waiting), (0, 0, 0));
    for verdict in verdicts.into_iter().skip(delivered as usize) {
        assert_eq!(why_not(verdict), WhyNot::Refused(WhyRefused::Closed));
    }
}

#[test]
fn close_returns_by_its_deadline() {
    let (mut executor, producer) = start(holding(1));
    let handle = executor.block_on(producer.enqueue(record(1))).unwrap();
    executor.pass(SECOND);
    let before = executor.world.now();
    let summary = executor.block_on(producer.close(2 * SECOND));
    assert_eq!(executor.world.elapsed_since(before), 2 * SECOND);
    assert_eq!((summary.unknown, summary.resolutions.never), (1, 1));
    let unknown = unknown(executor.block_on(handle));
    assert!(matches!(executor.block_on(unknown.resolved()), Resolution::Never(_)));
}

#[test]
fn sockets_that_take_a_few_bytes_at_a_time_are_enough() {
    let (mut executor, producer) = start(settings(1));
    executor.world.lock().bite = 7;
    let verdicts = executor.block_on(producer.send_all((0..200).map(record)));
    assert!(verdicts.iter().all(Verdict::is_delivered));
    assert_eq!(log(&executor.world, 0), texts(0..200));
    assert!(executor.world.lock().slices > 1, "writes are vectored");
}

#[test]
fn a_frame_that_the_socket_did_not_take_whole_was_not_delivered() {
    let (mut executor, producer) = start(settings(1));
    assert!(executor.block_on(producer.send(record(0))).is_delivered());
    executor.world.break_after(60);
    let verdict = executor.block_on(producer.send(record(1).deadline(5 * SECOND)));
    assert!(matches!(why_not(verdict), WhyNot::Proven(_)));
    executor.world.lock().refuses = false;
    assert!(executor.block_on(producer.send(record(2))).is_delivered());
    assert_eq!(log(&executor.world, 0), ["0", "2"]);
}

#[test]
fn what_stands_behind_a_stuck_socket_can_still_be_cancelled() {
    let (mut executor, producer) = start(settings(1));
    let (stuck, behind) = cancel_behind_a_stuck_socket(&mut executor, &producer);
    assert_eq!(why_not(executor.block_on(behind)), WhyNot::Proven(Proof::TakenBack));
    executor.world.stick(false);
    assert!(executor.block_on(stuck).is_delivered());
    assert_eq!(log(&executor.world, 0), ["0", "1"]);
}

#[test]
fn wherever_a_connection_breaks_answers_that_came_are_heard() {
    for cut in (1..=1_000).step_by(3) {
        let (mut executor, producer) =
            start_with(settings(1), |config| config.batch_size(300).linger(Duration::ZERO));
        assert!(executor.block_on(producer.send(record(0))).is_delivered());
        executor.world.break_after(cut);
        let big = |n| filled(n, 200).deadline(SECOND);
        let verdicts = executor.block_on(producer.send_all((1..=4).map(big)));
        let written = log(&executor.world, 0).len() - 1;
        for (n, verdict) in verdicts.iter().enumerate() {
            let delivered = verdict.is_delivered();
            assert_eq!(delivered, n < written, "cut {cut}, record {n}: {verdict:?}");
            assert!(delivered || matches!(verdict, Verdict::NotDelivered(_)), "cut {cut}");
        }
    }
}

#[test]
fn a_frame_that_the_socket_took_whole_is_in_doubt() {
    let (mut executor, producer) = start(holding(2));
    assert!(executor.block_on(producer.send(record(0))).is_delivered());
    let handle = executor.block_on(producer.enqueue(record(1).deadline(5 * SECOND))).unwrap();
    executor.pass(SECOND);
    executor.world.lock().refuses = true;
    executor.world.with(|net, now| {
        for (connection, _) in net.held() {
            net.hang_up(now, connection, candor_sim::serve::Hangup::After(0));
        }
    });
    drop(unknown(executor.block_on(handle)));
    executor.world.lock().refuses = false;
    assert!(executor.block_on(producer.send(record(2))).is_delivered());
    assert_eq!(log(&executor.world, 0), ["0", "1", "2"]);
}

#[test]
fn an_idle_producer_is_hardly_ever_polled() {
    let (mut executor, producer) = start(settings(1));
    assert!(executor.block_on(producer.send(record(0))).is_delivered());
    let before = executor.world.lock().polls;
    executor.pass(3600 * SECOND);
    let polls = executor.world.lock().polls - before;
    assert!(polls < 1_000, "{polls} polls in an idle hour");
}

#[test]
fn a_wall_clock_that_jumps_takes_deadlines_along_and_sending_goes_on() {
    let (mut executor, producer) = start(holding(1));
    let handle = executor.block_on(producer.enqueue(record(1))).unwrap();
    executor.pass(SECOND);
    executor.world.set_wall_ahead(3600 * SECOND);
    let before = executor.world.now();
    drop(unknown(executor.block_on(handle)));
    assert!(executor.world.elapsed_since(before) <= 10 * SECOND);
    executor.world.with(release);
    assert!(executor.block_on(producer.send(record(2).deadline(5 * SECOND))).is_delivered());
    assert_eq!(log(&executor.world, 0), ["1", "2"]);
}

#[test]
fn connect_waits_for_a_broker_or_says_why_there_is_none() {
    let mut executor = Executor::new(settings(1));
    let config = || Config::new(["broker:9001"]);
    let world = executor.world.clone();
    let connected = executor.block_on(Producer::connect_on(world.clone(), config())).unwrap();
    assert_eq!(connected.stats().machine.connections, 1);
    executor.world.lock().refuses = true;
    let error = executor.block_on(Producer::connect_on(world.clone(), config())).unwrap_err();
    assert!(error.to_string().contains("broker:9001: the connection was refused"), "{error}");
    let nowhere = Config::new(["nowhere:9001", "broker:9001"]);
    let error = executor.block_on(Producer::connect_on(world.clone(), nowhere)).unwrap_err();
    assert!(matches!(error, ConnectError::Unreachable { .. }), "{error}");
    let bad = executor.block_on(Producer::connect_on(world, Config::new(["broker"]))).unwrap_err();
    assert!(matches!(bad, ConnectError::Config(_)), "{bad}");
}

#[test]
fn connect_asks_again_while_a_node_has_no_producer_ids_yet() {
    // What real nodes answer to the first such request after their start (COORDINATOR_LOAD_IN_PROGRESS).
    let refusal = |nth, code| format!("request:22:{nth} answer:{code}:before").parse().unwrap();
    let refusing = |faults| Executor::new(Settings { faults, ..settings(1) });
    let mut executor = refusing(vec![refusal(1, 14), refusal(2, 14)]);
    let (world, config) = (executor.world.clone(), Config::new(executor.world.bootstrap()));
    let producer = executor.block_on(Producer::connect_on(world.clone(), config)).unwrap();
    assert_eq!(world.lock().net.taken_up(22), 3);
    assert!(executor.block_on(producer.send(record(1))).is_delivered());

    let mut executor = refusing(vec![refusal(1, 31)]);
    let (world, config) = (executor.world.clone(), Config::new(executor.world.bootstrap()));
    let error = executor.block_on(Producer::connect_on(world, config)).unwrap_err();
    assert!(matches!(error, ConnectError::NoProducerId(code) if code.0 == 31), "{error}");
}

#[test]
fn what_can_never_be_sent_is_refused_at_once() {
    let (mut executor, producer) = start(settings(1));
    let verdict = executor.block_on(producer.send(Record::to("no such topic!")));
    assert_eq!(why_not(verdict), WhyNot::Refused(WhyRefused::BadTopic));
    let no = executor.block_on(producer.enqueue(filled(1, 2 << 20))).unwrap_err();
    assert!(matches!(no, NotDelivered { why: WhyNot::Refused(WhyRefused::TooLarge { .. }), .. }));
}

#[test]
fn everything_can_be_moved_to_other_tasks_and_threads() {
    fn moves<T: Send + 'static>(_: &T) {}
    fn shared<T: Sync>(_: &T) {}
    let executor = Executor::new(settings(1));
    let config = Config::new(executor.world.bootstrap());
    let (producer, driver) = Producer::parts_on(executor.world.clone(), config).unwrap();
    moves(&driver);
    moves(&producer);
    shared(&producer);
    moves(&producer.send(record(1)));
    moves(&producer.send(record(1)).until(std::future::pending::<()>()));
    moves(&producer.enqueue(record(1)));
    moves(&producer.send_all((0..1).map(record)));
    moves(&producer.flush());
    moves(&producer.close(SECOND));
    moves(&producer.notices());
    let verdict = |verdict: Verdict| moves(&verdict);
    let error = |error: candor_driver::Undelivered| shared(&error);
    let _ = (verdict, error);
}
