//! Vectors 22 to 25, 44 to 46, 48, 49, 85, 87 to 89 as measured on 3.9 to 4.4, over the wire.

use super::*;
use crate::broker::Profile;
use crate::codec::{
    API_VERSIONS, ApiVersionsRequest, ApiVersionsResponse, CONTROL, INIT_PRODUCER_ID,
    InitProducerIdRequest, InitProducerIdResponse, METADATA, MetadataQuery, MetadataRequest,
    MetadataResponse, TRANSACTIONAL, VersionRange,
};

fn spoiled(mut batch: Vec<u8>) -> Bytes {
    batch[17] ^= 1;
    batch.into()
}

#[test]
fn v22_what_no_client_may_send_is_refused_and_harms_nobody() {
    let mut bench = Bench::new();
    let on = bench.connect(1);
    let sound = || BatchBuilder::new(P, 0, 0).records(1, 0, b"v");
    let cut = batch(0, 0, 1);
    let wrong: [(&str, Bytes, i16); 6] = [
        ("control", sound().attributes(CONTROL).build().into(), 87),
        ("base offset", sound().base_offset(5).build().into(), 87),
        ("no records", BatchBuilder::new(P, 0, 0).build().into(), 87),
        ("count", BatchBuilder::new(P, 0, 0).records(2, 0, b"v").claim(3, 1).build().into(), 87),
        ("cut", cut.slice(..cut.len() - 3), 87),
        ("transactional", sound().attributes(TRANSACTIONAL).build().into(), 53),
    ];
    for (what, records, code) in wrong {
        assert_eq!(bench.ask(on, &to(0, records)), Some(vec![(0, code, -1)]), "{what}");
    }
    assert_eq!(bench.ask(on, &to(0, batch(0, 0, 1))), Some(vec![(0, 0, 0)]));
    assert_eq!(bench.end(0), 1);
}

#[test]
fn v24_null_records_are_never_answered_and_nothing_behind_them() {
    let mut bench = Bench::new();
    let on = bench.connect(1);
    let stuck = bench.produce(on, &all(-1, vec![(0, None)]));
    let behind = bench.produce(on, &to(0, batch(0, 0, 1)));
    bench.elapse(3_600_000_000);
    assert!(bench.produced(on, &stuck).is_none());
    assert!(bench.produced(on, &behind).is_none());
    let other = bench.connect(1);
    assert_eq!(bench.ask(other, &to(0, batch(0, 0, 1))), Some(vec![(0, 0, 0)]));
    bench.net.hang_up(bench.now, on, Hangup::Fin);
    assert!(!bench.net.is_open(on));
}

#[test]
fn v25_unknown_partitions_get_3() {
    let mut bench = Bench::new();
    let on = bench.connect(1);
    let mut elsewhere = to(0, batch(0, 0, 1));
    elsewhere.topics[0].key = TopicKey::Name("nowhere".into());
    assert_eq!(bench.ask(on, &elsewhere), Some(vec![(0, 3, -1)]));
    assert_eq!(bench.ask(on, &to(9, batch(0, 0, 1))), Some(vec![(9, 3, -1)]));
    assert_eq!(bench.ask(on, &to(-1, batch(0, 0, 1))), Some(vec![(-1, 3, -1)]));
}

#[test]
fn v44_acks_of_one_and_none() {
    let mut bench = Bench::new();
    let on = bench.connect(1);
    let with = |acks, records| all(acks, vec![(0, Some(records))]);
    assert_eq!(bench.ask(on, &with(1, batch(0, 0, 2))), Some(vec![(0, 0, 0)]));
    assert_eq!(bench.ask(on, &with(1, batch(0, 0, 2))), Some(vec![(0, 0, 0)]));
    assert_eq!(bench.ask(on, &with(0, batch(0, 2, 2))), None);
    assert_eq!(bench.end(0), 4);
    assert!(bench.net.is_open(on));
    assert_eq!(bench.ask(on, &with(0, batch(0, 9, 1))), None);
    assert_eq!(bench.closed, [on]);
    let again = bench.connect(1);
    assert_eq!(bench.ask(again, &with(2, batch(0, 4, 1))), Some(vec![(0, 21, -1)]));
    assert_eq!(bench.ask(again, &with(-1, batch(0, 4, 1))), Some(vec![(0, 0, 4)]));
}

#[test]
fn v45_partitions_of_one_request_are_judged_alone() {
    let mut bench = Bench::new();
    let on = bench.connect(1);
    let bad = spoiled(batch(0, 0, 1).to_vec());
    let mut request = all(
        -1,
        vec![
            (0, Some(batch(0, 0, 1))),
            (1, Some(bad)),
            (2, Some(batch(3, 0, 1))),
            (3, Some(of(P + 1, 0, 0, 1))),
        ],
    );
    let partitions = vec![ProducePartition { index: 7, records: Some(batch(0, 0, 1)) }];
    request.topics.push(ProduceTopic { key: TopicKey::Name("nowhere".into()), partitions });
    let header = bench.produce(on, &request);
    let response = bench.produced(on, &header).unwrap();
    let order: Vec<i32> =
        response.topics.iter().flat_map(|t| t.partitions.iter().map(|p| p.index)).collect();
    assert_ne!(order, [0, 1, 2, 3, 7], "nobody may count on the order of the request");
    let expected = [(0, 0, 0), (1, 2, -1), (2, 0, 0), (3, 0, 0), (7, 3, -1)];
    assert_eq!(codes(&response), expected);
}

#[test]
fn v46_one_batch_and_one_entry_per_partition() {
    let mut bench = Bench::new();
    let on = bench.connect(1);
    assert_eq!(bench.ask(on, &to(0, batch(0, 0, 1))), Some(vec![(0, 0, 0)]));
    let two = [batch(0, 1, 1), batch(0, 2, 1)].concat();
    assert_eq!(bench.ask(on, &to(0, two.into())), Some(vec![(0, 87, -1)]));
    let twice = vec![(0, Some(batch(0, 1, 1))), (0, Some(batch(0, 2, 1)))];
    assert_eq!(bench.ask(on, &all(-1, twice)), Some(vec![(0, 45, -1)]));
    let mut twice = to(0, batch(0, 1, 1));
    twice.topics.extend(to(0, batch(0, 2, 1)).topics);
    assert_eq!(bench.ask(on, &twice), Some(vec![(0, 45, -1)]));
    assert_eq!(bench.end(0), 1);
    assert_eq!(bench.ask(on, &all(-1, vec![])), Some(vec![]));
}

#[test]
fn v48_every_producer_id_is_new() {
    let mut bench = Bench::new();
    let on = bench.connect(1);
    let mut ask = |request: InitProducerIdRequest| {
        let header = bench.send(on, INIT_PRODUCER_ID, 4, &request.encode(4));
        let mut reader = bench.answer(on, &header).unwrap();
        InitProducerIdResponse::decode(&mut reader, 4).unwrap()
    };
    let plain = InitProducerIdRequest::idempotent();
    let holding = |producer_id, producer_epoch| InitProducerIdRequest {
        producer_id,
        producer_epoch,
        ..plain.clone()
    };
    let first = ask(plain.clone());
    assert_eq!((first.error, first.producer_epoch), (0, 0));
    let second = ask(holding(first.producer_id, 0));
    let third = ask(holding(first.producer_id, 5));
    assert_eq!((second.error, second.producer_epoch, third.error), (0, 0, 0));
    let ids = [first.producer_id, second.producer_id, third.producer_id];
    assert!(ids[0] < ids[1] && ids[1] < ids[2]);
    let refused = ask(holding(first.producer_id, -1));
    assert_eq!((refused.error, refused.producer_id, refused.producer_epoch), (42, -1, -1));
    let named = InitProducerIdRequest { transactional_id: Some(String::new()), ..plain.clone() };
    assert_eq!(ask(named).error, 42);
}

fn versions(bench: &mut Bench, on: ConnectionId, version: i16, name: &str) -> ApiVersionsResponse {
    let body = ApiVersionsRequest::named(name, "1.0").encode(version.min(5));
    let header = bench.send(on, API_VERSIONS, version, &body);
    // An unknown version is answered in the form of version 0.
    let form = RequestHeader { version: if version > 5 { 0 } else { version }, ..header };
    let mut reader = bench.answer(on, &form).unwrap();
    let response = ApiVersionsResponse::decode(&mut reader, form.version).unwrap();
    reader.finish().unwrap();
    response
}

#[test]
fn v49_versions_are_negotiated() {
    let maxima = [
        (Profile::V2_4, 3, 8),
        (Profile::V3_9, 4, 11),
        (Profile::V4_0, 4, 12),
        (Profile::V4_3, 4, 13),
        (Profile::V4_4, 5, 13),
    ];
    for (profile, max, produce) in maxima {
        let mut bench = Bench::of(Settings { profile, ..Settings::default() });
        let on = bench.connect(1);
        let unknown = versions(&mut bench, on, 99, "x");
        assert_eq!(unknown.error, 35);
        assert_eq!(unknown.apis, [VersionRange { api: API_VERSIONS, min: 0, max }]);
        let known = versions(&mut bench, on, 3, "x");
        assert_eq!(known.error, 0);
        assert!(known.apis.contains(&VersionRange { api: PRODUCE, min: 0, max: produce }));
        assert_eq!(versions(&mut bench, on, 3, "ex p").error, 42);
        assert_eq!(versions(&mut bench, on, 0, "").error, 0);
        for version in [2, produce + 1] {
            let on = bench.connect(1);
            let body = to(0, batch(0, 0, 1)).encode(version);
            let header = bench.send(on, PRODUCE, version, &body);
            assert!(bench.answer(on, &header).is_none());
            assert!(bench.closed.contains(&on), "version {version} closes the connection");
        }
    }
}

/// 3.9.2: a timestamp two hours ahead is fine. 4.x: it is not, and the record is named.
#[test]
fn v87_timestamps_ahead() {
    const TWO_HOURS: i64 = 7_200_000;
    for (profile, code) in [(Profile::V3_9, 0), (Profile::V4_0, 32), (Profile::V4_4, 32)] {
        let topics = vec![("t".into(), 1)];
        let mut bench = Bench::of(Settings { profile, topics, ..Settings::default() });
        let on = bench.connect(1);
        let ahead = BatchBuilder::new(P, 0, 0).records(1, TWO_HOURS, b"v").build();
        let header = bench.produce(on, &to(0, ahead.into()));
        let response = bench.produced(on, &header).unwrap();
        let one = &response.topics[0].partitions[0];
        assert_eq!(one.error, code);
        let wrong: Vec<i32> = one.record_errors.iter().map(|error| error.index).collect();
        assert_eq!(wrong, if code == 0 { vec![] } else { vec![0] });
    }
}

fn topic_id(bench: &mut Bench, on: ConnectionId) -> Option<[u8; 16]> {
    let topics = Some(vec![MetadataQuery { id: [0; 16], name: Some("t".into()) }]);
    let request = MetadataRequest { topics, allow_auto_topic_creation: false };
    let header = bench.send(on, METADATA, 12, &request.encode(12));
    let mut reader = bench.answer(on, &header).unwrap();
    let response = MetadataResponse::decode(&mut reader, 12).unwrap();
    reader.finish().unwrap();
    response.topics.first().filter(|topic| topic.error == 0).map(|topic| topic.id)
}

#[test]
fn v88_v89_a_topic_made_anew_is_noticed_by_id_only() {
    let mut bench = Bench::new();
    let on = bench.connect(1);
    let id = topic_id(&mut bench, on).unwrap();
    let by_id = |id, records| {
        let mut request = to(0, records);
        request.topics[0].key = TopicKey::Id(id);
        request.encode(13)
    };
    let ask = |bench: &mut Bench, id, records| {
        let header = bench.send(on, PRODUCE, 13, &by_id(id, records));
        let response = bench.produced(on, &header).unwrap();
        assert_eq!(response.topics[0].key, TopicKey::Id(id));
        codes(&response)
    };
    assert_eq!(ask(&mut bench, [0; 16], batch(0, 0, 1)), [(0, 100, -1)]);
    assert_eq!(ask(&mut bench, id, batch(0, 0, 1)), [(0, 0, 0)]);
    assert_eq!(ask(&mut bench, id, batch(0, 1, 1)), [(0, 0, 1)]);
    assert!(bench.net.cluster_mut().delete_topic("t"));
    assert_eq!(ask(&mut bench, id, batch(0, 2, 3)), [(0, 100, -1)]);
    assert_eq!(bench.ask(on, &to(0, batch(0, 2, 3))), Some(vec![(0, 3, -1)]));
    bench.net.cluster_mut().create_topic("t", 1, 1);
    assert_eq!(ask(&mut bench, id, batch(0, 2, 3)), [(0, 100, -1)]);
    assert_eq!(bench.ask(on, &to(0, batch(0, 2, 3))), Some(vec![(0, 0, 0)]));
    assert_ne!(topic_id(&mut bench, on), Some(id));
}
