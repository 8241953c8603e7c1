//! What the documents say is so: numbers, links, the language of replays, the names of error codes;
//! and what users read of the types that they hold needs no knowledge of the rules.
#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests")]

mod tree;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use candor_proto::ErrorCode;
use candor_sim::search::{CONTROLS, INVERSIONS};
use candor_sim::swarm::PROFILES;
use tree::{files, root, text};

fn documents() -> Vec<String> {
    let top = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"];
    let top = top.iter().map(|name| (*name).to_owned());
    top.chain(files("docs", ".md")).chain(["tests/kafka/README.md".to_owned()]).collect()
}

fn lines_with(path: &str, is: impl Fn(&str) -> bool) -> usize {
    text(path).lines().filter(|line| is(line)).count()
}

fn tests_in(path: &str) -> usize {
    lines_with(path, |line| line == "#[test]")
}

/// The first word of each trace.
fn traces() -> Vec<String> {
    let table = text("crates/core/tests/traces/table.txt");
    let traces = table.split("\n\n").map(str::trim).filter(|block| block.starts_with('T'));
    traces.filter_map(|trace| trace.split_whitespace().next().map(str::to_owned)).collect()
}

fn distinct<T: Ord>(all: impl IntoIterator<Item = T>) -> usize {
    all.into_iter().collect::<BTreeSet<T>>().len()
}

/// The rows of vectors, by number.
fn vectors() -> usize {
    let table = text("crates/sim/tests/broker_vectors/vectors.txt");
    let number = |line: &str| line.split(' ').next()?.parse::<u32>().ok();
    distinct(table.lines().filter_map(number))
}

#[test]
fn numbers_are_what_the_sources_say() {
    let breaks = |line: &str| line.contains(" breaks ") && !line.contains('$');
    let plants = |path: &str| lines_with(path, |line| breaks(line) && line.ends_with('{'));
    let adversary =
        ["", "_revoke"].map(|part| tests_in(&format!("crates/core/tests/adversary{part}.rs")));
    let traced = lines_with("crates/core/tests/traces.rs", |line| line.starts_with("plant!("));
    let replayed =
        lines_with("crates/sim/tests/replays/planted.rs", |line| line.starts_with("    (\""));
    let words = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];
    let profiles = format!("brokers of {} versions", words[PROFILES.len()]);
    let vectors = format!("the {} vectors", vectors());
    let kinds = lines_with("tests/kafka/faults/plan.rs", |line| line.starts_with("    (Kind::"));
    let claims = [
        ("verification", format!("{} schedules that real clients got wrong", distinct(traces()))),
        ("verification", format!("({} with their variants)", traces().len())),
        ("verification", format!("as one table; {traced} planted bugs must break it")),
        ("verification", format!("{} schedules by somebody", adversary.iter().sum::<usize>())),
        (
            "verification",
            format!(
                "{} wrong decisions and {} producers that are wrong by construction",
                INVERSIONS.len(),
                CONTROLS.len() - 1
            ),
        ),
        (
            "verification",
            format!(
                "{} wrong decisions about connections, leaders and requests",
                plants("crates/proto/tests/planted.rs")
            ),
        ),
        (
            "verification",
            format!(
                "{} wrong decisions about waking, bounded turns",
                plants("crates/driver/src/planted.rs")
            ),
        ),
        ("verification", profiles),
        ("verification", vectors),
        ("verification", format!("{replayed} planted bugs must break them")),
        ("replays", format!("plants {replayed} of")),
        ("verification", format!("seeded plans of {kinds} kinds of faults")),
    ];
    for (page, claim) in claims {
        let said = text(&format!("docs/{page}.md")).contains(&claim);
        assert!(said, "docs/{page}.md does not say what is so now: {claim}");
    }
}

/// What a document says, and the line of a source that makes it so.
const SAID: &[(&str, &str, &str, &str)] = &[
    (
        "docs/verification.md",
        "150 seeds of chaos",
        "crates/proto/tests/chaos.rs",
        "for seed in 0..150 {",
    ),
    ("docs/verification.md", "10,000 partitions", "crates/proto/tests/chaos.rs", "(0..10_000)"),
    (
        "docs/verification.md",
        "(2,000 seeds)",
        "crates/cli/src/sim/swarm.rs",
        "How many seeds [default: 2000]",
    ),
    ("docs/verification.md", "`just swarm` runs 2,000 seeds", "justfile", "sim swarm"),
    (
        "docs/verification.md",
        "--test swarm` (300)",
        "crates/sim/tests/swarm.rs",
        "Extent::Seeds(300)",
    ),
    (
        "docs/verification.md",
        "10,000, or 1,000 to 2,000",
        "tests/tests/fuzz_replay.rs",
        "_ => 10_000,",
    ),
    (
        "docs/verification.md",
        "4 bytes per byte received",
        "tests/tests/fuzz_growth/peer.rs",
        "FACTOR: isize = 4;",
    ),
    (
        "docs/verification.md",
        "64 KiB at most",
        "tests/tests/fuzz_growth/peer.rs",
        "FREE: isize = 64 << 10;",
    ),
    (
        "README.md",
        "ends within 5 s",
        "crates/cli/src/run.rs",
        "STOP_WITHIN: Duration = Duration::from_secs(5)",
    ),
    ("README.md", "a deadline of 400 ms", "crates/cli/src/demo/diary.rs", "from_millis(400)"),
    ("README.md", "froze for 900 ms", "crates/cli/src/demo/plan.rs", "FREEZE: u64 = 900_000;"),
    (
        "README.md",
        "`request.timeout.ms`, 30 s",
        "crates/proto/src/config/mod.rs",
        "request_timeout: Duration::from_secs(30),",
    ),
    ("README.md", "With Rust 1.95", "Cargo.toml", "rust-version = \"1.95\""),
    ("ARCHITECTURE.md", "| 5 batches |", "crates/core/src/rules/mod.rs", "< 5"),
];

#[test]
fn what_is_said_stands_in_the_sources() {
    for (page, claim, source, evidence) in SAID {
        assert!(text(page).contains(claim), "{page}: {claim}");
        assert!(text(source).contains(evidence), "{page} says {claim:?}, and {source} does not");
    }
}

/// Headings as links name them.
fn anchors(path: &str) -> BTreeSet<String> {
    let heading = |line: &str| {
        let title = line.strip_prefix('#')?.trim_start_matches('#').trim();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        Some(kept.collect::<String>().to_lowercase().replace(' ', "-"))
    };
    text(path).lines().filter_map(heading).collect()
}

#[test]
fn links_lead_somewhere() {
    for page in documents() {
        let content = text(&page);
        for link in content.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.starts_with("http") {
                continue;
            }
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let folder = Path::new(&page).parent().expect("a folder");
            let target = if path.is_empty() { PathBuf::from(&page) } else { folder.join(path) };
            assert!(root().join(&target).exists(), "{page}: {link} leads nowhere");
            if !anchor.is_empty() {
                let target = target.to_str().expect("a plain name");
                assert!(anchors(target).contains(anchor), "{page}: {link} has no such heading");
            }
        }
    }
}

/// The words that the reader of replays knows.
fn replay_words() -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    for file in files("crates/sim/src/replay/parse", ".rs") {
        let source = text(&file);
        let source = source.split("#[cfg(test)]").next().expect("its head").to_owned();
        let quotes: Vec<&str> = source.split('"').collect();
        for triple in quotes.windows(3).step_by(2) {
            let [before, word, after] = triple else { continue };
            let asked = before.ends_with("take(") || before.ends_with("must(");
            let matched = ["=>", "|"].iter().any(|next| after.trim_start().starts_with(next));
            let plain = word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
            if (asked || matched) && plain && !word.is_empty() {
                words.insert((*word).to_owned());
            }
        }
    }
    words
}

#[test]
fn every_word_of_replays_is_told() {
    let page = text("docs/replays.md");
    let inner = |c: char| c.is_ascii_lowercase() || c == '-';
    // Code only: what stands between backticks.
    let code: Vec<&str> = page.split('`').skip(1).step_by(2).collect();
    let told: BTreeSet<&str> = code.iter().flat_map(|code| code.split(|c| !inner(c))).collect();
    let words = replay_words();
    assert!(words.len() > 90, "{words:?}");
    let missing: Vec<&String> = words.iter().filter(|word| !told.contains(word.as_str())).collect();
    assert!(missing.is_empty(), "docs/replays.md does not tell {missing:?}");
}

#[test]
fn codes_have_kafkas_names() {
    let page = text("ARCHITECTURE.md");
    let (_, table) = page.split_once("| code | name |").expect("the table of codes");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let mut told = 0;
    for row in rows {
        let mut cells = row.trim_matches('|').split('|').map(str::trim);
        let code: i16 = cells.next().and_then(|cell| cell.parse().ok()).expect("a code");
        let name = ErrorCode(code).name().expect("a name");
        assert!(cells.next().is_some_and(|cell| cell.starts_with(name)), "{row}: {name}");
        told += 1;
    }
    assert!(told > 10, "{told}");
}

/// The types that applications see: those of the driver, and what it hands on.
fn faces() -> BTreeSet<String> {
    let source = text("crates/driver/src/lib.rs");
    let uses = source.split("pub use ").skip(1).filter_map(|rest| rest.split(';').next());
    let named = uses.flat_map(|list| list.split([',', '{', '}', ':', ' ', '\n']));
    let types = named.filter(|name| name.starts_with(char::is_uppercase));
    let adapters = ["Tokio", "Stream", "AsyncStd", "Smol", "Sleep"];
    types.chain(adapters).map(str::to_owned).collect()
}

/// Whether the line declares one of these types.
fn declares(line: &str, faces: &BTreeSet<String>) -> bool {
    let kinds = ["pub struct ", "pub enum ", "pub trait "];
    let name = kinds.iter().find_map(|kind| line.strip_prefix(kind));
    let name = name.and_then(|rest| rest.split(|c: char| !c.is_alphanumeric()).next());
    name.is_some_and(|name| faces.contains(name))
}

/// Whether a word is the id of a rule: a letter and a number.
fn is_rule(word: &str) -> bool {
    let mut chars = word.chars();
    let letter = chars.next().is_some_and(|c| "SVKDLUCH".contains(c));
    letter && !chars.as_str().is_empty() && chars.as_str().len() <= 2 && {
        chars.all(|c| c.is_ascii_digit())
    }
}

#[test]
fn what_users_read_names_no_rules_and_has_examples() {
    let faces = faces();
    assert!(faces.len() > 40, "{faces:?}");
    let mut seen = 0;
    for file in files("crates", ".rs") {
        let source = text(&file);
        let lines: Vec<&str> = source.lines().collect();
        let mine = ["core", "proto", "driver", "wire", "tokio", "async-std", "smol"];
        let mine = mine.map(|name| format!("crates/{name}/src"));
        // The facts of decisions have names that others have as well, and are nobody's face.
        let inside = file.starts_with("crates/core/src/rules");
        if inside || !mine.iter().any(|folder| file.starts_with(&**folder)) {
            continue;
        }
        for (at, line) in lines.iter().enumerate().filter(|(_, line)| declares(line, &faces)) {
            let is_head = |line: &&&str| line.starts_with("///") || line.starts_with("#[");
            let head = lines[..at].iter().rev().take_while(is_head).count();
            let body = lines[at..].iter().position(|line| *line == "}" || line.ends_with(';'));
            let whole = &lines[at - head..=at + body.unwrap_or(0)];
            seen += 1;
            for told in whole.iter().filter(|line| line.trim_start().starts_with("///")) {
                let rule = told.split(|c: char| !c.is_alphanumeric()).find(|word| is_rule(word));
                assert_eq!(rule, None, "{file}: users do not know the rules: {told}");
            }
            let sample = whole.iter().any(|line| line.starts_with("/// ```"));
            assert!(sample, "{file}: {line} has no example");
        }
    }
    assert!(seen > 35, "{seen}");
}
