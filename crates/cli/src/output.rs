//! What all commands write, and how they fail to.

use std::io::{self, Write};
use std::path::Path;

use anyhow::Context;
use candor_sim::timeline::Page;
use clap::ValueEnum;
use serde::Serialize;

use crate::files::{self, Begun, Target};

/// The form of what goes to standard output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON object on one line.
    Json,
}

/// Writes to standard output, at once.
pub(crate) fn say(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.context("cannot write to standard output: is its reader still there?")
}

/// Writes an object as one line to standard output.
pub(crate) fn say_json(object: &impl Serialize) -> anyhow::Result<()> {
    let mut line = serde_json::to_string(object)?;
    line.push('\n');
    say(&line)
}

/// Writes a line to standard error. If nobody reads that, there is nobody to tell.
pub(crate) fn complain(line: &str) {
    let _told = writeln!(io::stderr().lock(), "{line}");
}

/// Opens the file that a page will be written to, which must be none of those that are read.
pub(crate) fn page_target<'p>(
    out: Option<&Path>,
    read: impl IntoIterator<Item = &'p Path>,
) -> anyhow::Result<Option<Target>> {
    for file in read {
        files::check_apart(&[("the input", Some(file)), ("--html", out)])?;
    }
    out.map(|out| Target::open(out, "page")).transpose()
}

/// Writes a page into its file, and says so.
pub(crate) fn write_page(target: Target, page: &Page) -> anyhow::Result<()> {
    let Begun { path, mut file, .. } = target.begin()?;
    file.write_all(page.render().as_bytes())
        .with_context(|| format!("cannot write {}: is the disk full?", path.display()))?;
    complain(&format!("see {}", path.display()));
    Ok(())
}

/// A number with its thousands apart: 10 000 reads better than 10000.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// "1 record", "2 records".
pub(crate) fn count(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(number), if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_stand_apart() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!((count(1, "line"), count(0, "line")), ("1 line".into(), "0 lines".into()));
    }
}
