//! The files of the repository.
#![allow(clippy::expect_used, clippy::panic, dead_code, reason = "shared by several tests")]

use std::fs;
use std::path::Path;

pub(crate) fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

pub(crate) fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The files of a folder, and of those in it, that end so: as paths from the root.
pub(crate) fn files(folder: &str, ending: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root().join(folder)).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("a plain name");
        let here = format!("{folder}/{name}");
        if path.is_dir() && !["target", "node_modules"].contains(&name) {
            found.extend(files(&here, ending));
        } else if name.ends_with(ending) {
            found.push(here);
        }
    }
    found
}
