//! The producer on smol over loopback.

#[path = "../../driver/tests/smoke/mod.rs"]
mod smoke;

use candor_smol::Smol;

#[test]
fn everything_is_delivered_once_and_in_order() {
    smol::block_on(smoke::everything_is_delivered_once_and_in_order::<Smol>());
}

#[test]
fn what_is_cancelled_in_time_is_never_written() {
    smol::block_on(smoke::what_is_cancelled_in_time_is_never_written::<Smol>());
}

#[test]
fn until_tells_at_once_while_the_broker_is_paused() {
    smol::block_on(smoke::until_tells_at_once_while_the_broker_is_paused::<Smol>());
}

#[test]
fn a_driver_can_be_run_by_hand() {
    smol::block_on(smoke::a_driver_can_be_run_by_hand::<Smol>());
}
