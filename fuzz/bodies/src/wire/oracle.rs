//! A third opinion: `kafka-protocol`, which was generated from Kafka's own schemas.

use bytes::{Bytes, BytesMut};
use kafka_protocol::protocol::{Decodable, Encodable};

/// The other decoder reads every byte of it, and writes back the same.
pub(super) fn agree<T: Decodable + Encodable>(version: i16, body: &[u8]) {
    let mut bytes = Bytes::copy_from_slice(body);
    let message = T::decode(&mut bytes, version).expect("the oracle reads it");
    assert!(bytes.is_empty(), "version {version}: the oracle left {} bytes", bytes.len());
    let mut again = BytesMut::new();
    message.encode(&mut again, version).expect("the oracle writes what it read");
    assert_eq!(again, body, "version {version}: the oracle read something else");
}
