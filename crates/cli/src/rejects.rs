//! Rejects: the lines that are not known to be in the log, byte for byte, with what is known of
//! them. One JSON object per line, as in the ledger, and the line itself in `text`, or in `hex` if
//! it is not UTF-8. `--resend` reads them back.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use serde::{Deserialize, Serialize};

use crate::files::{Begun, Target};
use crate::ledger::{Entry, Resolved, Told};

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

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum Text<'a> {
    Text(Cow<'a, str>),
    Hex(String),
}

impl<'a> From<&'a [u8]> for Text<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        match str::from_utf8(bytes) {
            Ok(text) => Self::Text(Cow::Borrowed(text)),
            Err(_) => Self::Hex(hex(bytes)),
        }
    }
}

/// A reject that is read back.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Again {
    /// It is proven that the log does not hold this line.
    Safe(Vec<u8>),
    /// The log may hold it.
    Unsafe,
}

#[derive(Deserialize)]
struct Known<'a> {
    verdict: Told,
    resolution: Option<Resolved>,
    #[serde(flatten, borrow)]
    line: Text<'a>,
}

/// Reads a reject.
pub(crate) fn read(bytes: &[u8]) -> anyhow::Result<Again> {
    let Known { verdict, resolution, line } = serde_json::from_slice(bytes)?;
    match (verdict, resolution) {
        (Told::NotDelivered, _) | (Told::Unknown, Some(Resolved::NotDelivered)) => {}
        (Told::Unknown, None | Some(Resolved::Never | Resolved::Delivered))
        | (Told::Delivered, _) => return Ok(Again::Unsafe),
    }
    match line {
        Text::Text(text) => Ok(Again::Safe(text.into_owned().into_bytes())),
        Text::Hex(text) => unhex(&text).map(Again::Safe).ok_or_else(|| anyhow!("hex is damaged")),
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|n| u8::try_from(n).ok());
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    pairs.iter().map(|[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect()
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
    pub(crate) fn begin(target: Target) -> anyhow::Result<Self> {
        let Begun { path, file, .. } = target.begin()?;
        Ok(Self { path, out: Some(BufWriter::new(file)) })
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

    #[test]
    fn what_is_not_proven_is_not_sent_again() {
        let of = |known: &str| read(format!("{{{known},\"line\":7}}").as_bytes());
        let safe = Again::Safe(b"\xff\x00".to_vec());
        assert_eq!(of(r#""verdict":"not_delivered","hex":"ff00""#).unwrap(), safe);
        let safe = Again::Safe("é\r".into());
        let resolved = r#""verdict":"unknown","resolution":"not_delivered","text":"é\r""#;
        assert_eq!(of(resolved).unwrap(), safe);
        for doubt in ["null", "\"never\"", "\"delivered\""] {
            let known = format!(r#""verdict":"unknown","resolution":{doubt},"text":"""#);
            assert_eq!(of(&known).unwrap(), Again::Unsafe, "{doubt}");
        }
        for damaged in [r#""verdict":"not_delivered""#, r#""text":"a""#, r#""hex":"f""#] {
            assert!(of(damaged).is_err(), "{damaged}");
        }
        assert!(of(r#""verdict":"not_delivered","hex":"zz""#).is_err());
    }
}
