//! Leaves: the primitive types of the protocol, in their classic and their compact forms.
//!
//! A [`Reader`] or [`Writer`] is told once whether the message is flexible; after that the same
//! code reads and writes both forms. No length is believed before its bytes are there, so memory
//! is bounded by what was received.

use std::fmt;

use bytes::{Buf, Bytes};

/// Why some bytes are not what they should be.
///
/// ```
/// use candor_sim::codec::{Malformed, Reader};
/// let mut short = Reader::new(vec![0, 0].into(), false);
/// assert_eq!(short.i32(), Err(Malformed::Short { wanted: 4, left: 2 }));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// The message ends before the value does.
    Short {
        /// Bytes that the value needs.
        wanted: usize,
        /// Bytes that are left.
        left: usize,
    },
    /// A length or count below the one that stands for null.
    NegativeLength(i32),
    /// A variable-length integer that does not fit its type.
    LongVarint,
    /// A string that is not UTF-8.
    NotUtf8,
    /// A null where the layout allows none.
    UnexpectedNull,
    /// Tags that are not strictly ascending.
    TagOrder(u32),
    /// Bytes behind the end of a message or structure.
    Trailing(usize),
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short { wanted, left } => write!(f, "{wanted} bytes wanted, {left} left"),
            Self::NegativeLength(n) => write!(f, "length {n}"),
            Self::LongVarint => f.write_str("varint longer than its type"),
            Self::NotUtf8 => f.write_str("string is not UTF-8"),
            Self::UnexpectedNull => f.write_str("null where a value is required"),
            Self::TagOrder(tag) => write!(f, "tag {tag} out of order"),
            Self::Trailing(n) => write!(f, "{n} bytes behind the end"),
        }
    }
}

impl std::error::Error for Malformed {}

/// A topic id: 16 bytes, all zero when there is none.
pub type Uuid = [u8; 16];

/// Reads one message or structure.
///
/// ```
/// use candor_sim::codec::Reader;
/// let mut compact = Reader::new(vec![3, b'h', b'i'].into(), true);
/// assert_eq!(compact.string().unwrap(), "hi");
/// assert!(compact.finish().is_ok());
/// ```
#[derive(Clone, Debug)]
pub struct Reader {
    rest: Bytes,
    flexible: bool,
}

macro_rules! fixed {
    ($($name:ident: $t:ty, $n:literal, $doc:literal;)*) => {
        impl Reader {
            $(
                #[doc = $doc]
                ///
                /// # Errors
                /// [`Malformed::Short`].
                pub fn $name(&mut self) -> Result<$t, Malformed> {
                    self.raw::<$n>().map(<$t>::from_be_bytes)
                }
            )*
        }
        impl Writer {
            $(
                #[doc = $doc]
                pub fn $name(&mut self, value: $t) {
                    self.out.extend_from_slice(&value.to_be_bytes());
                }
            )*
        }
    };
}

fixed! {
    i8: i8, 1, "One byte, signed.";
    i16: i16, 2, "Two bytes, big endian.";
    i32: i32, 4, "Four bytes, big endian.";
    u32: u32, 4, "Four bytes, big endian, unsigned.";
    i64: i64, 8, "Eight bytes, big endian.";
}

impl Reader {
    /// Reads `bytes`; `flexible` chooses the compact forms and the tag buffers.
    pub fn new(bytes: Bytes, flexible: bool) -> Self {
        Self { rest: bytes, flexible }
    }

    /// The same bytes, read on in the other form: a request's header keeps a classic string.
    pub fn set_flexible(&mut self, flexible: bool) {
        self.flexible = flexible;
    }

    /// How many bytes are left.
    pub fn left(&self) -> usize {
        self.rest.len()
    }

    /// Everything that is left.
    pub fn rest(self) -> Bytes {
        self.rest
    }

    /// The next `n` bytes, shared and not copied.
    ///
    /// # Errors
    /// [`Malformed::Short`].
    pub fn take(&mut self, n: usize) -> Result<Bytes, Malformed> {
        if n > self.rest.len() {
            return Err(Malformed::Short { wanted: n, left: self.rest.len() });
        }
        Ok(self.rest.split_to(n))
    }

    fn raw<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let short = Malformed::Short { wanted: N, left: self.rest.len() };
        let raw = *self.rest.first_chunk().ok_or(short)?;
        self.rest.advance(N);
        Ok(raw)
    }

    /// One byte; anything but zero is true.
    ///
    /// # Errors
    /// [`Malformed::Short`].
    pub fn bool(&mut self) -> Result<bool, Malformed> {
        Ok(self.i8()? != 0)
    }

    /// A topic id.
    ///
    /// # Errors
    /// [`Malformed::Short`].
    pub fn uuid(&mut self) -> Result<Uuid, Malformed> {
        self.raw()
    }

    /// An unsigned LEB128 integer of at most 32 bits.
    ///
    /// # Errors
    /// [`Malformed::Short`] and [`Malformed::LongVarint`].
    pub fn uvarint(&mut self) -> Result<u32, Malformed> {
        u32::try_from(self.leb128(5)?).map_err(|_| Malformed::LongVarint)
    }

    /// A zigzag varint of at most 32 bits, as in records.
    ///
    /// # Errors
    /// [`Malformed::Short`] and [`Malformed::LongVarint`].
    pub fn varint(&mut self) -> Result<i32, Malformed> {
        let z = self.uvarint()?;
        Ok((z >> 1).cast_signed() ^ -(z & 1).cast_signed())
    }

    /// A zigzag varint of at most 64 bits, as in records.
    ///
    /// # Errors
    /// [`Malformed::Short`] and [`Malformed::LongVarint`].
    pub fn varlong(&mut self) -> Result<i64, Malformed> {
        let z = self.leb128(10)?;
        Ok((z >> 1).cast_signed() ^ -(z & 1).cast_signed())
    }

    fn leb128(&mut self, longest: u32) -> Result<u64, Malformed> {
        let mut value = 0_u64;
        for place in 0..longest {
            let byte = self.i8()?.cast_unsigned();
            let bits = u64::from(byte & 0x7f);
            let shift = place * 7;
            if bits << shift >> shift != bits {
                return Err(Malformed::LongVarint);
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Malformed::LongVarint)
    }

    /// The length of a string in its form, `None` for null.
    fn string_length(&mut self) -> Result<Option<usize>, Malformed> {
        if self.flexible {
            return Ok(self.uvarint()?.checked_sub(1).map(|n| n as usize));
        }
        length(i32::from(self.i16()?))
    }

    /// The length of bytes or the count of an array in its form, `None` for null.
    fn long_length(&mut self) -> Result<Option<usize>, Malformed> {
        if self.flexible {
            return Ok(self.uvarint()?.checked_sub(1).map(|n| n as usize));
        }
        length(self.i32()?)
    }

    /// A string or null.
    ///
    /// # Errors
    /// [`Malformed::Short`], [`Malformed::NegativeLength`] and [`Malformed::NotUtf8`].
    pub fn nullable_string(&mut self) -> Result<Option<String>, Malformed> {
        let Some(n) = self.string_length()? else { return Ok(None) };
        let raw = self.take(n)?;
        let text = std::str::from_utf8(&raw).map_err(|_| Malformed::NotUtf8)?;
        Ok(Some(text.to_owned()))
    }

    /// A string.
    ///
    /// # Errors
    /// As [`Self::nullable_string`], and [`Malformed::UnexpectedNull`].
    pub fn string(&mut self) -> Result<String, Malformed> {
        self.nullable_string()?.ok_or(Malformed::UnexpectedNull)
    }

    /// Bytes or null.
    ///
    /// # Errors
    /// [`Malformed::Short`] and [`Malformed::NegativeLength`].
    pub fn nullable_bytes(&mut self) -> Result<Option<Bytes>, Malformed> {
        match self.long_length()? {
            Some(n) => self.take(n).map(Some),
            None => Ok(None),
        }
    }

    /// An array or null; `element` reads one element without its tags.
    ///
    /// # Errors
    /// Whatever `element` finds, and what is wrong with the count.
    pub fn nullable_array<T>(
        &mut self,
        mut element: impl FnMut(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Option<Vec<T>>, Malformed> {
        let Some(count) = self.long_length()? else { return Ok(None) };
        // The count is only a promise: grow with the elements that really come.
        let mut all = Vec::new();
        for _ in 0..count {
            all.push(element(self)?);
        }
        Ok(Some(all))
    }

    /// An array of structures or scalars; `element` reads one of them whole.
    ///
    /// # Errors
    /// As [`Self::nullable_array`], and [`Malformed::UnexpectedNull`].
    pub fn array<T>(
        &mut self,
        element: impl FnMut(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        self.nullable_array(element)?.ok_or(Malformed::UnexpectedNull)
    }

    /// The tag buffer that ends every structure of a flexible message; nothing in classic ones.
    /// `known` gets each tag with a reader over its data and may leave it unread.
    ///
    /// # Errors
    /// [`Malformed::TagOrder`], and whatever `known` finds.
    pub fn tags(
        &mut self,
        mut known: impl FnMut(u32, &mut Self) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        if !self.flexible {
            return Ok(());
        }
        let mut last = None;
        for _ in 0..self.uvarint()? {
            let tag = self.uvarint()?;
            if last.is_some_and(|last| tag <= last) {
                return Err(Malformed::TagOrder(tag));
            }
            last = Some(tag);
            let size = self.uvarint()? as usize;
            known(tag, &mut Self::new(self.take(size)?, true))?;
        }
        Ok(())
    }

    /// A tag buffer of which nothing is known.
    ///
    /// # Errors
    /// As [`Self::tags`].
    pub fn skip_tags(&mut self) -> Result<(), Malformed> {
        self.tags(|_, _| Ok(()))
    }

    /// Ends the message. Real brokers pass over bytes behind the end; this one calls them an
    /// error, because no client should send any.
    ///
    /// # Errors
    /// [`Malformed::Trailing`].
    pub fn finish(self) -> Result<(), Malformed> {
        match self.left() {
            0 => Ok(()),
            n => Err(Malformed::Trailing(n)),
        }
    }
}

fn length(n: i32) -> Result<Option<usize>, Malformed> {
    match n {
        -1 => Ok(None),
        n => usize::try_from(n).map(Some).map_err(|_| Malformed::NegativeLength(n)),
    }
}

/// Writes one message or structure.
///
/// ```
/// use candor_sim::codec::Writer;
/// let mut classic = Writer::new(false);
/// classic.string("hi");
/// classic.tags(|_| ());
/// assert_eq!(classic.into_bytes(), [0, 2, b'h', b'i']);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Writer {
    out: Vec<u8>,
    flexible: bool,
}

impl Writer {
    /// An empty message; `flexible` chooses the compact forms and the tag buffers.
    pub fn new(flexible: bool) -> Self {
        Self { out: Vec::new(), flexible }
    }

    /// Goes on in the other form.
    pub fn set_flexible(&mut self, flexible: bool) {
        self.flexible = flexible;
    }

    /// What was written.
    pub fn into_bytes(self) -> Vec<u8> {
        self.out
    }

    /// What was written, behind its length: one frame.
    pub fn into_frame(self) -> Vec<u8> {
        let mut frame = Self::new(false);
        frame.i32(wire_length(self.out.len()));
        frame.raw(&self.out);
        frame.out
    }

    /// Bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// One byte, 0 or 1.
    pub fn bool(&mut self, value: bool) {
        self.out.push(u8::from(value));
    }

    /// A topic id.
    pub fn uuid(&mut self, id: &Uuid) {
        self.raw(id);
    }

    /// An unsigned LEB128 integer.
    pub fn uvarint(&mut self, value: u32) {
        self.leb128(u64::from(value));
    }

    /// A zigzag varint, 32 bits.
    pub fn varint(&mut self, value: i32) {
        self.leb128(u64::from(((value << 1) ^ (value >> 31)).cast_unsigned()));
    }

    /// A zigzag varint, 64 bits.
    pub fn varlong(&mut self, value: i64) {
        self.leb128(((value << 1) ^ (value >> 63)).cast_unsigned());
    }

    fn leb128(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.out.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.out.push(value as u8);
    }

    fn long_length(&mut self, n: Option<usize>) {
        match (self.flexible, n) {
            (true, None) => self.uvarint(0),
            (true, Some(n)) => self.uvarint(wire_length(n).cast_unsigned() + 1),
            (false, None) => self.i32(-1),
            (false, Some(n)) => self.i32(wire_length(n)),
        }
    }

    /// A string or null. A classic string holds at most 32767 bytes; the rest is cut off.
    pub fn nullable_string(&mut self, text: Option<&str>) {
        let bytes = text.map(str::as_bytes);
        if self.flexible {
            self.long_length(bytes.map(<[u8]>::len));
            self.raw(bytes.unwrap_or_default());
            return;
        }
        let longest = bytes.map(|all| &all[..all.len().min(i16::MAX as usize)]);
        self.i16(longest.map_or(-1, |all| all.len() as i16));
        self.raw(longest.unwrap_or_default());
    }

    /// A string.
    pub fn string(&mut self, text: &str) {
        self.nullable_string(Some(text));
    }

    /// Bytes or null.
    pub fn nullable_bytes(&mut self, bytes: Option<&[u8]>) {
        self.long_length(bytes.map(<[u8]>::len));
        self.raw(bytes.unwrap_or_default());
    }

    /// An array or null; `element` writes one element whole.
    pub fn nullable_array<T>(&mut self, all: Option<&[T]>, mut element: impl FnMut(&mut Self, &T)) {
        self.long_length(all.map(<[T]>::len));
        for one in all.unwrap_or_default() {
            element(self, one);
        }
    }

    /// An array; `element` writes one element whole.
    pub fn array<T>(&mut self, all: &[T], element: impl FnMut(&mut Self, &T)) {
        self.nullable_array(Some(all), element);
    }

    /// The tag buffer that ends a structure; nothing in classic messages.
    pub fn tags(&mut self, fill: impl FnOnce(&mut Tags)) {
        if !self.flexible {
            return;
        }
        let mut tags = Tags::default();
        fill(&mut tags);
        self.uvarint(tags.count);
        self.raw(&tags.out);
    }

    /// An empty tag buffer.
    pub fn no_tags(&mut self) {
        self.tags(|_| ());
    }
}

/// The tagged fields of one structure. Add them in ascending order of their tags.
///
/// ```
/// use candor_sim::codec::Writer;
/// let mut flexible = Writer::new(true);
/// flexible.tags(|tags| tags.add(1, |w| w.i16(7)));
/// assert_eq!(flexible.into_bytes(), [1, 1, 2, 0, 7]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Tags {
    count: u32,
    out: Vec<u8>,
}

impl Tags {
    /// Adds one field.
    pub fn add(&mut self, tag: u32, fill: impl FnOnce(&mut Writer)) {
        let mut data = Writer::new(true);
        fill(&mut data);
        let mut field = Writer::new(true);
        field.uvarint(tag);
        field.uvarint(wire_length(data.out.len()).cast_unsigned());
        field.raw(&data.out);
        self.count += 1;
        self.out.extend_from_slice(&field.out);
    }
}

/// A length as the wire has it. Nothing the simulator builds comes near the limit.
pub(crate) fn wire_length(n: usize) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        super::super::testing::hex(text)
    }

    #[test]
    fn zigzag_varints_are_those_of_the_vectors() {
        let small: [(i32, &str); 10] = [
            (0, "00"),
            (-1, "01"),
            (1, "02"),
            (63, "7e"),
            (-64, "7f"),
            (64, "8001"),
            (300, "d804"),
            (8192, "808001"),
            (i32::MAX, "feffffff0f"),
            (i32::MIN, "ffffffff0f"),
        ];
        for (value, bytes) in small {
            let mut w = Writer::new(false);
            w.varint(value);
            assert_eq!(w.out, hex(bytes), "{value}");
            assert_eq!(Reader::new(hex(bytes).into(), false).varint(), Ok(value));
        }
        let large = [
            (1_700_000_000_000, "80a0abfef962"),
            (i64::MAX, "feffffffffffffffff01"),
            (i64::MIN, "ffffffffffffffffff01"),
        ];
        for (value, bytes) in large {
            let mut w = Writer::new(false);
            w.varlong(value);
            assert_eq!(w.out, hex(bytes), "{value}");
            assert_eq!(Reader::new(hex(bytes).into(), false).varlong(), Ok(value));
        }
    }

    #[test]
    fn varints_that_do_not_end_or_do_not_fit_are_refused() {
        let read = |text: &str| Reader::new(hex(text).into(), true);
        assert_eq!(read("ffffffffff01").uvarint(), Err(Malformed::LongVarint));
        assert_eq!(read("ffffffff1f").uvarint(), Err(Malformed::LongVarint));
        assert_eq!(read("ffffffff0f").uvarint(), Ok(u32::MAX));
        assert_eq!(read("ffffffffffffffffff02").varlong(), Err(Malformed::LongVarint));
        assert_eq!(read("ff").uvarint(), Err(Malformed::Short { wanted: 1, left: 0 }));
    }

    #[test]
    fn counts_are_not_believed() {
        let mut classic = Reader::new(hex("7fffffff00").into(), false);
        assert!(matches!(classic.array(Reader::i8), Err(Malformed::Short { .. })));
        let mut minus_two = Reader::new(hex("fffffffe").into(), false);
        assert_eq!(minus_two.array(Reader::i8), Err(Malformed::NegativeLength(-2)));
    }

    #[test]
    fn unknown_tags_are_skipped_and_their_order_is_checked() {
        let mut good = Reader::new(hex("02000101050277772a").into(), true);
        good.skip_tags().unwrap();
        assert_eq!(good.i8(), Ok(0x2a));
        let mut twice = Reader::new(hex("02000101000101").into(), true);
        assert_eq!(twice.skip_tags(), Err(Malformed::TagOrder(0)));
    }
}
