//! Lines of the input, in chunks that share one buffer.

use std::ops::Range;
use std::time::Instant;

/// Some lines, in order.
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    /// Number of the first line, from 1.
    pub(crate) first: u64,
    /// All bytes, without the newlines.
    pub(crate) text: Vec<u8>,
    /// Where the lines lie in it.
    pub(crate) lines: Vec<Range<usize>>,
}

impl Chunk {
    /// The bytes of the line at `index`.
    pub(crate) fn line(&self, index: usize) -> &[u8] {
        self.lines.get(index).and_then(|range| self.text.get(range.clone())).unwrap_or_default()
    }

    /// The line at `index`, which was read then.
    pub(crate) fn at(&self, index: usize, read: Instant) -> Line<'_> {
        Line { number: self.first + index as u64, text: self.line(index), read }
    }
}

/// One line, and when it was read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'a> {
    /// From 1.
    pub(crate) number: u64,
    /// Without its newline.
    pub(crate) text: &'a [u8],
    /// When it was taken from the input, to be sent at once.
    pub(crate) read: Instant,
}
