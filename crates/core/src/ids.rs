//! Names and numbers of the protocol, one type each, so that they cannot be mixed up.

use core::fmt;

/// A producer id as the broker hands it out (KIP-98): `0..=i64::MAX`.
///
/// ```
/// use candor_core::ProducerId;
/// assert_eq!(ProducerId::new(4000).map(ProducerId::get), Some(4000));
/// assert_eq!(ProducerId::new(-1), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProducerId(i64);

impl ProducerId {
    /// The id, unless it is negative (which means "none" on the wire).
    pub const fn new(id: i64) -> Option<Self> {
        if id < 0 { None } else { Some(Self(id)) }
    }

    /// The number on the wire.
    pub const fn get(self) -> i64 {
        self.0
    }
}

/// A producer epoch (KIP-98): `0..=32767`.
///
/// ```
/// use candor_core::ProducerEpoch;
/// let last = ProducerEpoch::new(32766).unwrap().next().unwrap();
/// assert_eq!((last.get(), last.next()), (32767, None));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProducerEpoch(i16);

impl ProducerEpoch {
    /// The epoch of a fresh producer id.
    pub const FIRST: Self = Self(0);

    /// The epoch, unless it is negative.
    pub const fn new(epoch: i16) -> Option<Self> {
        if epoch < 0 { None } else { Some(Self(epoch)) }
    }

    /// The number on the wire.
    pub const fn get(self) -> i16 {
        self.0
    }

    /// The epoch after this one; `None` after 32767.
    pub const fn next(self) -> Option<Self> {
        match self.0.checked_add(1) {
            Some(next) => Some(Self(next)),
            None => None,
        }
    }
}

/// The sequence number of a record: `0..=2^31-1`, and after the last comes 0 (rule S14).
///
/// It has no order and no addition on purpose: order is queue position, and arithmetic wraps.
///
/// ```
/// use candor_core::Sequence;
/// let last = Sequence::new(i32::MAX).unwrap();
/// assert_eq!(last.after(1), Sequence::ZERO);
/// assert_eq!(last.after(3).get(), 2);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sequence(i32);

impl Sequence {
    /// The first sequence of an identity on a partition (rule S1).
    pub const ZERO: Self = Self(0);

    /// The sequence, unless it is negative.
    pub const fn new(sequence: i32) -> Option<Self> {
        if sequence < 0 { None } else { Some(Self(sequence)) }
    }

    /// The number on the wire.
    pub const fn get(self) -> i32 {
        self.0
    }

    /// The sequence `count` records further on, modulo 2^31 (rule S14).
    #[must_use]
    pub const fn after(self, count: u32) -> Self {
        let wide = (self.0 as u64 + count as u64) & 0x7fff_ffff;
        Self(wide as i32)
    }

    /// How many records further on `later` is, modulo 2^31 (rule S14).
    pub const fn until(self, later: Self) -> u32 {
        (later.0.wrapping_sub(self.0) & 0x7fff_ffff) as u32
    }
}

/// Producer id and epoch, as adopted by one partition (rule S9).
///
/// ```
/// use candor_core::{Identity, ProducerEpoch, ProducerId};
/// let fresh = Identity::fresh(ProducerId::new(9).unwrap());
/// assert_eq!(fresh.epoch, ProducerEpoch::FIRST);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The producer id.
    pub id: ProducerId,
    /// The epoch that this partition uses; other partitions may use others.
    pub epoch: ProducerEpoch,
}

impl Identity {
    /// A producer id nobody has used yet, at epoch 0.
    pub const fn fresh(id: ProducerId) -> Self {
        Self { id, epoch: ProducerEpoch::FIRST }
    }
}

/// Names a record until its verdict and resolution; dense per producer, counted from 0.
///
/// ```
/// assert!(candor_core::Ticket(1) < candor_core::Ticket(2));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// One connection to one broker. A new connection is a new route, also to the same broker.
///
/// ```
/// assert_ne!(candor_core::RouteId(1), candor_core::RouteId(2));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RouteId(pub u64);

/// One offer of a sequenced batch to one connection; counted per lane, in the order of offers.
///
/// ```
/// assert!(candor_core::AttemptId(0) < candor_core::AttemptId(1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AttemptId(pub u64);

/// A partition's leader epoch, -1 where the broker does not tell.
///
/// ```
/// assert!(candor_core::LeaderEpoch(7) > candor_core::LeaderEpoch::UNKNOWN);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LeaderEpoch(pub i32);

impl LeaderEpoch {
    /// The broker did not tell (Metadata before version 7).
    pub const UNKNOWN: Self = Self(-1);
}

/// A record's place in the log of its partition: `0..=i64::MAX`.
///
/// ```
/// use candor_core::Offset;
/// assert_eq!(Offset::new(41).unwrap().after(1).get(), 42);
/// assert_eq!(Offset::new(-1), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Offset(i64);

impl Offset {
    /// The offset, unless it is negative (which means "none" on the wire).
    pub const fn new(offset: i64) -> Option<Self> {
        if offset < 0 { None } else { Some(Self(offset)) }
    }

    /// The number on the wire.
    pub const fn get(self) -> i64 {
        self.0
    }

    /// The offset `count` records further on; stays at the largest one.
    #[must_use]
    pub const fn after(self, count: u32) -> Self {
        Self(self.0.saturating_add(count as i64))
    }
}

impl fmt::Display for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
