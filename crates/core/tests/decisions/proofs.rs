//! S22: what a later 0 proves of the batches before it.

use candor_core::rules::{Honest, Mark, PredecessorFacts, ProofFacts, Rules};

use crate::answers;

const MARKS: [Mark; 5] = [
    Mark::Unasked,
    Mark::OutOfOrder,
    Mark::UnknownProducer,
    Mark::Refused { behind_out_of_order: false },
    Mark::Refused { behind_out_of_order: true },
];

fn predecessors() -> Vec<PredecessorFacts> {
    let of = |mark| {
        answers().map(
            move |[behind_opener, attempt_before_on_route, not_refused, behind_established]| {
                PredecessorFacts {
                    behind_opener,
                    attempt_before_on_route,
                    not_refused,
                    behind_established,
                    mark,
                }
            },
        )
    };
    MARKS.into_iter().flat_map(of).collect()
}

/// The three ways, for one predecessor: pipelined behind the opener, asked one by one, or behind
/// what is established.
fn ways(one: &PredecessorFacts) -> [bool; 3] {
    let asked_in_vain = match one.mark {
        Mark::OutOfOrder | Mark::Refused { behind_out_of_order: true } => true,
        Mark::Unasked | Mark::UnknownProducer | Mark::Refused { behind_out_of_order: false } => {
            false
        }
    };
    [
        one.behind_opener && one.attempt_before_on_route,
        one.not_refused && asked_in_vain,
        one.not_refused && one.behind_established,
    ]
}

/// One way has to hold for all of them, and none holds where the broker may have forgotten us.
#[test]
fn a_later_zero_proves_by_one_way_for_all() {
    let all = predecessors();
    let mut proved = 0;
    for [known, vacated_between, through_open_gate, in_pass] in answers() {
        for one in &all {
            for other in &all {
                let predecessors = [*one, *other];
                let facts = ProofFacts {
                    known,
                    vacated_between,
                    through_open_gate,
                    in_pass,
                    predecessors: &predecessors,
                };
                let [a, b] = predecessors.each_ref().map(ways);
                let by = |way: usize| a[way] && b[way];
                let expected = known
                    && !vacated_between
                    && (through_open_gate && by(0) || in_pass && by(1) || by(2));
                assert_eq!(Honest::proves(&facts), expected, "{facts:?}");
                proved += u32::from(expected);
            }
        }
    }
    assert!(proved > 100, "{proved}");
}
