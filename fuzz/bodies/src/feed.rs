//! Bytes as a source of decisions.

/// Hands out the fuzzer's bytes one by one; behind the last everything is zero.
pub(crate) struct Feed<'a>(&'a [u8]);

impl<'a> Feed<'a> {
    pub(crate) const fn new(data: &'a [u8]) -> Self {
        Self(data)
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// One of these.
    pub(crate) fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::from(self.byte()) % all.len()]
    }

    pub(crate) fn i16(&mut self) -> i16 {
        i16::from_be_bytes([self.byte(), self.byte()])
    }

    pub(crate) fn i32(&mut self) -> i32 {
        i32::from_be_bytes([self.byte(), self.byte(), self.byte(), self.byte()])
    }

    pub(crate) fn i64(&mut self) -> i64 {
        i64::from(self.i32()) << 32 | i64::from(self.i32() as u32)
    }

    /// Some text, mostly short.
    pub(crate) fn text(&mut self) -> String {
        let length = match self.byte() {
            255 => 200,
            byte => usize::from(byte % 12),
        };
        String::from_utf8_lossy(self.take(length)).into_owned()
    }

    /// At most so many bytes.
    pub(crate) fn take(&mut self, n: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(n.min(self.0.len()));
        self.0 = rest;
        taken
    }
}
