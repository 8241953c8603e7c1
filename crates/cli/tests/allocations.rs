//! What a record costs in allocations: everything that this process allocates counts, whoever does
//! it. The cluster is another process, so that what it allocates does not.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::alloc::System;
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io::{BufRead, BufReader};
use std::pin::Pin;
use std::process::{Child, Command, Stdio};
use std::task::Poll;

use candor_tokio::{Config, Producer, Record, Sending, Verdict};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static COUNTED: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const RECORDS: usize = 1_000_000;

/// Records that are on their way at the same time.
const OUTSTANDING: usize = 10_000;

/// The bar: allocations and reallocations per record, as 1 in so many.
const RECORDS_PER_ALLOCATION: usize = 20;

/// `candor broker` in a process of its own.
struct Broker(Child);

impl Broker {
    fn start() -> (Self, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_candor"));
        let command = command.args(["broker", "--listen", "127.0.0.1:0"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let broker = Self(child);
        let bootstrap = lines
            .map_while(Result::ok)
            .find_map(|line| line.strip_prefix("bootstrap ").map(str::to_owned));
        (broker, bootstrap.unwrap())
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _dead = self.0.kill().and_then(|()| self.0.wait());
    }
}

/// Begins to send: the record is accepted when this returns.
async fn begin(sending: &mut Sending<'_>) {
    let first = poll_fn(|cx| Poll::Ready(Pin::new(&mut *sending).poll(cx))).await;
    assert!(first.is_pending(), "a verdict without a broker's answer: {first:?}");
}

async fn delivered(sending: Sending<'_>) {
    let verdict = sending.await;
    assert!(matches!(verdict, Verdict::Delivered(_)), "{verdict:?}");
}

async fn send_all(producer: &Producer, value: &[u8]) {
    let mut outstanding = VecDeque::with_capacity(OUTSTANDING);
    for _ in 0..RECORDS {
        if outstanding.len() == OUTSTANDING {
            delivered(outstanding.pop_front().unwrap()).await;
        }
        let mut sending = producer.send(Record::to("t").value(value));
        begin(&mut sending).await;
        outstanding.push_back(sending);
    }
    for sending in outstanding {
        delivered(sending).await;
    }
}

#[test]
fn twenty_records_cost_less_than_one_allocation() {
    let (_broker, bootstrap) = Broker::start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let config = Config::new(bootstrap.split(',')).batch_size(16 << 10);
        let producer = Producer::connect(config).await.unwrap();
        // Records of a topic that is not known yet are kept one by one: that is another figure.
        delivered(producer.send(Record::to("t").value("the first"))).await;
        let region = Region::new(COUNTED);
        send_all(&producer, &[7; 100]).await;
        let counted = region.change();
        let all = counted.allocations + counted.reallocations;
        println!(
            "{} allocations and {} reallocations for {RECORDS} records: {:.4} per record",
            counted.allocations,
            counted.reallocations,
            all as f64 / RECORDS as f64
        );
        assert!(all * RECORDS_PER_ALLOCATION <= RECORDS, "{counted:?}");
    });
}
