//! One connection as the network has it: two streams of bytes with a client at one end and a
//! broker at the other, each of which may be gone while bytes are still under way.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use candor_core::RouteId;

use super::tap::{Asked, Delivered, Offered};
use crate::codec::whole_frame;
use crate::serve::ConnectionId;

/// What the network does to a connection, drawn when it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Traits {
    /// Mean time under way, in microseconds.
    pub(super) delay: u64,
    /// Bytes that arrive at once, at most.
    pub(super) chunk: usize,
    /// Bytes that the socket takes at once, and what time each takes.
    pub(super) drain: Option<(usize, u64)>,
    /// Bytes that are asked of the producer at once, at most.
    pub(super) budget: usize,
    /// Whether the producer hears of what was sent.
    pub(super) tells_sent: bool,
    /// Whether the producer hears how much was handed over.
    pub(super) tells_handed: bool,
    /// The connection breaks when so many bytes were taken by the socket.
    pub(super) breaks_out: Option<u64>,
    /// The connection breaks when so many bytes came back.
    pub(super) breaks_in: Option<u64>,
    /// From this byte on requests stay in the network.
    pub(super) mute_out: Option<u64>,
    /// From this byte on answers vanish.
    pub(super) mute_in: Option<u64>,
    /// What was left in the network when the client went comes after so long, if ever.
    pub(super) late: Option<u64>,
}

impl Traits {
    pub(super) const fn plain(delay: u64) -> Self {
        Self {
            delay,
            chunk: usize::MAX,
            drain: None,
            budget: 1 << 20,
            tells_sent: true,
            tells_handed: true,
            breaks_out: None,
            breaks_in: None,
            mute_out: None,
            mute_in: None,
            late: None,
        }
    }
}

/// How far a connection got, as its client sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Not up yet.
    Connecting,
    /// Up.
    Up,
    /// The producer asked for its end, which it has not been told yet.
    Leaving,
    /// The producer was told of its end.
    Over,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) conn: RouteId,
    pub(super) node: u8,
    pub(super) phase: Phase,
    pub(super) traits: Traits,
    /// The broker's end, while it is there.
    pub(super) server: Option<ConnectionId>,

    /// Taken from the producer, not by the socket yet.
    pub(super) outbox: BytesMut,
    pub(super) taken: u64,
    /// Taken by the socket.
    pub(super) accepted: u64,
    pub(super) told_sent: u64,
    /// Under way to the broker.
    pub(super) out: BytesMut,
    pub(super) out_delivered: u64,
    pub(super) out_scheduled: bool,
    pub(super) drain_scheduled: bool,
    /// At the broker, not a whole frame yet.
    pub(super) arriving: BytesMut,
    /// Requests that the broker has, in order.
    pub(super) asked: VecDeque<Asked>,

    /// Under way to the client.
    pub(super) back: BytesMut,
    pub(super) back_pushed: u64,
    pub(super) back_delivered: u64,
    pub(super) back_scheduled: bool,
    /// Ends of answers in the stream, and what they tell.
    pub(super) answers: VecDeque<(u64, Delivered)>,
    /// An answer was lost: those behind it do not match.
    pub(super) out_of_turn: bool,
    /// Something came that the producer cannot read: it listens no more.
    pub(super) deaf: bool,
    /// The broker closed.
    pub(super) ended: bool,

    /// The producer's stream, not a whole frame yet.
    pub(super) leaving: BytesMut,
    /// The frame that is not whole yet was looked at already.
    pub(super) foreseen: bool,
    /// Attempts without an answer.
    pub(super) offered: Vec<Offered>,
    /// The broker wants to hear nothing until then.
    pub(super) quiet_until: u64,
    /// The broker was told to ask for silence for weeks.
    pub(super) silenced: bool,
}

impl Link {
    pub(super) fn new(conn: RouteId, node: u8, traits: Traits) -> Self {
        Self {
            conn,
            node,
            phase: Phase::Connecting,
            traits,
            server: None,
            outbox: BytesMut::new(),
            taken: 0,
            accepted: 0,
            told_sent: 0,
            out: BytesMut::new(),
            out_delivered: 0,
            out_scheduled: false,
            drain_scheduled: false,
            arriving: BytesMut::new(),
            asked: VecDeque::new(),
            back: BytesMut::new(),
            back_pushed: 0,
            back_delivered: 0,
            back_scheduled: false,
            answers: VecDeque::new(),
            out_of_turn: false,
            deaf: false,
            ended: false,
            leaving: BytesMut::new(),
            foreseen: false,
            offered: Vec::new(),
            quiet_until: 0,
            silenced: false,
        }
    }

    /// Whether the producer may be asked for bytes.
    pub(super) fn is_writable(&self) -> bool {
        self.phase == Phase::Up && self.outbox.is_empty()
    }

    /// The socket takes what it can; gives how many bytes, and whether the connection broke.
    pub(super) fn drain(&mut self) -> (usize, bool) {
        let at_once = self.traits.drain.map_or(usize::MAX, |(bytes, _)| bytes);
        let allowed =
            self.traits.breaks_out.map_or(u64::MAX, |at| at.saturating_sub(self.accepted));
        let n = self.outbox.len().min(at_once);
        let n = n.min(usize::try_from(allowed).unwrap_or(usize::MAX));
        let bytes = self.outbox.split_to(n);
        self.out.extend_from_slice(&bytes);
        self.accepted += n as u64;
        let broke = self.traits.breaks_out.is_some_and(|at| self.accepted >= at);
        (n, broke)
    }

    /// The next bytes for the broker; none if the network keeps them.
    pub(super) fn next_out(&mut self) -> Bytes {
        let allowed =
            self.traits.mute_out.map_or(u64::MAX, |at| at.saturating_sub(self.out_delivered));
        let n = self.out.len().min(self.traits.chunk);
        let n = n.min(usize::try_from(allowed).unwrap_or(usize::MAX));
        self.out_delivered += n as u64;
        self.out.split_to(n).freeze()
    }

    /// Whether the network will give the broker more, as things are.
    pub(super) fn has_out(&self) -> bool {
        let muted = self.traits.mute_out.is_some_and(|at| self.out_delivered >= at);
        !self.out.is_empty() && !muted
    }

    /// An answer sets out to the client.
    pub(super) fn push_back(&mut self, frame: &[u8], tells: Delivered) {
        self.back.extend_from_slice(frame);
        self.back_pushed += frame.len() as u64;
        self.answers.push_back((self.back_pushed, tells));
    }

    /// The next bytes for the client; what vanishes on the way is taken out as well.
    pub(super) fn next_back(&mut self) -> (Bytes, Vec<Delivered>) {
        let limit = |at: Option<u64>| {
            let left = at.map_or(u64::MAX, |at| at.saturating_sub(self.back_delivered));
            usize::try_from(left).unwrap_or(usize::MAX)
        };
        let n = self.back.len().min(self.traits.chunk).min(limit(self.traits.breaks_in));
        let heard = n.min(limit(self.traits.mute_in));
        let mut bytes = self.back.split_to(n).freeze();
        bytes.truncate(heard);
        let heard = self.back_delivered + heard as u64;
        self.back_delivered += n as u64;
        let mut told = Vec::new();
        while self.answers.front().is_some_and(|(end, _)| *end <= self.back_delivered) {
            told.extend(self.answers.pop_front().filter(|(end, _)| *end <= heard));
        }
        let told = told.into_iter().map(|(_, tells)| tells).collect();
        (bytes, told)
    }

    /// Whether the connection breaks here, on its way back.
    pub(super) fn broke_in(&self) -> bool {
        self.traits.breaks_in.is_some_and(|at| self.back_delivered >= at)
    }

    /// The next whole frame that the broker has, with its length.
    pub(super) fn next_frame(&mut self) -> Option<Bytes> {
        whole_frame(&mut self.arriving)
    }

    /// The client's end is over: its socket takes nothing more, and nobody listens.
    pub(super) fn abandon(&mut self) {
        self.phase = Phase::Over;
        self.outbox.clear();
        self.back.clear();
        self.answers.clear();
    }

    /// An upper bound on the bytes handed over, as the driver knows it.
    pub(super) fn handed(&self) -> Option<u64> {
        self.traits.tells_handed.then_some(self.accepted)
    }
}
