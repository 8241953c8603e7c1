//! One lane, one partition, and everything between them.

mod brokers;
mod budget;
mod caller;
mod canon;
mod lane;
mod network;
mod steps;
mod translate;

use candor_core::{Instant, Pool, PoolIndex, RouteId};

use crate::broker::{NodeId, Partition, TimestampType};
use crate::judge::{Anomaly, Class, Observer, Said};

use super::explore::Contest;
use super::flight::{Content, Flight};
use super::machine::Machine;
use super::scope::{Limits, Plan, Scope};
use super::step::Step;

use budget::Budget;
pub(super) use budget::Budgets;

/// When searches start: any time long after the epoch.
pub(super) const START: Instant = Instant::from_millis(1_700_000_000_000);
const LEADER: NodeId = NodeId(1);
const FOLLOWER: NodeId = NodeId(2);
const FIRST_ID: i64 = 4_000;
/// More actions than any state of a lane can have to tell.
const MANY: usize = 200;

/// Whether a step could happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    Yes,
    /// It is not possible now; nothing changed.
    No,
}

/// What the lane was told of its leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct View {
    node: NodeId,
    epoch: i32,
    route: Option<RouteId>,
    /// It asked, and nobody answered yet.
    asked: bool,
}

#[derive(Clone, Debug)]
pub(super) struct World<M> {
    pub(super) now: Instant,
    pub(super) machine: M,
    partition: Partition<Content>,
    pub(super) flights: Vec<Flight>,
    view: View,
    /// Live connections to brokers 1 and 2.
    links: [Option<RouteId>; 2],
    routes: u64,
    pub(super) sent: usize,
    next_id: i64,
    /// The ids of the producer, and which of them the lane got last.
    pool: Pool,
    last_id: Option<PoolIndex>,
    pub(super) budget: Budget,
    cancelled: u32,
    /// Those of them that were revoked.
    revoked: u32,
    abandoned: bool,
    closed: bool,
    pub(super) refusing: bool,
    /// Committed records below this offset were shown to the judge.
    shown: i64,
    pub(super) watch: Observer,
    found: Vec<Anomaly>,
    /// Producers that the leader knew at last.
    known: Vec<i64>,
    limits: Limits,
    /// The identity of the newest flight, and how many there were.
    identity: Option<(i64, i16)>,
    identities: u8,
    /// An assumption was broken: what the log says no longer convicts the lane.
    excused: bool,
    /// A2 was broken; what the lane said of it (K6, S13) covers so many records.
    alarmed: Option<usize>,
    /// Nothing committed is lost here, and no memory without its log: a frame that was passed can
    /// be forgotten.
    remembers: bool,
    /// Nothing depends on what time it is, but on the time that is left.
    ageless: bool,
    /// How many records the scenario has.
    records: usize,
    /// States are compared as they are.
    plain: bool,
    /// The contest that the last step began, if it did.
    pub(super) contest: Option<Contest>,
    /// What happened, for people; only when a trace is replayed.
    pub(super) notes: Option<Vec<String>>,
}

impl<M: Machine> World<M> {
    pub(super) fn new(scope: &Scope) -> Self {
        let nodes: &[NodeId] = if scope.replicas > 1 { &[LEADER, FOLLOWER] } else { &[LEADER] };
        let mut partition = Partition::new(scope.profile, nodes);
        let config = partition.config_mut();
        if let Some(expires) = scope.expires_ms {
            config.producer_expiration_ms = expires;
        }
        config.compacted = scope.records.iter().any(|plan| plan.bad);
        if scope.log_append_time {
            config.timestamp_type = TimestampType::LogAppendTime;
        }
        let preset =
            scope.preset.and_then(|(epoch, next)| translate::preset(&mut partition, epoch, next));
        let shown = partition.end_offset(LEADER).unwrap_or_default();
        let mut world = Self {
            now: START,
            machine: M::start(translate::lane_config(scope), START, preset),
            partition,
            flights: Vec::new(),
            view: View { node: LEADER, epoch: 0, route: None, asked: false },
            links: [None; 2],
            routes: 0,
            sent: 0,
            next_id: FIRST_ID,
            pool: Pool::default(),
            last_id: None,
            budget: Budget::of(scope),
            ageless: scope.is_ageless(),
            records: scope.records.len(),
            plain: scope.plain,
            cancelled: 0,
            revoked: 0,
            abandoned: false,
            contest: None,
            closed: false,
            refusing: false,
            shown,
            watch: Observer::new(translate::settings(scope)),
            found: Vec::new(),
            known: Vec::new(),
            limits: scope.limits,
            identity: None,
            identities: 0,
            excused: false,
            alarmed: None,
            remembers: !scope.kinds.iter().any(|kind| kind.breaks_assumptions()),
            notes: None,
        };
        if scope.log_append_time {
            // The lane learns of it with its first 0, and may be careful until then.
            world.watch.disturbed();
        }
        if preset.is_some() {
            world.add_id();
            world.last_id = world.pool.next(None).map(|(index, _)| index);
        }
        for _ in 0..scope.at_once.min(scope.records.len()) {
            world.append(scope);
        }
        world.follow();
        world.turn();
        world
    }

    pub(super) fn note(&mut self, note: impl FnOnce() -> String) {
        if let Some(notes) = &mut self.notes {
            notes.push(note());
        }
    }

    /// Takes a step, lets the lane say all it has to say, and asks the judge.
    pub(super) fn take(&mut self, scope: &Scope, step: Step) -> Result<Taken, Anomaly> {
        let taken = self.step(scope, step);
        if taken == Taken::Yes {
            self.hasten(scope);
            self.settle_down();
        }
        self.verdict().map(|()| taken)
    }

    /// What follows from a step at once.
    fn settle_down(&mut self) {
        self.bury();
        self.wake_waiting();
        if !self.plain {
            self.bury_passed();
        }
        self.show_log();
        self.turn();
    }

    /// What the judge found that nothing excuses.
    fn verdict(&mut self) -> Result<(), Anomaly> {
        if self.excused {
            self.found.retain(|anomaly| !is_excused(anomaly.class));
        }
        self.found.first().map_or(Ok(()), |anomaly| Err(*anomaly))
    }

    fn step(&mut self, scope: &Scope, step: Step) -> Taken {
        match step {
            Step::Append => self.append(scope),
            Step::Offer => self.offer(scope),
            Step::Deliver(flight) => self.deliver(scope, flight, None),
            Step::Say(flight, say) => self.paid(|it| it.deliver(scope, flight, Some(say))),
            Step::Answer(flight) => self.answer(flight),
            Step::Replicate => self.replicate(),
            Step::Learn => self.learn(),
            Step::Follow => self.follow(),
            Step::Tick => self.tick(scope),
            Step::Fault(fault, node) => self.paid(|it| it.fault(scope, fault, NodeId(node))),
            Step::Restart { node, clean } => self.restart(NodeId(node), clean),
            Step::Expire => self.expire(scope),
            Step::Cancel(record) => self.cancel(record),
            Step::Revoke(record) => self.revoke(record),
            Step::Abandon => self.abandon(),
            Step::Close => self.close(scope),
        }
    }

    /// From now on nothing goes wrong any more: brokers learn who leads, and catch up.
    pub(super) fn calm_down(&mut self) -> Result<(), Anomaly> {
        self.budget = Budget::default();
        self.learn();
        self.replicate();
        self.settle_down();
        self.verdict()
    }

    /// Takes over what all partitions of a producer share: its ids, and what may still go wrong.
    pub(super) fn share(&mut self, scope: &Scope, other: &Self) -> Result<(), Anomaly> {
        self.pool = other.pool.clone();
        self.next_id = other.next_id;
        if self.budget != other.budget {
            self.budget = other.budget;
            self.hasten(scope);
            self.settle_down();
        }
        self.verdict()
    }

    /// Whether this flight is on the connection that the lane uses.
    pub(super) fn is_current(&self, index: u8) -> bool {
        let flight = self.flights.get(usize::from(index));
        flight.is_some_and(|flight| Some(flight.route) == self.view.route)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    pub(super) fn elapsed_ms(&self) -> u64 {
        self.now.since(START).as_millis()
    }

    /// A2 was broken: what was acknowledged is gone. That is no lie of the lane's, but it has to say
    /// so once it hears of its partition again (K6, S13).
    fn lost_in_silence(&self) -> Option<Anomaly> {
        let silent = self.alarmed.filter(|_| !self.machine.is_stopped())?;
        let gone = |record: &u64| self.watch.is_delivered(*record) && !self.watch.in_log(*record);
        let lost = (silent as u64..self.sent as u64).find(gone)?;
        Some(Anomaly::new(Class::Unheeded).record(lost))
    }

    /// How the scenario's records ended, in a few letters each.
    pub(super) fn end(&self) -> String {
        let letter = |said| match said {
            Some(Said::Delivered(_)) => "D",
            Some(Said::NotDelivered) => "N",
            Some(Said::Unknown) => "U",
            None => "",
        };
        let word = |record| {
            let verdict = self.watch.verdict(record);
            let resolution = match self.watch.resolution(record) {
                Some(Said::Unknown) => "-",
                said => letter(said),
            };
            let stands = if self.watch.in_log(record) { "*" } else { "" };
            format!("{}{resolution}{stands}", letter(verdict))
        };
        let sent = self.sent.min(self.records) as u64;
        (0..sent).map(word).collect::<Vec<_>>().join(" ")
    }

    /// Everything is told by now.
    pub(super) fn last_judgement(&mut self, scope: &Scope) -> Result<(), Anomaly> {
        let found = self.watch.close(true);
        self.found.extend(found);
        self.found.extend(self.lost_in_silence());
        if !self.limits.losses && !self.closed {
            for (record, plan) in (0..).zip(scope.records).take(self.sent) {
                let spared = plan.bad || plan.due_ms < Plan::LONG.due_ms;
                let cancelled = self.cancelled & 1 << record != 0;
                let delivered = matches!(self.watch.verdict(record), Some(Said::Delivered(_)));
                // C5: what is revoked is known to be written, or known not to be.
                let revoked = self.revoked & 1 << record != 0;
                let undecided = self.watch.resolution(record) == Some(Said::Unknown);
                if !spared && !cancelled && !delivered || revoked && undecided {
                    self.found.push(Anomaly::new(Class::Hasty).record(record));
                }
            }
        }
        self.verdict()
    }
}

/// What a broken assumption explains.
fn is_excused(class: Class) -> bool {
    matches!(
        class,
        Class::Lost
            | Class::Duplicate
            | Class::Ghost
            | Class::Reorder
            | Class::WrongOffset
            | Class::OutOfTurn
            | Class::LateBadNews
            | Class::SilentGap
    )
}
