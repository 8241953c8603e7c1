//! One connection: what the transport took, what the broker has, what is not answered yet.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

use crate::codec::{Request, RequestHeader, whole_frame};
use crate::serve::ConnectionId;

/// A request that a broker has and did not answer.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub(super) header: RequestHeader,
    pub(super) request: Request,
    /// The whole frame, with its length.
    pub(super) frame: Bytes,
    /// The offers in it, if it is a Produce request.
    pub(super) offers: Vec<usize>,
    /// The model cluster has it.
    pub(super) given: bool,
    /// What the model answered.
    pub(super) kept: Option<Bytes>,
}

impl Pending {
    pub(super) const fn is_produce(&self) -> bool {
        matches!(self.request, Request::Produce(_))
    }
}

/// A connection.
#[derive(Clone, Debug)]
pub(super) struct Link {
    pub(super) host: String,
    /// Its end in the model cluster.
    pub(super) net: Option<ConnectionId>,
    pub(super) up: bool,
    /// Bytes that the producer gave, up to the last whole request.
    given: u64,
    /// Bytes behind it.
    tail: BytesMut,
    /// Bytes that the transport took.
    pub(super) handed: u64,
    /// How many more bytes the transport takes; `None` for all.
    pub(super) room: Option<u64>,
    /// Requests that the transport did not take whole, and where each ends.
    under_way: VecDeque<(u64, Pending)>,
    /// Requests that the broker has.
    pub(super) queue: VecDeque<Pending>,
}

impl Link {
    pub(super) fn new(host: &str, room: Option<u64>) -> Self {
        Self {
            host: host.to_owned(),
            net: None,
            up: false,
            given: 0,
            tail: BytesMut::new(),
            handed: 0,
            room,
            under_way: VecDeque::new(),
            queue: VecDeque::new(),
        }
    }

    /// The producer gave bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.tail.extend_from_slice(bytes);
    }

    /// The next whole request that the producer gave.
    pub(super) fn next_frame(&mut self) -> Option<Bytes> {
        let frame = whole_frame(&mut self.tail)?;
        self.given += frame.len() as u64;
        Some(frame)
    }

    /// A request whose last byte was given just now.
    pub(super) fn announce(&mut self, pending: Pending) {
        self.under_way.push_back((self.given, pending));
    }

    /// Moves what the transport takes; gives how much that is.
    pub(super) fn drain(&mut self) -> u64 {
        let waits = self.given + self.tail.len() as u64 - self.handed;
        let n = self.room.map_or(waits, |room| room.min(waits));
        self.handed += n;
        if let Some(room) = &mut self.room {
            *room -= n;
        }
        while self.under_way.front().is_some_and(|(end, _)| *end <= self.handed) {
            self.queue.extend(self.under_way.pop_front().map(|(_, pending)| pending));
        }
        n
    }

    /// Whether the transport waits for something to take.
    pub(super) fn is_full(&self) -> bool {
        self.given + self.tail.len() as u64 > self.handed
    }

    /// The offers that nobody answered, and whether the broker cannot have got all of each.
    pub(super) fn unanswered(&self) -> Vec<(usize, bool)> {
        let here = self.queue.iter().map(|pending| (pending, false));
        let under_way = self.under_way.iter().map(|(_, pending)| (pending, true));
        let all = here.chain(under_way);
        all.flat_map(|(pending, partly)| pending.offers.iter().map(move |one| (*one, partly)))
            .collect()
    }
}
