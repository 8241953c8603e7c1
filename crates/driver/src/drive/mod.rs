//! The driver: carries facts from the sockets to the machine, and its orders back.

mod link;

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant as Monotonic;

use bytes::Bytes;
use candor_core::{Instant, RouteId};
use candor_proto::{Address, Input, Output};

use crate::runtime::Runtime;
use crate::shared::{Shared, State};
use crate::slots::Wakers;
use crate::verdict::WhyNot;

use link::{Desk, Link};

/// Rounds in one poll of the driver; then others have their turn.
const ROUNDS_PER_POLL: usize = 8;

/// Orders and messages taken from the machine under one lock.
const OUTPUTS_PER_ROUND: usize = 256;

/// Bytes that a connection is given to write at a time.
const BYTES_PER_ROUND: usize = 1 << 20;

/// Size of the buffer that all connections read through.
const READ_BUFFER: usize = 64 << 10;

/// The future that does a producer's work: sockets, timers and verdicts. It ends when the producer
/// is closed.
///
/// Dropping it before, or shutting the runtime down, ends everything truthfully: what was never
/// offered to a broker is `NotDelivered`, the rest is `Unknown` and resolved as `Never`.
///
/// ```no_run
/// # use candor_driver::{Config, ConfigError, Producer, Runtime};
/// # fn example<R: Runtime + Default>(runtime: &R) -> Result<(), ConfigError> {
/// let (producer, driver) = Producer::<R>::parts(Config::new(["localhost:9092"]))?;
/// runtime.spawn(driver);
/// # drop(producer);
/// # Ok(())
/// # }
/// ```
#[must_use = "a producer does nothing unless its driver is run"]
pub struct Driver<R: Runtime> {
    runtime: R,
    shared: Arc<Shared>,
    links: BTreeMap<RouteId, Link<R::Stream>>,
    timer: Option<(Monotonic, Pin<Box<R::Sleep>>)>,
    buffer: Box<[u8]>,
    facts: Vec<Input>,
    orders: Vec<Order>,
    segments: Vec<Bytes>,
    wakers: Wakers,
}

/// Something that the machine wants done outside of the lock.
#[derive(Debug)]
enum Order {
    Connect { conn: RouteId, address: Address },
    Disconnect { conn: RouteId, abort: bool },
}

/// What is left to do after a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    /// More, at once.
    More,
    /// Nothing before this time, unless a socket moves.
    Nothing { until: Instant },
    /// Nothing any more.
    Over,
}

impl<R: Runtime> Driver<R> {
    pub(crate) fn new(runtime: R, shared: Arc<Shared>) -> Self {
        Self {
            runtime,
            shared,
            links: BTreeMap::new(),
            timer: None,
            buffer: vec![0; READ_BUFFER].into_boxed_slice(),
            facts: Vec::new(),
            orders: Vec::new(),
            segments: Vec::new(),
            wakers: Wakers::default(),
        }
    }

    /// One round: sockets, machine, orders.
    fn round(&mut self) -> Left {
        let doorbell = &self.shared.doorbell;
        let conduct = self.shared.conduct;
        let mut desk = Desk { buffer: &mut self.buffer, facts: &mut self.facts, conduct };
        for (conn, link) in self.links.iter_mut().filter(|(_, link)| link.wants_turn()) {
            link.turn(*conn, doorbell, &mut desk);
        }
        self.links.retain(|_, link| !matches!(link, Link::Over));
        let left = self.consult();
        self.wakers.fire();
        self.carry_out();
        let moved = !self.facts.is_empty() || self.links.values().any(Link::wants_turn);
        match left {
            Left::Over if self.links.is_empty() => Left::Over,
            Left::More | Left::Over => Left::More,
            Left::Nothing { .. } if moved => Left::More,
            Left::Nothing { until } => Left::Nothing { until },
        }
    }

    /// Tells the machine what happened and takes what it wants, under the lock.
    fn consult(&mut self) -> Left {
        let (mut guard, now) = self.shared.enter_as_driver();
        let state = &mut *guard;
        tell(state, now, &mut self.facts);
        let conduct = self.shared.conduct;
        let drained = take_outputs(state, now, &mut self.orders);
        state.admit(now);
        state.after_line(now);
        state.after_connect();
        if drained {
            for (conn, link) in self.links.iter_mut().filter(|(_, link)| link.takes_bytes(conduct))
            {
                if state.machine.wants_transmit(*conn) {
                    state.machine.transmit(now, *conn, BYTES_PER_ROUND, &mut self.segments);
                    link.push(self.segments.drain(..));
                }
            }
        }
        core::mem::swap(&mut state.wakers, &mut self.wakers);
        let until = state.deadline();
        state.armed = until;
        if state.life.is_over() {
            Left::Over
        } else if !drained || until <= now {
            Left::More
        } else {
            Left::Nothing { until }
        }
    }

    /// Does what the machine wanted, outside of the lock.
    fn carry_out(&mut self) {
        for order in self.orders.drain(..) {
            match order {
                Order::Connect { conn, address } => {
                    let doorbell = &self.shared.doorbell;
                    let link = Link::connect(self.runtime.clone(), &address, doorbell);
                    self.links.insert(conn, link);
                }
                Order::Disconnect { conn, abort } => {
                    let Some(mut link) = self.links.remove(&conn) else { continue };
                    match link.close(conn, &mut self.facts, self.shared.conduct) {
                        Some(stream) if abort => self.runtime.abort(stream),
                        Some(_) | None => {}
                    }
                }
            }
        }
    }

    /// Sets the timer. Whether it has gone off already.
    fn sleep(&mut self, until: Instant, cx: &mut Context<'_>) -> bool {
        if until == Instant::NEVER {
            self.timer = None;
            return false;
        }
        let at = self.shared.alarm(until);
        // A timer that goes off too early only makes us look, and set another one.
        if self.timer.as_ref().is_none_or(|(set, _)| *set > at) {
            self.timer = Some((at, Box::pin(self.runtime.sleep_until(at))));
        }
        let over = self.timer.as_mut().is_some_and(|(_, timer)| timer.as_mut().poll(cx).is_ready());
        if over {
            self.timer = None;
        }
        over
    }

    /// Nobody will drive any more: everything gets its verdict and resolution now.
    fn end(&mut self) {
        for (conn, mut link) in core::mem::take(&mut self.links) {
            if let Some(stream) = link.close(conn, &mut self.facts, self.shared.conduct) {
                self.runtime.abort(stream);
            }
        }
        // After a panic the machine may be in the middle of something: it is not asked any more.
        let sound = !self.shared.is_poisoned() && !std::thread::panicking();
        let (mut guard, now) = self.shared.enter_as_driver();
        let state = &mut *guard;
        state.end_line(WhyNot::DriverGone);
        if sound && !state.life.is_over() {
            tell(state, now, &mut self.facts);
            state.machine.close(now, now);
            while !take_outputs(state, now, &mut self.orders) {}
        }
        state.end(WhyNot::DriverGone);
        let mut wakers = core::mem::take(&mut state.wakers);
        drop(guard);
        wakers.fire();
    }
}

/// Facts are told once and in order: one that the machine refuses is a mistake of ours, and has
/// changed nothing.
fn tell(state: &mut State, now: Instant, facts: &mut Vec<Input>) {
    for fact in facts.drain(..) {
        let told = state.machine.handle(now, fact);
        debug_assert_eq!(told, Ok(()));
    }
}

/// Takes what the machine has to say, within bounds. Whether that was all.
fn take_outputs(state: &mut State, now: Instant, orders: &mut Vec<Order>) -> bool {
    for _ in 0..state.conduct.times(OUTPUTS_PER_ROUND) {
        match state.machine.poll(now) {
            None => return true,
            Some(Output::Connect { conn, address }) => {
                orders.push(Order::Connect { conn, address });
            }
            Some(Output::Disconnect { conn, abort }) => {
                orders.push(Order::Disconnect { conn, abort });
            }
            Some(Output::Settled(settlement)) => state.settle(&settlement),
            Some(Output::Notice(notice)) => state.feeds.push(&notice, &mut state.wakers),
            Some(Output::Flushed(flush)) => state.flushes.flushed(flush, &mut state.wakers),
            Some(Output::Closed) => state.end(WhyNot::NoRoom),
        }
    }
    false
}

impl<R: Runtime> Future for Driver<R> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        this.shared.doorbell.answer(cx.waker());
        let conduct = this.shared.conduct;
        for _ in 0..conduct.times(ROUNDS_PER_POLL) {
            match this.round() {
                Left::More => {}
                Left::Over => return Poll::Ready(()),
                Left::Nothing { until } if !this.sleep(until, cx) => return Poll::Pending,
                Left::Nothing { .. } => {}
            }
        }
        if conduct.goes_on() {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

impl<R: Runtime> Unpin for Driver<R> {}

impl<R: Runtime> Drop for Driver<R> {
    fn drop(&mut self) {
        if self.shared.conduct.tells_at_the_end() {
            self.end();
        }
    }
}

impl<R: Runtime> fmt::Debug for Driver<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").field("connections", &self.links.len()).finish_non_exhaustive()
    }
}
