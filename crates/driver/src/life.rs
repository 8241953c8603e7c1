//! Whether a producer takes records, is closing, or is closed; and who waits for the end.

use std::collections::BTreeMap;
use std::task::{Context, Poll, Waker};

use candor_core::Instant;

use crate::conduct::Conduct;
use crate::slots::Wakers;
use crate::stats::Summary;

/// Where a producer is in its life.
#[derive(Clone, Copy, Debug, Default)]
enum Stage {
    #[default]
    Open,
    /// Takes no new records, but those in the line still have a chance.
    Emptying { deadline: Instant },
    /// The machine closes.
    Closing,
    /// Everything was told.
    Over(Summary),
}

/// A producer's life.
#[derive(Debug, Default)]
pub(crate) struct Life {
    stage: Stage,
    waiting: BTreeMap<u64, Option<Waker>>,
    next: u64,
}

impl Life {
    pub(crate) const fn is_open(&self) -> bool {
        matches!(self.stage, Stage::Open)
    }

    pub(crate) const fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over(_))
    }

    /// Takes no more records. Whether the machine closes already, and its deadline is the
    /// machine's business; an earlier one wins.
    pub(crate) fn close(&mut self, deadline: Instant) -> bool {
        match &mut self.stage {
            Stage::Open => self.stage = Stage::Emptying { deadline },
            Stage::Emptying { deadline: before } => *before = deadline.min(*before),
            Stage::Closing => return true,
            Stage::Over(_) => {}
        }
        false
    }

    /// The close deadline, if the machine is to close now: once.
    pub(crate) fn may_begin_to_close(
        &mut self,
        line_is_empty: bool,
        now: Instant,
        conduct: &dyn Conduct,
    ) -> Option<Instant> {
        match self.stage {
            Stage::Emptying { deadline }
                if conduct.closing_begins(line_is_empty, deadline, now) =>
            {
                self.stage = Stage::Closing;
                Some(deadline)
            }
            Stage::Emptying { .. } | Stage::Open | Stage::Closing | Stage::Over(_) => None,
        }
    }

    /// When it has to go on, whatever the line.
    pub(crate) const fn deadline(&self) -> Option<Instant> {
        match self.stage {
            Stage::Emptying { deadline } => Some(deadline),
            Stage::Open | Stage::Closing | Stage::Over(_) => None,
        }
    }

    /// Everything was told.
    pub(crate) fn end(&mut self, summary: Summary, wakers: &mut Wakers) {
        if !self.is_over() {
            self.stage = Stage::Over(summary);
        }
        self.waiting.values_mut().for_each(|waker| wakers.wake(waker.take()));
    }

    /// Somebody wants to hear of the end.
    pub(crate) fn watch(&mut self) -> u64 {
        let id = self.next;
        self.next += 1;
        self.waiting.insert(id, None);
        id
    }

    pub(crate) fn poll(&mut self, id: u64, cx: &Context<'_>, wakers: &mut Wakers) -> Poll<Summary> {
        match self.stage {
            Stage::Over(summary) => Poll::Ready(summary),
            Stage::Open | Stage::Emptying { .. } | Stage::Closing => {
                let before = self.waiting.insert(id, Some(cx.waker().clone()));
                wakers.retire(before.flatten());
                Poll::Pending
            }
        }
    }

    pub(crate) fn forget(&mut self, id: u64, wakers: &mut Wakers) {
        wakers.retire(self.waiting.remove(&id).flatten());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conduct::Honest;

    #[test]
    fn closing_begins_when_the_line_is_empty_or_its_time_is_up() {
        let at = Instant::from_millis;
        let mut life = Life::default();
        assert!(life.is_open() && life.may_begin_to_close(true, at(9), &Honest).is_none());
        life.close(at(7));
        life.close(at(5));
        life.close(at(6));
        assert_eq!((life.is_open(), life.deadline()), (false, Some(at(5))));
        assert_eq!(life.may_begin_to_close(false, at(4), &Honest), None);
        assert_eq!(life.may_begin_to_close(false, at(5), &Honest), Some(at(5)));
        assert_eq!(
            (life.may_begin_to_close(true, at(5), &Honest), life.close(at(9))),
            (None, true)
        );
    }
}
