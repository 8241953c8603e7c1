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
    /// L1: when its patience ends, another broker is asked the same (fault 131).
    Open {
        conn: RouteId,
        patience_ends: Instant,
    },
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
    pub(crate) fn rest(&mut self, nobody_works: bool) {
        let in_vain = self.failures > 0 || nobody_works;
        match self.asking {
            Asking::NotBefore(_) if in_vain && !self.awaited => self.asking = Asking::No,
            Asking::NotBefore(_) | Asking::No | Asking::Open { .. } => {}
        }
    }

    /// A lane used up what the pool has.
    pub(crate) fn want(&mut self, lane: LaneKey) {
        self.waiting.push(lane);
        if self.asking == Asking::No {
            self.asking = Asking::NotBefore(Instant::EPOCH);
        }
    }

    /// When the next request is to be sent, if nothing else happens.
    pub(crate) const fn deadline(&self) -> Option<Instant> {
        match self.asking {
            Asking::NotBefore(at) | Asking::Open { patience_ends: at, .. } => Some(at),
            Asking::No => None,
        }
    }

    /// Whether a request is to be sent now.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.deadline().is_some_and(|at| at <= now)
    }

    /// The connection that owes an answer.
    pub(crate) const fn asked(&self) -> Option<RouteId> {
        match self.asking {
            Asking::Open { conn, .. } => Some(conn),
            Asking::NotBefore(_) | Asking::No => None,
        }
    }

    /// The request goes out. One that is still open is overtaken: its id is as good, should it come.
    pub(crate) fn start(&mut self, now: Instant, conn: RouteId) {
        self.asking = Asking::Open { conn, patience_ends: now + self.longest.times(2) };
    }

    /// There is nobody else to ask: waits on.
    pub(crate) fn wait_on(&mut self, now: Instant) {
        if let Some(conn) = self.asked() {
            self.start(now, conn);
        }
    }

    /// An id came; gives the lanes that waited for it. One that came before helps nobody: as if none
    /// had come.
    pub(crate) fn came<R: Rules>(
        &mut self,
        now: Instant,
        conn: RouteId,
        id: ProducerId,
    ) -> Vec<LaneKey> {
        if !self.pool.add(id) {
            self.failed::<R>(now, conn, None);
            return Vec::new();
        }
        self.asking = Asking::No;
        self.failures = 0;
        self.said = None;
        self.awaited = false;
        core::iter::from_fn(|| self.waiting.pop()).collect()
    }

    /// No id came: never fatal, asked for again after a wait (L6), unless somebody else is asked by
    /// now. True if the broker's words are new.
    pub(crate) fn failed<R: Rules>(
        &mut self,
        now: Instant,
        conn: RouteId,
        code: Option<ErrorCode>,
    ) -> bool {
        if self.asked() != Some(conn) {
            return false;
        }
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
        ids.start(now, RouteId(1));
        ids.failed::<Honest>(now, RouteId(1), loading);
        ids.rest(false);
        assert_eq!(ids.deadline(), None, "nobody needs one");
        ids.prepare();
        ids.start(now, RouteId(1));
        ids.failed::<Honest>(now, RouteId(1), loading);
        ids.rest(false);
        assert!(ids.deadline().is_some_and(|at| at > now));
        ids.came::<Honest>(now, RouteId(1), ProducerId::new(7).unwrap());
        ids.prepare();
        assert_eq!(ids.deadline(), None, "there is one");
    }

    #[test]
    fn getting_an_id_never_fails_for_good() {
        let now = Instant::from_millis(5000);
        let mut ids = Identities::new(Span::from_millis(100), Span::from_secs(1), 1);
        ids.want(LaneKey(4));
        assert_eq!(ids.deadline(), Some(Instant::EPOCH));
        ids.start(now, RouteId(1));
        assert!(!ids.is_due(now));
        let refused = Some(ErrorCode::CLUSTER_AUTHORIZATION_FAILED);
        assert!(ids.failed::<Honest>(now, RouteId(1), refused));
        let first = ids.deadline().unwrap().since(now);
        ids.start(now, RouteId(2));
        assert!(!ids.failed::<Honest>(now, RouteId(1), refused), "it is not waited for any more");
        assert_eq!(ids.asked(), Some(RouteId(2)));
        assert!(!ids.failed::<Honest>(now, RouteId(2), refused), "said before");
        let second = ids.deadline().unwrap().since(now);
        assert!(Span::ZERO < first && first < second);
        assert_eq!(ids.came::<Honest>(now, RouteId(1), ProducerId::new(7).unwrap()), [LaneKey(4)]);
        assert_eq!(ids.deadline(), None);
        ids.foresee();
        assert_eq!(ids.deadline(), None, "there is one");
    }

    #[test]
    fn a_silent_broker_is_overtaken_and_may_still_answer() {
        let now = Instant::from_millis(5000);
        let mut ids = Identities::new(Span::from_millis(100), Span::from_secs(1), 1);
        ids.want(LaneKey(4));
        ids.start(now, RouteId(1));
        let patience_ends = ids.deadline().unwrap();
        assert!(!ids.is_due(now) && ids.is_due(patience_ends));
        ids.wait_on(patience_ends);
        assert!(!ids.is_due(patience_ends), "nobody else is there");
        ids.start(patience_ends, RouteId(2));
        let id = |id| ProducerId::new(id).unwrap();
        assert_eq!(ids.came::<Honest>(patience_ends, RouteId(1), id(7)), [LaneKey(4)]);
        assert_eq!(ids.came::<Honest>(patience_ends, RouteId(2), id(8)), []);
        assert_eq!((ids.asked(), ids.deadline()), (None, None));
    }
}
