//! Every function of `candor-wire` that reads bytes has a fuzz target that calls it. The functions
//! are found in the sources, so that a new one without a target fails here.
#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests")]

mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use tree::root;

/// Functions that take bytes and can fail, and yet read nothing that a peer sent; each with a reason.
const NO_PARSERS: &[(&str, &str)] = &[(
    "produce::Request::add",
    "takes a batch that we wrote, and never looks into it; the target `requests` reads it back",
)];

/// The texts below a directory, by module path.
fn texts(directory: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        if path.is_dir() {
            found.extend(texts(&path).into_iter().map(|(k, text)| (format!("{name}::{k}"), text)));
        } else {
            found.insert(name, fs::read_to_string(&path).expect("UTF-8"));
        }
    }
    found
}

/// Whether a signature takes bytes and can fail: a parser, unless a reason says otherwise.
fn is_parser(signature: &str) -> bool {
    let (arguments, result) = signature.rsplit_once("->").unwrap_or((signature, ""));
    let bytes = ["[u8]", "[u8;", "Bytes", "impl Buf", "dyn Buf"];
    let fails = ["Result<", "Option<", "Parsed<"];
    bytes.iter().any(|part| arguments.contains(part))
        && fails.iter().any(|part| result.contains(part))
}

/// The public functions of these sources that are parsers, named as a caller names them.
fn parsers(sources: &BTreeMap<String, String>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (path, text) in sources {
        let module = path.split("::").next().expect("a name");
        let mut of = String::new();
        let mut at = 0;
        for line in text.lines() {
            let start = at;
            at += line.len() + 1;
            if let Some(rest) = line.strip_prefix("impl").filter(|rest| !rest.ends_with('}')) {
                let named = rest.rsplit(" for ").next().unwrap_or(rest).trim_end_matches(" {");
                let named = named.rsplit("> ").next().unwrap_or(named).trim();
                of = named.split('<').next().unwrap_or(named).to_owned();
            } else if line == "}" {
                of.clear();
            }
            let indented = line.trim_start();
            let name = ["pub fn ", "pub const fn "].iter().find_map(|p| indented.strip_prefix(p));
            let Some(name) = name.and_then(|name| name.split(['(', '<']).next()) else { continue };
            let signature = text[start..].split(['{', ';']).next().unwrap_or_default();
            if is_parser(signature) {
                found.insert(match of.as_str() {
                    "" => name.to_owned(),
                    "Request" | "Response" => format!("{module}::{of}::{name}"),
                    of => format!("{of}::{name}"),
                });
            }
        }
    }
    found
}

fn sources() -> BTreeMap<String, String> {
    texts(&root().join("crates/wire/src"))
}

/// Parsers that no body calls and that have no reason for it.
fn without_target(sources: &BTreeMap<String, String>) -> BTreeSet<String> {
    let bodies: String = texts(&root().join("fuzz/bodies/src/wire")).into_values().collect();
    let excused: BTreeSet<_> = NO_PARSERS.iter().map(|(name, _)| (*name).to_owned()).collect();
    let called = |entry: &String| bodies.contains(&format!("{entry}("));
    parsers(sources).difference(&excused).filter(|entry| !called(entry)).cloned().collect()
}

#[test]
fn every_parser_has_a_target() {
    let entries = parsers(&sources());
    for known in [
        "split_frame",
        "frame_length",
        "correlation_id",
        "split_response",
        "api_versions::Response::decode",
        "metadata::Response::decode",
        "init_producer_id::Response::decode",
        "produce::Response::decode",
        "BatchReader::read",
    ] {
        assert!(entries.contains(known), "the sources are not understood: {entries:?}");
    }
    let missing = without_target(&sources());
    assert!(missing.is_empty(), "no body in fuzz/bodies/src/wire calls {missing:?}");
}

#[test]
fn every_reason_is_still_needed() {
    let entries = parsers(&sources());
    for (name, reason) in NO_PARSERS {
        assert!(entries.contains(*name), "{name} is no parser any more: {reason}");
    }
}

/// The test above can fail: parsers are planted, of every shape that one can have.
#[test]
fn a_new_parser_without_a_target_is_found() {
    let planted = "
pub fn read_header(bytes: &[u8]) -> Option<u32> {
}

impl<'a> Response<'a> {
    pub fn decode(
        version: i16,
        body: &'a [u8],
    ) -> Result<Self, DecodeError> {
    }
}

impl Cursor {
    pub fn advance(&mut self, from: &mut BytesMut) -> Result<(), FrameError> {
    }

    pub fn written(&self, into: &mut BytesMut) {
    }
}
";
    let mut sources = sources();
    sources.insert("add_partitions".to_owned(), planted.to_owned());
    let found = without_target(&sources);
    let expected = ["Cursor::advance", "add_partitions::Response::decode", "read_header"];
    assert_eq!(found, expected.map(str::to_owned).into());
}
