//! Negative controls: producers that are wrong by construction, as real ones were. They send one
//! batch at a time, which makes them immune to most faults; what is left is the flaw.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

use candor_core::testing::{Counted, Preset};
use candor_core::verdict::{Doubt, Proof};
use candor_core::{
    Action, AttemptId, Deadline, Event, HandedOver, Identity, Instant, LaneConfig, Misuse, Names,
    Offer, Offset, Outcome, Payload, RouteId, Sequence, Settled, Ticket, Told, Wakeup,
};

use super::explore::{Report, explore};
use super::machine::Machine;
use super::scopes;

/// What is wrong with a control.
trait Flaw: Clone + Copy + Debug + Send + 'static {
    /// Sequences are given when a record is appended, so that one that expires leaves a gap (T48).
    const AT_APPEND: bool = false;
    /// A record that is given up hands its number on to the next one (T3, T41).
    const RENUMBERS: bool = false;
    /// One epoch for all partitions: trouble elsewhere renumbers what is in doubt here (T6).
    const SHARES_EPOCH: bool = false;
}

macro_rules! flaws {
    ($($(#[doc = $about:literal])+ $name:ident { $($constant:ident)? } in $scope:literal)*) => {
        $(
            $(#[doc = $about])+
            #[derive(Clone, Copy, Debug)]
            struct $name;

            impl Flaw for $name {
                $(const $constant: bool = true;)?
            }
        )*

        /// Every negative control; the first one has no flaw and must stay clean.
        pub const CONTROLS: &[Control] = &[
            $(Control {
                name: stringify!($name),
                about: concat!($($about),+),
                scope: $scope,
                hunt: hunt::<$name>,
            }),*
        ];
    };
}

/// A producer that is wrong by construction.
///
/// ```
/// use candor_sim::search::CONTROLS;
/// assert!(CONTROLS[0].hunt().counterexample.is_none());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Control {
    /// Its name.
    pub name: &'static str,
    /// What it does wrong.
    pub about: &'static str,
    /// The scope that finds it.
    pub scope: &'static str,
    hunt: fn(&str) -> Report,
}

impl Control {
    /// Searches for its flaw.
    pub fn hunt(&self) -> Report {
        (self.hunt)(self.scope)
    }
}

fn hunt<F: Flaw>(name: &str) -> Report {
    let scope = scopes::scope(name).unwrap_or(&super::Scope::BASE);
    explore::<Serial<F>>(scope, 1_000_000)
}

flaws! {
    /// One batch at a time, and nothing else is wrong.
    Sound {} in "neighbour"
    /// Sequences are given at append: a record that expires leaves a gap.
    SequenceAtAppend { AT_APPEND } in "neighbour"
    /// A record that is given up in doubt hands its number on within the epoch.
    RenumbersInEpoch { RENUMBERS } in "neighbour"
    /// One epoch for all partitions: trouble elsewhere renumbers what is in doubt here.
    OneEpochForAll { SHARES_EPOCH } in "neighbour"
}

/// One record on its way.
#[derive(Clone, Debug, Hash)]
struct Item {
    ticket: Ticket,
    deadline: Instant,
    timestamp: i64,
    record: u16,
    first: Option<Sequence>,
    offered: bool,
    told: bool,
}

/// A producer with one batch of one record in flight.
#[derive(Clone, Debug)]
struct Serial<F> {
    queue: VecDeque<Item>,
    identity: Option<Identity>,
    next: Sequence,
    route: Option<RouteId>,
    /// The attempt that is waited for; late answers of others are not looked at.
    open: Option<AttemptId>,
    attempts: u64,
    out: VecDeque<Action>,
    flaw: PhantomData<F>,
}

impl<F: Flaw> Serial<F> {
    fn take_sequence(&mut self) -> Sequence {
        let first = self.next;
        self.next = first.after(1);
        first
    }

    fn tell(&mut self, item: &Item, outcome: Outcome) {
        let records = vec![Told { ticket: item.ticket, index: 0, unknown: item.told }];
        self.out.push_back(Action::Settled(Settled { records, outcome }));
    }

    fn answered(&mut self, attempt: AttemptId, code: Option<i16>, base: i64) {
        if self.open != Some(attempt) {
            return;
        }
        self.open = None;
        if code == Some(0)
            && let Some(item) = self.queue.pop_front()
        {
            self.tell(&item, Outcome::Delivered { base: Offset::new(base) });
        }
    }

    fn expire(&mut self, now: Instant) {
        let due = |item: &Item| item.deadline <= now && !item.told;
        while let Some(at) = self.queue.iter().position(due) {
            if !self.queue[at].offered {
                if let Some(item) = self.queue.remove(at) {
                    self.tell(&item, Outcome::NotDelivered(Proof::NeverOffered));
                }
                continue;
            }
            let item = self.queue[at].clone();
            let facts = self.doubt(&item);
            self.tell(&item, Outcome::Unknown(facts));
            self.queue[at].told = true;
            if F::RENUMBERS && self.open.is_none() {
                // The number is handed on; what became of the record, nobody will know.
                let reason = candor_core::NeverReason::Abandoned;
                let told = Item { told: true, ..item };
                self.tell(&told, Outcome::Never { reason, facts });
                self.queue.remove(at);
                self.next = facts.first;
            }
        }
    }

    fn doubt(&self, item: &Item) -> Doubt {
        let nobody = candor_core::ProducerId::new(0).map(Identity::fresh);
        Doubt {
            identity: self.identity.or(nobody).unwrap_or_else(|| unreachable!("0 is an id")),
            first: item.first.unwrap_or(Sequence::ZERO),
            count: 1,
            index: 0,
            last_acknowledged: None,
        }
    }
}

impl<F: Flaw> Machine for Serial<F> {
    fn start(_: LaneConfig, _: Instant, _: Option<Preset>) -> Self {
        Self {
            queue: VecDeque::new(),
            identity: None,
            next: Sequence::ZERO,
            route: None,
            open: None,
            attempts: 0,
            out: VecDeque::from([Action::NeedIdentity]),
            flaw: PhantomData,
        }
    }

    fn handle(&mut self, _: Instant, event: Event<'_, Counted>) -> Result<(), Misuse> {
        match event {
            Event::Append(append) => {
                let first = F::AT_APPEND.then(|| self.take_sequence());
                self.queue.push_back(Item {
                    ticket: append.ticket,
                    deadline: append.deadline,
                    timestamp: append.timestamp,
                    record: append.record,
                    first,
                    offered: false,
                    told: false,
                });
            }
            Event::Identity(identity) => self.identity = Some(identity),
            Event::Leader { route, .. } => {
                self.route = route;
                self.open = None;
            }
            Event::Answered { attempt, answer } => {
                let base = match &answer {
                    candor_core::Answer::Response(response) => response.base_offset,
                    candor_core::Answer::Missing => -1,
                };
                self.answered(attempt, answer.code(), base);
            }
            Event::Ended { attempt, handed: HandedOver::Partly | HandedOver::PerhapsWhole } => {
                self.answered(attempt, None, -1);
            }
            Event::Cancel(_)
            | Event::Flush
            | Event::Due
            | Event::Close { .. }
            | Event::LeaderConfirmed { .. }
            | Event::TopicRecreated
            | Event::Hold
            | Event::Release
            | Event::Handed { .. }
            | Event::Revoke(_)
            | Event::Abandon
            | Event::Shed => {}
        }
        Ok(())
    }

    fn poll(&mut self, now: Instant) -> Option<Action> {
        if self.out.is_empty() {
            self.expire(now);
        }
        self.out.pop_front()
    }

    fn offer(&mut self, now: Instant, route: RouteId, _: usize) -> Option<Offer<Counted>> {
        if !self.offerable(now) {
            return None;
        }
        let identity = self.identity?;
        let unnumbered = self.queue.front()?.first.is_none();
        let number = unnumbered.then(|| self.take_sequence());
        let item = self.queue.front_mut()?;
        let first = *item.first.get_or_insert_with(|| number.unwrap_or(Sequence::ZERO));
        item.offered = true;
        let attempt = AttemptId(self.attempts);
        self.attempts += 1;
        self.open = Some(attempt);
        let mut batch = Counted::empty();
        batch.push(item.timestamp, item.record);
        let (replacement, earliest_deadline) = (false, None);
        Some(Offer { attempt, route, identity, first, batch, replacement, earliest_deadline })
    }

    fn offerable(&self, now: Instant) -> bool {
        let due = self.queue.iter().any(|item| item.deadline <= now && !item.told);
        let ready = self.out.is_empty() && self.open.is_none() && self.route.is_some();
        ready && !due && self.identity.is_some() && !self.queue.is_empty()
    }

    fn deadline(&self) -> Option<Deadline> {
        let untold = self.queue.iter().filter(|item| !item.told);
        let at = untold.map(|item| item.deadline).min()?;
        Some(Deadline { at, why: Wakeup::Verdict })
    }

    fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.out.is_empty()
    }

    fn is_stopped(&self) -> bool {
        false
    }

    fn neighbour_bumps(&mut self) {
        if !F::SHARES_EPOCH {
            return;
        }
        let epoch = self.identity.and_then(|identity| identity.epoch.next());
        if let (Some(identity), Some(epoch)) = (&mut self.identity, epoch) {
            identity.epoch = epoch;
            self.next = Sequence::ZERO;
            self.open = None;
            for item in &mut self.queue {
                item.first = None;
            }
        }
    }

    fn fingerprint(&self, _: Instant, names: Names<'_>, into: &mut impl Hasher) {
        self.queue.hash(into);
        let route = self.route.map(|route| (names.route)(route));
        (self.identity, self.next, route, self.open.is_some(), self.out.len()).hash(into);
    }
}
