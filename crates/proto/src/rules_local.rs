//! The protocol decisions of the cluster side, as pure functions: what follows, what waits, what
//! is asked for. Everything that sections 2, 5, 6 and 8 of the rules leave to the connection side.

use candor_core::{Instant, Span};

/// Hashes two numbers into one, well spread (SplitMix64's finisher). All "randomness" is this, of
/// the one seed.
pub(crate) const fn mix(seed: u64, value: u64) -> u64 {
    let mut z = seed ^ value.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// L3: the wait after the `failures`-th failure in a row (1 and up): doubling from `first` to
/// `longest`, then up to a fifth shorter or longer by hash, never beyond `longest`.
pub(crate) fn backoff(first: Span, longest: Span, failures: u32, hash: u64) -> Span {
    let doubled = first.times(1 << failures.saturating_sub(1).min(32));
    let base = doubled.as_micros().min(longest.as_micros());
    let fifth = base / 5;
    let jittered = (base - fifth).saturating_add(hash % (2 * fifth + 1));
    Span::from_micros(jittered.min(longest.as_micros()).max(1))
}

/// S17: whether anything may be offered to a connection that the broker throttled until `until`.
pub(crate) fn may_speak(now: Instant, until: Instant) -> bool {
    now >= until
}

/// L7: whether a partition whose requests were lost so often, without any answer, goes alone.
pub(crate) const fn goes_alone(losses: u32) -> bool {
    losses >= 2
}

/// S21, K5: two answers that agree count as two if different brokers gave them, or if one
/// `metadata.max.age` lies between them.
pub(crate) fn two_answers_count<B: PartialEq>(
    first: (Option<B>, Instant),
    second: (Option<B>, Instant),
    age: Span,
) -> bool {
    let brokers_differ = match (first.0, second.0) {
        (Some(one), Some(other)) => one != other,
        (None, _) | (_, None) => false,
    };
    brokers_differ || second.1.since(first.1) >= age
}

/// Faults 89, 101: a connection that was up for a while and had nothing open was idle: its end is
/// no failure.
pub(crate) fn ended_idle(open: usize, up_for: Span, longest_backoff: Span) -> bool {
    open == 0 && up_for > longest_backoff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_doubles_to_its_bound_and_spreads() {
        let (first, longest) = (Span::from_millis(100), Span::from_millis(1000));
        for (failures, low, high) in [(1, 80, 120), (2, 160, 240), (3, 320, 480), (9, 800, 1000)] {
            for hash in 0..50 {
                let wait = backoff(first, longest, failures, mix(hash, 3)).as_millis();
                assert!((low..=high).contains(&wait), "{failures}: {wait}");
            }
        }
        assert!(backoff(first, longest, u32::MAX, u64::MAX) <= longest);
        assert!(backoff(Span::from_micros(1), longest, 1, 0) > Span::ZERO);
    }

    #[test]
    fn two_brokers_count_as_two_and_one_only_after_an_age() {
        let age = Span::from_secs(300);
        let at = Instant::from_millis;
        assert!(two_answers_count((Some(1), at(0)), (Some(2), at(1)), age));
        assert!(!two_answers_count((Some(1), at(0)), (Some(1), at(1)), age));
        assert!(!two_answers_count((None, at(0)), (Some(2), at(1)), age));
        assert!(two_answers_count::<i32>((None, at(0)), (None, at(300_000)), age));
    }
}
