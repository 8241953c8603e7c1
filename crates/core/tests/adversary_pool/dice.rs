//! Chance that can be written down, replayed and shortened.

/// Draws small numbers from a seed, or from a list of draws; behind its end every draw is 0, which
/// always means the plainest thing.
#[derive(Clone, Debug)]
pub(crate) struct Dice {
    state: u64,
    script: Option<Vec<u32>>,
    pub(crate) drawn: Vec<u32>,
}

impl Dice {
    pub(crate) fn seeded(seed: u64) -> Self {
        let state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d;
        Self { state, script: None, drawn: Vec::new() }
    }

    pub(crate) fn scripted(script: Vec<u32>) -> Self {
        Self { state: 0, script: Some(script), drawn: Vec::new() }
    }

    /// A number below `n`.
    pub(crate) fn below(&mut self, n: u32) -> u32 {
        let drawn = match &self.script {
            Some(script) => {
                let planned = script.get(self.drawn.len()).copied().unwrap_or(0);
                planned.min(n.saturating_sub(1))
            }
            None => {
                self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mut z = self.state;
                z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                z ^= z >> 31;
                if n == 0 { 0 } else { (z % u64::from(n)) as u32 }
            }
        };
        self.drawn.push(drawn);
        drawn
    }

    /// Once in `n` times; never where the script is over.
    pub(crate) fn one_in(&mut self, n: u32) -> bool {
        n == 1 || n > 1 && self.below(n) == n - 1
    }

    pub(crate) fn index(&mut self, length: usize) -> usize {
        self.below(length as u32) as usize
    }

    pub(crate) fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.index(all.len())]
    }
}
