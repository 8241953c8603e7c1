//! Applications: they send, wait, give up, and write down what they are told.

use std::future::{Future as _, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use candor_sim::judge::{Fact, Lane, Said};
use candor_sim::words;
use candor_tokio::{Config, Handle, Notice, Producer, Record, Resolution, Verdict};
use fastrand::Rng;
use tokio::sync::{oneshot, watch};

use super::book::Book;
use super::mark::marked;
use super::{QUIET, SIZED, STATE_TTL, STEADY, Topic};

/// One application with a producer of its own.
pub(crate) struct Caller {
    /// Which one, from 0.
    pub(crate) number: u32,
    pub(crate) producer: Producer,
    pub(crate) book: Arc<Book>,
    pub(crate) topics: Vec<Topic>,
    /// What its records carry.
    pub(crate) run: u64,
}

/// How long somebody waits for a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Until {
    /// It is told.
    Told,
    /// It is told, or the record is cancelled after so long.
    Cancelled(Duration),
    /// It is told, or the record is revoked after so long.
    Revoked(Duration),
}

/// Settings that differ between the producers of a run, drawn from its seed.
pub(crate) fn config(bootstrap: &[String], rng: &mut Rng) -> Config {
    let millis = |rng: &mut Rng, least, most| Duration::from_millis(rng.u64(least..=most));
    Config::new(bootstrap)
        .linger(millis(rng, 0, 20))
        .batch_size(rng.usize(1..=32) << 10)
        .max_in_flight(if rng.bool() { 5 } else { rng.usize(1..=5) })
        .request_timeout(millis(rng, 1_000, 3_000))
        .connect_timeout(Duration::from_secs(2))
        .metadata_max_age(millis(rng, 1_000, 3_000))
        .reconnect_backoff_max(Duration::from_millis(500))
        .trust_base_offset(rng.bool())
        .deadline(STATE_TTL)
        .state_ttl(STATE_TTL)
        .auto_create_topics(false)
}

impl Caller {
    /// Sends until it is told to stop, and gives the tasks that still wait for verdicts.
    pub(crate) async fn call(
        self: Arc<Self>,
        mut rng: Rng,
        mut stop: watch::Receiver<bool>,
    ) -> tokio::task::JoinSet<()> {
        let mut waiting = tokio::task::JoinSet::new();
        let began = tokio::time::Instant::now();
        let mut quiet_until = began;
        while !*stop.borrow() {
            for _ in 0..rng.usize(1..=8) {
                let now = tokio::time::Instant::now();
                let topic = match rng.u8(0..10) {
                    0 if now >= quiet_until => {
                        // Long enough for brokers to forget a producer, or not quite.
                        quiet_until = now + Duration::from_millis(rng.u64(2_000..40_000));
                        QUIET
                    }
                    1..=3 => SIZED,
                    4 | 5 => super::FLEETING,
                    _ => STEADY,
                };
                let partition = rng.i32(0..self.topics[topic as usize].partitions);
                self.send(&mut rng, &mut waiting, topic, partition).await;
            }
            while waiting.try_join_next().is_some() {}
            let pause = Duration::from_millis(rng.u64(2..30));
            // Either ends the pause.
            let _told = tokio::time::timeout(pause, stop.changed()).await;
        }
        waiting
    }

    fn lane(&self, topic: u32, partition: i32) -> Lane {
        Lane { producer: self.number, topic, partition }
    }

    async fn send(
        self: &Arc<Self>,
        rng: &mut Rng,
        waiting: &mut tokio::task::JoinSet<()>,
        topic: u32,
        partition: i32,
    ) {
        let deadline = Duration::from_millis(match rng.u8(0..10) {
            0 => rng.u64(50..=800),
            1..=5 => rng.u64(1_500..=4_000),
            _ => rng.u64(5_000..=8_000),
        });
        let patience = Duration::from_millis(rng.u64(0..=600));
        let until = match rng.u8(0..20) {
            0 => Until::Cancelled(patience),
            1 | 2 => Until::Revoked(patience),
            _ => Until::Told,
        };
        let long = rng.u8(0..10) == 0;
        let filler = rng.usize(0..if long { 3_000 } else { 200 });
        if let Some((record, handle)) = self.hand_in(topic, partition, deadline, filler).await {
            waiting.spawn(Arc::clone(self).wait(record, handle, until, None));
        }
    }

    /// Puts one record into the order, if the producer takes it.
    async fn hand_in(
        &self,
        topic: u32,
        partition: i32,
        deadline: Duration,
        filler: usize,
    ) -> Option<(u64, Handle)> {
        let place = self.lane(topic, partition);
        let record = self.book.intend(place, deadline);
        let value = marked(self.run, record, topic, partition, filler);
        let to = Record::to(self.topics[topic as usize].name.as_str())
            .partition(partition.unsigned_abs())
            .value(value)
            .deadline(deadline);
        match self.producer.enqueue(to).await {
            Ok(handle) => {
                self.book.fact(Fact::Accepted { record });
                Some((record, handle))
            }
            Err(_) => {
                self.book.fact(Fact::Refused { record });
                None
            }
        }
    }

    /// Waits for the verdict and its resolution. Who writes a verdict down was woken by it and by
    /// nothing else, so that the book is written in the order of telling.
    async fn wait(
        self: Arc<Self>,
        record: u64,
        handle: Handle,
        until: Until,
        tell: Option<oneshot::Sender<String>>,
    ) {
        let verdict = match until {
            Until::Told => handle.await,
            Until::Cancelled(patience) => {
                let handle = Arc::new(Mutex::new(handle));
                let gives_up = Arc::downgrade(&handle);
                tokio::spawn(give_up(Arc::clone(&self.book), record, gives_up, patience));
                poll_fn(|cx| Pin::new(&mut *lock(&handle)).poll(cx)).await
            }
            Until::Revoked(patience) => {
                let mut handle = handle;
                tokio::select! {
                    biased;
                    () = tokio::time::sleep(patience) => return self.revoke(record, handle).await,
                    verdict = &mut handle => verdict,
                }
            }
        };
        if let Some(tell) = tell {
            // Who asked waits for it.
            let _heard = tell.send(format!("{verdict:?}"));
        }
        self.write_down(record, verdict).await;
    }

    /// The outcome comes in place of a verdict: until then nobody knows.
    async fn revoke(&self, record: u64, handle: Handle) {
        self.book.cancel(record);
        self.book.tell(record, Said::Unknown);
        self.resolve(record, handle.revoke().await);
    }

    async fn write_down(&self, record: u64, verdict: Verdict) {
        match verdict {
            Verdict::Delivered(at) => self.book.tell(record, Said::Delivered(at.offset)),
            Verdict::NotDelivered(_) => self.book.tell(record, Said::NotDelivered),
            Verdict::Unknown(unknown) => {
                self.book.tell(record, Said::Unknown);
                // Some would rather have it not written than wait for what it is.
                let resolved = match record % 3 {
                    0 => unknown.revoke(),
                    _ => unknown.resolved(),
                };
                self.resolve(record, resolved.await);
            }
        }
    }

    fn resolve(&self, record: u64, resolution: Resolution) {
        let said = match resolution {
            Resolution::Delivered(at) => Said::Delivered(at.offset),
            Resolution::NotDelivered(_) => Said::NotDelivered,
            Resolution::Never(never) => {
                self.book.never(never.reason);
                Said::Unknown
            }
        };
        self.book.resolve(record, said);
    }

    /// CHK-20: when the faults are over, a fresh record to every partition is delivered. Gives the
    /// lanes where it was not.
    pub(crate) async fn probe(self: &Arc<Self>) -> Vec<String> {
        let mut sent = Vec::new();
        for (topic, of) in (0..).zip(&self.topics) {
            for partition in 0..of.partitions {
                let handed = self.hand_in(topic, partition, STATE_TTL, 0).await;
                let verdict = handed.map(|(record, handle)| {
                    let (tell, told) = oneshot::channel();
                    tokio::spawn(Arc::clone(self).wait(record, handle, Until::Told, Some(tell)));
                    told
                });
                sent.push((self.lane(topic, partition), verdict));
            }
        }
        let mut ill = Vec::new();
        for (lane, sent) in sent {
            let Some(verdict) = sent else {
                ill.push(format!("{lane} refuses a fresh record"));
                continue;
            };
            // Who would tell is gone only with the whole run.
            let verdict = verdict.await.unwrap_or_default();
            if !verdict.starts_with("Delivered") {
                ill.push(format!("a fresh record of {lane}, after the faults: {verdict}"));
            }
        }
        ill
    }

    /// Writes down what the producer announces, until it is closed.
    pub(crate) async fn listen(self: Arc<Self>) {
        let mut notices = self.producer.notices();
        while let Some(notice) = notices.next().await {
            if let Notice::Partition { topic, partition, notice } = notice
                && let Some(topic) = self.topics.iter().position(|known| known.name == *topic)
            {
                let topic = u32::try_from(topic).unwrap_or(u32::MAX);
                self.book.notice(self.lane(topic, partition), words::notice(notice));
            }
        }
    }
}

fn lock(handle: &Mutex<Handle>) -> MutexGuard<'_, Handle> {
    handle.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn give_up(book: Arc<Book>, record: u64, handle: Weak<Mutex<Handle>>, patience: Duration) {
    tokio::time::sleep(patience).await;
    if let Some(handle) = handle.upgrade() {
        book.cancel(record);
        lock(&handle).cancel();
    }
}
