//! Planted bugs, those of the search: each must break the scenarios that are named beside it. A
//! scenario that no bug breaks shows nothing.

use std::collections::BTreeMap;

use candor_sim::replay::Scenario;
use candor_sim::search::{INVERSIONS, Inversion};

use super::{files, number};

/// The scenarios that come otherwise with a bug, by their numbers.
fn broken(bug: &Inversion) -> Vec<u32> {
    let broken = |(name, text): (&String, &String)| {
        let scenario = Scenario::parse(text).unwrap();
        scenario.run_planted(name, bug).failure.map(|_| number(name))
    };
    let files = files();
    let mut numbers: Vec<u32> = files.iter().filter_map(broken).collect();
    numbers.dedup();
    numbers
}

/// Bugs, and scenarios that break with them.
const TABLE: &[(&str, &[u32])] = &[];

#[test]
fn planted_bugs_break_the_scenarios_that_are_about_them() {
    let all: BTreeMap<&str, Vec<u32>> =
        INVERSIONS.iter().map(|bug| (bug.name, broken(bug))).collect();
    for (name, wanted) in TABLE {
        let found = all.get(name).unwrap_or_else(|| panic!("no bug is called {name}"));
        for number in *wanted {
            assert!(found.contains(number), "{name} leaves {number} as it was, breaks {found:?}");
        }
    }
    let lines = all.iter().map(|(name, broken)| format!("{name} {broken:?}\n"));
    let lines: String = lines.collect();
    let found = all.values().filter(|broken| !broken.is_empty()).count();
    assert!(found >= 30, "only {found} bugs break anything\n{lines}");
}
