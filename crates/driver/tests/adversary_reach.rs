//! Attacks on what is reached and when: hosts with addresses that lead nowhere, deadlines at the edges
//! of time, handles that are used after the end, names that nobody uses again.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panic")]

#[allow(dead_code, reason = "shared with other tests")]
mod world;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use candor_driver::{Config, Record, Runtime, Verdict, WhyNot, connect_to_any};
use candor_sim::serve::Settings;
use world::stage::{record, settings};
use world::{Executor, World};

type Producer = candor_driver::Producer<World>;

fn start(settings: Settings, set: impl FnOnce(Config) -> Config) -> (Executor, Producer) {
    let executor = Executor::new(settings);
    let config = set(Config::new(executor.world.bootstrap()).linger(Duration::ZERO));
    let producer = Producer::lazy_on(executor.world.clone(), config).unwrap();
    (executor, producer)
}

/// What an address does: after how long, and whether it answers; `None`: nothing, ever.
type Ways = Vec<Option<(u64, bool)>>;

type Pause = Pin<Box<dyn Future<Output = ()>>>;

/// An attempt to connect, which is known to be given up when it is dropped.
struct Attempt(Option<(Pause, bool)>, u16, Arc<Mutex<Vec<u16>>>);

impl Future for Attempt {
    type Output = io::Result<u16>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<u16>> {
        let port = self.1;
        let Some((sleep, answers)) = &mut self.0 else { return Poll::Pending };
        let answers = *answers;
        let refused = || io::ErrorKind::ConnectionRefused.into();
        sleep.as_mut().poll(cx).map(|()| if answers { Ok(port) } else { Err(refused()) })
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        self.2.lock().unwrap().push(self.1);
    }
}

/// Connects to a host with such addresses: which one it is, after how many milliseconds.
fn reach(ways: Ways) -> (io::Result<u16>, u64) {
    let mut executor = Executor::new(settings(1));
    let world = executor.world.clone();
    let (begin, gone) = (world.now(), Arc::default());
    let addresses: Vec<SocketAddr> =
        (0..ways.len() as u16).map(|port| SocketAddr::from(([127, 0, 0, 1], port))).collect();
    let after = |time| world.sleep_until(world.now() + time);
    let connect = |address: SocketAddr| {
        let way = ways[usize::from(address.port())];
        let way = way.map(|(time, answers)| {
            let sleep: Pause = Box::pin(after(Duration::from_millis(time)));
            (sleep, answers)
        });
        Attempt(way, address.port(), Arc::clone(&gone))
    };
    // Something that always happens: who hangs is seen by the time.
    let limit = after(Duration::from_secs(100));
    let attempt = connect_to_any(Ok(addresses), after, connect);
    let result = executor.block_on(async {
        let (mut attempt, mut limit) = (Box::pin(attempt), Box::pin(limit));
        std::future::poll_fn(|cx| match attempt.as_mut().poll(cx) {
            Poll::Pending => {
                limit.as_mut().poll(cx).map(|()| Err(io::Error::from(io::ErrorKind::TimedOut)))
            }
            ready => ready,
        })
        .await
    });
    let gone: Vec<u16> = gone.lock().unwrap().clone();
    assert!(gone.len() <= ways.len(), "each is tried once: {gone:?}");
    (result, executor.world.elapsed_since(begin).as_millis() as u64)
}

/// A name may have addresses that lead nowhere; the first one is the first at each try.
#[test]
fn an_address_that_hangs_is_not_waited_for_alone() {
    let reached = |ways| {
        let (result, after) = reach(ways);
        (result.ok(), after)
    };
    assert_eq!(reached(vec![Some((3, true))]), (Some(0), 3));
    assert_eq!(reached(vec![None, Some((3, true))]), (Some(1), 253));
    assert_eq!(reached(vec![None, None, None, Some((3, true))]), (Some(3), 753));
    // Who is refused makes room at once, and does not end the others.
    assert_eq!(reached(vec![None, Some((1, false)), Some((3, true))]), (Some(2), 254));
    assert_eq!(reached(vec![Some((300, true)), Some((20, false))]), (Some(0), 300));
    assert_eq!(reached(vec![Some((300, false)), Some((90, true)), None]), (Some(1), 340));
    // The slower one that came first wins if it is there first.
    assert_eq!(reached(vec![Some((260, true)), Some((20, true))]), (Some(0), 260));
    // Somebody comes late, or never.
    assert_eq!(reached(vec![None, Some((9_000, true)), None]), (Some(1), 9_250));
    assert_eq!(reached(vec![None, None]), (None, 100_000));
}

#[test]
fn where_every_address_refuses_the_last_word_counts() {
    let (result, after) = reach(vec![Some((5, false)), Some((300, false)), Some((7, false))]);
    assert_eq!(result.unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
    assert_eq!(after, 305);
    assert_eq!(reach(vec![]).0.unwrap_err().kind(), io::ErrorKind::NotFound);
}

/// No time is so long or so short that it breaks anything.
#[test]
fn deadlines_at_the_edges_of_time_are_kept() {
    let long = Duration::MAX;
    let (mut executor, producer) = start(settings(1), |config| config.auto_create_topics(false));
    let verdict = executor.block_on(producer.send(record(0).deadline(long)));
    assert!(verdict.is_delivered());
    for deadline in [Duration::ZERO, Duration::from_nanos(1), Duration::from_micros(1)] {
        let verdict = executor.block_on(producer.send(Record::to("none").deadline(deadline)));
        assert!(matches!(verdict, Verdict::NotDelivered(_)), "{deadline:?}");
    }
    let waits = producer.try_send(Record::to("none").deadline(long)).unwrap();
    executor.pass(Duration::from_secs(3_600));
    executor.world.set_wall_ahead(Duration::from_secs(30 * 3_600));
    executor.pass(Duration::from_secs(20));
    assert!(matches!(executor.block_on(waits), Verdict::NotDelivered(_)), "at most state_ttl");
    let summary = executor.block_on(producer.close(long));
    assert_eq!((summary.delivered, summary.not_delivered), (1, 4));
    assert_eq!(executor.tasks(), 0, "the driver ended");
}

/// Whatever is called after the end ends at once, and says so.
#[test]
fn after_the_end_everything_ends_at_once() {
    let (mut executor, producer) = start(settings(1), |config| config);
    let handle = producer.try_send(record(0)).unwrap();
    executor.pass(Duration::from_secs(1));
    let clone = producer.clone();
    let summary = executor.block_on(producer.close(Duration::from_secs(1)));
    assert_eq!(summary.delivered, 1);
    handle.cancel();
    assert!(matches!(executor.block_on(handle.revoke()), candor_driver::Resolution::Delivered(_)));
    executor.block_on(clone.flush());
    assert_eq!(executor.block_on(clone.close(Duration::ZERO)).delivered, 1);
    let refused = |verdict| match verdict {
        Verdict::NotDelivered(no) => assert!(matches!(no.why, WhyNot::Refused(_)), "{no:?}"),
        other @ (Verdict::Delivered(_) | Verdict::Unknown(_)) => panic!("{other:?}"),
    };
    refused(executor.block_on(clone.send(record(1))));
    executor.block_on(clone.send_all([record(2), record(3)])).into_iter().for_each(refused);
    assert!(executor.block_on(clone.enqueue(record(4))).is_err());
    assert!(clone.abandon("t", 0).is_ok() && clone.abandon("t", u32::MAX).is_err());
    assert_eq!(executor.tasks(), 0);
}

/// The verdict of a record that never had a partition tells its topic, one name or very many.
#[test]
fn records_of_topics_that_are_not_there_hear_their_names() {
    let (mut executor, producer) = start(settings(1), |config| config.auto_create_topics(false));
    let names: Vec<String> = (0..50).map(|n| format!("none-{n}")).collect();
    let deadline = Duration::from_secs(1);
    let records = names.iter().map(|name| Record::to(name.as_str()).deadline(deadline));
    let verdicts = executor.block_on(producer.send_all(records));
    for (name, verdict) in names.iter().zip(verdicts) {
        let Verdict::NotDelivered(no) = verdict else { panic!("{verdict:?}") };
        assert_eq!((&*no.topic, no.partition), (name.as_str(), None));
    }
}
