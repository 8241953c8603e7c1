//! Runs a user's loop by a plan.

use std::fmt;

use candor_core::Instant;
use candor_proto::{Output, Producer};

use super::caller::Caller;
use super::plan::Plan;
use super::sockets::Sockets;
use crate::judge::{judge, slice};

/// When runs begin: 2023-11-14, in microseconds since the Unix epoch.
pub(super) const BEGIN: u64 = 1_700_000_000_000_000;

/// How long bytes take, in microseconds.
const TICK: u64 = 500;

/// How long the harness waits for the last word before it closes the producer, and for its end.
const PATIENCE: u64 = 60_000_000;
const CLOSES_WITHIN: u64 = 10_000_000;

/// More rounds than any plan takes: a loop that never rests is wrong.
const ROUNDS: usize = 200_000;

pub(super) const fn instant(micros: u64) -> Instant {
    Instant::from_micros(micros)
}

/// What a loop gets to see and to do.
///
/// ```
/// use candor_sim::strategies::Turn;
/// fn turn(turn: &mut Turn<'_>) {
///     while let Some(output) = turn.producer.poll(turn.now) {
///         turn.pass_on(output);
///     }
/// }
/// ```
#[derive(Debug)]
pub struct Turn<'h> {
    /// The producer.
    pub producer: &'h mut Producer,
    /// The sockets.
    pub sockets: &'h mut Sockets,
    /// The time.
    pub now: Instant,
    caller: &'h mut Caller,
}

impl Turn<'_> {
    /// Passes on to the caller whatever the producer says that is no order about connections.
    pub fn pass_on(&mut self, output: Output) {
        self.caller.hear(output);
        self.sockets.moved = true;
    }
}

/// A loop that moves bytes between a producer and sockets: what a user verifies.
///
/// ```
/// use candor_sim::strategies::{EventLoop, Turn};
/// struct Mine;
/// impl EventLoop for Mine {
///     fn turn(&mut self, turn: &mut Turn<'_>) {
///         let _ = turn.producer.deadline();
///     }
/// }
/// ```
pub trait EventLoop {
    /// Called whenever something may have happened: records, bytes, connections, time. Does all that
    /// can be done now, and comes back.
    fn turn(&mut self, turn: &mut Turn<'_>);
}

impl<F: FnMut(&mut Turn<'_>)> EventLoop for F {
    fn turn(&mut self, turn: &mut Turn<'_>) {
        self(turn);
    }
}

/// What came of a run.
///
/// ```
/// assert!(candor_sim::strategies::Report::default().is_clean());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// What was wrong, one line each, each followed by the part of the history that shows it.
    pub findings: Vec<String>,
    /// Everything that happened, one line each.
    pub story: Vec<String>,
}

impl Report {
    /// Nothing was wrong.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.story {
            writeln!(f, "{line}")?;
        }
        for finding in &self.findings {
            writeln!(f, "WRONG: {finding}")?;
        }
        Ok(())
    }
}

/// A run that is about to begin.
///
/// ```
/// use candor_proto::Config;
/// use candor_sim::broker::Profile;
/// use candor_sim::strategies::{Harness, Plan, Turn};
/// let plan = Plan {
///     profile: Profile::V4_4,
///     config: Config::new(["broker-1:9092"]),
///     wishes: vec![],
///     broker_faults: vec![],
///     wire_faults: vec![],
/// };
/// // Nothing is to be sent: passing on what the producer says is enough.
/// let mut least = |turn: &mut Turn<'_>| {
///     while let Some(output) = turn.producer.poll(turn.now) {
///         turn.pass_on(output);
///     }
/// };
/// let report = Harness::new(&plan).run(&mut least);
/// assert!(report.is_clean(), "{report}");
/// ```
#[derive(Debug)]
pub struct Harness<'p> {
    plan: &'p Plan,
    sockets: Sockets,
    caller: Caller,
    now: u64,
}

impl<'p> Harness<'p> {
    /// Brokers by the plan, and nothing sent yet.
    #[must_use]
    pub fn new(plan: &'p Plan) -> Self {
        Self { plan, sockets: Sockets::new(plan), caller: Caller::default(), now: BEGIN }
    }

    /// Runs a loop until every record is told of and the producer is closed, and judges what was
    /// said.
    #[must_use]
    pub fn run(mut self, event_loop: &mut impl EventLoop) -> Report {
        match Producer::new(&self.plan.config, 1, instant(BEGIN)) {
            Ok(mut producer) => self.drive(&mut producer, event_loop),
            Err(error) => self.caller.complaints.push(format!("the configuration: {error}")),
        }
        self.sockets.end();
        self.report()
    }

    fn drive(&mut self, producer: &mut Producer, event_loop: &mut impl EventLoop) {
        let mut wishes = self.plan.wishes.iter().peekable();
        let mut next = BEGIN;
        let mut closes: Option<u64> = None;
        let mut patience = BEGIN + PATIENCE;
        for _ in 0..ROUNDS {
            (self.caller.now, self.sockets.now) = (self.now, self.now);
            while let Some(wish) = wishes.next_if(|wish| next + wish.after_ms * 1_000 <= self.now) {
                next += wish.after_ms * 1_000;
                self.caller.send(producer, wish);
                patience = patience.max(self.now + wish.deadline_ms * 1_000 + PATIENCE);
            }
            self.caller.regret(producer);
            let (sockets, caller) = (&mut self.sockets, &mut self.caller);
            event_loop.turn(&mut Turn { producer, sockets, now: instant(self.now), caller });
            self.sockets.flow();
            if self.caller.closed {
                return;
            }
            if std::mem::take(&mut self.sockets.moved) {
                self.now += TICK;
                continue;
            }
            let done = wishes.peek().is_none() && self.caller.is_content();
            if closes.is_none() && (done || self.now >= patience) {
                self.caller.close(producer, self.now + CLOSES_WITHIN);
                closes = Some(self.now + CLOSES_WITHIN + TICK);
                continue;
            }
            if closes.is_some_and(|limit| self.now > limit) {
                return self.caller.complaints.push("the producer is never closed".to_owned());
            }
            let wish = wishes.peek().map(|wish| next + wish.after_ms * 1_000);
            let regret = self.caller.next_regret();
            let waits = [wish, regret, closes.or(Some(patience)), self.sockets.deadline()];
            let producer = producer.deadline().map(|deadline| deadline.at.as_micros());
            let wake = waits.into_iter().chain([producer]).flatten().min();
            // What is overdue although the loop had its turn is no reason to stand still.
            self.now = wake.unwrap_or(self.now).max(self.now + 1);
        }
        self.caller.complaints.push("the loop never comes to rest".to_owned());
    }

    fn report(self) -> Report {
        let history = self.caller.history(&self.sockets);
        let mut findings = self.caller.complaints.clone();
        for finding in &judge(&history).anomalies {
            let lines = slice(&history, finding);
            findings.push(format!("{finding}\n    {}", lines.join("\n    ")));
        }
        let mut story = self.caller.story;
        story.extend(self.sockets.story);
        story.sort_by_key(|(at, _)| *at);
        let line = |(at, text): (u64, String)| {
            let since = at.saturating_sub(BEGIN);
            format!("{:>6}.{:03} ms  {text}", since / 1_000, since % 1_000)
        };
        Report { findings, story: story.into_iter().map(line).collect() }
    }
}
