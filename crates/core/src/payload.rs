//! What a lane must be able to do with records that it does not understand.

use core::fmt::Debug;

use crate::ids::{Identity, Sequence};

/// The records of a batch that has no sequence yet: they may still be added, removed and split.
///
/// `candor-wire` implements it for record batches, searches with counters.
///
/// ```
/// use candor_core::{Frozen, Identity, Payload, ProducerId, Sequence};
///
/// /// Counts records and forgets them.
/// #[derive(Clone, Debug, PartialEq, Eq)]
/// struct Count(Vec<i64>);
///
/// impl Payload for Count {
///     type Record<'r> = ();
///     type Frozen = Self;
///     fn empty() -> Self { Self(Vec::new()) }
///     fn size_with(&self, _: i64, (): &()) -> usize { self.0.len() + 1 }
///     fn push(&mut self, timestamp: i64, (): ()) { self.0.push(timestamp) }
///     fn remove(&mut self, index: u32) { self.0.remove(index as usize); }
///     fn split_off(&mut self, at: u32) -> Self { Self(self.0.split_off(at as usize)) }
///     fn join(&mut self, mut behind: Self) { self.0.append(&mut behind.0) }
///     fn count(&self) -> u32 { self.0.len() as u32 }
///     fn bytes(&self) -> usize { self.0.len() }
///     fn max_timestamp(&self) -> i64 { self.0.iter().copied().max().unwrap_or(-1) }
///     fn freeze(self, _: Identity, _: Sequence) -> Self { self }
/// }
/// impl Frozen for Count {
///     type Open = Self;
///     fn thaw(self) -> Self { self }
///     fn count(&self) -> u32 { self.0.len() as u32 }
///     fn bytes(&self) -> usize { self.0.len() }
///     fn max_timestamp(&self) -> i64 { self.0.iter().copied().max().unwrap_or(-1) }
/// }
///
/// let mut batch = Count::empty();
/// batch.push(1000, ());
/// let id = Identity::fresh(ProducerId::new(1).unwrap());
/// assert_eq!(Frozen::count(&batch.freeze(id, Sequence::ZERO)), 1);
/// ```
pub trait Payload: Clone + Eq + Debug {
    /// One record as the caller hands it over; it is copied into the batch by `push`.
    type Record<'r>;
    /// The same records under a sequence.
    type Frozen: Frozen<Open = Self>;

    /// A batch without records. Must not allocate.
    fn empty() -> Self;

    /// Makes room for so many bytes, where that saves growing step by step. A hint.
    fn reserve(&mut self, bytes: usize) {
        let _ = bytes;
    }

    /// What [`bytes`](Self::bytes) would be after pushing this record (header included).
    fn size_with(&self, timestamp: i64, record: &Self::Record<'_>) -> usize;

    /// Adds a record behind the others. `timestamp` is in milliseconds, -1 for none.
    fn push(&mut self, timestamp: i64, record: Self::Record<'_>);

    /// Takes out the record at `index` (`< count()`); those behind it move up.
    fn remove(&mut self, index: u32);

    /// Takes out the records at these indexes, which ascend. Worth overriding where `remove`
    /// rewrites what stays.
    fn remove_all(&mut self, indexes: &[u32]) {
        for index in indexes.iter().rev() {
            self.remove(*index);
        }
    }

    /// Keeps the first `at` records and returns the others.
    #[must_use]
    fn split_off(&mut self, at: u32) -> Self;

    /// Adds the records of another batch behind its own (rule C3).
    fn join(&mut self, behind: Self);

    /// How many records.
    fn count(&self) -> u32;

    /// Size of the batch as it would be sent, header included, in bytes.
    fn bytes(&self) -> usize;

    /// The largest record timestamp in milliseconds; -1 if none has one.
    fn max_timestamp(&self) -> i64;

    /// Binds identity and first sequence (rules S1, S2). Checksums and compression happen here.
    fn freeze(self, identity: Identity, first: Sequence) -> Self::Frozen;
}

/// Records under an identity and a sequence. Immutable, and cheap to clone: every attempt holds
/// its own reference to the bytes for as long as it needs them (rule S16).
///
/// See [`Payload`] for an example.
pub trait Frozen: Clone + Eq + Debug {
    /// The same records without a sequence.
    type Open: Payload<Frozen = Self>;

    /// Takes the sequence off again; legal only where rule S2 says so.
    fn thaw(self) -> Self::Open;

    /// How many records.
    fn count(&self) -> u32;

    /// Size of the batch on the wire, header included, in bytes.
    fn bytes(&self) -> usize;

    /// The largest record timestamp in milliseconds; -1 if none has one.
    fn max_timestamp(&self) -> i64;
}
