//! The producer on tokio over loopback.
#![allow(clippy::unwrap_used, reason = "a test fails by panic")]

#[path = "../../driver/tests/smoke/mod.rs"]
mod smoke;

use candor_tokio::Tokio;

/// On several threads, and on one.
fn run<F: Future<Output = ()>>(future: impl Fn() -> F) {
    let many = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    many.unwrap().block_on(future());
    let one = tokio::runtime::Builder::new_current_thread().enable_all().build();
    one.unwrap().block_on(future());
}

#[test]
fn everything_is_delivered_once_and_in_order() {
    run(smoke::everything_is_delivered_once_and_in_order::<Tokio>);
}

#[test]
fn what_is_cancelled_in_time_is_never_written() {
    run(smoke::what_is_cancelled_in_time_is_never_written::<Tokio>);
}

#[test]
fn until_tells_at_once_while_the_broker_is_paused() {
    run(smoke::until_tells_at_once_while_the_broker_is_paused::<Tokio>);
}

#[test]
fn a_driver_can_be_run_by_hand() {
    run(smoke::a_driver_can_be_run_by_hand::<Tokio>);
}

#[test]
fn without_a_runtime_nothing_is_delivered_and_nothing_hangs() {
    let producer =
        candor_tokio::Producer::lazy(candor_tokio::Config::new(["localhost:9"])).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let verdict = runtime.block_on(producer.send(candor_tokio::Record::to("t")));
    assert!(matches!(verdict, candor_tokio::Verdict::NotDelivered(_)));
}
