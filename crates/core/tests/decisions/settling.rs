//! Rules 3 to 6: slots that are given up, passes in vain, verdicts.

use candor_core::rules::{AfterPass, GivenUpEnd, Honest, Rules, Stage, Standing};
use candor_core::verdict::Proof;

use crate::{STANDINGS, answers, yes};

#[test]
fn a_slot_is_given_up_by_what_was_refused_and_is_not_under_way() {
    for standing in STANDINGS {
        for open in 0..3 {
            let refused = standing == Standing::Refused && open == 0;
            assert_eq!(Honest::vacates(standing, open, false), refused);
            assert!(!Honest::vacates(standing, open, true));
            assert_eq!(Honest::vacated_with(standing, open), refused);
            let proof = refused.then_some(Proof::Refused);
            assert_eq!(Honest::verdict_at_deadline(standing, open), proof);
        }
    }
}

#[test]
fn a_vacated_epoch_ends_when_nothing_can_change_it() {
    for open in 0..3 {
        assert_eq!(Honest::vacate_is_over(false, open), open == 0);
        assert!(!Honest::vacate_is_over(true, open));
    }
}

#[test]
fn what_stands_behind_a_vacated_slot_is_out_of_reach_of_a_broker_that_knows_us() {
    assert_eq!(yes(|[behind, known]| Honest::unreachable(behind, known)), [[true, true]]);
}

#[test]
fn new_batches_are_cut_to_the_largest_child() {
    assert_eq!([1, 700].map(Honest::cut_size), [Some(1), Some(700)]);
}

#[test]
fn what_follows_a_pass_in_vain() {
    assert_eq!(Honest::after_pass(Stage::First, false), AfterPass::Confirm);
    assert_eq!(Honest::after_pass(Stage::Second, false), AfterPass::StateGone);
    for stage in [Stage::First, Stage::Second] {
        assert_eq!(Honest::after_pass(stage, true), AfterPass::ConfirmStuck);
    }
}

#[test]
fn what_was_given_up_ends_when_no_answer_can_come() {
    assert_eq!(Honest::given_up_ends(0, Standing::Refused), Some(GivenUpEnd::NotDelivered));
    assert_eq!(Honest::given_up_ends(0, Standing::InDoubt), Some(GivenUpEnd::Never));
    for standing in STANDINGS {
        for waiting in [1, 2, u32::MAX] {
            assert_eq!(Honest::given_up_ends(waiting, standing), None);
        }
    }
}

/// L4: nobody waits for its verdict, and somebody waits behind it, or it was tried three times.
#[test]
fn a_stuck_head_is_abandoned() {
    for [all_told, waits_behind] in answers() {
        for times in 1..5 {
            let expected = all_told && (waits_behind || times > 2);
            assert_eq!(Honest::abandons_stuck(all_told, waits_behind, times), expected, "{times}");
        }
    }
}

#[test]
fn reported_unknowns_hold_a_quarter_of_the_memory() {
    assert_eq!([0, 3, 4, 1_000].map(Honest::unknown_share), [0, 0, 1, 250]);
}
