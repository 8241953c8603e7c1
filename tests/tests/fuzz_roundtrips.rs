//! Round trips against two decoders of other hands, over arbitrary messages: the bodies of the fuzz
//! targets as properties. Responses with unknown tags are in `crates/wire/tests/responses.rs`.

use candor_fuzz_bodies::{batch, requests, responses};
use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_we_write_is_read_equal_by_both(api in 0..4_u8, data in vec(any::<u8>(), 0..300)) {
        requests(&[&[api], &data[..]].concat());
    }

    #[test]
    fn what_they_write_is_read_equal_by_us(api in 0..4_u8, data in vec(any::<u8>(), 0..300)) {
        responses(&[&[api], &data[..]].concat());
    }

    /// Length, format and checksum are put right, so that what is read is records.
    #[test]
    fn what_is_read_as_a_batch_is_read_equal_by_all(
        header in vec(any::<u8>(), 61),
        records in vec((0..3_u8, 0..3_u8, 0..3_u8, 0..4_u8), 0..4),
    ) {
        let mut bytes = header;
        // No compression, as many records as there are, no log append time.
        bytes[21..23].copy_from_slice(&[0, 0]);
        bytes[23..27].copy_from_slice(&(records.len() as i32 - 1).to_be_bytes());
        bytes[57..61].copy_from_slice(&(records.len() as i32).to_be_bytes());
        for (at, (time, key, value, extra)) in records.iter().enumerate() {
            let mut record = vec![0, time * 2, at as u8 * 2];
            for field in [key, value] {
                record.push(*field * 2);
                record.extend(vec![7; usize::from(*field)]);
            }
            record.extend([*extra % 2 * 2].iter().chain([2, b'h', 1].iter().filter(|_| extra % 2 == 1)));
            bytes.push(record.len() as u8 * 2);
            bytes.extend(record);
        }
        batch(&[&[7], &bytes[..]].concat());
    }
}
