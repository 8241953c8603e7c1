//! Answers to Produce requests: made as the scenario says, and read as the producer reads them.

use bytes::Bytes;
use candor_core::Instant;

use super::book::Book;
use super::brokers::Scripted;
use super::link::Pending;
use super::offers::Offers;
use super::script::{Answer, Part};
use super::words::Place;
use crate::codec::{
    LeaderHint, ProduceResponse, ProducedPartition, ProducedTopic, RecordError, Request, TopicKey,
};
use crate::judge::{Fact, Reply};
use crate::timeline::What;

/// The place of each batch in a Produce request, with the name under which the request knows its
/// topic.
fn places(pending: &Pending, offers: &Offers) -> Vec<(TopicKey, Place)> {
    let Request::Produce(produce) = &pending.request else { return Vec::new() };
    let keys = produce
        .topics
        .iter()
        .flat_map(|topic| topic.partitions.iter().map(|part| (&topic.key, part.index)));
    keys.filter_map(|(key, partition)| {
        let topic = match key {
            TopicKey::Name(name) => name.clone(),
            TopicKey::Id(id) => offers.ids.get(id)?.clone(),
        };
        Some((key.clone(), Place { topic, partition }))
    })
    .collect()
}

/// The bytes of an answer that says what the scenario wants.
pub(super) fn make(
    pending: &Pending,
    offers: &Offers,
    scripted: Option<&Scripted>,
    answer: &Answer,
    parts: &[Part],
) -> Bytes {
    let places = places(pending, offers);
    let mut response = ProduceResponse {
        throttle_ms: i32::try_from(answer.throttle.as_millis()).unwrap_or(i32::MAX),
        ..ProduceResponse::default()
    };
    for part in parts {
        match &part.place {
            None => places.iter().for_each(|(key, place)| {
                add(&mut response, key, entry(part, place.partition, scripted));
            }),
            Some(place) => {
                let known = places.iter().find(|(_, of)| of.topic == place.topic);
                let key = match known {
                    Some((key, _)) => key.clone(),
                    // Nobody asked about this topic.
                    None if pending.header.version >= 13 => TopicKey::Id([0xee; 16]),
                    None => TopicKey::Name(place.topic.clone()),
                };
                add(&mut response, &key, entry(part, place.partition, scripted));
            }
        }
        let endpoint = part.hint.as_ref().and_then(|(name, _)| scripted?.endpoint(name));
        response.endpoints.extend(endpoint);
    }
    pending.header.answer(&response.encode(pending.header.version)).into()
}

fn add(response: &mut ProduceResponse, key: &TopicKey, one: ProducedPartition) {
    match response.topics.iter_mut().find(|topic| topic.key == *key) {
        Some(topic) => topic.partitions.push(one),
        None => {
            response.topics.push(ProducedTopic { key: key.clone(), partitions: vec![one] });
        }
    }
}

fn entry(part: &Part, index: i32, scripted: Option<&Scripted>) -> ProducedPartition {
    let mut one = ProducedPartition::refused(index, part.code);
    one.base_offset = part.offset;
    one.log_start_offset = part.log_start;
    let wrong = |(index, message): &(i32, Option<String>)| RecordError {
        index: *index,
        message: message.clone(),
    };
    one.record_errors = part.records.iter().map(wrong).collect();
    one.leader = part.hint.as_ref().and_then(|(name, epoch)| {
        let node = scripted?.endpoint(name)?.node;
        Some(LeaderHint { node, epoch: *epoch })
    });
    one
}

/// An answer reaches the producer: for the judge, and for the page.
pub(super) fn heard(
    book: &mut Book,
    offers: &Offers,
    now: Instant,
    pending: &Pending,
    frame: &Bytes,
) {
    let version = pending.header.version;
    let read = pending.header.read_answer(frame, ProduceResponse::decode);
    let places = places(pending, offers);
    for (number, (key, place)) in pending.offers.iter().zip(&places) {
        let Some(offered) = offers.all.get(*number) else { continue };
        let (lane, attempt) = (offered.lane, *number as u64);
        let said = read.as_ref().and_then(|response| {
            let topics = response.topics.iter().filter(|topic| topic.key == *key);
            let mut all = topics
                .flat_map(|topic| &topic.partitions)
                .filter(|one| one.index == place.partition);
            let first = all.next()?;
            // What is told twice and differently is told not at all.
            all.all(|one| one == first).then_some(first)
        });
        let reply = said.map(|one| Reply {
            code: one.error,
            base_offset: one.base_offset,
            log_start: if version >= 5 { one.log_start_offset } else { -1 },
        });
        match reply {
            Some(Reply { code, base_offset, .. }) => {
                let offset = (base_offset >= 0).then_some(base_offset);
                book.tell(now, What::Answered { attempt, code, offset });
            }
            None => book.tell(now, What::Ended { attempt, partly: false }),
        }
        book.fact(now, Fact::Answered { lane, attempt, reply });
    }
}
