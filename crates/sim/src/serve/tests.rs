//! Tests at the level of bytes: a client written by hand against the net, in virtual time.

mod faults;
mod sockets;
mod vectors;

use std::collections::BTreeMap;

use bytes::Bytes;

use super::*;
use crate::codec::{
    BatchBuilder, PRODUCE, ProducePartition, ProduceRequest, ProduceResponse, ProduceTopic, Reader,
    Record, RequestHeader, TopicKey,
};

/// A producer id that nobody handed out; the model does not mind.
const P: i64 = 4000;

/// A batch of `n` records, `(epoch, first, n)` of [`P`].
fn batch(epoch: i16, first: i32, n: usize) -> Bytes {
    of(P, epoch, first, n)
}

fn of(pid: i64, epoch: i16, first: i32, n: usize) -> Bytes {
    let named =
        |i| Record::new(0, Some(b"k"), Some(format!("{pid}/{epoch}/{}", first + i).as_bytes()));
    let n = i32::try_from(n).unwrap();
    (0..n).fold(BatchBuilder::new(pid, epoch, first), |b, i| b.record(named(i))).build().into()
}

/// A request of acks=all to one partition of "t".
fn to(partition: i32, records: Bytes) -> ProduceRequest {
    all(-1, vec![(partition, Some(records))])
}

fn all(acks: i16, partitions: Vec<(i32, Option<Bytes>)>) -> ProduceRequest {
    let one = |(index, records)| ProducePartition { index, records };
    let partitions = partitions.into_iter().map(one).collect();
    let topics = vec![ProduceTopic { key: TopicKey::Name("t".into()), partitions }];
    ProduceRequest { transactional_id: None, acks, timeout_ms: 1_000, topics }
}

/// Codes and offsets of a response, by partition.
fn codes(response: &ProduceResponse) -> Vec<(i32, i16, i64)> {
    let all = response.topics.iter().flat_map(|topic| &topic.partitions);
    let mut all: Vec<_> = all.map(|one| (one.index, one.error, one.base_offset)).collect();
    all.sort_unstable();
    all
}

/// A net and the other ends of its connections.
struct Bench {
    net: Net,
    now: u64,
    correlation: i32,
    /// What came out of each connection and was not looked at yet.
    arrived: BTreeMap<ConnectionId, Vec<u8>>,
    closed: Vec<ConnectionId>,
}

impl Bench {
    /// One broker with a topic "t" of four partitions.
    fn new() -> Self {
        Self::of(Settings { topics: vec![("t".into(), 4)], ..Settings::default() })
    }

    /// Three brokers, with a topic "t" of one partition with three replicas, led by 1.
    fn three(replication: Replication) -> Self {
        let topics = vec![("t".into(), 1)];
        let settings =
            Settings { brokers: 3, replicas: 3, topics, replication, ..Settings::default() };
        Self::of(settings)
    }

    fn of(settings: Settings) -> Self {
        let arrived = BTreeMap::new();
        Self { net: Net::new(settings), now: 0, correlation: 0, arrived, closed: Vec::new() }
    }

    fn connect(&mut self, node: u8) -> ConnectionId {
        self.net.connect(node).unwrap()
    }

    fn fault(&mut self, trigger: Trigger, effect: Effect) {
        self.net.inject(Fault { trigger, effect });
    }

    fn frame(&mut self, api: i16, version: i16, body: &[u8]) -> (RequestHeader, Vec<u8>) {
        self.correlation += 1;
        let header = RequestHeader::new(api, version, self.correlation);
        let frame = header.frame(body);
        (header, frame)
    }

    fn send(&mut self, on: ConnectionId, api: i16, version: i16, body: &[u8]) -> RequestHeader {
        let (header, frame) = self.frame(api, version, body);
        self.net.receive(self.now, on, &frame);
        self.collect();
        header
    }

    /// Sends a Produce of version 9.
    fn produce(&mut self, on: ConnectionId, request: &ProduceRequest) -> RequestHeader {
        self.send(on, PRODUCE, 9, &request.encode(9))
    }

    fn collect(&mut self) {
        while let Some(output) = self.net.poll() {
            match output {
                Output::Bytes { connection, bytes } => {
                    self.arrived.entry(connection).or_default().extend(bytes);
                }
                Output::Closed { connection } => self.closed.push(connection),
            }
        }
    }

    fn elapse(&mut self, micros: u64) {
        self.now += micros;
        self.net.tick(self.now);
        self.collect();
    }

    /// The next whole answer on a connection, which must be to this request.
    fn answer(&mut self, on: ConnectionId, to: &RequestHeader) -> Option<Reader> {
        let arrived = self.arrived.get_mut(&on)?;
        let length = u32::from_be_bytes(arrived.get(..4)?.try_into().unwrap()) as usize;
        if arrived.len() < 4 + length {
            return None;
        }
        let frame: Vec<u8> = arrived.drain(..4 + length).skip(4).collect();
        let (correlation, reader) = to.open_answer(frame.into()).unwrap();
        assert_eq!(correlation, to.correlation, "answers come in the order of the requests");
        Some(reader)
    }

    fn produced(&mut self, on: ConnectionId, to: &RequestHeader) -> Option<ProduceResponse> {
        let mut reader = self.answer(on, to)?;
        let response = ProduceResponse::decode(&mut reader, to.version).unwrap();
        reader.finish().unwrap();
        Some(response)
    }

    /// Sends a Produce and reads what comes of it: code and offset of its partitions.
    fn ask(&mut self, on: ConnectionId, request: &ProduceRequest) -> Option<Vec<(i32, i16, i64)>> {
        let header = self.produce(on, request);
        self.produced(on, &header).as_ref().map(codes)
    }

    /// How many records partition `index` of "t" has.
    fn end(&self, index: usize) -> usize {
        self.net.records("t", index).unwrap().len()
    }
}
