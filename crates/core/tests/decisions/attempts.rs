//! Rules 1: what codes and ends of connections prove.

use candor_core::PartitionResponse;
use candor_core::event::HandedOver;
use candor_core::rules::{Class, DuplicateFacts, DuplicateMeans, Fate, Honest, Rules, Standing};

use crate::answers;

/// The codes of rules 1 by their meaning; what stands nowhere is doubtful.
const CODES: [(Class, &[i16]); 10] = [
    (Class::None, &[0]),
    (Class::Corrupt, &[2]),
    (Class::Retriable, &[5, 8, 9, 14, 15, 16, 19, 72, 74, 89, 100]),
    (Class::TooLarge, &[10, 18]),
    (Class::InvalidRecords, &[32, 87]),
    (Class::Permanent, &[17, 21, 29, 31, 35, 42, 43, 44, 76]),
    (Class::OutOfOrder, &[45]),
    (Class::Duplicate, &[46]),
    (Class::Fenced, &[47, 90]),
    (Class::UnknownProducer, &[59]),
];

fn listed(code: i16) -> Option<Class> {
    CODES.iter().find(|(_, codes)| codes.contains(&code)).map(|(class, _)| *class)
}

#[test]
fn each_code_has_one_class() {
    for code in i16::MIN..=i16::MAX {
        assert_eq!(Honest::class(code), listed(code).unwrap_or(Class::Doubtful), "{code}");
    }
}

#[test]
fn only_a_zero_is_appended_and_only_a_definite_code_is_not() {
    for code in -2..200 {
        for base_offset in [-1, 0, 7] {
            for trusted in [false, true] {
                let response = PartitionResponse { base_offset, ..PartitionResponse::error(code) };
                // H1: 3 and 6 without a base offset come before the append, if that is trusted.
                let before_append = trusted && [3, 6].contains(&code) && base_offset == -1;
                let expected = match listed(code) {
                    Some(Class::None) => Fate::Appended,
                    Some(_) => Fate::NotAppended,
                    None if before_append => Fate::NotAppended,
                    None => Fate::Doubtful,
                };
                assert_eq!(Honest::fate(&response, trusted), expected, "{code} {base_offset}");
            }
        }
    }
}

#[test]
fn a_duplicate_is_ours_only_if_something_of_it_may_have_arrived() {
    for [contested, earlier_not_refused, first_attempt] in answers() {
        let facts = DuplicateFacts { first_attempt, earlier_not_refused, contested };
        let expected = match (contested, earlier_not_refused, first_attempt) {
            (true, _, _) | (false, false, false) => DuplicateMeans::OutOfOrder,
            (false, true, _) => DuplicateMeans::Appended,
            (false, false, true) => DuplicateMeans::Conflict,
        };
        assert_eq!(Honest::duplicate(facts), expected, "{facts:?}");
    }
}

#[test]
fn a_frame_that_was_cut_is_not_appended_and_any_other_may_be() {
    assert_eq!(Honest::ended(HandedOver::Partly), Fate::NotAppended);
    assert_eq!(Honest::ended(HandedOver::PerhapsWhole), Fate::Doubtful);
}

#[test]
fn one_attempt_that_was_not_refused_is_doubt() {
    for offered in 1..5 {
        for refused in 0..=offered {
            let refused_all = Honest::standing(offered, refused) == Standing::Refused;
            assert_eq!(refused_all, refused == offered, "{refused} of {offered}");
        }
    }
}

#[test]
fn a_corrupt_message_is_worth_three_attempts() {
    let permanent = [1, 2, 3, 4].map(Honest::corrupt_is_permanent);
    assert_eq!(permanent, [false, false, true, true]);
}

/// V1: a batch that is too large is halved until one record is left; bad records are named, or all are bad.
#[test]
fn which_records_fail_with_a_permanent_code() {
    let fails = |class, records, named: &[u32]| {
        (0..records).filter(|&index| Honest::record_fails(class, records, named, index)).count()
    };
    assert_eq!(fails(Class::TooLarge, 1, &[]), 1);
    assert_eq!(fails(Class::TooLarge, 2, &[]), 0);
    assert_eq!(fails(Class::TooLarge, 3, &[1]), 0);
    assert_eq!(fails(Class::InvalidRecords, 3, &[]), 3);
    assert_eq!(fails(Class::InvalidRecords, 3, &[1]), 1);
    assert!(Honest::record_fails(Class::InvalidRecords, 3, &[1], 1));
    assert_eq!(fails(Class::InvalidRecords, 3, &[7]), 0);
    for class in [Class::Permanent, Class::Corrupt] {
        assert_eq!(fails(class, 3, &[]), 3, "{class:?}");
        assert_eq!(fails(class, 3, &[1]), 3, "{class:?}");
    }
}
