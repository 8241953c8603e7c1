//! What the judge of a lane asks of the wire.

use super::super::conditions::Said;
use super::super::content::Content;
use super::super::ledger::Ledger;
use super::{Reply, Wire};

impl Wire {
    /// Whether the wire leaves room for an honest `Unknown` of this record (CHK-8).
    pub(in crate::judge) fn leaves_doubt(&self, record: u64) -> bool {
        self.muddled
            || (0..self.contents.len()).any(|at| {
                self.contents[at].1.records.contains(&record)
                    && !self.contents[at].1.appended
                    && (self.contents[at].1.doubt || self.is_open(at))
            })
    }

    /// Whether an attempt of this record is still to be answered.
    pub(in crate::judge) fn is_awaited(&self, record: u64) -> bool {
        (0..self.contents.len())
            .any(|at| self.holds(at, record) && !self.is_out_of_the_way(at) && self.is_open(at))
    }

    /// K5: a record that was not asked for in two whole passes. What gave up its slot is not asked for,
    /// nor what was refused before it and gave up its own with it, nor what stands behind those (V2): some
    /// record of it was refused and told so, or it was refused for good (V1). Nor is a replacement that was
    /// refused, or refuted by a 0 for what it contests (C4); one in doubt may have come with the second
    /// pass, what it contests having been asked in both.
    pub(in crate::judge) fn asked_too_seldom(&self, ledger: &Ledger) -> Option<u64> {
        let identity = self.current_identity();
        let told = |record: &u64| ledger.last_word(*record) == Some(Said::NotDelivered);
        let over = |record: &u64| told(record) || ledger.is_delivered(*record);
        let mine = (0..self.contents.len()).filter(|at| self.contents[*at].1.identity == identity);
        let gave_up = |at: &usize| {
            let content = &self.contents[*at].1;
            let for_good = content.permanent && !content.replacement;
            self.all_refused(*at) && (for_good || content.records.iter().any(told))
        };
        let refuted = |at: usize| self.all_refused(at) || self.contents[at].1.taken;
        // The lowest one that was refused throughout gives up its slot with it.
        let refused = |at: &usize| self.all_refused(*at) && !self.contents[*at].1.replacement;
        let last = mine.clone().find(gave_up);
        let end = last.and_then(|last| mine.clone().take_while(|at| *at <= last).find(refused));
        let (_, content) = mine
            .take_while(|at| end.is_none_or(|end| *at < end))
            .filter(|at| end.is_none() || !self.all_refused(*at))
            .filter(|at| !(self.contents[*at].1.replacement && refuted(*at)))
            .map(|at| &self.contents[at])
            .filter(|(_, content)| !content.appended && !content.records.iter().all(over))
            .find(|(_, content)| content.asked < if content.replacement { 1 } else { 2 })?;
        content.records.first().copied().filter(|_| !self.muddled)
    }

    /// K6: two passes asked for everything, so that a notice of lost state tells of the end of an epoch.
    pub(in crate::judge) fn asked_in_vain(&self, ledger: &Ledger) -> bool {
        let identity = self.current_identity();
        let in_vain = |(_, content): &(u64, Content)| {
            content.identity == identity && !content.appended && content.asked == 2
        };
        self.contents.iter().any(in_vain) && self.asked_too_seldom(ledger).is_none()
    }

    /// Whether some answer cast doubt on the broker's memory of us.
    pub(in crate::judge) fn is_upset(&self) -> bool {
        self.upset || self.muddled
    }

    /// Whether some answer refused a batch of this record for good.
    pub(in crate::judge) fn is_refused_for_good(&self, record: u64) -> bool {
        let mine = |(_, content): &&(u64, Content)| content.records.contains(&record);
        self.muddled || self.contents.iter().filter(mine).any(|(_, content)| content.permanent)
    }

    /// Whether a batch behind this record's was answered 0, so that doubt about it may be told.
    pub(in crate::judge) fn is_overtaken(&self, record: u64) -> bool {
        (0..self.contents.len())
            .any(|at| self.contents[at].1.records.contains(&record) && self.overtaken(at))
    }

    /// Whether the broker may have forgotten us: nothing is resent then, and V3 concludes nothing.
    pub(in crate::judge) fn may_be_forgotten(&self, now: u64, ledger: &Ledger) -> bool {
        let identity = self.current_identity();
        let cautious = |(_, content): &(u64, Content)| {
            content.identity == identity && content.cautious && !content.appended
        };
        self.is_stale(now, ledger)
            || self.memory.was_known_until(now, &self.settings)
            || self.contents.iter().any(cautious)
    }

    pub(in crate::judge) fn is_muddled(&self) -> bool {
        self.muddled
    }

    /// The caller gives up what is in doubt. Tells which records are to be told so now: what lies
    /// behind a refused batch is not written, though it may still be open (V3).
    pub(in crate::judge) fn abandoned(&mut self) -> Vec<u64> {
        self.gave_up();
        let told = self.doubts().filter(|at| !self.lies_behind_a_gap(*at));
        told.flat_map(|at| self.contents[at].1.records.iter().copied()).collect()
    }

    /// What is in doubt in the current identity.
    fn doubts(&self) -> impl Iterator<Item = usize> + '_ {
        let identity = self.current_identity();
        let mine = move |at: &usize| self.contents[*at].1.identity == identity;
        (0..self.contents.len()).filter(mine).filter(|at| self.in_doubt(*at))
    }

    /// The lane gives up what is in doubt in the current identity: it awaits nobody behind a slot that
    /// nothing fills.
    fn gave_up(&mut self) {
        let doubts: Vec<usize> = self.doubts().collect();
        doubts.into_iter().for_each(|at| self.contents[at].1.abandoned = true);
    }

    /// What comes now may be another log (S18), and what is in doubt may be given up for it.
    pub(in crate::judge) fn disturbed(&mut self) {
        self.gave_up();
        self.contents.iter_mut().for_each(|(_, content)| content.old_log = true);
    }

    /// Whether the place that is told of this record may be one in a log that is gone.
    pub(in crate::judge) fn is_of_old_log(&self, record: u64) -> bool {
        let newest = (0..self.contents.len()).rev().find(|at| self.holds(*at, record));
        newest.is_some_and(|at| self.contents[at].1.old_log)
    }

    /// Nobody will find out about a record: only the end of its epoch gives up what is in doubt.
    pub(in crate::judge) fn never(&mut self, record: u64) {
        let identity = self.current_identity();
        let held = (0..self.contents.len())
            .any(|at| self.contents[at].1.identity == identity && self.holds(at, record));
        if held {
            self.gave_up();
        }
    }

    /// The identity changes: if something stays in doubt that no refused batch keeps out of the log,
    /// the lane gave it up (V2 would have it settled first).
    pub(super) fn leaves(&mut self) {
        if self.doubts().any(|at| !self.lies_behind_a_gap(at)) {
            self.gave_up();
        }
    }

    /// C1, C4: the 0 of a replacement does not tell whether what it contests is written, nor that of
    /// what it contests whether it is: the gate was not opened before, and the log does not reach back
    /// to what the leader would know us by.
    pub(super) fn tells_nothing(&self, at: usize, reply: Reply) -> bool {
        let content = &self.contents[at].1;
        let contends = content.replacement || self.rival(at).is_some();
        contends && reply.code == 0 && !self.gate_open && !self.reaches_back(at, reply)
    }

    /// V3: it was abandoned, and none of it was told to be in doubt: it counts as not written.
    pub(super) fn put_back(&self, at: usize, ledger: &Ledger) -> bool {
        let content = &self.contents[at].1;
        let in_doubt = |record: &u64| ledger.last_word(*record) == Some(Said::Unknown);
        content.abandoned
            && !content.appended
            && self.lies_behind_a_gap(at)
            && !content.records.iter().any(in_doubt)
    }
}
