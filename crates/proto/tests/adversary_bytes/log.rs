//! One partition's log, and what its leader remembers of producers: arithmetic of its own.

use std::collections::{BTreeMap, VecDeque};

/// What a leader remembers of one producer id.
#[derive(Clone, Debug)]
struct Memory {
    epoch: i16,
    /// First and last sequence, and offset, of the newest five batches.
    batches: VecDeque<(i32, i32, i64)>,
}

/// A log of one copy, which no change of leaders loses.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// Names of records, in order.
    pub names: Vec<u64>,
    producers: BTreeMap<i64, Memory>,
}

/// A batch as the log sees it.
#[derive(Clone, Debug)]
pub struct Batch {
    pub pid: i64,
    pub epoch: i16,
    pub first: i32,
    pub names: Vec<u64>,
}

fn after(sequence: i32, by: usize) -> i32 {
    ((i64::from(sequence) + by as i64) % (1 << 31)) as i32
}

impl Log {
    /// The code, and the base offset.
    pub fn append(&mut self, batch: Batch) -> (i16, i64) {
        let last = after(batch.first, batch.names.len() - 1);
        if let Some(memory) = self.producers.get(&batch.pid) {
            if batch.epoch < memory.epoch {
                return (47, -1);
            }
            if batch.epoch > memory.epoch && batch.first != 0 {
                return (45, -1);
            }
            if batch.epoch == memory.epoch {
                let same = memory.batches.iter().find(|it| (it.0, it.1) == (batch.first, last));
                if let Some((.., offset)) = same {
                    return (0, *offset);
                }
                let newest = memory.batches.back().map(|it| it.1);
                if newest.is_some_and(|newest| batch.first != after(newest, 1)) {
                    return (45, -1);
                }
            }
        }
        let offset = self.names.len() as i64;
        self.names.extend(batch.names);
        let memory = self
            .producers
            .entry(batch.pid)
            .or_insert_with(|| Memory { epoch: batch.epoch, batches: VecDeque::new() });
        if memory.epoch != batch.epoch {
            *memory = Memory { epoch: batch.epoch, batches: VecDeque::new() };
        }
        memory.batches.push_back((batch.first, last, offset));
        if memory.batches.len() > 5 {
            memory.batches.pop_front();
        }
        (0, offset)
    }

    /// A restart: of each producer the newest batch is remembered.
    pub fn reload(&mut self) {
        for memory in self.producers.values_mut() {
            let newest = memory.batches.pop_back();
            memory.batches = newest.into_iter().collect();
        }
    }
}
