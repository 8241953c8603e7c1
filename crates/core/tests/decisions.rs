//! Every decision of the rules against a second hand: its whole table where that is small, its edges
//! where it is not. Schedules show what a wrong decision does to records; this leaves no part of
//! one untouched.

#![allow(clippy::unwrap_used, reason = "a test fails by panic")]

mod decisions {
    mod attempts;
    mod cluster;
    mod contests;
    mod memory;
    mod proofs;
    mod sequences;
    mod settling;
    mod time;
}

use candor_core::rules::Standing;

/// All ways in which so many questions can be answered by yes or no.
fn answers<const N: usize>() -> impl Iterator<Item = [bool; N]> {
    (0..1_u32 << N).map(|bits| std::array::from_fn(|index| bits >> index & 1 == 1))
}

/// The answers with which a decision says yes.
fn yes<const N: usize>(decision: impl Fn([bool; N]) -> bool) -> Vec<[bool; N]> {
    answers().filter(|answer| decision(*answer)).collect()
}

const STANDINGS: [Standing; 2] = [Standing::Refused, Standing::InDoubt];
