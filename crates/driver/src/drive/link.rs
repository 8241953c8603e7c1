//! One connection: bytes in, bytes out, and a count of what the socket took.

use std::collections::VecDeque;
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use candor_core::RouteId;
use candor_proto::{Address, Handed, Input, Loss};
use futures_io::{AsyncRead, AsyncWrite};

use crate::conduct::Conduct;
use crate::doorbell::{Doorbell, Readiness};
use crate::runtime::Runtime;

/// Slices in one vectored write.
const SLICES: usize = 64;

/// Reads from one connection in one round.
const READS_PER_ROUND: usize = 4;

/// Writes to one connection in one round.
const WRITES_PER_ROUND: usize = 8;

type Attempt<S> = Pin<Box<dyn Future<Output = io::Result<S>> + Send>>;

/// A connection, as far as the driver is concerned.
pub(super) enum Link<S> {
    /// Being made.
    Connecting { attempt: Attempt<S>, moved: Readiness },
    /// Up.
    Open(Open<S>),
    /// Over, and reported as such.
    Over,
}

/// A connection that is up.
pub(super) struct Open<S> {
    stream: S,
    readable: Readiness,
    writable: Readiness,
    /// Bytes to be written. They are kept until the socket took them, whatever became of their
    /// records (rule S16).
    queue: VecDeque<Bytes>,
    /// Bytes that the socket took, from the beginning.
    taken: u64,
}

/// What a round works with.
pub(super) struct Desk<'a> {
    /// Every read goes through it.
    pub(super) buffer: &'a mut [u8],
    /// What happened, in order.
    pub(super) facts: &'a mut Vec<Input>,
    pub(super) conduct: &'static dyn Conduct,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Link<S> {
    pub(super) fn connect<R: Runtime<Stream = S>>(
        runtime: R,
        address: &Address,
        doorbell: &Arc<Doorbell>,
    ) -> Self {
        let attempt = Box::pin(runtime.connect(Arc::from(address.host()), address.port()));
        Self::Connecting { attempt, moved: Readiness::new(doorbell) }
    }

    /// Whether something moved since it was last looked at.
    pub(super) fn wants_turn(&self) -> bool {
        match self {
            Self::Connecting { moved, .. } => moved.is_up(),
            Self::Open(open) => {
                open.readable.is_up() || (!open.queue.is_empty() && open.writable.is_up())
            }
            Self::Over => false,
        }
    }

    /// Whether it is given more bytes.
    pub(super) fn takes_bytes(&self, conduct: &dyn Conduct) -> bool {
        match self {
            Self::Open(open) => conduct.takes_bytes(open.queue.len()),
            Self::Connecting { .. } | Self::Over => false,
        }
    }

    /// Bytes to be written.
    pub(super) fn push(&mut self, segments: impl Iterator<Item = Bytes>) {
        if let Self::Open(open) = self {
            open.queue.extend(segments);
        }
    }

    /// Reads and writes as far as it goes now, within bounds.
    pub(super) fn turn(&mut self, conn: RouteId, doorbell: &Arc<Doorbell>, desk: &mut Desk<'_>) {
        if let Self::Connecting { attempt, moved } = self {
            moved.lower();
            match attempt.as_mut().poll(&mut Context::from_waker(moved.waker())) {
                Poll::Pending => return,
                Poll::Ready(Ok(stream)) => {
                    desk.facts.push(Input::Connected { conn });
                    *self = Self::Open(Open::new(stream, doorbell));
                }
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::NotFound => {
                    return self.lose(conn, Loss::Unresolved, desk);
                }
                Poll::Ready(Err(_)) => return self.lose(conn, Loss::Refused, desk),
            }
        }
        let Self::Open(open) = self else { return };
        // Answers first, and once more when nothing can be written any more: they may be all that a
        // broken connection leaves.
        let outcome = open.read(conn, desk).and_then(|()| {
            open.write(conn, desk).or_else(|loss| {
                if desk.conduct.hears_the_dying() {
                    open.read(conn, desk)?;
                }
                Err(loss)
            })
        });
        if let Err(why) = outcome {
            self.lose(conn, why, desk);
        }
    }

    /// Ends it as ordered; its stream, if there is one to be closed.
    pub(super) fn close(
        &mut self,
        conn: RouteId,
        facts: &mut Vec<Input>,
        conduct: &dyn Conduct,
    ) -> Option<S> {
        match self.lost(conn, Loss::Asked, facts, conduct) {
            Self::Open(open) => Some(open.stream),
            Self::Connecting { .. } | Self::Over => None,
        }
    }

    fn lose(&mut self, conn: RouteId, why: Loss, desk: &mut Desk<'_>) {
        drop(self.lost(conn, why, desk.facts, desk.conduct));
    }

    fn lost(
        &mut self,
        conn: RouteId,
        why: Loss,
        facts: &mut Vec<Input>,
        conduct: &dyn Conduct,
    ) -> Self {
        let link = core::mem::replace(self, Self::Over);
        let taken = match &link {
            Self::Connecting { .. } => 0,
            Self::Open(open) => conduct.handed(open.taken, &open.queue),
            Self::Over => return link,
        };
        facts.push(Input::Lost { conn, handed: Handed::AtMost(taken), why });
        link
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Open<S> {
    fn new(stream: S, doorbell: &Arc<Doorbell>) -> Self {
        Self {
            stream,
            readable: Readiness::new(doorbell),
            writable: Readiness::new(doorbell),
            queue: VecDeque::new(),
            taken: 0,
        }
    }

    fn read(&mut self, conn: RouteId, desk: &mut Desk<'_>) -> Result<(), Loss> {
        if !self.readable.is_up() {
            return Ok(());
        }
        self.readable.lower();
        for _ in 0..desk.conduct.times(READS_PER_ROUND) {
            let mut cx = Context::from_waker(self.readable.waker());
            match Pin::new(&mut self.stream).poll_read(&mut cx, desk.buffer) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Ok(0)) => return Err(Loss::Ended),
                Poll::Ready(Ok(n)) => {
                    let read = desk.buffer.get(..n).unwrap_or(desk.buffer);
                    let bytes = Bytes::copy_from_slice(read);
                    desk.facts.push(Input::Received { conn, bytes });
                }
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Poll::Ready(Err(_)) => return Err(Loss::Broken),
            }
        }
        if desk.conduct.goes_on() {
            self.readable.raise();
        }
        Ok(())
    }

    fn write(&mut self, conn: RouteId, desk: &mut Desk<'_>) -> Result<(), Loss> {
        if self.queue.is_empty() || !self.writable.is_up() {
            return Ok(());
        }
        self.writable.lower();
        let before = self.taken;
        let outcome = self.write_some(desk.conduct);
        let n = desk.conduct.out(self.taken - before, &self.queue);
        if n > 0 {
            desk.facts.push(Input::Sent { conn, n: usize::try_from(n).unwrap_or(usize::MAX) });
        }
        if outcome?.is_ready() && (self.queue.is_empty() || desk.conduct.goes_on()) {
            self.writable.raise();
        }
        Ok(())
    }

    /// Ready if the socket would take more.
    fn write_some(&mut self, conduct: &dyn Conduct) -> Result<Poll<()>, Loss> {
        for _ in 0..conduct.times(WRITES_PER_ROUND) {
            if self.queue.is_empty() {
                break;
            }
            let mut slices = [IoSlice::new(&[]); SLICES];
            let count = self.queue.len().min(SLICES);
            for (slice, segment) in slices.iter_mut().zip(&self.queue) {
                *slice = IoSlice::new(segment);
            }
            let mut cx = Context::from_waker(self.writable.waker());
            let stream = Pin::new(&mut self.stream);
            match stream.poll_write_vectored(&mut cx, &slices[..count]) {
                Poll::Pending => return Ok(Poll::Pending),
                Poll::Ready(Ok(0)) => return Err(Loss::Broken),
                Poll::Ready(Ok(n)) => self.took(n),
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Poll::Ready(Err(_)) => return Err(Loss::Broken),
            }
        }
        Ok(Poll::Ready(()))
    }

    fn took(&mut self, mut n: usize) {
        self.taken += n as u64;
        while let Some(first) = self.queue.front_mut() {
            if n < first.len() {
                first.advance(n);
                return;
            }
            n -= first.len();
            self.queue.pop_front();
        }
    }
}
