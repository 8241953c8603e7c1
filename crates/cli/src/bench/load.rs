//! What is sent: the instrument's payloads, byte for byte, so that peers compress and copy the same.

/// Different values.
const VALUES: usize = 1024;

/// All values.
#[derive(Debug)]
pub(crate) struct Load(Vec<Vec<u8>>);

impl Load {
    /// Values of this many bytes: lines of a log, no two alike.
    pub(crate) fn new(size: usize) -> Self {
        let mut numbers = Numbers(42);
        Self((0..VALUES).map(|_| value(&mut numbers, size)).collect())
    }

    /// The value of record `i`.
    pub(crate) fn value(&self, i: u64) -> &[u8] {
        &self.0[(i % VALUES as u64) as usize]
    }
}

fn value(numbers: &mut Numbers, size: usize) -> Vec<u8> {
    let mut text = String::with_capacity(size + 128);
    while text.len() < size {
        let (id, user, latency) =
            (numbers.next(), numbers.next() % 1_000_000, numbers.next() % 100_000);
        text.push_str(&format!("id={id:010} user={user:06} level=info service=checkout "));
        text.push_str(&format!("status=200 latency_us={latency:05} "));
    }
    text.truncate(size);
    text.into_bytes()
}

/// Knuth's linear congruential generator.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_their_size_and_differ() {
        let load = Load::new(100);
        assert!((0..1024).all(|i| load.value(i).len() == 100));
        assert!(load.value(0).starts_with(b"id="));
        assert_ne!(load.value(0), load.value(1));
        assert_eq!(load.value(0), load.value(1024));
    }
}
