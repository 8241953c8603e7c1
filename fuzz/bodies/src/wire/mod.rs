//! The parsers of `candor-wire`, and what it writes. What they accept is held against the simulator's
//! codec, which was written by itself: it must read the same, and what it writes of it must be read
//! the same again. A third opinion is that of `kafka-protocol`.

mod batch;
mod frames;
mod oracle;
mod requests;
mod responses;
mod said;

pub use batch::batch;
pub use frames::frames;
pub use requests::requests;
pub use responses::{api_versions, init_producer_id, metadata, produce};
pub use said::responses;

use candor_sim::codec::{Malformed, Reader, is_flexible};
use candor_wire::Api;

/// The first byte is the version, one below and one above the supported ones included.
fn versioned(api: Api, data: &[u8]) -> (i16, &[u8]) {
    let Some((byte, body)) = data.split_first() else { return (0, data) };
    (i16::from(*byte) % (api.supported().max + 3) - 1, body)
}

/// What the simulator's codec reads. `None`: tags out of order, which only it cares about.
fn second_opinion<T>(
    api: Api,
    version: i16,
    body: &[u8],
    decode: impl FnOnce(&mut Reader, i16) -> Result<T, Malformed>,
) -> Option<T> {
    let flexible = is_flexible(api.key(), version);
    let mut reader = Reader::new(body.to_vec().into(), flexible);
    match decode(&mut reader, version) {
        Ok(read) => {
            assert_eq!(reader.left(), 0, "{api} v{version}: bytes were left over");
            Some(read)
        }
        Err(Malformed::TagOrder(_)) => None,
        Err(why) => panic!("{api} v{version} was accepted, and is malformed: {why}"),
    }
}
