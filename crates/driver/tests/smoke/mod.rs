//! The whole face over real sockets, for any runtime; the crates of the runtimes run it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panic")]

use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::thread;
use std::time::Duration;

use candor_driver::{Config, Producer, Proof, Record, Resolution, Runtime, Verdict, WhyNot};
use candor_sim::codec::PRODUCE;
use candor_sim::serve::{Effect, Fault, Net, Release, Server, Settings};

const SECOND: Duration = Duration::from_secs(1);
const PARTITIONS: u32 = 3;

/// Two brokers on loopback.
fn server() -> Arc<Server> {
    let topics = vec![("t".to_owned(), PARTITIONS as usize)];
    let settings = Settings { brokers: 2, replicas: 2, topics, ..Settings::default() };
    let listen: [SocketAddr; 2] = ["127.0.0.1:0".parse().unwrap(); 2];
    Arc::new(Server::start(settings, &listen).unwrap())
}

fn record(n: u32) -> Record<'static> {
    Record::to("t").partition(n % PARTITIONS).value(n.to_string())
}

fn log(server: &Server, partition: u32) -> Vec<u32> {
    let records = server.with(|net, _| net.records("t", partition as usize).unwrap());
    let number = |value: &[u8]| std::str::from_utf8(value).unwrap().parse().unwrap();
    records.iter().map(|record| number(&record.value.clone().unwrap())).collect()
}

/// Ends when the net is as wanted; somebody else's thread waits for it.
fn happens(server: &Arc<Server>, wanted: fn(&Net) -> bool) -> impl Future<Output = ()> + use<> {
    let state = Arc::new(Mutex::new((false, None::<Waker>)));
    let (server, told) = (Arc::clone(server), Arc::clone(&state));
    thread::spawn(move || {
        server.wait_until(wanted);
        let mut state = told.lock().unwrap();
        state.0 = true;
        let waker = state.1.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    });
    std::future::poll_fn(move |cx| {
        let mut state = state.lock().unwrap();
        state.1 = Some(cx.waker().clone());
        if state.0 { Poll::Ready(()) } else { Poll::Pending }
    })
}

/// Connects, sends one, sends many, flushes, closes.
pub(crate) async fn everything_is_delivered_once_and_in_order<R: Runtime + Default>() {
    let server = server();
    let config = Config::new(server.bootstrap().split(',')).batch_size(16 << 10);
    let producer = Producer::<R>::connect(config).await.unwrap();
    let at = producer.send(record(0)).await.into_result().unwrap();
    assert_eq!((&*at.topic, at.partition, at.offset), ("t", 0, Some(0)));
    let verdicts = producer.send_all((1..3_000).map(record)).await;
    for (n, verdict) in (1..3_000).zip(verdicts) {
        let at = verdict.into_result().unwrap();
        assert_eq!((at.partition, at.offset), (n % PARTITIONS, Some(i64::from(n / PARTITIONS))));
    }
    let handle = producer.enqueue(record(3_000)).await.unwrap();
    producer.flush().await;
    assert_eq!(producer.stats().machine.waiting, 0);
    drop(handle);
    let summary = producer.close(10 * SECOND).await;
    assert_eq!((summary.accepted, summary.delivered, summary.unclaimed), (3_001, 3_001, 1));
    for partition in 0..PARTITIONS {
        let sent: Vec<u32> = (partition..3_001).step_by(PARTITIONS as usize).collect();
        assert_eq!(log(&server, partition), sent);
    }
}

/// Cancels what was never offered.
pub(crate) async fn what_is_cancelled_in_time_is_never_written<R: Runtime + Default>() {
    let server = server();
    let config = Config::new(server.bootstrap().split(',')).linger(30 * SECOND);
    let producer = Producer::<R>::lazy(config).unwrap();
    let kept = producer.enqueue(record(0)).await.unwrap();
    let cancelled = producer.enqueue(record(3)).await.unwrap();
    cancelled.cancel();
    let Verdict::NotDelivered(no) = cancelled.await else { panic!("it was never offered") };
    assert_eq!(no.why, WhyNot::Proven(Proof::TakenBack));
    producer.flush().await;
    assert!(kept.await.is_delivered());
    let summary = producer.close(10 * SECOND).await;
    assert_eq!((summary.delivered, summary.not_delivered), (1, 1));
    assert_eq!(log(&server, 0), [0]);
}

/// Stops while the broker is paused, and hears later what became of the record.
pub(crate) async fn until_tells_at_once_while_the_broker_is_paused<R: Runtime + Default>() {
    let server = server();
    let config = Config::new(server.bootstrap().split(','));
    let producer = Producer::<R>::connect(config).await.unwrap();
    assert!(producer.send(record(0)).await.is_delivered());
    server.with(|net, _| {
        let next = net.taken_up(PRODUCE) + 1;
        net.inject(Fault::on_produce(next, Effect::HoldReply(Release::ByHand)));
    });
    let paused = happens(&server, |net| !net.held().is_empty());
    let verdict = producer.send(record(3)).until(paused).await;
    let Verdict::Unknown(unknown) = verdict else { panic!("{verdict:?}") };
    assert_eq!(server.with(|net, _| net.held().len()), 1, "still paused");
    server.with(|net, now| {
        net.held().into_iter().for_each(|(connection, _)| net.release(now, connection));
    });
    let Resolution::Delivered(at) = unknown.resolved().await else { panic!("it is in the log") };
    assert_eq!((at.partition, at.offset), (0, Some(1)));
    assert!(producer.send(record(6)).await.is_delivered());
    let summary = producer.close(10 * SECOND).await;
    assert_eq!((summary.unknown, summary.resolutions.resolved_delivered), (1, 1));
    assert_eq!(log(&server, 0), [0, 3, 6]);
}

/// The driver future as a value, run and dropped by the caller.
pub(crate) async fn a_driver_can_be_run_by_hand<R: Runtime + Default>() {
    let server = server();
    let config = Config::new(server.bootstrap().split(','));
    let (producer, mut driver) = Producer::<R>::parts(config).unwrap();
    let mut send = std::pin::pin!(producer.send(record(0)));
    let verdict = std::future::poll_fn(|cx| {
        assert!(std::pin::Pin::new(&mut driver).poll(cx).is_pending());
        send.as_mut().poll(cx)
    });
    assert!(verdict.await.is_delivered());
    let last = producer.enqueue(record(1)).await.unwrap();
    drop(driver);
    let Verdict::NotDelivered(no) = last.await else { panic!("nobody offered it") };
    assert_eq!(no.why, WhyNot::Proven(Proof::NeverOffered));
}
