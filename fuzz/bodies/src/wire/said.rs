//! What brokers say, as the simulator's codec writes it, read by `candor-wire` and by the oracle.

use candor_sim::codec::{
    ApiVersionsResponse, Endpoint, InitProducerIdResponse, LeaderHint, MetadataPartition,
    MetadataResponse, MetadataTopic, ProduceResponse, ProducedPartition, ProducedTopic,
    RecordError, TopicKey, VersionRange,
};
use candor_wire::{Api, PRODUCE_BY_ID, api_versions, init_producer_id, metadata, produce};
use kafka_protocol::messages as theirs;

use super::oracle::agree;
use super::responses::{metadata_of, outcome, produced, versions_of};
use crate::feed::Feed;

/// Bytes as a response of any API and version: what the simulator's codec writes must be what
/// `kafka-protocol` reads and writes back, and `candor-wire` must read the same values.
pub fn responses(data: &[u8]) {
    let mut feed = Feed::new(data);
    let api = feed.pick(&Api::ALL);
    let range = api.supported();
    let version = range.min + i16::from(feed.byte()) % (range.max - range.min + 1);
    match api {
        Api::ApiVersions => versions(&mut feed, version),
        Api::Metadata => description(&mut feed, version),
        Api::InitProducerId => identity(&mut feed, version),
        Api::Produce => verdicts(&mut feed, version),
    }
}

fn some<T>(feed: &mut Feed<'_>, mut one: impl FnMut(&mut Feed<'_>) -> T) -> Vec<T> {
    (0..feed.byte() % 5).map(|_| one(feed)).collect()
}

/// Versions refused are answered in version 0, which has a target of its own.
fn versions(feed: &mut Feed<'_>, version: i16) {
    let error = Some(feed.i16()).filter(|error| *error != 35).unwrap_or_default();
    let apis = some(feed, |f| VersionRange { api: f.i16(), min: f.i16(), max: f.i16() });
    let flexible = version >= 3;
    let response = ApiVersionsResponse {
        apis,
        features_epoch: if flexible { feed.i64().max(-1) } else { -1 },
        features: if flexible { some(feed, |f| (f.text(), f.i16())) } else { vec![] },
        ..ApiVersionsResponse::refused(error)
    };
    let body = response.encode(version);
    agree::<theirs::ApiVersionsResponse>(version.min(4), &body);
    let read = api_versions::Response::decode(version, &body).expect("it is well formed");
    assert_eq!(versions_of(&read), response);
}

fn endpoint(feed: &mut Feed<'_>, racks: bool) -> Endpoint {
    Endpoint {
        node: feed.i32() & i32::MAX,
        host: feed.text(),
        port: i32::from(feed.i16() as u16),
        rack: (racks && feed.byte() & 1 == 0).then(|| feed.text()),
    }
}

fn partition(feed: &mut Feed<'_>, version: i16) -> MetadataPartition {
    MetadataPartition {
        error: feed.i16(),
        index: feed.i32(),
        leader: feed.i32().max(-1),
        leader_epoch: if version >= 7 { feed.i32() } else { -1 },
        replicas: some(feed, |f| f.i32()),
        isr: some(feed, |f| f.i32()),
        offline: if version >= 5 { some(feed, |f| f.i32()) } else { vec![] },
    }
}

fn topic(feed: &mut Feed<'_>, version: i16) -> MetadataTopic {
    let nameless = version >= 12 && feed.byte() & 1 == 0;
    MetadataTopic {
        error: feed.i16(),
        name: (!nameless).then(|| feed.text()),
        id: if version >= 10 { [feed.byte(); 16] } else { [0; 16] },
        partitions: some(feed, |f| partition(f, version)),
    }
}

fn description(feed: &mut Feed<'_>, version: i16) {
    let response = MetadataResponse {
        brokers: some(feed, |f| endpoint(f, version >= 1)),
        cluster_id: (version >= 2 && feed.byte() & 1 == 0).then(|| feed.text()),
        controller: feed.i32().max(-1),
        topics: some(feed, |f| topic(f, version)),
        error: if version >= 13 { feed.i16() } else { 0 },
    };
    let body = response.encode(version);
    agree::<theirs::MetadataResponse>(version, &body);
    let read = metadata::Response::decode(version, &body).expect("it is well formed");
    assert_eq!(metadata_of(&read), response);
}

fn identity(feed: &mut Feed<'_>, version: i16) {
    let error = if feed.byte() & 1 == 0 { 0 } else { feed.i16() };
    let (producer_id, producer_epoch) = (feed.i64(), feed.i16());
    let response = InitProducerIdResponse { error, producer_id, producer_epoch };
    let body = response.encode(version);
    agree::<theirs::InitProducerIdResponse>(version, &body);
    let read = init_producer_id::Response::decode(version, &body).expect("it is well formed");
    assert_eq!(read.outcome, outcome(&response));
}

fn refused_record(feed: &mut Feed<'_>) -> RecordError {
    RecordError {
        index: feed.i32() & i32::MAX,
        message: (feed.byte() & 1 == 0).then(|| feed.text()),
    }
}

fn verdict(feed: &mut Feed<'_>, version: i16) -> ProducedPartition {
    let hinted = version >= 10 && feed.byte() & 1 == 0;
    ProducedPartition {
        base_offset: feed.i64(),
        log_append_time_ms: feed.i64(),
        log_start_offset: if version >= 5 { feed.i64() } else { -1 },
        record_errors: if version >= 8 { some(feed, refused_record) } else { vec![] },
        error_message: (version >= 8 && feed.byte() & 1 == 0).then(|| feed.text()),
        leader: hinted.then(|| LeaderHint { node: feed.i32() & i32::MAX, epoch: feed.i32() }),
        ..ProducedPartition::refused(feed.i32(), feed.i16())
    }
}

/// `produced` has every partition under a topic of its own.
fn verdicts(feed: &mut Feed<'_>, version: i16) {
    let topics = some(feed, |feed| {
        let key = match version {
            PRODUCE_BY_ID.. => TopicKey::Id([feed.byte() | 1; 16]),
            _ => TopicKey::Name(feed.text()),
        };
        ProducedTopic { key, partitions: vec![verdict(feed, version)] }
    });
    let throttle_ms = feed.i32();
    let endpoints = if version >= 10 { some(feed, |f| endpoint(f, true)) } else { vec![] };
    let response = ProduceResponse { topics, throttle_ms, endpoints };
    let body = response.encode(version);
    agree::<theirs::ProduceResponse>(version, &body);
    let read = produce::Response::decode(version, &body).expect("it is well formed");
    assert_eq!(produced(&read), response);
}
