//! The producer on async-std over loopback.

#[path = "../../driver/tests/smoke/mod.rs"]
mod smoke;

use candor_async_std::AsyncStd;

#[test]
fn everything_is_delivered_once_and_in_order() {
    async_std::task::block_on(smoke::everything_is_delivered_once_and_in_order::<AsyncStd>());
}

#[test]
fn what_is_cancelled_in_time_is_never_written() {
    async_std::task::block_on(smoke::what_is_cancelled_in_time_is_never_written::<AsyncStd>());
}

#[test]
fn until_tells_at_once_while_the_broker_is_paused() {
    async_std::task::block_on(smoke::until_tells_at_once_while_the_broker_is_paused::<AsyncStd>());
}

#[test]
fn a_driver_can_be_run_by_hand() {
    async_std::task::block_on(smoke::a_driver_can_be_run_by_hand::<AsyncStd>());
}
