//! One wrong decision at a time, chosen at run time: a lane per wrong decision would have to be
//! compiled for each.

use std::cell::Cell;

use candor_core::rules::{
    AfterPass, CutFacts, DoubtFacts, Honest, MemoryFacts, NextIdentity, Rules, Stage, Standing,
};
use candor_core::{Instant, ProducerEpoch, Sequence};

/// A decision, and how it is bent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plant {
    NoGate,
    DoubtWashesOff,
    AlwaysKnown,
    AlwaysResends,
    SameSize,
    GivesBackInDoubt,
    EpochStays,
    ResendsToNewTopic,
    OnePassIsEnough,
    WrapsToOne,
    ExpiresLate,
    NeverAbandons,
}

pub(crate) const PLANTS: &[Plant] = &[
    Plant::NoGate,
    Plant::DoubtWashesOff,
    Plant::AlwaysKnown,
    Plant::AlwaysResends,
    Plant::SameSize,
    Plant::GivesBackInDoubt,
    Plant::EpochStays,
    Plant::ResendsToNewTopic,
    Plant::OnePassIsEnough,
    Plant::WrapsToOne,
    Plant::ExpiresLate,
    Plant::NeverAbandons,
];

thread_local! {
    static PLANTED: Cell<Option<Plant>> = const { Cell::new(None) };
}

/// From now on, in this thread.
pub(crate) fn set(plant: Option<Plant>) {
    PLANTED.set(plant);
}

fn is(plant: Plant) -> bool {
    PLANTED.get() == Some(plant)
}

/// What ships, but for the decision that is planted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bent;

impl Rules for Bent {
    fn may_offer(gate_open: bool, open_attempts: usize) -> bool {
        is(Plant::NoGate) || Honest::may_offer(gate_open, open_attempts)
    }

    fn standing(offered: u32, refused: u32) -> Standing {
        match is(Plant::DoubtWashesOff) && refused > 0 {
            true => Standing::Refused,
            false => Honest::standing(offered, refused),
        }
    }

    fn known(facts: &MemoryFacts) -> bool {
        is(Plant::AlwaysKnown) || Honest::known(facts)
    }

    fn resendable(facts: &DoubtFacts) -> bool {
        is(Plant::AlwaysResends) || Honest::resendable(facts)
    }

    fn cut_is_legal(facts: &CutFacts<'_>) -> bool {
        let ends_well = !facts.firsts.contains(&facts.first.after(facts.count));
        Honest::cut_is_legal(facts) || is(Plant::SameSize) && facts.count > 0 && ends_well
    }

    fn replacement_not_written(standing: Standing, open: usize, contested_written: bool) -> bool {
        is(Plant::GivesBackInDoubt) && open == 0
            || Honest::replacement_not_written(standing, open, contested_written)
    }

    fn next_identity(epoch: ProducerEpoch, left_in_doubt: bool) -> NextIdentity {
        match is(Plant::EpochStays) {
            true => NextIdentity::Epoch(epoch),
            false => Honest::next_identity(epoch, left_in_doubt),
        }
    }

    fn resend_to_new_topic() -> bool {
        is(Plant::ResendsToNewTopic)
    }

    fn after_pass(stage: Stage, refused_for_good: bool) -> AfterPass {
        match is(Plant::OnePassIsEnough) {
            true => AfterPass::StateGone,
            false => Honest::after_pass(stage, refused_for_good),
        }
    }

    fn next_sequence(first: Sequence, count: u32) -> Sequence {
        let next = Honest::next_sequence(first, count);
        match is(Plant::WrapsToOne) && next.get() < first.get() {
            true => next.after(1),
            false => next,
        }
    }

    fn expired(now: Instant, deadline: Instant) -> bool {
        match is(Plant::ExpiresLate) {
            true => deadline < now,
            false => Honest::expired(now, deadline),
        }
    }

    fn abandons_stuck(all_told: bool, record_waits_behind: bool, times_in_a_row: u32) -> bool {
        !is(Plant::NeverAbandons)
            && Honest::abandons_stuck(all_told, record_waits_behind, times_in_a_row)
    }
}
