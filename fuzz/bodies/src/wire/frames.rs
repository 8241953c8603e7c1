//! Frames and response headers.

use bytes::BytesMut;
use candor_wire::{Api, PREFIX, correlation_id, frame_length, split_frame, split_response};

/// Limit in bytes on a frame.
const LIMIT: usize = 512;

/// The first byte is the number of bytes that come at a time, the second API and version; what
/// comes whole and what comes in pieces must be the same frames.
pub fn frames(data: &[u8]) {
    let (Some((chunk, rest)), true) = (data.split_first(), data.len() > 1) else { return };
    let (kind, stream) = (rest[0], &rest[1..]);
    let whole = split(stream, stream.len().max(1));
    let pieces = split(stream, usize::from(*chunk).max(1));
    assert_eq!(whole, pieces, "frames depend on how their bytes arrive");
    let api = Api::ALL[usize::from(kind) % Api::ALL.len()];
    let version = i16::from(kind / 4) % (api.supported().max + 1);
    for frame in whole.frames {
        let id = correlation_id(&frame).expect("a frame has a correlation id");
        if let Ok((again, body)) = split_response(api, version, &frame) {
            assert_eq!(again, id);
            assert!(frame.ends_with(body), "the body is the end of the frame");
        }
    }
    // Not only whole frames may be asked for their header.
    let _ = (correlation_id(stream), split_response(api, version, stream));
}

#[derive(Debug, PartialEq, Eq)]
struct Split {
    frames: Vec<Vec<u8>>,
    left: Vec<u8>,
    error: Option<candor_wire::FrameError>,
}

fn split(stream: &[u8], chunk: usize) -> Split {
    let mut buffer = BytesMut::new();
    let mut found = Split { frames: Vec::new(), left: Vec::new(), error: None };
    let mut chunks = stream.chunks(chunk);
    loop {
        match (frame_length(&buffer, LIMIT), split_frame(&mut buffer, LIMIT)) {
            (Ok(Some(length)), Ok(Some(frame))) => {
                assert_eq!(frame.len(), length);
                found.frames.push(frame.to_vec());
            }
            (Ok(length), Ok(None)) => {
                assert!(length.is_none_or(|length| buffer.len() < PREFIX + length));
                match chunks.next() {
                    Some(chunk) => buffer.extend_from_slice(chunk),
                    None => break,
                }
            }
            (Err(one), Err(other)) => {
                assert_eq!(one, other);
                found.error = Some(one);
                chunks.for_each(|chunk| buffer.extend_from_slice(chunk));
                break;
            }
            (length, frame) => panic!("{length:?} and {frame:?}"),
        }
    }
    found.left = buffer.to_vec();
    found
}
