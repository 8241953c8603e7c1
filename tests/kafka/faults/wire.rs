//! What passes the proxies: Produce requests and what brokers say to them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Buf as _, Bytes, BytesMut};
use candor_sim::codec::{
    Batch, PRODUCE, ProduceRequest, ProduceResponse, Request, RequestHeader, TopicKey,
    VersionRange, decode_request,
};

const SERVED: [VersionRange; 1] = [VersionRange { api: PRODUCE, min: 3, max: 13 }];
/// Longer frames do not come from our producer.
const LONGEST: usize = 100 << 20;
/// So many complaints say what is wrong.
const ENOUGH: usize = 20;

/// Everything that passed.
#[derive(Debug, Default)]
pub(crate) struct Wire(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    topics: Vec<TopicKey>,
    batches: BTreeMap<Slot, Vec<Content>>,
    counts: Counts,
    complaints: Vec<String>,
}

/// Where a batch wants to stand: topic, partition, producer id, epoch, first sequence.
type Slot = (usize, i32, i64, i16, i32);
/// Its number of records, and its checksum.
type Content = (i32, u32);

/// What passed, in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Produce requests that a proxy read whole.
    pub(crate) requests: u64,
    /// Batches in them, each attempt counted.
    pub(crate) attempts: u64,
    /// Different batches among them.
    pub(crate) batches: u64,
    /// Slots that contents of different lengths want: replacements of what was revoked (rules C),
    /// and of nothing else.
    pub(crate) contested: u64,
    /// Answers to batches by code, with and without a base offset.
    pub(crate) codes: BTreeMap<String, u64>,
}

impl Wire {
    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What passed, and what was wrong with it.
    pub(crate) fn told(&self) -> (Counts, Vec<String>) {
        let seen = self.lock();
        let batches = seen.batches.values().map(|contents| contents.len() as u64).sum();
        let contested = seen.batches.values().filter(|contents| contents.len() > 1).count() as u64;
        (Counts { batches, contested, ..seen.counts.clone() }, seen.complaints.clone())
    }
}

impl Seen {
    fn complain(&mut self, text: String) {
        if self.complaints.len() < ENOUGH {
            self.complaints.push(text);
        }
    }

    fn ask(&mut self, produce: &ProduceRequest) {
        self.counts.requests += 1;
        if produce.acks != -1 {
            self.complain(format!("a Produce with acks={}", produce.acks));
        }
        for topic in &produce.topics {
            for one in &topic.partitions {
                let batch = one.records.clone().map(Batch::parse);
                match batch {
                    Some(Ok(batch)) => self.see(&topic.key, one.index, &batch),
                    Some(Err(why)) => self.complain(format!("a batch that cannot be read: {why}")),
                    None => self.complain("a Produce without records".to_owned()),
                }
            }
        }
    }

    /// S2, S4: one identity, first sequence and count name one content for ever, however often it
    /// is offered.
    fn see(&mut self, key: &TopicKey, partition: i32, batch: &Batch) {
        self.counts.attempts += 1;
        let topic = self.topics.iter().position(|known| known == key).unwrap_or_else(|| {
            self.topics.push(key.clone());
            self.topics.len() - 1
        });
        let head = &batch.header;
        let slot = (topic, partition, head.producer_id, head.producer_epoch, head.base_sequence);
        let contents = self.batches.entry(slot).or_default();
        match contents.iter().find(|(count, _)| *count == head.count) {
            Some((_, crc)) if *crc == head.crc => {}
            Some(_) => {
                let text = format!("two contents of {} records in one slot: {slot:?}", head.count);
                self.complain(text);
            }
            None => contents.push((head.count, head.crc)),
        }
    }

    fn answer(&mut self, response: &ProduceResponse) {
        for one in response.topics.iter().flat_map(|topic| &topic.partitions) {
            let place = match one.base_offset {
                -1 => "@-1",
                _ if one.error == 0 => "",
                _ => "@offset",
            };
            *self.counts.codes.entry(format!("{}{place}", one.error)).or_default() += 1;
        }
    }
}

/// One connection's two directions.
#[derive(Debug)]
pub(crate) struct Conversation {
    wire: Arc<Wire>,
    asked: Mutex<Asked>,
    answered: Mutex<Frames>,
}

#[derive(Debug, Default)]
struct Asked {
    frames: Frames,
    open: BTreeMap<i32, RequestHeader>,
}

impl Conversation {
    /// A connection that has said nothing yet.
    pub(crate) fn new(wire: Arc<Wire>) -> Self {
        Self { wire, asked: Mutex::default(), answered: Mutex::default() }
    }

    /// The client sent this.
    pub(crate) fn asks(&self, bytes: &[u8]) {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.frames.take(bytes);
        while let Some(frame) = asked.frames.next() {
            // Everything but Produce is not served here.
            if let Ok((header, Request::Produce(produce))) = decode_request(frame, &SERVED) {
                asked.open.insert(header.correlation, header);
                self.wire.lock().ask(&produce);
            }
        }
    }

    /// The broker sent this.
    pub(crate) fn answers(&self, bytes: &[u8]) {
        let mut answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        answered.take(bytes);
        while let Some(frame) = answered.next() {
            let Some(correlation) = frame.get(..4).and_then(|raw| raw.try_into().ok()) else {
                continue;
            };
            let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(header) = asked.open.remove(&i32::from_be_bytes(correlation)) else {
                continue;
            };
            let read = header.open_answer(frame);
            let read = read.and_then(|(_, mut r)| ProduceResponse::decode(&mut r, header.version));
            match read {
                Ok(response) => self.wire.lock().answer(&response),
                Err(why) => {
                    self.wire.lock().complain(format!("an answer that cannot be read: {why:?}"));
                }
            }
        }
    }
}

/// Whole frames out of any chunks.
#[derive(Debug, Default)]
struct Frames {
    inbox: BytesMut,
}

impl Frames {
    fn take(&mut self, bytes: &[u8]) {
        self.inbox.extend_from_slice(bytes);
    }

    /// The next frame without its length.
    fn next(&mut self) -> Option<Bytes> {
        let head: [u8; 4] = self.inbox.get(..4)?.try_into().ok()?;
        let length = usize::try_from(i32::from_be_bytes(head)).ok().filter(|n| *n <= LONGEST)?;
        if self.inbox.len() < 4 + length {
            return None;
        }
        self.inbox.advance(4);
        Some(self.inbox.split_to(length).freeze())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use candor_sim::codec::{BatchBuilder, ProducePartition, ProduceTopic, Record};

    use super::*;

    /// A whole Produce request with one record.
    pub(crate) fn produce(value: &[u8], first: i32) -> Vec<u8> {
        produce_all(&[value], first)
    }

    fn produce_all(values: &[&[u8]], first: i32) -> Vec<u8> {
        let record = |value: &&[u8]| Record::new(1, None, Some(value));
        let empty = BatchBuilder::new(4_000, 0, first);
        let batch = values.iter().map(record).fold(empty, BatchBuilder::record).build();
        let request = ProduceRequest {
            transactional_id: None,
            acks: -1,
            timeout_ms: 1_000,
            topics: vec![ProduceTopic {
                key: TopicKey::Name("t".into()),
                partitions: vec![ProducePartition { index: 0, records: Some(batch.into()) }],
            }],
        };
        RequestHeader::new(PRODUCE, 9, 7).frame(&request.encode(9))
    }

    #[test]
    fn a_slot_with_two_contents_is_told_and_a_retry_is_not() {
        let wire = Arc::new(Wire::default());
        let talk = Conversation::new(Arc::clone(&wire));
        for request in [produce(b"a", 0), produce(b"a", 0), produce(b"b", 1)] {
            request.chunks(7).for_each(|chunk| talk.asks(chunk));
        }
        let (counts, complaints) = wire.told();
        assert_eq!((counts.requests, counts.attempts, counts.batches), (3, 3, 2));
        assert!(complaints.is_empty(), "{complaints:?}");
        talk.asks(&produce(b"c", 0));
        assert_eq!(wire.told().1.len(), 1, "another content in the first slot");
        talk.asks(&produce_all(&[b"b", b"c"], 1));
        let (counts, complaints) = wire.told();
        assert_eq!((counts.contested, complaints.len()), (1, 1), "a longer one is a contest");
    }
}
