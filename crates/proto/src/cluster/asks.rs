//! When metadata is asked for, and for which topics. One request at a time; what is new is asked for
//! at once, what was asked for before only after a wait (rules L1, L3).

use std::collections::BTreeSet;

use candor_core::rules::Rules;
use candor_core::{Instant, RouteId, Span};

use super::Endpoint;
use crate::jitter::{backoff, mix};
use crate::router::TopicKey;

/// A metadata request on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ask {
    /// Its running number, from 1.
    pub(crate) number: u64,
    /// The topics in it.
    pub(crate) topics: BTreeSet<TopicKey>,
}

/// What is to be asked, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asks {
    /// Never asked for, or to be asked of another broker.
    fresh: BTreeSet<TopicKey>,
    /// Asked for before, without the answer that is needed.
    again: BTreeSet<TopicKey>,
    /// The cluster itself, without topics.
    brokers: bool,
    not_before: Instant,
    failures: u32,
    open: Option<OpenAsk>,
    sent: u64,
    /// Another broker than this one, if possible.
    avoid: Option<Endpoint>,
    opinion: Opinion,
    waits: Waits,
}

/// A second opinion is asked for at once, a third one only after a wait: brokers that contradict each
/// other could go on for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Opinion {
    /// The next request asks for one.
    Wanted,
    /// This request was the last to do so; 0: none was.
    Asked(u64),
}

/// The newest request without an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
struct OpenAsk {
    conn: RouteId,
    topics: BTreeSet<TopicKey>,
    /// When another broker is asked the same (L1: no broker's silence holds up the others).
    patience_ends: Instant,
}

/// The waits between requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waits {
    pub(crate) first: Span,
    pub(crate) longest: Span,
    pub(crate) seed: u64,
}

impl Asks {
    pub(crate) const fn new(waits: Waits) -> Self {
        Self {
            fresh: BTreeSet::new(),
            again: BTreeSet::new(),
            brokers: false,
            not_before: Instant::EPOCH,
            failures: 0,
            open: None,
            sent: 0,
            avoid: None,
            opinion: Opinion::Asked(0),
            waits,
        }
    }

    /// Asks for a topic as soon as possible.
    pub(crate) fn at_once(&mut self, topic: TopicKey) {
        self.again.remove(&topic);
        self.fresh.insert(topic);
    }

    /// One answer was not enough: asks another broker at once, unless that answer, to the request of
    /// this number, was a second opinion itself.
    pub(crate) fn elsewhere(&mut self, topic: TopicKey, answered: u64) {
        if self.opinion == Opinion::Asked(answered) {
            return self.again(topic);
        }
        self.opinion = Opinion::Wanted;
        self.at_once(topic);
    }

    /// Asks for a topic when the wait is over.
    pub(crate) fn again(&mut self, topic: TopicKey) {
        if !self.fresh.contains(&topic) {
            self.again.insert(topic);
        }
    }

    /// Asks for the brokers when the wait is over.
    pub(crate) const fn brokers(&mut self) {
        self.brokers = true;
    }

    /// The next request shall go to another broker.
    pub(crate) const fn avoid(&mut self, who: Option<Endpoint>) {
        self.avoid = who;
    }

    pub(crate) const fn avoided(&self) -> Option<Endpoint> {
        self.avoid
    }

    /// The longest wait between two requests.
    pub(crate) const fn longest_wait(&self) -> Span {
        self.waits.longest
    }

    /// How many requests were sent: a question asked now waits for later ones.
    pub(crate) const fn sent(&self) -> u64 {
        self.sent
    }

    /// Whether a request is to be sent now.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.deadline().is_some_and(|at| at <= now)
    }

    /// The connection that owes an answer.
    pub(crate) fn asked(&self) -> Option<RouteId> {
        self.open.as_ref().map(|open| open.conn)
    }

    /// There is nobody else to ask: waits on.
    pub(crate) fn wait_on(&mut self, now: Instant) {
        let patience = self.patience();
        if let Some(open) = &mut self.open {
            open.patience_ends = now + patience;
        }
    }

    const fn patience(&self) -> Span {
        self.waits.longest.times(2)
    }

    /// Nobody needs an answer: what failed so far, or never got as far as that since `nobody_works`,
    /// is not tried again until somebody does.
    pub(crate) fn rest(&mut self, nobody_works: bool) {
        if (self.failures > 0 || nobody_works) && self.open.is_none() {
            self.fresh.clear();
            self.again.clear();
            self.brokers = false;
        }
    }

    /// When the next request is to be sent, if nothing else happens.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.open.as_ref().map_or_else(|| self.due_at(), |open| Some(open.patience_ends))
    }

    fn due_at(&self) -> Option<Instant> {
        if !self.fresh.is_empty() {
            Some(Instant::EPOCH)
        } else if self.brokers || !self.again.is_empty() {
            Some(self.not_before)
        } else {
            None
        }
    }

    /// The request goes out over this connection, with everything that is wanted.
    pub(crate) fn start(&mut self, now: Instant, conn: RouteId) -> Ask {
        self.sent += 1;
        if self.opinion == Opinion::Wanted {
            self.opinion = Opinion::Asked(self.sent);
        }
        self.brokers = false;
        self.avoid = None;
        let mut topics = core::mem::take(&mut self.fresh);
        topics.append(&mut self.again);
        if let Some(mut unanswered) = self.open.take() {
            topics.append(&mut unanswered.topics);
        }
        let patience_ends = now + self.patience();
        self.open = Some(OpenAsk { conn, topics: topics.clone(), patience_ends });
        Ask { number: self.sent, topics }
    }

    /// The answer came, whatever it said. What is still wanted is put in anew by the caller.
    pub(crate) fn answered<R: Rules>(&mut self, now: Instant, number: u64, satisfied: bool) {
        self.over(number);
        self.failures = if satisfied { 0 } else { self.failures.saturating_add(1) };
        self.wait::<R>(now);
    }

    /// The connection with the request is over; its topics are wanted again.
    pub(crate) fn lost<R: Rules>(&mut self, now: Instant, ask: Ask) {
        self.over(ask.number);
        self.failures = self.failures.saturating_add(1);
        self.brokers = true;
        self.again.extend(ask.topics);
        self.wait::<R>(now);
    }

    /// Requests that were overtaken do not hold up anything.
    fn over(&mut self, number: u64) {
        if number == self.sent {
            self.open = None;
        }
    }

    fn wait<R: Rules>(&mut self, now: Instant) {
        let Waits { first, longest, seed } = self.waits;
        self.not_before = now + backoff::<R>(first, longest, self.failures, mix(seed, self.sent));
    }
}

#[cfg(test)]
mod tests {
    use candor_core::rules::Honest;

    use super::*;

    const A: TopicKey = TopicKey(0);
    const B: TopicKey = TopicKey(1);

    fn asks() -> Asks {
        Asks::new(Waits { first: Span::from_millis(100), longest: Span::from_secs(1), seed: 5 })
    }

    #[test]
    fn new_topics_never_wait_and_old_ones_do() {
        let now = Instant::from_millis(10_000);
        let mut asks = asks();
        assert!(!asks.is_due(now) && asks.deadline().is_none());
        asks.at_once(A);
        assert!(asks.is_due(now));
        assert_eq!(asks.start(now, RouteId(1)).topics, BTreeSet::from([A]));
        asks.at_once(B);
        assert!(!asks.is_due(now), "one request at a time");
        asks.answered::<Honest>(now, 1, false);
        asks.again(A);
        assert!(asks.is_due(now), "B is new");
        assert_eq!(asks.start(now, RouteId(1)).topics, BTreeSet::from([A, B]));
        asks.answered::<Honest>(now, 2, false);
        asks.again(A);
        assert!(!asks.is_due(now));
        assert!(asks.is_due(asks.deadline().unwrap()));
    }

    #[test]
    fn a_silent_broker_is_overtaken_and_may_still_answer() {
        let now = Instant::from_millis(10_000);
        let mut asks = asks();
        asks.at_once(A);
        asks.start(now, RouteId(1));
        let patience_ends = asks.deadline().unwrap();
        assert!(!asks.is_due(now) && asks.is_due(patience_ends));
        let second = asks.start(patience_ends, RouteId(2));
        assert_eq!((second.number, second.topics), (2, BTreeSet::from([A])));
        asks.answered::<Honest>(patience_ends, 1, true);
        assert_eq!(asks.asked(), Some(RouteId(2)));
        asks.answered::<Honest>(patience_ends, 2, true);
        assert_eq!((asks.asked(), asks.deadline()), (None, None));
    }

    #[test]
    fn a_lost_request_is_made_again_after_growing_waits() {
        let mut asks = asks();
        asks.at_once(A);
        let mut waits = Vec::new();
        for second in 1..7 {
            let now = Instant::from_millis(second * 10_000);
            assert!(asks.is_due(now));
            let ask = asks.start(now, RouteId(1));
            assert_eq!((ask.number, ask.topics.len()), (second, 1));
            asks.lost::<Honest>(now, ask);
            waits.push(asks.deadline().unwrap().since(now).as_millis());
        }
        assert!(waits[0] <= 120 && waits[5] >= 800 && waits[5] <= 1000, "{waits:?}");
    }
}
