//! The ledger: one JSON object per line and record.
//!
//! A verdict is written when it is told. The object of an unknown record is padded with blanks
//! behind it, and its resolution is written over it in place: whenever the command is stopped, and
//! however, the file holds one whole object for each record that was told of. Where that cannot be
//! done, because the ledger is a pipe, an unknown record is written when it is resolved, at the
//! latest at the end.
//!
//! A finished ledger has no blanks: they are taken out at the end, in a copy that takes the file's
//! place when it is whole.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use candor_tokio::{Resolution, Verdict};
use serde::{Deserialize, Serialize};

use crate::files::{self, Begun, Target};
use crate::line::Line;
use crate::window::Heard;

/// Blanks behind an unknown record, for its resolution.
const ROOM: usize = 192;

/// Why a record that was unknown is delivered.
const FOUND: &str = "a broker's answer after the verdict proves that it is in the log";

/// A verdict's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Told {
    Delivered,
    NotDelivered,
    Unknown,
}

/// A resolution's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Resolved {
    Delivered,
    NotDelivered,
    Never,
}

/// What the ledger holds of a record.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Entry {
    /// The line in the input, from 1.
    pub(crate) line: u64,
    /// Where it went, if it was routed.
    pub(crate) partition: Option<u32>,
    /// The one verdict.
    pub(crate) verdict: Told,
    /// The offset of a delivered record, if it is known.
    pub(crate) offset: Option<i64>,
    /// Why it is not delivered, or unknown; after a resolution, why that is as it is.
    pub(crate) reason: Option<String>,
    /// What became of an unknown record.
    pub(crate) resolution: Option<Resolved>,
    /// Milliseconds from reading the line to its verdict.
    pub(crate) at_ms: u64,
}

impl Entry {
    /// As of the verdict.
    pub(crate) fn new(line: &Line<'_>, verdict: &Verdict) -> Self {
        let at_ms = u64::try_from(line.read.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (told, partition, offset, reason) = match verdict {
            Verdict::Delivered(at) => (Told::Delivered, Some(at.partition), at.offset, None),
            Verdict::NotDelivered(no) => {
                (Told::NotDelivered, no.partition, None, Some(no.why.to_string()))
            }
            Verdict::Unknown(unknown) => {
                (Told::Unknown, unknown.partition(), None, Some(unknown.to_string()))
            }
        };
        let number = line.number;
        Self { line: number, partition, verdict: told, offset, reason, resolution: None, at_ms }
    }

    /// Whether it is known to be in the log.
    pub(crate) fn is_delivered(&self) -> bool {
        self.verdict == Told::Delivered || self.resolution == Some(Resolved::Delivered)
    }

    /// As of the resolution: its offset and its reason.
    fn resolve(&mut self, resolution: &Resolution) {
        self.resolution = Some(match resolution {
            Resolution::Delivered(at) => {
                self.offset = at.offset;
                self.reason = Some(FOUND.to_owned());
                Resolved::Delivered
            }
            Resolution::NotDelivered(no) => {
                self.reason = Some(no.why.to_string());
                Resolved::NotDelivered
            }
            Resolution::Never(never) => {
                self.reason = Some(never.to_string());
                Resolved::Never
            }
        });
    }
}

/// Where entries go.
#[derive(Debug)]
enum Sink {
    /// A file, which can be written over.
    File { out: BufWriter<File>, end: u64, blanks: bool },
    /// A pipe or device, which cannot.
    Stream(BufWriter<File>),
}

/// An unknown record: its entry, and its place in a file.
#[derive(Debug)]
struct Open {
    entry: Entry,
    place: Option<Place>,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    at: u64,
    /// Bytes of the object and its blanks, without the newline.
    length: usize,
}

/// The unknown records, and the file if one is written.
#[derive(Debug)]
pub(crate) struct Ledger {
    path: PathBuf,
    sink: Option<Sink>,
    open: BTreeMap<u64, Open>,
}

impl Ledger {
    /// A ledger in memory only, which knows what is unknown.
    pub(crate) fn none() -> Self {
        Self { path: PathBuf::new(), sink: None, open: BTreeMap::new() }
    }

    /// Begins a ledger; what stood in the file is gone.
    pub(crate) fn begin(target: Target) -> anyhow::Result<Self> {
        let Begun { path, file, can_be_rewritten } = target.begin()?;
        let out = BufWriter::new(file);
        let sink = match can_be_rewritten {
            true => Sink::File { out, end: 0, blanks: false },
            false => Sink::Stream(out),
        };
        Ok(Self { path, sink: Some(sink), open: BTreeMap::new() })
    }

    /// Writes what was heard. Gives the record's entry if it is over.
    pub(crate) fn hear(
        &mut self,
        line: &Line<'_>,
        heard: &Heard<'_>,
    ) -> anyhow::Result<Option<Entry>> {
        match heard {
            Heard::Verdict(verdict @ Verdict::Unknown(_)) => {
                let entry = Entry::new(line, verdict);
                let place = self.write_open(&entry)?;
                self.open.insert(line.number, Open { entry, place });
                Ok(None)
            }
            Heard::Verdict(verdict @ (Verdict::Delivered(_) | Verdict::NotDelivered(_))) => {
                let entry = Entry::new(line, verdict);
                self.write(&entry)?;
                Ok(Some(entry))
            }
            Heard::Resolution(resolution) => {
                let Some(Open { mut entry, place }) = self.open.remove(&line.number) else {
                    return Ok(None);
                };
                entry.resolve(resolution);
                self.write_over(place, &mut entry)?;
                Ok(Some(entry))
            }
        }
    }

    /// Writes an entry that will not change.
    fn write(&mut self, entry: &Entry) -> anyhow::Result<()> {
        let Some(sink) = &mut self.sink else { return Ok(()) };
        let bytes = encode(entry, 0)?;
        sink.append(&bytes).with_context(|| failed(&self.path))
    }

    fn write_open(&mut self, entry: &Entry) -> anyhow::Result<Option<Place>> {
        let Some(Sink::File { out, end, blanks }) = &mut self.sink else { return Ok(None) };
        let (at, bytes) = (*end, encode(entry, ROOM)?);
        *blanks = true;
        out.write_all(&bytes).with_context(|| failed(&self.path))?;
        *end += bytes.len() as u64;
        Ok(Some(Place { at, length: bytes.len() - 1 }))
    }

    fn write_over(&mut self, place: Option<Place>, entry: &mut Entry) -> anyhow::Result<()> {
        let Some(place) = place else { return self.write(entry) };
        let Some(Sink::File { out, end, .. }) = &mut self.sink else { return Ok(()) };
        let mut bytes = serde_json::to_vec(entry)?;
        if bytes.len() > place.length {
            // No reason that we give is that long; the facts stay in the rejects.
            entry.reason = None;
            bytes = serde_json::to_vec(entry)?;
        }
        bytes.resize(place.length, b' ');
        let mut write = || -> io::Result<()> {
            out.seek(SeekFrom::Start(place.at))?;
            out.write_all(&bytes)?;
            out.seek(SeekFrom::Start(*end))?;
            Ok(())
        };
        write().with_context(|| failed(&self.path))
    }

    /// Lets others read what was written so far.
    pub(crate) fn flush(&mut self) -> anyhow::Result<()> {
        let flushed = match &mut self.sink {
            Some(Sink::File { out, .. } | Sink::Stream(out)) => out.flush(),
            None => Ok(()),
        };
        flushed.with_context(|| failed(&self.path))
    }

    /// Nothing more will be heard. What could not be written before it was resolved is written as it
    /// stands, and the blanks that waited for resolutions are taken out. Where that fails, the ledger
    /// is whole all the same, and the error says so.
    pub(crate) fn finish(&mut self) -> anyhow::Result<()> {
        for Open { entry, place } in std::mem::take(&mut self.open).into_values() {
            if place.is_none() {
                self.write(&entry)?;
            }
        }
        self.flush()?;
        let Some(Sink::File { end, blanks: true, .. }) = self.sink.take() else { return Ok(()) };
        files::replace(&self.path, end, take_out_blanks).with_context(|| {
            let path = self.path.display();
            format!(
                "{path} is whole, but has blanks at the ends of lines, which cannot be taken out"
            )
        })
    }
}

impl Sink {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::File { out, end, .. } => {
                out.write_all(bytes)?;
                *end += bytes.len() as u64;
                Ok(())
            }
            Self::Stream(out) => out.write_all(bytes),
        }
    }
}

fn encode(entry: &Entry, room: usize) -> serde_json::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec(entry)?;
    bytes.resize(bytes.len() + room, b' ');
    bytes.push(b'\n');
    Ok(bytes)
}

fn failed(path: &Path) -> String {
    format!("cannot write to {}: is the disk full, or the reader gone?", path.display())
}

/// Copies a ledger without its blanks.
fn take_out_blanks(mut lines: impl BufRead, out: &mut impl Write) -> io::Result<()> {
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line)? > 0 {
        out.write_all(line.trim_ascii_end())?;
        out.write_all(b"\n")?;
        line.clear();
    }
    Ok(())
}
