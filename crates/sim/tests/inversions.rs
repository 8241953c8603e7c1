//! Every planted bug is found: a judge that finds nothing must not be the reason for a clean run.

use std::collections::BTreeSet;

use candor_sim::search::{CONTROLS, INVERSIONS};

/// Decisions that concern several partitions or bytes: they are inverted where those are, by the
/// swarm and by `crates/proto/tests/planted.rs`.
const ELSEWHERE: [&str; 15] = [
    "answer_belongs",
    "bytes_are_out",
    "end_is_failure",
    "follows_hint",
    "follows_leader",
    "goes_alone",
    "insistence",
    "is_another_topic",
    "may_speak",
    "request_expires",
    "two_answers_count",
    "may_repeat_in_request",
    "produce_timeout",
    "unknown_share",
    "window_has_room",
];

/// Decisions of which the search cannot show that they matter: the traces of candor-core invert
/// them.
const TRACED: [&str; 3] = ["after_replacement", "may_revoke", "recreation_lifts_stop"];

/// Where people read of them; the rows are what the tests below print with `--nocapture`.
const TABLE: &str = include_str!("../../../docs/planted-bugs.md");

#[test]
fn the_table_names_every_planted_bug() {
    let names = INVERSIONS.iter().map(|it| (it.name, it.scope));
    for (name, scope) in names.chain(CONTROLS.iter().skip(1).map(|it| (it.name, it.scope))) {
        let row = TABLE.lines().find(|line| line.starts_with(&format!("| {name} |")));
        let row = row.unwrap_or_else(|| panic!("{name} is missing in docs/planted-bugs.md"));
        assert!(row.contains(&format!("| {scope} |")), "{name} moved to {scope}");
    }
}

#[test]
fn every_planted_bug_is_found() {
    let mut missed = Vec::new();
    for inversion in INVERSIONS {
        let report = inversion.hunt();
        match report.counterexample {
            Some(found) => println!(
                "| {} | `{}` | {} | {} | {} | {} |",
                inversion.name,
                inversion.method,
                inversion.about.trim(),
                inversion.scope,
                found.anomaly.class,
                report.states
            ),
            None => missed.push(inversion.name),
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}

#[test]
fn every_decision_is_inverted() {
    let source = include_str!("../../core/src/rules/mod.rs");
    let (_, body) = source.split_once("pub trait Rules").expect("the trait");
    let (body, _) = body.split_once("\n}\n").expect("its end");
    let decisions: BTreeSet<&str> = body
        .lines()
        .filter_map(|line| line.strip_prefix("    fn "))
        .filter_map(|line| line.split(['(', '<']).next())
        .collect();
    assert!(decisions.len() > 40, "{decisions:?}");
    let inverted: BTreeSet<&str> = INVERSIONS
        .iter()
        .map(|inversion| inversion.method)
        .chain(ELSEWHERE)
        .chain(TRACED)
        .collect();
    let missing: Vec<_> = decisions.symmetric_difference(&inverted).collect();
    assert!(missing.is_empty(), "inverted nowhere, or no decision: {missing:?}");
}

#[test]
fn producers_that_are_wrong_by_construction_are_found() {
    let (sound, flawed) = CONTROLS.split_first().expect("controls");
    let report = sound.hunt();
    assert!(report.closed && report.counterexample.is_none(), "{report}");
    for control in flawed {
        let report = control.hunt();
        let found = report.counterexample.unwrap_or_else(|| panic!("{} not found", control.name));
        println!(
            "| {} | | {} | {} | {} | {} |",
            control.name,
            control.about.trim(),
            control.scope,
            found.anomaly.class,
            report.states
        );
    }
}
