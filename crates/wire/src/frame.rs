//! Frames and headers: where a message starts and ends, and what it answers.
//!
//! Every message, both ways, is a length of four bytes and so many bytes behind it.

use core::fmt;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use nom::Parser;

use crate::error::{DecodeError, EncodeError};
use crate::read::{self, int32, no_tags};
use crate::versions::Api;
use crate::write::{check_text, nullable_text_size, put_no_tags, put_nullable_text};

/// How many bytes the length in front of every frame takes.
pub const PREFIX: usize = 4;

/// The shortest response: a correlation id.
const SHORTEST: usize = 4;

/// A received length that cannot be the length of a response. The connection is of no use any more.
///
/// ```
/// use bytes::BytesMut;
/// use candor_wire::{FrameError, split_frame};
/// let mut page = BytesMut::from("HTTP/1.1 400 Bad Request\r\n");
/// let error = split_frame(&mut page, 1 << 20).unwrap_err();
/// assert_eq!(error, FrameError::Http);
/// assert!(error.to_string().contains("HTTP server"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FrameError {
    /// The length is negative.
    Negative(i32),
    /// The length is too small for a correlation id.
    TooShort(usize),
    /// The length is above the limit.
    TooLong {
        /// The announced length in bytes.
        length: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The "length" reads `HTTP`.
    Http,
    /// The "length" is the start of a TLS alert or handshake record.
    Tls,
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Negative(length) => {
                write!(f, "the peer announces a response of {length} bytes: not a Kafka broker?")
            }
            Self::TooShort(length) => {
                write!(f, "the peer announces a response of {length} bytes, less than its header")
            }
            Self::TooLong { length, limit } => write!(
                f,
                "the peer announces a response of {length} bytes, above the limit of {limit}: not a \
                 Kafka broker, or raise the limit"
            ),
            Self::Http => {
                f.write_str("the peer is an HTTP server: check host and port of the broker")
            }
            Self::Tls => f.write_str(
                "the peer speaks TLS: use the broker's plaintext listener, or switch TLS on",
            ),
        }
    }
}

impl core::error::Error for FrameError {}

/// Takes the first whole frame off a receive buffer, without its length and without copying.
/// `None`: more bytes are needed. `limit` bounds the frame in bytes and is checked as soon as the
/// length is there, before anything waits for, or makes room for, so many bytes.
///
/// # Errors
///
/// The length makes no sense; see [`FrameError`].
///
/// ```
/// use bytes::BytesMut;
/// use candor_wire::split_frame;
/// let mut buffer = BytesMut::from(&[0, 0, 0, 4, 0, 0, 0, 9, 0, 0][..]);
/// let frame = split_frame(&mut buffer, 100).unwrap().unwrap();
/// assert_eq!(&frame[..], [0, 0, 0, 9]);
/// assert_eq!(split_frame(&mut buffer, 100), Ok(None));
/// assert_eq!(&buffer[..], [0, 0]);
/// ```
pub fn split_frame(buffer: &mut BytesMut, limit: usize) -> Result<Option<Bytes>, FrameError> {
    match frame_length(buffer, limit)? {
        Some(length) if buffer.len() - PREFIX >= length => {
            buffer.advance(PREFIX);
            Ok(Some(buffer.split_to(length).freeze()))
        }
        _ => Ok(None),
    }
}

/// The length of the frame at the start of `bytes`, its four bytes of length not counted. `None`:
/// not even that many bytes are there.
///
/// # Errors
///
/// As [`split_frame`].
///
/// ```
/// assert_eq!(candor_wire::frame_length(&[0, 0, 1, 0], 1000), Ok(Some(256)));
/// ```
pub fn frame_length(bytes: &[u8], limit: usize) -> Result<Option<usize>, FrameError> {
    let Some(prefix) = bytes.first_chunk::<PREFIX>() else { return Ok(None) };
    let announced = i32::from_be_bytes(*prefix);
    let Ok(length) = usize::try_from(announced) else {
        return Err(FrameError::Negative(announced));
    };
    if length < SHORTEST {
        return Err(FrameError::TooShort(length));
    }
    if length <= limit {
        return Ok(Some(length));
    }
    Err(match prefix {
        b"HTTP" => FrameError::Http,
        [0x15 | 0x16, 3, 0..=4, _] => FrameError::Tls,
        _ => FrameError::TooLong { length, limit },
    })
}

/// What stands in front of every request, apart from API and version.
///
/// ```
/// let header = candor_wire::RequestHeader { correlation_id: 7, client_id: Some("candor") };
/// assert_eq!(header.correlation_id, 7);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHeader<'a> {
    /// Comes back in the response.
    pub correlation_id: i32,
    /// Names the client in the broker's logs, quotas and metrics; `None` for no name.
    pub client_id: Option<&'a str>,
}

impl RequestHeader<'_> {
    /// How many bytes it takes.
    pub(crate) const fn size(&self, flexible: bool) -> usize {
        2 + 2 + 4 + nullable_text_size(false, self.client_id) + flexible as usize
    }

    /// Checks what [`put`](Self::put) relies on.
    pub(crate) fn check(&self) -> Result<(), EncodeError> {
        check_text("client id", self.client_id.unwrap_or_default())
    }

    /// Writes header version 1, or 2 in flexible versions; the client id keeps its old form in both.
    pub(crate) fn put(&self, out: &mut impl BufMut, api: Api, version: i16) {
        out.put_i16(api.key());
        out.put_i16(version);
        out.put_i32(self.correlation_id);
        put_nullable_text(out, false, self.client_id);
        put_no_tags(out, api.flexible(version));
    }
}

/// Refuses versions that we do not write.
pub(crate) const fn check_version(api: Api, version: i16) -> Result<(), EncodeError> {
    if api.supported().contains(version) {
        Ok(())
    } else {
        Err(EncodeError::UnsupportedVersion { api, version })
    }
}

/// Writes a whole request frame.
pub(crate) fn request(
    api: Api,
    version: i16,
    header: &RequestHeader<'_>,
    body: impl FnOnce(&mut BytesMut),
) -> Result<Bytes, EncodeError> {
    check_version(api, version)?;
    header.check()?;
    let mut out = BytesMut::with_capacity(128);
    out.put_i32(0);
    header.put(&mut out, api, version);
    body(&mut out);
    let bytes = out.len() - PREFIX;
    let length = i32::try_from(bytes).map_err(|_| EncodeError::FrameTooLong { bytes })?;
    if let Some(prefix) = out.first_chunk_mut::<PREFIX>() {
        *prefix = length.to_be_bytes();
    }
    Ok(out.freeze())
}

/// The correlation id of a response, by which its request, and so its API and version, are found.
///
/// # Errors
///
/// The frame is too short to hold one.
///
/// ```
/// assert_eq!(candor_wire::correlation_id(&[0, 0, 0, 9, 1, 2]), Ok(9));
/// ```
pub fn correlation_id(frame: &[u8]) -> Result<i32, DecodeError> {
    let (_, id) =
        int32(frame).map_err(|error| read::describe("response header", 0, frame.len(), error))?;
    Ok(id)
}

/// Splits a response frame into correlation id and body.
///
/// Flexible versions have a tag buffer in the header, except ApiVersions, whose header must be
/// readable before the version is known.
///
/// # Errors
///
/// The frame does not hold a header of this version.
///
/// ```
/// use candor_wire::{Api, split_response};
/// let frame = [0, 0, 0, 9, 0, 1, 2];
/// assert_eq!(split_response(Api::Metadata, 9, &frame), Ok((9, &[1, 2][..])));
/// assert_eq!(split_response(Api::ApiVersions, 3, &frame), Ok((9, &[0, 1, 2][..])));
/// ```
pub fn split_response(api: Api, version: i16, frame: &[u8]) -> Result<(i32, &[u8]), DecodeError> {
    let flexible = api != Api::ApiVersions && api.flexible(version);
    let header_version = i16::from(flexible);
    let (body, (id, ())) = (int32, no_tags(flexible))
        .parse(frame)
        .map_err(|error| read::describe("response header", header_version, frame.len(), error))?;
    Ok((id, body))
}
