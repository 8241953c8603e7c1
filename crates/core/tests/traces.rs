//! The traces T1 to T63 of the protocol reference that concern one lane, as one table.
//!
//! `traces/table.txt` holds the traces and `traces/world.rs` says how they are written and goes through them. Everything
//! that a lane tells must be named in its trace, in order. The planted bugs below show that the
//! table can fail.

#[path = "traces/words.rs"]
mod words;
#[path = "traces/world.rs"]
mod world;

use candor_core::rules::{
    AfterReplacement, Bounds, Class, ConclusionFacts, Contender, CutFacts, DuplicateFacts,
    DuplicateMeans, Fate, Honest, Mark, OffsetFacts, ProofFacts, RevokeFacts, Rules, Standing,
    StopCause,
};
use candor_core::{HandedOver, PartitionResponse, Proof};

const TABLE: &str = include_str!("traces/table.txt");

/// The traces of the table: title first, then one line of steps after the other.
fn traces() -> impl Iterator<Item = &'static str> {
    TABLE.split("\n\n").map(str::trim).filter(|block| block.starts_with('T'))
}

fn failures<R: Rules>() -> Vec<String> {
    traces().filter_map(|trace| world::replay::<R>(trace).err()).collect()
}

#[test]
fn every_trace_ends_as_the_reference_wants() {
    let failures = failures::<Honest>();
    assert!(failures.is_empty(), "{} failed\n\n{}", failures.len(), failures.join("\n\n"));
}

#[test]
fn every_trace_is_told_or_left_out_for_a_reason() {
    let told = |number: u32| traces().any(|trace| title_has(trace, number));
    let left_out = |number: u32| {
        let dash = format!("- T{number}:");
        TABLE.lines().any(|line| line.starts_with(&dash))
    };
    for number in 1..=63 {
        assert_ne!(told(number), left_out(number), "T{number}: tell it, or say why not");
    }
}

fn title_has(trace: &str, number: u32) -> bool {
    trace.split_whitespace().next() == Some(&format!("T{number}"))
}

/// Asserts that the table finds a planted bug, in this trace at least.
fn finds<R: Rules>(number: u32) {
    let failures = failures::<R>();
    assert!(failures.iter().any(|failure| title_has(failure, number)), "{}", failures.join("\n\n"));
}

/// Plants one bug and names the trace that finds it.
macro_rules! plant {
    ($test:ident, $number:literal, $method:item) => {
        #[test]
        fn $test() {
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            struct Planted;
            impl Rules for Planted {
                $method
            }
            finds::<Planted>($number);
        }
    };
}

plant!(
    a_span_without_bound_is_found,
    14,
    fn span_has_room(_: usize) -> bool {
        true
    }
);
plant!(
    a_gate_that_never_closes_is_found,
    24,
    fn closes_gate(_: bool, _: bool) -> bool {
        false
    }
);
plant!(
    a_gate_that_is_no_gate_is_found,
    8,
    fn may_offer(_: bool, _: usize) -> bool {
        true
    }
);
plant!(
    doubt_that_a_refusal_ends_is_found,
    11,
    fn standing(_: u32, refused: u32) -> Standing {
        if refused > 0 { Standing::Refused } else { Standing::InDoubt }
    }
);
plant!(
    a_pass_that_stops_at_45_is_found,
    13,
    fn pass_goes_on(_: Mark) -> bool {
        false
    }
);
plant!(
    a_0_that_proves_everything_is_found,
    57,
    fn proves(_: &ProofFacts<'_>) -> bool {
        true
    }
);
plant!(
    a_slot_left_while_in_doubt_is_found,
    16,
    fn verdict_at_deadline(_: Standing, _: usize) -> Option<Proof> {
        Some(Proof::Refused)
    }
);
plant!(
    a_partial_frame_in_doubt_is_found,
    44,
    fn ended(_: HandedOver) -> Fate {
        Fate::Doubtful
    }
);
plant!(
    not_leader_as_a_proof_is_found,
    10,
    fn fate(response: &PartitionResponse, _: bool) -> Fate {
        if response.error_code == 6 { Fate::NotAppended } else { Honest::fate(response, false) }
    }
);
plant!(
    a_contest_of_what_may_be_forgotten_is_found,
    41,
    fn may_revoke(_: &RevokeFacts) -> bool {
        true
    }
);
plant!(
    no_contest_at_all_is_found,
    59,
    fn may_revoke(_: &RevokeFacts) -> bool {
        false
    }
);
plant!(
    a_replacement_of_any_size_is_found,
    41,
    fn cut_is_legal(facts: &CutFacts<'_>) -> bool {
        facts.count > 0
    }
);
plant!(
    a_replacement_with_what_has_a_verdict_is_found,
    59,
    fn goes_into_replacement(_: bool) -> bool {
        true
    }
);
plant!(
    a_taken_slot_that_always_proves_is_found,
    63,
    fn conclusive(_: &ConclusionFacts) -> bool {
        true
    }
);
plant!(
    a_contested_batch_that_always_proves_is_found,
    63,
    fn conclusive(facts: &ConclusionFacts) -> bool {
        facts.written == Contender::Contested || Honest::conclusive(facts)
    }
);
plant!(
    a_replacement_that_is_asked_for_ever_is_found,
    49,
    fn after_replacement(_: Class, _: bool) -> AfterReplacement {
        AfterReplacement::AskAgain
    }
);
plant!(
    a_replacement_given_back_in_doubt_is_found,
    41,
    fn replacement_not_written(_: Standing, open: usize, _: bool) -> bool {
        open == 0
    }
);
plant!(
    a_46_that_proves_on_a_contested_slot_is_found,
    58,
    fn duplicate(facts: DuplicateFacts) -> DuplicateMeans {
        Honest::duplicate(DuplicateFacts { contested: false, ..facts })
    }
);
plant!(
    a_stop_for_good_by_a_log_that_is_gone_is_found,
    25,
    fn recreation_lifts_stop(_: StopCause) -> bool {
        false
    }
);
plant!(
    a_stop_that_any_new_log_ends_is_found,
    25,
    fn recreation_lifts_stop(_: StopCause) -> bool {
        true
    }
);
plant!(
    offsets_without_room_for_what_was_concluded_are_found,
    42,
    fn offsets_agree(facts: OffsetFacts) -> bool {
        let bounds = Bounds { room_before: 0, room_behind: 0, ..facts.bounds };
        Honest::offsets_agree(OffsetFacts { bounds, ..facts })
    }
);
