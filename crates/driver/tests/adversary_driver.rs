//! Callers that come and go at any point, executors that poll too often or only when woken, sockets
//! and brokers that fail: every future ends, tells the truth, and everything is counted.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panic")]

#[allow(dead_code, reason = "shared with other tests")]
mod world;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use candor_driver::{Config, Record, Resolution, Summary, Verdict};
use candor_sim::serve::{Effect, Fault, Moment, Release, Settings, Upset};
use world::stage::{log, settings};
use world::{Executor, Woken};

type Producer = candor_driver::Producer<world::World>;

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }

    fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize].clone()
    }
}

/// What a caller was told of its record, in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Delivered(Option<i64>),
    NotDelivered,
    Never,
    /// It let go of an `Unknown`.
    Unknown,
}

/// By value: what was heard.
type Book = Arc<Mutex<BTreeMap<u64, End>>>;

fn note(book: &Book, value: u64, end: End) {
    let before = book.lock().unwrap().insert(value, end);
    assert_eq!(before, None, "a second end for {value}");
}

fn resolved(resolution: &Resolution) -> End {
    match resolution {
        Resolution::Delivered(at) => End::Delivered(at.offset),
        Resolution::NotDelivered(_) => End::NotDelivered,
        Resolution::Never(_) => End::Never,
    }
}

async fn hear(book: Book, value: u64, verdict: Verdict, then: u64) {
    let end = match verdict {
        Verdict::Delivered(at) => End::Delivered(at.offset),
        Verdict::NotDelivered(_) => End::NotDelivered,
        Verdict::Unknown(unknown) => match then {
            0 => {
                drop(unknown);
                End::Unknown
            }
            1 => resolved(&unknown.revoke().await),
            _ => resolved(&unknown.resolved().await),
        },
    };
    note(&book, value, end);
}

/// A caller's future, and whether it wants to be polled.
struct Task {
    future: Pin<Box<dyn Future<Output = ()>>>,
    woken: Arc<Woken>,
}

/// A signal that somebody gives.
#[derive(Clone, Default)]
struct Stop(Arc<Mutex<(bool, Option<Waker>)>>);

impl Stop {
    fn give(&self) {
        let mut inside = self.0.lock().unwrap();
        inside.0 = true;
        let waker = inside.1.take();
        drop(inside);
        waker.into_iter().for_each(Waker::wake);
    }
}

impl Future for Stop {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut inside = self.0.lock().unwrap();
        inside.1 = Some(cx.waker().clone());
        if inside.0 { Poll::Ready(()) } else { Poll::Pending }
    }
}

struct Run {
    dice: Dice,
    executor: Executor,
    producers: Vec<Producer>,
    tasks: Vec<Task>,
    stops: Vec<Stop>,
    book: Book,
    values: u64,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut dice = Dice(seed);
        let executor = Executor::new(Settings { brokers: 2, replicas: 2, ..settings(2) });
        let config = Config::new(executor.world.bootstrap())
            .deadline(Duration::from_secs(dice.one(&[1, 10, 120])))
            .linger(Duration::from_millis(dice.one(&[0, 5])))
            .request_timeout(Duration::from_secs(dice.one(&[1, 30])))
            .batch_size(dice.one(&[200, 10_000]))
            .memory(dice.one(&[6_000, 1_000_000]));
        let producer = Producer::lazy_on(executor.world.clone(), config).unwrap();
        Self {
            dice,
            executor,
            producers: vec![producer],
            tasks: Vec::new(),
            stops: Vec::new(),
            book: Book::default(),
            values: 0,
        }
    }

    fn record(&mut self) -> (u64, Record<'static>) {
        let value = self.values;
        self.values += 1;
        let record = Record::to("t").partition(self.dice.below(2) as u32).value(value.to_string());
        match self.dice.below(6) {
            0 => (value, record.deadline(Duration::from_millis(self.dice.one(&[0, 1, 300])))),
            _ => (value, record),
        }
    }

    fn start(&mut self, future: impl Future<Output = ()> + 'static) {
        self.tasks.push(Task { future: Box::pin(future), woken: Woken::new() });
    }

    fn call(&mut self) {
        let Some(producer) = self.producers.first().cloned() else { return };
        let (book, then) = (Arc::clone(&self.book), self.dice.below(4));
        match self.dice.below(9) {
            0 | 1 => {
                let (value, record) = self.record();
                let sending = producer.send(record);
                self.start(async move { hear(book, value, sending.await, then).await });
            }
            2 | 3 => {
                let (value, record) = self.record();
                let enqueue = producer.enqueue(record);
                self.start(async move {
                    match enqueue.await {
                        Err(_) => note(&book, value, End::NotDelivered),
                        Ok(handle) => match then {
                            0 => drop(handle),
                            1 => note(&book, value, resolved(&handle.revoke().await)),
                            2 => {
                                handle.cancel();
                                hear(book, value, handle.await, 2).await;
                            }
                            _ => hear(book, value, handle.await, 2).await,
                        },
                    }
                });
            }
            4 => {
                let (value, record) = self.record();
                let stop = Stop::default();
                self.stops.push(stop.clone());
                let sending = producer.send(record).until(stop);
                self.start(async move { hear(book, value, sending.await, then).await });
            }
            5 | 6 => {
                let records: Vec<_> = (0..self.dice.below(90)).map(|_| self.record()).collect();
                let values: Vec<u64> = records.iter().map(|(value, _)| *value).collect();
                let all = producer.send_all(records.into_iter().map(|(_, record)| record));
                self.start(async move {
                    let verdicts = all.await;
                    assert_eq!(verdicts.len(), values.len());
                    for (value, verdict) in values.into_iter().zip(verdicts) {
                        hear(Arc::clone(&book), value, verdict, then).await;
                    }
                });
            }
            7 => {
                let flush = producer.flush();
                self.start(flush);
            }
            _ => _ = producer.abandon("t", self.dice.below(2) as u32),
        }
    }

    fn disturb(&mut self) {
        let world = self.executor.world.clone();
        match self.dice.below(12) {
            0 => world.lock().refuses ^= true,
            1 => world.lock().bite = self.dice.one(&[3, 100, usize::MAX]),
            2 => world.lock().breaks_after = Some(1 + self.dice.below(400) as usize),
            3 => world.stick(true),
            4 => world.stick(false),
            5 => world.set_wall_ahead(Duration::from_secs(self.dice.below(20))),
            6 => {
                let to = 1 + self.dice.below(2) as u8;
                let partition = self.dice.below(2) as i32;
                let upset = Upset::MoveLeader { topic: "t".to_owned(), partition, to };
                world.with(|net, now| net.upset(now, &upset));
            }
            7 => {
                let upset = Upset::Restart { node: 1 + self.dice.below(2) as u8, crash: false };
                world.with(|net, now| net.upset(now, &upset));
            }
            _ => {
                let effects = [
                    Effect::DropReply,
                    Effect::CutReply(self.dice.below(60) as usize),
                    Effect::CutRequest(self.dice.below(200) as usize),
                    Effect::Answer { code: 7, at: Moment::After },
                    Effect::Answer { code: 19, at: Moment::Before },
                    Effect::Answer { code: 29, at: Moment::Before },
                    Effect::Throttle(700),
                    Effect::HoldReply(Release::Elapsed(2_000_000)),
                    Effect::HoldReply(Release::Never),
                ];
                let effect = self.dice.one(&effects);
                let taken = world.lock().net.taken_up(0);
                world.with(|net, _| net.inject(Fault::on_produce(taken + 1, effect)));
            }
        }
    }

    /// Callers run: whoever was woken, and now and then somebody who was not.
    fn run_callers(&mut self) {
        for _ in 0..1_000 {
            let mut some = false;
            let spurious = self.dice.below(20);
            self.tasks.retain_mut(|task| {
                let woken = task.woken.take();
                if !woken && spurious != 0 {
                    return true;
                }
                some |= woken;
                let waker = Waker::from(Arc::clone(&task.woken));
                task.future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending()
            });
            self.executor.settle();
            if !some {
                return;
            }
        }
        panic!("callers spin");
    }

    fn step(&mut self) {
        match self.dice.below(12) {
            0..=3 => self.call(),
            4 => self.disturb(),
            5 if !self.tasks.is_empty() => {
                let at = self.dice.below(self.tasks.len() as u64) as usize;
                drop(self.tasks.swap_remove(at));
            }
            6 if !self.stops.is_empty() => {
                let at = self.dice.below(self.stops.len() as u64) as usize;
                self.stops.swap_remove(at).give();
            }
            7 => {
                let more = self.producers.first().cloned();
                self.producers.extend(more);
            }
            8 if self.producers.len() > 1 => drop(self.producers.pop()),
            _ => {
                let time = self.dice.one(&[0, 1, 6, 200, 3_000, 40_000]);
                self.run_callers();
                self.executor.pass(Duration::from_millis(time));
            }
        }
        if self.dice.below(3) > 0 {
            self.run_callers();
        }
    }

    fn heal(&mut self) {
        let world = self.executor.world.clone();
        world.stick(false);
        let mut inside = world.lock();
        inside.refuses = false;
        inside.breaks_after = None;
        inside.bite = usize::MAX;
    }

    /// Everything ends in one of the ways in which producers end.
    fn end(mut self) -> usize {
        let way = self.dice.below(4);
        let seconds = self.dice.one(&[0, 2, 60]);
        let summary = Arc::new(Mutex::new(None::<Summary>));
        if self.dice.below(2) == 0 {
            self.heal();
        }
        match way {
            0 => {
                self.producers.clear();
                self.stops.iter().for_each(Stop::give);
            }
            1 => self.executor.shut_down(),
            _ => {
                let close = self.producers[0].close(Duration::from_secs(seconds));
                let told = Arc::clone(&summary);
                self.start(async move { *told.lock().unwrap() = Some(close.await) });
            }
        }
        for _ in 0..40 {
            self.run_callers();
            self.executor.pass(Duration::from_secs(3));
        }
        self.run_callers();
        assert!(self.tasks.is_empty(), "{} callers wait, end {way}", self.tasks.len());
        assert!(way == 0 || self.executor.tasks() == 0, "the driver goes on, end {way}");
        if let Some(producer) = self.producers.first() {
            let stats = producer.stats();
            let counts = stats.machine.counts;
            let told = counts.delivered + counts.not_delivered + counts.unknown;
            assert_eq!((counts.accepted, stats.machine.waiting, stats.in_line), (told, 0, 0));
            let tally = stats.resolutions;
            let resolved = tally.resolved_delivered + tally.resolved_not_delivered + tally.never;
            assert_eq!((counts.unknown, counts.resolved), (resolved, resolved));
            if let Some(summary) = *summary.lock().unwrap() {
                let told = summary.delivered + summary.not_delivered + summary.unknown;
                assert_eq!((summary.accepted, counts.accepted), (told, told));
            }
        }
        self.judge()
    }

    fn judge(&self) -> usize {
        let mut found: BTreeMap<u64, i64> = BTreeMap::new();
        for partition in 0..2 {
            for (offset, value) in log(&self.executor.world, partition).iter().enumerate() {
                let before = found.insert(value.parse().unwrap(), offset as i64);
                assert_eq!(before, None, "{value} twice");
            }
        }
        let book = self.book.lock().unwrap();
        for (value, end) in book.iter() {
            let at = found.get(value).copied();
            match end {
                End::Delivered(offset) => {
                    assert!(at.is_some() && (offset.is_none() || *offset == at), "{value}: {at:?}");
                }
                End::NotDelivered => assert_eq!(at, None, "{value}"),
                End::Never | End::Unknown => {}
            }
        }
        book.len()
    }
}

#[test]
fn every_future_ends_and_tells_the_truth_whoever_comes_and_goes() {
    let number = |name: &str| std::env::var(name).ok().and_then(|it| it.parse().ok());
    let from: u64 = number("ADVERSARY_FROM").unwrap_or(0);
    let seeds: u64 = number("ADVERSARY_SEEDS").unwrap_or(60);
    let (mut heard, mut failed) = (0, Vec::new());
    for seed in from..from + seeds {
        let run = move || {
            let mut run = Run::new(seed);
            let steps = 20 + run.dice.below(150);
            (0..steps).for_each(|_| run.step());
            run.end()
        };
        match std::panic::catch_unwind(run) {
            Ok(n) => heard += n,
            Err(_) => failed.push(seed),
        }
    }
    assert!(failed.is_empty(), "seeds {failed:?}");
    assert!(heard as u64 > 20 * seeds, "{heard} were heard");
}
