//! What a hostile peer can make a producer hold: never more than four bytes for every byte that it
//! sent, and 64 KiB. Everything that this process allocates is counted, so that there is one test.
#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests")]

mod peer;

use candor_proto::Fault;
use candor_sim::codec::{
    Endpoint, LeaderHint, MetadataResponse, MetadataTopic, ProduceResponse, ProducedPartition,
    ProducedTopic, RecordError, RequestHeader, TopicKey,
};
use peer::{Peer, Speaks, Stage, topic, versions};

/// How many elements a hostile array has.
const MANY: i32 = 30_000;

/// What the connection is to end with; nothing if it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    No,
    Frame,
    Malformed,
    Contradiction,
    Unasked,
}

impl Ends {
    fn of(fault: &Fault) -> Option<Self> {
        match fault {
            Fault::Frame(_) => Some(Self::Frame),
            Fault::Malformed(_) => Some(Self::Malformed),
            Fault::Contradiction => Some(Self::Contradiction),
            Fault::Unasked => Some(Self::Unasked),
            Fault::Lost(_)
            | Fault::ConnectTimeout
            | Fault::RequestTimeout
            | Fault::Correlation { .. }
            | Fault::NoCommonVersion(_)
            | Fault::Refused(_)
            | Fault::ForeignCluster
            | Fault::Rebootstrap => None,
        }
    }
}

/// Answers, made for the request that they answer; each is one round.
type Answer = fn(&RequestHeader, round: i32) -> Vec<u8>;

struct Attack {
    name: &'static str,
    stage: Stage,
    speaks: Speaks,
    answer: Answer,
    rounds: i32,
    ends: Ends,
}

const fn attack(name: &'static str, stage: Stage, speaks: Speaks, answer: Answer) -> Attack {
    Attack { name, stage, speaks, answer, rounds: 1, ends: Ends::No }
}

impl Attack {
    const fn rounds(self, rounds: i32) -> Self {
        Self { rounds, ..self }
    }

    const fn ends(self, ends: Ends) -> Self {
        Self { ends, ..self }
    }
}

const NEWEST: Speaks = Speaks::NEWEST;
const OLD: Speaks = Speaks::OLD;
/// Flexible, and topics by name.
const BY_NAME: Speaks = Speaks { produce: 12, metadata: 12, identity: 4 };

const ATTACKS: &[Attack] = &[
    attack("a length that is never filled", Stage::Greeting, NEWEST, |_, _| {
        [&(15_i32 << 20).to_be_bytes()[..], &[0; 3_000]].concat()
    }),
    attack("a length beyond the limit", Stage::Metadata, NEWEST, |_, _| {
        [&i32::MAX.to_be_bytes()[..], &[0; 3_000]].concat()
    })
    .ends(Ends::Frame),
    attack("another protocol", Stage::Produce, OLD, |_, _| {
        b"HTTP/1.1 400 Bad Request\r\n\r\n".repeat(100)
    })
    .ends(Ends::Frame),
    attack("answers that nobody asked for", Stage::Produce, OLD, |header, _| {
        [
            header.answer(&produced(header, 2, 0).encode(header.version)),
            [0, 0, 0, 4, 0, 0, 0, 9].repeat(5_000),
        ]
        .concat()
    })
    .ends(Ends::Unasked),
    attack("tags in a header", Stage::Metadata, NEWEST, |header, _| {
        let mut frame = header.correlation.to_be_bytes().to_vec();
        frame.extend(tags(MANY));
        frame.extend(topic(2, 5, [9; 16]).encode(header.version));
        [&(frame.len() as i32).to_be_bytes()[..], &frame].concat()
    }),
    attack("tags in a body", Stage::Identity, NEWEST, |header, _| {
        let mut body = vec![0, 0, 0, 0, 0, 0];
        body.extend(4_000_i64.to_be_bytes());
        body.extend([0, 0]);
        body.extend(tags(MANY));
        header.answer(&body)
    }),
    attack("very many APIs", Stage::Greeting, NEWEST, |header, _| {
        let mut response = versions(NEWEST);
        let api = response.apis[0];
        response.apis.extend((0..MANY).map(|_| api));
        header.answer(&response.encode(header.version.min(4)))
    }),
    attack("very many features", Stage::Greeting, NEWEST, |header, _| {
        let mut body = versions(NEWEST).encode(header.version.min(4));
        assert_eq!(body.pop(), Some(0), "it has no tags");
        let mut features =
            vec![0x81 + (MANY % 128) as u8, (MANY >> 7 & 127) as u8 | 128, (MANY >> 14) as u8];
        features.extend([1, 0, 1, 0, 1, 0].repeat(MANY as usize));
        for tag in [0, 2] {
            body.extend(if tag == 0 { &[2, 0][..] } else { &[2] });
            body.extend(uvarint(features.len()));
            body.extend(&features);
        }
        header.answer(&body)
    }),
    attack("a count that is not there", Stage::Greeting, NEWEST, |header, _| {
        header.answer(&[0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f])
    })
    .ends(Ends::Malformed),
    attack("a count of brokers that are not there", Stage::Metadata, OLD, |header, _| {
        header.answer(&[0x7f, 0xff, 0xff, 0xff, 0])
    })
    .ends(Ends::Malformed),
    attack("very many brokers", Stage::Metadata, OLD, |header, _| {
        header.answer(&brokers(0).encode(header.version))
    }),
    attack("very many brokers, flexibly", Stage::Metadata, NEWEST, |header, _| {
        header.answer(&brokers(0).encode(header.version))
    }),
    attack("other brokers every time", Stage::Metadata, NEWEST, |header, round| {
        header.answer(&brokers(round * 1_000).encode(header.version))
    })
    .rounds(20),
    attack("very many topics", Stage::Metadata, OLD, |header, _| {
        header.answer(&topics("").encode(header.version))
    }),
    attack("one topic very often", Stage::Metadata, OLD, |header, _| {
        header.answer(&topics("t").encode(header.version))
    }),
    attack("one topic refused very often", Stage::Metadata, NEWEST, |header, _| {
        let mut response = topics("t");
        response.topics.iter_mut().for_each(|topic| topic.error = 17);
        header.answer(&response.encode(header.version))
    }),
    attack("very many partitions", Stage::Metadata, OLD, |header, _| {
        header.answer(&topic(MANY, 5, [9; 16]).encode(header.version))
    }),
    attack("very many partitions in doubt", Stage::Metadata, NEWEST, |header, round| {
        header.answer(&topic(MANY, 5 - round, [9; 16]).encode(header.version))
    })
    .rounds(2),
    attack("one partition very often", Stage::Metadata, NEWEST, |header, _| {
        let mut response = topic(MANY, 5, [9; 16]);
        for (at, partition) in response.topics[0].partitions.iter_mut().enumerate() {
            (partition.index, partition.leader_epoch) = (at as i32 % 2, at as i32);
        }
        header.answer(&response.encode(header.version))
    }),
    attack("a topic made anew every time", Stage::Metadata, NEWEST, |header, round| {
        header.answer(&topic(2, 5, [round as u8 + 1; 16]).encode(header.version))
    })
    .rounds(100),
    attack("answers for partitions that nobody asked about", Stage::Produce, OLD, |header, _| {
        header.answer(&produced(header, MANY, 0).encode(header.version))
    })
    .ends(Ends::Contradiction),
    attack("one partition answered very often", Stage::Produce, BY_NAME, |header, _| {
        let mut response = produced(header, MANY, 0);
        response.topics[0].partitions.iter_mut().for_each(|partition| partition.index %= 2);
        header.answer(&response.encode(header.version))
    })
    .ends(Ends::Contradiction),
    attack("very many records refused", Stage::Produce, BY_NAME, |header, _| {
        let mut response = produced(header, 2, 87);
        let error = RecordError { index: 0, message: None };
        response.topics[0].partitions[0].record_errors = vec![error; MANY as usize];
        response.topics[0].partitions[1].error_message = Some("m".repeat(30_000));
        header.answer(&response.encode(header.version))
    }),
    attack("very many leaders", Stage::Produce, BY_NAME, |header, _| {
        let mut response = produced(header, 2, 6);
        response.topics[0].partitions[0].leader = Some(LeaderHint { node: 7, epoch: 99 });
        response.endpoints = brokers(0).brokers;
        header.answer(&response.encode(header.version))
    }),
    attack(
        "halves of answers, on one connection after the other",
        Stage::Greeting,
        OLD,
        |header, _| {
            let whole = header.answer(&versions(OLD).encode(0).repeat(1_000));
            whole[..whole.len() / 2].to_vec()
        },
    )
    .rounds(100),
];

fn brokers(from: i32) -> MetadataResponse {
    let broker = |node| Endpoint { node, host: "h".to_owned(), port: 9092, rack: None };
    let many = (from..from + MANY / 10).map(broker);
    let mut response = topic(2, 5, [9; 16]);
    response.brokers.extend(many);
    response
}

/// Very many topics without partitions.
fn topics(name: &str) -> MetadataResponse {
    let one =
        MetadataTopic { error: 0, name: Some(name.to_owned()), id: [9; 16], partitions: vec![] };
    let mut response = topic(2, 5, [9; 16]);
    response.topics.extend((0..MANY).map(|_| one.clone()));
    response
}

fn produced(header: &RequestHeader, partitions: i32, error: i16) -> ProduceResponse {
    let key = match header.version {
        13.. => TopicKey::Id([9; 16]),
        _ => TopicKey::Name("t".to_owned()),
    };
    let partition = |index| match error {
        0 => ProducedPartition::appended(index, 10),
        code => ProducedPartition::refused(index, code),
    };
    let partitions = (0..partitions).map(partition).collect();
    let topics = vec![ProducedTopic { key, partitions }];
    ProduceResponse { topics, throttle_ms: 0, endpoints: vec![] }
}

fn uvarint(value: usize) -> Vec<u8> {
    vec![value as u8 | 128, (value >> 7) as u8 | 128, (value >> 14 & 127) as u8]
}

/// So many empty tags that mean nothing.
fn tags(count: i32) -> Vec<u8> {
    let mut bytes = uvarint(count as usize);
    bytes.extend([99, 0].repeat(count as usize));
    bytes
}

fn run(attack: &Attack, chunk: usize) -> String {
    let mut peer = Peer::at(attack.stage, attack.speaks);
    peer.turn_hostile();
    for round in 0..attack.rounds {
        let conn = peer.until(attack.stage);
        let header = peer.take_request(conn);
        let bytes = (attack.answer)(&header, round);
        peer.send(conn, &bytes, chunk);
        if attack.stage == Stage::Greeting && attack.rounds > 1 {
            peer.lose(conn);
        }
    }
    let cost = peer.cost();
    let ends = peer.faults.iter().find_map(Ends::of).unwrap_or(Ends::No);
    assert_eq!(ends, attack.ends, "{}, {chunk} bytes at a time: {:?}", attack.name, peer.faults);
    let chunk = if chunk == usize::MAX { "all".to_owned() } else { chunk.to_string() };
    let told = format!(
        "{}, {chunk} bytes at a time: {} received, at most {} held, {} left",
        attack.name, cost.received, cost.highest, cost.left
    );
    if cost.excess > 0 { format!("{told}: {} TOO MUCH", cost.excess) } else { told }
}

#[test]
fn a_peer_buys_four_bytes_of_memory_with_one_of_its_own() {
    let mut all = Vec::new();
    for attack in ATTACKS {
        for chunk in [usize::MAX, 1_000, 7] {
            all.push(run(attack, chunk));
        }
    }
    let all = all.join("\n");
    println!("{all}");
    assert!(!all.contains("TOO MUCH"), "{all}");
}
