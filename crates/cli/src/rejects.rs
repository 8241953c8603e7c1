//! Rejects: the lines that are not known to be in the log, byte for byte, with what is known of
//! them. One JSON object per line, as in the ledger, and the line itself in `text`, or in `hex` if
//! it is not UTF-8.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Serialize;

use crate::ledger::{self, Entry};

/// The file, if one is written.
#[derive(Debug)]
pub(crate) struct Rejects {
    path: PathBuf,
    out: Option<BufWriter<File>>,
}

#[derive(Serialize)]
struct Reject<'a> {
    #[serde(flatten)]
    entry: &'a Entry,
    #[serde(flatten)]
    line: Text<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Text<'a> {
    Text(&'a str),
    Hex(String),
}

impl<'a> From<&'a [u8]> for Text<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        str::from_utf8(bytes).map_or_else(|_| Self::Hex(hex(bytes)), Self::Text)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a string never fails.
        let _written = write!(text, "{byte:02x}");
        text
    })
}

impl Rejects {
    pub(crate) fn none() -> Self {
        Self { path: PathBuf::new(), out: None }
    }

    /// Begins the file; what stood in it is gone.
    pub(crate) fn create(path: &Path) -> anyhow::Result<Self> {
        let file = ledger::create(path, "file of rejects")?;
        Ok(Self { path: path.to_owned(), out: Some(BufWriter::new(file)) })
    }

    /// Keeps a record that is over, unless it is delivered.
    pub(crate) fn keep(&mut self, entry: &Entry, line: &[u8]) -> anyhow::Result<()> {
        let Some(out) = self.out.as_mut().filter(|_| !entry.is_delivered()) else { return Ok(()) };
        let mut bytes = serde_json::to_vec(&Reject { entry, line: line.into() })?;
        bytes.push(b'\n');
        out.write_all(&bytes).with_context(|| failed(&self.path))
    }

    pub(crate) fn flush(&mut self) -> anyhow::Result<()> {
        self.out.as_mut().map_or(Ok(()), Write::flush).with_context(|| failed(&self.path))
    }
}

fn failed(path: &Path) -> String {
    format!("cannot write rejects to {}: is the disk full?", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_text_or_hex() {
        let json = |bytes: &[u8]| serde_json::to_string(&Text::from(bytes)).unwrap();
        assert_eq!(json("é\r".as_bytes()), r#"{"text":"é\r"}"#);
        assert_eq!(json(b"\xff\x00"), r#"{"hex":"ff00"}"#);
    }
}
