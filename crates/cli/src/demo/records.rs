//! What the demo sends.

use std::io::{Cursor, Read};
use std::path::Path;

use anyhow::{Context, bail};

use crate::input::{self, Source};

/// Records of our own, if no file is given.
const OWN: u64 = 10_000;
/// Everything stays in memory, here and in three brokers.
const MOST: u64 = 64 << 20;

/// All lines, in memory.
#[derive(Debug)]
pub(crate) struct Records {
    bytes: u64,
    text: Cursor<Vec<u8>>,
}

impl Records {
    /// The lines of a file, or our own.
    pub(crate) fn load(file: Option<&Path>) -> anyhow::Result<Self> {
        let text = file.map_or_else(|| Ok(own()), read)?;
        Ok(Self { bytes: text.len() as u64, text: Cursor::new(text) })
    }

    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Read for Records {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        self.text.read(into)
    }
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let from: Box<dyn Read> = match Source::from(path) {
        Source::Stdin => Box::new(std::io::stdin()),
        Source::File(path) => Box::new(input::open(&path)?.0),
    };
    let mut text = Vec::new();
    let read = from.take(MOST + 1).read_to_end(&mut text);
    read.with_context(|| format!("cannot read {}", path.display()))?;
    if text.len() as u64 > MOST {
        bail!(
            "{} is larger than 64 MiB, and the demo keeps it in memory four times: \
             take a part of it, or candor produce and a real cluster",
            path.display()
        );
    }
    Ok(text)
}

fn own() -> Vec<u8> {
    let line = |n: u64| {
        let (customer, cents) = (n * 7919 % 997, n * 104_729 % 100_000);
        format!(r#"{{"order":{n},"customer":"c-{customer:03}","cents":{cents}}}"#) + "\n"
    };
    (1..=OWN).flat_map(|n| line(n).into_bytes()).collect()
}
