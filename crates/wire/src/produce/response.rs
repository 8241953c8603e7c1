//! The response: checked whole, then visited partition by partition, never collected.

use candor_core::{LeaderEpoch, PartitionResponse};
use nom::Parser;

use crate::error::{DecodeError, Malformed};
use crate::error_code::ErrorCode;
use crate::list::List;
use crate::metadata::{Broker, brokers, topic_id};
use crate::names::{NodeId, Topic};
use crate::read::{
    Input, Parsed, bad, count, int16, int32, int64, no_tags, nullable_text, since, skimmed, tags,
    text, whole,
};
use crate::versions::{Api, PRODUCE_BY_ID};

/// What the broker says of every partition of a Produce request.
///
/// [`decode`](Self::decode) checks the whole body before it gives anything away, so that a frame
/// which turns out to be broken has told nothing about its first partitions. It allocates nothing.
///
/// ```
/// use candor_wire::{Topic, produce::Response};
/// let mut body = vec![0, 0, 0, 1, 0, 1, b't', 0, 0, 0, 1];
/// body.extend([0, 0, 0, 5, 0, 0]); // partition 5, no error
/// body.extend(41_i64.to_be_bytes()); // base offset
/// body.extend((-1_i64).to_be_bytes()); // log append time
/// body.extend([0; 4]); // throttle time
/// let response = Response::decode(3, &body).unwrap();
/// let answer = response.partitions().next().unwrap();
/// assert_eq!((answer.topic, answer.index), (Topic::Name("t"), 5));
/// assert_eq!(answer.base_offset, 41);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response<'a> {
    version: i16,
    topics: &'a [u8],
    /// How long the broker wants no requests, in milliseconds.
    pub throttle_ms: i32,
    /// Addresses of the leaders that the answers hint at, since version 10 (KIP-951).
    pub node_endpoints: List<'a, Broker<'a>>,
}

impl<'a> Response<'a> {
    /// Reads the body of a response of `version`.
    ///
    /// # Errors
    ///
    /// The body is malformed or has bytes left over.
    pub fn decode(version: i16, body: &'a [u8]) -> Result<Self, DecodeError> {
        whole(Api::Produce, version, body, |input| response(version, input))
    }

    /// Every partition's answer, in the broker's order, which need not be the request's. Nothing
    /// says that each partition that was asked about is among them, or once only.
    pub fn partitions(&self) -> Partitions<'a> {
        let (rest, topics) =
            count(Api::Produce.flexible(self.version), 1).parse(self.topics).unwrap_or_default();
        let topic = Topic::Name("");
        Partitions { version: self.version, rest, topics, topic, partitions: 0 }
    }
}

fn response(version: i16, input: Input<'_>) -> Parsed<'_, Response<'_>> {
    let flexible = Api::Produce.flexible(version);
    let (input, topics) = skimmed(flexible, 3, |i| topic(version, i))(input)?;
    let (input, throttle_ms) = int32(input)?;
    let mut response = Response { version, topics, throttle_ms, node_endpoints: List::default() };
    let endpoints = &mut response.node_endpoints;
    let (input, ()) = tags(flexible, |tag, data| match tag {
        0 if version >= 10 => {
            Some(brokers(true)(data).map(|(rest, brokers)| (rest, *endpoints = brokers)))
        }
        _ => None,
    })(input)?;
    Ok((input, response))
}

fn topic(version: i16, input: Input<'_>) -> Parsed<'_, ()> {
    let flexible = Api::Produce.flexible(version);
    let (input, topic) = topic_name(version, input)?;
    let least = least_partition(version);
    let (input, _) = skimmed(flexible, least, |i| partition(version, topic, i))(input)?;
    no_tags(flexible)(input)
}

fn topic_name(version: i16, input: Input<'_>) -> Parsed<'_, Topic<'_>> {
    if version < PRODUCE_BY_ID {
        return text(Api::Produce.flexible(version)).map(Topic::Name).parse(input);
    }
    match topic_id(input)? {
        (rest, Some(id)) => Ok((rest, Topic::Id(id))),
        (_, None) => bad(input, Malformed::OutOfRange),
    }
}

/// The fewest bytes that a partition's answer takes.
const fn least_partition(version: i16) -> usize {
    match version {
        ..=4 => 22,
        _ => 30,
    }
}

fn partition<'a>(
    version: i16,
    topic: Topic<'a>,
    input: Input<'a>,
) -> Parsed<'a, PartitionAnswer<'a>> {
    let flexible = Api::Produce.flexible(version);
    let (input, index) = int32(input)?;
    let (input, error) = int16(input)?;
    let (input, base_offset) = int64(input)?;
    let (input, log_append_time_ms) = int64(input)?;
    let (input, log_start_offset) = since(version >= 5, -1, int64)(input)?;
    let (input, record_errors) = since(version >= 8, &[][..], |input| {
        skimmed(flexible, 5, |i| record_error(flexible, i))(input)
    })(input)?;
    let record_errors = RecordErrors::new(flexible, record_errors);
    let (input, error_message) = since(version >= 8, None, nullable_text(flexible))(input)?;
    let mut current_leader = None;
    let (input, ()) = tags(flexible, |tag, data| match tag {
        0 if version >= 10 => {
            Some(leader_hint(data).map(|(rest, hint)| (rest, current_leader = hint)))
        }
        _ => None,
    })(input)?;
    let answer = PartitionAnswer {
        topic,
        index,
        error: ErrorCode(error),
        base_offset,
        log_append_time_ms,
        log_start_offset,
        record_errors,
        error_message,
        current_leader,
    };
    Ok((input, answer))
}

fn leader_hint(input: Input<'_>) -> Parsed<'_, Option<LeaderHint>> {
    let (input, (node, epoch, ())) = (int32, int32, no_tags(true)).parse(input)?;
    let hint = NodeId::new(node).map(|node| LeaderHint { node, epoch: LeaderEpoch(epoch) });
    Ok((input, hint))
}

fn record_error(flexible: bool, input: Input<'_>) -> Parsed<'_, RecordError<'_>> {
    let (rest, (index, message, ())) =
        (int32, nullable_text(flexible), no_tags(flexible)).parse(input)?;
    match u32::try_from(index) {
        Ok(index) => Ok((rest, RecordError { index, message })),
        Err(_) => bad(input, Malformed::OutOfRange),
    }
}

/// What the broker says of one partition.
///
/// ```
/// use candor_core::{Answer, PartitionResponse};
/// use candor_wire::produce::PartitionAnswer;
/// fn tell(answer: &PartitionAnswer<'_>) -> Answer {
///     Answer::Response(PartitionResponse::from(answer))
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionAnswer<'a> {
    /// The topic, named as in the request.
    pub topic: Topic<'a>,
    /// The partition.
    pub index: i32,
    /// The error, or NONE.
    pub error: ErrorCode,
    /// Offset of the batch's first record, -1 for none.
    pub base_offset: i64,
    /// The broker's append time in milliseconds; -1 on topics with CreateTime.
    pub log_append_time_ms: i64,
    /// First offset of the log, -1 where the broker does not tell (before version 5).
    pub log_start_offset: i64,
    /// The records that the broker refused, since version 8 (KIP-467).
    pub record_errors: RecordErrors<'a>,
    /// The broker's words, since version 8.
    pub error_message: Option<&'a str>,
    /// The leader that the broker knows of, since version 10 (KIP-951).
    pub current_leader: Option<LeaderHint>,
}

impl From<&PartitionAnswer<'_>> for PartitionResponse {
    fn from(answer: &PartitionAnswer<'_>) -> Self {
        Self {
            error_code: answer.error.0,
            base_offset: answer.base_offset,
            log_append_time: answer.log_append_time_ms,
            log_start_offset: answer.log_start_offset,
            record_errors: answer.record_errors.clone().map(|record| record.index).collect(),
        }
    }
}

/// A newer leader (KIP-951); to be believed only if its epoch is above the one that is known.
///
/// ```
/// use candor_core::LeaderEpoch;
/// use candor_wire::{NodeId, produce::LeaderHint};
/// let hint = LeaderHint { node: NodeId::new(2).unwrap(), epoch: LeaderEpoch(9) };
/// assert!(hint.epoch > LeaderEpoch(8));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaderHint {
    /// The leader.
    pub node: NodeId,
    /// Its epoch.
    pub epoch: LeaderEpoch,
}

/// A record that made the broker refuse its batch (KIP-467).
///
/// ```
/// let error = candor_wire::produce::RecordError { index: 3, message: Some("null key") };
/// assert_eq!(error.index, 3);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordError<'a> {
    /// Its index in the batch.
    pub index: u32,
    /// What is wrong with it.
    pub message: Option<&'a str>,
}

/// Iterates the records that the broker refused. Made by [`Response::partitions`].
///
/// ```
/// fn first(answer: &candor_wire::produce::PartitionAnswer<'_>) -> Option<u32> {
///     answer.record_errors.clone().next().map(|record| record.index)
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordErrors<'a> {
    flexible: bool,
    rest: &'a [u8],
    left: usize,
}

impl<'a> RecordErrors<'a> {
    /// From an array that was read before; no bytes at all are an empty one.
    fn new(flexible: bool, array: &'a [u8]) -> Self {
        let (rest, left) = count(flexible, 1)(array).unwrap_or_default();
        Self { flexible, rest, left }
    }
}

impl<'a> Iterator for RecordErrors<'a> {
    type Item = RecordError<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let (rest, error) = record_error(self.flexible, self.rest).ok()?;
        self.rest = rest;
        Some(error)
    }
}

/// Iterates the answers of a response. Made by [`Response::partitions`].
///
/// ```
/// fn errors(response: &candor_wire::produce::Response<'_>) -> usize {
///     response.partitions().filter(|answer| !answer.error.is_none()).count()
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Partitions<'a> {
    version: i16,
    rest: &'a [u8],
    topics: usize,
    topic: Topic<'a>,
    partitions: usize,
}

impl<'a> Partitions<'a> {
    /// The bytes were read once already, so that `None` means the end.
    fn step(&mut self) -> Option<PartitionAnswer<'a>> {
        let flexible = Api::Produce.flexible(self.version);
        while self.partitions == 0 {
            self.topics = self.topics.checked_sub(1)?;
            let (rest, topic) = topic_name(self.version, self.rest).ok()?;
            let (rest, partitions) = count(flexible, 1)(rest).ok()?;
            (self.topic, self.partitions) = (topic, partitions);
            self.rest = if partitions == 0 { no_tags(flexible)(rest).ok()?.0 } else { rest };
        }
        let (rest, answer) = partition(self.version, self.topic, self.rest).ok()?;
        self.partitions -= 1;
        let last = self.partitions == 0;
        self.rest = if last { no_tags(flexible)(rest).ok()?.0 } else { rest };
        Some(answer)
    }
}

impl<'a> Iterator for Partitions<'a> {
    type Item = PartitionAnswer<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step()
    }
}
