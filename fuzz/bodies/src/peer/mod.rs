//! A hostile peer against the whole producer, in any state that it can be brought into.

mod answers;
mod link;
mod world;

use candor_core::rules::{Honest, Rules};

use crate::{Tally, feed::Feed};
pub use link::next_request;
use world::World;

/// More steps than any input needs to show what it has.
const MOST_STEPS: usize = 600;

/// The first bytes say which versions the peer speaks and how far it behaves by itself, so that an
/// input need not earn every state; the others are what happens, step by step: records come, time
/// passes, bytes move, answers are right, wrong, torn, or no answers at all. In the end the producer
/// is closed and the peer says nothing any more.
///
/// Every record has one verdict, no later than it is due; every `Unknown` one resolution; the
/// producer never refuses its own work, never asks to be called at once for ever, and writes only
/// what a broker can read.
pub fn peer(data: &[u8]) {
    peer_under::<Honest>(data);
}

/// As [`peer`], for a producer under other rules: a body must find what is wrong with wrong ones.
pub fn peer_under<R: Rules>(data: &[u8]) -> Tally {
    let mut feed = Feed::new(data);
    let mut world: World<R> = World::new(&mut feed);
    for _ in 0..MOST_STEPS {
        if feed.is_empty() {
            break;
        }
        world.step(&mut feed);
        world.settle();
    }
    world.finish();
    world.tally()
}
