//! What a record's owner is told: one verdict, and after `Unknown` one resolution.

use crate::ids::{Identity, Offset, Sequence};

/// The one verdict on a record, given no later than its deadline.
///
/// ```
/// use candor_core::{Offset, Verdict};
/// let v = Verdict::Delivered { offset: Offset::new(41) };
/// assert!(matches!(v, Verdict::Delivered { .. }));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// In the log, replicated, once.
    Delivered {
        /// Where, unless it was concluded from other answers.
        offset: Option<Offset>,
    },
    /// Not in the log, and it never will be: safe to send again.
    NotDelivered(Proof),
    /// May be in the log, now or later. A [`Resolution`] follows.
    Unknown(Doubt),
}

/// What became of a record whose verdict was `Unknown`.
///
/// ```
/// use candor_core::{Proof, Resolution};
/// assert_ne!(Resolution::NotDelivered(Proof::Refused), Resolution::Delivered { offset: None });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// It is in the log, once.
    Delivered {
        /// Where, unless it was concluded from other answers.
        offset: Option<Offset>,
    },
    /// It is not in the log and never will be.
    NotDelivered(Proof),
    /// Nobody will find out by producing; the facts allow to look into the log.
    Never {
        /// Why not.
        reason: NeverReason,
        /// What a scan of the log must look for.
        facts: Doubt,
    },
}

/// Why a record certainly is not in the log.
///
/// ```
/// assert_ne!(candor_core::Proof::NeverOffered, candor_core::Proof::Refused);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Proof {
    /// Its deadline came, or its partition or the producer ended, before any byte of it was offered
    /// to a connection.
    NeverOffered,
    /// The same, and its topic has no such partition, as far as brokers told: the lane cannot know,
    /// who drives it may.
    NoPartition {
        /// How many the topic has, counted from 0.
        partitions: u32,
    },
    /// It was taken back (cancelled, revoked) before any byte of it was offered to a connection.
    TakenBack,
    /// Every attempt was refused, the last time for a reason that may pass, until its deadline.
    Refused,
    /// Every attempt was refused, and the broker gave a reason that does not pass.
    Rejected {
        /// Kafka's error code.
        code: i16,
    },
    /// Its batch's slot lies behind one that nothing will ever fill.
    Unreachable,
    /// The broker wrote what stands behind it, and refused it itself.
    Overtaken,
    /// Other content took its slot.
    SlotTaken,
}

/// Why an `Unknown` could not be resolved.
///
/// ```
/// assert_ne!(candor_core::NeverReason::Closed, candor_core::NeverReason::Expired);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NeverReason {
    /// The caller gave it up.
    Abandoned,
    /// The broker lost its memory of us.
    StateLost,
    /// The broker can no longer be relied upon to remember us.
    Expired,
    /// The topic was deleted and made anew.
    TopicRecreated,
    /// Memory was needed for others.
    MemoryPressure,
    /// The broker refuses to look at it again.
    Refused,
    /// The producer was closed.
    Closed,
}

/// What is known of a record in doubt: enough to find it in the log, if it is there.
///
/// ```
/// use candor_core::{Doubt, Identity, ProducerId, Sequence};
/// let doubt = Doubt {
///     identity: Identity::fresh(ProducerId::new(1).unwrap()),
///     first: Sequence::ZERO,
///     count: 3,
///     index: 1,
///     last_acknowledged: None,
/// };
/// assert!(doubt.index < doubt.count);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doubt {
    /// Identity of its batch.
    pub identity: Identity,
    /// First sequence of its batch.
    pub first: Sequence,
    /// Records in its batch.
    pub count: u32,
    /// Its own index in the batch.
    pub index: u32,
    /// The lane's last acknowledged offset before it: a scan starts behind it.
    pub last_acknowledged: Option<Offset>,
}
