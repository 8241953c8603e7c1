//! The records that are not over: without a verdict, or unknown and without a resolution.
//!
//! Records are kept by chunk of the input. Each chunk has a waker of its own, so that a batch that
//! settles makes us look at the chunks concerned and at nothing else, in whatever order partitions
//! settle.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;

use candor_tokio::{Handle, Resolution, Resolved, Verdict};

use crate::line::{Chunk, Line};

/// What was heard of a record.
#[derive(Debug)]
pub(crate) enum Heard<'a> {
    Verdict(&'a Verdict),
    Resolution(&'a Resolution),
}

/// All records that are not over.
#[derive(Debug)]
pub(crate) struct Window {
    groups: BTreeMap<u64, Group>,
    next: u64,
    ready: Arc<Ready>,
    waiting: usize,
    unresolved: usize,
}

/// The records of one chunk.
#[derive(Debug)]
struct Group {
    chunk: Arc<Chunk>,
    records: Vec<Sent>,
    /// Everything before it is over.
    from: usize,
    /// The rest of the chunk is still to be sent.
    filling: bool,
    waker: Waker,
    flag: Arc<Flag>,
}

#[derive(Debug)]
struct Sent {
    index: usize,
    read: Instant,
    state: State,
}

#[derive(Debug)]
enum State {
    Waiting(Handle),
    Unresolved(Resolved),
    Over,
}

impl Window {
    pub(crate) fn new() -> Self {
        Self { groups: BTreeMap::new(), next: 0, ready: Arc::default(), waiting: 0, unresolved: 0 }
    }

    /// Records without a verdict.
    pub(crate) const fn waiting(&self) -> usize {
        self.waiting
    }

    /// Records that are unknown and not resolved.
    pub(crate) const fn unresolved(&self) -> usize {
        self.unresolved
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// The oldest record without a verdict.
    pub(crate) fn oldest(&self) -> Option<&Handle> {
        self.groups.values().flat_map(|group| &group.records[group.from..]).find_map(|sent| {
            match &sent.state {
                State::Waiting(handle) => Some(handle),
                State::Unresolved(_) | State::Over => None,
            }
        })
    }

    /// Records of this chunk will be pushed.
    pub(crate) fn begin(&mut self, chunk: Arc<Chunk>) {
        let id = self.next;
        self.next += 1;
        let flag = Arc::new(Flag { id, raised: AtomicBool::new(false), ready: self.ready.clone() });
        let waker = Waker::from(Arc::clone(&flag));
        let records = Vec::with_capacity(chunk.lines.len());
        let group = Group { chunk, records, from: 0, filling: true, waker, flag };
        self.groups.insert(id, group);
    }

    /// A record of the chunk that was begun last was sent.
    pub(crate) fn push(&mut self, index: usize, read: Instant, handle: Handle) {
        if let Some(mut group) = self.groups.last_entry() {
            let group = group.get_mut();
            group.records.push(Sent { index, read, state: State::Waiting(handle) });
            self.waiting += 1;
            // Looked at with the group's waker at the next turn.
            group.flag.raise();
        }
    }

    /// The chunk that was begun last is complete.
    pub(crate) fn end(&mut self) {
        if let Some(mut group) = self.groups.last_entry() {
            group.get_mut().filling = false;
            if group.get().is_over() {
                group.remove();
            }
        }
    }

    /// Hands on everything that was heard. Ready if that was anything.
    pub(crate) fn listen(
        &mut self,
        cx: &Context<'_>,
        hear: &mut impl FnMut(Line<'_>, Heard<'_>),
    ) -> Poll<()> {
        let before = (self.waiting, self.unresolved);
        let mut ready = self.ready.take(cx);
        // Whoever was sent first is heard first.
        ready.sort_unstable();
        for id in ready {
            let Some(group) = self.groups.get_mut(&id) else { continue };
            group.flag.raised.store(false, Ordering::SeqCst);
            let change = group.listen(hear);
            self.waiting -= change.told;
            self.unresolved += change.doubted;
            self.unresolved -= change.resolved;
            if group.is_over() {
                self.groups.remove(&id);
            }
        }
        if before == (self.waiting, self.unresolved) { Poll::Pending } else { Poll::Ready(()) }
    }
}

/// What one look at a group changed.
#[derive(Debug, Default)]
struct Change {
    told: usize,
    doubted: usize,
    resolved: usize,
}

impl Group {
    fn is_over(&self) -> bool {
        !self.filling && self.from == self.records.len()
    }

    fn listen(&mut self, hear: &mut impl FnMut(Line<'_>, Heard<'_>)) -> Change {
        let mut change = Change::default();
        let mut cx = Context::from_waker(&self.waker);
        for sent in &mut self.records[self.from..] {
            let line = self.chunk.at(sent.index, sent.read);
            if let State::Waiting(handle) = &mut sent.state
                && let Poll::Ready(verdict) = Pin::new(handle).poll(&mut cx)
            {
                change.told += 1;
                hear(line, Heard::Verdict(&verdict));
                sent.state = match verdict {
                    Verdict::Unknown(unknown) => {
                        change.doubted += 1;
                        State::Unresolved(unknown.resolved())
                    }
                    Verdict::Delivered(_) | Verdict::NotDelivered(_) => State::Over,
                };
            }
            if let State::Unresolved(resolved) = &mut sent.state
                && let Poll::Ready(resolution) = Pin::new(resolved).poll(&mut cx)
            {
                change.resolved += 1;
                hear(line, Heard::Resolution(&resolution));
                sent.state = State::Over;
            }
        }
        let over = |sent: &&Sent| matches!(sent.state, State::Over);
        self.from += self.records[self.from..].iter().take_while(over).count();
        change
    }
}

/// The groups to look at, and whom to tell that there are any.
#[derive(Debug, Default)]
struct Ready(Mutex<Queue>);

#[derive(Debug, Default)]
struct Queue {
    groups: Vec<u64>,
    task: Option<Waker>,
}

impl Ready {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, cx: &Context<'_>) -> Vec<u64> {
        let mut queue = self.lock();
        if !queue.task.as_ref().is_some_and(|task| task.will_wake(cx.waker())) {
            queue.task = Some(cx.waker().clone());
        }
        std::mem::take(&mut queue.groups)
    }
}

/// A group's waker: raised once until it is looked at.
#[derive(Debug)]
struct Flag {
    id: u64,
    raised: AtomicBool,
    ready: Arc<Ready>,
}

impl Flag {
    fn raise(&self) {
        if !self.raised.swap(true, Ordering::SeqCst) {
            let mut queue = self.ready.lock();
            queue.groups.push(self.id);
            let task = queue.task.take();
            drop(queue);
            if let Some(task) = task {
                task.wake();
            }
        }
    }
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.raise();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.raise();
    }
}
