//! The conditions themselves, each a pure function over integers. Both forms of the judge ask
//! these and no others.

use super::anomaly::Class;

/// What one attempt did, as far as its answer tells (rules 1, H1).
///
/// ```
/// use candor_sim::judge::{Fate, fate};
/// assert_eq!(fate(0, 41, false), Fate::Appended);
/// assert_eq!(fate(19, -1, false), Fate::NotAppended);
/// assert_eq!(fate(6, -1, false), Fate::Doubtful);
/// assert_eq!(fate(6, -1, true), Fate::NotAppended);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fate {
    /// This attempt appended nothing.
    NotAppended,
    /// It stands in the log.
    Appended,
    /// Nobody can tell from the answer.
    Doubtful,
}

/// Codes that come before the append and may pass.
const RETRIABLE: [i16; 12] = [2, 5, 8, 9, 14, 15, 16, 19, 72, 74, 89, 100];
/// Codes that come before the append and do not pass.
const PERMANENT: [i16; 13] = [10, 17, 18, 21, 29, 31, 32, 35, 42, 43, 44, 76, 87];
/// Codes about sequences and identities: nothing was appended, and what they mean is rule K's.
const JUDGED: [i16; 5] = [45, 46, 47, 59, 90];

/// The fate of an attempt that was answered. Code 46 is read as a refusal here; who knows of
/// earlier attempts may read it as [`Fate::Appended`].
pub fn fate(code: i16, base_offset: i64, trust_base_offset: bool) -> Fate {
    match code {
        0 => Fate::Appended,
        3 | 6 if trust_base_offset && base_offset == -1 => Fate::NotAppended,
        code if RETRIABLE.contains(&code)
            || PERMANENT.contains(&code)
            || JUDGED.contains(&code) =>
        {
            Fate::NotAppended
        }
        _ => Fate::Doubtful,
    }
}

/// Whether a code says that the batch will never do.
pub fn is_permanent(code: i16) -> bool {
    PERMANENT.contains(&code)
}

/// Whether a code casts doubt on the broker's memory of us, or on our identity.
pub fn is_about_memory(code: i16) -> bool {
    JUDGED.contains(&code)
}

/// What was finally said of a record.
///
/// ```
/// use candor_sim::judge::{Class, Said, placed};
/// assert_eq!(placed(Said::Delivered(Some(4)), &[]), Some(Class::Lost));
/// assert_eq!(placed(Said::Unknown, &[4]), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Said {
    /// In the log, at this offset if one was told.
    Delivered(Option<i64>),
    /// Not in the log, nor ever.
    NotDelivered,
    /// Perhaps.
    Unknown,
}

/// Whether the log contradicts what was said of a record that stands at these offsets (CHK-1..3).
pub fn placed(said: Said, offsets: &[i64]) -> Option<Class> {
    match (said, offsets) {
        (Said::NotDelivered, [_, ..]) => Some(Class::Ghost),
        (_, [_, _, ..]) => Some(Class::Duplicate),
        (Said::Delivered(_), []) => Some(Class::Lost),
        (Said::Delivered(Some(told)), [at]) if told != *at => Some(Class::WrongOffset),
        (Said::Delivered(_), [_]) | (Said::Unknown | Said::NotDelivered, []) => None,
        (Said::Unknown, [_]) => None,
    }
}

/// Whether a record may be reported delivered while `earlier`, a record before it in the lane, has
/// no verdict yet (rules D6, S22). `in_log`: the earlier one stands in the log.
pub fn told_in_turn(earlier_was_told: bool, earlier_in_log: bool) -> Option<Class> {
    match (earlier_was_told, earlier_in_log) {
        (true, _) => None,
        (false, true) => Some(Class::OutOfTurn),
        (false, false) => Some(Class::LateBadNews),
    }
}

/// Whether a verdict at `told` came too late for `due` (CHK-6), the host having slept for
/// `stalled` in between.
pub fn is_late(told: u64, due: u64, slack: u64, stalled: u64) -> bool {
    told > due.saturating_add(slack).saturating_add(stalled)
}

/// What a log shows of the sequence that follows `next` in one epoch (CHK-9, CHK-14).
pub fn sequence_follows(next: i64, first: i64) -> Option<Class> {
    if first == next {
        return None;
    }
    // Half of the circle lies ahead, half behind: nobody skips a thousand million records.
    let ahead = (first - next).rem_euclid(MODULUS);
    if ahead < MODULUS / 2 { Some(Class::SeqGap) } else { Some(Class::SeqReuse) }
}

/// Sequences count modulo this.
pub const MODULUS: i64 = 1 << 31;

/// The sequence `count` behind `first`.
pub fn sequence_after(first: i64, count: u32) -> i64 {
    (first + i64::from(count)).rem_euclid(MODULUS)
}

/// Whether two ranges of sequences have one in common.
pub fn overlap(a: i64, a_count: u32, b: i64, b_count: u32) -> bool {
    let ahead = (b - a).rem_euclid(MODULUS);
    let behind = (a - b).rem_euclid(MODULUS);
    ahead < i64::from(a_count) || behind < i64::from(b_count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_overlap_across_the_wrap() {
        assert!(overlap(MODULUS - 2, 4, 0, 1));
        assert!(overlap(0, 1, MODULUS - 2, 4));
        assert!(!overlap(MODULUS - 2, 2, 0, 1));
        assert!(overlap(5, 3, 7, 1));
        assert!(!overlap(5, 3, 8, 1));
        assert_eq!(sequence_after(MODULUS - 1, 3), 2);
    }

    #[test]
    fn a_sequence_that_does_not_follow_is_a_gap_or_a_reuse() {
        assert_eq!(sequence_follows(5, 5), None);
        assert_eq!(sequence_follows(5, 6), Some(Class::SeqGap));
        assert_eq!(sequence_follows(5, 4), Some(Class::SeqReuse));
        assert_eq!(sequence_follows(MODULUS - 1, 0), Some(Class::SeqGap));
        assert_eq!(sequence_follows(0, MODULUS - 1), Some(Class::SeqReuse));
    }

    #[test]
    fn every_code_of_the_table_has_its_fate() {
        for code in [3, 6, 7, 20, 56, -1, 1234] {
            assert_eq!(fate(code, -1, false), Fate::Doubtful, "{code}");
        }
        for code in [7, 20, 56] {
            assert_eq!(fate(code, -1, true), Fate::Doubtful, "{code}");
        }
        assert_eq!(fate(6, 9, true), Fate::Doubtful);
        for code in [2, 19, 10, 45, 47, 59, 90] {
            assert_eq!(fate(code, 5, false), Fate::NotAppended, "{code}");
        }
    }
}
