//! What looks like chance: hashes of the one seed, and waits that are spread by them (rule L3).

use candor_core::Span;
use candor_core::rules::Rules;

/// Hashes two numbers into one, well spread (SplitMix64's finisher). All "randomness" is this, of
/// the one seed.
pub(crate) const fn mix(seed: u64, value: u64) -> u64 {
    let mut z = seed ^ value.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// L3: the wait after the `failures`-th failure in a row (1 and up): a fifth shorter or longer, by
/// hash, than the rule has it, never beyond `longest`.
pub(crate) fn backoff<R: Rules>(first: Span, longest: Span, failures: u32, hash: u64) -> Span {
    R::backoff(failures, first, longest).spread(hash).min(longest).max(Span::from_micros(1))
}

#[cfg(test)]
mod tests {
    use candor_core::rules::Honest;

    use super::*;

    #[test]
    fn backoff_doubles_to_its_bound_and_spreads() {
        let (first, longest) = (Span::from_millis(100), Span::from_millis(1000));
        for (failures, low, high) in [(1, 80, 120), (2, 160, 240), (3, 320, 480), (9, 800, 1000)] {
            for hash in 0..50 {
                let wait = backoff::<Honest>(first, longest, failures, mix(hash, 3)).as_millis();
                assert!((low..=high).contains(&wait), "{failures}: {wait}");
            }
        }
        assert!(backoff::<Honest>(first, longest, u32::MAX, u64::MAX) <= longest);
        assert!(backoff::<Honest>(Span::from_micros(1), longest, 1, 0) > Span::ZERO);
    }
}
