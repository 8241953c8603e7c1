//! Every scenario in `crates/sim/replays`, and that they can fail.
//!
//! The scenarios are the log of faults that other producers had, one file per entry, by its number.
//! An entry without a file is in [`ELSEWHERE`] with the reason.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use candor_sim::replay::{Report, Scenario};
use candor_sim::swarm::{PROFILES, profile_name};

/// Entries of the log: odd numbers up to this.
const LAST: u32 = 183;

/// Entries without a scenario, and why.
const ELSEWHERE: &[(u32, &str)] = &include!("replays/elsewhere.in");

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("replays")
}

fn files() -> BTreeMap<String, String> {
    let files = fs::read_dir(directory()).unwrap().map(|entry| entry.unwrap().path());
    let read = |path: PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (name, fs::read_to_string(path).unwrap())
    };
    files.map(read).collect()
}

fn number(name: &str) -> u32 {
    name.split('-').next().unwrap().parse().unwrap()
}

fn run(name: &str, text: &str) -> Report {
    let scenario = Scenario::parse(text).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(!scenario.title().is_empty(), "{name} has no title");
    assert!(scenario.expects(), "{name} expects nothing");
    scenario.run(&format!("crates/sim/replays/{name}"))
}

#[test]
fn every_scenario_comes_as_it_should() {
    let failures: Vec<String> = files()
        .iter()
        .filter_map(|(name, text)| run(name, text).failure.map(|failure| failure.to_string()))
        .collect();
    assert!(failures.is_empty(), "{} failed\n\n{}", failures.len(), failures.join("\n\n"));
}

#[test]
fn every_entry_has_a_scenario_or_a_reason() {
    let files = files();
    for entry in (1..=LAST).step_by(2) {
        let told = files.keys().any(|name| number(name) == entry);
        let left_out = ELSEWHERE.iter().any(|(number, _)| *number == entry);
        assert_ne!(told, left_out, "entry {entry}: write a scenario, or say why there is none");
    }
    for name in files.keys() {
        assert!(name.ends_with(".replay"), "{name} is no scenario");
        assert!(number(name) <= LAST && number(name) % 2 == 1, "{name} is no entry of the log");
    }
    assert!(ELSEWHERE.iter().all(|(_, reason)| reason.len() > 20));
}

#[test]
fn every_scenario_says_where_it_comes_from_and_what_is_right() {
    for (name, text) in files() {
        let head = format!("# faults.md {}:", number(&name));
        assert!(text.starts_with(&head), "{name} must begin with `{head}`");
        assert!(text.contains("# Right: "), "{name} must say what is right");
    }
}

#[test]
fn a_scenario_runs_the_same_way_each_time() {
    for (name, text) in files() {
        let (one, two) = (run(&name, &text), run(&name, &text));
        assert_eq!(one.page, two.page, "{name}");
    }
}

#[test]
fn modelled_scenarios_come_the_same_way_on_every_version_of_brokers() {
    let mut failures = Vec::new();
    for (name, text) in files() {
        for version in PROFILES {
            let scenario = Scenario::parse(&text).unwrap();
            if scenario.is_modelled() {
                let failure = scenario.on(version).run(&name).failure;
                failures.extend(failure.map(|one| format!("{} {one}", profile_name(version))));
            }
        }
    }
    assert!(failures.is_empty(), "{} failed\n\n{}", failures.len(), failures.join("\n\n"));
}

#[test]
fn a_failing_line_is_shown_with_what_was_expected_and_the_command() {
    let (name, text) = files().into_iter().next().unwrap();
    let text = text.replace("expect no bump", "expect closed");
    let failure = run(&name, &text).failure.unwrap();
    assert_eq!(
        (&*failure.text, &*failure.wanted, &*failure.came),
        ("expect closed", "closed", "open")
    );
    let told = failure.to_string();
    assert!(told.contains(&format!("candor sim run crates/sim/replays/{name}")), "{told}");
}

#[path = "replays/planted.rs"]
mod planted;
