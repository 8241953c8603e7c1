//! What passes the proxies: Produce requests and what brokers say to them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use candor_sim::codec::{
    Batch, PRODUCE, ProduceRequest, ProduceResponse, Request, RequestHeader, TopicKey,
    VersionRange, decode_request, frame_length, whole_frame,
};
use candor_sim::judge::{Fate, Log, fate};

use super::mark::place;

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
    topics: Vec<(TopicKey, u32)>,
    batches: BTreeMap<Slot, Vec<Content>>,
    counts: Counts,
    complaints: Vec<String>,
}

/// Where a batch wants to stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Slot {
    topic: u32,
    partition: i32,
    producer_id: i64,
    epoch: i16,
    first: i32,
}

/// One of those that want to stand there, and what became of its attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Content {
    count: i32,
    crc: u32,
    offered: u64,
    refused: u64,
    /// Some attempt is refused only if -1 beside 3 and 6 means that (H1).
    by_offset: bool,
}

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
    /// Batches all of whose attempts were refused.
    pub(crate) refused: u64,
    /// Those among them that are so only if `base_offset = -1` beside 3 and 6 is a proof (H1).
    pub(crate) refused_by_offset: u64,
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
        let all = || seen.batches.values().flatten();
        let refused = || all().filter(|content| content.is_refused());
        let counts = Counts {
            batches: all().count() as u64,
            contested: seen.batches.values().filter(|contents| contents.len() > 1).count() as u64,
            refused: refused().count() as u64,
            refused_by_offset: refused().filter(|content| content.by_offset).count() as u64,
            ..seen.counts.clone()
        };
        (counts, seen.complaints.clone())
    }

    /// What brokers refused at every attempt must not stand in a log (rules 1; H1 for -1 beside 3
    /// and 6, which this checks on the version at hand).
    pub(crate) fn refuted_by(&self, logs: &[Log]) -> Vec<String> {
        let seen = self.lock();
        let mut refuted = Vec::new();
        for log in logs {
            for batch in &log.batches {
                let slot = Slot {
                    topic: log.topic,
                    partition: log.partition,
                    producer_id: batch.producer_id,
                    epoch: batch.epoch,
                    first: batch.first,
                };
                let contents = seen.batches.get(&slot).into_iter().flatten();
                let same = |content: &&Content| content.count as usize == batch.records.len();
                match contents.clone().find(same) {
                    Some(content) if content.is_refused() => {
                        refuted.push(format!(
                            "refused at every attempt, and in the log: {content:?}, {slot:?}"
                        ));
                    }
                    Some(_) => {}
                    None => refuted.push(format!("in the log, and never offered: {slot:?}")),
                }
            }
        }
        refuted
    }
}

impl Content {
    const fn is_refused(&self) -> bool {
        self.offered == self.refused
    }
}

impl Seen {
    fn complain(&mut self, text: String) {
        if self.complaints.len() < ENOUGH {
            self.complaints.push(text);
        }
    }

    /// Gives what was asked for each partition.
    fn ask(&mut self, produce: &ProduceRequest) -> Vec<Attempt> {
        self.counts.requests += 1;
        if produce.acks != -1 {
            self.complain(format!("a Produce with acks={}", produce.acks));
        }
        let mut attempts = Vec::new();
        for topic in &produce.topics {
            for one in &topic.partitions {
                match one.records.clone().map(Batch::parse) {
                    Some(Ok(batch)) => attempts.extend(self.see(&topic.key, one.index, &batch)),
                    Some(Err(why)) => self.complain(format!("a batch that cannot be read: {why}")),
                    None => self.complain("a Produce without records".to_owned()),
                }
            }
        }
        attempts
    }

    /// S2, S4: one identity, first sequence and count name one content for ever, however often it
    /// is offered.
    fn see(&mut self, key: &TopicKey, partition: i32, batch: &Batch) -> Option<Attempt> {
        self.counts.attempts += 1;
        let Some(topic) = self.topic_of(key, partition, batch) else {
            self.complain(format!(
                "bytes of another place are sent to partition {partition} of {key:?}"
            ));
            return None;
        };
        let head = &batch.header;
        let slot = Slot {
            topic,
            partition,
            producer_id: head.producer_id,
            epoch: head.producer_epoch,
            first: head.base_sequence,
        };
        let contents = self.batches.entry(slot).or_default();
        let known = contents.iter().position(|content| content.count == head.count);
        let (count, crc) = (head.count, head.crc);
        let at = known.unwrap_or_else(|| {
            contents.push(Content { count, crc, offered: 0, refused: 0, by_offset: false });
            contents.len() - 1
        });
        contents[at].offered += 1;
        if contents[at].crc != crc {
            self.complain(format!("two contents of {count} records in one slot: {slot:?}"));
        }
        Some(Attempt { key: key.clone(), slot, count })
    }

    /// CHK-7: every record says where it belongs, and a topic's name or id means one topic only.
    fn topic_of(&mut self, key: &TopicKey, partition: i32, batch: &Batch) -> Option<u32> {
        let records = batch.records().ok()?;
        let mut places = records.iter().map(|record| place(record.value.as_deref()));
        let (topic, first) = places.next()??;
        if first != partition || places.any(|place| place != Some((topic, partition))) {
            return None;
        }
        match self.topics.iter().find(|(known, _)| known == key) {
            Some((_, known)) => (*known == topic).then_some(topic),
            None => {
                self.topics.push((key.clone(), topic));
                Some(topic)
            }
        }
    }

    fn answer(&mut self, attempts: &[Attempt], response: &ProduceResponse) {
        for topic in &response.topics {
            for one in &topic.partitions {
                let (code, offset) = (one.error, one.base_offset);
                let shown = match offset {
                    -1 => "@-1",
                    _ if code == 0 => "",
                    _ => "@offset",
                };
                *self.counts.codes.entry(format!("{code}{shown}")).or_default() += 1;
                let asked = attempts.iter().find(|attempt| {
                    attempt.key == topic.key && attempt.slot.partition == one.index
                });
                if let Some(asked) = asked {
                    self.judge(asked, code, offset);
                }
            }
        }
    }

    fn judge(&mut self, attempt: &Attempt, code: i16, offset: i64) {
        let contents = self.batches.entry(attempt.slot).or_default();
        let content = contents.iter_mut().find(|content| content.count == attempt.count);
        if let Some(content) = content.filter(|_| fate(code, offset, true) == Fate::NotAppended) {
            content.refused += 1;
            content.by_offset |= fate(code, offset, false) != Fate::NotAppended;
        }
    }
}

/// One batch of a request.
#[derive(Clone, Debug)]
struct Attempt {
    key: TopicKey,
    slot: Slot,
    count: i32,
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
    open: BTreeMap<i32, (RequestHeader, Vec<Attempt>)>,
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
                let attempts = self.wire.lock().ask(&produce);
                asked.open.insert(header.correlation, (header, attempts));
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
            let Some((header, attempts)) = asked.open.remove(&i32::from_be_bytes(correlation))
            else {
                continue;
            };
            let read = header.open_answer(frame);
            let read = read.and_then(|(_, mut r)| ProduceResponse::decode(&mut r, header.version));
            match read {
                Ok(response) => self.wire.lock().answer(&attempts, &response),
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
        frame_length(&self.inbox).filter(|length| *length <= 4 + LONGEST)?;
        whole_frame(&mut self.inbox).map(|frame| frame.slice(4..))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use candor_sim::codec::{
        BatchBuilder, ProducePartition, ProduceTopic, ProducedPartition, ProducedTopic, Record,
    };
    use candor_sim::judge::{LogBatch, Stored};

    use super::super::mark::marked;
    use super::*;

    /// A whole Produce request with one record.
    pub(crate) fn produce(record: u64, first: i32) -> Vec<u8> {
        produce_all(&[record], first)
    }

    fn produce_all(records: &[u64], first: i32) -> Vec<u8> {
        let record = |record: &u64| {
            let value = marked(9, *record, 2, 0, 5);
            Record::new(1, None, Some(value.as_bytes()))
        };
        let empty = BatchBuilder::new(4_000, 0, first);
        let batch = records.iter().map(record).fold(empty, BatchBuilder::record).build();
        request("t", batch)
    }

    fn request(topic: &str, batch: Vec<u8>) -> Vec<u8> {
        let request = ProduceRequest {
            transactional_id: None,
            acks: -1,
            timeout_ms: 1_000,
            topics: vec![ProduceTopic {
                key: TopicKey::Name(topic.into()),
                partitions: vec![ProducePartition { index: 0, records: Some(batch.into()) }],
            }],
        };
        RequestHeader::new(PRODUCE, 9, 7).frame(&request.encode(9))
    }

    fn refusal(code: i16, base_offset: i64) -> Vec<u8> {
        let one = ProducedPartition { base_offset, ..ProducedPartition::refused(0, code) };
        let topics = vec![ProducedTopic { key: TopicKey::Name("t".into()), partitions: vec![one] }];
        let response = ProduceResponse { topics, throttle_ms: 0, endpoints: Vec::new() };
        RequestHeader::new(PRODUCE, 9, 7).answer(&response.encode(9))
    }

    fn world() -> (Arc<Wire>, Conversation) {
        let wire = Arc::new(Wire::default());
        (Arc::clone(&wire), Conversation::new(wire))
    }

    #[test]
    fn a_slot_with_two_contents_is_told_and_a_retry_is_not() {
        let (wire, talk) = world();
        for request in [produce(1, 0), produce(1, 0), produce(2, 1)] {
            request.chunks(7).for_each(|chunk| talk.asks(chunk));
        }
        let (counts, complaints) = wire.told();
        assert_eq!((counts.requests, counts.attempts, counts.batches), (3, 3, 2));
        assert!(complaints.is_empty(), "{complaints:?}");
        talk.asks(&produce(3, 0));
        assert_eq!(wire.told().1.len(), 1, "another content in the first slot");
        talk.asks(&produce_all(&[2, 3], 1));
        let (counts, complaints) = wire.told();
        assert_eq!((counts.contested, complaints.len()), (1, 1), "a longer one is a contest");
    }

    #[test]
    fn bytes_in_another_place_than_theirs_are_told() {
        let (wire, talk) = world();
        talk.asks(&produce(1, 0));
        let elsewhere = Record::new(1, None, Some(marked(9, 2, 3, 0, 5).as_bytes()));
        let batch = BatchBuilder::new(4_000, 0, 1).record(elsewhere).build();
        talk.asks(&request("t", batch));
        assert_eq!(wire.told().1.len(), 1);
    }

    #[test]
    fn what_was_refused_at_every_attempt_must_not_be_in_a_log() {
        let batch = |first| LogBatch {
            base_offset: 0,
            producer_id: 4_000,
            epoch: 0,
            first,
            max_timestamp: None,
            records: vec![Stored::Ours(1)],
        };
        let log = |first| [Log { topic: 2, partition: 0, batches: vec![batch(first)] }];
        for (code, offset, proof) in [(19, -1, true), (6, -1, true), (6, 4, false), (7, 4, false)] {
            let (wire, talk) = world();
            talk.asks(&produce(1, 0));
            assert!(wire.refuted_by(&log(0)).is_empty(), "not answered");
            talk.answers(&refusal(code, offset));
            assert_eq!(wire.refuted_by(&log(0)).len(), usize::from(proof), "{code}@{offset}");
            assert_eq!(wire.told().0.refused_by_offset, u64::from(code == 6 && proof));
            talk.asks(&produce(1, 0));
            assert!(wire.refuted_by(&log(0)).is_empty(), "once more, not answered");
            assert_eq!(wire.refuted_by(&log(8)).len(), 1, "nobody offered that");
        }
    }
}
