//! What `candor-wire` writes, read by two others.

use bytes::Bytes;
use candor_core::{Identity, Payload, ProducerEpoch, ProducerId, Sequence};
use candor_sim::codec;
use candor_wire::{
    Api, BatchReader, FrozenBatch, Header, NodeId, RecordBatch, RecordRef, RequestHeader, Topic,
    TopicId, api_versions, init_producer_id, metadata, produce,
};
use kafka_protocol::messages::{
    ApiVersionsRequest, InitProducerIdRequest, MetadataRequest, ProduceRequest,
};
use kafka_protocol::protocol::decode_request_header_from_buffer;
use kafka_protocol::records::RecordBatchDecoder;

use super::oracle::agree;
use crate::feed::Feed;

/// Bytes as a request of any API and version: what is written must be what the simulator's codec
/// writes of the same values, byte for byte, and what `kafka-protocol` reads and writes back.
pub fn requests(data: &[u8]) {
    let mut feed = Feed::new(data);
    let api = feed.pick(&Api::ALL);
    let range = api.supported();
    let version = range.min + i16::from(feed.byte()) % (range.max - range.min + 1);
    let client_id = (feed.byte() & 1 == 0).then(|| feed.text());
    let header = RequestHeader { correlation_id: feed.i32(), client_id: client_id.as_deref() };
    match api {
        Api::ApiVersions => versions(&mut feed, version, header),
        Api::Metadata => topics(&mut feed, version, header),
        Api::InitProducerId => identity(&mut feed, version, header),
        Api::Produce => batches(&mut feed, version, header),
    }
}

/// Frame, header and body as both others have them. The oracle ends at version 4 of ApiVersions.
fn compare<T: kafka_protocol::protocol::Decodable + kafka_protocol::protocol::Encodable>(
    (api, version): (Api, i16),
    header: RequestHeader<'_>,
    frame: &Bytes,
    theirs: &[u8],
) {
    let expected = codec::RequestHeader {
        api: api.key(),
        version,
        correlation: header.correlation_id,
        client_id: header.client_id.map(str::to_owned),
    };
    assert_eq!(frame, &expected.frame(theirs), "{api} v{version}");
    let served = [codec::VersionRange { api: api.key(), min: version, max: version }];
    let read = codec::decode_request(frame.slice(4..), &served).expect("a broker reads it");
    assert_eq!(read.0, expected);
    if (api, version) == (Api::ApiVersions, 5) {
        return;
    }
    let mut rest = frame.slice(4..);
    let read = decode_request_header_from_buffer(&mut rest).expect("the oracle reads the header");
    assert_eq!(read.correlation_id, header.correlation_id);
    assert_eq!(read.client_id.as_deref(), header.client_id);
    agree::<T>(version, &rest);
}

fn versions(feed: &mut Feed<'_>, version: i16, header: RequestHeader<'_>) {
    let (name, number, cluster) = (feed.text(), feed.text(), feed.text());
    let node = NodeId::new(feed.i32());
    let request = api_versions::Request {
        software_name: &name,
        software_version: &number,
        expected: node.map(|node| api_versions::Expected { cluster_id: &cluster, node }),
    };
    let theirs = codec::ApiVersionsRequest {
        cluster_id: node.map(|_| cluster.clone()),
        node_id: node.map_or(-1, NodeId::get),
        ..codec::ApiVersionsRequest::named(&name, &number)
    };
    let frame = request.encode(version, &header).expect("it can be said");
    let kind = (Api::ApiVersions, version);
    compare::<ApiVersionsRequest>(kind, header, &frame, &theirs.encode(version));
}

fn topics(feed: &mut Feed<'_>, version: i16, header: RequestHeader<'_>) {
    let kind = feed.byte();
    let count = usize::from(feed.byte() % 5);
    let names: Vec<String> = (0..count).map(|_| feed.text()).collect();
    let ids: Vec<TopicId> = (0..count).filter_map(|_| topic_id(feed)).collect();
    let borrowed: Vec<&str> = names.iter().map(String::as_str).collect();
    let named =
        names.iter().map(|name| codec::MetadataQuery { id: [0; 16], name: Some(name.clone()) });
    let by_id = ids.iter().map(|id| codec::MetadataQuery { id: id.bytes(), name: None });
    let (ours, theirs) = match kind % 3 {
        0 => (metadata::Topics::All, None),
        1 if version >= candor_wire::METADATA_BY_ID => {
            (metadata::Topics::Ids(&ids), Some(by_id.collect()))
        }
        _ => (metadata::Topics::Names(&borrowed), Some(named.collect())),
    };
    let allow_auto_topic_creation = kind & 64 == 0;
    let request = metadata::Request { topics: ours, allow_auto_topic_creation };
    let theirs = codec::MetadataRequest { topics: theirs, allow_auto_topic_creation };
    let frame = request.encode(version, &header).expect("it can be said");
    let kind = (Api::Metadata, version);
    compare::<MetadataRequest>(kind, header, &frame, &theirs.encode(version));
}

fn topic_id(feed: &mut Feed<'_>) -> Option<TopicId> {
    let mut id = [0; 16];
    id.fill_with(|| feed.byte());
    TopicId::new(id)
}

fn identity(feed: &mut Feed<'_>, version: i16, header: RequestHeader<'_>) {
    let transactional = (feed.byte() & 1 == 0).then(|| feed.text());
    let timeout = feed.i32();
    let named = (ProducerId::new(feed.i64()), ProducerEpoch::new(feed.i16()));
    let current = match named {
        (Some(id), Some(epoch)) => Some(Identity { id, epoch }),
        (None, _) | (_, None) => None,
    };
    let request = init_producer_id::Request {
        transactional_id: transactional.as_deref(),
        transaction_timeout_ms: timeout,
        current,
    };
    let theirs = codec::InitProducerIdRequest {
        transactional_id: transactional.clone(),
        transaction_timeout_ms: timeout,
        producer_id: current.map_or(-1, |identity| identity.id.get()),
        producer_epoch: current.map_or(-1, |identity| identity.epoch.get()),
    };
    let frame = request.encode(version, &header).expect("it can be said");
    let kind = (Api::InitProducerId, version);
    compare::<InitProducerIdRequest>(kind, header, &frame, &theirs.encode(version));
}

fn batches(feed: &mut Feed<'_>, version: i16, header: RequestHeader<'_>) {
    let timeout_ms = feed.i32();
    let mut request = produce::Request::new(version, header, timeout_ms).expect("it can be said");
    let mut theirs = codec::ProduceRequest { acks: -1, timeout_ms, ..Default::default() };
    let count = feed.byte() % 4;
    let names: Vec<String> = (0..count).map(|at| format!("{}{at}", feed.text())).collect();
    let ids: Vec<TopicId> = (0..count)
        .map(|at| {
            let mut id = topic_id(feed).map_or([1; 16], TopicId::bytes);
            id[15] = at + 1;
            TopicId::new(id).expect("its last byte is not zero")
        })
        .collect();
    for (name, id) in names.iter().zip(&ids) {
        let by_id = version >= candor_wire::PRODUCE_BY_ID;
        let topic = if by_id { Topic::Id(*id) } else { Topic::Name(name) };
        let key = if by_id {
            codec::TopicKey::Id(id.bytes())
        } else {
            codec::TopicKey::Name(name.clone())
        };
        let mut partitions = Vec::new();
        for index in 0..1 + i32::from(feed.byte() % 3) {
            let index = index * 1_000_000_007 % 2_000_000_011;
            let frozen = some_batch(feed);
            let bytes = frozen.encoded().clone();
            let size = request.size_with(topic, bytes.len());
            request.add(topic, index, bytes.clone()).expect("there is room");
            assert_eq!(request.size(), size);
            partitions.push(codec::ProducePartition { index, records: Some(bytes) });
        }
        partitions.sort_by_key(|one| one.index);
        theirs.topics.push(codec::ProduceTopic { key, partitions });
    }
    // Whatever the order in which batches were added.
    theirs.topics.sort_by(|one, other| match (&one.key, &other.key) {
        (codec::TopicKey::Name(one), codec::TopicKey::Name(other)) => one.cmp(other),
        (codec::TopicKey::Id(one), codec::TopicKey::Id(other)) => one.cmp(other),
        (codec::TopicKey::Name(_), codec::TopicKey::Id(_)) => core::cmp::Ordering::Less,
        (codec::TopicKey::Id(_), codec::TopicKey::Name(_)) => core::cmp::Ordering::Greater,
    });
    let frame = request.encode().to_bytes();
    let kind = (Api::Produce, version);
    compare::<ProduceRequest>(kind, header, &frame, &theirs.encode(version));
}

fn some_batch(feed: &mut Feed<'_>) -> FrozenBatch {
    let mut batch = RecordBatch::empty();
    for _ in 0..1 + feed.byte() % 3 {
        let kind = feed.byte();
        let (key, value) = (feed.text(), feed.text());
        let headers: Vec<Header<'_>> = (0..kind >> 6)
            .map(|at| Header {
                key: format!("{at}{}", feed.text()).into(),
                value: (at > 0).then(|| feed.text().into_bytes().into()),
            })
            .collect();
        let record = RecordRef {
            key: (kind & 1 == 0).then_some(key.as_bytes()),
            value: (kind & 2 == 0).then_some(value.as_bytes()),
            headers: &headers,
        };
        batch.push(i64::from(feed.i16()) * 1_000, record);
    }
    let epoch = ProducerEpoch::new(feed.i16() & i16::MAX).expect("not negative");
    let id = ProducerId::new(feed.i64() & i64::MAX).expect("not negative");
    let first = Sequence::new(feed.i32() & i32::MAX).expect("not negative");
    let frozen = batch.freeze(Identity { id, epoch }, first);
    read_back(&frozen);
    frozen
}

/// A batch of ours: read equal by us, by the simulator's codec, and by the oracle.
pub(super) fn read_back(frozen: &FrozenBatch) {
    let (reader, rest) = BatchReader::read(frozen.encoded()).expect("we read what we write");
    assert!(rest.is_empty());
    let ours: Vec<_> = reader.records().map(|r| r.expect("we read what we write")).collect();
    let batch = codec::Batch::parse(frozen.encoded().clone()).expect("the codec reads it");
    let theirs = batch.records().expect("the codec reads its records");
    assert_eq!(theirs.len(), ours.len());
    for (theirs, ours) in theirs.iter().zip(&ours) {
        assert_eq!((theirs.offset, theirs.timestamp), (ours.offset, ours.timestamp));
        assert_eq!((theirs.key.as_deref(), theirs.value.as_deref()), (ours.key, ours.value));
        let named = theirs.headers.iter().map(|(name, value)| (&name[..], value.as_deref()));
        assert!(named.eq(ours.headers.clone().map(|(name, value)| (name.as_bytes(), value))));
    }
    // The oracle adds without wrapping.
    let base = reader.header().base_timestamp;
    if ours.iter().any(|record| record.timestamp.checked_sub(base).is_none()) {
        return;
    }
    let mut sets =
        RecordBatchDecoder::decode_all(&mut frozen.encoded().clone()).expect("the oracle reads it");
    assert_eq!(sets.len(), 1);
    let theirs = sets.remove(0).records;
    assert_eq!(theirs.len(), ours.len());
    for (theirs, ours) in theirs.iter().zip(&ours) {
        assert_eq!((theirs.offset, theirs.timestamp), (ours.offset, ours.timestamp));
        assert_eq!((theirs.key.as_deref(), theirs.value.as_deref()), (ours.key, ours.value));
        assert_eq!(
            (theirs.producer_id, theirs.producer_epoch),
            (reader.header().producer_id, reader.header().producer_epoch)
        );
        // The oracle keeps one header of a name: the last value, at the first place.
        for (name, value) in &theirs.headers {
            let last = ours.headers.clone().filter(|(key, _)| *key == &**name).last();
            assert_eq!(last, Some((&**name, value.as_deref())));
        }
    }
}
