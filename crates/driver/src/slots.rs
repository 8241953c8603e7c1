//! Where verdicts wait for whoever sent the record: one slot per ticket, in segments that are used
//! again. Nothing is allocated per record, except for the rare `Unknown`, and for records that never
//! got a partition.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use candor_core::{Doubt, Offset, Proof, Resolution, Ticket, Verdict};

use crate::places::PlaceId;

/// Slots in a segment.
const SEGMENT: usize = 1024;

/// Free segments that are kept for later.
const SPARE: usize = 4;

/// One record, seen from whoever sent it.
#[derive(Debug)]
enum Slot {
    /// Not issued, or over.
    Free,
    /// No verdict, nobody waits yet.
    Pending,
    /// No verdict, this task waits.
    Waiting(Waker),
    /// No verdict, and nobody will ask.
    Detached,
    /// `Delivered`, unclaimed.
    Delivered { place: PlaceId, offset: Option<SlotOffset> },
    /// `NotDelivered`, unclaimed.
    NotDelivered { place: PlaceId, proof: Proof },
    /// `NotDelivered` without ever having had a partition, unclaimed. Its topic is kept here: it may
    /// be a name that nobody ever uses again.
    Unrouted(Box<(Arc<str>, Proof)>),
    /// `Unknown`, unclaimed.
    Unknown(Box<Untold>),
    /// `Unknown` was claimed; no resolution, nobody waits yet.
    Unresolved,
    /// `Unknown` was claimed; no resolution, this task waits.
    Awaiting(Waker),
    /// A resolution, unclaimed.
    Resolved(Box<Resolved>),
}

/// An offset in a form that leaves slots small: the complement, which is never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SlotOffset(core::num::NonZeroI64);

impl SlotOffset {
    fn new(offset: Offset) -> Option<Self> {
        core::num::NonZeroI64::new(!offset.get()).map(Self)
    }

    fn get(self) -> Option<Offset> {
        Offset::new(!self.0.get())
    }
}

/// An `Unknown` that was not claimed yet.
#[derive(Debug)]
struct Untold {
    place: PlaceId,
    doubt: Option<Doubt>,
    resolution: Option<Resolved>,
}

/// How an `Unknown` ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resolved {
    /// The machine said so.
    Told(Resolution),
    /// The driver ended without the machine's word.
    DriverGone,
}

/// A verdict, claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Claimed {
    /// In the log.
    Delivered { place: PlaceId, offset: Option<Offset> },
    /// Not in the log.
    NotDelivered { place: PlaceId, proof: Proof },
    /// The same, and it never had a partition.
    Unrouted { topic: Arc<str>, proof: Proof },
    /// Perhaps in the log; the slot waits for the resolution.
    Unknown { place: PlaceId, doubt: Option<Doubt> },
}

/// Wakers that left the slots: neither woken nor dropped while the lock is held, for either may run
/// anybody's code.
#[derive(Debug, Default)]
pub(crate) struct Wakers {
    woken: Vec<Waker>,
    dropped: Vec<Waker>,
}

impl Wakers {
    pub(crate) const fn is_empty(&self) -> bool {
        self.woken.is_empty() && self.dropped.is_empty()
    }

    pub(crate) fn wake(&mut self, waker: Option<Waker>) {
        self.woken.extend(waker);
    }

    pub(crate) fn retire(&mut self, waker: Option<Waker>) {
        self.dropped.extend(waker);
    }

    /// To be called outside of the lock.
    pub(crate) fn fire(&mut self) {
        self.woken.drain(..).for_each(Waker::wake);
        self.dropped.clear();
    }
}

#[derive(Debug)]
struct Segment {
    slots: Box<[Slot]>,
    used: usize,
}

impl Segment {
    fn new() -> Self {
        Self { slots: (0..SEGMENT).map(|_| Slot::Free).collect(), used: 0 }
    }
}

/// All slots.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    /// Index in `segments` is ticket / SEGMENT - first.
    segments: VecDeque<Option<Segment>>,
    first: u64,
    /// One behind the last ticket issued.
    next: u64,
    spare: Vec<Segment>,
    /// Verdicts that nobody asked for, or will.
    unclaimed: u64,
}

impl Slots {
    /// A record was accepted; `waker` waits for its verdict. Tickets are dense.
    pub(crate) fn open(&mut self, ticket: Ticket, waker: Option<Waker>) {
        let number = ticket.0 / SEGMENT as u64;
        if self.segments.is_empty() {
            self.first = number;
        }
        while self.first + self.segments.len() as u64 <= number {
            let segment = self.spare.pop().unwrap_or_else(Segment::new);
            self.segments.push_back(Some(segment));
        }
        self.next = self.next.max(ticket.0 + 1);
        if let Some((segment, at)) = self.find(ticket) {
            segment.used += 1;
            segment.slots[at] = waker.map_or(Slot::Pending, Slot::Waiting);
        }
    }

    /// A verdict came.
    pub(crate) fn tell(
        &mut self,
        ticket: Ticket,
        verdict: Verdict,
        place: PlaceId,
        wakers: &mut Wakers,
    ) {
        let told = match verdict {
            Verdict::Delivered { offset } => {
                Slot::Delivered { place, offset: offset.and_then(SlotOffset::new) }
            }
            Verdict::NotDelivered(proof) => Slot::NotDelivered { place, proof },
            Verdict::Unknown(doubt) => {
                Slot::Unknown(Box::new(Untold { place, doubt: Some(doubt), resolution: None }))
            }
        };
        self.tell_as(ticket, told, wakers);
    }

    /// A record of this topic ended that never had a partition.
    pub(crate) fn tell_unrouted(
        &mut self,
        ticket: Ticket,
        topic: Arc<str>,
        proof: Proof,
        wakers: &mut Wakers,
    ) {
        self.tell_as(ticket, Slot::Unrouted(Box::new((topic, proof))), wakers);
    }

    fn tell_as(&mut self, ticket: Ticket, told: Slot, wakers: &mut Wakers) {
        let Some((segment, at)) = self.find(ticket) else { return };
        let slot = &mut segment.slots[at];
        match slot {
            Slot::Pending => *slot = told,
            Slot::Waiting(_) => {
                if let Slot::Waiting(waker) = core::mem::replace(slot, told) {
                    wakers.wake(Some(waker));
                }
            }
            Slot::Detached => {
                self.unclaimed += 1;
                self.free(ticket);
            }
            Slot::Free
            | Slot::Delivered { .. }
            | Slot::NotDelivered { .. }
            | Slot::Unrouted(_)
            | Slot::Unknown(_)
            | Slot::Unresolved
            | Slot::Awaiting(_)
            | Slot::Resolved(_) => debug_assert!(false, "one verdict per record"),
        }
    }

    /// A resolution came. Nobody may be there any more to hear it.
    pub(crate) fn resolve(&mut self, ticket: Ticket, how: Resolved, wakers: &mut Wakers) {
        let Some((segment, at)) = self.find(ticket) else { return };
        let slot = &mut segment.slots[at];
        match slot {
            Slot::Unknown(untold) => untold.resolution = Some(how),
            Slot::Unresolved => *slot = Slot::Resolved(Box::new(how)),
            Slot::Awaiting(_) => {
                let told = Slot::Resolved(Box::new(how));
                if let Slot::Awaiting(waker) = core::mem::replace(slot, told) {
                    wakers.wake(Some(waker));
                }
            }
            Slot::Free
            | Slot::Pending
            | Slot::Waiting(_)
            | Slot::Detached
            | Slot::Delivered { .. }
            | Slot::NotDelivered { .. }
            | Slot::Unrouted(_)
            | Slot::Resolved(_) => {}
        }
    }

    /// Asks for the verdict, or waits for it.
    pub(crate) fn claim(
        &mut self,
        ticket: Ticket,
        cx: &Context<'_>,
        wakers: &mut Wakers,
    ) -> Poll<Option<Claimed>> {
        let Some((segment, at)) = self.find(ticket) else { return Poll::Ready(None) };
        let slot = &mut segment.slots[at];
        let claimed = match slot {
            Slot::Pending | Slot::Waiting(_) => {
                wait(slot, cx, Slot::Waiting, wakers);
                return Poll::Pending;
            }
            Slot::Delivered { place, offset } => {
                let offset = offset.and_then(SlotOffset::get);
                Claimed::Delivered { place: *place, offset }
            }
            Slot::NotDelivered { place, proof } => {
                Claimed::NotDelivered { place: *place, proof: *proof }
            }
            Slot::Unrouted(unrouted) => {
                let (topic, proof) = &**unrouted;
                Claimed::Unrouted { topic: Arc::clone(topic), proof: *proof }
            }
            Slot::Unknown(untold) => {
                let claimed = Claimed::Unknown { place: untold.place, doubt: untold.doubt };
                *slot = match untold.resolution {
                    Some(how) => Slot::Resolved(Box::new(how)),
                    None => Slot::Unresolved,
                };
                return Poll::Ready(Some(claimed));
            }
            Slot::Free
            | Slot::Detached
            | Slot::Unresolved
            | Slot::Awaiting(_)
            | Slot::Resolved(_) => return Poll::Ready(None),
        };
        self.free(ticket);
        Poll::Ready(Some(claimed))
    }

    /// Asks for the resolution of an `Unknown` that was claimed, or waits for it.
    pub(crate) fn claim_resolution(
        &mut self,
        ticket: Ticket,
        cx: &Context<'_>,
        wakers: &mut Wakers,
    ) -> Poll<Resolved> {
        let Some((segment, at)) = self.find(ticket) else {
            return Poll::Ready(Resolved::DriverGone);
        };
        let slot = &mut segment.slots[at];
        let resolved = match slot {
            Slot::Unresolved | Slot::Awaiting(_) => {
                wait(slot, cx, Slot::Awaiting, wakers);
                return Poll::Pending;
            }
            Slot::Resolved(how) => **how,
            Slot::Free
            | Slot::Pending
            | Slot::Waiting(_)
            | Slot::Detached
            | Slot::Delivered { .. }
            | Slot::NotDelivered { .. }
            | Slot::Unrouted(_)
            | Slot::Unknown(_) => return Poll::Ready(Resolved::DriverGone),
        };
        self.free(ticket);
        Poll::Ready(resolved)
    }

    /// Nobody will ask for the verdict any more. Whether it has none yet.
    pub(crate) fn detach(&mut self, ticket: Ticket, wakers: &mut Wakers) -> bool {
        let Some((segment, at)) = self.find(ticket) else { return false };
        let slot = &mut segment.slots[at];
        match slot {
            Slot::Pending | Slot::Waiting(_) => {
                if let Slot::Waiting(waker) = core::mem::replace(slot, Slot::Detached) {
                    wakers.retire(Some(waker));
                }
                true
            }
            Slot::Delivered { .. }
            | Slot::NotDelivered { .. }
            | Slot::Unrouted(_)
            | Slot::Unknown(_) => {
                self.unclaimed += 1;
                self.free(ticket);
                false
            }
            Slot::Free
            | Slot::Detached
            | Slot::Unresolved
            | Slot::Awaiting(_)
            | Slot::Resolved(_) => false,
        }
    }

    /// Nobody will ask for the resolution any more.
    pub(crate) fn detach_resolution(&mut self, ticket: Ticket, wakers: &mut Wakers) {
        let Some((segment, at)) = self.find(ticket) else { return };
        let slot = &mut segment.slots[at];
        match slot {
            Slot::Awaiting(_) | Slot::Unresolved | Slot::Resolved(_) => {
                if let Slot::Awaiting(waker) = core::mem::replace(slot, Slot::Free) {
                    wakers.retire(Some(waker));
                }
                self.free(ticket);
            }
            Slot::Free
            | Slot::Pending
            | Slot::Waiting(_)
            | Slot::Detached
            | Slot::Delivered { .. }
            | Slot::NotDelivered { .. }
            | Slot::Unrouted(_)
            | Slot::Unknown(_) => {}
        }
    }

    /// The driver is gone: whatever the machine did not tell is unknown, and stays so.
    pub(crate) fn end_all(&mut self, wakers: &mut Wakers) {
        let begin = self.first * SEGMENT as u64;
        for ticket in (begin..self.next).map(Ticket) {
            let Some((segment, at)) = self.find(ticket) else { continue };
            match segment.slots[at] {
                Slot::Pending | Slot::Waiting(_) | Slot::Detached => {
                    let resolution = Some(Resolved::DriverGone);
                    let untold = Untold { place: PlaceId::NOWHERE, doubt: None, resolution };
                    self.tell_as(ticket, Slot::Unknown(Box::new(untold)), wakers);
                }
                Slot::Unknown(ref untold) if untold.resolution.is_none() => {
                    self.resolve(ticket, Resolved::DriverGone, wakers);
                }
                Slot::Unresolved | Slot::Awaiting(_) => {
                    self.resolve(ticket, Resolved::DriverGone, wakers);
                }
                Slot::Free
                | Slot::Delivered { .. }
                | Slot::NotDelivered { .. }
                | Slot::Unrouted(_)
                | Slot::Unknown(_)
                | Slot::Resolved(_) => {}
            }
        }
    }

    /// Verdicts that nobody heard.
    pub(crate) const fn unclaimed(&self) -> u64 {
        self.unclaimed
    }

    fn find(&mut self, ticket: Ticket) -> Option<(&mut Segment, usize)> {
        let index = (ticket.0 / SEGMENT as u64).checked_sub(self.first)?;
        let segment = self.segments.get_mut(usize::try_from(index).ok()?)?.as_mut()?;
        Some((segment, (ticket.0 % SEGMENT as u64) as usize))
    }

    fn free(&mut self, ticket: Ticket) {
        if let Some((segment, at)) = self.find(ticket) {
            segment.slots[at] = Slot::Free;
            segment.used -= 1;
            if segment.used == 0 {
                self.retire(ticket);
            }
        }
    }

    /// The last slot in use of a segment became free: so does the segment, once all its tickets were
    /// issued.
    fn retire(&mut self, ticket: Ticket) {
        let number = ticket.0 / SEGMENT as u64;
        let issued = self.next >= (number + 1) * SEGMENT as u64;
        let index = number.checked_sub(self.first).and_then(|index| usize::try_from(index).ok());
        let Some(index) = index.filter(|_| issued) else { return };
        let segment = self.segments.get_mut(index).and_then(Option::take);
        let room = self.spare.len() < SPARE;
        self.spare.extend(segment.filter(|_| room));
        while let Some(None) = self.segments.front() {
            self.segments.pop_front();
            self.first += 1;
        }
    }
}

/// Leaves the task's waker in the slot.
fn wait(slot: &mut Slot, cx: &Context<'_>, with: fn(Waker) -> Slot, wakers: &mut Wakers) {
    if let Slot::Waiting(known) | Slot::Awaiting(known) = slot
        && known.will_wake(cx.waker())
    {
        return;
    }
    if let Slot::Waiting(old) | Slot::Awaiting(old) =
        core::mem::replace(slot, with(cx.waker().clone()))
    {
        wakers.retire(Some(old));
    }
}

#[cfg(test)]
mod tests;
