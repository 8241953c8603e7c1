//! Leaf parsers: slices in, values and the rest of the slice out.
//!
//! They are our own, because nom's stock leaves with its stock error cost two to five times as
//! much. A count is believed only after the bytes that are left could hold so many elements.

use nom::error::{ErrorKind, ParseError};
use nom::{Err, IResult};

use crate::error::{DecodeError, Malformed};
use crate::versions::Api;

/// The bytes still to be read.
pub(crate) type Input<'a> = &'a [u8];

/// A value and the bytes behind it.
pub(crate) type Parsed<'a, T> = IResult<Input<'a>, T, Bad>;

/// What went wrong, and how many bytes were left then; small, since every parser returns one.
/// Frames have less than 2^31 bytes; in longer slices only the place that is told would be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bad {
    pub(crate) what: Malformed,
    pub(crate) left: u32,
}

impl<'a> ParseError<Input<'a>> for Bad {
    fn from_error_kind(input: Input<'a>, _: ErrorKind) -> Self {
        Self { what: Malformed::Truncated, left: input.len() as u32 }
    }

    fn append(_: Input<'a>, _: ErrorKind, other: Self) -> Self {
        other
    }
}

/// Fails at the start of `input`.
#[cold]
pub(crate) fn bad<T>(input: Input<'_>, what: Malformed) -> Parsed<'_, T> {
    Err(Err::Failure(Bad { what, left: input.len() as u32 }))
}

/// The same error, seen from around the part it is in; `behind` are the bytes behind that part.
#[cold]
pub(crate) fn inside(error: Err<Bad>, behind: Input<'_>) -> Err<Bad> {
    error.map(|bad| Bad { left: bad.left + behind.len() as u32, ..bad })
}

/// Runs a parser over all of `body`. Bytes left over are an error: the Java client would ignore
/// them, but then it has read a message by a layout that is not the sender's, and what such a
/// reading says of a batch must not become a verdict.
pub(crate) fn whole<'a, T>(
    api: Api,
    version: i16,
    body: Input<'a>,
    parser: impl FnOnce(Input<'a>) -> Parsed<'a, T>,
) -> Result<T, DecodeError> {
    let message = api.response_name();
    if !api.supported().contains(version) {
        return Err(DecodeError { message, version, what: Malformed::UnknownVersion, at: 0 });
    }
    let (rest, value) =
        parser(body).map_err(|error| describe(message, version, body.len(), error))?;
    if rest.is_empty() {
        return Ok(value);
    }
    let at = body.len() - rest.len();
    Err(DecodeError { message, version, what: Malformed::Trailing, at })
}

/// Turns a parser's error into the one that users see.
#[cold]
pub(crate) fn describe(
    message: &'static str,
    version: i16,
    length: usize,
    error: Err<Bad>,
) -> DecodeError {
    let bad = match error {
        Err::Error(bad) | Err::Failure(bad) => bad,
        Err::Incomplete(_) => Bad { what: Malformed::Truncated, left: 0 },
    };
    DecodeError { message, version, what: bad.what, at: length.saturating_sub(bad.left as usize) }
}

macro_rules! integers {
    ($($(#[$doc:meta])* $name:ident: $type:ty;)*) => {$(
        $(#[$doc])*
        #[inline]
        pub(crate) fn $name(input: Input<'_>) -> Parsed<'_, $type> {
            match input.split_first_chunk() {
                Some((bytes, rest)) => Ok((rest, <$type>::from_be_bytes(*bytes))),
                None => bad(input, Malformed::Truncated),
            }
        }
    )*};
}

integers! {
    /// A signed byte.
    int8: i8;
    /// A signed 16-bit integer, big endian like all below.
    int16: i16;
    /// A signed 32-bit integer.
    int32: i32;
    /// A signed 64-bit integer.
    int64: i64;
    /// An unsigned 32-bit integer.
    uint32: u32;
}

/// A truth value: any byte but 0 is true, as in Java.
#[inline]
pub(crate) fn boolean(input: Input<'_>) -> Parsed<'_, bool> {
    let (rest, byte) = int8(input)?;
    Ok((rest, byte != 0))
}

/// So many bytes.
#[inline]
pub(crate) fn take(count: usize) -> impl FnMut(Input<'_>) -> Parsed<'_, &[u8]> {
    move |input| match input.split_at_checked(count) {
        Some((taken, rest)) => Ok((rest, taken)),
        None => bad(input, Malformed::Truncated),
    }
}

/// An unsigned variable-length integer of at most 32 bits.
#[inline]
pub(crate) fn uvarint(input: Input<'_>) -> Parsed<'_, u32> {
    match input.split_first() {
        Some((&byte, rest)) if byte < 0x80 => Ok((rest, u32::from(byte))),
        _ => {
            let (rest, wide) = uvarint_up_to(32, input)?;
            Ok((rest, wide as u32))
        }
    }
}

/// A zigzag integer of at most 32 bits, as records use it.
#[inline]
pub(crate) fn varint(input: Input<'_>) -> Parsed<'_, i32> {
    let (rest, zigzag) = uvarint(input)?;
    Ok((rest, (zigzag >> 1) as i32 ^ -((zigzag & 1) as i32)))
}

/// A zigzag integer of at most 64 bits, as records use it.
#[inline]
pub(crate) fn varlong(input: Input<'_>) -> Parsed<'_, i64> {
    let (rest, zigzag) = match input.split_first() {
        Some((&byte, rest)) if byte < 0x80 => (rest, u64::from(byte)),
        _ => uvarint_up_to(64, input)?,
    };
    Ok((rest, (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64)))
}

/// Seven bits per byte, lowest first. More bits than `bits` are refused; needless zero bytes within
/// that length are not, since Kafka takes them too.
fn uvarint_up_to(bits: u32, input: Input<'_>) -> Parsed<'_, u64> {
    let mut value = 0_u64;
    let mut shift = 0;
    for (index, &byte) in input.iter().enumerate() {
        let part = u64::from(byte & 0x7f);
        let room = bits - shift;
        if room < 7 && part >> room != 0 || room <= 7 && byte >= 0x80 {
            return bad(input, Malformed::VarintTooLong);
        }
        value |= part << shift;
        if byte < 0x80 {
            return Ok((input.get(index + 1..).unwrap_or_default(), value));
        }
        shift += 7;
    }
    bad(input, Malformed::Truncated)
}

/// A length prefix; `None` is null.
#[inline]
fn compact_length(input: Input<'_>) -> Parsed<'_, Option<usize>> {
    let (rest, length) = uvarint(input)?;
    Ok((rest, length.checked_sub(1).map(|length| length as usize)))
}

/// A classic length that was read as a number already; `None` is null.
#[inline]
fn classic_length<'a>(
    before: Input<'a>,
    rest: Input<'a>,
    length: i32,
) -> Parsed<'a, Option<usize>> {
    match usize::try_from(length) {
        Ok(length) => Ok((rest, Some(length))),
        Err(_) if length == -1 => Ok((rest, None)),
        Err(_) => bad(before, Malformed::NegativeLength),
    }
}

/// Text that may be null.
pub(crate) fn nullable_text(flexible: bool) -> impl FnMut(Input<'_>) -> Parsed<'_, Option<&str>> {
    move |input| {
        let (rest, length) = if flexible {
            compact_length(input)?
        } else {
            let (rest, length) = int16(input)?;
            classic_length(input, rest, i32::from(length))?
        };
        let Some(length) = length else { return Ok((rest, None)) };
        let (after, bytes) = take(length)(rest)?;
        match core::str::from_utf8(bytes) {
            Ok(text) => Ok((after, Some(text))),
            Err(_) => bad(rest, Malformed::NotUtf8),
        }
    }
}

/// Text.
pub(crate) fn text(flexible: bool) -> impl FnMut(Input<'_>) -> Parsed<'_, &str> {
    move |input| match nullable_text(flexible)(input)? {
        (rest, Some(text)) => Ok((rest, text)),
        (_, None) => bad(input, Malformed::NullNotAllowed),
    }
}

/// The count of an array whose elements take at least `least` bytes each.
#[inline]
pub(crate) fn count(flexible: bool, least: usize) -> impl FnMut(Input<'_>) -> Parsed<'_, usize> {
    move |input| {
        let (rest, count) = if flexible {
            compact_length(input)?
        } else {
            let (rest, count) = int32(input)?;
            classic_length(input, rest, count)?
        };
        match count {
            Some(count) if count <= rest.len() / least => Ok((rest, count)),
            Some(_) => bad(input, Malformed::CountTooLarge),
            None => bad(input, Malformed::NullNotAllowed),
        }
    }
}

/// An array, collected. What it allocates is bounded by the bytes that are there.
pub(crate) fn array<'a, T>(
    flexible: bool,
    least: usize,
    mut element: impl FnMut(Input<'a>) -> Parsed<'a, T>,
) -> impl FnMut(Input<'a>) -> Parsed<'a, Vec<T>> {
    move |input| {
        let (mut rest, count) = count(flexible, least)(input)?;
        let mut elements = Vec::with_capacity(count);
        for _ in 0..count {
            let (after, element) = element(rest)?;
            elements.push(element);
            rest = after;
        }
        Ok((rest, elements))
    }
}

/// An array whose elements are checked, not kept; gives the bytes it takes.
pub(crate) fn skimmed<'a, T>(
    flexible: bool,
    least: usize,
    mut element: impl FnMut(Input<'a>) -> Parsed<'a, T>,
) -> impl FnMut(Input<'a>) -> Parsed<'a, &'a [u8]> {
    move |input| {
        let (mut rest, count) = count(flexible, least)(input)?;
        for _ in 0..count {
            (rest, _) = element(rest)?;
        }
        let taken = input.len() - rest.len();
        Ok((rest, input.get(..taken).unwrap_or_default()))
    }
}

/// The tag buffer at the end of a struct, where there is one. `known` gets every tag with its data
/// and says `None` to those it does not know, which are skipped; those it knows must be used up.
#[inline]
pub(crate) fn tags<'a>(
    flexible: bool,
    mut known: impl FnMut(u32, Input<'a>) -> Option<Parsed<'a, ()>>,
) -> impl FnMut(Input<'a>) -> Parsed<'a, ()> {
    move |input| {
        if !flexible {
            return Ok((input, ()));
        }
        let (mut rest, count) = uvarint(input)?;
        for _ in 0..count {
            let (after, tag) = uvarint(rest)?;
            let (after, size) = uvarint(after)?;
            let (after, data) = take(size as usize)(after)?;
            match known(tag, data) {
                None | Some(Ok(([], ()))) => {}
                Some(Ok((unread, ()))) => {
                    let left = (unread.len() + after.len()) as u32;
                    return Err(Err::Failure(Bad { what: Malformed::Trailing, left }));
                }
                Some(Err(error)) => return Err(inside(error, after)),
            }
            rest = after;
        }
        Ok((rest, ()))
    }
}

/// A tag buffer in which no tag means anything to us.
#[inline]
pub(crate) fn no_tags<'a>(flexible: bool) -> impl FnMut(Input<'a>) -> Parsed<'a, ()> {
    tags(flexible, |_, _| None)
}

/// A field that exists since some version, and what stands for it before.
#[inline]
pub(crate) fn since<'a, T: Copy>(
    exists: bool,
    default: T,
    mut parser: impl FnMut(Input<'a>) -> Parsed<'a, T>,
) -> impl FnMut(Input<'a>) -> Parsed<'a, T> {
    move |input| if exists { parser(input) } else { Ok((input, default)) }
}
