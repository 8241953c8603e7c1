//! Producer ids: the pool that lanes draw from, and how it is filled (rules S9, L6).

use candor_core::rules::Rules;
use candor_core::{Instant, Pool, ProducerId, RouteId, Span};
use candor_wire::ErrorCode;

use crate::jitter::{backoff, mix};
use crate::lanes::LaneKey;
use crate::worklist::Worklist;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asking {
    No,
    NotBefore(Instant),
    Open(RouteId),
}

/// The pool, the lanes that wait for it, and the one request that fills it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identities {
    pub(crate) pool: Pool,
    waiting: Worklist<LaneKey>,
    asking: Asking,
    failures: u32,
    first: Span,
    longest: Span,
    seed: u64,
    said: Option<ErrorCode>,
    /// The caller waits for an id, whether or not there are records.
    awaited: bool,
}

impl Identities {
    pub(crate) fn new(first: Span, longest: Span, seed: u64) -> Self {
        Self {
            pool: Pool::default(),
            waiting: Worklist::new(),
            asking: Asking::No,
            failures: 0,
            first,
            longest,
            seed,
            said: None,
            awaited: false,
        }
    }

    /// The caller waits for the first id.
    pub(crate) fn prepare(&mut self) {
        self.awaited = self.pool.next(None).is_none();
        self.foresee();
    }

    /// An id will be needed: asks as soon as possible, unless one is on its way or there.
    pub(crate) fn foresee(&mut self) {
        let needed = !self.waiting.is_empty() || self.pool.next(None).is_none();
        if self.asking == Asking::No && needed {
            self.asking = Asking::NotBefore(Instant::EPOCH);
        }
    }

    /// Nobody needs an id: what failed so far is not tried again until somebody does.
    pub(crate) fn rest(&mut self) {
        match self.asking {
            Asking::NotBefore(_) if self.failures > 0 && !self.awaited => self.asking = Asking::No,
            Asking::NotBefore(_) | Asking::No | Asking::Open(_) => {}
        }
    }

    /// A lane used up what the pool has.
    pub(crate) fn want(&mut self, lane: LaneKey) {
        self.waiting.push(lane);
        if self.asking == Asking::No {
            self.asking = Asking::NotBefore(Instant::EPOCH);
        }
    }

    /// When the next request is to be sent.
    pub(crate) const fn deadline(&self) -> Option<Instant> {
        match self.asking {
            Asking::NotBefore(at) => Some(at),
            Asking::No | Asking::Open(_) => None,
        }
    }

    /// The request goes out.
    pub(crate) const fn start(&mut self, conn: RouteId) {
        self.asking = Asking::Open(conn);
    }

    /// An id came; gives the lanes that waited for it. One that came before helps nobody: as if none
    /// had come.
    pub(crate) fn came<R: Rules>(&mut self, now: Instant, id: ProducerId) -> Vec<LaneKey> {
        if !self.pool.add(id) {
            self.failed::<R>(now, None);
            return Vec::new();
        }
        self.asking = Asking::No;
        self.failures = 0;
        self.said = None;
        self.awaited = false;
        core::iter::from_fn(|| self.waiting.pop()).collect()
    }

    /// No id came: never fatal, asked for again after a wait (L6). True if the broker's words are
    /// new.
    pub(crate) fn failed<R: Rules>(&mut self, now: Instant, code: Option<ErrorCode>) -> bool {
        self.failures = self.failures.saturating_add(1);
        let hash = mix(self.seed, u64::from(self.failures));
        let wait = backoff::<R>(self.first, self.longest, self.failures, hash);
        self.asking = Asking::NotBefore(now + wait);
        let new = code.is_some() && code != self.said;
        self.said = code.or(self.said);
        new
    }
}

#[cfg(test)]
mod tests {
    use candor_core::rules::Honest;

    use super::*;

    #[test]
    fn an_id_that_the_caller_waits_for_is_asked_for_until_it_comes() {
        let now = Instant::from_millis(5000);
        let mut ids = Identities::new(Span::from_millis(100), Span::from_secs(1), 1);
        let loading = Some(ErrorCode(14));
        ids.foresee();
        ids.start(RouteId(1));
        ids.failed::<Honest>(now, loading);
        ids.rest();
        assert_eq!(ids.deadline(), None, "nobody needs one");
        ids.prepare();
        ids.start(RouteId(1));
        ids.failed::<Honest>(now, loading);
        ids.rest();
        assert!(ids.deadline().is_some_and(|at| at > now));
        ids.came::<Honest>(now, ProducerId::new(7).unwrap());
        ids.prepare();
        assert_eq!(ids.deadline(), None, "there is one");
    }

    #[test]
    fn getting_an_id_never_fails_for_good() {
        let now = Instant::from_millis(5000);
        let mut ids = Identities::new(Span::from_millis(100), Span::from_secs(1), 1);
        ids.want(LaneKey(4));
        assert_eq!(ids.deadline(), Some(Instant::EPOCH));
        ids.start(RouteId(1));
        assert_eq!(ids.deadline(), None);
        let refused = Some(ErrorCode::CLUSTER_AUTHORIZATION_FAILED);
        assert!(ids.failed::<Honest>(now, refused));
        let first = ids.deadline().unwrap().since(now);
        assert!(!ids.failed::<Honest>(now, refused), "said before");
        let second = ids.deadline().unwrap().since(now);
        assert!(Span::ZERO < first && first < second);
        assert_eq!(ids.came::<Honest>(now, ProducerId::new(7).unwrap()), [LaneKey(4)]);
        assert_eq!(ids.deadline(), None);
        ids.foresee();
        assert_eq!(ids.deadline(), None, "there is one");
    }
}
