//! Frames in a stream of bytes.

use bytes::{Buf, Bytes, BytesMut};

/// How long the frame at the start of a stream is, its length included. `None`: its length is not
/// there yet, or is negative.
///
/// ```
/// assert_eq!(candor_sim::codec::frame_length(&[0, 0, 0, 2, 7]), Some(6));
/// ```
pub fn frame_length(stream: &[u8]) -> Option<usize> {
    let mut length = stream.get(..4)?;
    usize::try_from(length.get_i32()).ok()?.checked_add(4)
}

/// Takes the frame at the start of a stream out, its length included, if it is whole.
///
/// ```
/// use candor_sim::codec::whole_frame;
/// let mut stream = bytes::BytesMut::from(&[0, 0, 0, 2, 7][..]);
/// assert_eq!(whole_frame(&mut stream), None);
/// stream.extend_from_slice(&[8, 9]);
/// assert_eq!(whole_frame(&mut stream).unwrap(), &[0, 0, 0, 2, 7, 8][..]);
/// assert_eq!(stream, &[9][..]);
/// ```
pub fn whole_frame(stream: &mut BytesMut) -> Option<Bytes> {
    let length = frame_length(stream)?;
    (stream.len() >= length).then(|| stream.split_to(length).freeze())
}
