//! The seeds of the corpus: golden messages, and hostile ones made by hand. The example `seeds`
//! writes them to `fuzz/corpus`; a test of the main workspace holds the committed files to them.

use candor_sim::codec::{
    ApiVersionsResponse, BatchBuilder, Endpoint, InitProducerIdResponse, LeaderHint,
    MetadataPartition, MetadataResponse, MetadataTopic, ProduceResponse, ProducedPartition,
    ProducedTopic, Record, RecordError, TopicKey, VersionRange,
};

/// One file of the corpus.
///
/// ```
/// let seeds = candor_fuzz_bodies::seeds::all();
/// assert!(seeds.iter().any(|seed| seed.target == "frames" && seed.name == "http"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seed {
    /// Whose corpus it is in.
    pub target: &'static str,
    /// Its file name.
    pub name: String,
    /// Its content.
    pub bytes: Vec<u8>,
}

fn seed(target: &'static str, name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Seed {
    Seed { target, name: name.into(), bytes: bytes.into() }
}

/// All of them.
pub fn all() -> Vec<Seed> {
    let parts = [frames(), api_versions(), metadata(), identities(), produce(), batches()];
    let machines = [talk("requests"), talk("responses"), peers(), schedules()];
    parts.into_iter().chain(machines).flatten().collect()
}

fn frames() -> Vec<Seed> {
    let tls: [&[u8]; 2] =
        [b"\x01\x00\x15\x03\x03\x00\x02\x02\x28", b"\x05\x00\x16\x03\x01\x02\x00\x01"];
    vec![
        seed("frames", "http", b"\x03\x00HTTP/1.1 400 Bad Request\r\n\r\n"),
        seed("frames", "tls-alert", tls[0]),
        seed("frames", "tls-handshake", tls[1]),
        seed("frames", "negative", b"\x01\x00\xff\xff\xff\xff\x00\x00\x00\x01"),
        seed("frames", "shorter-than-its-header", b"\x01\x00\x00\x00\x00\x03\x00\x00\x00"),
        seed("frames", "longer-than-the-limit", b"\x01\x00\x7f\xff\xff\xff\x00\x00\x00\x01"),
        seed("frames", "cut", b"\x02\x00\x00\x00\x00\x08\x00\x00\x00\x01\x00"),
        // Metadata 9: its header has tags.
        seed("frames", "two", b"\x01\x25\x00\x00\x00\x05\x00\x00\x00\x01\x00\x00\x00\x00\x08\x00\x00\x00\x02\x01\x05\x01\xaa"),
        seed("frames", "endless-tags", b"\x09\x25\x00\x00\x00\x09\x00\x00\x00\x01\xff\xff\xff\xff\x0f"),
    ]
}

/// A version and a body, as the bodies read them.
fn versioned(target: &'static str, name: &str, version: u8, body: impl AsRef<[u8]>) -> Seed {
    let bytes = [&[version + 1], body.as_ref()].concat();
    seed(target, format!("v{version}-{name}"), bytes)
}

fn halved(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len() / 2]
}

fn api_versions() -> Vec<Seed> {
    let range = |api, max| VersionRange { api, min: 0, max };
    let response = ApiVersionsResponse {
        error: 0,
        apis: vec![range(0, 13), range(3, 13), range(18, 4), range(22, 5)],
        features_epoch: 7,
        features: vec![("transaction.version".to_owned(), 2)],
    };
    let one = |name, version, body: &[u8]| versioned("api_versions", name, version, body);
    vec![
        one("whole", 0, &response.encode(0)),
        one("whole", 2, &response.encode(2)),
        one("whole", 4, &response.encode(4)),
        one("cut", 4, halved(&response.encode(4))),
        one("fallback", 5, &ApiVersionsResponse::fallback(4).encode(0)),
        one("refused-without-a-list", 5, &[0, 35, 0, 0, 0, 0]),
        one("count-bomb", 0, &[0, 0, 0x7f, 0xff, 0xff, 0xff]),
        one("count-bomb", 3, &[0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f]),
        one("negative-count", 1, &[0, 0, 0xff, 0xff, 0xff, 0xfe]),
        one("tag-twice", 3, &[0, 0, 1, 0, 0, 0, 0, 2, 3, 1, 0, 3, 1, 1]),
        one("tag-with-leftovers", 3, &[0, 0, 1, 0, 0, 0, 0, 1, 3, 2, 0, 0]),
    ]
}

fn endpoint() -> Endpoint {
    Endpoint { node: 1, host: "b1".to_owned(), port: 9092, rack: Some("r".to_owned()) }
}

fn metadata() -> Vec<Seed> {
    let partition = MetadataPartition {
        error: 0,
        index: 0,
        leader: 1,
        leader_epoch: 4,
        replicas: vec![1, 2],
        isr: vec![1],
        offline: vec![2],
    };
    let topic = MetadataTopic {
        error: 0,
        name: Some("t".into()),
        id: [9; 16],
        partitions: vec![partition],
    };
    let response = MetadataResponse {
        brokers: vec![endpoint()],
        cluster_id: Some("cluster".to_owned()),
        controller: 1,
        topics: vec![topic],
        error: 0,
    };
    let unknown = MetadataTopic { error: 100, name: None, id: [8; 16], partitions: vec![] };
    let by_id = MetadataResponse { topics: vec![unknown], error: 129, ..response.clone() };
    let far = Endpoint { port: 70_000, ..endpoint() };
    let far = MetadataResponse { brokers: vec![far], ..response.clone() };
    let one = |name, version, body: &[u8]| versioned("metadata", name, version, body);
    let mut all: Vec<_> =
        [1, 5, 8, 10, 13].map(|v| one("whole", v, &response.encode(v.into()))).into();
    all.extend([
        one("by-id", 13, &by_id.encode(13)),
        one("port-above-65535", 9, &far.encode(9)),
        one("cut", 12, halved(&response.encode(12))),
        one("left-over", 7, &[&response.encode(7)[..], &[0]].concat()),
        one("count-bomb", 3, &[0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff]),
        one("count-bomb", 9, &[0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x07]),
        one("null-array", 1, &[0xff, 0xff, 0xff, 0xff]),
        one("negative-count", 1, &[0x80, 0, 0, 0]),
    ]);
    all
}

fn identities() -> Vec<Seed> {
    let response = InitProducerIdResponse { error: 0, producer_id: 4_000, producer_epoch: 0 };
    let refused = InitProducerIdResponse { error: 31, producer_id: -1, producer_epoch: -1 };
    let nameless = InitProducerIdResponse { error: 0, ..refused };
    let one = |name, version, body: &[u8]| versioned("init_producer_id", name, version, body);
    vec![
        one("whole", 0, &response.encode(0)),
        one("whole", 5, &response.encode(5)),
        one("refused", 1, &refused.encode(1)),
        one("neither-id-nor-error", 4, &nameless.encode(4)),
        one("cut", 2, halved(&response.encode(2))),
        one("left-over", 1, &response.encode(2)),
    ]
}

fn produce() -> Vec<Seed> {
    let partition = ProducedPartition {
        log_append_time_ms: 1_700_000_000_000,
        log_start_offset: 0,
        record_errors: vec![RecordError { index: 1, message: Some("null key".to_owned()) }],
        error_message: Some("no".to_owned()),
        leader: Some(LeaderHint { node: 1, epoch: 7 }),
        ..ProducedPartition::appended(5, 41)
    };
    let topic = |key| ProducedTopic {
        key,
        partitions: vec![partition.clone(), ProducedPartition::refused(6, 6)],
    };
    let named = ProduceResponse {
        topics: vec![topic(TopicKey::Name("t".to_owned()))],
        throttle_ms: 5,
        endpoints: vec![endpoint()],
    };
    let by_id = ProduceResponse { topics: vec![topic(TopicKey::Id([9; 16]))], ..named.clone() };
    let nobody = ProduceResponse { topics: vec![topic(TopicKey::Id([0; 16]))], ..named.clone() };
    let one = |name, version, body: &[u8]| versioned("produce", name, version, body);
    let mut all: Vec<_> = [3, 5, 8, 10].map(|v| one("whole", v, &named.encode(v.into()))).into();
    all.extend([
        one("whole", 13, &by_id.encode(13)),
        one("no-topic-id", 13, &nobody.encode(13)),
        one("cut", 11, halved(&named.encode(11))),
        one("no-topics", 3, &[0; 8]),
        one("topic-without-partitions", 3, &[0, 0, 0, 1, 0, 1, b't', 0, 0, 0, 0, 0, 0, 0, 0]),
        one("count-bomb", 3, &[0x7f, 0xff, 0xff, 0xff]),
        one("inner-count-bomb", 9, &[2, 2, b't', 0xff, 0xff, 0xff, 0xff, 0x0f]),
        one("negative-length", 3, &[0, 0, 0, 1, 0xff, 0xfe]),
    ]);
    all
}

fn batches() -> Vec<Seed> {
    let one =
        |name: &str, fix: u8, batch: Vec<u8>| seed("batch", name, [vec![fix], batch].concat());
    let record = |timestamp, value: &[u8]| Record::new(timestamp, Some(b"k"), Some(value));
    let with_headers = record(1_000, b"v")
        .with_header(b"a", Some(b"1"))
        .with_header(b"a", None)
        .with_header(b"", Some(b""));
    let three = BatchBuilder::new(7, 1, 10)
        .record(record(1_000, b"1"))
        .record(record(1_001, b"2"))
        .record(Record::new(999, None, None))
        .build();
    let plain = || BatchBuilder::new(7, 0, i32::MAX).record(record(0, b"v"));
    let mut bent = three.clone();
    bent[16] = 1;
    let length = three.len();
    let mut negative = three.clone();
    negative[61] = 1;
    vec![
        one("nulls", 0, BatchBuilder::new(7, 0, 0).record(Record::new(0, None, None)).build()),
        one("empties", 0, BatchBuilder::new(7, 0, 0).record(record(0, b"")).build()),
        one("three", 7, three.clone()),
        one("headers", 7, BatchBuilder::new(1 << 32, i16::MAX, 5).record(with_headers).build()),
        one("two-batches", 0, [three.clone(), plain().build()].concat()),
        one("transactional", 7, plain().attributes(16).build()),
        one("append-time", 7, plain().attributes(8).build()),
        one("compressed", 7, plain().attributes(4).build()),
        one("last-offset", 7, plain().record(record(1, b"w")).base_offset(i64::MAX).build()),
        one("count-bomb", 7, plain().claim(i32::MAX, 0).build()),
        one("negative-count", 7, plain().claim(-1, 0).build()),
        one("fewer-than-there-are", 7, plain().claim(0, -1).build()),
        one("old-format", 0, bent),
        one("negative-record", 7, negative),
        one("wrong-checksum", 0, [&three[..length - 1], &[1]].concat()),
        one("cut", 0, halved(&three).to_vec()),
    ]
}

/// Some of every API, in the oldest, a middle and the newest version.
fn talk(target: &'static str) -> Vec<Seed> {
    let versions = [("api-versions", [0, 3, 5]), ("metadata", [0, 8, 12])];
    let more = [("init-producer-id", [0, 2, 5]), ("produce", [0, 6, 10])];
    let all = versions.into_iter().chain(more).zip([2, 1, 3, 0]);
    let bytes =
        |api, version| [api, version].into_iter().chain((0..60_u32).map(|n| (n * 37 % 251) as u8));
    all.flat_map(|((name, versions), api)| {
        versions.map(|version| {
            seed(target, format!("{name}-{version}"), bytes(api, version).collect::<Vec<_>>())
        })
    })
    .collect()
}

/// Newest versions, a peer that behaves by itself as far as it can, and roomy limits.
const WILLING: [u8; 5] = [0, 0, 0, 0, 0b1110];

fn peers() -> Vec<Seed> {
    let one =
        |name: &str, start: [u8; 5], steps: &[u8]| seed("peer", name, [&start, steps].concat());
    let unwilling = [0, 0, 0, 15, 0b1110];
    let oldest = [10, 12, 5, 0, 0b0001];
    // One record is delivered, and the next, for it and for another partition, are asked about.
    let ask = [0, 12, 7, 0, 0, 12, 0, 13];
    let after = |steps: &[u8]| [&ask[..], steps].concat();
    vec![
        one("delivered", WILLING, &after(&[7, 0, 7, 0])),
        one("delivered-by-an-old-broker", oldest, &[0, 12, 3, 0, 7, 0, 0, 12, 3, 0, 7, 0]),
        one(
            "five-in-flight",
            WILLING,
            &[0, 12, 7, 0, 0, 12, 0, 12, 0, 12, 0, 12, 0, 12, 0, 12, 7, 0, 7, 0, 7, 0, 7, 0, 7, 0],
        ),
        one("not-leader", WILLING, &after(&[15, 3, 9, 4, 0, 3, 0, 7, 0])),
        one("out-of-order", WILLING, &after(&[9, 14, 0, 3, 0, 9, 14, 0, 3, 0, 7, 0])),
        one("unknown-producer", WILLING, &after(&[9, 19, 0, 3, 0, 9, 19, 0, 3, 0])),
        one("too-large", WILLING, &after(&[9, 6, 0, 3, 0, 7, 0])),
        one("cut-and-resent", WILLING, &after(&[14, 0, 0, 3, 0, 3, 0, 7, 0])),
        one("torn", WILLING, &after(&[11, 0, 0, 12, 255, 9])),
        one("answered-twice", WILLING, &after(&[17, 0, 0])),
        one("out-of-turn", WILLING, &[0, 12, 7, 0, 0, 12, 0, 12, 17, 0, 1]),
        one(
            "http",
            unwilling,
            b"\x00\x0c\x05\x00\x02\x06\x00\xff\x00\x0d\x00\x1cHTTP/1.1 400 Bad Request\r\n\r\n",
        ),
        one(
            "unasked",
            unwilling,
            b"\x00\x0c\x05\x00\x02\x0d\x00\x08\x00\x00\x00\x04\x00\x00\x00\x00",
        ),
        one("topic-made-anew", WILLING, &after(&[14, 0, 0, 15, 0, 3, 0, 3, 0, 7, 0])),
        one("throttled", WILLING, &after(&[15, 1, 0x7f, 0xff, 7, 0, 0, 12, 3, 0, 3, 0])),
        one("closed-in-doubt", WILLING, &after(&[16, 255, 3, 0, 3, 0])),
        one("body-bomb", WILLING, &after(&[12, 0, 5, 0xff, 0xff, 0xff, 0xff, 0x0f])),
        one("silence", WILLING, &after(&[3, 255, 3, 255])),
    ]
}

fn schedules() -> Vec<Seed> {
    let one =
        |name: &str, start: [u8; 2], steps: &[u8]| seed("schedule", name, [&start, steps].concat());
    // An identity, a leader, and the first record acknowledged.
    let open = [0, 3, 18, 17, 10, 4, 8, 0];
    let five: Vec<u8> = [0, 3, 4].repeat(6);
    let after = |steps: &[u8]| [&open[..], steps].concat();
    vec![
        one("delivered", [0, 0], &open),
        one("six-records-five-offers", [0, 0], &after(&five)),
        one(
            "answers-backwards",
            [0, 0],
            &after(&[&five[..], &[8, 4, 8, 3, 8, 2, 8, 1, 8, 0]].concat()),
        ),
        one(
            "deadlines-in-flight",
            [0, 0],
            &after(&[0, 0, 4, 0, 0, 4, 15, 0, 15, 0, 13, 0, 0, 17, 10, 4]),
        ),
        one("too-large-is-split", [6, 0], &after(&[0, 3, 0, 3, 0, 3, 4, 10, 7, 0, 15, 0, 4, 8, 0])),
        one(
            "out-of-order",
            [0, 0],
            &after(&[&five[..], &[10, 13, 0, 10, 13, 0, 15, 0, 4, 8, 0]].concat()),
        ),
        one("state-lost", [0, 0], &after(&[0, 3, 4, 10, 18, 0, 15, 0, 4, 10, 18, 0, 18, 4, 8, 0])),
        one("fenced", [0, 0], &after(&[0, 3, 4, 10, 15, 0, 4, 18, 4, 8, 0])),
        one("sequence-wraps", [2, 2], &[17, 10, 0, 3, 0, 3, 4, 8, 0, 0, 3, 4, 8, 0]),
        one("last-epoch", [0, 3], &[17, 10, 0, 3, 4, 13, 0, 0, 15, 0, 0, 3, 4, 10, 13, 0, 18, 4]),
        one("topic-made-anew", [0, 0], &after(&[0, 3, 4, 13, 0, 0, 20, 4, 17, 10, 4])),
        one("on-hold", [0, 0], &after(&[21, 0, 0, 3, 4, 21, 1, 4, 8, 0])),
        one(
            "closed-in-doubt",
            [0, 0],
            &after(&[&five[..], &[20, 247, 15, 0, 15, 0, 0, 3]].concat()),
        ),
        one("forgotten", [0, 0], &after(&[0, 3, 4, 13, 0, 0, 15, 255, 17, 10, 4])),
        one("misuse", [0, 0], &after(&[22, 9, 0, 22, 9, 1, 22, 9, 2, 22, 9, 3, 23, 0])),
        // Ticket 2 is in doubt and revoked: two others take its slot, or it turns out written.
        one(
            "revoked-slot-is-taken",
            [6, 0],
            &after(&[0, 3, 4, 8, 0, 0, 3, 4, 13, 0, 0, 20, 23, 0, 3, 0, 3, 17, 2, 15, 0, 4, 8, 0]),
        ),
        one(
            "revoked-and-delivered",
            [6, 0],
            &after(&[
                0, 3, 4, 8, 0, 0, 3, 4, 13, 0, 0, 20, 23, 0, 3, 0, 3, 17, 2, 15, 0, 4, 10, 13, 0,
                4, 15, 0, 4, 8, 0,
            ]),
        ),
        one("revoked-before-it-is-offered", [0, 0], &after(&[0, 3, 0, 3, 20, 23, 4, 8, 0])),
        one("abandoned", [0, 0], &after(&[0, 3, 4, 0, 3, 4, 20, 7, 8, 0, 13, 0, 0, 4, 8, 0])),
        one("stops", [16, 0], &after(&[0, 3, 4, 12, 0, 0, 0, 0, 0, 0, 0, 0, 3, 4])),
    ]
}
