//! What one lane was handed, what it said of it, and what the log holds of it.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};

use super::anomaly::{Anomaly, Class};
use super::conditions::{Said, placed, told_in_turn};

/// How far a record got with the producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Door {
    /// `send` was called.
    Intended,
    /// The producer took it.
    Accepted,
    /// The producer handed it back.
    Refused,
}

/// One record's page.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Page {
    door: Door,
    due: u64,
    hurried: bool,
    /// A late copy may stand behind newer records, and the caller was told so (S10).
    unfenced: bool,
    verdict: Option<Said>,
    resolution: Option<Said>,
    overtaken_by: Option<u64>,
    offsets: Vec<i64>,
}

impl Page {
    /// What holds in the end: `Never` counts as `Unknown`.
    fn last_word(&self) -> Option<Said> {
        self.resolution.or(self.verdict)
    }

    fn is_final(&self) -> bool {
        match self.verdict {
            None => false,
            Some(Said::Unknown) => self.resolution.is_some(),
            Some(Said::Delivered(_) | Said::NotDelivered) => true,
        }
    }
}

/// When the log is known: as it grows (searches), or only at the end (finished histories).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LogIs {
    /// Every committed record is shown before anything is said about it.
    Live,
    /// The log is shown after everything was said.
    ShownAtTheEnd,
}

/// The pages of one lane, in the order in which records were handed in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ledger {
    log: LogIs,
    pages: BTreeMap<u64, Page>,
    untold: BTreeSet<u64>,
    newest_in_log: Option<u64>,
}

impl Ledger {
    pub(super) fn new(log: LogIs) -> Self {
        Self { log, pages: BTreeMap::new(), untold: BTreeSet::new(), newest_in_log: None }
    }

    pub(super) fn intended(&mut self, record: u64, due: u64) {
        self.pages.entry(record).or_insert(Page {
            door: Door::Intended,
            due,
            hurried: false,
            unfenced: false,
            verdict: None,
            resolution: None,
            overtaken_by: None,
            offsets: Vec::new(),
        });
    }

    pub(super) fn accepted(&mut self, record: u64) -> Option<Anomaly> {
        match self.pages.get_mut(&record) {
            Some(page) if page.door == Door::Intended => {
                page.door = Door::Accepted;
                self.untold.insert(record);
                None
            }
            _ => Some(Anomaly::new(Class::Insane).record(record)),
        }
    }

    pub(super) fn refused(&mut self, record: u64) -> Option<Anomaly> {
        match self.pages.get_mut(&record) {
            Some(page) if page.door == Door::Intended => {
                page.door = Door::Refused;
                None
            }
            _ => Some(Anomaly::new(Class::Insane).record(record)),
        }
    }

    /// The record is due at `at` at the latest, by the caller's wish.
    pub(super) fn hurry(&mut self, record: u64, at: u64) {
        if let Some(page) = self.pages.get_mut(&record) {
            page.due = page.due.min(at);
            page.hurried = true;
        }
    }

    pub(super) fn hurry_all(&mut self, at: u64) {
        for record in self.untold.clone() {
            self.hurry(record, at);
        }
    }

    /// What is in doubt now may be written behind newer records (S10).
    pub(super) fn unfence(&mut self) {
        for page in self.pages.values_mut() {
            page.unfenced |= page.last_word() == Some(Said::Unknown);
        }
    }

    pub(super) fn due(&self, record: u64) -> u64 {
        self.pages.get(&record).map_or(u64::MAX, |page| page.due)
    }

    pub(super) fn hurried(&self, record: u64) -> bool {
        self.pages.get(&record).is_some_and(|page| page.hurried)
    }

    pub(super) fn verdict(&self, record: u64) -> Option<Said> {
        self.pages.get(&record).and_then(|page| page.verdict)
    }

    pub(super) fn resolution(&self, record: u64) -> Option<Said> {
        self.pages.get(&record).and_then(|page| page.resolution)
    }

    /// What holds of it in the end, as far as anything was said.
    pub(super) fn last_word(&self, record: u64) -> Option<Said> {
        self.pages.get(&record).and_then(Page::last_word)
    }

    /// Whether the last word on it is that it was delivered.
    pub(super) fn is_delivered(&self, record: u64) -> bool {
        matches!(self.last_word(record), Some(Said::Delivered(_)))
    }

    pub(super) fn is_final(&self, record: u64) -> bool {
        self.pages.get(&record).is_some_and(Page::is_final)
    }

    pub(super) fn untold(&self) -> impl Iterator<Item = u64> + '_ {
        self.untold.iter().copied()
    }

    /// Records that have `Unknown` and no resolution.
    pub(super) fn unresolved(&self) -> impl Iterator<Item = u64> + '_ {
        self.pages.iter().filter_map(|(&record, page)| {
            (page.verdict == Some(Said::Unknown) && page.resolution.is_none()).then_some(record)
        })
    }

    pub(super) fn told(&mut self, record: u64, said: Said, found: &mut Vec<Anomaly>) {
        let Some(page) = self.pages.get_mut(&record) else {
            found.push(Anomaly::new(Class::Insane).record(record));
            return;
        };
        if page.door != Door::Accepted {
            found.push(Anomaly::new(Class::Insane).record(record));
        }
        if page.verdict.is_some() {
            found.push(Anomaly::new(Class::Flip).record(record));
            return;
        }
        page.verdict = Some(said);
        self.untold.remove(&record);
        self.weigh_now(record, found);
        if matches!(said, Said::Delivered(_)) {
            self.overtake(record, found);
        }
    }

    /// Everything before `record` should have been told by now.
    fn overtake(&mut self, record: u64, found: &mut Vec<Anomaly>) {
        let earlier: Vec<u64> = self.untold.range(..record).copied().collect();
        for earlier in earlier {
            let Some(page) = self.pages.get_mut(&earlier) else { continue };
            if page.overtaken_by.is_some() {
                continue;
            }
            page.overtaken_by = Some(record);
            if self.log == LogIs::Live
                && let Some(class) = told_in_turn(false, !page.offsets.is_empty())
            {
                found.push(Anomaly::new(class).record(earlier).other(record));
            }
        }
    }

    pub(super) fn resolved(&mut self, record: u64, said: Said, found: &mut Vec<Anomaly>) {
        match self.pages.get_mut(&record) {
            Some(page) if page.verdict == Some(Said::Unknown) && page.resolution.is_none() => {
                page.resolution = Some(said);
                self.weigh_now(record, found);
            }
            Some(_) => found.push(Anomaly::new(Class::Flip).record(record)),
            None => found.push(Anomaly::new(Class::Insane).record(record)),
        }
    }

    fn weigh_now(&self, record: u64, found: &mut Vec<Anomaly>) {
        if self.log == LogIs::Live
            && let Some(page) = self.pages.get(&record)
            && let Some(said) = page.last_word()
            && let Some(class) = placed(said, &page.offsets)
        {
            found.push(Anomaly::new(class).record(record));
        }
    }

    /// The record stands in the lane's own log, committed, behind everything shown before.
    pub(super) fn committed(&mut self, record: u64, offset: i64, found: &mut Vec<Anomaly>) {
        let Some(page) = self.pages.get_mut(&record) else {
            found.push(Anomaly::new(Class::Insane).record(record));
            return;
        };
        page.offsets.push(offset);
        let (copies, unfenced) = (page.offsets.len(), page.unfenced);
        if self.log == LogIs::Live {
            let said = page.last_word().unwrap_or(Said::Unknown);
            let class = placed(said, &page.offsets);
            if let Some(class) = class {
                found.push(Anomaly::new(class).record(record));
            }
        }
        match self.newest_in_log {
            Some(newest) if newest > record && copies == 1 && !unfenced => {
                found.push(Anomaly::new(Class::Reorder).record(record).other(newest));
            }
            _ => self.newest_in_log = self.newest_in_log.max(Some(record)),
        }
    }

    /// What stood at or behind this offset is gone, through no fault of the producer.
    pub(super) fn truncated(&mut self, offset: i64) {
        for page in self.pages.values_mut() {
            page.offsets.retain(|at| *at < offset);
        }
        let held = |page: &Page| !page.offsets.is_empty();
        self.newest_in_log =
            self.pages.iter().filter(|(_, page)| held(page)).map(|(&record, _)| record).max();
    }

    /// A copy stands in a log where it has no business.
    pub(super) fn misplaced(&mut self, record: u64, offset: i64) {
        if let Some(page) = self.pages.get_mut(&record) {
            page.offsets.push(offset);
        }
    }

    /// The last judgement on every page. `stop`: nothing may be delivered behind a failed record.
    /// `closed`: the producer was closed, so that everything must have its last word.
    pub(super) fn close(&self, closed: bool, stop: bool) -> Vec<Anomaly> {
        let mut found = Vec::new();
        let newest_delivered = self.newest_delivered();
        let mut failed: Option<u64> = None;
        for (&record, page) in &self.pages {
            let delivered_behind = newest_delivered.is_some_and(|newest| record < newest);
            self.close_page(record, page, closed, delivered_behind, &mut found);
            match page.last_word() {
                Some(Said::Delivered(_)) if stop => {
                    if let Some(failed) = failed {
                        found.push(Anomaly::new(Class::GapAfterStop).record(record).other(failed));
                    }
                }
                Some(Said::NotDelivered | Said::Unknown) if page.offsets.is_empty() => {
                    failed = failed.or(Some(record));
                }
                Some(_) | None => {}
            }
        }
        found
    }

    fn newest_delivered(&self) -> Option<u64> {
        let delivered = |page: &Page| matches!(page.last_word(), Some(Said::Delivered(_)));
        self.pages.iter().rev().find(|(_, page)| delivered(page)).map(|(&record, _)| record)
    }

    fn close_page(
        &self,
        record: u64,
        page: &Page,
        closed: bool,
        delivered_behind: bool,
        found: &mut Vec<Anomaly>,
    ) {
        let mut convict = |class| found.push(Anomaly::new(class).record(record));
        match page.door {
            Door::Refused if !page.offsets.is_empty() => return convict(Class::GhostRefused),
            Door::Refused => return,
            Door::Intended | Door::Accepted => {}
        }
        let told = page.verdict.is_some();
        if page.door == Door::Accepted && !told {
            if closed {
                convict(Class::NoVerdict);
            }
            if delivered_behind && page.offsets.is_empty() {
                convict(Class::SilentGap);
            }
        }
        if closed && page.verdict == Some(Said::Unknown) && page.resolution.is_none() {
            convict(Class::NoResolution);
        }
        // In a live log this was judged at each step.
        if self.log == LogIs::Live {
            return;
        }
        if let Some(class) = placed(page.last_word().unwrap_or(Said::Unknown), &page.offsets) {
            convict(class);
        }
        if let (Some(by), true) = (page.overtaken_by, told)
            && let Some(class) = told_in_turn(false, !page.offsets.is_empty())
        {
            found.push(Anomaly::new(class).record(record).other(by));
        }
    }

    /// Whether the log holds it.
    pub(super) fn in_log(&self, record: u64) -> bool {
        self.pages.get(&record).is_some_and(|page| !page.offsets.is_empty())
    }

    /// What steers the future: no offsets and no times, which the log and the lane carry.
    pub(super) fn fingerprint(&self, into: &mut impl Hasher) {
        for (record, page) in &self.pages {
            let kind = |said: Option<Said>| said.map(|said| std::mem::discriminant(&said));
            record.hash(into);
            page.door.hash(into);
            kind(page.verdict).hash(into);
            kind(page.resolution).hash(into);
            page.offsets.len().hash(into);
            page.unfenced.hash(into);
            // Who has a verdict is neither hurried nor overtaken any more.
            if page.verdict.is_none() {
                (page.hurried, page.overtaken_by.is_some()).hash(into);
            }
        }
    }
}
