//! The ledger of a run: what was handed in, what was said of it, and when.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use candor_sim::judge::{Entry, Excuse, ExcuseKind, Fact, Lane, Noticed, Said};
use candor_tokio::NeverReason;

/// So long after a topic was made anew, answers of the old one may still arrive: nothing is held
/// back for longer.
const ECHO: Duration = Duration::from_secs(10);

/// What everybody writes into.
#[derive(Debug)]
pub(crate) struct Book {
    began: Instant,
    /// The topic that is made anew now and then.
    fleeting: u32,
    inside: Mutex<Inside>,
}

#[derive(Debug, Default)]
struct Inside {
    entries: Vec<Entry>,
    pages: Vec<Page>,
    excuses: Vec<Excuse>,
    echo_until: u64,
    lateness: Vec<u64>,
    notices: Vec<(Lane, Noticed)>,
    nevers: BTreeMap<String, u64>,
}

#[derive(Debug)]
struct Page {
    lane: Lane,
    due: u64,
}

impl Book {
    /// An empty one.
    pub(crate) fn new(fleeting: u32) -> Self {
        Self { began: Instant::now(), fleeting, inside: Mutex::default() }
    }

    fn lock(&self) -> (MutexGuard<'_, Inside>, u64) {
        // The clock is read under the lock, so that entries stand in order of time.
        let inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        (inside, micros(self.began.elapsed()))
    }

    /// Writes a fact of the whole run.
    pub(crate) fn fact(&self, fact: Fact) {
        let (mut inside, at) = self.lock();
        inside.entries.push(Entry { at, fact });
    }

    /// So many microseconds from now, as the ledger counts them.
    pub(crate) fn within(&self, time: Duration) -> u64 {
        self.lock().1 + micros(time)
    }

    /// The ledger's time of an instant.
    pub(crate) fn at(&self, instant: Instant) -> u64 {
        micros(instant.saturating_duration_since(self.began))
    }

    /// A record is about to be handed in; gives its number.
    pub(crate) fn intend(&self, lane: Lane, deadline: Duration) -> u64 {
        let (mut inside, at) = self.lock();
        let due = at + micros(deadline);
        inside.pages.push(Page { lane, due });
        let record = inside.pages.len() as u64;
        inside.entries.push(Entry { at, fact: Fact::Intent { record, lane, due } });
        record
    }

    /// The caller no longer waits for it.
    pub(crate) fn cancel(&self, record: u64) {
        let (mut inside, at) = self.lock();
        inside.entries.push(Entry { at, fact: Fact::Cancelled { record } });
        if let Some(page) = inside.page(record) {
            page.due = page.due.min(at);
        }
    }

    /// A verdict.
    pub(crate) fn tell(&self, record: u64, said: Said) {
        self.say(record, Fact::Verdict { record, said }, true);
    }

    /// A resolution.
    pub(crate) fn resolve(&self, record: u64, said: Said) {
        self.say(record, Fact::Resolution { record, said }, false);
    }

    /// Why nobody will find out about a record.
    pub(crate) fn never(&self, why: NeverReason) {
        *self.lock().0.nevers.entry(format!("{why:?}")).or_default() += 1;
    }

    fn say(&self, record: u64, fact: Fact, first: bool) {
        let (mut inside, at) = self.lock();
        let echo_until = inside.echo_until;
        let Some(Page { lane, due }) = inside.page(record) else { return };
        let (lane, due) = (*lane, *due);
        if lane.topic == self.fleeting && at < echo_until {
            // It may speak of the log that was deleted.
            inside.entries.push(Entry { at, fact: Fact::Disturbed { lane } });
        }
        inside.entries.push(Entry { at, fact });
        if first && at >= due {
            inside.lateness.push(at - due);
        }
    }

    /// A notice about one lane.
    pub(crate) fn notice(&self, lane: Lane, notice: Noticed) {
        let (mut inside, at) = self.lock();
        inside.notices.push((lane, notice));
        inside.entries.push(Entry { at, fact: Fact::Notice { lane, notice } });
    }

    /// The topic that comes and goes is about to go. Ends with [`made_anew`](Self::made_anew).
    pub(crate) fn going(&self) {
        let (mut inside, _) = self.lock();
        inside.echo_until = u64::MAX;
    }

    /// It is there again, with these many partitions.
    pub(crate) fn made_anew(&self, partitions: i32) {
        let (mut inside, at) = self.lock();
        let until = at + micros(ECHO);
        inside.echo_until = until;
        let topic = self.fleeting;
        for partition in 0..partitions {
            let (kind, from, to, since) = (ExcuseKind::MadeAnew, 0, i64::MAX, 0);
            inside.excuses.push(Excuse { kind, topic, partition, from, to, since, until });
        }
    }

    /// Everything, for the judge.
    pub(crate) fn close(&self) -> Closed {
        let (mut inside, _) = self.lock();
        let inside = std::mem::take(&mut *inside);
        let mut lateness = inside.lateness;
        lateness.sort_unstable();
        Closed {
            entries: inside.entries,
            excuses: inside.excuses,
            lateness,
            notices: inside.notices,
            nevers: inside.nevers,
        }
    }
}

impl Inside {
    fn page(&mut self, record: u64) -> Option<&mut Page> {
        self.pages.get_mut(usize::try_from(record).ok()?.checked_sub(1)?)
    }
}

/// A book that nobody writes into any more.
#[derive(Debug)]
pub(crate) struct Closed {
    /// The ledger.
    pub(crate) entries: Vec<Entry>,
    /// What the nemesis did to logs.
    pub(crate) excuses: Vec<Excuse>,
    /// How late the verdicts were that came when they were due, in microseconds, sorted.
    pub(crate) lateness: Vec<u64>,
    /// Notices by lane.
    pub(crate) notices: Vec<(Lane, Noticed)>,
    /// Resolutions `Never` by their reasons.
    pub(crate) nevers: BTreeMap<String, u64>,
}

pub(crate) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
