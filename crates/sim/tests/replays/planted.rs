//! Planted bugs, those of the search: each must break the scenarios that are named beside it. A
//! scenario that no bug breaks shows nothing.

use candor_sim::replay::Scenario;
use candor_sim::search::INVERSIONS;

use super::{files, number};

/// Bugs, and the entries whose scenarios they break, at least.
const TABLE: &[(&str, &[u32])] = &[
    ("TimeoutRefuses", &[61]),
    ("EndRefuses", &[13, 41, 55, 57]),
    ("CutDoubts", &[55]),
    ("DoubtWashesOff", &[39, 57, 173]),
    ("SequenceStands", &[5, 59, 101, 165]),
    ("StaysOpen", &[5, 15, 25]),
    ("NoGate", &[5, 29, 177]),
    ("PassStandsStill", &[9, 15, 27, 57, 179]),
    ("PassRuns", &[5, 7, 13]),
    ("NobodyIsOrphaned", &[11]),
    ("AnyPassCounts", &[9, 15, 25, 27]),
    ("EpochStays", &[9, 35, 43, 45, 47, 53, 179]),
    ("ResendsToNewTopic", &[11, 41]),
    ("AlwaysResends", &[27]),
    ("PurgedDoubtResent", &[27]),
    ("DoubtVacates", &[13, 39, 55, 61]),
    ("OpenVacates", &[11, 73, 79, 87]),
    ("NothingVacates", &[43, 45, 47, 53]),
    ("NothingProves", &[57]),
    ("AllUnreachable", &[17, 41, 57]),
    ("NoCut", &[43]),
    ("AllFail", &[53]),
    ("OnePassIsEnough", &[15, 27, 57]),
    ("PassesForEver", &[9, 25, 179]),
    ("AlwaysAlarmed", &[9, 25, 27]),
    ("NeverAlarmed", &[15, 25, 57, 179]),
    ("StopsAtOnce", &[17]),
    ("ExpiresLate", &[1, 13, 61, 95]),
    ("DeadlineRefuses", &[13, 61, 73, 79, 87, 173]),
    ("DeadlineDoubts", &[39, 43, 45, 53]),
    ("EndsTooSoon", &[11]),
    ("GivenUpIsRefused", &[17, 27, 41, 57]),
    ("NoBackoff", &[161, 175]),
];

#[test]
fn planted_bugs_break_the_scenarios_that_are_about_them() {
    let files = files();
    for (name, entries) in TABLE {
        let bug = INVERSIONS.iter().find(|bug| bug.name == *name);
        let bug = bug.unwrap_or_else(|| panic!("no bug is called {name}"));
        for entry in *entries {
            let mut of = files.iter().filter(|(file, _)| number(file) == *entry);
            let broken = of.any(|(file, text)| {
                Scenario::parse(text).unwrap().run_planted(file, bug).failure.is_some()
            });
            assert!(broken, "{name} leaves all of {entry} as it was");
        }
    }
}
