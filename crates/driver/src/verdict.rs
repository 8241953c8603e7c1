//! What applications are told of a record: one verdict, and after `Unknown` one resolution.

use std::fmt;
use std::sync::Arc;

use candor_core::{Doubt, NeverReason, Proof, Ticket};
use candor_proto::{ErrorCode, WhyRefused};

use crate::places::Place;
use crate::resolved::Resolved;
use crate::shared::Shared;

/// The one verdict on a record, given no later than its deadline.
///
/// ```
/// # use candor_driver::{NotDelivered, Verdict, WhyNot, WhyRefused};
/// # let no = NotDelivered { topic: "orders".into(), partition: None, why: WhyNot::NoRoom };
/// # let verdict = Verdict::NotDelivered(no);
/// match verdict {
///     Verdict::Delivered(at) => println!("{}-{}@{:?}", at.topic, at.partition, at.offset),
///     Verdict::NotDelivered(no) => eprintln!("safe to send again: {no}"),
///     Verdict::Unknown(u) => eprintln!("may be written: {u}"),
/// }
/// ```
#[must_use = "a record may not have been delivered: look at its verdict"]
#[derive(Debug)]
pub enum Verdict {
    /// In the log, replicated, once.
    Delivered(At),
    /// Not in the log, and it never will be: safe to send again.
    NotDelivered(NotDelivered),
    /// May be in the log, now or later: not safe to send again. [`Unknown::resolved`] tells what
    /// became of it.
    Unknown(Unknown),
}

impl Verdict {
    /// For `?`: everything but `Delivered` is an error.
    ///
    /// # Errors
    ///
    /// [`Undelivered`], which tells whether it is safe to send the record again.
    ///
    /// ```
    /// # use candor_driver::{NotDelivered, Undelivered, Verdict, WhyNot};
    /// # let no = NotDelivered { topic: "orders".into(), partition: None, why: WhyNot::NoRoom };
    /// let error = Verdict::NotDelivered(no).into_result().unwrap_err();
    /// assert!(error.to_string().starts_with("safe to send again: orders"));
    /// ```
    pub fn into_result(self) -> Result<At, Undelivered> {
        match self {
            Self::Delivered(at) => Ok(at),
            Self::NotDelivered(no) => Err(Undelivered::NotDelivered(no)),
            Self::Unknown(unknown) => Err(Undelivered::Unknown(unknown)),
        }
    }

    /// Whether it is `Delivered`.
    pub const fn is_delivered(&self) -> bool {
        matches!(self, Self::Delivered(_))
    }
}

/// Where a record is.
///
/// ```
/// let at = candor_driver::At { topic: "orders".into(), partition: 3, offset: Some(41) };
/// assert_eq!(at.to_string(), "orders-3@41");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct At {
    /// The topic.
    pub topic: Arc<str>,
    /// The partition.
    pub partition: u32,
    /// The offset; `None` where it was concluded from other answers that the record is in the log.
    pub offset: Option<i64>,
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)?;
        self.offset.map_or(Ok(()), |offset| write!(f, "@{offset}"))
    }
}

/// A record that certainly is not in the log, and why that is certain.
///
/// ```
/// use candor_driver::{NotDelivered, Proof, WhyNot};
/// let why = WhyNot::Proven(Proof::Rejected { code: 87 });
/// let no = NotDelivered { topic: "orders".into(), partition: Some(3), why };
/// assert_eq!(no.to_string(), "orders-3: the broker rejected it: INVALID_RECORD (87)");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NotDelivered {
    /// The topic it was for.
    pub topic: Arc<str>,
    /// The partition; `None` if it never got one.
    pub partition: Option<u32>,
    /// Why.
    pub why: WhyNot,
}

impl fmt::Display for NotDelivered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.partition {
            Some(partition) => write!(f, "{}-{partition}: {}", self.topic, self.why),
            None => write!(f, "{}: {}", self.topic, self.why),
        }
    }
}

impl std::error::Error for NotDelivered {}

/// Why a record certainly is not in the log.
///
/// ```
/// use candor_driver::{Proof, WhyNot};
/// assert!(WhyNot::NoRoom.to_string().contains("room"));
/// let why = WhyNot::Proven(Proof::NoPartition { partitions: 3 });
/// assert!(why.to_string().ends_with("its topic has 3 partitions, counted from 0"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WhyNot {
    /// It was accepted, and the protocol proves it.
    Proven(Proof),
    /// It was not accepted.
    Refused(WhyRefused),
    /// There was no room for it before its deadline, or before the producer closed.
    NoRoom,
    /// It was cancelled before it was accepted.
    Cancelled,
    /// The driver future ended before it was accepted.
    DriverGone,
}

impl fmt::Display for WhyNot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Proven(proof) => fmt_proof(*proof, f),
            Self::Refused(why) => why.fmt(f),
            Self::NoRoom => f.write_str("there was no room in memory until its deadline"),
            Self::Cancelled => f.write_str("it was cancelled before it was accepted"),
            Self::DriverGone => f.write_str("the driver future or its runtime ended"),
        }
    }
}

fn fmt_proof(proof: Proof, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match proof {
        Proof::NeverOffered => f.write_str(
            "its deadline came, or its partition or producer ended, \
             before it was offered to a broker",
        ),
        Proof::NoPartition { partitions } => write!(
            f,
            "its deadline came, or its producer ended, and its topic has {partitions} partitions, \
             counted from 0"
        ),
        Proof::TakenBack => f.write_str("it was taken back before any broker was offered it"),
        Proof::Refused => f.write_str("brokers refused every attempt until its deadline"),
        Proof::Rejected { code } => write!(f, "the broker rejected it: {}", ErrorCode(code)),
        Proof::Unreachable => f.write_str("it stands behind a batch that nothing will ever fill"),
        Proof::Overtaken => f.write_str("the broker wrote what stands behind it, and refused it"),
        Proof::SlotTaken => f.write_str("other records took its place in the sequence"),
    }
}

/// A record that may be in the log. What a scan of the log must look for is in it.
///
/// Dropping it loses the resolution, nothing else.
///
/// ```no_run
/// # async fn example(u: candor_driver::Unknown) {
/// println!("{u}");
/// match u.resolved().await {
///     candor_driver::Resolution::Delivered(at) => println!("it is at {at}"),
///     candor_driver::Resolution::NotDelivered(no) => println!("safe to send again: {no}"),
///     candor_driver::Resolution::Never(never) => println!("look into the log: {never}"),
/// }
/// # }
/// ```
pub struct Unknown(Box<Held>);

/// The parts of an [`Unknown`].
struct Held {
    shared: Arc<Shared>,
    ticket: Ticket,
    place: Place,
    doubt: Option<Doubt>,
    over: bool,
}

impl Unknown {
    pub(crate) fn new(
        shared: Arc<Shared>,
        ticket: Ticket,
        place: Place,
        doubt: Option<Doubt>,
    ) -> Self {
        Self(Box::new(Held { shared, ticket, place, doubt, over: false }))
    }

    /// The topic; empty if the driver ended without telling.
    pub fn topic(&self) -> &str {
        &self.0.place.0
    }

    /// The partition; `None` if the driver ended without telling.
    pub fn partition(&self) -> Option<u32> {
        self.0.place.1
    }

    /// The record's name.
    pub fn ticket(&self) -> Ticket {
        self.0.ticket
    }

    /// Producer id, epoch and sequences to look for in the log; `None` if the driver ended without
    /// telling.
    pub fn facts(&self) -> Option<Doubt> {
        self.0.doubt
    }

    /// What became of it. Always ends: at the latest when the producer closes.
    pub fn resolved(self) -> Resolved {
        Resolved::new(self)
    }

    /// As [`resolved`](Self::resolved), and other records of the partition are offered in its place:
    /// it shall never be written, or be known to be. See [`Handle::revoke`](crate::Handle::revoke).
    ///
    /// ```no_run
    /// # async fn example(u: candor_driver::Unknown) {
    /// println!("{}", u.revoke().await);
    /// # }
    /// ```
    pub fn revoke(self) -> Resolved {
        let ticket = self.0.ticket;
        // What is resolved already stays so.
        let _ended = self.0.shared.enter(|state, now| state.machine.revoke(now, ticket));
        Resolved::new(self)
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.0.shared
    }

    pub(crate) fn place(&self) -> Place {
        self.0.place.clone()
    }

    /// Its resolution was claimed.
    pub(crate) fn settle(&mut self) {
        self.0.over = true;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if !self.over {
            self.shared.forget(self.ticket);
        }
    }
}

impl fmt::Debug for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unknown")
            .field("place", &self.0.place)
            .field("ticket", &self.0.ticket)
            .field("facts", &self.0.doubt)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt_place(&self.0.place, f)?;
        f.write_str("it may be in the log, now or later")?;
        fmt_facts(self.0.doubt, f)
    }
}

fn fmt_place(place: &Place, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match place.1 {
        Some(partition) => write!(f, "{}-{partition}: ", place.0),
        None if place.0.is_empty() => Ok(()),
        None => write!(f, "{}: ", place.0),
    }
}

fn fmt_facts(doubt: Option<Doubt>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Some(Doubt { identity, first, index, .. }) = doubt else { return Ok(()) };
    let (id, epoch) = (identity.id.get(), identity.epoch.get());
    write!(f, " (producer id {id}, epoch {epoch}, sequence {})", first.after(index).get())
}

/// What became of a record whose verdict was `Unknown`.
///
/// ```
/// # use candor_driver::{At, Resolution};
/// let at = At { topic: "orders".into(), partition: 3, offset: Some(41) };
/// assert_eq!(Resolution::Delivered(at).to_string(), "delivered: orders-3@41");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// It is in the log, once.
    Delivered(At),
    /// It is not, and never will be: safe to send again.
    NotDelivered(NotDelivered),
    /// Nobody will find out by producing: only the log can tell.
    Never(Never),
}

impl fmt::Display for Resolution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Delivered(at) => write!(f, "delivered: {at}"),
            Self::NotDelivered(no) => write!(f, "safe to send again: {no}"),
            Self::Never(never) => never.fmt(f),
        }
    }
}

/// An `Unknown` that producing cannot resolve, with the facts to look for in the log.
///
/// ```
/// # use candor_driver::{Never, NeverReason};
/// let never =
///     Never { topic: "t".into(), partition: Some(0), reason: NeverReason::Closed, facts: None };
/// assert_eq!(never.to_string(), "t-0: the producer was closed before it found out");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Never {
    /// The topic; empty if the driver ended without telling.
    pub topic: Arc<str>,
    /// The partition; `None` if the driver ended without telling.
    pub partition: Option<u32>,
    /// Why nobody will find out.
    pub reason: NeverReason,
    /// Producer id, epoch and sequences to look for; `None` if the driver ended without telling.
    pub facts: Option<Doubt>,
}

impl fmt::Display for Never {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt_place(&(Arc::clone(&self.topic), self.partition), f)?;
        f.write_str(match self.reason {
            NeverReason::Abandoned => "it was given up",
            NeverReason::StateLost => "the broker lost its memory of this producer",
            NeverReason::Expired => "the broker may have forgotten this producer",
            NeverReason::TopicRecreated => "the topic was deleted and made anew",
            NeverReason::MemoryPressure => "memory was needed for other records",
            NeverReason::Refused => "the broker refuses to look at it again",
            NeverReason::Closed => "the producer was closed before it found out",
        })?;
        fmt_facts(self.facts, f)
    }
}

/// A record without `Delivered`, as an error.
///
/// ```no_run
/// # async fn example(verdict: candor_driver::Verdict) -> Result<(), candor_driver::Undelivered> {
/// let at = verdict.into_result()?;
/// println!("{at}");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub enum Undelivered {
    /// Safe to send again.
    NotDelivered(NotDelivered),
    /// Not safe to send again before it is resolved.
    Unknown(Unknown),
}

impl fmt::Display for Undelivered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotDelivered(no) => write!(f, "safe to send again: {no}"),
            Self::Unknown(unknown) => write!(f, "not safe to send again yet: {unknown}"),
        }
    }
}

impl std::error::Error for Undelivered {}
