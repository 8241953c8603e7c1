//! Discipline on the wire: what one lane offered, to whom, and what came back (checking 3.2, 8).

mod asked;
mod contest;

use std::hash::{Hash, Hasher};

use super::anomaly::{Anomaly, Class};
use super::conditions::{
    Fate, Said, fate, is_about_memory, is_permanent, overlap, sequence_follows,
};
use super::content::{Content, Open};
use super::ledger::Ledger;
use super::memory::Memory;
use super::observer::Settings;

/// One offer of a batch to one connection, as raw numbers.
///
/// ```
/// use candor_sim::judge::Attempt;
/// let attempt = Attempt {
///     id: 0, connection: 1, leader_epoch: 7, producer_id: 4000, epoch: 0, first: 0, count: 2,
///     content: 0xfeed, records: vec![1, 2], max_timestamp: -1, replacement: false,
/// };
/// assert_eq!(attempt.count as usize, attempt.records.len());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Attempt {
    /// Names the attempt, unique in its lane.
    pub id: u64,
    /// The connection it went to.
    pub connection: u64,
    /// The leader epoch that the producer believed in.
    pub leader_epoch: i32,
    /// Producer id in the batch header.
    pub producer_id: i64,
    /// Producer epoch in the batch header.
    pub epoch: i16,
    /// First sequence in the batch header.
    pub first: i32,
    /// Records in the batch.
    pub count: u32,
    /// A hash of what must not change between attempts.
    pub content: u64,
    /// The records, in order.
    pub records: Vec<u64>,
    /// Largest record timestamp in milliseconds, -1 for none.
    pub max_timestamp: i64,
    /// It was meant to contest a slot (rules C).
    pub replacement: bool,
}

/// What a broker answered, as raw numbers.
///
/// ```
/// use candor_sim::judge::Reply;
/// assert_eq!(Reply::of(19).base_offset, -1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reply {
    /// Kafka's error code.
    pub code: i16,
    /// Offset of the first record, -1 for none.
    pub base_offset: i64,
    /// First offset of the log, -1 for unknown.
    pub log_start: i64,
}

impl Reply {
    /// Only a code.
    pub const fn of(code: i16) -> Self {
        Self { code, base_offset: -1, log_start: -1 }
    }

    /// Code 0 at this offset, with log start 0.
    pub const fn appended(base_offset: i64) -> Self {
        Self { code: 0, base_offset, log_start: 0 }
    }
}

/// The wire as one lane uses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wire {
    settings: Settings,
    identities: Vec<(i64, i16)>,
    /// Contents with their serial number, oldest first.
    contents: Vec<(u64, Content)>,
    serial: u64,
    open: Vec<Open>,
    next: i64,
    route: Option<(u64, i32)>,
    gate_open: bool,
    /// It opened by a 0 for something that was not settled yet: nobody can think otherwise.
    surely_open: bool,
    memory: Memory,
    /// A replacement of the current identity was answered 0: the epoch is over.
    spent: bool,
    /// Something of the current identity was answered 0.
    acknowledged: bool,
    /// Discipline was broken: nothing more is concluded from the wire.
    muddled: bool,
    /// Some answer cast doubt on memory or identity.
    upset: bool,
}

impl Wire {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            settings,
            identities: Vec::new(),
            contents: Vec::new(),
            serial: 0,
            open: Vec::new(),
            next: settings.first_sequence,
            route: None,
            gate_open: false,
            surely_open: false,
            memory: Memory::default(),
            spent: false,
            acknowledged: false,
            muddled: false,
            upset: false,
        }
    }

    /// The lane was told of another route: attempts made before are orphans (S7).
    pub(super) fn routed(&mut self, connection: Option<u64>, leader_epoch: i32) {
        let route = connection.map(|connection| (connection, leader_epoch));
        if route != self.route {
            self.reroute(route);
        }
    }

    fn shut(&mut self) {
        self.gate_open = false;
        self.surely_open = false;
    }

    fn reroute(&mut self, route: Option<(u64, i32)>) {
        self.route = route;
        self.shut();
        for open in &mut self.open {
            open.current = false;
        }
        self.contents.iter_mut().for_each(|(_, content)| content.asked = 0);
    }

    pub(super) fn offered(
        &mut self,
        now: u64,
        attempt: &Attempt,
        ledger: &Ledger,
        found: &mut Vec<Anomaly>,
    ) {
        if self.muddled {
            return;
        }
        let before = found.len();
        self.judge_offer(now, attempt, ledger, found);
        for anomaly in &mut found[before..] {
            *anomaly = anomaly.attempt(attempt.id);
            self.muddled = true;
        }
    }

    fn judge_offer(
        &mut self,
        now: u64,
        attempt: &Attempt,
        ledger: &Ledger,
        found: &mut Vec<Anomaly>,
    ) {
        let record = attempt.records.first().copied().unwrap_or_default();
        let convict = |class| Anomaly::new(class).record(record);
        let route = Some((attempt.connection, attempt.leader_epoch));
        if route != self.route {
            // What is open was orphaned before the lane came to this offer (S7).
            self.open.iter_mut().for_each(|open| open.current = false);
        }
        if let Err(anomaly) = self.adopt(attempt, ledger) {
            found.push(anomaly);
            return;
        }
        let (serial, first) = match self.slot_of(attempt) {
            Err(class) => {
                found.push(convict(class));
                return;
            }
            Ok(Some(serial)) => {
                self.judge_retry(now, serial, attempt, ledger, found);
                self.repeated(now, serial, attempt);
                (serial, false)
            }
            Ok(None) => {
                if attempt.replacement && self.is_stale(now, ledger) {
                    found.push(convict(Class::StaleResend));
                }
                self.judge_new(attempt, ledger, found);
                (self.remember(now, attempt), true)
            }
        };
        if route != self.route {
            self.reroute(route);
        }
        let piped = self.open.iter().any(|open| open.current);
        // C2: a replacement is alone in flight.
        let alone = attempt.replacement || self.contests_now();
        let through_gate = self.gate_open && self.memory.known(now, &self.settings);
        if piped && (alone || !through_gate) {
            found.push(convict(Class::GateBroken));
        }
        let in_pass = !self.surely_open;
        let id = attempt.id;
        let current = true;
        self.open.push(Open { id, content: serial, first, current, in_pass, through_gate });
        if self.span(ledger) > 5 {
            found.push(convict(Class::SpanBroken));
        }
    }

    /// Takes the attempt's identity as the lane's (S8, S9).
    fn adopt(&mut self, attempt: &Attempt, ledger: &Ledger) -> Result<(), Anomaly> {
        let identity = (attempt.producer_id, attempt.epoch);
        let record = attempt.records.first().copied().unwrap_or_default();
        match self.identities.last() {
            Some(&last) if last == identity => return Ok(()),
            Some(&(id, epoch)) => {
                let fresh = self.identities.iter().all(|&(seen, _)| seen != identity.0);
                let grows = id == identity.0 && epoch < identity.1;
                if !(fresh || grows) {
                    return Err(Anomaly::new(Class::EpochBack).record(record));
                }
                self.leaves();
                if let Some(left) = self.left_behind(ledger) {
                    return Err(Anomaly::new(Class::EarlyBump).record(left).other(record));
                }
                for at in 0..self.contents.len() {
                    self.contents[at].1.freed = self.not_written(at) || self.put_back(at, ledger);
                }
                self.next = self.settings.origin;
            }
            None => {}
        }
        self.identities.push(identity);
        self.spent = false;
        self.acknowledged = false;
        self.shut();
        for open in &mut self.open {
            open.current = false;
        }
        self.prune(ledger);
        Ok(())
    }

    /// A record in doubt of the current identity that was told nothing yet.
    fn left_behind(&self, ledger: &Ledger) -> Option<u64> {
        let settled = |at: usize| {
            self.contents[at].1.appended || self.not_written(at) || self.put_back(at, ledger)
        };
        (0..self.contents.len())
            .filter(|&at| !settled(at))
            .flat_map(|at| &self.contents[at].1.records)
            .copied()
            .find(|&record| ledger.verdict(record).is_none())
    }

    fn current_identity(&self) -> usize {
        self.identities.len().saturating_sub(1)
    }

    /// The content that this attempt repeats; `None` for a new one.
    fn slot_of(&self, attempt: &Attempt) -> Result<Option<u64>, Class> {
        let identity = self.current_identity();
        let first = i64::from(attempt.first);
        let mine = || self.contents.iter().filter(|(_, content)| content.identity == identity);
        let same = |content: &Content| {
            content.first == first
                && content.count == attempt.count
                && content.hash == attempt.content
        };
        if let Some((serial, _)) = mine().find(|(_, content)| same(content)) {
            return Ok(Some(*serial));
        }
        if attempt.replacement {
            return self.contest(attempt).map(|()| None);
        }
        // A replacement that was not written may reach over what is offered after it (C4); only
        // the very same place is taken (S4).
        let touches = |content: &Content| {
            let overlaps = overlap(content.first, content.count, first, attempt.count);
            let same = content.first == first && content.count == attempt.count;
            overlaps && (!content.replacement || same)
        };
        let exact = mine().find(|(_, content)| content.first == first && !content.replacement);
        let Some((_, other)) = exact.or_else(|| mine().find(|(_, content)| touches(content)))
        else {
            return Ok(None);
        };
        let shared = attempt.records.iter().any(|record| other.records.contains(record));
        let recut = other.first != first || other.count != attempt.count;
        Err(if shared && recut { Class::NotFrozen } else { Class::IdentityReused })
    }

    fn repeated(&mut self, now: u64, serial: u64, attempt: &Attempt) {
        if let Some(at) = self.position(serial) {
            // Nothing of it was in doubt: that begins anew with this offer.
            let clean = self.all_refused(at);
            let content = &mut self.contents[at].1;
            content.purged &= !clean;
            content.last_offer = now;
            content.last_leader_epoch = attempt.leader_epoch;
        }
    }

    fn judge_retry(
        &self,
        now: u64,
        serial: u64,
        attempt: &Attempt,
        ledger: &Ledger,
        found: &mut Vec<Anomaly>,
    ) {
        let Some(at) = self.position(serial) else { return };
        let content = &self.contents[at].1;
        let dead = |record: &&u64| ledger.verdict(**record) == Some(Said::NotDelivered);
        if let Some(&record) = content.records.iter().find(dead) {
            found.push(Anomaly::new(Class::SlotReused).record(record));
        }
        if self.in_doubt(at) && self.is_stale(now, ledger) {
            let record = content.records.first().copied().unwrap_or_default();
            found.push(Anomaly::new(Class::StaleResend).record(record));
        }
        // L3: one immediate retry for a newer leader epoch.
        let rests = now >= content.last_offer.saturating_add(self.settings.backoff);
        if !rests && attempt.leader_epoch <= content.last_leader_epoch {
            let record = content.records.first().copied().unwrap_or_default();
            found.push(Anomaly::new(Class::Busy).record(record));
        }
    }

    /// K6 forgets the last acknowledged offset and the highest log start.
    pub(super) fn forget_log(&mut self) {
        self.memory.forget_log();
    }

    /// Whether some batch in doubt may have been forgotten by the broker (S20, *resendable*). What was
    /// given up under an older identity is not resent, nor what a later 0 proved (S22).
    fn is_stale(&self, now: u64, ledger: &Ledger) -> bool {
        let identity = self.current_identity();
        (0..self.contents.len()).filter(|at| self.in_doubt(*at)).any(|at| {
            let content = &self.contents[at].1;
            let may_be_resent = content.identity == identity && !content.is_proved(ledger);
            let aged = content.purged
                || self.settings.forgets(now, content.first_offer)
                || self.settings.forgets_timestamp(now, content.max_timestamp);
            may_be_resent && aged
        })
    }

    fn judge_new(&self, attempt: &Attempt, ledger: &Ledger, found: &mut Vec<Anomaly>) {
        if !attempt.replacement {
            self.judge_place(attempt, ledger, found);
        }
        for &record in &attempt.records {
            let told = ledger.verdict(record).is_some();
            let held = |at: &usize| self.contents[*at].1.records.contains(&record);
            let other = (0..self.contents.len())
                .filter(held)
                .find(|&at| !attempt.replacement && !self.not_written(at));
            if told || other.is_some() {
                found.push(Anomaly::new(Class::SecondIdentity).record(record));
                return;
            }
        }
    }

    /// Sequence and slot of a new content (S1, V).
    fn judge_place(&self, attempt: &Attempt, ledger: &Ledger, found: &mut Vec<Anomaly>) {
        let record = attempt.records.first().copied().unwrap_or_default();
        match sequence_follows(self.next, i64::from(attempt.first)) {
            Some(Class::SeqReuse) => {
                found.push(Anomaly::new(Class::IdentityReused).record(record));
            }
            Some(class) => found.push(Anomaly::new(class).record(record)),
            None => {}
        }
        let fence = attempt.epoch == i16::MAX && self.acknowledged;
        if self.spent || fence {
            found.push(Anomaly::new(Class::SlotReused).record(record));
        }
        let vacated = (0..self.contents.len()).find_map(|at| self.vacated(at, ledger));
        if let Some(vacated) = vacated {
            found.push(Anomaly::new(Class::SlotReused).record(record).other(vacated));
        }
    }

    /// The record for which this content of the current identity gave up its slot, if it did.
    fn vacated(&self, at: usize, ledger: &Ledger) -> Option<u64> {
        let content = &self.contents[at].1;
        let mine = content.identity == self.current_identity() && !content.replacement;
        if !mine || !self.all_refused(at) || self.overtaken(at) {
            return None;
        }
        let told = |record: &u64| ledger.verdict(*record) == Some(Said::NotDelivered);
        content.records.iter().copied().find(told)
    }

    fn remember(&mut self, now: u64, attempt: &Attempt) -> u64 {
        let first = i64::from(attempt.first);
        let serial = self.serial;
        self.serial += 1;
        let content = Content {
            identity: self.current_identity(),
            first,
            count: attempt.count,
            hash: attempt.content,
            records: attempt.records.clone(),
            replacement: attempt.replacement,
            first_offer: now,
            last_offer: now,
            last_leader_epoch: attempt.leader_epoch,
            max_timestamp: attempt.max_timestamp,
            doubt: false,
            appended: false,
            permanent: false,
            asked: 0,
            corrupt: 0,
            taken: false,
            proven: false,
            old_log: false,
            freed: false,
            abandoned: false,
            purged: false,
            cautious: false,
        };
        if !attempt.replacement {
            self.next = content.end();
        }
        self.contents.push((serial, content));
        serial
    }

    fn position(&self, serial: u64) -> Option<usize> {
        self.contents.iter().position(|&(other, _)| other == serial)
    }

    fn is_open(&self, at: usize) -> bool {
        self.open.iter().any(|open| open.content == self.contents[at].0)
    }

    fn all_refused(&self, at: usize) -> bool {
        let content = &self.contents[at].1;
        !content.appended && !content.doubt && !self.is_open(at)
    }

    fn in_doubt(&self, at: usize) -> bool {
        let content = &self.contents[at].1;
        !content.appended && !content.taken && (content.doubt || self.is_open(at))
    }

    /// Something behind it in its epoch is in the log: the broker had lost our state (S22).
    fn overtaken(&self, at: usize) -> bool {
        let identity = self.contents[at].1.identity;
        let behind = |(_, content): &(u64, Content)| {
            content.identity == identity && !content.replacement && content.appended
        };
        self.contents[at + 1..].iter().any(behind)
    }

    /// Not written, as rules 1 know it: refused throughout, slot taken, or slot unreachable.
    fn not_written(&self, at: usize) -> bool {
        let content = &self.contents[at].1;
        if content.appended {
            return false;
        }
        content.taken || content.freed || self.all_refused(at) || self.unreachable(at)
    }

    /// It lies behind a slot that nothing fills, and nobody is awaited any more (V2, V3).
    fn unreachable(&self, at: usize) -> bool {
        let serial = self.contents[at].0;
        let awaited = self.open.iter().any(|open| open.current && open.content == serial);
        !awaited && self.lies_behind_a_gap(at)
    }

    /// Something before it in its epoch was refused, and nothing is written behind that.
    fn lies_behind_a_gap(&self, at: usize) -> bool {
        let identity = self.contents[at].1.identity;
        (0..at).any(|before| {
            let other = &self.contents[before].1;
            other.identity == identity
                && !other.replacement
                && self.all_refused(before)
                && !self.overtaken(before)
        })
    }

    /// Batches from the oldest unsettled to the newest offered, in the current identity (S5).
    fn span(&self, ledger: &Ledger) -> usize {
        let identity = self.current_identity();
        self.contents
            .iter()
            .map(|(_, content)| content)
            .filter(|content| content.identity == identity && !content.replacement)
            .skip_while(|content| content.is_settled(ledger))
            .count()
    }

    /// Tells whether the answer contradicts what was concluded before (S13).
    pub(super) fn answered(
        &mut self,
        now: u64,
        attempt: u64,
        reply: Option<Reply>,
        ledger: &Ledger,
    ) -> bool {
        let Some(index) = self.open.iter().position(|open| open.id == attempt) else {
            return false;
        };
        let open = self.open[index];
        let reply = reply.unwrap_or(Reply::of(-1));
        self.upset |= is_about_memory(reply.code);
        let moved = self.memory.saw_log_start(reply.log_start);
        let Some(at) = self.position(open.content) else {
            self.open.remove(index);
            return false;
        };
        if moved {
            let doubtful: Vec<usize> =
                (0..self.contents.len()).filter(|at| self.in_doubt(*at)).collect();
            for other in doubtful {
                self.contents[other].1.purged = true;
            }
        }
        if self.memory.lies_before(reply.log_start) {
            for (_, content) in &mut self.contents {
                content.cautious |= !content.appended;
            }
        }
        self.open.remove(index);
        self.upset |= self.tells_nothing(at, reply);
        let concluded = |record: &u64| ledger.verdict(*record) == Some(Said::NotDelivered);
        let content = &self.contents[at].1;
        let contradicts =
            reply.code == 0 && (content.freed || content.records.iter().any(concluded));
        let settled = content.is_settled(ledger);
        let conclusive = self.concludes(now, at, open, reply, ledger);
        self.apply(now, at, open, reply, conclusive);
        let in_vain = matches!(reply.code, 45 | 46 | 59) || is_permanent(reply.code);
        if open.current && open.in_pass && in_vain {
            let content = &mut self.contents[at].1;
            content.asked = (content.asked + 1).min(2);
        }
        if open.current {
            self.gate_open = reply.code == 0 && self.memory.known(now, &self.settings);
            self.surely_open = self.gate_open && !settled;
        }
        contradicts
    }

    fn apply(&mut self, now: u64, at: usize, open: Open, reply: Reply, conclusive: bool) {
        let contested = self.contested(at);
        // Nothing was offered before the first attempt, whatever was since.
        let content = &self.contents[at].1;
        let earlier = !open.first && (content.doubt || content.appended || self.is_open(at));
        let fate = match fate(reply.code, reply.base_offset, self.settings.trust_base_offset) {
            Fate::NotAppended if reply.code == 46 && earlier && !contested => Fate::Appended,
            known @ (Fate::NotAppended | Fate::Appended | Fate::Doubtful) => known,
        };
        let max_timestamp = self.contents[at].1.max_timestamp;
        let last_offset = reply.base_offset + i64::from(self.contents[at].1.count) - 1;
        let content = &mut self.contents[at].1;
        content.corrupt = content.corrupt.saturating_add(u8::from(reply.code == 2)).min(3);
        content.permanent |= is_permanent(reply.code) || content.corrupt == 3;
        match fate {
            Fate::NotAppended => {}
            Fate::Doubtful => content.doubt = true,
            Fate::Appended => {
                content.appended = true;
                let current = self.contents[at].1.identity == self.current_identity();
                if reply.code == 0 {
                    self.acknowledged |= current;
                    self.memory.acknowledged(now, last_offset, max_timestamp);
                }
                self.take_slots(at, conclusive);
            }
        }
    }

    pub(super) fn ended(&mut self, attempt: u64, partly: bool) {
        let Some(index) = self.open.iter().position(|open| open.id == attempt) else { return };
        let open = self.open.remove(index);
        if let Some(at) = self.position(open.content)
            && !partly
        {
            self.contents[at].1.doubt = true;
        }
        if open.current {
            self.shut();
        }
    }

    fn holds(&self, at: usize, record: u64) -> bool {
        self.contents[at].1.records.contains(&record)
    }

    /// Whether a content is known not to be written, whatever is still answered: its epoch ended
    /// with it, or its slot was taken.
    fn is_out_of_the_way(&self, at: usize) -> bool {
        self.contents[at].1.freed || self.contents[at].1.taken
    }

    /// Forgets what can no longer convict anybody.
    pub(super) fn prune(&mut self, ledger: &Ledger) {
        let identity = self.current_identity();
        let over = |this: &Self, at: usize| {
            let content = &this.contents[at].1;
            content.records.iter().all(|&record| ledger.is_final(record)) && !this.is_open(at)
        };
        let mut at = 0;
        while at < self.contents.len() {
            if self.contents[at].1.identity != identity && over(self, at) {
                self.contents.remove(at);
            } else {
                at += 1;
            }
        }
        while !self.contents.is_empty()
            && self.contents[0].1.identity == identity
            && over(self, 0)
            && !self.all_refused(0)
            && !self.spent
            && !self.reaches_over(0, |at| over(self, at))
        {
            self.contents.remove(0);
        }
    }

    /// A replacement that is out of the way, but reaches over a batch that is not over, or still to come:
    /// in that place a 46 proves nothing.
    fn reaches_over(&self, at: usize, over: impl Fn(usize) -> bool) -> bool {
        let content = &self.contents[at].1;
        let touches = |first, count| overlap(content.first, content.count, first, count);
        let awaited = |other: usize| {
            let rival = &self.contents[other].1;
            let mine = rival.identity == content.identity && !rival.replacement;
            mine && touches(rival.first, rival.count) && !over(other)
        };
        content.replacement
            && content.taken
            && (touches(self.next, 1) || (0..self.contents.len()).any(awaited))
    }

    /// A content, without what nothing asks about any more.
    fn content_fingerprint(
        &self,
        now: u64,
        content: &Content,
        ledger: &Ledger,
        into: &mut impl Hasher,
    ) {
        (self.identities.len() - content.identity).hash(into);
        (content.first, content.count, content.hash).hash(into);
        (content.replacement, content.doubt, content.appended).hash(into);
        (content.taken, content.proven, content.freed, content.abandoned).hash(into);
        // A refusal for good explains a verdict that is still to come.
        if content.records.iter().any(|&record| ledger.verdict(record).is_none()) {
            (content.permanent, content.corrupt).hash(into);
        }
        if content.old_log {
            content.records.iter().any(|&record| !ledger.is_final(record)).hash(into);
        }
        // What is settled, or of an older identity, is neither asked for again nor resent.
        let may_be_resent = content.identity == self.current_identity() && !content.appended;
        if may_be_resent {
            (content.asked, content.purged, content.cautious).hash(into);
            self.settings.age(now, content.first_offer).hash(into);
        }
        // Whatever a late 0 acknowledges, ages the broker's memory.
        self.settings.timestamp_age(now, content.max_timestamp).hash(into);
        if may_be_resent && self.settings.backoff > 0 {
            let rest = now.saturating_sub(content.last_offer).min(self.settings.backoff);
            (rest, content.last_leader_epoch).hash(into);
        }
    }

    /// What steers the future, with small names and saturating times.
    pub(super) fn fingerprint(&self, now: u64, ledger: &Ledger, into: &mut impl Hasher) {
        let oldest = self.contents.first().map_or(self.serial, |&(serial, _)| serial);
        for (_, content) in &self.contents {
            self.content_fingerprint(now, content, ledger, into);
        }
        for open in &self.open {
            (open.content.wrapping_sub(oldest), open.first, open.current).hash(into);
            (open.in_pass, open.through_gate).hash(into);
        }
        (
            self.next,
            self.gate_open,
            self.surely_open,
            self.spent,
            self.acknowledged,
            self.muddled,
            self.upset,
        )
            .hash(into);
        (self.identities.is_empty(), self.route.is_none()).hash(into);
        self.memory.fingerprint(now, &self.settings, into);
    }
}
