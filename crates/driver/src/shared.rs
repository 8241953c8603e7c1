//! What producers and their driver share: one lock around the machine, the slots and the line.
//!
//! Callers append under the lock, on their own thread, straight into the batch. The driver takes the
//! lock for bounded turns and does its IO outside of it. Wakers run outside of it too.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Instant as Monotonic, SystemTime};

use candor_core::{Instant, Outcome, Resolution, Ticket};
use candor_proto::{FlushId, Producer as Machine, Record, Refused, Settlement, WhyRefused};

use crate::clock::Clock;
use crate::conduct::{Conduct, Dropped};
use crate::doorbell::Doorbell;
use crate::life::Life;
use crate::line::{InLine, Line, LineEnd, LineId};
use crate::notices::Feeds;
use crate::places::{Place, Places};
use crate::runtime::Runtime;
use crate::slots::{Claimed, Resolved, Slots, Wakers};
use crate::stats::{Stats, Tally};
use crate::verdict::{Unknown, Verdict, WhyNot};

/// Records that the driver takes from the line in one turn.
const ADMITTED_PER_TURN: usize = 256;

/// The runtime's clocks, whatever the runtime.
trait Time: Send + Sync {
    fn monotonic(&self) -> Monotonic;
    fn wall(&self) -> SystemTime;
}

impl<R: Runtime> Time for R {
    fn monotonic(&self) -> Monotonic {
        self.now()
    }

    fn wall(&self) -> SystemTime {
        Runtime::wall(self)
    }
}

/// Shared by all handles of a producer and its driver.
pub(crate) struct Shared {
    state: Mutex<State>,
    pub(crate) doorbell: Arc<Doorbell>,
    pub(crate) conduct: &'static dyn Conduct,
    time: Box<dyn Time>,
}

/// Everything under the lock.
pub(crate) struct State {
    pub(crate) machine: Machine,
    pub(crate) conduct: &'static dyn Conduct,
    pub(crate) clock: Clock,
    pub(crate) slots: Slots,
    pub(crate) places: Places,
    pub(crate) line: Line,
    pub(crate) flushes: Flushes,
    pub(crate) feeds: Feeds,
    pub(crate) life: Life,
    pub(crate) tally: Tally,
    pub(crate) wakers: Wakers,
    /// Who waits in `connect`.
    pub(crate) connecting: Option<Waker>,
    /// When the driver looks again without being rung.
    pub(crate) armed: Instant,
}

impl Shared {
    pub(crate) fn new<R: Runtime>(
        runtime: &R,
        machine: Machine,
        clock: Clock,
        conduct: &'static dyn Conduct,
    ) -> Arc<Self> {
        let state = State {
            machine,
            conduct,
            clock,
            slots: Slots::default(),
            places: Places::default(),
            line: Line::default(),
            flushes: Flushes::default(),
            feeds: Feeds::default(),
            life: Life::default(),
            tally: Tally::default(),
            wakers: Wakers::default(),
            connecting: None,
            armed: Instant::NEVER,
        };
        let (doorbell, time) = (Arc::default(), Box::new(runtime.clone()));
        Arc::new(Self { state: Mutex::new(state), doorbell, conduct, time })
    }

    /// A caller's business with the state. What is to be woken or dropped is, outside of the lock;
    /// the driver is rung if it has to look earlier than it would.
    pub(crate) fn enter<T>(&self, act: impl FnOnce(&mut State, Instant) -> T) -> T {
        let monotonic = self.time.monotonic();
        let mut state = self.lock();
        let now = state.clock.at(monotonic);
        let result = act(&mut state, now);
        let ring = state.wants_driver();
        self.leave(state, ring);
        result
    }

    /// The same for what is neither told to the machine nor asked of it: no clock, no driver.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        let result = act(&mut state);
        self.leave(state, false);
        result
    }

    fn leave(&self, mut state: MutexGuard<'_, State>, ring: bool) {
        let wakers = (!state.wakers.is_empty()).then(|| core::mem::take(&mut state.wakers));
        drop(state);
        if ring {
            self.doorbell.ring();
        }
        if let Some(mut wakers) = wakers {
            wakers.fire();
        }
    }

    /// The state, for the driver, after a look at both clocks. A panic elsewhere while the lock was
    /// held is that thread's; the driver ends everything when it goes down itself.
    pub(crate) fn enter_as_driver(&self) -> (MutexGuard<'_, State>, Instant) {
        let (monotonic, wall) = (self.time.monotonic(), self.time.wall());
        let mut state = self.lock();
        let now = state.clock.look(monotonic, wall, self.conduct);
        (state, now)
    }

    /// Whether a panic has left the state in the middle of something.
    pub(crate) fn is_poisoned(&self) -> bool {
        self.state.is_poisoned()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When the driver's timer has to go off for something that is due at `at`.
    pub(crate) fn alarm(&self, at: Instant) -> Monotonic {
        let now = self.time.monotonic();
        self.lock().clock.wake_at(now, at, self.conduct)
    }

    pub(crate) fn monotonic(&self) -> Monotonic {
        self.time.monotonic()
    }

    /// Asks for a verdict, or waits for it.
    pub(crate) fn claim(self: &Arc<Self>, ticket: Ticket, cx: &Context<'_>) -> Poll<Verdict> {
        let claimed = self.with(|state| state.claim(ticket, cx));
        claimed.map(|(claimed, place)| self.verdict(ticket, claimed, place))
    }

    pub(crate) fn verdict(
        self: &Arc<Self>,
        ticket: Ticket,
        claimed: Claimed,
        place: Place,
    ) -> Verdict {
        match claimed {
            Claimed::Delivered { offset, .. } => Verdict::Delivered(crate::verdict::At {
                topic: place.0,
                partition: place.1.unwrap_or_default(),
                offset: offset.map(candor_core::Offset::get),
            }),
            Claimed::NotDelivered { proof, .. } | Claimed::Unrouted { proof, .. } => {
                Verdict::NotDelivered(crate::verdict::NotDelivered {
                    topic: place.0,
                    partition: place.1,
                    why: WhyNot::Proven(proof),
                })
            }
            Claimed::Unknown { doubt, .. } => {
                Verdict::Unknown(Unknown::new(Arc::clone(self), ticket, place, doubt))
            }
        }
    }

    /// Nobody will ask for this record's resolution any more.
    pub(crate) fn forget(&self, ticket: Ticket) {
        self.with(|state| state.slots.detach_resolution(ticket, &mut state.wakers));
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl State {
    /// When something is to be done next.
    pub(crate) fn deadline(&self) -> Instant {
        let machine = self.machine.deadline().map(|deadline| deadline.at);
        let others = [self.line.deadline(), self.life.deadline()];
        machine.into_iter().chain(others.into_iter().flatten()).min().unwrap_or(Instant::NEVER)
    }

    /// Whether the driver must look earlier than it would; once per turn of it.
    fn wants_driver(&mut self) -> bool {
        // It was rung already, and has not looked yet: nothing can be earlier.
        if self.armed == Instant::EPOCH {
            return false;
        }
        let wants = self.conduct.rings(self.deadline(), self.armed);
        if wants {
            self.armed = Instant::EPOCH;
        }
        wants
    }

    /// Accepts a record, unless others wait for room before it; never waits.
    #[allow(clippy::result_large_err)]
    pub(crate) fn append<'r>(
        &mut self,
        now: Instant,
        born: Instant,
        record: Record<'r>,
        waker: Option<&Waker>,
    ) -> Result<Ticket, Refused<'r>> {
        if !self.life.is_open() {
            return Err(Refused { record, why: WhyRefused::Closed });
        }
        if !self.conduct.may_accept(self.line.is_empty()) {
            return Err(Refused { record, why: WhyRefused::Full });
        }
        let ticket = self.machine.append(now, born, record)?;
        self.slots.open(ticket, waker.cloned());
        Ok(ticket)
    }

    /// Waits for room, behind all others.
    pub(crate) fn join(&mut self, born: Instant, record: Record<'_>, waker: &Waker) -> LineId {
        let deadline = self.machine.deadline_of(born, &record);
        let waker = waker.clone();
        self.line.join(InLine { born, deadline, record: record.into_owned(), waker })
    }

    /// Takes in records that waited for room, in order, and ends those whose time is up. Bounded:
    /// whether there is more to do is told by the deadlines.
    pub(crate) fn admit(&mut self, now: Instant) {
        while let Some((id, waiter)) = self.line.take_due(now) {
            self.end_waiting(id, waiter, WhyNot::NoRoom);
        }
        for _ in 0..ADMITTED_PER_TURN {
            let Some((id, InLine { born, deadline, record, waker })) = self.line.take_front()
            else {
                break;
            };
            match self.machine.append(now, born, record) {
                Ok(ticket) => {
                    self.slots.open(ticket, None);
                    self.line.end_one(id, LineEnd::Accepted(ticket));
                    self.wakers.wake(Some(waker));
                }
                Err(Refused { record, why: WhyRefused::Full }) => {
                    self.line.put_back(id, InLine { born, deadline, record, waker });
                    break;
                }
                Err(Refused { why, .. }) => {
                    self.line.end_one(id, LineEnd::Ended(WhyNot::Refused(why)));
                    self.wakers.wake(Some(waker));
                }
            }
        }
    }

    /// Somebody leaves the line: others may get room, or be the last.
    pub(crate) fn leave(&mut self, now: Instant, id: LineId) -> Option<Ticket> {
        let accepted = self.line.leave(id, &mut self.wakers);
        if accepted.is_none() && self.conduct.moves_up() {
            self.admit(now);
            self.after_line(now);
        }
        accepted
    }

    /// Takes no more records; the last verdict and resolution come by `deadline`.
    pub(crate) fn close(&mut self, now: Instant, deadline: Instant) {
        if self.life.close(deadline) {
            self.machine.close(now, deadline);
        }
        self.after_line(now);
    }

    /// Nobody will ask for this record's verdict.
    pub(crate) fn drop_record(&mut self, now: Instant, ticket: Ticket, dropped: Dropped) {
        if self.slots.detach(ticket, &mut self.wakers) && dropped == Dropped::Cancelled {
            self.machine.cancel(now, ticket);
        }
    }

    fn end_waiting(&mut self, id: LineId, waiter: InLine, why: WhyNot) {
        self.line.end_one(id, LineEnd::Ended(why));
        self.wakers.wake(Some(waiter.waker));
    }

    /// Ends waiting for all who still wait.
    pub(crate) fn end_line(&mut self, why: WhyNot) {
        while let Some((id, waiter)) = self.line.take_front() {
            self.end_waiting(id, waiter, why);
        }
    }

    /// Starts what waits for the line: flushes, and closing.
    pub(crate) fn after_line(&mut self, now: Instant) {
        let front = self.line.front();
        while let Some(flush) = self.flushes.next_in_line(front, self.conduct) {
            let id = self.machine.flush(now);
            self.flushes.started(flush, id);
        }
        if let Some(deadline) = self.life.may_begin_to_close(front.is_none(), now, self.conduct) {
            self.end_line(WhyNot::NoRoom);
            self.machine.close(now, deadline);
        }
    }

    /// Takes in verdicts and resolutions of one batch.
    pub(crate) fn settle(&mut self, settlement: &Settlement) {
        let Settlement { topic, partition, settled } = settlement;
        let partition = partition.and_then(|partition| u32::try_from(partition).ok());
        match (partition, settled.outcome) {
            // A topic without partitions may be one of very many: no number is kept for it.
            (None, Outcome::NotDelivered(proof)) => {
                for (ticket, _) in settled.verdicts() {
                    self.slots.tell_unrouted(ticket, Arc::clone(topic), proof, &mut self.wakers);
                }
            }
            (Some(_), _)
            | (None, Outcome::Delivered { .. } | Outcome::Unknown(_) | Outcome::Never { .. }) => {
                let place = self.places.id(Arc::clone(topic), partition);
                for (ticket, verdict) in settled.verdicts() {
                    self.slots.tell(ticket, verdict, place, &mut self.wakers);
                }
            }
        }
        for (ticket, resolution) in settlement.settled.resolutions() {
            match resolution {
                Resolution::Delivered { .. } => self.tally.resolved_delivered += 1,
                Resolution::NotDelivered(_) => self.tally.resolved_not_delivered += 1,
                Resolution::Never { .. } => self.tally.never += 1,
            }
            self.slots.resolve(ticket, Resolved::Told(resolution), &mut self.wakers);
        }
    }

    /// Whether a producer id is there; `connect` waits for it.
    pub(crate) fn poll_prepared(&mut self, cx: &Context<'_>) -> bool {
        let prepared = self.machine.is_prepared();
        if !prepared {
            self.wakers.retire(self.connecting.replace(cx.waker().clone()));
        }
        prepared
    }

    /// Tells whoever waits in `connect`.
    pub(crate) fn after_connect(&mut self) {
        if self.connecting.is_some() && self.machine.is_prepared() {
            self.wakers.wake(self.connecting.take());
        }
    }

    pub(crate) fn claim(&mut self, ticket: Ticket, cx: &Context<'_>) -> Poll<(Claimed, Place)> {
        let claimed = self.slots.claim(ticket, cx, &mut self.wakers);
        claimed.map(|claimed| {
            let nothing = Claimed::Unknown { place: crate::places::PlaceId::NOWHERE, doubt: None };
            let claimed = claimed.unwrap_or(nothing);
            let place = match &claimed {
                Claimed::Unrouted { topic, .. } => (Arc::clone(topic), None),
                Claimed::Delivered { place, .. }
                | Claimed::NotDelivered { place, .. }
                | Claimed::Unknown { place, .. } => self.places.get(*place),
            };
            (claimed, place)
        })
    }

    /// The machine has told everything, or never will: nobody waits any longer.
    pub(crate) fn end(&mut self, why: WhyNot) {
        self.end_line(why);
        self.slots.end_all(&mut self.wakers);
        self.flushes.end(&mut self.wakers);
        self.feeds.end(&mut self.wakers);
        let stats = self.stats();
        self.life.end(stats.summary(), &mut self.wakers);
    }

    pub(crate) fn stats(&self) -> Stats {
        Stats {
            machine: self.machine.stats(),
            in_line: self.line.len(),
            unclaimed: self.slots.unclaimed(),
            resolutions: self.tally,
        }
    }
}

/// Those who wait for a flush.
#[derive(Debug, Default)]
pub(crate) struct Flushes {
    flushes: BTreeMap<u64, Flush>,
    next: u64,
    ended: bool,
}

#[derive(Debug)]
struct Flush {
    stage: FlushStage,
    waker: Option<Waker>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FlushStage {
    /// Begins when all in the line before this place were accepted.
    InLine(LineId),
    /// The machine works on it.
    Running(FlushId),
    Over,
}

impl Flushes {
    /// Begins when everybody who is before `end` in the line has left it.
    pub(crate) fn join(&mut self, end: LineId) -> u64 {
        let id = self.next;
        self.next += 1;
        let stage = if self.ended { FlushStage::Over } else { FlushStage::InLine(end) };
        self.flushes.insert(id, Flush { stage, waker: None });
        id
    }

    fn next_in_line(&self, front: Option<LineId>, conduct: &dyn Conduct) -> Option<u64> {
        let ready = |flush: &Flush| match flush.stage {
            FlushStage::InLine(end) => conduct.flush_begins(front, end),
            FlushStage::Running(_) | FlushStage::Over => false,
        };
        self.flushes.iter().find(|(_, flush)| ready(flush)).map(|(id, _)| *id)
    }

    fn started(&mut self, id: u64, running: FlushId) {
        if let Some(flush) = self.flushes.get_mut(&id) {
            flush.stage = FlushStage::Running(running);
        }
    }

    pub(crate) fn flushed(&mut self, over: FlushId, wakers: &mut Wakers) {
        for flush in self.flushes.values_mut() {
            if flush.stage == FlushStage::Running(over) {
                flush.stage = FlushStage::Over;
                wakers.wake(flush.waker.take());
            }
        }
    }

    fn end(&mut self, wakers: &mut Wakers) {
        self.ended = true;
        for flush in self.flushes.values_mut() {
            flush.stage = FlushStage::Over;
            wakers.wake(flush.waker.take());
        }
    }

    pub(crate) fn poll(&mut self, id: u64, cx: &Context<'_>, wakers: &mut Wakers) -> Poll<()> {
        match self.flushes.get_mut(&id) {
            Some(flush) if flush.stage != FlushStage::Over => {
                wakers.retire(flush.waker.replace(cx.waker().clone()));
                Poll::Pending
            }
            Some(_) | None => Poll::Ready(()),
        }
    }

    pub(crate) fn forget(&mut self, id: u64, wakers: &mut Wakers) {
        wakers.retire(self.flushes.remove(&id).and_then(|flush| flush.waker));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::world::Executor;
    use crate::world::stage::{record, settings};

    /// `docs/assumptions.md`: a topic that never had a partition is forgotten.
    #[test]
    fn names_of_topics_that_never_had_a_partition_are_not_kept() {
        let executor = &mut Executor::new(settings(1));
        let config = candor_proto::Config::new(executor.world.bootstrap());
        let config = config.auto_create_topics(false).linger(Duration::ZERO);
        let producer = crate::Producer::lazy_on(executor.world.clone(), config).unwrap();
        assert!(executor.block_on(producer.send(record(0))).is_delivered());
        for n in 0..100 {
            let name = format!("none-{n}");
            let none = Record::to(name.as_str()).deadline(Duration::from_millis(10));
            assert!(!executor.block_on(producer.send(none)).is_delivered());
        }
        assert_eq!(producer.shared().with(|state| state.places.len()), 1);
    }
}
