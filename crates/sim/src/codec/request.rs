//! Frames and headers: which API, which version, and what an unknown one leads to.

use std::fmt;

use bytes::Bytes;

use super::api_versions::ApiVersionsRequest;
use super::bytes::{Malformed, Reader, Writer};
use super::fetch::{FetchRequest, FindCoordinatorRequest, ListOffsetsRequest};
use super::init_producer_id::InitProducerIdRequest;
use super::metadata::MetadataRequest;
use super::produce::ProduceRequest;

/// Key of Produce.
pub const PRODUCE: i16 = 0;
/// Key of Fetch.
pub const FETCH: i16 = 1;
/// Key of ListOffsets.
pub const LIST_OFFSETS: i16 = 2;
/// Key of Metadata.
pub const METADATA: i16 = 3;
/// Key of FindCoordinator.
pub const FIND_COORDINATOR: i16 = 10;
/// Key of ApiVersions.
pub const API_VERSIONS: i16 = 18;
/// Key of InitProducerId.
pub const INIT_PRODUCER_ID: i16 = 22;

/// From which version on an API is flexible.
const FLEXIBLE: [(i16, i16); 7] = [
    (PRODUCE, 9),
    (FETCH, 12),
    (LIST_OFFSETS, 6),
    (METADATA, 9),
    (FIND_COORDINATOR, 3),
    (API_VERSIONS, 3),
    (INIT_PRODUCER_ID, 2),
];

/// Whether a version of an API is flexible; an unknown API is taken to be classic.
///
/// ```
/// use candor_sim::codec::{PRODUCE, is_flexible};
/// assert!(!is_flexible(PRODUCE, 8) && is_flexible(PRODUCE, 9));
/// ```
pub fn is_flexible(api: i16, version: i16) -> bool {
    FLEXIBLE.iter().any(|(key, from)| *key == api && version >= *from)
}

/// The versions of one API.
///
/// ```
/// use candor_sim::codec::VersionRange;
/// let produce = VersionRange { api: 0, min: 3, max: 11 };
/// assert!(produce.holds(3) && !produce.holds(12));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionRange {
    /// The API's key.
    pub api: i16,
    /// Lowest version.
    pub min: i16,
    /// Highest version.
    pub max: i16,
}

impl VersionRange {
    /// Whether a version is in it.
    pub fn holds(&self, version: i16) -> bool {
        (self.min..=self.max).contains(&version)
    }
}

/// What stands in front of every request.
///
/// ```
/// use candor_sim::codec::{METADATA, RequestHeader};
/// let header = RequestHeader::new(METADATA, 12, 7);
/// assert!(header.frame(&[]).len() > 12);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHeader {
    /// Which API.
    pub api: i16,
    /// Which version of it.
    pub version: i16,
    /// What the response is recognised by.
    pub correlation: i32,
    /// The client's name for itself.
    pub client_id: Option<String>,
}

impl RequestHeader {
    /// The header of a client that calls itself "c".
    pub fn new(api: i16, version: i16, correlation: i32) -> Self {
        Self { api, version, correlation, client_id: Some("c".to_owned()) }
    }

    /// A whole frame around a body, as a client writes it.
    pub fn frame(&self, body: &[u8]) -> Vec<u8> {
        let mut w = Writer::new(false);
        w.i16(self.api);
        w.i16(self.version);
        w.i32(self.correlation);
        w.nullable_string(self.client_id.as_deref());
        w.set_flexible(is_flexible(self.api, self.version));
        w.no_tags();
        w.raw(body);
        w.into_frame()
    }

    /// A whole frame around the body of a response. The header of ApiVersions stays classic at
    /// every version, because its reader cannot know the version yet.
    pub fn answer(&self, body: &[u8]) -> Vec<u8> {
        let mut w = Writer::new(self.answers_flexibly());
        w.i32(self.correlation);
        w.no_tags();
        w.raw(body);
        w.into_frame()
    }

    /// Reads a response's header, as a client does, and leaves a reader at its body.
    ///
    /// # Errors
    /// [`Malformed`], what is wrong with the bytes.
    pub fn open_answer(&self, frame: Bytes) -> Result<(i32, Reader), Malformed> {
        let mut r = Reader::new(frame, self.answers_flexibly());
        let correlation = r.i32()?;
        r.skip_tags()?;
        r.set_flexible(is_flexible(self.api, self.version));
        Ok((correlation, r))
    }

    /// Reads the answer in a whole frame, its length included. `None`: it cannot be read.
    ///
    /// ```
    /// use candor_sim::codec::{InitProducerIdResponse, RequestHeader, INIT_PRODUCER_ID};
    /// let asked = RequestHeader {
    ///     api: INIT_PRODUCER_ID, version: 0, correlation: 7, client_id: None,
    /// };
    /// let answer = InitProducerIdResponse { error: 0, producer_id: 4000, producer_epoch: 0 };
    /// let frame = asked.answer(&answer.encode(0)).into();
    /// assert_eq!(asked.read_answer(&frame, InitProducerIdResponse::decode), Some(answer));
    /// ```
    pub fn read_answer<T>(
        &self,
        frame: &Bytes,
        decode: impl FnOnce(&mut Reader, i16) -> Result<T, Malformed>,
    ) -> Option<T> {
        let body = frame.get(4..).map(|body| frame.slice_ref(body))?;
        let (_, mut reader) = self.open_answer(body).ok()?;
        decode(&mut reader, self.version).ok()
    }

    fn answers_flexibly(&self) -> bool {
        self.api != API_VERSIONS && is_flexible(self.api, self.version)
    }
}

/// A request that a broker can act on.
///
/// ```
/// use candor_sim::codec::{InitProducerIdRequest, Request};
/// let request = Request::InitProducerId(InitProducerIdRequest::idempotent());
/// assert!(matches!(request, Request::InitProducerId(_)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Which versions are served.
    ApiVersions(ApiVersionsRequest),
    /// The same in a version that is not: its body is not even looked at.
    UnknownApiVersions,
    /// Brokers, topics and leaders.
    Metadata(MetadataRequest),
    /// A new producer id.
    InitProducerId(InitProducerIdRequest),
    /// Appends.
    Produce(ProduceRequest),
    /// Reads.
    Fetch(FetchRequest),
    /// Where logs begin and end.
    ListOffsets(ListOffsetsRequest),
    /// Who coordinates.
    FindCoordinator(FindCoordinatorRequest),
}

/// Why a broker closes the connection instead of answering.
///
/// ```
/// use candor_sim::codec::{PRODUCE, Refusal, RequestHeader, decode_request};
/// let frame = RequestHeader::new(PRODUCE, 2, 1).frame(&[]);
/// let refused = decode_request(frame[4..].to_vec().into(), &[]);
/// assert_eq!(refused, Err(Refusal::Unsupported { api: PRODUCE, version: 2 }));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The bytes are no request.
    Malformed(Malformed),
    /// An API or version that this broker does not serve.
    Unsupported {
        /// The API's key.
        api: i16,
        /// The version.
        version: i16,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(why) => write!(f, "malformed request: {why}"),
            Self::Unsupported { api, version } => {
                write!(f, "version {version} of API {api} is not served")
            }
        }
    }
}

impl std::error::Error for Refusal {}

impl From<Malformed> for Refusal {
    fn from(why: Malformed) -> Self {
        Self::Malformed(why)
    }
}

/// Reads one request: the content of a frame, without its length. `served` lists what this
/// broker really takes, which may be less than what it advertises.
///
/// # Errors
/// [`Refusal`]; the connection is then to be closed without an answer.
pub fn decode_request(
    frame: Bytes,
    served: &[VersionRange],
) -> Result<(RequestHeader, Request), Refusal> {
    let mut r = Reader::new(frame, false);
    let (api, version) = (r.i16()?, r.i16()?);
    let supported = served.iter().any(|range| range.api == api && range.holds(version));
    if !supported && api != API_VERSIONS {
        return Err(Refusal::Unsupported { api, version });
    }
    let (correlation, client_id) = (r.i32()?, r.nullable_string()?);
    r.set_flexible(is_flexible(api, version));
    r.skip_tags()?;
    let header = RequestHeader { api, version, correlation, client_id };
    if !supported {
        return Ok((header, Request::UnknownApiVersions));
    }
    let request = decode_body(&mut r, api, version)?;
    r.finish()?;
    Ok((header, request))
}

fn decode_body(r: &mut Reader, api: i16, version: i16) -> Result<Request, Refusal> {
    Ok(match api {
        PRODUCE => Request::Produce(ProduceRequest::decode(r, version)?),
        FETCH => Request::Fetch(FetchRequest::decode(r, version)?),
        LIST_OFFSETS => Request::ListOffsets(ListOffsetsRequest::decode(r, version)?),
        METADATA => Request::Metadata(MetadataRequest::decode(r, version)?),
        FIND_COORDINATOR => Request::FindCoordinator(FindCoordinatorRequest::decode(r, version)?),
        API_VERSIONS => Request::ApiVersions(ApiVersionsRequest::decode(r, version)?),
        INIT_PRODUCER_ID => Request::InitProducerId(InitProducerIdRequest::decode(r, version)?),
        _ => return Err(Refusal::Unsupported { api, version }),
    })
}

#[cfg(test)]
mod tests {
    use super::super::produce::{ProducePartition, ProduceTopic, TopicKey};
    use super::super::testing::hex;
    use super::super::{BatchBuilder, Record};
    use super::*;

    fn served(api: i16, max: i16) -> [VersionRange; 1] {
        [VersionRange { api, min: 0, max }]
    }

    #[test]
    fn golden_requests_read_and_write_back() {
        let golden = hex("0000001400120003000000010001630003727304302e3100");
        let (header, request) =
            decode_request(Bytes::from(golden.clone()).slice(4..), &served(18, 4)).unwrap();
        assert_eq!(request, Request::ApiVersions(ApiVersionsRequest::named("rs", "0.1")));
        assert_eq!(header.frame(&ApiVersionsRequest::named("rs", "0.1").encode(3)), golden);

        let golden = hex("0000000b0012000000000002000163");
        let (header, _) =
            decode_request(Bytes::from(golden.clone()).slice(4..), &served(18, 4)).unwrap();
        assert_eq!(header.frame(&ApiVersionsRequest::named("", "").encode(0)), golden);

        let golden = hex("0000001c001600040000000300016300007fffffffffffffffffffffffffff00");
        let (header, request) =
            decode_request(Bytes::from(golden.clone()).slice(4..), &served(22, 5)).unwrap();
        let idempotent = InitProducerIdRequest::idempotent();
        assert_eq!(header.frame(&idempotent.encode(4)), golden);
        assert_eq!(request, Request::InitProducerId(idempotent));
    }

    #[test]
    fn golden_produce_reads_and_writes_back() {
        let golden = hex(
            "0000006400000009000000040001630000ffff00007530020274020000000046000000000000000000000039ffffffff02fab2b5af
             0000000000000000018bcfe568000000018bcfe568000000000000000fa0000000000000000000010e00000001027600000000",
        );
        let batch = BatchBuilder::new(4000, 0, 0)
            .record(Record::new(1_700_000_000_000, None, Some(b"v")))
            .build();
        let produce = ProduceRequest {
            transactional_id: None,
            acks: -1,
            timeout_ms: 30_000,
            topics: vec![ProduceTopic {
                key: TopicKey::Name("t".into()),
                partitions: vec![ProducePartition { index: 0, records: Some(batch.into()) }],
            }],
        };
        let (header, request) =
            decode_request(Bytes::from(golden.clone()).slice(4..), &served(0, 9)).unwrap();
        assert_eq!(header.frame(&produce.encode(9)), golden);
        assert_eq!(request, Request::Produce(produce));
    }

    #[test]
    fn every_cut_and_every_extra_byte_is_refused() {
        let whole = hex("0012000300000001000163000372730430 2e3100");
        for cut in 0..whole.len() {
            let cut = decode_request(whole[..cut].to_vec().into(), &served(18, 4));
            assert!(matches!(cut, Err(Refusal::Malformed(Malformed::Short { .. }))), "{cut:?}");
        }
        let longer = [&whole[..], &[0]].concat();
        let longer = decode_request(longer.into(), &served(18, 4));
        assert_eq!(longer, Err(Refusal::Malformed(Malformed::Trailing(1))));
    }

    #[test]
    fn an_unknown_version_of_api_versions_is_not_read_further() {
        let frame = RequestHeader::new(API_VERSIONS, 99, 5).frame(b"\xff\xff garbage");
        let (header, request) =
            decode_request(Bytes::from(frame).slice(4..), &served(18, 4)).unwrap();
        assert_eq!((header.correlation, request), (5, Request::UnknownApiVersions));
    }
}
