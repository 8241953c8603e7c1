//! The judge of one lane, step by step: small, cloneable, part of a search's canonical state.

use std::collections::BTreeSet;
use std::hash::Hasher;

use super::anomaly::{Anomaly, Class};
use super::conditions::{Said, is_late};
use super::ledger::{Ledger, LogIs};
use super::wire::{Attempt, Reply, Wire};

/// How a run is to be judged.
///
/// ```
/// use candor_sim::judge::Settings;
/// let settings = Settings { state_ttl: Some(72_000_000_000), ..Settings::default() };
/// assert!(settings.wire);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Settings {
    /// How much later than its deadline a verdict may come, in microseconds. Virtual time: 0.
    pub slack: u64,
    /// How long the producer relies on a broker's memory, in microseconds; `None`: STALE_RESEND is
    /// not judged (`BeyondMemory::Resend`).
    pub state_ttl: Option<u64>,
    /// Record timestamps age the broker's memory (topics with CreateTime).
    pub timestamps_count: bool,
    /// The producer reads `base_offset = -1` beside 3 and 6 as a proof.
    pub trust_base_offset: bool,
    /// The wire ledger is complete, so that precision can be judged.
    pub wire: bool,
    /// Nothing may be delivered behind a failed record.
    pub stop: bool,
    /// The least time between two attempts of a batch, in microseconds; 0: not judged.
    pub backoff: u64,
    /// When the log is shown.
    pub log: LogIs,
    /// Answers tell where the log begins, and it is one log: what they prove can be judged (C1).
    pub log_starts: bool,
    /// First sequence of the first identity: 0 but for presets near the wrap.
    pub first_sequence: i64,
    /// First sequence of every later identity: 0 but where brokers were set up otherwise.
    pub origin: i64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            slack: 0,
            state_ttl: None,
            timestamps_count: true,
            trust_base_offset: false,
            wire: true,
            stop: false,
            backoff: 0,
            log: LogIs::ShownAtTheEnd,
            log_starts: true,
            first_sequence: 0,
            origin: 0,
        }
    }
}

impl Settings {
    pub(super) fn forgets(&self, now: u64, since: u64) -> bool {
        self.state_ttl.is_some_and(|ttl| now >= since.saturating_add(ttl))
    }

    pub(super) fn forgets_timestamp(&self, now: u64, millis: i64) -> bool {
        self.timestamps_count && self.forgets(now, micros(millis))
    }

    /// An age that says no more than what matters: it stops at the time to live.
    pub(super) fn age(&self, now: u64, since: u64) -> Option<u64> {
        self.state_ttl.map(|ttl| now.saturating_sub(since).min(ttl))
    }

    pub(super) fn timestamp_age(&self, now: u64, millis: i64) -> Option<u64> {
        if self.timestamps_count { self.age(now, micros(millis)) } else { None }
    }
}

pub(super) fn micros(millis: i64) -> u64 {
    u64::try_from(millis).unwrap_or_default().saturating_mul(1_000)
}

/// What a producer announced about a lane.
///
/// ```
/// assert_ne!(candor_sim::judge::Noticed::DataLoss, candor_sim::judge::Noticed::StateLost);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Noticed {
    /// Acknowledged data may be gone.
    DataLoss,
    /// The broker lost its memory of us.
    StateLost,
    /// Somebody else uses our id.
    IdentityConflict,
    /// A late copy may stand behind newer records.
    Unfenced,
    /// Nothing older can appear any more.
    Fence,
    /// An answer contradicted an earlier one.
    Contradiction,
    /// The lane stopped.
    Stopped,
}

/// Watches one lane and convicts it as soon as something is certain.
///
/// ```
/// use candor_sim::judge::{Class, LogIs, Observer, Said, Settings};
/// let mut watch = Observer::new(Settings { log: LogIs::Live, wire: false, ..Settings::default() });
/// watch.intended(1, 1_000);
/// watch.accepted(1);
/// assert!(watch.told(1_000, 1, Said::NotDelivered).is_empty());
/// assert_eq!(watch.committed(1, 0)[0].class, Class::Ghost);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observer {
    settings: Settings,
    ledger: Ledger,
    wire: Wire,
    stalls: Vec<(u64, u64)>,
    noticed: bool,
    contradicted: bool,
    /// An answer contradicted a conclusion: the lane has to say so.
    owes_contradiction: bool,
    closing: bool,
    /// Records that end for reasons which stand on no wire.
    hidden: BTreeSet<u64>,
    /// What only a notice that follows can explain.
    suspects: Vec<Anomaly>,
    /// Offset behind the newest record that was reported delivered.
    delivered_to: Option<i64>,
}

impl Observer {
    /// Of a lane that was handed nothing yet.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            ledger: Ledger::new(settings.log),
            wire: Wire::new(settings),
            stalls: Vec::new(),
            noticed: false,
            contradicted: false,
            owes_contradiction: false,
            closing: false,
            hidden: BTreeSet::new(),
            suspects: Vec::new(),
            delivered_to: None,
        }
    }

    /// `send` was called for a record whose verdict is due at `due`.
    pub fn intended(&mut self, record: u64, due: u64) {
        self.ledger.intended(record, due);
    }

    /// A record was taken.
    pub fn accepted(&mut self, record: u64) -> Vec<Anomaly> {
        self.ledger.accepted(record).into_iter().collect()
    }

    /// A record was handed back.
    pub fn refused(&mut self, record: u64) -> Vec<Anomaly> {
        self.ledger.refused(record).into_iter().collect()
    }

    /// The caller wants this record's verdict now.
    pub fn cancelled(&mut self, now: u64, record: u64) {
        self.ledger.hurry(record, now);
    }

    /// The caller gives up what is in doubt in this lane: all of it is to be told now, but for what
    /// lies behind a slot that nothing fills (V3).
    pub fn abandoned(&mut self, now: u64) {
        for record in self.wire.abandoned() {
            self.ledger.hurry(record, now);
        }
    }

    /// The caller wants every verdict by `due`.
    pub fn closing(&mut self, due: u64) {
        self.closing = true;
        self.ledger.hurry_all(due);
    }

    /// The host slept, or did not poll, in this time.
    pub fn stalled(&mut self, from: u64, to: u64) {
        self.stalls.push((from, to));
    }

    /// Whether it is too late for what was due, the host's own sleep forgiven.
    fn is_late(&self, now: u64, due: u64) -> bool {
        let slept: u64 =
            self.stalls.iter().map(|&(from, to)| to.min(now).saturating_sub(from.max(due))).sum();
        is_late(now, due, self.settings.slack, slept)
    }

    /// The lane was told where its leader is.
    pub fn routed(&mut self, connection: Option<u64>, leader_epoch: i32) {
        self.wire.routed(connection, leader_epoch);
    }

    /// A batch was offered to a connection.
    pub fn offered(&mut self, now: u64, attempt: &Attempt) -> Vec<Anomaly> {
        let mut found = Vec::new();
        self.wire.prune(&self.ledger);
        self.wire.offered(now, attempt, &self.ledger, &mut found);
        found
    }

    /// A broker answered; `None` for a response without a usable entry.
    pub fn answered(&mut self, now: u64, attempt: u64, reply: Option<Reply>) {
        let contradicts = self.wire.answered(now, attempt, reply, &self.ledger);
        self.owes_contradiction |= contradicts;
        self.wire.prune(&self.ledger);
    }

    /// The attempt's connection is over. `partly`: the broker certainly did not get all of it.
    pub fn ended(&mut self, attempt: u64, partly: bool) {
        self.wire.ended(attempt, partly);
        self.wire.prune(&self.ledger);
    }

    /// The lane announced something.
    pub fn noticed(&mut self, notice: Noticed) {
        if !matches!(notice, Noticed::Fence | Noticed::Unfenced) {
            self.noticed = true;
            self.suspects.retain(|suspect| suspect.class != Class::Hasty);
        }
        if notice == Noticed::Unfenced {
            self.ledger.unfence();
        }
        if notice == Noticed::Contradiction {
            self.contradicted = true;
            self.suspects.clear();
        }
        if notice == Noticed::StateLost && self.wire.asked_in_vain(&self.ledger) {
            self.wire.forget_log();
        }
        if notice == Noticed::DataLoss {
            self.delivered_to = None;
            let seldom = self.wire.asked_too_seldom(&self.ledger).filter(|_| self.settings.wire);
            let alarm = |record| Anomaly::new(Class::FalseAlarm).record(record);
            self.suspects.extend(seldom.map(alarm));
            self.wire.forget_log();
        }
    }

    /// Something happened to the lane that may end records before their time.
    pub fn disturbed(&mut self) {
        self.noticed = true;
        self.delivered_to = None;
        self.wire.disturbed();
    }

    /// What ends this record before its time stands on no wire.
    pub fn hidden(&mut self, record: u64) {
        self.hidden.insert(record);
    }

    /// S13: offsets of delivered records grow with the order of sending.
    fn place(&mut self, record: u64, said: Said) -> Option<Anomaly> {
        let Said::Delivered(Some(offset)) = said else { return None };
        if self.wire.is_of_old_log(record) {
            return None;
        }
        let back = self.delivered_to.is_some_and(|end| offset < end);
        self.delivered_to = self.delivered_to.max(Some(offset + 1));
        back.then(|| Anomaly::new(Class::OffsetBack).record(record))
    }

    /// The lane gave a verdict.
    pub fn told(&mut self, now: u64, record: u64, said: Said) -> Vec<Anomaly> {
        let mut found = Vec::new();
        let due = self.ledger.due(record);
        if self.is_late(now, due) {
            found.push(Anomaly::new(Class::Late).record(record));
        }
        if self.is_hasty(now, record, said) {
            // The notice that explains it may follow the verdict.
            self.suspects.push(Anomaly::new(Class::Hasty).record(record));
        }
        if said == Said::Unknown {
            self.suspects.extend(self.coward(record));
        }
        found.extend(self.guess(record, said));
        found.extend(self.place(record, said));
        self.ledger.told(record, said, &mut found);
        self.wire.prune(&self.ledger);
        found
    }

    /// Whether a record was ended before its time without a reason that anybody can see.
    fn is_hasty(&self, now: u64, record: u64, said: Said) -> bool {
        if !self.settings.wire
            || now >= self.ledger.due(record)
            || self.ledger.hurried(record)
            || self.noticed
            || self.hidden.contains(&record)
            || self.wire.is_overtaken(record)
        {
            return false;
        }
        match said {
            Said::Delivered(_) => false,
            Said::NotDelivered => !self.wire.is_refused_for_good(record),
            Said::Unknown => {
                !self.wire.is_upset() && !self.wire.may_be_forgotten(now, &self.ledger)
            }
        }
    }

    /// C1: the 0 of a replacement tells that what it contested is not written only if it shows that
    /// the broker knew us.
    fn guess(&self, record: u64, said: Said) -> Option<Anomaly> {
        let guessed = said == Said::NotDelivered
            && self.settings.log_starts
            && self.wire.is_merely_taken(record);
        guessed.then(|| Anomaly::new(Class::Hasty).record(record))
    }

    fn coward(&self, record: u64) -> Option<Anomaly> {
        let judged = self.settings.wire && !self.contradicted && !self.wire.leaves_doubt(record);
        judged.then(|| Anomaly::new(Class::Coward).record(record))
    }

    /// The lane gave a resolution; `Never` is [`Said::Unknown`].
    pub fn resolved(&mut self, _: u64, record: u64, said: Said) -> Vec<Anomaly> {
        let mut found = Vec::new();
        if said == Said::Unknown {
            self.suspects.extend(self.coward(record));
            let early = self.settings.wire && !self.closing && self.wire.is_awaited(record);
            found.extend(early.then(|| Anomaly::new(Class::Hasty).record(record)));
            self.wire.never(record);
        }
        found.extend(self.guess(record, said));
        self.ledger.resolved(record, said, &mut found);
        self.wire.prune(&self.ledger);
        found
    }

    /// The lane was polled until it had nothing more to say: what is due must have been told.
    pub fn polled(&self, now: u64) -> Vec<Anomaly> {
        let due = |record: &u64| self.is_late(now + 1, self.ledger.due(*record));
        let late = |record| Anomaly::new(Class::Late).record(record);
        let unheeded = self.owes_contradiction && !self.contradicted;
        let unheeded = unheeded.then(|| Anomaly::new(Class::Unheeded));
        self.ledger
            .untold()
            .filter(due)
            .map(late)
            .chain(unheeded)
            .chain(self.suspects.iter().copied())
            .collect()
    }

    /// A record of the lane stands in its log, committed, behind everything shown before.
    pub fn committed(&mut self, record: u64, offset: i64) -> Vec<Anomaly> {
        let mut found = Vec::new();
        self.ledger.committed(record, offset, &mut found);
        found
    }

    /// The log was cut: what stands at or behind this offset is gone, with an excuse.
    pub fn truncated(&mut self, offset: i64) {
        self.ledger.truncated(offset);
    }

    /// A copy stands in a log where it has no business.
    pub fn misplaced(&mut self, record: u64, offset: i64) {
        self.ledger.misplaced(record, offset);
    }

    /// The last judgement. `closed`: every record must have its last word by now.
    pub fn close(&self, closed: bool) -> Vec<Anomaly> {
        let mut found = self.ledger.close(closed, self.settings.stop);
        found.extend(&self.suspects);
        found
    }

    /// Records without a verdict.
    pub fn untold(&self) -> impl Iterator<Item = u64> + '_ {
        self.ledger.untold()
    }

    /// Records whose `Unknown` waits for its resolution.
    pub fn unresolved(&self) -> impl Iterator<Item = u64> + '_ {
        self.ledger.unresolved()
    }

    /// Whether this record has its verdict.
    pub fn verdict(&self, record: u64) -> Option<Said> {
        self.ledger.verdict(record)
    }

    /// The resolution of this record, if it has one; `Never` is [`Said::Unknown`].
    pub fn resolution(&self, record: u64) -> Option<Said> {
        self.ledger.resolution(record)
    }

    /// Whether the last word on this record is that it was delivered.
    pub fn is_delivered(&self, record: u64) -> bool {
        self.ledger.is_delivered(record)
    }

    /// Whether this record was seen in the log.
    pub fn in_log(&self, record: u64) -> bool {
        self.ledger.in_log(record)
    }

    /// Whether discipline on the wire was kept so far.
    pub fn is_disciplined(&self) -> bool {
        !self.wire.is_muddled()
    }

    /// How many records each batch has that was offered in the current identity from this sequence
    /// on, in order, as far as they are still of interest; replacements aside.
    pub fn sizes_from(&self, first: i32) -> Vec<u32> {
        self.wire.sizes_from(i64::from(first))
    }

    /// Feeds everything that steers later judgements into a hasher: times are relative and stop at
    /// the time to live, names are small.
    pub fn fingerprint(&self, now: u64, into: &mut impl Hasher) {
        self.ledger.fingerprint(into);
        self.wire.fingerprint(now, &self.ledger, into);
        let flags = [self.noticed, self.contradicted, self.owes_contradiction, self.closing];
        into.write_u8(flags.iter().fold(0, |bits, flag| bits << 1 | u8::from(*flag)));
        into.write_i64(self.delivered_to.unwrap_or(-1));
    }
}
