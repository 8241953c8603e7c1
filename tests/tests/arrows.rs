//! Who may know whom: the arrows of ARCHITECTURE.md, held over `cargo metadata`.
#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests")]

mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use tree::{files, root, text};

/// Each crate with everything that it may depend on (not counting tests).
const ARROWS: &[(&str, &[&str])] = &[
    ("candor-core", &[]),
    ("candor-wire", &["candor-core", "bytes", "nom", "crc32c"]),
    ("candor-proto", &["candor-core", "candor-wire", "bytes"]),
    (
        "candor-driver",
        &["candor-core", "candor-wire", "candor-proto", "bytes", "futures-io", "futures-core"],
    ),
    ("candor-tokio", &["candor-driver", "futures-io", "tokio"]),
    ("candor-async-std", &["candor-driver", "futures-io", "async-std"]),
    ("candor-smol", &["candor-driver", "futures-io", "async-io", "async-executor", "blocking"]),
    (
        "candor-sim",
        &["candor-core", "candor-wire", "candor-proto", "bytes", "crc32c", "fastrand", "thiserror"],
    ),
];

/// What a crate depends on if a feature asks for it, and why.
const OPTIONAL: &[(&str, &str, &str)] = &[(
    "candor-sim",
    "proptest",
    "users' tests ask for `candor_sim::strategies`; nothing else does",
)];

/// The simulator's broker, codec and judge must not share code with the machine that they test.
const INDEPENDENT: &[&str] = &["broker", "codec", "serve", "judge"];

fn packages() -> Vec<serde_json::Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .expect("cargo metadata runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    metadata["packages"].as_array().expect("packages").clone()
}

/// What every crate depends on, tests not counted; or what it does if a feature asks for it.
fn dependencies(optional: bool) -> BTreeMap<String, BTreeSet<String>> {
    let of = |package: &serde_json::Value| {
        let all = package["dependencies"].as_array().expect("dependencies");
        let shipped = all.iter().filter(|dependency| dependency["kind"].is_null());
        let shipped = shipped.filter(|dependency| dependency["optional"] == optional);
        shipped.map(|d| d["name"].as_str().expect("name").to_owned()).collect()
    };
    packages().iter().map(|p| (p["name"].as_str().expect("name").to_owned(), of(p))).collect()
}

#[test]
fn what_is_optional_has_a_reason_and_is_off() {
    let optional = dependencies(true).into_iter();
    let found: BTreeSet<_> =
        optional.flat_map(|(of, all)| all.into_iter().map(move |one| (of.clone(), one))).collect();
    let listed = OPTIONAL.iter().map(|(of, one, _)| ((*of).to_owned(), (*one).to_owned()));
    assert_eq!(found, listed.collect());
    for package in packages() {
        let default = package["features"]["default"].as_array();
        let name = &package["name"];
        assert!(default.is_none_or(Vec::is_empty), "{name} has features that are on by default");
    }
}

#[test]
fn arrows_point_one_way() {
    let dependencies = dependencies(false);
    for (name, allowed) in ARROWS {
        let found = dependencies.get(*name).unwrap_or_else(|| panic!("{name} is missing"));
        let allowed: BTreeSet<_> = allowed.iter().map(|name| (*name).to_owned()).collect();
        let extra: Vec<_> = found.difference(&allowed).collect();
        assert!(extra.is_empty(), "{name} must not depend on {extra:?}");
    }
}

#[test]
fn every_crate_is_covered() {
    let known: BTreeSet<_> = ARROWS.iter().map(|(name, _)| *name).collect();
    for name in dependencies(false).keys() {
        let outside = ["candor-cli", "candor-tests"].contains(&name.as_str());
        assert!(outside || known.contains(name.as_str()), "{name} has no row in ARROWS");
    }
}

#[test]
fn the_other_side_shares_no_code_with_the_machine() {
    for part in INDEPENDENT {
        for file in files(&format!("crates/sim/src/{part}"), ".rs") {
            let source = text(&file);
            for forbidden in ["candor_core", "candor_wire", "candor_proto"] {
                assert!(!source.contains(forbidden), "{file} uses {forbidden}");
            }
        }
    }
}

#[test]
fn pure_crates_are_linted_for_purity() {
    for name in ["core", "wire", "proto"] {
        let path = format!("crates/{name}/clippy.toml");
        let bans = text(&path);
        for banned in ["SystemTime::now", "Instant::now", "thread::sleep", "HashMap", "RandomState"]
        {
            assert!(bans.contains(banned), "{path} does not ban {banned}");
        }
    }
}

#[test]
fn no_file_grows_beyond_a_reader() {
    for file in ["crates", "tests"].into_iter().flat_map(|top| files(top, ".rs")) {
        let lines = text(&file).lines().count();
        assert!(lines < 800, "{file} has {lines} lines");
    }
}
