//! Produce, between the bytes of the wire and the integers of the model.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::convert::judged;
use crate::broker::{self, Answer, PartAnswer, ProducePart, TopicRef, code};
use crate::codec::{
    Endpoint, LeaderHint, ProduceRequest, ProduceResponse, ProducedPartition, ProducedTopic,
    RecordError, TopicKey,
};

/// What the model is asked.
pub(super) fn to_model(request: &ProduceRequest, version: i16) -> broker::ProduceRequest<Bytes> {
    let part = |topic: &TopicKey, index: i32, records: &Option<Bytes>| ProducePart {
        topic: match topic {
            TopicKey::Name(name) => TopicRef::Name(name.clone()),
            TopicKey::Id(id) => TopicRef::Id(*id),
        },
        partition: index,
        batch: judged(&records.clone().unwrap_or_default()),
    };
    let parts = request.topics.iter().flat_map(|topic| {
        topic.partitions.iter().map(|one| part(&topic.key, one.index, &one.records))
    });
    broker::ProduceRequest {
        acks: request.acks,
        timeout_ms: request.timeout_ms,
        version,
        parts: parts.collect(),
    }
}

/// The same code for every partition that a request names; nothing is asked of the model.
pub(super) fn refuse_all(request: broker::ProduceRequest<Bytes>, code: i16) -> Vec<PartAnswer> {
    let refused = |part: ProducePart<Bytes>| PartAnswer {
        topic: part.topic,
        partition: part.partition,
        answer: Answer::error(code),
    };
    request.parts.into_iter().map(refused).collect()
}

/// The model's answers as the wire has them. `endpoints` says where leaders are reached.
pub(super) fn to_wire(
    answers: &[PartAnswer],
    endpoints: &BTreeMap<u8, Endpoint>,
    throttle_ms: i32,
) -> ProduceResponse {
    let mut response = ProduceResponse { throttle_ms, ..ProduceResponse::default() };
    for part in answers {
        let key = match &part.topic {
            TopicRef::Name(name) => TopicKey::Name(name.clone()),
            TopicRef::Id(id) => TopicKey::Id(*id),
        };
        let one = produced(part.partition, &part.answer);
        let leader = part.answer.current_leader.and_then(|hint| endpoints.get(&hint.node.0));
        if let Some(endpoint) = leader.filter(|one| !response.endpoints.contains(one)) {
            response.endpoints.push(endpoint.clone());
        }
        match response.topics.iter_mut().find(|topic| topic.key == key) {
            Some(topic) => topic.partitions.push(one),
            None => response.topics.push(ProducedTopic { key, partitions: vec![one] }),
        }
    }
    response
}

fn produced(index: i32, answer: &Answer) -> ProducedPartition {
    let wrong = |index: &i32| RecordError { index: *index, message: None };
    // Brokers name the leader only beside the error that needs it.
    let hint = answer.current_leader.filter(|_| answer.code == code::NOT_LEADER_OR_FOLLOWER);
    ProducedPartition {
        index,
        error: answer.code,
        base_offset: answer.base_offset,
        log_append_time_ms: answer.log_append_time,
        log_start_offset: answer.log_start_offset,
        record_errors: answer.record_errors.iter().map(wrong).collect(),
        error_message: answer.message.map(str::to_owned),
        leader: hint.map(|hint| LeaderHint { node: i32::from(hint.node.0), epoch: hint.epoch }),
    }
}
