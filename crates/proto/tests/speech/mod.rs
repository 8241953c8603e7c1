//! What all brokers of these tests say alike, through another codec than the producer's. What they
//! decide is theirs alone.

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::api_versions_response::ApiVersion;
use kafka_protocol::messages::metadata_response::MetadataResponseBroker;
use kafka_protocol::messages::produce_response::{LeaderIdAndEpoch, NodeEndpoint};
use kafka_protocol::messages::{
    ApiVersionsResponse, BrokerId, InitProducerIdResponse, ProducerId, ResponseHeader,
};
use kafka_protocol::protocol::{Encodable, HeaderVersion, StrBytes};

pub fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

pub fn topic_id(byte: u8) -> String {
    format!("{byte:02x}000000-0000-0000-0000-000000000001")
}

pub fn frame<T: Encodable + HeaderVersion>(response: &T, version: i16, correlation: i32) -> Bytes {
    let mut body = BytesMut::new();
    let header = ResponseHeader::default().with_correlation_id(correlation);
    header.encode(&mut body, T::header_version(version)).unwrap();
    response.encode(&mut body, version).unwrap();
    let mut frame = BytesMut::from(&(body.len() as u32).to_be_bytes()[..]);
    frame.extend_from_slice(&body);
    frame.freeze()
}

/// Keys of requests with the oldest and the newest version.
pub fn versions(
    keys: impl IntoIterator<Item = (i16, i16, i16)>,
    error: i16,
) -> ApiVersionsResponse {
    let keys = keys.into_iter().map(|(key, min, max)| {
        ApiVersion::default().with_api_key(key).with_min_version(min).with_max_version(max)
    });
    ApiVersionsResponse::default().with_error_code(error).with_api_keys(keys.collect())
}

/// This producer id, unless there is an error.
pub fn producer_id(id: i64, error: i16) -> InitProducerIdResponse {
    let (id, epoch) = if error == 0 { (id, 0) } else { (-1, -1) };
    InitProducerIdResponse::default()
        .with_error_code(error)
        .with_producer_id(ProducerId(id))
        .with_producer_epoch(epoch)
}

/// Where a node listens, as metadata tells it.
pub fn listener(node: i32, port: i32) -> MetadataResponseBroker {
    MetadataResponseBroker::default()
        .with_node_id(BrokerId(node))
        .with_host(text(&format!("b{node}")))
        .with_port(port)
}

/// Who leads, and where it listens, beside an answer to Produce.
pub fn hint(node: i32, epoch: i32) -> (LeaderIdAndEpoch, NodeEndpoint) {
    let leader =
        LeaderIdAndEpoch::default().with_leader_id(BrokerId(node)).with_leader_epoch(epoch);
    let endpoint = NodeEndpoint::default()
        .with_node_id(BrokerId(node))
        .with_host(text(&format!("b{node}")))
        .with_port(9092);
    (leader, endpoint)
}
