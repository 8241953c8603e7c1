//! One connection to one broker: greeting, pipelining, framing, timeouts, throttling.
//!
//! `Connecting -> Greeting -> Ready -> (Draining) -> Closing -> over`. Nothing is sent before the
//! greeting is answered; while draining nothing new is; `Closing` waits for the driver's word on how
//! much was handed over, and hears nothing else.

mod outgoing;
mod versions;

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use candor_core::rules::Rules;
use candor_core::{AttemptId, Deadline, HandedOver, Instant, RouteId, Span, Wakeup};
use candor_wire::{Api, ErrorCode, NodeId, RequestHeader, TopicId};

pub(crate) use outgoing::Outgoing;
pub(crate) use versions::Versions;

use crate::address::Address;
use crate::cluster::{Ask, Endpoint};
use crate::fault::Fault;
use crate::lanes::LaneKey;
use crate::router::TopicKey;

/// A broker is not obeyed for longer when it asks for silence: the field has room for 24 days, in
/// which one wrong answer would have all that is open on the connection wait for ever. Quotas ask for
/// seconds. Longer than the idle timeout is by default, so that a connection with nothing open on it
/// is left in order, instead of being spoken to before its time.
const LONGEST_THROTTLE: Span = Span::from_secs(600);

/// A connection that is not there by then is not waited for alone: another broker is dialled beside
/// it, if any broker will do. Above what a connection over a long way takes, far below deadlines and
/// `connect_timeout`.
const HEAD_START: Span = Span::from_millis(500);

/// What connections have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    pub(crate) client_id: String,
    pub(crate) request_timeout: Span,
    pub(crate) connect_timeout: Span,
    pub(crate) idle_timeout: Span,
    pub(crate) longest_redial: Span,
    pub(crate) max_response: usize,
    pub(crate) max_in_flight: usize,
    pub(crate) write_window: usize,
}

/// One partition of a Produce request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) lane: LaneKey,
    pub(crate) attempt: AttemptId,
    pub(crate) topic: TopicKey,
    /// The id that stands in the request, if topics go by id in it.
    pub(crate) topic_id: Option<TopicId>,
    pub(crate) partition: i32,
}

/// A request, as far as its answer needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    Greeting,
    Metadata(Ask),
    ProducerId,
    Produce(Vec<Entry>),
}

impl Request {
    const fn api(&self) -> Api {
        match self {
            Self::Greeting => Api::ApiVersions,
            Self::Metadata(_) => Api::Metadata,
            Self::ProducerId => Api::InitProducerId,
            Self::Produce(_) => Api::Produce,
        }
    }
}

/// A request without an answer yet.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Open {
    request: Request,
    correlation: i32,
    version: i16,
    /// Position of the end of its frame in the outgoing stream.
    end: u64,
    expires: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Connecting { until: Instant },
    Greeting { until: Instant },
    Ready { versions: Versions, since: Instant },
    Draining { since: Instant },
    Closing,
}

/// An answer, matched to its request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The greeting is over: the broker is ready.
    Greeted,
    /// The broker does not know our version; another greeting is on its way.
    GreetAgain,
    /// Any other answer.
    Body(Body),
}

/// The body of an answer and the request that it answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Body {
    pub(crate) request: Request,
    pub(crate) version: i16,
    pub(crate) bytes: Bytes,
}

/// What time has done to a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expiry {
    /// It is to be given up.
    Fault(Fault),
    /// Nothing was said for a long time.
    Idle,
}

/// Whom a greeting is meant for (KIP-1242).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Expected<'a> {
    pub(crate) cluster_id: &'a str,
    pub(crate) node: NodeId,
}

/// One connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Connection {
    pub(crate) endpoint: Endpoint,
    pub(crate) address: Address,
    phase: Phase,
    outgoing: Outgoing,
    incoming: BytesMut,
    open: VecDeque<Open>,
    /// S16: answered before they were reported sent, with the ends of their frames.
    ahead: VecDeque<(u64, Vec<Entry>)>,
    produces: usize,
    next_correlation: i32,
    throttled_until: Instant,
    /// Until then it is hoped to be there before anybody who is dialled later.
    promising_until: Instant,
    last_traffic: Instant,
}

impl Connection {
    pub(crate) fn new(endpoint: Endpoint, address: Address, now: Instant, terms: &Terms) -> Self {
        Self {
            endpoint,
            address,
            phase: Phase::Connecting { until: now + terms.connect_timeout },
            outgoing: Outgoing::default(),
            incoming: BytesMut::new(),
            open: VecDeque::new(),
            ahead: VecDeque::new(),
            produces: 0,
            next_correlation: 0,
            throttled_until: Instant::EPOCH,
            promising_until: now + HEAD_START,
            last_traffic: now,
        }
    }

    /// The transport is up: greets. False if it was up already, or is given up.
    pub(crate) fn connected(&mut self, terms: &Terms, expected: Option<Expected<'_>>) -> bool {
        let Phase::Connecting { until } = self.phase else { return false };
        self.phase = Phase::Greeting { until };
        self.greet(Api::ApiVersions.supported().max, until, terms, expected);
        true
    }

    fn greet(
        &mut self,
        version: i16,
        until: Instant,
        terms: &Terms,
        expected: Option<Expected<'_>>,
    ) {
        let request = candor_wire::api_versions::Request {
            software_name: "candor",
            software_version: env!("CARGO_PKG_VERSION"),
            expected: expected.map(|Expected { cluster_id, node }| {
                candor_wire::api_versions::Expected { cluster_id, node }
            }),
        };
        let header = self.header(terms);
        if let Ok(frame) = request.encode(version, &header) {
            self.push(Request::Greeting, version, [frame], until);
        }
    }

    /// The header of the request that is pushed next.
    pub(crate) fn header<'t>(&self, terms: &'t Terms) -> RequestHeader<'t> {
        RequestHeader { correlation_id: self.next_correlation, client_id: Some(&terms.client_id) }
    }

    /// Queues the frame of a request that was encoded with [`header`](Self::header).
    pub(crate) fn push(
        &mut self,
        request: Request,
        version: i16,
        frame: impl IntoIterator<Item = Bytes>,
        expires: Instant,
    ) {
        let end = self.outgoing.push(frame);
        let correlation = self.next_correlation;
        self.next_correlation = correlation.checked_add(1).unwrap_or(0);
        self.produces += usize::from(matches!(request, Request::Produce(_)));
        self.open.push_back(Open { request, correlation, version, end, expires });
    }

    /// The versions to speak with, once the broker greeted and until the connection ends.
    pub(crate) const fn versions(&self) -> Option<Versions> {
        match self.phase {
            Phase::Ready { versions, .. } => Some(versions),
            Phase::Connecting { .. }
            | Phase::Greeting { .. }
            | Phase::Draining { .. }
            | Phase::Closing => None,
        }
    }

    /// Whether it will be ready unless something happens.
    pub(crate) const fn is_opening(&self) -> bool {
        matches!(self.phase, Phase::Connecting { .. } | Phase::Greeting { .. })
    }

    /// Whether there is nothing better to do than to wait for it.
    pub(crate) fn is_promising(&self, now: Instant) -> bool {
        self.is_opening() && now < self.promising_until
    }

    /// Whether the transport is not up yet.
    pub(crate) const fn is_connecting(&self) -> bool {
        matches!(self.phase, Phase::Connecting { .. })
    }

    pub(crate) const fn is_closing(&self) -> bool {
        matches!(self.phase, Phase::Closing)
    }

    /// Requests without an answer.
    pub(crate) fn open_requests(&self) -> usize {
        self.open.len()
    }

    /// Until when the broker wants to hear nothing (KIP-219), if that lies ahead.
    pub(crate) fn throttled<R: Rules>(&self, now: Instant) -> Option<Instant> {
        (!R::may_speak(now, self.throttled_until)).then_some(self.throttled_until)
    }

    /// S17: whether a request other than Produce may be queued.
    pub(crate) fn may_ask<R: Rules>(&self, now: Instant) -> bool {
        self.versions().is_some() && self.throttled::<R>(now).is_none()
    }

    /// S17, U3: whether a Produce request may be queued.
    pub(crate) fn may_produce<R: Rules>(&self, now: Instant, terms: &Terms) -> bool {
        let unsent = usize::try_from(self.outgoing.unsent()).unwrap_or(usize::MAX);
        self.may_ask::<R>(now)
            && self.produces < terms.max_in_flight
            && R::window_has_room(unsent, terms.write_window)
    }

    /// Bytes that wait to be taken.
    pub(crate) fn waiting(&self) -> u64 {
        if self.is_closing() { 0 } else { self.outgoing.waiting() }
    }

    /// Hands out up to `budget` bytes.
    pub(crate) fn take(&mut self, now: Instant, budget: usize, into: &mut Vec<Bytes>) -> usize {
        if self.is_closing() {
            return 0;
        }
        let n = self.outgoing.take(budget, into);
        if n > 0 {
            self.last_traffic = now;
        }
        n
    }

    /// The driver reports bytes sent: `passed` hears of every Produce entry whose frame is out now.
    /// False if it never took so many.
    pub(crate) fn sent<R: Rules>(
        &mut self,
        now: Instant,
        n: u64,
        mut passed: impl FnMut(&Entry),
    ) -> bool {
        let before = self.outgoing.sent();
        if !self.outgoing.report(n) {
            return false;
        }
        self.last_traffic = now;
        let after = self.outgoing.sent();
        while let Some((_, entries)) =
            self.ahead.pop_front_if(|(end, _)| R::bytes_are_out(*end, after))
        {
            entries.iter().for_each(&mut passed);
        }
        let behind = self.open.iter().skip_while(|open| open.end <= before);
        for open in behind.take_while(|open| R::bytes_are_out(open.end, after)) {
            match &open.request {
                Request::Produce(entries) => entries.iter().for_each(&mut passed),
                Request::Greeting | Request::Metadata(_) | Request::ProducerId => {}
            }
        }
        true
    }

    /// Takes in received bytes. Closing connections are not listened to any more.
    pub(crate) fn received(&mut self, now: Instant, bytes: Bytes) {
        self.last_traffic = now;
        if self.is_closing() {
            return;
        }
        if self.incoming.is_empty() {
            self.incoming = BytesMut::from(bytes);
        } else {
            self.incoming.extend_from_slice(&bytes);
        }
    }

    /// The next whole answer. Answers come in the order of the requests; anything else is a fault.
    pub(crate) fn next_answer<R: Rules>(
        &mut self,
        now: Instant,
        terms: &Terms,
    ) -> Result<Option<Answer>, Fault> {
        if self.is_closing() {
            return Ok(None);
        }
        let split = candor_wire::split_frame(&mut self.incoming, terms.max_response);
        let Some(frame) = split.map_err(Fault::Frame)? else { return Ok(None) };
        if self.incoming.is_empty() {
            // The empty rest would keep the memory of everything before it.
            self.incoming = BytesMut::new();
        }
        let Some(first) = self.open.front() else { return Err(Fault::Unasked) };
        let (correlation, body) =
            candor_wire::split_response(first.request.api(), first.version, &frame)
                .map_err(Fault::Malformed)?;
        if !R::answer_belongs(first.correlation, correlation) {
            return Err(Fault::Correlation { expected: first.correlation, got: correlation });
        }
        let bytes = frame.slice_ref(body);
        let Some(Open { request, version, end, .. }) = self.open.pop_front() else {
            return Ok(None);
        };
        self.outgoing.answered(end);
        match &request {
            Request::Produce(entries) if !R::bytes_are_out(end, self.outgoing.sent()) => {
                self.ahead.push_back((end, entries.clone()));
            }
            Request::Produce(_)
            | Request::Greeting
            | Request::Metadata(_)
            | Request::ProducerId => {}
        }
        if matches!(request, Request::Greeting) {
            return self.greeted(now, version, &bytes, terms).map(Some);
        }
        self.produces -= usize::from(matches!(request, Request::Produce(_)));
        Ok(Some(Answer::Body(Body { request, version, bytes })))
    }

    fn greeted(
        &mut self,
        now: Instant,
        asked: i16,
        body: &[u8],
        terms: &Terms,
    ) -> Result<Answer, Fault> {
        let Phase::Greeting { until } = self.phase else { return Err(Fault::Unasked) };
        let response =
            candor_wire::api_versions::Response::decode(asked, body).map_err(Fault::Malformed)?;
        match response.error {
            ErrorCode::NONE => {}
            ErrorCode::UNSUPPORTED_VERSION if asked > 0 => {
                let theirs = response.fallback();
                let again = if theirs < asked { theirs } else { 0 };
                self.greet(again, until, terms, None);
                return Ok(Answer::GreetAgain);
            }
            ErrorCode::REBOOTSTRAP_REQUIRED => return Err(Fault::Rebootstrap),
            code => return Err(Fault::Refused(code)),
        }
        let versions = Versions::agree(&response)?;
        self.phase = Phase::Ready { versions, since: now };
        self.throttle(now, response.throttle_ms);
        Ok(Answer::Greeted)
    }

    /// An answer that could not be used: its request counts as not answered after all.
    pub(crate) fn unanswer(&mut self, request: Request, version: i16) {
        self.produces += usize::from(matches!(request, Request::Produce(_)));
        let end = self.outgoing.sent();
        let expires = Instant::NEVER;
        self.open.push_front(Open { request, correlation: -1, version, end, expires });
    }

    /// KIP-219: the broker hears nothing from us for so long, and answers nothing: what it said it
    /// would hold us back is no part of the request timeout (fault 91). The same time counts once,
    /// whatever number of answers speak of it.
    pub(crate) fn throttle(&mut self, now: Instant, milliseconds: i32) {
        let asked = Span::from_millis(u64::try_from(milliseconds).unwrap_or(0));
        let until = now + asked.min(LONGEST_THROTTLE);
        let span = until.since(self.throttled_until.max(now));
        if span == Span::ZERO {
            return;
        }
        self.throttled_until = until;
        for open in &mut self.open {
            open.expires = open.expires + span;
        }
    }

    /// Takes no new requests any more.
    pub(crate) fn drain(&mut self) {
        if let Phase::Ready { since, .. } = self.phase {
            self.phase = Phase::Draining { since };
        }
    }

    /// Whether it drained and has nothing open.
    pub(crate) fn is_drained(&self) -> bool {
        matches!(self.phase, Phase::Draining { .. }) && self.open.is_empty()
    }

    /// Whether its end, now, is no failure.
    pub(crate) fn ends_idle<R: Rules>(&self, now: Instant, terms: &Terms) -> bool {
        match self.phase {
            Phase::Ready { since, .. } | Phase::Draining { since } => {
                !R::end_is_failure(self.open.len(), now.since(since), terms.longest_redial)
            }
            Phase::Connecting { .. } | Phase::Greeting { .. } | Phase::Closing => false,
        }
    }

    /// Gives it up: nothing is sent or heard any more. Gives the requests that can be made
    /// elsewhere; Produce requests wait for [`over`](Self::over).
    pub(crate) fn close(&mut self) -> Vec<Request> {
        self.phase = Phase::Closing;
        self.outgoing.clear();
        self.incoming = BytesMut::new();
        let open = core::mem::take(&mut self.open);
        let (produces, others) =
            open.into_iter().partition(|open| matches!(open.request, Request::Produce(_)));
        self.open = produces;
        let others: VecDeque<Open> = others;
        others.into_iter().map(|open| open.request).collect()
    }

    /// S16: answered requests whose bytes were not reported sent. The connection is over.
    pub(crate) fn take_ahead(&mut self) -> impl Iterator<Item = Entry> + use<> {
        core::mem::take(&mut self.ahead).into_iter().flat_map(|(_, entries)| entries)
    }

    /// The connection is over: every open request, and how much of it was handed over.
    pub(crate) fn over(self, at_most: Option<u64>) -> Vec<(Request, HandedOver)> {
        let handed = self.outgoing.handed(at_most);
        let fate = |open: Open| {
            let whole = open.end <= handed;
            let handed = if whole { HandedOver::PerhapsWhole } else { HandedOver::Partly };
            (open.request, handed)
        };
        self.open.into_iter().map(fate).collect()
    }

    /// When time does something to it next. `waits`: something wants to be sent as soon as a
    /// broker may hear it, to this one or to any.
    pub(crate) fn deadline<R: Rules>(
        &self,
        now: Instant,
        terms: &Terms,
        waits: bool,
    ) -> Option<Deadline> {
        let expiry = match self.phase {
            Phase::Closing => return None,
            Phase::Connecting { until } | Phase::Greeting { until } => {
                let promising = Some(self.promising_until).filter(|at| waits && now < *at);
                let at = promising.map_or(until, |at| at.min(until));
                Deadline { at, why: Wakeup::Connection }
            }
            Phase::Ready { .. } | Phase::Draining { .. } => match self.open.front() {
                Some(open) => Deadline { at: open.expires, why: Wakeup::RequestTimeout },
                None => {
                    Deadline { at: self.last_traffic + terms.idle_timeout, why: Wakeup::Connection }
                }
            },
        };
        match self.throttled::<R>(now) {
            Some(until) if waits && until < expiry.at => {
                Some(Deadline { at: until, why: Wakeup::Throttle })
            }
            Some(_) | None => Some(expiry),
        }
    }

    /// What time has done to it by now.
    pub(crate) fn expired(&self, now: Instant, terms: &Terms) -> Option<Expiry> {
        match self.phase {
            Phase::Closing => None,
            Phase::Connecting { until } | Phase::Greeting { until } => {
                (until <= now).then_some(Expiry::Fault(Fault::ConnectTimeout))
            }
            Phase::Ready { .. } | Phase::Draining { .. } => match self.open.front() {
                Some(open) => (open.expires <= now).then_some(Expiry::Fault(Fault::RequestTimeout)),
                None => (self.last_traffic + terms.idle_timeout <= now).then_some(Expiry::Idle),
            },
        }
    }
}

/// The name that routes and connections share.
pub(crate) type Conn = RouteId;

#[cfg(test)]
mod tests {
    use candor_core::rules::Honest;

    use super::*;

    #[test]
    fn correlation_ids_begin_again_at_0_and_answers_still_match() {
        let terms = Terms {
            client_id: "c".to_owned(),
            request_timeout: Span::from_secs(30),
            connect_timeout: Span::from_secs(10),
            idle_timeout: Span::from_secs(540),
            longest_redial: Span::from_secs(1),
            max_response: 1 << 20,
            max_in_flight: 5,
            write_window: 1 << 20,
        };
        let now = Instant::EPOCH;
        let address = Address::new("a", 9092).unwrap();
        let mut connection = Connection::new(Endpoint::Seed(0), address, now, &terms);
        connection.next_correlation = i32::MAX;
        for _ in 0..2 {
            let frame = [Bytes::from_static(b"x")];
            connection.push(Request::ProducerId, 0, frame, Instant::NEVER);
        }
        let open: Vec<i32> = connection.open.iter().map(|open| open.correlation).collect();
        assert_eq!(open, [i32::MAX, 0]);
        for correlation in open {
            let answer = [&4_i32.to_be_bytes()[..], &correlation.to_be_bytes()].concat();
            connection.received(now, answer.into());
            let answer = connection.next_answer::<Honest>(now, &terms).unwrap().unwrap();
            assert!(matches!(answer, Answer::Body(Body { request: Request::ProducerId, .. })));
        }
        assert!(connection.open.is_empty());
    }
}
