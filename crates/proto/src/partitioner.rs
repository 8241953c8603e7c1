//! Which partition a record goes to, if it names none. Runs at routing (rule U1), on the number
//! of partitions known then.

use crate::jitter::mix;

/// Who chooses the partition of a record that names none.
///
/// ```
/// assert_eq!(candor_proto::Partitioning::default(), candor_proto::Partitioning::Hashed);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Partitioning {
    /// The key's murmur2 hash, as the Java client does it; records without a key go where
    /// [`Sticky`](Self::Sticky) puts them. An empty key is a key.
    #[default]
    Hashed,
    /// Keys are ignored: one partition after the other gets a batch's worth of bytes (KIP-480,
    /// KIP-794 in its uniform form).
    Sticky,
}

/// MurmurHash2 as the Java client computes it (`Utils.murmur2`): seed 0x9747b28c, words in little
/// endian, bytes unsigned.
///
/// ```
/// assert_eq!(candor_proto::murmur2(b"foobar"), -790332482);
/// ```
pub fn murmur2(key: &[u8]) -> i32 {
    const SEED: u32 = 0x9747_b28c;
    const M: u32 = 0x5bd1_e995;
    // Java hashes the length as a 32-bit number; longer keys do not fit a record anyway.
    let mut hash = SEED ^ key.len() as u32;
    let (words, tail) = key.as_chunks::<4>();
    for word in words {
        let mut k = u32::from_le_bytes(*word).wrapping_mul(M);
        k ^= k >> 24;
        hash = hash.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    if !tail.is_empty() {
        for (place, byte) in tail.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * place);
        }
        hash = hash.wrapping_mul(M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M);
    hash ^= hash >> 15;
    hash as i32
}

/// The partition of a key among `partitions` (> 0) of them: sign bit cleared, then the remainder.
///
/// ```
/// assert_eq!(candor_proto::partition_for_key(b"1", 12), 3);
/// ```
pub fn partition_for_key(key: &[u8], partitions: u32) -> u32 {
    (murmur2(key) as u32 & 0x7fff_ffff) % partitions.max(1)
}

/// Gives one partition a batch's worth of bytes, then the next, so that slow brokers get no more
/// than others (the choice never looks at what was sent).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sticky {
    turn: u64,
    bytes: usize,
}

impl Sticky {
    /// The first choice is a hash, so that many short-lived producers spread out.
    pub(crate) const fn new(seed: u64, topic: u64) -> Self {
        Self { turn: mix(seed, topic) >> 1, bytes: 0 }
    }

    /// One of `count` partitions, when none of them has a leader.
    pub(crate) fn any(&self, count: u32) -> u32 {
        (self.turn % u64::from(count.max(1))) as u32
    }

    /// Picks one of `choices` for a record of `size` bytes; `None` if there are none.
    pub(crate) fn pick(&mut self, choices: &[u32], size: usize, batch_size: usize) -> Option<u32> {
        let count = choices.len() as u64;
        if count == 0 {
            return None;
        }
        if self.bytes > 0 && self.bytes.saturating_add(size) > batch_size {
            self.turn += 1;
            self.bytes = 0;
        }
        self.bytes = self.bytes.saturating_add(size.max(1));
        choices.get((self.turn % count) as usize).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn murmur2_agrees_with_the_vectors_of_other_clients() {
        let vectors: [(&[u8], i32); 27] = [
            (b"", 275_646_681),
            (b"21", -973_932_308),
            (b"foobar", -790_332_482),
            (b"a-little-bit-long-string", -985_981_536),
            (b"a-little-bit-longer-string", -1_486_304_829),
            (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            (b"abc", 479_470_107),
            (b"0", 971_027_396),
            (b"1", -1_993_445_489),
            (b"128", -326_012_175),
            (b"2187", -1_508_407_203),
            (b"16384", -325_739_742),
            (b"279936", 1_462_227_128),
            (b"62748517", -1_167_431_028),
            (b"100:48069", 1_009_543_857),
            (b"kafka", 0xd067_cf64_u32 as i32),
            (b"giberish123456789", 0x8f55_2b0c_u32 as i32),
            (b"PreAmbleWillBeRemoved,ThePrePartThatIs", 0x7842_4f1c),
            (b"reAmbleWillBeRemoved,ThePrePartThatIs", 0x4a62_b377),
            (b"\x00\x20", 1_121_897_742),
            (b"\xff", -311_467_685),
            (&[0x81; 1000], -525_506_620),
            (&[0; 1000], 139_236_344),
            ("日本語".as_bytes(), 1_431_860_170),
            (&(-1_i64).to_be_bytes(), 185_950_397),
            (b"\x02\x7d\x53\x43", 0x7fff_ffff),
            (b"\xa7\xd6\x50\x6c", i32::MIN),
        ];
        for (key, hash) in vectors {
            assert_eq!(murmur2(key), hash, "{key:?}");
        }
    }

    #[test]
    fn partitions_clear_the_sign_bit_and_do_nothing_else() {
        let vectors: [(&[u8], u32, u32); 12] = [
            (b"1", 12, 3),
            (b"", 1000, 681),
            (b"a", 1000, 524),
            (b"abc", 1000, 107),
            (b"123456789", 1000, 566),
            (b"yolo", 3, 0),
            (b"hey", 3, 1),
            (b"wu", 10, 0),
            (b"TT0124", 15, 10),
            (b"\xa7\xd6\x50\x6c", 12, 0),
            (b"\x33\x34\xf6\xa5", 12, 1),
            (b"\xa5\xd4\x30\x5c", 100, 47),
        ];
        for (key, partitions, chosen) in vectors {
            assert_eq!(partition_for_key(key, partitions), chosen, "{key:?}");
        }
    }

    #[test]
    fn sticky_shares_are_even_to_within_a_batch() {
        let mut sticky = Sticky::new(7, 0);
        let mut bytes = [0_usize; 3];
        for _ in 0..100_000 {
            let chosen = sticky.pick(&[0, 1, 2], 10, 1000).unwrap();
            bytes[chosen as usize] += 10;
        }
        let (least, most) = (bytes.iter().min().unwrap(), bytes.iter().max().unwrap());
        assert!(most - least <= 1000, "{bytes:?}");
    }

    #[test]
    fn a_record_larger_than_a_batch_still_finds_a_partition() {
        let mut sticky = Sticky::new(0, 0);
        let first = sticky.pick(&[4, 9], 5000, 100).unwrap();
        let second = sticky.pick(&[4, 9], 5000, 100).unwrap();
        assert_ne!(first, second);
        assert_eq!(sticky.pick(&[], 1, 100), None);
    }
}
