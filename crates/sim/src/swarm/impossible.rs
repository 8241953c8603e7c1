//! Cells of the matrices that no seed can fill, each with its reason.

use super::rows::{Rule, Trouble};
use crate::broker::Profile;

/// Why this can not befall a producer of this profile.
pub(super) fn trouble(_row: Trouble, _profile: Profile) -> Option<&'static str> {
    None
}

/// Why this rule is never at work against this profile.
pub(super) fn rule(_row: Rule, _profile: Profile) -> Option<&'static str> {
    None
}
