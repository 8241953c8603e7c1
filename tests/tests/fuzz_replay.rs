//! The fuzz targets without a fuzzer: the whole corpus, and mutations of it that are the same every
//! time, through the bodies that libFuzzer calls.
#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests")]

mod tree;

use std::collections::BTreeSet;
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use candor_core::rules::{ConclusionFacts, Honest, Rules};
use candor_core::{Instant, Span};
use candor_fuzz_bodies::{Body, TARGETS, Tally, peer_under, schedule_under, seeds};
use tree::root;

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory)
        .unwrap_or_else(|error| panic!("{} cannot be read: {error}", directory.display()));
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.expect("an entry").path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

/// The corpus of a target: name and content of every file.
fn corpus(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let all = files(&root().join("fuzz/corpus").join(target));
    all.into_iter().map(|path| (path.clone(), fs::read(&path).expect("readable"))).collect()
}

fn run(body: Body, data: &[u8], what: &dyn core::fmt::Display) {
    if let Err(panic) = catch_unwind(|| body(data)) {
        let hex: String = data.iter().map(|byte| format!("{byte:02x}")).collect();
        eprintln!("the input of the failure, {what}: {hex}");
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn the_corpus_of_every_target_runs_clean() {
    for (target, body) in TARGETS {
        let corpus = corpus(target);
        assert!(corpus.len() >= 5, "{target} has {} files in its corpus", corpus.len());
        for (path, data) in corpus {
            assert!(data.len() <= 1024, "{} is large: minimise it", path.display());
            run(*body, &data, &path.display());
        }
    }
}

#[test]
fn no_corpus_is_without_its_target() {
    let targets: BTreeSet<_> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    let directories = fs::read_dir(root().join("fuzz/corpus")).expect("a corpus");
    let name = |entry: std::io::Result<fs::DirEntry>| {
        entry.expect("an entry").file_name().into_string().expect("UTF-8")
    };
    assert_eq!(directories.map(name).collect::<BTreeSet<_>>(), targets);
    for target in targets {
        let file = root().join("fuzz/fuzz_targets").join(format!("{target}.rs"));
        let text = fs::read_to_string(&file).expect("a target of libFuzzer");
        assert!(text.contains(&format!("candor_fuzz_bodies::{target}(data)")), "{target}");
        let manifest = fs::read_to_string(root().join("fuzz/Cargo.toml")).expect("a manifest");
        assert!(manifest.contains(&format!("path = \"fuzz_targets/{target}.rs\"")), "{target}");
    }
}

#[test]
fn the_committed_seeds_are_those_that_are_generated() {
    for seed in seeds::all() {
        let path = root().join("fuzz/corpus").join(seed.target).join(&seed.name);
        let committed = fs::read(&path).unwrap_or_default();
        assert_eq!(
            committed,
            seed.bytes,
            "{} is stale: cargo run --manifest-path fuzz/Cargo.toml -p candor-fuzz-bodies \
             --example seeds",
            path.display()
        );
    }
}

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n as u64) as usize
    }

    fn byte(&mut self) -> u8 {
        const TELLING: [u8; 6] = [0, 1, 0x7f, 0x80, 0xfe, 0xff];
        if self.below(3) == 0 { TELLING[self.below(6)] } else { self.below(256) as u8 }
    }

    /// A few changes, and sometimes the end of another input.
    fn mutate(&mut self, data: &mut Vec<u8>, other: &[u8]) {
        for _ in 0..1 + self.below(5) {
            let at = self.below(data.len() + 1);
            match self.below(6) {
                0 | 1 if at < data.len() => data[at] = self.byte(),
                2 if at < data.len() => data[at] ^= 1 << self.below(8),
                3 if at < data.len() => _ = data.remove(at),
                4 => data.truncate(at.max(1)),
                5 => data.extend(&other[self.below(other.len() + 1)..]),
                _ => {
                    let byte = self.byte();
                    data.insert(at, byte);
                }
            }
        }
    }
}

/// How many mutations of every file, by what a run costs.
fn mutations(target: &str) -> usize {
    match target {
        "peer" => 1_000,
        "schedule" => 2_000,
        _ => 10_000,
    }
}

#[test]
fn mutations_of_the_corpus_run_clean() {
    for (target, body) in TARGETS {
        let corpus = corpus(target);
        let mut dice = Dice(corpus.len() as u64);
        for (path, data) in &corpus {
            for _ in 0..mutations(target) {
                let mut mutant = data.clone();
                let other = dice.below(corpus.len());
                dice.mutate(&mut mutant, &corpus[other].1);
                run(*body, &mutant, &path.display());
            }
        }
    }
}

/// What cannot be reached cannot be found: the corpora of the machines get every kind of verdict.
#[test]
fn the_corpus_reaches_every_verdict() {
    for (target, tally) in [
        ("peer", peer_under::<Honest> as fn(&[u8]) -> Tally),
        ("schedule", schedule_under::<Honest>),
    ] {
        let mut all = Tally::default();
        corpus(target).iter().for_each(|(_, data)| all = all + tally(data));
        let kinds = [all.delivered, all.not_delivered, all.unknown, all.resolved];
        assert!(kinds.iter().all(|kind| *kind >= 3), "{target}: {all:?}");
    }
}

/// A planted bug is found by some file of the corpus of a target.
fn finds(target: &str, body: Body, message: &str) {
    let found = corpus(target).iter().any(|(_, data)| {
        let panic = catch_unwind(|| body(data)).err();
        let text = panic.and_then(|panic| panic.downcast::<String>().ok());
        text.is_some_and(|text| text.contains(message))
    });
    assert!(found, "{target} does not find it");
}

/// S5 bent: there is always room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct WideSpan;

impl Rules for WideSpan {
    fn span_has_room(_: usize) -> bool {
        true
    }

    fn may_offer(_: bool, _: usize) -> bool {
        true
    }
}

#[test]
fn a_sixth_batch_in_doubt_is_found() {
    finds("schedule", |data| _ = schedule_under::<WideSpan>(data), "S5");
}

/// D1 bent: verdicts come a millisecond late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Late;

impl Rules for Late {
    fn expired(now: Instant, deadline: Instant) -> bool {
        deadline + Span::from_millis(1) <= now
    }
}

#[test]
fn a_late_verdict_is_found() {
    finds("schedule", |data| _ = schedule_under::<Late>(data), "has no verdict");
    finds("peer", |data| _ = peer_under::<Late>(data), "has no verdict");
}

/// C1 bent: whoever asks what the 0 of a replacement tells is told off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NeverTaken;

impl Rules for NeverTaken {
    fn conclusive(facts: &ConclusionFacts) -> bool {
        panic!("{facts:?}")
    }
}

#[test]
fn a_slot_that_is_taken_is_reached() {
    finds("schedule", |data| _ = schedule_under::<NeverTaken>(data), "ConclusionFacts");
}
