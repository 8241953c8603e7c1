//! Fingerprints of canonical states, and the set of those that were seen.

use std::hash::Hasher;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A hash of 128 bits: among 10^8 states two that differ share one with a chance below 10^-22.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Fingerprint(u128);

impl Fingerprint {
    pub(super) const fn bits(self) -> u128 {
        self.0
    }

    pub(super) const fn from_bits(bits: u128) -> Self {
        Self(bits)
    }
}

/// Two multiply-and-fold hashes side by side.
#[derive(Clone, Debug)]
pub(super) struct Mixer {
    left: u64,
    right: u64,
}

impl Mixer {
    pub(super) const fn new() -> Self {
        Self { left: 0x9e37_79b9_7f4a_7c15, right: 0xc2b2_ae3d_27d4_eb4f }
    }

    pub(super) fn fingerprint(&self) -> Fingerprint {
        let (left, right) = (fold(self.left, 0x1656_67b1_9e37_79f9), fold(self.right, 0x85eb_ca77));
        // Zero marks a free place.
        Fingerprint((u128::from(left) << 64 | u128::from(right)).max(1))
    }

    #[inline]
    fn word(&mut self, word: u64) {
        self.left = fold(self.left ^ word, 0xff51_afd7_ed55_8ccd);
        self.right = fold(self.right ^ word.rotate_left(32), 0xc4ce_b9fe_1a85_ec53);
    }
}

#[inline]
const fn fold(value: u64, by: u64) -> u64 {
    let product = (value as u128).wrapping_mul(by as u128);
    (product as u64) ^ ((product >> 64) as u64).rotate_left(29)
}

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.left
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.word(u64::from_le_bytes(word) ^ (chunk.len() as u64) << 60);
        }
    }

    #[inline]
    fn write_u8(&mut self, word: u8) {
        self.word(u64::from(word));
    }

    #[inline]
    fn write_u16(&mut self, word: u16) {
        self.word(u64::from(word));
    }

    #[inline]
    fn write_u32(&mut self, word: u32) {
        self.word(u64::from(word));
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.word(word);
    }

    #[inline]
    fn write_usize(&mut self, word: usize) {
        self.word(word as u64);
    }
}

/// Of two states side by side.
pub(super) fn pair(prints: [Fingerprint; 2]) -> Fingerprint {
    let mut mixer = Mixer::new();
    std::hash::Hash::hash(&prints, &mut mixer);
    mixer.fingerprint()
}

#[cfg(test)]
pub(super) fn of(value: &impl std::hash::Hash) -> Fingerprint {
    let mut mixer = Mixer::new();
    value.hash(&mut mixer);
    mixer.fingerprint()
}

/// A set of fingerprints that threads may share.
#[derive(Debug)]
pub(super) struct Shared {
    shards: Vec<Mutex<Seen>>,
}

/// Enough that two threads seldom meet.
const SHARDS: usize = 64;

impl Shared {
    pub(super) fn new() -> Self {
        Self { shards: (0..SHARDS).map(|_| Mutex::new(Seen::new())).collect() }
    }

    /// Adds one; tells whether it is new.
    pub(super) fn insert(&self, print: Fingerprint) -> bool {
        self.shard(print).insert(print)
    }

    pub(super) fn contains(&self, print: Fingerprint) -> bool {
        self.shard(print).contains(print)
    }

    fn shard(&self, print: Fingerprint) -> MutexGuard<'_, Seen> {
        let index = (print.0 >> 64) as usize % SHARDS;
        self.shards[index].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A set of fingerprints: open addressing, 16 bytes for each.
#[derive(Debug)]
struct Seen {
    places: Vec<u128>,
    len: usize,
}

impl Seen {
    fn new() -> Self {
        Self { places: vec![0; 1 << 8], len: 0 }
    }

    fn insert(&mut self, Fingerprint(print): Fingerprint) -> bool {
        if self.len * 2 >= self.places.len() {
            self.grow();
        }
        let place = self.place(print);
        let new = self.places[place] == 0;
        self.places[place] = print;
        self.len += usize::from(new);
        new
    }

    fn contains(&self, Fingerprint(print): Fingerprint) -> bool {
        self.places[self.place(print)] == print
    }

    fn place(&self, print: u128) -> usize {
        let mask = self.places.len() - 1;
        let mut place = print as usize & mask;
        while self.places[place] != 0 && self.places[place] != print {
            place = (place + 1) & mask;
        }
        place
    }

    fn grow(&mut self) {
        let doubled = vec![0; self.places.len() * 2];
        let old = std::mem::replace(&mut self.places, doubled);
        for print in old.into_iter().filter(|print| *print != 0) {
            let place = self.place(print);
            self.places[place] = print;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_keeps_what_it_was_given() {
        let mut seen = Seen::new();
        let prints: Vec<Fingerprint> = (0_u64..20_000).map(|n| of(&n)).collect();
        assert!(prints.iter().all(|print| seen.insert(*print)));
        assert!(prints.iter().all(|print| !seen.insert(*print)));
        assert_eq!(seen.len, 20_000);
    }

    #[test]
    fn every_word_and_its_place_count() {
        let mut prints = vec![of(&(1_u64, 2_u64)), of(&(2_u64, 1_u64)), of(&(0_u64, 3_u64))];
        prints.push(of(&vec![1_u64, 2]));
        prints.push(of(&(1_u8, 2_u64, 0_u8)));
        let mut seen = Seen::new();
        assert!(prints.into_iter().all(|print| seen.insert(print)));
    }
}
