//! ApiVersions (key 18), versions 0 to 5: what a broker speaks.

use bytes::{BufMut, Bytes};
use nom::Parser;

use crate::error::{DecodeError, EncodeError};
use crate::error_code::ErrorCode;
use crate::frame::{self, RequestHeader};
use crate::list::{List, list, sealed};
use crate::names::NodeId;
use crate::read::{
    Input, Parsed, array, boolean, int16, int32, int64, no_tags, since, tags, text, whole,
};
use crate::versions::{Api, VersionRange};
use crate::write::{check_text, put_no_tags, put_nullable_text, put_text};

/// Asks a broker which versions it speaks.
///
/// ```
/// use candor_wire::{RequestHeader, api_versions::Request};
/// let request = Request { software_name: "rs", software_version: "0.1", expected: None };
/// let header = RequestHeader { correlation_id: 2, client_id: Some("c") };
/// let frame = request.encode(0, &header).unwrap();
/// assert_eq!(&frame[..], b"\x00\x00\x00\x0b\x00\x12\x00\x00\x00\x00\x00\x02\x00\x01c");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// Name of the client software; letters, digits, `-` and `.`, with a letter or digit at both
    /// ends, or the broker answers INVALID_REQUEST (KIP-511). Sent since version 3.
    pub software_name: &'a str,
    /// Version of the client software, in the same characters.
    pub software_version: &'a str,
    /// Who we believe to talk to; another broker answers REBOOTSTRAP_REQUIRED (KIP-1242). Sent
    /// since version 5.
    pub expected: Option<Expected<'a>>,
}

/// The broker that a connection is meant for; both or none are sent (KIP-1242).
///
/// ```
/// use candor_wire::{NodeId, api_versions::Expected};
/// let expected = Expected { cluster_id: "abc", node: NodeId::new(1).unwrap() };
/// assert_eq!(expected.node.get(), 1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected<'a> {
    /// Id of the cluster.
    pub cluster_id: &'a str,
    /// Id of the broker in it.
    pub node: NodeId,
}

impl Request<'_> {
    /// The whole frame.
    ///
    /// # Errors
    ///
    /// The version is not supported, or a text is too long.
    pub fn encode(&self, version: i16, header: &RequestHeader<'_>) -> Result<Bytes, EncodeError> {
        check_text("software name", self.software_name)?;
        check_text("software version", self.software_version)?;
        check_text("cluster id", self.expected.map_or("", |e| e.cluster_id))?;
        frame::request(Api::ApiVersions, version, header, |out| {
            let flexible = Api::ApiVersions.flexible(version);
            if version >= 3 {
                put_text(out, true, self.software_name);
                put_text(out, true, self.software_version);
            }
            if version >= 5 {
                put_nullable_text(out, true, self.expected.map(|e| e.cluster_id));
                out.put_i32(self.expected.map_or(-1, |e| e.node.get()));
            }
            put_no_tags(out, flexible);
        })
    }
}

/// What a broker speaks.
///
/// ```
/// use candor_wire::{Api, VersionRange, api_versions::Response};
/// let body = [0, 0, 0, 0, 0, 1, 0, 3, 0, 0, 0, 13];
/// let response = Response::decode(0, &body).unwrap();
/// assert_eq!(response.range(Api::Metadata), Some(VersionRange { min: 0, max: 13 }));
/// assert_eq!(response.range(Api::Produce), None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response<'a> {
    /// UNSUPPORTED_VERSION: ask again on the same connection, with [`fallback`](Self::fallback).
    pub error: ErrorCode,
    /// Key and range of every API, in the broker's order.
    pub apis: Vec<(i16, VersionRange)>,
    /// How long the broker wants no requests, in milliseconds.
    pub throttle_ms: i32,
    /// Features that the broker could use; brokers leave out some, infer nothing from it.
    pub supported_features: List<'a, Feature<'a>>,
    /// Epoch of the finalized features, -1 for none.
    pub finalized_features_epoch: i64,
    /// Features that the cluster has switched on; level 0 is left out.
    pub finalized_features: List<'a, Feature<'a>>,
    /// Whether the cluster is ready to leave ZooKeeper.
    pub zk_migration_ready: bool,
}

/// A named range of feature levels.
///
/// ```
/// let level = candor_wire::api_versions::Feature { name: "transaction.version", min: 0, max: 2 };
/// assert!(level.max >= 2);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feature<'a> {
    /// Its name.
    pub name: &'a str,
    /// Lowest level.
    pub min: i16,
    /// Highest level.
    pub max: i16,
}

impl<'a> Response<'a> {
    /// Reads the body of a response to a request of `version`.
    ///
    /// A broker that does not know the version answers in version 0 with UNSUPPORTED_VERSION; the
    /// code comes first in all versions, so it is looked at before the rest is read.
    ///
    /// # Errors
    ///
    /// The body is malformed or has bytes left over.
    pub fn decode(version: i16, body: &'a [u8]) -> Result<Self, DecodeError> {
        let refused = body.starts_with(&ErrorCode::UNSUPPORTED_VERSION.0.to_be_bytes());
        let version = if refused { 0 } else { version };
        whole(Api::ApiVersions, version, body, |input| response(version, input))
    }

    /// The broker's range for an API.
    pub fn range(&self, api: Api) -> Option<VersionRange> {
        self.apis.iter().find(|(key, _)| *key == api.key()).map(|(_, range)| *range)
    }

    /// The version to ask with after UNSUPPORTED_VERSION: brokers since 2.4 name their highest
    /// (KIP-511), older ones know 0.
    pub fn fallback(&self) -> i16 {
        let ours = Api::ApiVersions.supported();
        self.range(Api::ApiVersions).map_or(0, |theirs| theirs.max.clamp(ours.min, ours.max))
    }
}

fn response(version: i16, input: Input<'_>) -> Parsed<'_, Response<'_>> {
    let flexible = Api::ApiVersions.flexible(version);
    let (input, error) = int16(input)?;
    let (input, apis) = array(flexible, 6, |i| api(flexible, i))(input)?;
    let (input, throttle_ms) = since(version >= 1, 0, int32)(input)?;
    let mut response = Response {
        error: ErrorCode(error),
        apis,
        throttle_ms,
        supported_features: List::default(),
        finalized_features_epoch: -1,
        finalized_features: List::default(),
        zk_migration_ready: false,
    };
    let (input, ()) = tags(flexible, |tag, data| {
        let Response {
            supported_features,
            finalized_features_epoch,
            finalized_features,
            zk_migration_ready,
            ..
        } = &mut response;
        match tag {
            0 => Some(features(data, false).map(|(i, v)| (i, *supported_features = v))),
            1 => Some(int64(data).map(|(i, v)| (i, *finalized_features_epoch = v))),
            2 => Some(features(data, true).map(|(i, v)| (i, *finalized_features = v))),
            3 => Some(boolean(data).map(|(i, v)| (i, *zk_migration_ready = v))),
            _ => None,
        }
    })(input)?;
    Ok((input, response))
}

fn api(flexible: bool, input: Input<'_>) -> Parsed<'_, (i16, VersionRange)> {
    let (input, (key, min, max, ())) = (int16, int16, int16, no_tags(flexible)).parse(input)?;
    Ok((input, (key, VersionRange { min, max })))
}

/// Finalized features have their highest level first, supported ones their lowest.
fn features<'a>(input: Input<'a>, highest_first: bool) -> Parsed<'a, List<'a, Feature<'a>>> {
    list(true, 6, highest_first.into(), |input| feature(highest_first, input))(input)
}

fn feature(highest_first: bool, input: Input<'_>) -> Parsed<'_, Feature<'_>> {
    let (input, (name, first, second, ())) =
        (text(true), int16, int16, no_tags(true)).parse(input)?;
    let (min, max) = if highest_first { (second, first) } else { (first, second) };
    Ok((input, Feature { name, min, max }))
}

/// The layout of a feature is 1 if its highest level comes first.
impl<'a> sealed::Read<'a> for Feature<'a> {
    fn read(layout: i16, input: &'a [u8]) -> Option<(Self, &'a [u8])> {
        feature(layout == 1, input).ok().map(|(rest, feature)| (feature, rest))
    }
}
