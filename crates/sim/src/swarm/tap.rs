//! Reads what passes on a wire: requests as they leave the producer, answers as they reach it.

use bytes::Bytes;

use super::mark;
use crate::codec::{
    Batch, METADATA, MetadataResponse, PRODUCE, ProduceRequest, ProduceResponse, ProducedPartition,
    Request, RequestHeader, TopicKey, VersionRange, decode_request,
};
use crate::judge::{Attempt, Lane, Reply, Stored};

/// Everything that any broker of the model ever served.
const SERVED: [VersionRange; 4] = [
    VersionRange { api: PRODUCE, min: 3, max: 13 },
    VersionRange { api: METADATA, min: 0, max: 13 },
    VersionRange { api: crate::codec::API_VERSIONS, min: 0, max: 5 },
    VersionRange { api: crate::codec::INIT_PRODUCER_ID, min: 0, max: 6 },
];

/// One attempt on its way, not answered yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Offered {
    /// Where its frame ends in the stream of its connection.
    pub(super) end: u64,
    pub(super) correlation: i32,
    pub(super) lane: Lane,
    pub(super) attempt: u64,
    pub(super) records: Vec<u64>,
}

/// What a broker has to do to a batch instead of what it would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Meddling {
    /// The batch never reaches the model: this code, and these records named.
    Refuse { code: i16, named: Vec<i32> },
    /// The same, with where the log starts.
    RefuseAt { code: i16, log_start: i64 },
    /// The answer 0 names this offset.
    Lie { offset: i64 },
    /// The answer 0 becomes this code; its offset stays where `offset` says so.
    Instead { code: i16, offset: bool },
    /// The answer has no entry for the partition.
    Omit,
}

impl Meddling {
    const fn keeps_from_model(&self) -> bool {
        match self {
            Self::Refuse { .. } | Self::RefuseAt { .. } => true,
            Self::Lie { .. } | Self::Instead { .. } | Self::Omit => false,
        }
    }
}

/// In which order an answer names its partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    AsAsked,
    Reversed,
}

/// A request that a broker has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) header: RequestHeader,
    pub(super) meddled: Vec<(TopicKey, i32, Meddling)>,
}

/// What an answer tells when it reaches the producer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Delivered {
    /// Nothing that matters here.
    Other,
    /// Replies by partition, and for how long the broker wants silence, in milliseconds.
    Produce {
        correlation: i32,
        replies: Vec<(TopicKey, i32, Reply)>,
        /// Leaders and their epochs, beside errors.
        hints: Vec<(TopicKey, i32, i32, i32)>,
        throttle_ms: i32,
    },
    /// Leaders.
    Metadata(MetadataResponse),
    /// Bytes that mean nothing.
    Garbled,
}

/// A Produce request, or the header of any other; `None` for what is no request at all.
pub(super) fn read_request(frame: &Bytes) -> Option<(RequestHeader, Request)> {
    decode_request(frame.slice(4..), &SERVED).ok()
}

/// What one partition of a Produce request carries, but for its names.
pub(super) fn read_attempt(run: u32, topic: u32, records: &Option<Bytes>) -> Option<Attempt> {
    let batch = Batch::parse(records.clone()?).ok()?;
    let ours = |stored: Stored| match stored {
        Stored::Ours(record) => record,
        // The log will show it as foreign or corrupt.
        Stored::Foreign | Stored::Corrupt => u64::MAX,
    };
    Some(Attempt {
        id: 0,
        connection: 0,
        leader_epoch: 0,
        producer_id: batch.header.producer_id,
        epoch: batch.header.producer_epoch,
        first: batch.header.base_sequence,
        count: u32::try_from(batch.header.count).unwrap_or(0),
        content: u64::from(batch.header.crc) << 32 | batch.bytes.len() as u64,
        records: Stored::all(&batch, |record| mark::read(run, topic, record))
            .into_iter()
            .map(ours)
            .collect(),
        max_timestamp: batch.header.max_timestamp,
        replacement: false,
    })
}

/// The request without the partitions that never reach the model.
pub(super) fn strip(asked: &Asked, request: &ProduceRequest) -> Vec<u8> {
    let mut kept = request.clone();
    let refused = |key: &TopicKey, index: i32| {
        asked.meddled.iter().any(|(topic, partition, meddling)| {
            (topic, *partition) == (key, index) && meddling.keeps_from_model()
        })
    };
    for topic in &mut kept.topics {
        let key = topic.key.clone();
        topic.partitions.retain(|one| !refused(&key, one.index));
    }
    kept.topics.retain(|topic| !topic.partitions.is_empty());
    asked.header.frame(&kept.encode(asked.header.version))
}

/// The answer with what was meddled with.
pub(super) fn rewrite(
    asked: &Asked,
    frame: Vec<u8>,
    throttle_ms: i32,
    order: Order,
) -> (Vec<u8>, Delivered) {
    let bytes = Bytes::from(frame);
    let version = asked.header.version;
    let Some(mut response) = asked.header.read_answer(&bytes, ProduceResponse::decode) else {
        return (bytes.to_vec(), Delivered::Other);
    };
    response.throttle_ms = throttle_ms;
    for (key, index, meddling) in &asked.meddled {
        meddle(&mut response, key, *index, meddling);
    }
    response.topics.retain(|topic| !topic.partitions.is_empty());
    if order == Order::Reversed {
        response.topics.iter_mut().for_each(|topic| topic.partitions.reverse());
        response.topics.reverse();
    }
    let replies = response.topics.iter().flat_map(|topic| {
        let reply = |one: &ProducedPartition| {
            let log_start = if version >= 5 { one.log_start_offset } else { -1 };
            let reply = Reply { code: one.error, base_offset: one.base_offset, log_start };
            (topic.key.clone(), one.index, reply)
        };
        topic.partitions.iter().map(reply)
    });
    let hints = response.topics.iter().flat_map(|topic| {
        let hint = |one: &ProducedPartition| {
            let leader = one.leader.filter(|_| version >= 10)?;
            Some((topic.key.clone(), one.index, leader.node, leader.epoch))
        };
        topic.partitions.iter().filter_map(hint)
    });
    let tells = Delivered::Produce {
        correlation: asked.header.correlation,
        replies: replies.collect(),
        hints: hints.collect(),
        throttle_ms,
    };
    (asked.header.answer(&response.encode(version)), tells)
}

fn meddle(response: &mut ProduceResponse, key: &TopicKey, index: i32, meddling: &Meddling) {
    let topic = response.topics.iter().position(|topic| topic.key == *key);
    let mut told = topic.and_then(|at| {
        response.topics.get_mut(at)?.partitions.iter_mut().find(|one| one.index == index)
    });
    match meddling {
        Meddling::Refuse { code, named } => {
            let mut one = ProducedPartition::refused(index, *code);
            let wrong = |index: &i32| crate::codec::RecordError { index: *index, message: None };
            one.record_errors = named.iter().map(wrong).collect();
            add(response, topic, key, one);
        }
        Meddling::RefuseAt { code, log_start } => {
            let refused = ProducedPartition::refused(index, *code);
            add(
                response,
                topic,
                key,
                ProducedPartition { log_start_offset: *log_start, ..refused },
            );
        }
        Meddling::Lie { offset } => {
            if let Some(one) = told.as_mut().filter(|one| one.error == 0) {
                one.base_offset = *offset;
            }
        }
        Meddling::Instead { code, offset } => {
            if let Some(one) = told.as_mut().filter(|one| one.error == 0) {
                one.error = *code;
                if !offset {
                    one.base_offset = -1;
                }
            }
        }
        Meddling::Omit => {
            if let Some(topic) = topic.and_then(|at| response.topics.get_mut(at)) {
                topic.partitions.retain(|one| one.index != index);
            }
        }
    }
}

fn add(response: &mut ProduceResponse, at: Option<usize>, key: &TopicKey, one: ProducedPartition) {
    match at.and_then(|at| response.topics.get_mut(at)) {
        Some(topic) => topic.partitions.push(one),
        None => response
            .topics
            .push(crate::codec::ProducedTopic { key: key.clone(), partitions: vec![one] }),
    }
}
