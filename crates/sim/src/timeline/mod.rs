//! One page on what happened: lanes, batches, attempts, answers and verdicts over time.
//!
//! A [`Page`] is given a neutral list of [`Event`]s and becomes one self-contained HTML file:
//! styles and drawing inline, nothing loaded from elsewhere, no scripts. Everything that comes from
//! records, topics or scenarios is escaped.
//!
//! ```
//! use candor_sim::timeline::{Event, Offer, Page, What, Word};
//! let mut page = Page::new("a lost answer");
//! page.tell(Event::at(0, What::Sent { lane: "t-0".into(), records: "r1".into() }));
//! let offer = Offer {
//!     attempt: 1,
//!     lane: "t-0".into(),
//!     broker: "A".into(),
//!     identity: "7/0".into(),
//!     first: 0,
//!     last: 0,
//!     records: "r1".into(),
//! };
//! page.tell(Event::at(0, What::Offered(offer)));
//! page.tell(Event::at(1_000, What::Answered { attempt: 1, code: 0, offset: Some(100) }));
//! let (lane, records) = ("t-0".into(), "r1".into());
//! page.tell(Event::at(1_000, What::Said { lane, records, word: Word::Delivered, text: "@100".into() }));
//! assert!(page.render().contains("@100"));
//! ```

mod chart;
mod history;
mod layout;
mod page;
mod style;
mod text;

pub use page::{Ending, Page, Scale, Source};

/// Something that happened.
///
/// ```
/// use candor_sim::timeline::{Event, What};
/// let event = Event::at(5, What::Happened("B leads t-0".into())).on_line(7);
/// assert_eq!((event.at, event.line), (5, Some(7)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, in microseconds since the beginning.
    pub at: u64,
    /// The line of the scenario that it belongs to, from 1.
    pub line: Option<usize>,
    /// What.
    pub what: What,
}

impl Event {
    /// At so many microseconds since the beginning.
    #[must_use]
    pub const fn at(at: u64, what: What) -> Self {
        Self { at, line: None, what }
    }

    /// It belongs to this line of the scenario, from 1.
    #[must_use]
    pub const fn on_line(mut self, line: usize) -> Self {
        self.line = Some(line);
        self
    }
}

/// What happened. Lanes are named as people name partitions, `t-0`; records as the source names
/// them, several in one text.
///
/// ```
/// use candor_sim::timeline::What;
/// assert_ne!(What::Happened("x".into()), What::Noticed { lane: None, text: "x".into() });
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// The caller sent records.
    Sent {
        /// Where to.
        lane: String,
        /// Which.
        records: String,
    },
    /// A batch was offered to a broker.
    Offered(Offer),
    /// An attempt was answered.
    Answered {
        /// Which.
        attempt: u64,
        /// Kafka's error code.
        code: i16,
        /// The base offset that the answer names.
        offset: Option<i64>,
    },
    /// The connection of an attempt ended without an answer.
    Ended {
        /// Which attempt.
        attempt: u64,
        /// Whether the broker cannot have got all of it.
        partly: bool,
    },
    /// A verdict.
    Said {
        /// Of which lane.
        lane: String,
        /// Which records.
        records: String,
        /// The verdict.
        word: Word,
        /// What is to be said beside it: an offset, a proof.
        text: String,
    },
    /// What became of records that were unknown.
    Resolved {
        /// Of which lane.
        lane: String,
        /// Which records.
        records: String,
        /// The resolution; `Unknown` means that nobody will ever know.
        word: Word,
        /// What is to be said beside it: an offset, a reason.
        text: String,
    },
    /// The producer tells people something.
    Noticed {
        /// Of one lane, or of all.
        lane: Option<String>,
        /// What.
        text: String,
    },
    /// Something befell cluster, network or caller.
    Happened(String),
}

/// One attempt to have a batch written.
///
/// ```
/// let offer = candor_sim::timeline::Offer::default();
/// assert_eq!(offer.attempt, 0);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// The attempt's number; unique on a page.
    pub attempt: u64,
    /// Of which lane.
    pub lane: String,
    /// To which broker.
    pub broker: String,
    /// Producer id and epoch: `7/0`.
    pub identity: String,
    /// First sequence.
    pub first: i32,
    /// Last sequence.
    pub last: i32,
    /// The records in it.
    pub records: String,
}

/// How records ended.
///
/// ```
/// assert_ne!(candor_sim::timeline::Word::Delivered, candor_sim::timeline::Word::Unknown);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// Written.
    Delivered,
    /// Certainly not written.
    NotDelivered,
    /// Perhaps written.
    Unknown,
}
