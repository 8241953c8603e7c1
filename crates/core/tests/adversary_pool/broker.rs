//! One partition as Kafka's brokers keep it, from the description of their protocol alone: copies on
//! several brokers, a leader that may not know that it fell, what each copy remembers of producers.

use std::collections::{BTreeMap, VecDeque};

/// A batch in a log. Foreign ones have the producer id -1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Batch {
    pub(crate) base: i64,
    pub(crate) id: i64,
    pub(crate) epoch: i16,
    pub(crate) first: i64,
    pub(crate) records: Vec<u16>,
    pub(crate) stamp: i64,
    /// Tells batches apart that stand at one offset of different leaders.
    leader_epoch: i32,
}

impl Batch {
    pub(crate) fn end(&self) -> i64 {
        self.base + self.records.len() as i64
    }
}

/// What arrives at a broker.
#[derive(Clone, Debug)]
pub(crate) struct Append {
    pub(crate) id: i64,
    pub(crate) epoch: i16,
    pub(crate) first: i64,
    pub(crate) records: Vec<u16>,
    pub(crate) stamp: i64,
}

const ROUND: i64 = 1 << 31;

#[derive(Clone, Debug)]
struct Seen {
    first: i64,
    last: i64,
    base: i64,
    stamp: i64,
}

#[derive(Clone, Debug)]
struct Known {
    epoch: i16,
    newest: VecDeque<Seen>,
}

impl Known {
    fn stamp(&self) -> i64 {
        self.newest.back().map_or(-1, |seen| seen.stamp)
    }
}

/// How a broker treats sequences of a producer that it does not know, other than 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stranger {
    /// 2.5 to 4.4.
    Accepted,
    /// Up to 2.4.
    Answered59,
    /// 4.5, where the log never held anything.
    RefusedByEmptyLogs,
    /// Redpanda.
    Answered45,
}

/// Settings that all copies share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manners {
    pub(crate) stranger: Stranger,
    /// `producer.id.expiration.ms`.
    pub(crate) memory: i64,
    pub(crate) log_append_time: bool,
    /// Old duplicates get 46 once they are committed.
    pub(crate) says_46: bool,
}

/// What a leader makes of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Judged {
    Code(i16),
    /// In the copy's log; answered once it is committed up to `end`.
    Stored {
        base: i64,
        end: i64,
        log_append_time: i64,
    },
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Copy {
    log: Vec<Batch>,
    known: BTreeMap<i64, Known>,
    /// The epoch at which this broker believes to lead.
    pub(crate) leads: Option<i32>,
}

impl Copy {
    pub(crate) fn end(&self) -> i64 {
        self.log.last().map_or(0, Batch::end)
    }

    /// Whether every record of this content is in this log, as one batch.
    pub(crate) fn holds(&self, records: &[u16]) -> bool {
        self.log.iter().any(|batch| batch.id >= 0 && batch.records == records)
    }

    /// Whether this log is the same as another one up to an offset.
    pub(crate) fn agrees(&self, truth: &[Batch], end: i64) -> bool {
        let before = |batch: &&Batch| batch.base < end;
        self.log.iter().filter(before).eq(truth.iter().filter(before))
    }

    /// The newest batch of a producer, wherever it stands.
    fn newest_of(&self, id: i64) -> Option<i64> {
        self.log.iter().rev().find(|batch| batch.id == id).map(|batch| batch.base)
    }

    fn judge(&mut self, append: &Append, manners: Manners, now: i64, committed: i64) -> Judged {
        let count = append.records.len() as i64;
        let last = (append.first + count - 1) % ROUND;
        let known = self.known.get(&append.id);
        if let Some(known) = known.filter(|known| known.epoch == append.epoch) {
            let same = |seen: &&Seen| seen.first == append.first && seen.last == last;
            if let Some(seen) = known.newest.iter().find(same) {
                let end = seen.base + count;
                return Judged::Stored { base: seen.base, end, log_append_time: seen.stamp };
            }
        }
        match known {
            Some(known) if append.epoch < known.epoch => return Judged::Code(47),
            Some(known) if append.epoch > known.epoch => {
                if append.first != 0 {
                    return Judged::Code(45);
                }
            }
            Some(known) => {
                let newest = known.newest.back().map_or(-1, |seen| seen.last);
                if append.first != (newest + 1) % ROUND {
                    let behind = (newest + 1 - append.first).rem_euclid(ROUND) < ROUND / 2;
                    let stored = self.log.iter().any(|batch| {
                        batch.id == append.id
                            && batch.epoch == append.epoch
                            && batch.first == append.first
                            && batch.records == append.records
                            && batch.end() <= committed
                    });
                    return Judged::Code(if behind && stored && manners.says_46 { 46 } else { 45 });
                }
            }
            None if append.first == 0 => {}
            None => match manners.stranger {
                Stranger::Accepted => {}
                Stranger::Answered59 => return Judged::Code(59),
                Stranger::RefusedByEmptyLogs if self.log.is_empty() => return Judged::Code(45),
                Stranger::RefusedByEmptyLogs => {}
                Stranger::Answered45 => return Judged::Code(45),
            },
        }
        let stamp = if manners.log_append_time { now } else { append.stamp };
        let batch = Batch {
            base: self.end(),
            id: append.id,
            epoch: append.epoch,
            first: append.first,
            records: append.records.clone(),
            stamp,
            leader_epoch: self.leads.unwrap_or(-1),
        };
        let (base, end) = (batch.base, batch.end());
        self.take(batch);
        Judged::Stored {
            base,
            end,
            log_append_time: if manners.log_append_time { now } else { -1 },
        }
    }

    /// Appends, and remembers.
    fn take(&mut self, batch: Batch) {
        if batch.id >= 0 {
            let count = batch.records.len() as i64;
            let last = (batch.first + count - 1) % ROUND;
            let seen = Seen { first: batch.first, last, base: batch.base, stamp: batch.stamp };
            let fresh = Known { epoch: batch.epoch, newest: VecDeque::new() };
            let known = self.known.entry(batch.id).or_insert_with(|| fresh.clone());
            if known.epoch != batch.epoch {
                *known = fresh;
            }
            known.newest.push_back(seen);
            if known.newest.len() > 5 {
                known.newest.pop_front();
            }
        }
        self.log.push(batch);
    }

    /// Loads what the log says, up to `keep` batches of each producer; from `start` on only, if what
    /// lies before it is forgotten for the producers for whom `forgets` says so.
    fn reload(&mut self, keep: usize, start: i64, mut forgets: impl FnMut(i64) -> bool) {
        let log = std::mem::take(&mut self.log);
        self.known.clear();
        for batch in log {
            if batch.end() <= start && batch.id >= 0 && forgets(batch.id) {
                self.log.push(batch);
                continue;
            }
            self.take(batch);
        }
        for known in self.known.values_mut() {
            while known.newest.len() > keep {
                known.newest.pop_front();
            }
        }
    }
}

/// A partition.
#[derive(Clone, Debug)]
pub(crate) struct Partition {
    pub(crate) copies: Vec<Copy>,
    pub(crate) in_sync: Vec<bool>,
    pub(crate) leader: Option<usize>,
    pub(crate) epoch: i32,
    pub(crate) start: i64,
    /// What is committed, from the beginning of the log's life.
    pub(crate) truth: Vec<Batch>,
    /// Which topic of this name it is.
    pub(crate) topic: u32,
    pub(crate) manners: Manners,
}

impl Partition {
    pub(crate) fn new(brokers: usize, manners: Manners) -> Self {
        Self {
            copies: vec![Copy::default(); brokers],
            in_sync: vec![true; brokers],
            leader: None,
            epoch: 0,
            start: 0,
            truth: Vec::new(),
            topic: 0,
            manners,
        }
    }

    pub(crate) fn committed(&self) -> i64 {
        self.truth.last().map_or(0, Batch::end)
    }

    /// A copy that leads, or believes so, looks at a batch.
    pub(crate) fn append(&mut self, broker: usize, append: &Append, now: i64) -> Judged {
        let (manners, committed) = (self.manners, self.committed());
        self.copies[broker].judge(append, manners, now, committed)
    }

    /// Somebody else writes.
    pub(crate) fn foreign(&mut self) {
        let Some(leader) = self.leader else { return };
        let copy = &mut self.copies[leader];
        let batch = Batch {
            base: copy.end(),
            id: -1,
            epoch: -1,
            first: -1,
            records: vec![u16::MAX],
            stamp: 0,
            leader_epoch: self.epoch,
        };
        copy.take(batch);
    }

    /// A follower fetches all that the leader has; what it has besides is cut off.
    pub(crate) fn replicate(&mut self, follower: usize, keep: usize) {
        let Some(leader) = self.leader.filter(|leader| *leader != follower) else { return };
        let source = self.copies[leader].log.clone();
        let copy = &mut self.copies[follower];
        let same = copy.log.iter().zip(&source).take_while(|(a, b)| a == b).count();
        copy.leads = None;
        if same < copy.log.len() {
            copy.log.truncate(same);
            copy.reload(keep, 0, |_| false);
        }
        for batch in &source[same..] {
            copy.take(batch.clone());
        }
    }

    /// What every copy in sync has is committed, if these are two at least.
    pub(crate) fn commit(&mut self) -> Vec<Batch> {
        let Some(leader) = self.leader else { return Vec::new() };
        if self.in_sync.iter().filter(|it| **it).count() < 2 {
            return Vec::new();
        }
        let ends = self.copies.iter().zip(&self.in_sync).filter(|(_, in_sync)| **in_sync);
        let end = ends.map(|(copy, _)| {
            let same = copy.log.iter().zip(&self.copies[leader].log).take_while(|(a, b)| a == b);
            same.last().map_or(0, |(batch, _)| batch.end())
        });
        let end = end.min().unwrap_or(0);
        let committed = self.committed();
        let new = self.copies[leader].log.iter();
        let new: Vec<Batch> =
            new.filter(|it| it.base >= committed && it.end() <= end).cloned().collect();
        self.truth.extend(new.iter().cloned());
        new
    }

    /// A copy in sync becomes the leader.
    pub(crate) fn elect(&mut self, broker: usize) {
        self.epoch += 1;
        self.leader = Some(broker);
        self.copies[broker].leads = Some(self.epoch);
        // Who did not fetch from the new leader yet may still have more than it, but never less
        // than what is committed.
    }

    /// The broker process starts again: one batch per producer is remembered.
    pub(crate) fn restart(&mut self, broker: usize, now: i64, forgets: impl FnMut(i64) -> bool) {
        let start = self.start;
        self.copies[broker].reload(1, start, forgets);
        self.expire(broker, now);
    }

    /// Producers whose newest batch is too old. Which.
    pub(crate) fn expire(&mut self, broker: usize, now: i64) -> Vec<i64> {
        let memory = self.manners.memory;
        let known = &mut self.copies[broker].known;
        let old = |known: &Known| now.saturating_sub(known.stamp()) >= memory;
        let expired: Vec<i64> =
            known.iter().filter(|(_, known)| old(known)).map(|(id, _)| *id).collect();
        known.retain(|id, _| !expired.contains(id));
        expired
    }

    /// Whether this copy knows every producer of its log.
    pub(crate) fn newest_known(&self, broker: usize) -> bool {
        let copy = &self.copies[broker];
        copy.log.iter().all(|batch| batch.id < 0 || copy.known.contains_key(&batch.id))
    }

    /// Where the newest batch of a producer stands in this copy.
    pub(crate) fn newest_of(&self, broker: usize, id: i64) -> Option<i64> {
        self.copies[broker].newest_of(id)
    }

    /// The topic is deleted and made anew; the log before it.
    pub(crate) fn recreate(&mut self, leader: usize) -> Vec<Batch> {
        let brokers = self.copies.len();
        let old = std::mem::take(&mut self.truth);
        let topic = self.topic + 1;
        *self = Self { topic, ..Self::new(brokers, self.manners) };
        self.leader = Some(leader);
        self.copies[leader].leads = Some(0);
        old
    }

    /// Starts in the middle of the life of a producer, which wrote one record.
    pub(crate) fn preset(&mut self, id: i64, epoch: i16, next: i64, stamp: i64, record: u16) {
        let batch = Batch {
            base: 0,
            id,
            epoch,
            first: (next - 1).rem_euclid(ROUND),
            records: vec![record],
            stamp,
            leader_epoch: 0,
        };
        for copy in &mut self.copies {
            copy.take(batch.clone());
        }
        self.truth.push(batch);
    }
}
