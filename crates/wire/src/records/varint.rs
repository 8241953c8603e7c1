//! Zigzag integers of records, and how many bytes they take.

use crate::write::uvarint_size;

/// Small magnitudes become small unsigned numbers: 0, -1, 1, -2 become 0, 1, 2, 3.
#[inline]
pub(super) const fn zigzag(value: i64) -> u64 {
    (value << 1) as u64 ^ (value >> 63) as u64
}

/// How many bytes a zigzag integer takes.
#[inline]
pub(super) const fn size(value: i64) -> usize {
    uvarint_size(zigzag(value))
}

/// How many bytes a length takes: lengths are zigzag integers too.
#[inline]
pub(super) const fn length_size(length: usize) -> usize {
    uvarint_size((length as u64) << 1)
}

/// How many bytes of length and data a field takes that may be null.
#[inline]
pub(super) const fn field_size(field: Option<&[u8]>) -> usize {
    match field {
        Some(data) => length_size(data.len()) + data.len(),
        None => 1,
    }
}

/// How many bytes [`put`] may write beyond those that stay, for a moment, so that callers can make
/// room once. A power of two, so that a mask keeps places inside without a branch.
pub(super) const WINDOW: usize = 32;

/// Where [`put`] writes.
pub(super) struct Window<'a> {
    bytes: &'a mut [u8; WINDOW],
    used: usize,
}

/// Appends a few integers, at most [`WINDOW`] bytes of them. They are written in place, into zeros
/// appended before: bytes gathered elsewhere and copied from there cost twice as much.
#[inline]
pub(super) fn put(out: &mut Vec<u8>, write: impl FnOnce(&mut Window<'_>)) {
    let start = out.len();
    out.extend_from_slice(&[0; WINDOW]);
    if let Some(bytes) = out.last_chunk_mut() {
        let mut window = Window { bytes, used: 0 };
        write(&mut window);
        let end = start + window.used;
        out.truncate(end);
    }
}

impl Window<'_> {
    /// Adds one byte.
    #[inline]
    pub(super) const fn byte(&mut self, byte: u8) {
        debug_assert!(self.used < WINDOW);
        self.bytes[self.used % WINDOW] = byte;
        self.used += 1;
    }

    /// Adds an unsigned integer.
    #[inline]
    pub(super) const fn unsigned(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.byte(value as u8 | 0x80);
            value >>= 7;
        }
        self.byte(value as u8);
    }

    /// Adds a length, -1 for null.
    #[inline]
    pub(super) const fn length(&mut self, field: Option<&[u8]>) {
        match field {
            Some(data) => self.unsigned((data.len() as u64) << 1),
            None => self.byte(1),
        }
    }
}
