//! Cells of the matrices that no seed can fill, each with its reason. A cell that stands here and is
//! filled refutes its reason, and fails the run.

use super::rows::{Rule, Trouble};
use crate::broker::Profile;

/// A cell and why it is empty.
type Because = &'static str;

const NO_IDS: Because = "a broker of 2.4 tells no topic ids: Metadata ends at version 9";
const NO_ZERO: Because = "a broker of 2.4 that forgot us answers 59 to all but the first sequence: \
                          no 0 can come behind what it refused";

/// Rules that are never at work against some profile.
const RULES: [(Rule, Profile, Because); 2] =
    [(Rule::NotToNewTopic, Profile::V2_4, NO_IDS), (Rule::Overtaken, Profile::V2_4, NO_ZERO)];

/// Why this can not befall a producer of this profile: everything can.
pub(super) const fn trouble(_: Trouble, _: Profile) -> Option<Because> {
    None
}

/// Why this rule is never at work against this profile.
pub(super) fn rule(row: Rule, profile: Profile) -> Option<Because> {
    let cell = RULES.iter().find(|(rule, one, _)| (*rule, *one) == (row, profile));
    cell.map(|(.., why)| *why)
}
