//! Rules C: replacements and what they tell.

use candor_core::rules::{
    AfterReplacement, Class, ConclusionFacts, Contender, CutFacts, Honest, RevokeFacts, Rules,
    Standing,
};
use candor_core::{Offset, Sequence};

use crate::{STANDINGS, answers};

/// C1: the broker must be able to answer, and the answer must mean something.
#[test]
fn what_may_be_contested() {
    for [resendable, written_behind, predecessors_passed, gate, acknowledged, first] in answers() {
        let facts = RevokeFacts {
            resendable,
            written_behind,
            predecessors_passed,
            gate_opened_before: gate,
            acknowledged,
            first_of_epoch: first,
        };
        let means_something = [gate, acknowledged, first].contains(&true);
        let can_be_asked = [resendable, !written_behind, predecessors_passed] == [true; 3];
        assert_eq!(Honest::may_revoke(&facts), means_something && can_be_asked, "{facts:?}");
    }
}

/// C2: a batch of three at 10 is contested; others begin at 10, 13 and 15.
#[test]
fn which_cuts_are_legal() {
    let at = |number| Sequence::new(number).unwrap();
    let firsts = [at(10), at(13), at(15)];
    let legal = |other_contents: &[u32]| -> Vec<u32> {
        let fits = |&count: &u32| {
            Honest::cut_is_legal(&CutFacts {
                first: at(10),
                count,
                contested_count: 3,
                firsts: &firsts,
                other_contents,
            })
        };
        (0..8).filter(fits).collect()
    };
    assert_eq!(legal(&[]), [1, 2, 4, 6, 7]);
    assert_eq!(legal(&[2, 6]), [1, 4, 7]);
    // The own size is out even where no batch begins behind it.
    let alone =
        CutFacts { first: at(10), count: 3, contested_count: 3, firsts: &[], other_contents: &[] };
    assert!(!Honest::cut_is_legal(&alone));
    assert!(Honest::cut_is_legal(&CutFacts { count: 2, ..alone }));
    assert!(!Honest::cut_is_legal(&CutFacts { count: 0, ..alone }), "nothing contests nothing");
}

#[test]
fn records_with_a_verdict_stay_where_they_are() {
    assert!(Honest::goes_into_replacement(false) && !Honest::goes_into_replacement(true));
}

#[test]
fn when_the_zero_of_one_contender_is_conclusive() {
    // Log start, last acknowledged offset, whether it is the first of its epoch; whether the log reaches back.
    let rows = [
        (None, None, true, false),
        (None, Some(5), true, false),
        (Some(4), Some(5), false, true),
        (Some(5), Some(5), false, true),
        (Some(6), Some(5), false, false),
        (Some(6), Some(5), true, false),
        (Some(0), None, true, true),
        (Some(0), None, false, false),
        (Some(1), None, true, false),
    ];
    for (log_start, last, first_of_epoch, reaches_back) in rows {
        let both = [Contender::Replacement, Contender::Contested];
        for ([resendable, gate_opened_before], written) in
            answers().flat_map(|it| both.map(|written| (it, written)))
        {
            let facts = ConclusionFacts {
                written,
                resendable,
                gate_opened_before,
                log_start: log_start.map(|at| Offset::new(at).unwrap()),
                last_acknowledged: last.map(|at| Offset::new(at).unwrap()),
                first_of_epoch,
            };
            let expected = resendable && (gate_opened_before || reaches_back);
            assert_eq!(Honest::conclusive(&facts), expected, "{facts:?}");
        }
    }
}

#[test]
fn what_follows_a_refused_replacement() {
    for class in [Class::OutOfOrder, Class::UnknownProducer] {
        for permanent in [false, true] {
            let next = Honest::after_replacement(class, permanent);
            assert_eq!(next, AfterReplacement::AskContested, "{class:?}");
        }
    }
    let others = [
        Class::Corrupt,
        Class::Retriable,
        Class::TooLarge,
        Class::InvalidRecords,
        Class::Permanent,
        Class::Duplicate,
        Class::Fenced,
    ];
    for class in others {
        assert_eq!(Honest::after_replacement(class, true), AfterReplacement::AskContested);
        assert_eq!(Honest::after_replacement(class, false), AfterReplacement::AskAgain);
    }
}

#[test]
fn a_replacement_is_not_written_where_the_contested_batch_is_or_all_refused_it() {
    for standing in STANDINGS {
        for open in 0..3 {
            assert!(Honest::replacement_not_written(standing, open, true));
            let refused = standing == Standing::Refused && open == 0;
            assert_eq!(Honest::replacement_not_written(standing, open, false), refused);
        }
    }
}
