//! When a lane wants to be polled again, and for what; how long a batch waits before it is resent.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test's helpers

mod play;

use std::collections::BTreeSet;

use candor_core::*;
use play::{MINUTE, Play};

/// How long a broker remembers us at least.
fn memory() -> u64 {
    LaneConfig::default().state_ttl.as_millis()
}

fn wake(play: &Play) -> Option<(u64, Wakeup)> {
    let deadline = play.lane.deadline()?;
    Some((deadline.at.as_millis() as u64, deadline.why))
}

/// A record with this timestamp is in doubt and told so, and no backoff is left.
fn doubt(play: &mut Play, timestamp: i64) -> (u64, AttemptId) {
    let ticket = play.join(timestamp, 10);
    play.flush();
    let attempt = play.offer();
    play.wait(20);
    assert!(matches!(play.verdicts[&ticket], Verdict::Unknown(_)));
    (ticket, attempt)
}

/// S20: what is in doubt is looked at again when its broker may have forgotten it: by its timestamp.
#[test]
fn memory_ends_by_the_timestamp_of_what_is_in_doubt() {
    let mut play = Play::new();
    play.open_gate(10);
    play.now += 5_000;
    let timestamp = play.now as i64 - 1_000;
    let (ticket, attempt) = doubt(&mut play, timestamp);
    assert_eq!(wake(&play), None, "its answer may come");
    play.lose(attempt);
    play.wait(2_000);
    let end = timestamp as u64 + memory();
    assert_eq!(wake(&play), Some((end, Wakeup::Memory)));
    play.now = end;
    play.poll();
    let told = play.resolutions.get(&ticket);
    assert!(matches!(told, Some(Resolution::Never { reason: NeverReason::Expired, .. })));
    assert_eq!(wake(&play), None);
}

/// S20: or by its first offer, if its records say that they are younger.
#[test]
fn memory_ends_by_the_first_offer_of_what_is_in_doubt() {
    let mut play = Play::new();
    play.open_gate(10);
    play.now += 5_000;
    let offered = play.now;
    let (_, attempt) = doubt(&mut play, offered as i64 + 60_000);
    play.lose(attempt);
    play.wait(2_000);
    assert_eq!(wake(&play), Some((offered + memory(), Wakeup::Memory)));
}

/// S20: or by what was written behind it without proving it.
#[test]
fn memory_ends_by_what_was_written_behind() {
    let mut play = Play::new();
    let opener = play.join(play.now as i64 - memory() as i64 + 60_000, MINUTE);
    play.flush();
    let attempt = play.offer();
    play.zero(attempt, 10);
    assert!(matches!(play.verdicts[&opener], Verdict::Delivered { .. }));
    let behind = play.now as i64 - memory() as i64 + 120_000;
    let now = play.now as i64;
    let (passed, first) = doubt(&mut play, now);
    let (_, second) = doubt(&mut play, behind);
    play.lose(first);
    play.lose(second);
    play.wait(90_000);
    let asked = play.offer();
    play.error(asked, 45);
    let asked = play.offer_again();
    play.zero(asked, 11);
    play.wait(2_000);
    let end = behind as u64 + memory();
    assert_eq!(wake(&play), Some((end, Wakeup::Memory)));
    play.now = end - 1;
    play.poll();
    assert!(!play.resolutions.contains_key(&passed));
    play.now = end;
    play.poll();
    let told = play.resolutions.get(&passed);
    assert!(
        matches!(told, Some(Resolution::Never { reason: NeverReason::Expired, .. })),
        "{told:?}"
    );
}

/// How long a batch at this position waits after these many refusals.
fn backoffs(seed: u64, position: u64, failures: usize) -> Vec<u64> {
    let (wait, most) = (Span::from_millis(1_000_000), Span::from_millis(1_000_000));
    let jitter = Some(seed);
    let config = LaneConfig { backoff: wait, backoff_max: most, jitter, ..LaneConfig::default() };
    let mut play = Play::with(config, 3);
    for base in 0..position {
        play.open_gate(10 + base as i64);
    }
    // What opened the gate had deadlines of its own.
    play.wait(2 * MINUTE);
    play.append(1_000 * MINUTE);
    let mut waits = Vec::new();
    for _ in 0..failures {
        let attempt = play.offer();
        play.error(attempt, 19);
        let (until, why) = wake(&play).expect("a deadline");
        assert_eq!(why, Wakeup::Backoff);
        waits.push(until - play.now);
        // The wait ends within that millisecond.
        play.now = until + 1;
        play.poll();
    }
    waits
}

/// L3: seed, batch and the number of failures all change the wait, which stays near what it is.
#[test]
fn waits_are_spread_by_seed_batch_and_failures() {
    let mut seen = BTreeSet::new();
    for seed in [0, 5, u64::MAX] {
        for position in 0..4 {
            for wait in backoffs(seed, position, 3) {
                assert!((500_000..=2_000_000).contains(&wait), "{wait}");
                assert!(seen.insert(wait), "{wait} twice");
            }
        }
    }
    assert_eq!(backoffs(5, 1, 3), backoffs(5, 1, 3), "by a hash and not by chance");
}

/// L3, L9: halves, fifths and ends of what can be waited for.
#[test]
fn spans_are_halved_and_spread_and_never_overflow() {
    let span = Span::from_micros(1_000);
    assert_eq!((span.as_micros(), span.as_millis(), span.half().as_micros()), (1_000, 1, 500));
    let spread = [0, 1, 200, 400, 401].map(|hash| span.spread(hash).as_micros());
    assert_eq!(spread, [800, 801, 1_000, 1_200, 800]);
    assert_eq!(Span::FOREVER.times(2), Span::FOREVER);
    assert!(Span::FOREVER.spread(u64::MAX) > Span::FOREVER.half());
    assert_eq!(Instant::NEVER + span, Instant::NEVER);
    assert_eq!(Instant::EPOCH.since(Instant::NEVER), Span::ZERO);
    assert_eq!((Instant::EPOCH + span).since(Instant::EPOCH), span);
}
