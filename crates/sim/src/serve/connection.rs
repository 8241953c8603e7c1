//! One connection as the broker holds it: bytes in, whole frames out, one request at a time.

use bytes::{Buf, Bytes, BytesMut};

use super::fault::{Release, Reply};
use crate::broker::RequestId;
use crate::codec::RequestHeader;

/// `socket.request.max.bytes`: a longer frame closes the connection.
pub(super) const MAX_FRAME: usize = 100 << 20;
/// Bytes of a frame that tell its API: the length and the key.
const PEEK: usize = 6;

/// What the connection is busy with. While it is, no further request is looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Busy {
    /// Nothing: the next frame may be taken up.
    Idle,
    /// A produce waits for replicas, at most until this time in microseconds.
    Waiting { request: RequestId, ticket: Ticket, deadline: u64 },
    /// An answer is ready and held back.
    Holding { answer: Vec<u8>, until: Until },
    /// A request that is never answered.
    Stuck,
}

/// When a held answer goes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// At this time, in microseconds.
    Time(u64),
    /// When so many Produce requests were acted upon.
    Produce(u64),
    /// When somebody says so.
    ByHand,
    /// Never.
    Never,
}

impl Until {
    pub(super) fn of(release: Release, now: u64) -> Self {
        match release {
            Release::Elapsed(micros) => Self::Time(now.saturating_add(micros)),
            Release::Produce(nth) => Self::Produce(nth),
            Release::ByHand => Self::ByHand,
            Release::Never => Self::Never,
        }
    }
}

/// Whether the other end still listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Peer {
    /// It does.
    There,
    /// It hung up: the connection ends with so many further answers.
    Gone { answers: u32 },
}

/// What the next bytes are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// A whole frame, without its length.
    Frame(Bytes),
    /// Not a whole frame yet; its API if that is known, and how many bytes of it are here.
    Partial { api: Option<i16>, here: usize },
    /// A length that no broker takes.
    BadLength,
}

/// One connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Connection {
    /// The broker it leads to.
    pub(super) node: u8,
    pub(super) busy: Busy,
    pub(super) peer: Peer,
    inbox: BytesMut,
}

impl Connection {
    pub(super) fn new(node: u8) -> Self {
        Self { node, busy: Busy::Idle, peer: Peer::There, inbox: BytesMut::new() }
    }

    pub(super) fn receive(&mut self, bytes: &[u8]) {
        self.inbox.extend_from_slice(bytes);
    }

    /// Bytes that were received and not looked at.
    pub(super) fn backlog(&self) -> usize {
        self.inbox.len()
    }

    /// Takes the next frame out, if it is whole.
    pub(super) fn next(&mut self) -> Next {
        let Some(length) = self.int32(0) else {
            return Next::Partial { api: None, here: self.inbox.len() };
        };
        let Some(length) = usize::try_from(length).ok().filter(|n| *n <= MAX_FRAME) else {
            return Next::BadLength;
        };
        if self.inbox.len() < 4 + length {
            let api = self.inbox.get(4..PEEK).map(|key| i16::from_be_bytes([key[0], key[1]]));
            return Next::Partial { api, here: self.inbox.len() };
        }
        self.inbox.advance(4);
        Next::Frame(self.inbox.split_to(length).freeze())
    }

    fn int32(&self, at: usize) -> Option<i32> {
        let raw = self.inbox.get(at..at + 4)?;
        Some(i32::from_be_bytes([raw[0], raw[1], raw[2], raw[3]]))
    }
}

/// A request on its way to its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    pub(super) header: RequestHeader,
    pub(super) reply: Reply,
    /// What a Produce answer tells the client to wait.
    pub(super) throttle_ms: i32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_chunking_gives_the_same_frames() {
        let stream = [0, 0, 0, 3, 0, 18, 7, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0];
        for first in 0..stream.len() {
            for second in first..stream.len() {
                let mut connection = Connection::new(1);
                let mut frames = Vec::new();
                for chunk in [&stream[..first], &stream[first..second], &stream[second..]] {
                    connection.receive(chunk);
                    while let Next::Frame(frame) = connection.next() {
                        frames.push(frame);
                    }
                }
                assert_eq!(frames, [&[0, 18, 7][..], &[], &[0, 0]]);
                assert_eq!(connection.backlog(), 0);
            }
        }
    }

    #[test]
    fn lengths_are_judged_before_their_bytes_come() {
        for bad in [-1_i32, i32::MIN, 0x4854_5450, 0x1503_0100] {
            let mut connection = Connection::new(1);
            connection.receive(&bad.to_be_bytes());
            assert_eq!(connection.next(), Next::BadLength);
        }
        let mut connection = Connection::new(1);
        connection.receive(&(MAX_FRAME as i32).to_be_bytes());
        assert_eq!(connection.next(), Next::Partial { api: None, here: 4 });
        connection.receive(&[0, 3]);
        assert_eq!(connection.next(), Next::Partial { api: Some(3), here: 6 });
    }
}
