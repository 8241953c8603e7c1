//! Arrays that stay in the bytes they came in.

use core::fmt;
use core::marker::PhantomData;

use crate::read::{Input, Parsed, count};

/// What a [`List`] can hold: the structs of responses.
///
/// ```
/// fn all<'a, T: candor_wire::Element<'a>>(list: candor_wire::List<'a, T>) -> Vec<T> {
///     list.iter().collect()
/// }
/// # assert!(all::<candor_wire::metadata::Broker<'_>>(Default::default()).is_empty());
/// ```
pub trait Element<'a>: sealed::Read<'a> {}

impl<'a, T: sealed::Read<'a>> Element<'a> for T {}

pub(crate) mod sealed {
    /// Reads one element, of bytes that were checked before.
    pub trait Read<'a>: Sized {
        /// The element and what is behind it. What `layout` means is the element's business.
        fn read(layout: i16, input: &'a [u8]) -> Option<(Self, &'a [u8])>;
    }
}

/// An array that was checked as a whole and is read again whenever somebody looks at it, so that a
/// peer that sends many small elements costs no more memory than its bytes.
///
/// ```
/// let body = [0, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0];
/// let response = candor_wire::metadata::Response::decode(1, &body).unwrap();
/// assert_eq!((response.topics.len(), response.topics.iter().next()), (0, None));
/// ```
pub struct List<'a, T> {
    elements: Input<'a>,
    len: usize,
    layout: i16,
    of: PhantomData<fn() -> T>,
}

impl<T> Clone for List<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for List<'_, T> {}

impl<T> Default for List<'_, T> {
    fn default() -> Self {
        Self { elements: &[], len: 0, layout: 0, of: PhantomData }
    }
}

impl<T> List<'_, T> {
    /// How many elements.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<'a, T: Element<'a>> List<'a, T> {
    /// The elements, in the broker's order.
    pub const fn iter(&self) -> Elements<'a, T> {
        Elements(*self)
    }
}

impl<'a, T: Element<'a>> IntoIterator for List<'a, T> {
    type Item = T;
    type IntoIter = Elements<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, T: Element<'a> + fmt::Debug> fmt::Debug for List<'a, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a, T: Element<'a> + PartialEq> PartialEq for List<'a, T> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<'a, T: Element<'a> + Eq> Eq for List<'a, T> {}

/// Iterates a [`List`].
///
/// ```
/// use candor_wire::{List, metadata::Broker};
/// let none: List<'_, Broker<'_>> = List::default();
/// assert_eq!(none.iter().len(), 0);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elements<'a, T: Element<'a>>(List<'a, T>);

impl<'a, T: Element<'a>> Iterator for Elements<'a, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.len = self.0.len.checked_sub(1)?;
        let (element, rest) = T::read(self.0.layout, self.0.elements)?;
        self.0.elements = rest;
        Some(element)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.0.len, Some(self.0.len))
    }
}

impl<'a, T: Element<'a>> ExactSizeIterator for Elements<'a, T> {}

/// An array whose elements take at least `least` bytes each: every one is checked, none is kept.
pub(crate) fn list<'a, T: Element<'a>>(
    flexible: bool,
    least: usize,
    layout: i16,
    mut element: impl FnMut(Input<'a>) -> Parsed<'a, T>,
) -> impl FnMut(Input<'a>) -> Parsed<'a, List<'a, T>> {
    move |input| {
        let (elements, len) = count(flexible, least)(input)?;
        let mut rest = elements;
        for _ in 0..len {
            (rest, _) = element(rest)?;
        }
        let taken = elements.len() - rest.len();
        let elements = elements.get(..taken).unwrap_or_default();
        Ok((rest, List { elements, len, layout, of: PhantomData }))
    }
}
