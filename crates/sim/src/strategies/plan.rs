//! What happens in a run, drawn before it begins.

use std::fmt;

use candor_proto::Config;

use crate::broker::Profile;
use crate::serve::Fault;

/// The topic that records of a plan go to.
pub const TOPIC: &str = "t";

/// How many partitions it has.
pub const PARTITIONS: u32 = 2;

/// The broker that is asked first.
pub(super) const BOOTSTRAP: &str = "broker-1:9092";

/// A record that the caller wants to send. Its value says which one it is.
///
/// ```
/// use candor_sim::strategies::Wish;
/// let soon = Wish { after_ms: 0, partition: 0, bytes: 0, deadline_ms: 2_000, regret: None };
/// assert!(soon.deadline_ms > 0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish {
    /// So many milliseconds after the one before.
    pub after_ms: u64,
    /// To which partition.
    pub partition: u32,
    /// How many bytes its value has, beside its name.
    pub bytes: usize,
    /// How long it may take to be told what became of it, in milliseconds.
    pub deadline_ms: u64,
    /// Whether the caller changes its mind.
    pub regret: Option<Regret>,
}

/// The caller changes its mind about a record that it sent.
///
/// ```
/// use candor_sim::strategies::{Call, Regret};
/// let never_mind = Regret { after_ms: 5, call: Call::Revoke };
/// assert_ne!(never_mind.call, Call::Cancel);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Regret {
    /// So many milliseconds after it was sent.
    pub after_ms: u64,
    /// What it does then.
    pub call: Call,
}

/// What a caller that changes its mind says to the producer.
///
/// ```
/// use candor_sim::strategies::Call;
/// assert_ne!(Call::Revoke, Call::Abandon);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// It waits no longer for the record's verdict: `Producer::cancel` (D4).
    Cancel,
    /// The record shall never be written, or be known to be: `Producer::revoke` (C).
    Revoke,
    /// What is in doubt on the record's partition is given up: `Producer::abandon` (L4).
    Abandon,
}

/// What is wrong with a connection.
///
/// ```
/// use candor_sim::strategies::Wire;
/// assert_ne!(Wire::BreaksOut(1), Wire::BreaksIn(1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// It is refused.
    Refused,
    /// It breaks as soon as the socket has taken so many bytes. They arrive.
    BreaksOut(u64),
    /// It breaks as soon as the client has received so many bytes.
    BreaksIn(u64),
    /// The socket holds no more than so many bytes at a time.
    Narrow(usize),
    /// No more than so many bytes are received at a time.
    Chunked(usize),
}

/// A fault of the network.
///
/// ```
/// use candor_sim::strategies::{Wire, WireFault};
/// let second = WireFault { connection: 2, wire: Wire::Refused };
/// assert_eq!(second.connection, 2);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireFault {
    /// On the n-th connection that is opened, from 1.
    pub connection: u64,
    /// What is wrong with it.
    pub wire: Wire,
}

/// A run: what the caller wants, and what goes wrong.
///
/// ```
/// use candor_proto::Config;
/// use candor_sim::broker::Profile;
/// use candor_sim::strategies::{Plan, Wish};
/// let plan = Plan {
///     profile: Profile::V4_4,
///     config: Config::new(["broker-1:9092"]),
///     wishes: vec![Wish { after_ms: 0, partition: 0, bytes: 0, deadline_ms: 2_000, regret: None }],
///     broker_faults: vec![],
///     wire_faults: vec![],
/// };
/// assert!(format!("{plan:?}").contains("deadline_ms: 2000"));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Plan {
    /// What the brokers imitate; there are three, and every partition has three replicas.
    pub profile: Profile,
    /// The producer's configuration; it asks `broker-1:9092` first.
    pub config: Config,
    /// The records, in order.
    pub wishes: Vec<Wish>,
    /// What goes wrong in brokers.
    pub broker_faults: Vec<Fault>,
    /// What goes wrong on the way.
    pub wire_faults: Vec<WireFault>,
}

/// As a list, for people: this is what is printed of a run that fails.
impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "a run against {:?}, the producer being {:?}", self.profile, self.config)?;
        for (at, wish) in self.wishes.iter().enumerate() {
            writeln!(f, "  record {at}: {wish:?}")?;
        }
        for fault in &self.broker_faults {
            writeln!(f, "  broker: {:?} => {:?}", fault.trigger, fault.effect)?;
        }
        for fault in &self.wire_faults {
            writeln!(f, "  connection {}: {:?}", fault.connection, fault.wire)?;
        }
        Ok(())
    }
}
