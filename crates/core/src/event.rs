//! What a lane is told.

use alloc::vec::Vec;

use crate::ids::{AttemptId, Identity, LeaderEpoch, RouteId, Ticket};
use crate::payload::Payload;
use crate::time::Instant;

/// Everything that can happen to a lane. Events are facts or wishes; none of them makes anything
/// expire (rule D1), only `poll` does.
///
/// ```
/// use candor_core::{Event, Ticket};
/// # use candor_core::testing::Counted;
/// let wish: Event<'_, Counted> = Event::Cancel(Ticket(3));
/// assert!(matches!(wish, Event::Cancel(Ticket(3))));
/// ```
pub enum Event<'r, P: Payload> {
    /// A record joins the lane, behind all others.
    Append(Append<'r, P>),
    /// This record's deadline is now (rule D4). Unknown tickets are ignored: it may be over already.
    Cancel(Ticket),
    /// The same, and if the record is in doubt then, its slot is contested (rule C): it shall never
    /// be written, or be known to be. A wish like any other: where it cannot be had, the record is
    /// settled as it would have been.
    Revoke(Ticket),
    /// Everything appended so far is due, and later records get a batch of their own.
    Flush,
    /// Everything appended so far is due, and later records may still join it: memory is short, which
    /// is no reason for small batches.
    Due,
    /// Nothing more will be appended; everything is to be told by `deadline` (rule D5).
    Close {
        /// When the last verdict and the last resolution are given at the latest.
        deadline: Instant,
    },
    /// The answer to `NeedIdentity`: an identity that this lane never had.
    Identity(Identity),
    /// Where the partition's leader can be reached now, if anywhere (rule S7).
    Leader {
        /// A live connection to the leader; `None` while there is none.
        route: Option<RouteId>,
        /// The leader epoch that metadata or a leader hint gave.
        epoch: LeaderEpoch,
    },
    /// Metadata newer than our `NeedLeader` names the same leader.
    LeaderConfirmed {
        /// The leader epoch in it.
        epoch: LeaderEpoch,
    },
    /// The topic's id changed: another log (rule S18).
    TopicRecreated,
    /// Nothing may be offered for a while: throttled, authenticating or out of memory.
    Hold,
    /// Offers may go on.
    Release,
    /// The broker's answer to an attempt.
    Answered {
        /// Which attempt.
        attempt: AttemptId,
        /// What it said.
        answer: Answer,
    },
    /// All bytes of an attempt have been handed to the transport.
    Handed {
        /// Which attempt.
        attempt: AttemptId,
    },
    /// The attempt's connection is over, without an answer.
    Ended {
        /// Which attempt.
        attempt: AttemptId,
        /// How much of it was handed over.
        handed: HandedOver,
    },
    /// The producer is out of memory and this lane holds the oldest reported `Unknown` (rule L5).
    Shed,
    /// What is in doubt is given up: the lane goes on under the next epoch without resending it.
    Abandon,
}

/// A record that joins a lane.
///
/// ```
/// use candor_core::{Append, Instant, Ticket};
/// # use candor_core::testing::Counted;
/// let append: Append<'_, Counted> = Append {
///     ticket: Ticket(0),
///     born: Instant::from_millis(0),
///     deadline: Instant::from_millis(120_000),
///     timestamp: 0,
///     record: 7,
/// };
/// assert!(append.born < append.deadline);
/// ```
pub struct Append<'r, P: Payload> {
    /// Its name; larger than any before it in this lane.
    pub ticket: Ticket,
    /// When `send` was called (rule D2).
    pub born: Instant,
    /// When its verdict is due.
    pub deadline: Instant,
    /// Record timestamp in milliseconds, -1 for none.
    pub timestamp: i64,
    /// The record.
    pub record: P::Record<'r>,
}

/// What the broker said of one attempt.
///
/// ```
/// use candor_core::{Answer, PartitionResponse};
/// assert_eq!(Answer::from(PartitionResponse::error(19)).code(), Some(19));
/// assert_eq!(Answer::Missing.code(), None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The partition's entry in the Produce response.
    Response(PartitionResponse),
    /// The response came without a usable entry for this partition.
    Missing,
}

impl Answer {
    /// The error code, if there is one.
    pub fn code(&self) -> Option<i16> {
        match self {
            Self::Response(response) => Some(response.error_code),
            Self::Missing => None,
        }
    }
}

impl From<PartitionResponse> for Answer {
    fn from(response: PartitionResponse) -> Self {
        Self::Response(response)
    }
}

/// One partition's part of a Produce response, as far as verdicts depend on it.
///
/// ```
/// let r = candor_core::PartitionResponse::appended(41);
/// assert_eq!((r.error_code, r.base_offset, r.log_start_offset), (0, 41, 0));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionResponse {
    /// Kafka's error code, 0 for none.
    pub error_code: i16,
    /// Offset of the batch's first record, -1 for none.
    pub base_offset: i64,
    /// The broker's append time in milliseconds; -1 on topics with CreateTime.
    pub log_append_time: i64,
    /// First offset of the log, -1 where the broker does not tell (before Produce 5).
    pub log_start_offset: i64,
    /// Indexes of the records that the broker refused (KIP-467).
    pub record_errors: Vec<u32>,
}

impl PartitionResponse {
    /// Code 0 at this base offset, CreateTime, log start 0.
    pub const fn appended(base_offset: i64) -> Self {
        Self {
            error_code: 0,
            base_offset,
            log_append_time: -1,
            log_start_offset: 0,
            record_errors: Vec::new(),
        }
    }

    /// An error as brokers give it before the append.
    pub const fn error(error_code: i16) -> Self {
        Self {
            error_code,
            base_offset: -1,
            log_append_time: -1,
            log_start_offset: -1,
            record_errors: Vec::new(),
        }
    }
}

/// How much of an attempt's frame the transport took before the connection was over. It may only
/// ever overstate.
///
/// ```
/// assert_ne!(candor_core::HandedOver::Partly, candor_core::HandedOver::PerhapsWhole);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HandedOver {
    /// The driver vouches that fewer bytes were handed over than the frame needs.
    Partly,
    /// Perhaps all of it.
    PerhapsWhole,
}
