//! Contested slots (rules C): which cuts are legal, and what the 0 of a replacement proves.

use super::super::anomaly::Class;
use super::super::conditions::{overlap, sequence_after};
use super::super::content::{Content, Open};
use super::super::ledger::Ledger;
use super::{Attempt, Reply, Wire};

impl Wire {
    /// Whether a replacement is open on the route in use.
    pub(super) fn contests_now(&self) -> bool {
        self.open.iter().filter(|open| open.current).any(|open| {
            self.position(open.content).is_some_and(|at| self.contents[at].1.replacement)
        })
    }

    /// Whether a replacement's cut is legal (C2).
    pub(super) fn contest(&self, attempt: &Attempt) -> Result<(), Class> {
        let identity = self.current_identity();
        let first = i64::from(attempt.first);
        let mine: Vec<&Content> = self
            .contents
            .iter()
            .map(|(_, content)| content)
            .filter(|content| content.identity == identity)
            .collect();
        let Some(head) = mine.iter().position(|content| {
            content.first == first && !content.replacement && !content.appended && !content.taken
        }) else {
            return Err(Class::IllegalCut);
        };
        // C1: nothing behind the first one is written.
        if mine[head..].iter().any(|behind| behind.appended && !behind.replacement) {
            return Err(Class::IllegalCut);
        }
        let end = sequence_after(first, attempt.count);
        if mine[head].count == attempt.count || mine[head..].iter().any(|c| c.first == end) {
            return Err(Class::IllegalCut);
        }
        let rival = self.contents.iter().enumerate().any(|(at, (_, content))| {
            content.identity == identity
                && content.replacement
                && !content.taken
                && !self.all_refused(at)
        });
        if rival { Err(Class::IdentityReused) } else { Ok(()) }
    }

    /// C1, C4: whether a 0 shows that the broker knew us before it, so that it tells something of what
    /// contends for the same slot. Resendable is judged with this very answer.
    pub(super) fn concludes(
        &self,
        now: u64,
        at: usize,
        open: Open,
        reply: Reply,
        ledger: &Ledger,
    ) -> bool {
        !self.is_stale(now, ledger) && (open.through_gate || self.reaches_back(at, reply))
    }

    /// C1: whether the log, as this answer shows it, reaches back to what the leader would know us by.
    pub(super) fn reaches_back(&self, at: usize, reply: Reply) -> bool {
        let replacement = self.rival(at).unwrap_or(at);
        let first_of_epoch = self.contents[replacement].1.first == self.settings.origin;
        self.memory.reaches_back(reply.log_start, first_of_epoch)
    }

    /// The replacement in doubt that contests a batch.
    pub(super) fn rival(&self, at: usize) -> Option<usize> {
        let batch = &self.contents[at].1;
        let contests = |other: &usize| {
            let content = &self.contents[*other].1;
            content.replacement
                && content.identity == batch.identity
                && self.in_doubt(*other)
                && self.is_behind(at, *other)
        };
        (!batch.replacement).then(|| (0..self.contents.len()).find(contests)).flatten()
    }

    pub(super) fn contested(&self, at: usize) -> bool {
        let content = &self.contents[at].1;
        self.contents.iter().any(|(_, other)| {
            other.identity == content.identity
                && other.replacement != content.replacement
                && overlap(other.first, other.count, content.first, content.count)
        })
    }

    /// An appended replacement took the slots behind it, and a batch that is appended at such a slot
    /// took that of the replacement: nothing else that was offered there follows it (C2). Whether it
    /// came before stands in the answer (C1, C4).
    pub(super) fn take_slots(&mut self, at: usize, conclusive: bool) {
        let winner = self.contents[at].1.clone();
        if winner.replacement && winner.identity == self.current_identity() {
            self.spent = true;
        }
        for other in 0..self.contents.len() {
            let rival = &self.contents[other].1;
            let mine = rival.identity == winner.identity && !rival.appended;
            let hit = match (winner.replacement, rival.replacement) {
                (true, false) => self.is_behind(other, at),
                (false, true) => self.is_behind(at, other),
                (true, true) | (false, false) => false,
            };
            if mine && hit {
                let rival = &mut self.contents[other].1;
                rival.taken = true;
                rival.proven |= conclusive;
            }
        }
    }

    /// Whether a batch is contested by a replacement of its identity.
    fn is_behind(&self, at: usize, replacement: usize) -> bool {
        let replacement = &self.contents[replacement].1;
        let is_head = |(_, content): &(u64, Content)| {
            let here = content.first == replacement.first && !content.replacement;
            here && content.identity == replacement.identity
        };
        // A head that is settled may have been forgotten.
        self.contents.iter().position(is_head).is_none_or(|head| head <= at)
    }

    /// Whether a batch of this record may be in the log, although other content took its slot: by an
    /// answer that does not tell whether the broker knew us (C1).
    pub(in crate::judge) fn is_merely_taken(&self, record: u64) -> bool {
        let merely = |at: usize| {
            let content = &self.contents[at].1;
            content.taken && !content.proven && content.doubt && !content.appended
        };
        !self.muddled
            && (0..self.contents.len())
                .any(|at| self.holds(at, record) && merely(at) && !self.unreachable(at))
    }

    /// See [`Observer::sizes_from`](super::Observer::sizes_from).
    pub(in crate::judge) fn sizes_from(&self, first: i64) -> Vec<u32> {
        let identity = self.current_identity();
        let mine = self.contents.iter().map(|(_, content)| content);
        mine.filter(|content| content.identity == identity && !content.replacement)
            .skip_while(|content| content.first != first)
            .map(|content| content.count)
            .collect()
    }
}
