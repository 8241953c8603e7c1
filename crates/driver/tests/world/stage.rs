//! What scenarios of the driver have in common.
#![allow(clippy::unwrap_used, reason = "a test fails by panic")]

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use candor_driver::{Handle, Producer, Record};
use candor_sim::serve::{Effect, Fault, Net, Release, Settings};

use super::{Executor, World};

/// Longer than anything lasts when nothing is in its way.
const A_WHILE: Duration = Duration::from_secs(1);

/// One broker with the topic `t`.
pub(crate) fn settings(partitions: usize) -> Settings {
    Settings { topics: vec![("t".to_owned(), partitions)], ..Settings::default() }
}

/// A broker whose n-th answer to a Produce is held back.
pub(crate) fn holding(nth: u64) -> Settings {
    let held = Fault::on_produce(nth, Effect::HoldReply(Release::ByHand));
    Settings { faults: vec![held], ..settings(1) }
}

/// Lets all answers go.
pub(crate) fn release(net: &mut Net, now: u64) {
    for (connection, _) in net.held() {
        net.release(now, connection);
    }
}

/// The n-th record; its value is its number.
pub(crate) fn record(n: usize) -> Record<'static> {
    Record::to("t").partition(0).value(n.to_string())
}

/// The n-th record, made larger by so many bytes.
pub(crate) fn filled(n: usize, size: usize) -> Record<'static> {
    record(n).header("filler", vec![0; size])
}

/// Record 0 is delivered, the socket does not take record 1, and 2 is cancelled behind it: the handles
/// of these two.
pub(crate) fn cancel_behind_a_stuck_socket(
    executor: &mut Executor,
    producer: &Producer<World>,
) -> (Handle, Handle) {
    assert!(executor.block_on(producer.send(record(0))).is_delivered());
    executor.world.stick(true);
    let stuck = producer.try_send(record(1)).unwrap();
    executor.pass(A_WHILE);
    let behind = producer.try_send(record(2)).unwrap();
    executor.pass(A_WHILE);
    behind.cancel();
    (stuck, behind)
}

/// The values in a partition's log.
pub(crate) fn log(world: &World, partition: usize) -> Vec<String> {
    let records = world.lock().net.records("t", partition).unwrap();
    records.into_iter().map(|r| String::from_utf8(r.value.unwrap().to_vec()).unwrap()).collect()
}

/// Polls it once.
pub(crate) fn is_pending(future: impl Future) -> bool {
    pin!(future).poll(&mut Context::from_waker(Waker::noop())).is_pending()
}
