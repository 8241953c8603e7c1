//! What goes into a producer and what comes out of it.

use core::fmt;
use std::sync::Arc;

use bytes::Bytes;
use candor_core::{Instant, RouteId, Settled, Ticket, Why};
use candor_wire::ErrorCode;

use crate::address::Address;
use crate::completion::FlushId;
use crate::fault::{Fault, Loss};

/// A fact about a connection, told by the driver. Report each once, in the order of their happening.
///
/// ```
/// use candor_core::RouteId;
/// use candor_proto::Input;
/// assert_ne!(Input::Connected { conn: RouteId(1) }, Input::Sent { conn: RouteId(1), n: 4 });
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// The connection is up: `transmit` has bytes for it now.
    Connected {
        /// The connection's name, from [`Output::Connect`].
        conn: RouteId,
    },
    /// Bytes came.
    Received {
        /// On which connection.
        conn: RouteId,
        /// The bytes.
        bytes: Bytes,
    },
    /// The transport took so many more of the bytes that `transmit` gave. Never telling it costs
    /// memory and precision, never truth.
    Sent {
        /// On which connection.
        conn: RouteId,
        /// How many more.
        n: usize,
    },
    /// The connection is over, was closed as asked, or could not be made. Comes exactly once for
    /// every [`Output::Connect`].
    Lost {
        /// Which connection.
        conn: RouteId,
        /// How much was handed over.
        handed: Handed,
        /// How it ended.
        why: Loss,
    },
}

/// How many of a connection's bytes were handed to the transport, from its opening to its end. It may
/// overstate, never understate: below TLS a byte counts when its ciphertext was accepted.
///
/// ```
/// assert_ne!(candor_proto::Handed::AtMost(0), candor_proto::Handed::Unknown);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Handed {
    /// Not more than so many.
    AtMost(u64),
    /// Perhaps all that `transmit` gave.
    Unknown,
}

/// An order or a message for the driver.
///
/// ```
/// use candor_proto::{FlushId, Output};
/// assert_ne!(Output::Closed, Output::Flushed(FlushId(0)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Open a connection; resolve the name anew. Answer with `Connected` or `Lost`.
    Connect {
        /// The name that the connection has from now on.
        conn: RouteId,
        /// Where to.
        address: Address,
    },
    /// Close the connection; send nothing more. Answer with `Lost`, unless it was lost already.
    Disconnect {
        /// Which connection.
        conn: RouteId,
        /// True: drop what is unsent. False: nothing is unsent, close in order.
        abort: bool,
    },
    /// Verdicts and resolutions.
    Settled(Settlement),
    /// Something that people should know.
    Notice(Notice),
    /// Everything that was accepted before this flush has its verdict.
    Flushed(FlushId),
    /// The producer is closed: everything was told, and nothing more will come.
    Closed,
}

/// How records of one partition ended.
///
/// ```
/// use candor_core::{Outcome, Proof, Settled, Ticket, Told};
/// use candor_proto::Settlement;
/// let settlement = Settlement {
///     topic: "orders".into(),
///     partition: None,
///     settled: Settled {
///         records: vec![Told { ticket: Ticket(0), index: 0, unknown: false }],
///         outcome: Outcome::NotDelivered(Proof::NeverOffered),
///     },
/// };
/// assert_eq!(settlement.settled.verdicts().count(), 1);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// The topic.
    pub topic: Arc<str>,
    /// The partition; `None` for records that never got one.
    pub partition: Option<i32>,
    /// The records, and what became of them.
    pub settled: Settled,
}

/// Something that people should know; nothing depends on its being read.
///
/// ```
/// use candor_proto::Notice;
/// let notice = Notice::TopicRecreated { topic: "orders".into() };
/// assert!(notice.to_string().contains("orders"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Of one partition.
    Partition {
        /// The topic.
        topic: Arc<str>,
        /// The partition.
        partition: i32,
        /// What happened.
        notice: candor_core::Notice,
    },
    /// A connection failed; it is tried again, and other brokers are asked meanwhile.
    ConnectionFailed {
        /// The broker's address.
        address: Address,
        /// Why.
        why: Fault,
    },
    /// No producer id yet; it is asked for again.
    NoProducerId {
        /// What the broker said.
        code: ErrorCode,
    },
    /// Brokers will never take records for this topic.
    TopicRefused {
        /// The topic.
        topic: Arc<str>,
        /// What the broker said.
        code: ErrorCode,
    },
    /// The topic was deleted and made anew.
    TopicRecreated {
        /// The topic.
        topic: Arc<str>,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Partition { topic, partition, notice } => {
                write!(f, "{topic}-{partition}: {notice}")
            }
            Self::ConnectionFailed { address, why } => write!(f, "{address}: {why}"),
            Self::NoProducerId { code } => {
                write!(f, "no producer id: {code}; records wait, and it is asked for again")
            }
            Self::TopicRefused { topic, code } => write!(f, "{topic}: {code}"),
            Self::TopicRecreated { topic } => {
                write!(f, "{topic} was deleted and made anew: what was in doubt stays so")
            }
        }
    }
}

/// The driver broke the contract; the producer is unchanged.
///
/// ```
/// use candor_core::RouteId;
/// use candor_proto::Misuse;
/// assert!(Misuse::UnknownConnection(RouteId(3)).to_string().contains("3"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misuse {
    /// No such connection, or it was reported lost already.
    UnknownConnection(RouteId),
    /// It is connected already.
    AlreadyConnected(RouteId),
    /// Bytes came before `Connected`.
    NotConnected(RouteId),
    /// More bytes reported sent than `transmit` gave.
    SentTooMuch {
        /// The connection.
        conn: RouteId,
        /// How many were reported.
        n: usize,
    },
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownConnection(RouteId(conn)) => {
                write!(f, "connection {conn} is not there: report each end once, and nothing after")
            }
            Self::AlreadyConnected(RouteId(conn)) => {
                write!(f, "connection {conn} is up already: report it once")
            }
            Self::NotConnected(RouteId(conn)) => {
                write!(f, "connection {conn} is not up: report `Connected` first")
            }
            Self::SentTooMuch { conn: RouteId(conn), n } => {
                write!(f, "connection {conn}: {n} bytes sent are more than `transmit` gave")
            }
        }
    }
}

impl std::error::Error for Misuse {}

/// A record has ended: there is nothing left to revoke.
///
/// ```
/// use candor_core::Ticket;
/// let ended = candor_proto::Ended(Ticket(7));
/// assert_eq!(ended.to_string(), "record 7 has ended: what became of it was told");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended(pub Ticket);

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "record {} has ended: what became of it was told", self.0)
    }
}

impl std::error::Error for Ended {}

/// No record was ever routed to a partition: there is nothing to abandon.
///
/// ```
/// let unused = candor_proto::Unused { topic: "orders".into(), partition: 3 };
/// assert!(unused.to_string().starts_with("orders-3"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unused {
    /// The topic that was named.
    pub topic: Arc<str>,
    /// And the partition.
    pub partition: i32,
}

impl fmt::Display for Unused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}-{}: nothing was sent there, and nothing is in doubt",
            self.topic, self.partition
        )
    }
}

impl std::error::Error for Unused {}

/// What a record is waiting for.
///
/// ```
/// use candor_core::Why;
/// use candor_proto::Waiting;
/// let why = Waiting::Partition(Why::Linger);
/// assert_eq!(why.to_string(), "it waits for its batch to be filled");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// Nothing: it ended, or was never accepted.
    Gone,
    /// The topic's partitions.
    Metadata,
    /// Its partition, which the topic does not have (yet): partitions may be added.
    NoPartition {
        /// The one that it is for.
        partition: i32,
        /// How many the topic has, counted from 0.
        partitions: u32,
    },
    /// The broker wants to hear nothing until then (KIP-219).
    Throttle {
        /// When it may be spoken to again.
        until: Instant,
    },
    /// The connection has enough open requests or unsent bytes.
    Connection,
    /// Its partition's lane.
    Partition(Why),
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone | Self::Partition(Why::Gone) => {
                f.write_str("it waits for nothing: it ended")
            }
            Self::Metadata | Self::Partition(Why::Metadata) => {
                f.write_str("it waits for its topic's partitions, which no broker has named yet")
            }
            Self::NoPartition { partition, partitions } => write!(
                f,
                "it waits for partition {partition}, but its topic has {partitions}, counted from 0"
            ),
            Self::Throttle { .. } => f.write_str("it waits for the broker, which throttles us"),
            Self::Connection | Self::Partition(Why::Hold | Why::Transmit) => {
                f.write_str("it waits for its turn on the connection")
            }
            Self::Partition(Why::Leader) => {
                f.write_str("it waits for a connection to its partition's leader")
            }
            Self::Partition(Why::Identity) => {
                f.write_str("it waits for a producer id, which no broker has given yet")
            }
            Self::Partition(Why::Linger) => f.write_str("it waits for its batch to be filled"),
            Self::Partition(Why::Queue) => f.write_str("it waits for the batches before it"),
            Self::Partition(Why::Span) => {
                f.write_str("it waits for answers: five batches of its partition are unsettled")
            }
            Self::Partition(Why::Gate) => {
                f.write_str("it waits for the broker to show that it knows this producer")
            }
            Self::Partition(Why::Backoff { .. }) => {
                f.write_str("it waits for the end of the time between two attempts")
            }
            Self::Partition(Why::Answer { .. }) => f.write_str("it waits for the broker's answer"),
            Self::Partition(Why::Confirmation { .. }) => {
                f.write_str("it waits for metadata that confirms its partition's leader")
            }
            Self::Partition(Why::Resolution) => {
                f.write_str("it has its verdict, and waits for its resolution")
            }
        }
    }
}
