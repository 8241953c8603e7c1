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

/// A few integers on the stack, to be written in one go.
pub(super) struct Prefix<const N: usize> {
    bytes: [u8; N],
    used: usize,
}

impl<const N: usize> Prefix<N> {
    /// Nothing yet.
    #[inline]
    pub(super) const fn new() -> Self {
        Self { bytes: [0; N], used: 0 }
    }

    /// Adds one byte. What does not fit into `N` bytes is a mistake of the caller's.
    #[inline]
    pub(super) fn byte(&mut self, byte: u8) {
        debug_assert!(self.used < N);
        if let Some(place) = self.bytes.get_mut(self.used) {
            *place = byte;
            self.used += 1;
        }
    }

    /// Adds an unsigned integer.
    #[inline]
    pub(super) fn unsigned(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.byte(value as u8 | 0x80);
            value >>= 7;
        }
        self.byte(value as u8);
    }

    /// Adds a zigzag integer.
    #[inline]
    pub(super) fn signed(&mut self, value: i64) {
        self.unsigned(zigzag(value));
    }

    /// Adds a length, -1 for null.
    #[inline]
    pub(super) fn length(&mut self, field: Option<&[u8]>) {
        match field {
            Some(data) => self.unsigned((data.len() as u64) << 1),
            None => self.byte(1),
        }
    }

    /// What was added.
    #[inline]
    pub(super) fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.used).unwrap_or_default()
    }
}
