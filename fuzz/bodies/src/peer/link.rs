//! One connection as the peer sees it.

use std::collections::VecDeque;

use bytes::{Buf, Bytes, BytesMut};
use candor_sim::codec::{
    API_VERSIONS, INIT_PRODUCER_ID, METADATA, PRODUCE, Request, RequestHeader, VersionRange,
    decode_request,
};

/// Everything that the producer may write.
const WRITTEN: [VersionRange; 4] = [
    VersionRange { api: PRODUCE, min: 3, max: 13 },
    VersionRange { api: METADATA, min: 1, max: 13 },
    VersionRange { api: API_VERSIONS, min: 0, max: 5 },
    VersionRange { api: INIT_PRODUCER_ID, min: 0, max: 5 },
];

/// A connection that the producer opened.
pub(super) struct Link {
    pub(super) up: bool,
    /// Bytes taken from the producer, and of those, reported as sent.
    pub(super) taken: u64,
    pub(super) sent: u64,
    inbox: BytesMut,
    /// Requests that are not answered.
    pub(super) asked: VecDeque<(RequestHeader, Request)>,
}

impl Link {
    pub(super) fn new() -> Self {
        let (inbox, asked) = (BytesMut::new(), VecDeque::new());
        Self { up: false, taken: 0, sent: 0, inbox, asked }
    }

    /// Takes what the producer wrote, and reads every request that is whole.
    pub(super) fn write(&mut self, bytes: &[Bytes]) {
        bytes.iter().for_each(|bytes| self.inbox.extend_from_slice(bytes));
        self.asked.extend(core::iter::from_fn(|| next_request(&mut self.inbox)));
    }
}

/// Takes the next request out of what a producer wrote, if it is whole. One that a broker cannot
/// read is a finding.
///
/// ```
/// use bytes::BytesMut;
/// assert_eq!(candor_fuzz_bodies::next_request(&mut BytesMut::from(&[0, 0, 0][..])), None);
/// ```
pub fn next_request(inbox: &mut BytesMut) -> Option<(RequestHeader, Request)> {
    let prefix = inbox.first_chunk::<4>()?;
    let length = usize::try_from(i32::from_be_bytes(*prefix)).expect("a length");
    if inbox.len() < 4 + length {
        return None;
    }
    inbox.advance(4);
    let frame = inbox.split_to(length).freeze();
    Some(decode_request(frame, &WRITTEN).expect("the producer writes what a broker can read"))
}
