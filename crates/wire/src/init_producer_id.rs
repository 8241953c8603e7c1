//! InitProducerId (key 22), versions 0 to 5: a producer id.

use bytes::{BufMut, Bytes};
use candor_core::{Identity, ProducerEpoch, ProducerId};
use nom::Parser;

use crate::error::{DecodeError, EncodeError};
use crate::error_code::ErrorCode;
use crate::frame::{self, RequestHeader};
use crate::read::{int16, int32, int64, no_tags, whole};
use crate::versions::Api;
use crate::write::{check_text, put_no_tags, put_nullable_text};

/// Asks for a producer id.
///
/// ```
/// use candor_wire::{RequestHeader, init_producer_id::Request};
/// let header = RequestHeader { correlation_id: 3, client_id: None };
/// assert_eq!(Request::idempotent().encode(1, &header).unwrap().len(), 4 + 10 + 6);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The transactional id; `None` for a producer that is only idempotent.
    pub transactional_id: Option<&'a str>,
    /// Transaction timeout in milliseconds; any broker ignores it without a transactional id.
    pub transaction_timeout_ms: i32,
    /// The identity whose epoch is to be raised (KIP-360); sent since version 3. Without a
    /// transactional id brokers ignore it and give a new producer id.
    pub current: Option<Identity>,
}

impl Request<'static> {
    /// What an idempotent producer sends: no transactional id, and the timeout that Java sends.
    pub const fn idempotent() -> Self {
        Self { transactional_id: None, transaction_timeout_ms: i32::MAX, current: None }
    }
}

impl Request<'_> {
    /// The whole frame.
    ///
    /// # Errors
    ///
    /// The version is not supported, or a text is too long.
    pub fn encode(&self, version: i16, header: &RequestHeader<'_>) -> Result<Bytes, EncodeError> {
        check_text("transactional id", self.transactional_id.unwrap_or_default())?;
        frame::request(Api::InitProducerId, version, header, |out| {
            let flexible = Api::InitProducerId.flexible(version);
            put_nullable_text(out, flexible, self.transactional_id);
            out.put_i32(self.transaction_timeout_ms);
            if version >= 3 {
                out.put_i64(self.current.map_or(-1, |identity| identity.id.get()));
                out.put_i16(self.current.map_or(-1, |identity| identity.epoch.get()));
            }
            put_no_tags(out, flexible);
        })
    }
}

/// A producer id, or why there is none.
///
/// ```
/// use candor_wire::{ErrorCode, init_producer_id::Response};
/// let body = [0, 0, 0, 0, 0, 31, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255];
/// let response = Response::decode(1, &body).unwrap();
/// assert_eq!(response.outcome, Err(ErrorCode::CLUSTER_AUTHORIZATION_FAILED));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// How long the broker wants no requests, in milliseconds.
    pub throttle_ms: i32,
    /// The identity; or the error. Code 0 with a negative id or epoch is UNKNOWN_SERVER_ERROR.
    pub outcome: Result<Identity, ErrorCode>,
}

impl Response {
    /// Reads the body of a response of `version`.
    ///
    /// # Errors
    ///
    /// The body is malformed or has bytes left over.
    pub fn decode(version: i16, body: &[u8]) -> Result<Self, DecodeError> {
        let flexible = Api::InitProducerId.flexible(version);
        let parser = |input| (int32, int16, int64, int16, no_tags(flexible)).parse(input);
        let (throttle_ms, error, id, epoch, ()) =
            whole(Api::InitProducerId, version, body, parser)?;
        let identity = match (ProducerId::new(id), ProducerEpoch::new(epoch)) {
            (Some(id), Some(epoch)) => Ok(Identity { id, epoch }),
            (None, _) | (_, None) => Err(ErrorCode::UNKNOWN_SERVER_ERROR),
        };
        let error = ErrorCode(error);
        let outcome = if error.is_none() { identity } else { Err(error) };
        Ok(Self { throttle_ms, outcome })
    }
}
