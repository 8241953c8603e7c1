//! What every record carries, so that a log convicts it: which run, which record, where to, and a
//! checksum over all of it.

use bytes::Bytes;

use crate::codec::Record;
use crate::judge::Stored;

const MAGIC: &[u8; 4] = b"SWRM";
const MARK: usize = 28;
/// The header that carries the mark where the value cannot.
pub(super) const HEADER: &str = "mark";

/// Where the mark of a record stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// At the start of its value.
    Value,
    /// In a header, beside a null value.
    NullValue,
    /// In a header, beside an empty value.
    EmptyValue,
}

/// A mark followed by `filler` bytes.
pub(super) fn marked(
    run: u32,
    record: u64,
    topic: u32,
    key: Option<&[u8]>,
    filler: usize,
) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(MARK + filler);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&run.to_be_bytes());
    bytes.extend_from_slice(&record.to_be_bytes());
    bytes.extend_from_slice(&topic.to_be_bytes());
    bytes.extend_from_slice(&(filler as u32).to_be_bytes());
    bytes.extend_from_slice(&[0; 4]);
    let fill = record.to_be_bytes()[7];
    bytes.resize(MARK + filler, fill);
    let crc = checksum(&bytes, key);
    bytes[MARK - 4..MARK].copy_from_slice(&crc.to_be_bytes());
    bytes
}

fn checksum(bytes: &[u8], key: Option<&[u8]>) -> u32 {
    let crc = crc32c::crc32c(&bytes[..MARK - 4]);
    let crc = crc32c::crc32c_append(crc, &bytes[MARK..]);
    crc32c::crc32c_append(crc, key.unwrap_or(b"\0null"))
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut number = [0; N];
    if let Some(found) = bytes.get(at..at + N) {
        number.copy_from_slice(found);
    }
    number
}

/// What a stored record is, to the run and topic in whose log it stands.
pub(super) fn read(run: u32, topic: u32, record: &Record) -> Stored {
    let header = record.headers.iter().find(|(name, _)| name == HEADER.as_bytes());
    let carrier: Option<&Bytes> = match header {
        Some((_, value)) => value.as_ref(),
        None => record.value.as_ref(),
    };
    let Some(bytes) = carrier.filter(|bytes| bytes.len() >= MARK && bytes.starts_with(MAGIC))
    else {
        return Stored::Corrupt;
    };
    let key = record.key.as_deref();
    if checksum(bytes, key) != u32::from_be_bytes(number(bytes, MARK - 4)) {
        return Stored::Corrupt;
    }
    if u32::from_be_bytes(number(bytes, 4)) != run || u32::from_be_bytes(number(bytes, 16)) != topic
    {
        return Stored::Foreign;
    }
    Stored::Ours(u64::from_be_bytes(number(bytes, 8)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_convicts_every_change() {
        let bytes = marked(7, 300, 2, Some(b"k"), 5);
        let record = |value: &[u8], key: &[u8]| Record::new(0, Some(key), Some(value));
        assert_eq!(read(7, 2, &record(&bytes, b"k")), Stored::Ours(300));
        assert_eq!(read(7, 1, &record(&bytes, b"k")), Stored::Foreign);
        assert_eq!(read(8, 2, &record(&bytes, b"k")), Stored::Foreign);
        assert_eq!(read(7, 2, &record(&bytes, b"l")), Stored::Corrupt);
        for at in 0..bytes.len() {
            let mut spoiled = bytes.clone();
            spoiled[at] ^= 1;
            assert_eq!(read(7, 2, &record(&spoiled, b"k")), Stored::Corrupt, "{at}");
        }
        let header =
            Record::new(0, None, None).with_header(b"mark", Some(&marked(7, 4, 2, None, 0)));
        assert_eq!(read(7, 2, &header), Stored::Ours(4));
    }
}
