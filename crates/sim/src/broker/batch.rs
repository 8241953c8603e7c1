//! What a producer sends to a partition.

/// One record batch as a broker sees it after parsing: raw header integers, what is wrong with
/// it, and contents that the broker never looks at.
///
/// `C` is whatever tells two contents apart: a small integer in a search, bytes in a server.
///
/// ```
/// use candor_sim::broker::Batch;
/// let batch = Batch::new(7, 0, 10, 5, 1_000, "ten to fourteen");
/// assert_eq!(batch.last(), 14);
/// assert_eq!(Batch::new(7, 0, i32::MAX, 2, 0, ()).last(), 0);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Batch<C> {
    /// Producer id; -1 for none.
    pub pid: i64,
    /// Producer epoch.
    pub epoch: i16,
    /// First (base) sequence.
    pub first: i32,
    /// Number of records as the header says.
    pub count: i32,
    /// Attribute bits of the header.
    pub attributes: i16,
    /// Size of the whole batch on the wire.
    pub bytes: i32,
    /// Timestamps of the records.
    pub stamps: Stamps,
    /// Indexes of the records without a key, ascending.
    pub keyless: Vec<i32>,
    /// What is wrong with it, if anything: what a broker meets first, in the order of [`Flaw`].
    pub flaw: Option<Flaw>,
    /// The records.
    pub content: C,
}

/// Timestamps of a batch's records, in milliseconds since the Unix epoch; -1 means none.
///
/// ```
/// use candor_sim::broker::Stamps;
/// assert_eq!(Stamps::Each(vec![3, 9, 4]).max(), 9);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Stamps {
    /// All records have this one.
    Same(i64),
    /// One per record.
    Each(Vec<i64>),
}

/// What is wrong with a batch, in the order in which brokers look.
///
/// Zero records, a negative sequence, a control bit, its size and its timestamps are plain values of
/// [`Batch`], not flaws.
///
/// ```
/// use candor_sim::broker::{Batch, Flaw};
/// let cut = Batch { flaw: Some(Flaw::CutShort), ..Batch::new(7, 0, 0, 1, 0, ()) };
/// assert_ne!(cut, Batch::new(7, 0, 0, 1, 0, ()));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Flaw {
    /// Fewer bytes than the batch claims, or none at all.
    CutShort,
    /// More than one batch in the records field.
    TwoBatches,
    /// A magic other than 2.
    Magic(i8),
    /// A base offset other than 0.
    BaseOffset(i64),
    /// The checksum does not match.
    BadCrc,
    /// The last offset delta is not count - 1.
    LastOffsetDelta(i32),
    /// A record does not parse (such as a negative header key length).
    BadRecord,
}

impl<C> Batch<C> {
    /// A sound batch of `count` records that all carry the timestamp `stamp`.
    #[must_use]
    pub fn new(pid: i64, epoch: i16, first: i32, count: i32, stamp: i64, content: C) -> Self {
        Self {
            pid,
            epoch,
            first,
            count,
            attributes: 0,
            bytes: 61,
            stamps: Stamps::Same(stamp),
            keyless: Vec::new(),
            flaw: None,
            content,
        }
    }

    /// Sequence of the last record; after 2^31 - 1 comes 0.
    #[must_use]
    pub fn last(&self) -> i32 {
        last_sequence(self.first, self.count)
    }

    /// Attribute bit 4.
    #[must_use]
    pub fn is_transactional(&self) -> bool {
        self.attributes & 0x10 != 0
    }

    /// Attribute bit 5.
    #[must_use]
    pub fn is_control(&self) -> bool {
        self.attributes & 0x20 != 0
    }

    /// Attribute bits 0 to 2 say zstd.
    #[must_use]
    pub fn is_zstd(&self) -> bool {
        self.attributes & 7 == 4
    }
}

impl Stamps {
    /// The largest; -1 if there is none.
    #[must_use]
    pub fn max(&self) -> i64 {
        match self {
            Self::Same(stamp) => *stamp,
            Self::Each(stamps) => stamps.iter().copied().max().unwrap_or(-1),
        }
    }

    /// The timestamp of record `index`; -1 if there is none.
    #[must_use]
    pub fn at(&self, index: usize) -> i64 {
        match self {
            Self::Same(stamp) => *stamp,
            Self::Each(stamps) => stamps.get(index).copied().unwrap_or(-1),
        }
    }
}

/// The last sequence of `count` records from `first` on, modulo 2^31.
pub(super) fn last_sequence(first: i32, count: i32) -> i32 {
    let last = (i64::from(first) + i64::from(count) - 1).rem_euclid(1 << 31);
    i32::try_from(last).unwrap_or(0)
}
