//! Encoders on [`BufMut`], the counterparts of the parsers in `read`.

use bytes::BufMut;

use crate::error::EncodeError;

/// Refuses text that a classic string field cannot hold; the `put_*` below rely on it.
pub(crate) fn check_text(field: &'static str, text: &str) -> Result<(), EncodeError> {
    if text.len() <= i16::MAX as usize {
        return Ok(());
    }
    Err(EncodeError::TextTooLong { field, bytes: text.len() })
}

/// How many bytes an unsigned variable-length integer takes.
#[inline]
pub(crate) const fn uvarint_size(value: u64) -> usize {
    let bits = 64 - (value | 1).leading_zeros();
    // The same as bits / 7 rounded up, for 1 to 64 bits, without a division.
    ((bits * 9 + 64) / 64) as usize
}

/// How many bytes the count of an array takes.
pub(crate) const fn count_size(flexible: bool, count: usize) -> usize {
    if flexible { uvarint_size(count as u64 + 1) } else { 4 }
}

/// How many bytes text takes, its length included.
pub(crate) const fn text_size(flexible: bool, text: &str) -> usize {
    let prefix = if flexible { uvarint_size(text.len() as u64 + 1) } else { 2 };
    prefix + text.len()
}

/// How many bytes text takes that may be null.
pub(crate) const fn nullable_text_size(flexible: bool, text: Option<&str>) -> usize {
    match text {
        Some(text) => text_size(flexible, text),
        None if flexible => 1,
        None => 2,
    }
}

/// Writes an unsigned variable-length integer.
pub(crate) fn put_uvarint(out: &mut impl BufMut, mut value: u64) {
    while value >= 0x80 {
        out.put_u8(value as u8 | 0x80);
        value >>= 7;
    }
    out.put_u8(value as u8);
}

/// Writes the count of an array; counts are below 2^31 because elements have bytes.
pub(crate) fn put_count(out: &mut impl BufMut, flexible: bool, count: usize) {
    if flexible { put_uvarint(out, count as u64 + 1) } else { out.put_i32(count as i32) }
}

/// Writes the count of a null array.
pub(crate) fn put_null_count(out: &mut impl BufMut, flexible: bool) {
    if flexible { out.put_u8(0) } else { out.put_i32(-1) }
}

/// Writes text that [`check_text`] let pass.
pub(crate) fn put_text(out: &mut impl BufMut, flexible: bool, text: &str) {
    if flexible {
        put_uvarint(out, text.len() as u64 + 1);
    } else {
        out.put_i16(text.len() as i16);
    }
    out.put_slice(text.as_bytes());
}

/// Writes text that may be null.
pub(crate) fn put_nullable_text(out: &mut impl BufMut, flexible: bool, text: Option<&str>) {
    match text {
        Some(text) => put_text(out, flexible, text),
        None if flexible => out.put_u8(0),
        None => out.put_i16(-1),
    }
}

/// Ends a struct: no tagged fields.
pub(crate) fn put_no_tags(out: &mut impl BufMut, flexible: bool) {
    if flexible {
        out.put_u8(0);
    }
}
