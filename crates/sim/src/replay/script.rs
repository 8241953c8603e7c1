//! What a scenario consists of.

use std::collections::BTreeMap;

use candor_core::Span;
use candor_proto::Config;

use super::words::Place;
use crate::broker::Profile;

/// One scenario: a cluster, a producer, and what happens to them.
///
/// ```
/// use candor_sim::replay::Scenario;
/// let scenario = Scenario::parse("title the plainest\nsend r1\nout A [0]\nin A ok 100\nexpect delivered r1 @100\n");
/// assert_eq!(scenario.unwrap().title(), "the plainest");
/// ```
#[derive(Clone, Debug)]
pub struct Scenario {
    pub(super) title: String,
    pub(super) about: Vec<String>,
    pub(super) text: String,
    pub(super) setup: Setup,
    pub(super) steps: Vec<Line>,
}

impl Scenario {
    /// What it is called.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The same, its brokers being of another version, if they are modelled and the scenario names
    /// none itself. Default: 4.4.
    ///
    /// ```
    /// use candor_sim::{broker::Profile, replay::Scenario};
    /// let scenario = Scenario::parse("title t\nmodel A\nsend r1\nout A [0] version 8\nin A stored\nexpect delivered r1 @0\n");
    /// assert_eq!(scenario.unwrap().on(Profile::V2_4).run("t").failure, None);
    /// ```
    #[must_use]
    pub fn on(mut self, version: Profile) -> Self {
        if let Brokers::Modelled { profile, .. } = &mut self.setup.brokers {
            *profile = profile.or(Some(version));
        }
        self
    }

    /// Whether brokers are modelled, and the log is read back and judged.
    #[must_use]
    pub const fn is_modelled(&self) -> bool {
        matches!(self.setup.brokers, Brokers::Modelled { .. })
    }
}

/// A step and its line, from 1.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) number: usize,
    pub(super) step: Step,
}

/// The world before the first step.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub(super) names: Vec<String>,
    pub(super) seeds: Vec<String>,
    pub(super) brokers: Brokers,
    pub(super) topics: Vec<TopicPlan>,
    pub(super) config: Config,
    /// What InitProducerId gives at first.
    pub(super) identity: (i64, i16),
    /// Highest versions by API key, where they are not ours.
    pub(super) versions: BTreeMap<i16, i16>,
    pub(super) near_the_end: NearTheEnd,
}

/// Which numbers begin shortly before their end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NearTheEnd {
    Nothing,
    Sequences,
    Epochs,
}

/// Who stands behind the names of brokers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Brokers {
    /// The scenario itself answers.
    Scripted,
    /// The model cluster does, where the scenario lets it.
    Modelled { profile: Option<Profile>, min_insync: usize },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TopicPlan {
    pub(super) name: String,
    pub(super) partitions: usize,
    /// By name, one after the other.
    pub(super) leaders: Vec<String>,
}

/// What is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Send {
    pub(super) names: Vec<String>,
    pub(super) topic: String,
    pub(super) partition: Option<u32>,
    pub(super) key: Option<String>,
    pub(super) headers: Vec<(String, Option<String>)>,
    pub(super) timestamp: Option<i64>,
    pub(super) deadline: Option<Span>,
    pub(super) body: Body,
    pub(super) refused: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// The record's name, filled up to so many bytes.
    Named(usize),
    Empty,
    Null,
}

/// One offer that must have been made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Out {
    pub(super) broker: String,
    pub(super) place: Place,
    pub(super) range: (i32, i32),
    pub(super) epoch: Option<i16>,
    pub(super) pid: Option<i64>,
    pub(super) names: Option<Vec<String>>,
    pub(super) version: Option<i16>,
    pub(super) at_most: Option<usize>,
}

/// What an answer says of one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// `None`: all partitions of the request.
    pub(super) place: Option<Place>,
    pub(super) code: i16,
    pub(super) offset: i64,
    pub(super) log_start: i64,
    pub(super) records: Vec<(i32, Option<String>)>,
    pub(super) hint: Option<(String, i32)>,
}

/// An answer to the oldest open Produce request of a broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) broker: String,
    /// `None`: what the model answers.
    pub(super) parts: Option<Vec<Part>>,
    pub(super) throttle: Span,
}

/// How much of a connection's bytes the driver vouches for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vouched {
    WhatWasTaken,
    Nothing,
}

/// What becomes of a broker's connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    Up,
    Down,
    Hung,
    Mute,
    /// The transport takes only so many bytes more.
    Stuck(u64),
}

/// What brokers say from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Meta {
    Leader { place: Place, broker: Option<String>, epoch: Option<i32> },
    Missing { topic: String },
    Refused { topic: String, code: i16 },
    Back { topic: String },
    Renewed { topic: String },
    Grown { topic: String, partitions: usize },
    Rebootstrap,
    Usual,
}

/// What befalls the model cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Blow {
    Move { place: Place, broker: String },
    Forget { place: Place },
    Purge { place: Place, before: i64 },
    Recreate { topic: String },
    Restart { broker: String, crash: bool },
    Stop { broker: String, crash: bool },
    Start { broker: String },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Tick {
    For(Span),
    Next,
    UntilOut(String),
    UntilTold(Vec<String>),
}

/// One piece of a frame that is written by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Byte(u8),
    Correlation,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    Delivered(Spot),
    NotDelivered(Option<String>),
    Unknown,
    Never(Option<String>),
    Nothing,
}

/// An offset that is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spot {
    Anywhere,
    At(i64),
    Untold,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Expect {
    Verdict {
        names: Vec<String>,
        said: Said,
    },
    Resolution {
        names: Vec<String>,
        said: Said,
    },
    Notice(String),
    NoNotice(Option<String>),
    NoBump(Place),
    Flushed(String),
    Flushing(String),
    Closed(bool),
    Log {
        place: Place,
        names: Vec<String>,
    },
    /// `None`: of anybody.
    Asked {
        broker: Option<String>,
        is: bool,
    },
    Dialled {
        broker: String,
        is: bool,
    },
    AskedAbout {
        topic: String,
        is: bool,
    },
    IdAsked {
        broker: String,
        is: bool,
    },
    RoomBack,
    MemoryBelow(usize),
    Within(Span),
    Spread {
        topic: String,
        within: usize,
    },
}

/// What must never be offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Never {
    pub(super) line: usize,
    pub(super) broker: Option<String>,
    pub(super) place: Option<Place>,
    pub(super) range: Option<(i32, i32)>,
    pub(super) epoch: Option<i16>,
    pub(super) names: Option<Vec<String>>,
    pub(super) bump: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Send(Send),
    Cancel(Vec<String>),
    Flush(String),
    Close(Span),
    Out(Out),
    NoOut(Option<String>),
    Answer(Answer),
    Append { broker: String },
    Frame { broker: String, pieces: Vec<Piece> },
    End { broker: String, stored: bool, vouched: Vouched },
    Condition { broker: String, condition: Condition },
    Meta(Meta),
    Id(Result<(i64, i16), i16>),
    Blow(Blow),
    Auto(bool),
    Tick(Tick),
    Expect(Expect),
    Never(Never),
}
