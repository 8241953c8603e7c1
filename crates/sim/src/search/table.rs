//! The states of a wide search: for each, with what left of the budget it was reached.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::fingerprint::Fingerprint;

/// A set of budgets: one bit for each, sixteen at most.
pub(super) type Bits = u16;

/// What is to be done with a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Visit {
    /// It was never reached with this budget, nor with a larger one.
    New,
    /// It was, in an earlier round, and was not walked through in this one.
    Again,
    /// It was walked through, or is contained in a state with a larger budget.
    Contained,
}

/// Fingerprints of 96 bits, each with the budgets that its state was reached with, and with those
/// that it was walked through with in this round: 16 bytes. Among 10^8 states two that differ share
/// a fingerprint with a chance below 10^-12.
#[derive(Debug)]
pub(super) struct Table {
    shards: Vec<Mutex<Shard>>,
}

/// Enough that two threads seldom meet.
const SHARDS: usize = 64;

impl Table {
    pub(super) fn new() -> Self {
        Self { shards: (0..SHARDS).map(|_| Mutex::new(Shard::new())).collect() }
    }

    /// Reaches a state with the budget `own`, which those of `above` contain.
    pub(super) fn visit(&self, print: Fingerprint, own: Bits, above: Bits) -> Visit {
        let mut shard = self.shard(print);
        let place = shard.insert(print);
        let entry = Entry(shard.places[place]);
        if entry.seen() & above != 0 || entry.walked() & own != 0 {
            return Visit::Contained;
        }
        shard.places[place] = entry.with(own).0;
        if entry.seen() & own == 0 { Visit::New } else { Visit::Again }
    }

    /// Whether a state was reached with one of these budgets.
    pub(super) fn holds(&self, print: Fingerprint, budgets: Bits) -> bool {
        let shard = self.shard(print);
        Entry(shard.places[shard.place(print)]).seen() & budgets != 0
    }

    /// Another round begins.
    pub(super) fn forget_walks(&self) {
        for shard in &self.shards {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            shard.places.iter_mut().for_each(|place| *place &= !WALKED);
        }
    }

    fn shard(&self, print: Fingerprint) -> MutexGuard<'_, Shard> {
        let index = (print.bits() >> 64) as usize % SHARDS;
        self.shards[index].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const WALKED: u128 = 0xffff;
const SEEN_AT: u32 = 16;
const NAME: u128 = !0xffff_ffff;

#[derive(Clone, Copy)]
struct Entry(u128);

impl Entry {
    fn seen(self) -> Bits {
        (self.0 >> SEEN_AT) as Bits
    }

    fn walked(self) -> Bits {
        self.0 as Bits
    }

    fn with(self, budget: Bits) -> Self {
        Self(self.0 | u128::from(budget) << SEEN_AT | u128::from(budget))
    }
}

/// Open addressing; a place that is free holds 0.
#[derive(Debug)]
struct Shard {
    places: Vec<u128>,
    len: usize,
}

impl Shard {
    fn new() -> Self {
        Self { places: vec![0; 1 << 8], len: 0 }
    }

    fn insert(&mut self, print: Fingerprint) -> usize {
        if self.len * 4 >= self.places.len() * 3 {
            self.grow();
        }
        let place = self.place(print);
        if self.places[place] == 0 {
            self.places[place] = print.bits() & NAME;
            self.len += 1;
        }
        place
    }

    /// Where a fingerprint stands, or would stand.
    fn place(&self, print: Fingerprint) -> usize {
        let name = print.bits() & NAME;
        let mask = self.places.len() - 1;
        let mut place = (name >> 32) as usize & mask;
        while self.places[place] != 0 && self.places[place] & NAME != name {
            place = (place + 1) & mask;
        }
        place
    }

    fn grow(&mut self) {
        let doubled = vec![0; self.places.len() * 2];
        for entry in std::mem::replace(&mut self.places, doubled) {
            if entry != 0 {
                let place = self.place(Fingerprint::from_bits(entry));
                self.places[place] = entry;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(n: u64) -> Fingerprint {
        super::super::fingerprint::of(&n)
    }

    #[test]
    fn a_state_is_new_again_and_contained() {
        let table = Table::new();
        for n in 0..10_000 {
            assert_eq!(table.visit(print(n), 0b0001, 0b0110), Visit::New);
            assert_eq!(table.visit(print(n), 0b0001, 0b0110), Visit::Contained);
        }
        table.forget_walks();
        for n in 0..10_000 {
            assert_eq!(table.visit(print(n), 0b0001, 0b0110), Visit::Again);
            assert_eq!(table.visit(print(n), 0b1000, 0b0001), Visit::Contained);
            assert!(table.holds(print(n), 0b0011) && !table.holds(print(n), 0b0010));
        }
        assert!(!table.holds(print(10_000), u16::MAX));
    }
}
