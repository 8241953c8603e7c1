//! What a lane wants done, and what it has to tell.

use alloc::vec::Vec;
use core::fmt;

use crate::ids::{AttemptId, Identity, LeaderEpoch, Offset, RouteId, Sequence, Ticket};
use crate::payload::Payload;
use crate::time::Instant;
use crate::verdict::{Doubt, NeverReason, Proof, Resolution, Verdict};

/// What `Lane::poll` gives, until it gives `None`.
///
/// ```
/// use candor_core::Action;
/// assert_ne!(Action::NeedIdentity, Action::NeedLeader);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Verdicts and resolutions of one batch.
    Settled(Settled),
    /// Something that people should know.
    Notice(Notice),
    /// The lane needs an identity that it never had: answer with `Event::Identity`.
    NeedIdentity,
    /// The lane doubts its leader: refresh metadata, answer with `Leader` or `LeaderConfirmed`.
    NeedLeader,
}

/// How one batch, or a part of it, ended. One completion per batch; records are iterated.
///
/// ```
/// use candor_core::{Outcome, Settled, Told, Ticket, Verdict, Offset};
/// let settled = Settled {
///     records: vec![Told { ticket: Ticket(5), index: 0, unknown: false }],
///     outcome: Outcome::Delivered { base: Offset::new(100) },
/// };
/// let mut verdicts = settled.verdicts();
/// assert_eq!(verdicts.next(), Some((Ticket(5), Verdict::Delivered { offset: Offset::new(100) })));
/// assert_eq!(settled.resolutions().count(), 0);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// The records concerned, in order.
    pub records: Vec<Told>,
    /// What became of them.
    pub outcome: Outcome,
}

/// One record of a [`Settled`].
///
/// ```
/// let t = candor_core::Told { ticket: candor_core::Ticket(1), index: 0, unknown: true };
/// assert!(t.unknown);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// Its name.
    pub ticket: Ticket,
    /// Its index in the batch.
    pub index: u32,
    /// Its verdict was `Unknown` before: what follows is its resolution.
    pub unknown: bool,
}

/// What became of the records of a [`Settled`].
///
/// ```
/// use candor_core::{Outcome, Proof};
/// assert_ne!(Outcome::NotDelivered(Proof::Refused), Outcome::Delivered { base: None });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All of them are in the log.
    Delivered {
        /// Offset of the batch's record 0, unless concluded.
        base: Option<Offset>,
    },
    /// None of them is, or ever will be.
    NotDelivered(Proof),
    /// The verdict `Unknown`; `index` of the facts is filled in per record.
    Unknown(Doubt),
    /// The resolution `Never`; `index` of the facts is filled in per record.
    Never {
        /// Why.
        reason: NeverReason,
        /// What to look for in the log.
        facts: Doubt,
    },
}

impl Settled {
    /// The verdicts in it, in order.
    pub fn verdicts(&self) -> impl Iterator<Item = (Ticket, Verdict)> + '_ {
        self.records.iter().filter(|told| !told.unknown).map(|told| {
            let verdict = match self.outcome {
                Outcome::Delivered { base } => {
                    Verdict::Delivered { offset: base.map(|base| base.after(told.index)) }
                }
                Outcome::NotDelivered(proof) => Verdict::NotDelivered(proof),
                Outcome::Unknown(facts) | Outcome::Never { facts, .. } => {
                    Verdict::Unknown(Doubt { index: told.index, ..facts })
                }
            };
            (told.ticket, verdict)
        })
    }

    /// The resolutions in it, in order.
    pub fn resolutions(&self) -> impl Iterator<Item = (Ticket, Resolution)> + '_ {
        self.records.iter().filter_map(|told| {
            let resolution = match self.outcome {
                Outcome::Unknown(_) => return None,
                Outcome::Delivered { .. } | Outcome::NotDelivered(_) if !told.unknown => {
                    return None;
                }
                Outcome::Delivered { base } => {
                    Resolution::Delivered { offset: base.map(|base| base.after(told.index)) }
                }
                Outcome::NotDelivered(proof) => Resolution::NotDelivered(proof),
                Outcome::Never { reason, facts } => {
                    Resolution::Never { reason, facts: Doubt { index: told.index, ..facts } }
                }
            };
            Some((told.ticket, resolution))
        })
    }
}

/// Something that people should know; nothing depends on its being read.
///
/// ```
/// use candor_core::Notice;
/// assert!(Notice::StateLost.to_string().contains("memory"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Acknowledged data may be gone: the log does not hold what was acknowledged.
    DataLoss {
        /// Last offset that was acknowledged to this lane.
        last_acknowledged: Option<Offset>,
        /// First offset of the log, if the broker told.
        log_start: Option<Offset>,
    },
    /// The broker lost its memory of this producer on the partition.
    StateLost,
    /// Somebody else uses our producer id, twice in a row; the lane stopped.
    IdentityConflict,
    /// A copy of what ended `Never` could still appear behind newer records.
    Unfenced,
    /// From this offset on nothing of an older epoch can appear any more.
    Fence {
        /// Offset of the first batch acknowledged under the new epoch.
        offset: Offset,
    },
    /// An answer contradicts the log or an earlier conclusion; the lane stopped.
    Contradiction {
        /// The offset that it named.
        offset: Option<Offset>,
    },
    /// The lane stopped because of `OnDataLoss::Stop`.
    Stopped,
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DataLoss { last_acknowledged: Some(offset), .. } => {
                write!(f, "the log may have lost acknowledged records up to offset {offset}")
            }
            Self::DataLoss { last_acknowledged: None, .. } => {
                f.write_str("the log refuses a sequence that it must know: records may be lost")
            }
            Self::StateLost => f.write_str("the broker lost its memory of this producer"),
            Self::IdentityConflict => f.write_str(
                "somebody else uses this producer id, or the broker refuses local epochs: \
                 the partition stopped",
            ),
            Self::Unfenced => f.write_str("a late copy may still appear behind newer records"),
            Self::Fence { offset } => write!(f, "nothing older can appear from offset {offset} on"),
            Self::Contradiction { .. } => f.write_str(
                "an answer contradicts what the broker said before: the partition stopped",
            ),
            Self::Stopped => f.write_str("the partition stopped after data loss, as configured"),
        }
    }
}

/// A batch to be sent now. From the moment it is returned, the attempt is in doubt.
///
/// ```
/// # use candor_core::testing::Counted;
/// fn sequence(offer: &candor_core::Offer<Counted>) -> i32 {
///     offer.first.get()
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer<P: Payload> {
    /// Name of the attempt, for `Answered`, `Handed` and `Ended`.
    pub attempt: AttemptId,
    /// The connection it must go to.
    pub route: RouteId,
    /// Identity in the batch header.
    pub identity: Identity,
    /// First sequence in the batch header.
    pub first: Sequence,
    /// The records.
    pub batch: P::Frozen,
    /// It takes the slot of batches in doubt (rule C): other content stands at this sequence.
    pub replacement: bool,
    /// Earliest deadline of a record in it that has no verdict yet (rule L9).
    pub earliest_deadline: Option<Instant>,
}

/// What a record is waiting for.
///
/// ```
/// assert_ne!(candor_core::Why::Linger, candor_core::Why::Gate);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Nothing: the lane does not hold it (any more).
    Gone,
    /// The topic's metadata.
    Metadata,
    /// A connection to the partition's leader.
    Leader,
    /// A producer id.
    Identity,
    /// Its batch is still being filled.
    Linger,
    /// Batches before it.
    Queue,
    /// Five batches are unsettled already.
    Span,
    /// The broker has not shown yet that it knows us: one batch at a time.
    Gate,
    /// The time between two attempts.
    Backoff {
        /// When the next one may be made.
        until: Instant,
    },
    /// Offers are on hold: throttled, authenticating, or the connection's window is full.
    Hold,
    /// The answer to this attempt.
    Answer {
        /// Which one.
        attempt: AttemptId,
    },
    /// Metadata that confirms the leader.
    Confirmation {
        /// The leader epoch in question.
        epoch: LeaderEpoch,
    },
    /// It has its verdict, and waits for its resolution.
    Resolution,
    /// The connection: it may be offered any time.
    Transmit,
}

/// The embedder broke the contract; the lane is unchanged.
///
/// ```
/// assert_eq!(candor_core::Misuse::Closed.to_string(), "the lane is closed: append nothing more");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misuse {
    /// `Append` after `Close`.
    Closed,
    /// `Append` to a lane that stopped; the notice said why.
    Stopped,
    /// Tickets must grow within a lane.
    TicketOrder,
    /// No such attempt is open, or it was answered or ended already.
    UnknownAttempt(AttemptId),
    /// `Identity` that was not asked for, or that the lane had before.
    UnexpectedIdentity,
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("the lane is closed: append nothing more"),
            Self::Stopped => f.write_str("the lane stopped: append nothing more"),
            Self::TicketOrder => f.write_str("tickets must grow within a lane"),
            Self::UnknownAttempt(attempt) => {
                write!(f, "attempt {} is not open: report each outcome once", attempt.0)
            }
            Self::UnexpectedIdentity => {
                f.write_str("an identity is given once, and only after NeedIdentity")
            }
        }
    }
}

impl core::error::Error for Misuse {}
