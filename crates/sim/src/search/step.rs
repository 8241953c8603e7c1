//! One step of a schedule, as people read it.

use std::fmt;

use super::scope::{Fault, Say};

/// Something that happens.
///
/// ```
/// use candor_sim::search::Step;
/// assert_eq!(Step::Offer.to_string(), "the lane is asked for a batch");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// The next record is sent.
    Append,
    /// The connection is writable.
    Offer,
    /// A frame arrives at its broker. The number counts flights, oldest first.
    Deliver(u8),
    /// A frame arrives, and the broker says something of its own.
    Say(u8, Say),
    /// An answer arrives.
    Answer(u8),
    /// The other replica fetches until it has everything.
    Replicate,
    /// A deposed leader learns of its fall.
    Learn,
    /// The lane hears where the leader is: metadata arrives, or a connection is made.
    Follow,
    /// Time passes until the lane wants to be polled.
    Tick,
    /// Something goes wrong at the broker with this number (1 or 2), or in general.
    Fault(Fault, u8),
    /// The broker with this number is killed, or stopped cleanly, and comes back.
    Restart {
        /// Which.
        node: u8,
        /// SIGTERM instead of SIGKILL.
        clean: bool,
    },
    /// The broker looks for producers that it may forget.
    Expire,
    /// The caller cancels a record.
    Cancel(u64),
    /// The caller revokes a record.
    Revoke(u64),
    /// The caller abandons the partition.
    Abandon,
    /// The producer is closed.
    Close,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Append => f.write_str("the caller sends the next record"),
            Self::Offer => f.write_str("the lane is asked for a batch"),
            Self::Deliver(flight) => write!(f, "flight {flight} arrives at its broker"),
            Self::Say(flight, say) => write!(f, "flight {flight} arrives; the broker {say}"),
            Self::Answer(flight) => write!(f, "the answer to flight {flight} arrives"),
            Self::Replicate => f.write_str("the follower catches up"),
            Self::Learn => f.write_str("the deposed leader learns of its fall"),
            Self::Follow => f.write_str("the lane hears where the leader is"),
            Self::Tick => f.write_str("time passes"),
            Self::Fault(fault, node) => write!(f, "fault: {fault:?} at broker {node}"),
            Self::Restart { node, clean: true } => write!(f, "broker {node} restarts cleanly"),
            Self::Restart { node, clean: false } => write!(f, "broker {node} crashes and restarts"),
            Self::Expire => f.write_str("the brokers look for producers to forget"),
            Self::Cancel(record) => write!(f, "the caller cancels record {record}"),
            Self::Revoke(record) => write!(f, "the caller revokes record {record}"),
            Self::Abandon => f.write_str("the caller abandons the partition"),
            Self::Close => f.write_str("the caller closes the producer"),
        }
    }
}
