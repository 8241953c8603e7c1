//! The machine of one partition: open batch, queue, span, identity, gate.
//!
//! `handle` takes facts and wishes, `poll` gives verdicts and questions, `offer` gives batches to
//! send. Only `poll` makes anything expire, and `offer` binds sequences as late as possible.

mod answer;
mod attempt;
mod batch;
mod contest;
mod digest;
mod epoch;
mod expiry;
mod gate;
mod given_up;
mod intake;
mod memory;
mod offer;
mod pass;
mod replaced;
mod schedule;
mod settle;
mod span;
#[cfg(test)]
mod tests;
mod vacate;
mod why;

pub use digest::{Digest, Names};

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::marker::PhantomData;

use crate::action::{Action, Misuse, Notice, Outcome, Settled, Told};
use crate::config::LaneConfig;
use crate::event::{Append, Event};
use crate::ids::{Identity, ProducerId, Sequence};
use crate::payload::Payload;
use crate::rules::{Honest, Rules, StopCause};
use crate::testing::Preset;
use crate::time::Instant;
use crate::verdict::NeverReason;

use attempt::Attempts;
use batch::Retry;
use gate::{Gate, Leader, Pass};
use given_up::GivenUp;
use intake::Intake;
use memory::Memory;
use span::Span;

/// The machine of one partition.
///
/// ```
/// use candor_core::testing::Counted;
/// use candor_core::*;
///
/// let now = Instant::from_millis(1_700_000_000_000);
/// let mut lane: Lane<Counted> = Lane::new(LaneConfig::default(), now);
/// let deadline = now + Span::from_secs(120);
/// let record = Append { ticket: Ticket(0), born: now, deadline, timestamp: now.as_millis(), record: 7 };
/// lane.handle(now, Event::Append(record))?;
/// assert_eq!(lane.poll(now), Some(Action::NeedIdentity));
/// lane.handle(now, Event::Identity(Identity::fresh(ProducerId::new(4000).unwrap())))?;
/// lane.handle(now, Event::Leader { route: Some(RouteId(1)), epoch: LeaderEpoch(0) })?;
/// lane.handle(now, Event::Flush)?;
/// let offer = lane.offer(now, RouteId(1), usize::MAX).unwrap();
/// assert_eq!(offer.first, Sequence::ZERO);
/// let answer = PartitionResponse::appended(100).into();
/// lane.handle(now, Event::Answered { attempt: offer.attempt, answer })?;
/// let Some(Action::Settled(settled)) = lane.poll(now) else { panic!() };
/// assert_eq!(settled.outcome, Outcome::Delivered { base: Offset::new(100) });
/// assert!(lane.is_idle());
/// # Ok::<(), Misuse>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane<P: Payload, R: Rules = Honest> {
    config: LaneConfig,
    now: Instant,
    life: Life,
    intake: Intake<P>,
    span: Span<P>,
    given_up: Vec<GivenUp>,
    attempts: Attempts,
    identity: Holding,
    /// V5: the first batch of an epoch waits as the one that ended the epoch before it.
    renewal: Retry,
    leader: Leader,
    gate: Gate,
    passes: u64,
    memory: Memory,
    /// K7: conflicts of identity since the last 0.
    conflicts: u32,
    /// S10: something was given up in doubt, and no newer epoch was acknowledged since.
    unfenced: bool,
    held: bool,
    /// No record is due before this.
    expiry: Instant,
    out: VecDeque<Action>,
    rules: PhantomData<R>,
}

/// Whether the lane goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Running,
    /// D5: everything is told by then.
    Closing {
        deadline: Instant,
    },
    Closed,
    /// L8: S13, K6 with `Stop`, or K7.
    Stopped {
        cause: StopCause,
        close: Option<Instant>,
    },
}

/// The identity of the lane (S9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holding {
    /// And the producer id held before.
    Nothing(Option<ProducerId>),
    Asked(Option<ProducerId>),
    Adopted(Adopted),
}

/// An identity in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Adopted {
    identity: Identity,
    /// S1: the sequence of the next batch to be offered for the first time.
    next: Sequence,
    /// Something was acknowledged under it.
    acknowledged: bool,
}

impl Adopted {
    fn new<R: Rules>(identity: Identity) -> Self {
        Self { identity, next: R::first_sequence(), acknowledged: false }
    }
}

/// What a lane holds, in bytes, for the one memory budget (rule L5).
///
/// ```
/// let usage = candor_core::Usage { waiting: 10, unsettled: 5, unknown: 2 };
/// assert_eq!(usage.total(), 15);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Records without a sequence.
    pub waiting: usize,
    /// Offered batches that are not settled.
    pub unsettled: usize,
    /// Of those, batches whose records were all told `Unknown`.
    pub unknown: usize,
}

impl Usage {
    /// Everything.
    pub fn total(self) -> usize {
        self.waiting + self.unsettled
    }

    fn add<P: Payload>(&mut self, batch: &batch::SequencedBatch<P>, reported: bool) {
        let bytes = crate::payload::Frozen::bytes(&batch.frozen);
        self.unsettled += bytes;
        if reported {
            self.unknown += bytes;
        }
    }
}

impl<P: Payload, R: Rules> Lane<P, R> {
    /// A lane without identity, leader and records.
    pub fn new(config: LaneConfig, now: Instant) -> Self {
        Self {
            config,
            now,
            life: Life::Running,
            intake: Intake::new(),
            span: Span::new(),
            given_up: Vec::new(),
            attempts: Attempts::default(),
            identity: Holding::Nothing(None),
            renewal: Retry::AT_ONCE,
            leader: Leader::NONE,
            gate: Gate::Closed(Pass::new(0)),
            passes: 0,
            memory: Memory::new(),
            conflicts: 0,
            unfenced: false,
            held: false,
            expiry: Instant::NEVER,
            out: VecDeque::new(),
            rules: PhantomData,
        }
    }

    /// A lane that starts in the middle of an epoch, for searches near 2^31 or the last epoch.
    pub fn preset(config: LaneConfig, now: Instant, preset: Preset) -> Self {
        let adopted = Adopted { identity: preset.identity, next: preset.next, acknowledged: true };
        Self {
            identity: Holding::Adopted(adopted),
            memory: Memory::preset(now, preset.last_acknowledged, now.as_millis()),
            ..Self::new(config, now)
        }
    }

    /// Takes a fact or a wish.
    ///
    /// # Errors
    ///
    /// [`Misuse`] if the embedder broke the contract; nothing changed then.
    pub fn handle(&mut self, now: Instant, event: Event<'_, P>) -> Result<(), Misuse> {
        let now = self.tick(now);
        match event {
            Event::Append(append) => return self.append(append),
            Event::Cancel(ticket) => self.cancel(ticket, now),
            Event::Revoke(ticket) => self.revoke(ticket, now),
            Event::Flush => self.intake.flush(),
            Event::Due => self.intake.linger_no_more(),
            Event::Close { deadline } => self.close(deadline),
            Event::Identity(identity) => self.adopt(identity)?,
            Event::Leader { route, epoch } => self.leader_changed(now, route, epoch),
            Event::LeaderConfirmed { epoch } => self.leader_confirmed(now, epoch),
            Event::TopicRecreated => self.topic_recreated(now),
            Event::Hold => self.held = true,
            Event::Release => self.held = false,
            Event::Answered { attempt, answer } => self.answered(now, attempt, answer)?,
            Event::Handed { attempt } => {
                if !self.attempts.handed(attempt) {
                    return Err(Misuse::UnknownAttempt(attempt));
                }
            }
            Event::Ended { attempt, handed } => self.ended(now, attempt, handed)?,
            Event::Shed => self.give_up_doubt(now, NeverReason::MemoryPressure),
            Event::Abandon => self.give_up_doubt(now, NeverReason::Abandoned),
        }
        self.conclude(now);
        Ok(())
    }

    /// The next verdict, notice or question; `None` if there is none now.
    pub fn poll(&mut self, now: Instant) -> Option<Action> {
        let now = self.tick(now);
        if self.out.is_empty() {
            self.expire(now);
            self.forget_unresendable(now);
            self.conclude(now);
            self.close_if_due(now);
        }
        self.out.pop_front()
    }

    /// Whether everything was told: no record without a verdict, no `Unknown` without resolution.
    pub fn is_idle(&self) -> bool {
        self.intake.is_empty()
            && self.span.unsettled().next().is_none()
            && self.span.vacated().is_none()
            && self.given_up.is_empty()
            && self.out.is_empty()
    }

    /// Whether the lane stopped; a notice said why. It goes on only where its topic is made anew after
    /// a contradiction (S13).
    pub fn is_stopped(&self) -> bool {
        matches!(self.life, Life::Stopped { .. })
    }

    /// Whether the lane stopped and a topic made anew would let it go on (S13, S18): worth asking for.
    pub fn awaits_new_topic(&self) -> bool {
        matches!(self.life, Life::Stopped { cause, .. } if R::recreation_lifts_stop(cause))
    }

    /// The identity in use, if one was adopted.
    pub fn identity(&self) -> Option<Identity> {
        match self.identity {
            Holding::Nothing(_) | Holding::Asked(_) => None,
            Holding::Adopted(adopted) => Some(adopted.identity),
        }
    }

    /// What the lane holds, in bytes.
    pub fn usage(&self) -> Usage {
        let mut usage = Usage { waiting: self.intake.bytes(), unsettled: 0, unknown: 0 };
        for (_, slot) in self.span.iter() {
            match slot {
                span::Slot::Unsettled(batch) => usage.add(batch, batch.all_told()),
                span::Slot::Replacement(replacement) => {
                    usage.add(&replacement.batch, self.is_reported(replacement));
                }
                span::Slot::Vacated { kept, .. } => {
                    usage.waiting += kept.iter().map(|batch| batch.records.bytes()).sum::<usize>();
                }
                span::Slot::Written { .. } | span::Slot::Overtaken => {}
            }
        }
        usage
    }

    /// Gives back the room that was kept for more records: it would not be used soon.
    pub fn shrink(&mut self) {
        self.intake.shrink();
        self.span.shrink();
        self.attempts.shrink();
        self.given_up.shrink_to_fit();
        self.out.shrink_to_fit();
    }

    /// D1: time going back is clamped.
    fn tick(&mut self, now: Instant) -> Instant {
        self.now = self.now.max(now);
        self.now
    }

    fn append(&mut self, append: Append<'_, P>) -> Result<(), Misuse> {
        match self.life {
            Life::Running => {}
            Life::Closing { .. } | Life::Closed => return Err(Misuse::Closed),
            Life::Stopped { .. } => return Err(Misuse::Stopped),
        }
        if self.intake.last_ticket.is_some_and(|last| append.ticket <= last) {
            return Err(Misuse::TicketOrder);
        }
        self.expiry = self.expiry.min(append.deadline);
        self.intake.append::<R>(&self.config, append);
        self.want_identity();
        Ok(())
    }

    fn close(&mut self, deadline: Instant) {
        match self.life {
            Life::Running => {
                self.intake.flush();
                self.life = Life::Closing { deadline };
            }
            Life::Closing { deadline: earlier } => {
                self.life = Life::Closing { deadline: earlier.min(deadline) };
            }
            Life::Stopped { cause, close } => {
                let earlier = close.map_or(deadline, |earlier| earlier.min(deadline));
                self.life = Life::Stopped { cause, close: Some(earlier) };
            }
            Life::Closed => {}
        }
    }

    fn adopt(&mut self, identity: Identity) -> Result<(), Misuse> {
        match self.identity {
            Holding::Asked(last) if last != Some(identity.id) => {
                self.identity = Holding::Adopted(Adopted::new::<R>(identity));
                Ok(())
            }
            Holding::Asked(_) | Holding::Nothing(_) | Holding::Adopted(_) => {
                Err(Misuse::UnexpectedIdentity)
            }
        }
    }

    /// Everything that follows from the state as it is.
    fn conclude(&mut self, now: Instant) {
        self.close_gate_when_forgotten(now);
        self.end_replacement();
        self.give_up_slots();
        self.finish_vacating(now);
        if self.span.unsettled().next().is_none() {
            self.begin_pass_anew();
        }
        if let Holding::Adopted(adopted) = self.identity {
            self.span.forget_contests(adopted.next);
        }
        self.finish_pass(now);
        self.leave_used_up_epoch();
        self.end_given_up();
        self.want_identity();
    }

    /// L6: an identity is asked for once, when a record needs it.
    fn want_identity(&mut self) {
        match self.identity {
            Holding::Nothing(last) if !self.intake.is_empty() => {
                self.identity = Holding::Asked(last);
                self.out.push_back(Action::NeedIdentity);
            }
            Holding::Nothing(_) | Holding::Asked(_) | Holding::Adopted(_) => {}
        }
    }

    /// What was learned before anybody was told `Unknown` is the verdict, and no resolution: the
    /// queue is looked through first. It is nearly always empty. The verdict takes its turn behind
    /// those that were given meanwhile (D6), and its places are those in the batch that was settled.
    fn tell(&mut self, mut records: Vec<Told>, outcome: Outcome) {
        match outcome {
            Outcome::Delivered { .. } | Outcome::NotDelivered(_) => {
                settle::take_back_unknown(&mut self.out, &mut records);
            }
            Outcome::Unknown(_) | Outcome::Never { .. } => {}
        }
        if !records.is_empty() {
            self.out.push_back(Action::Settled(Settled { records, outcome }));
        }
    }

    fn notice(&mut self, notice: Notice) {
        self.out.push_back(Action::Notice(notice));
    }
}
