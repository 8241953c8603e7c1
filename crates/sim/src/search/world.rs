//! One lane, one partition, and everything between them.

use std::fmt::Display;
use std::hash::Hash;

use candor_core::testing::Preset;
use candor_core::{
    Action, Answer as CoreAnswer, Append, BeyondMemory, Event, HandedOver, Identity, Instant,
    LaneConfig, LeaderEpoch, Notice, Offset, PartitionResponse, ProducerEpoch, ProducerId,
    Resolution, RouteId, Sequence, Settled, Span, Ticket, Verdict, Wakeup,
};

use crate::broker::{
    ACKS_ALL, Answer, Batch, Call, Deposed, NodeId, Outcome, Partition, Progress, Scripted, Stop,
    TimestampType, code,
};
use crate::judge::{Anomaly, Class, LogIs, Noticed, Observer, Reply, Said, Settings};

use super::fingerprint::{Fingerprint, Mixer};
use super::flight::{Content, Flight, Stage, records};
use super::machine::Machine;
use super::scope::{Fault, Limits, Plan, Say, Scope, Ticks};
use super::step::Step;

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

/// What may still go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Budget {
    faults: u8,
    restarts: u8,
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
    budget: Budget,
    cancelled: u32,
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
        let preset = scope.preset.and_then(|(epoch, next)| preset(&mut partition, epoch, next));
        let shown = partition.end_offset(LEADER).unwrap_or_default();
        let mut world = Self {
            now: START,
            machine: M::start(lane_config(scope), START, preset),
            partition,
            flights: Vec::new(),
            view: View { node: LEADER, epoch: 0, route: None, asked: false },
            links: [None; 2],
            routes: 0,
            sent: 0,
            next_id: FIRST_ID,
            budget: Budget { faults: scope.faults, restarts: scope.restarts },
            cancelled: 0,
            closed: false,
            refusing: false,
            shown,
            watch: Observer::new(settings(scope)),
            found: Vec::new(),
            known: Vec::new(),
            limits: scope.limits,
            identity: None,
            identities: 0,
            excused: false,
            notes: None,
        };
        if scope.log_append_time {
            // The lane learns of it with its first 0, and may be careful until then.
            world.watch.disturbed();
        }
        if preset.is_some() {
            world.next_id += 1;
        }
        for _ in 0..scope.at_once.min(scope.records.len()) {
            world.append(scope);
        }
        world.follow();
        world.turn();
        world
    }

    /// The canonical state.
    pub(super) fn fingerprint(&self) -> Fingerprint {
        self.fingerprint_in(false, false)
    }

    /// The same. `calm`: without what only says what may still go wrong; in which part of a quiet
    /// phase.
    pub(super) fn fingerprint_in(&self, calm: bool, part: bool) -> Fingerprint {
        let mut mixer = Mixer::new();
        (calm, part).hash(&mut mixer);
        self.machine.fingerprint(self.now, &mut mixer);
        self.partition.hash(&mut mixer);
        self.flights.hash(&mut mixer);
        (self.now, self.view, self.links, self.sent, self.closed).hash(&mut mixer);
        (self.refusing, self.shown, self.excused).hash(&mut mixer);
        if self.limits.epochs < u8::MAX {
            (self.identity, self.identities).hash(&mut mixer);
        }
        if !calm {
            (self.budget, self.cancelled).hash(&mut mixer);
        }
        self.watch.fingerprint(self.now.as_micros(), &mut mixer);
        mixer.fingerprint()
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
            self.bury();
            self.wake_waiting();
            self.show_log();
            self.turn();
        }
        self.verdict().map(|()| taken)
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
            Step::Tick => self.tick(),
            Step::Fault(fault, node) => self.paid(|it| it.fault(scope, fault, NodeId(node))),
            Step::Restart { node, clean } => self.restart(NodeId(node), clean),
            Step::Expire => self.expire(scope),
            Step::Cancel(record) => self.cancel(record),
            Step::Close => self.close(scope),
        }
    }

    // ---- The caller ----------------------------------------------------------------------------

    pub(super) fn append(&mut self, scope: &Scope) -> Taken {
        match scope.records.get(self.sent) {
            Some(plan) if !self.closed => {
                self.send(*plan);
                Taken::Yes
            }
            Some(_) | None => Taken::No,
        }
    }

    /// Sends a record outside of the scenario.
    pub(super) fn send_now(&mut self, plan: Plan) -> Result<(), Anomaly> {
        self.send(plan);
        self.turn();
        self.verdict()
    }

    fn send(&mut self, plan: Plan) {
        let record = self.sent as u64;
        let deadline = START + Span::from_millis(plan.due_ms);
        let deadline = deadline.max(self.now + Span::from_millis(1));
        self.sent += 1;
        let append = Append {
            ticket: Ticket(record),
            born: self.now,
            deadline,
            timestamp: START.as_millis() - plan.stamped_ago_ms,
            record: record as u16,
        };
        self.watch.intended(record, deadline.as_micros());
        let stopped = self.machine.is_stopped();
        match self.machine.handle(self.now, Event::Append(append)) {
            Ok(()) => {
                let found = self.watch.accepted(record);
                self.found.extend(found);
            }
            Err(_) if stopped => {
                let found = self.watch.refused(record);
                self.found.extend(found);
            }
            Err(misuse) => self.convict_misuse(&misuse),
        }
    }

    fn cancel(&mut self, record: u64) -> Taken {
        let bit = 1 << record;
        if record >= self.sent as u64 || self.cancelled & bit != 0 || self.closed {
            return Taken::No;
        }
        self.cancelled |= bit;
        self.watch.cancelled(self.now.as_micros(), record);
        self.tell(Event::Cancel(Ticket(record)));
        Taken::Yes
    }

    fn close(&mut self, scope: &Scope) -> Taken {
        let Some(left) = scope.closes.filter(|_| !self.closed) else { return Taken::No };
        self.closed = true;
        let deadline = self.now + Span::from_millis(left);
        self.watch.closing(deadline.as_micros());
        self.tell(Event::Close { deadline });
        Taken::Yes
    }

    fn tick(&mut self) -> Taken {
        match self.machine.deadline() {
            Some(deadline) if deadline.at > self.now => {
                self.now = deadline.at;
                self.note(|| format!("    it is {:?}", deadline.why));
                Taken::Yes
            }
            Some(_) | None => Taken::No,
        }
    }

    fn may_tick(&self, ticks: Ticks) -> bool {
        let Some(deadline) = self.machine.deadline() else { return false };
        match ticks {
            Ticks::Never => false,
            Ticks::Wakeups => matches!(deadline.why, Wakeup::Linger | Wakeup::Backoff),
            Ticks::Always => true,
        }
    }

    // ---- The lane ------------------------------------------------------------------------------

    fn tell(&mut self, event: Event<'_, candor_core::testing::Counted>) {
        if let Err(misuse) = self.machine.handle(self.now, event) {
            self.convict_misuse(&misuse);
        }
    }

    fn convict_misuse(&mut self, misuse: &dyn Display) {
        self.note(|| format!("    the lane refuses: {misuse}"));
        self.convict(Class::Contract);
    }

    fn convict(&mut self, class: Class) {
        self.found.push(Anomaly::new(class));
    }

    fn offer(&mut self, scope: &Scope) -> Taken {
        let Some(route) = self.view.route else { return Taken::No };
        let Some(offer) = self.machine.offer(self.now, route, usize::MAX) else {
            return Taken::No;
        };
        if offer.route != route {
            self.convict(Class::Contract);
        }
        let flight = Flight::new(&offer, self.view.node, scope.records);
        self.note(|| format!("    offers {flight}"));
        let attempt = flight.as_attempt(self.view.epoch);
        let found = self.watch.offered(self.now.as_micros(), &attempt);
        self.found.extend(found);
        self.count_identity((flight.batch.pid, flight.batch.epoch));
        self.flights.push(flight);
        Taken::Yes
    }

    fn count_identity(&mut self, identity: (i64, i16)) {
        if self.identity != Some(identity) {
            self.identity = Some(identity);
            self.identities = self.identities.saturating_add(1);
        }
        if self.identities > self.limits.epochs {
            self.convict(Class::Wasteful);
        }
    }

    /// The lane says all that it has to say. D1, D6: until it did, it offers nothing.
    fn turn(&mut self) {
        let would_offer = self.view.route.is_some() && self.machine.offerable(self.now);
        for _ in 0..MANY {
            match self.machine.poll(self.now) {
                Some(Action::Settled(settled)) => {
                    if would_offer {
                        self.note(|| "    it would offer before it says what is due".to_owned());
                        self.convict(Class::Contract);
                    }
                    self.settled(&settled);
                }
                Some(action) => self.act(action),
                None => return self.after_turn(),
            }
        }
        self.convict(Class::Busy);
    }

    fn after_turn(&mut self) {
        let now = self.now.as_micros();
        let late = self.watch.polled(now);
        self.found.extend(late);
        if self.machine.deadline().is_some_and(|deadline| deadline.at <= self.now) {
            self.note(|| "    the lane wants to be polled although it was".to_owned());
            self.convict(Class::Busy);
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Settled(settled) => self.settled(&settled),
            Action::NeedIdentity => {
                let id = ProducerId::new(self.next_id);
                self.next_id += 1;
                if let Some(id) = id {
                    self.tell(Event::Identity(Identity::fresh(id)));
                }
            }
            Action::NeedLeader => self.view.asked = true,
            Action::Notice(notice) => {
                self.note(|| format!("    notice: {notice}"));
                let needless = match notice {
                    Notice::DataLoss { .. } => !self.limits.alarms,
                    Notice::Unfenced => !self.limits.unfenced,
                    Notice::StateLost
                    | Notice::IdentityConflict
                    | Notice::Fence { .. }
                    | Notice::Contradiction { .. }
                    | Notice::Stopped => false,
                };
                if needless {
                    self.convict(Class::FalseAlarm);
                }
                self.watch.noticed(noticed(notice));
            }
        }
    }

    fn settled(&mut self, settled: &Settled) {
        let now = self.now.as_micros();
        for (ticket, verdict) in settled.verdicts() {
            self.note(|| format!("    verdict on record {ticket}: {verdict:?}"));
            let found = self.watch.told(now, ticket.0, verdict_said(verdict));
            self.found.extend(found);
        }
        for (ticket, resolution) in settled.resolutions() {
            self.note(|| format!("    resolution of record {ticket}: {resolution:?}"));
            let found = self.watch.resolved(now, ticket.0, resolution_said(resolution));
            self.found.extend(found);
        }
    }

    // ---- The network ---------------------------------------------------------------------------

    /// A frame arrives. A connection's requests are judged one at a time.
    fn deliver(&mut self, scope: &Scope, index: u8, say: Option<Say>) -> Taken {
        let index = usize::from(index);
        let Some(flight) = self.flights.get(index) else { return Taken::No };
        let behind = |other: &Flight| {
            other.route == flight.route && !matches!(other.stage, Stage::Answered(_))
        };
        if flight.stage != Stage::Sent || self.flights[..index].iter().any(behind) {
            return Taken::No;
        }
        if flight.stale {
            self.flights[index].stage = Stage::Answered(Answer::error(code::UNKNOWN_TOPIC_ID));
            return Taken::Yes;
        }
        let (node, batch) = (flight.node, flight.batch.clone());
        match say {
            None => {}
            Some(Say::Before(code)) => self.partition.script(Scripted::Before(code)),
            Some(Say::After(code)) => {
                self.partition.script(Scripted::After { code, show_offset: true });
            }
            Some(Say::AfterBlind(code)) => {
                self.partition.script(Scripted::After { code, show_offset: false });
            }
        }
        let below = scope.says_46 && self.is_below(node, &batch);
        let call = Call { node, now: self.now.as_millis(), acks: ACKS_ALL, version: 12 };
        let stage = match self.partition.produce(call, &batch) {
            Outcome::Answer(answer) if below && answer.code == 45 => {
                Stage::Answered(Answer { code: 46, ..answer })
            }
            Outcome::Answer(answer) => Stage::Answered(answer),
            Outcome::Wait(wait) => Stage::Waiting(wait),
        };
        self.note(|| format!("    the broker: {stage:?}"));
        self.flights[index].stage = stage;
        if scope.eager {
            self.partition.settle(self.now.as_millis());
        }
        Taken::Yes
    }

    /// Whether the batch's sequence lies below what the broker expects of its epoch.
    fn is_below(&self, node: NodeId, batch: &Batch<Content>) -> bool {
        self.partition.known(node, batch.pid).is_some_and(|known| {
            let ahead = known.newest().last().wrapping_sub(batch.last()) & i32::MAX;
            known.epoch() == batch.epoch && ahead < i32::MAX / 2
        })
    }

    fn answer(&mut self, index: u8) -> Taken {
        let index = usize::from(index);
        let Some(flight) = self.flights.get(index) else { return Taken::No };
        let first = !self.flights[..index].iter().any(|other| other.route == flight.route);
        let Stage::Answered(answer) = &flight.stage else { return Taken::No };
        if !flight.alive || !first {
            return Taken::No;
        }
        let (attempt, answer) = (flight.attempt, answer.clone());
        self.flights.remove(index);
        self.note(|| format!("    code {} at {}", answer.code, answer.base_offset));
        let reply = Reply {
            code: answer.code,
            base_offset: answer.base_offset,
            log_start: answer.log_start_offset,
        };
        self.watch.answered(self.now.as_micros(), attempt.0, Some(reply));
        self.tell(Event::Answered { attempt, answer: core_answer(answer) });
        Taken::Yes
    }

    fn may_follow(&self) -> bool {
        let now = self.partition.leader().map(|node| (node, self.partition.leader_epoch()));
        let news = now != Some((self.view.node, self.view.epoch)) || self.view.route.is_none();
        now.is_some() && (news || self.view.asked)
    }

    /// The lane hears where the leader is, or that it is where it was.
    pub(super) fn follow(&mut self) -> Taken {
        let Some(node) = self.partition.leader() else { return Taken::No };
        let epoch = self.partition.leader_epoch();
        let same = self.view.node == node && self.view.epoch == epoch;
        if same && self.view.route.is_some() {
            if !self.view.asked {
                return Taken::No;
            }
            self.view.asked = false;
            self.note(|| format!("    confirmed: broker {} at leader epoch {epoch}", node.0));
            self.tell(Event::LeaderConfirmed { epoch: LeaderEpoch(epoch) });
            return Taken::Yes;
        }
        let route = self.link(node);
        self.view = View { node, epoch, route: Some(route), asked: false };
        self.note(|| format!("    broker {} at leader epoch {epoch}, {route:?}", node.0));
        self.watch.routed(Some(route.0), epoch);
        self.tell(Event::Leader { route: Some(route), epoch: LeaderEpoch(epoch) });
        Taken::Yes
    }

    fn link(&mut self, node: NodeId) -> RouteId {
        let link = &mut self.links[usize::from(node.0 - 1)];
        *link.get_or_insert_with(|| {
            self.routes += 1;
            RouteId(self.routes)
        })
    }

    /// A connection is over: the lane hears of each attempt on it, and that it has no route.
    fn lose(&mut self, node: NodeId, how: Fault) -> Taken {
        let Some(route) = self.links[usize::from(node.0 - 1)].take() else { return Taken::No };
        let mut kept = Vec::new();
        for mut flight in std::mem::take(&mut self.flights) {
            if flight.route != route || !flight.alive {
                kept.push(flight);
                continue;
            }
            let arrived = flight.stage != Stage::Sent;
            let partly = how == Fault::LoseCut && !arrived;
            let handed = if partly { HandedOver::Partly } else { HandedOver::PerhapsWhole };
            self.watch.ended(flight.attempt.0, partly);
            self.tell(Event::Ended { attempt: flight.attempt, handed });
            flight.alive = false;
            let lives_on = match flight.stage {
                Stage::Sent => how == Fault::LoseWhole,
                Stage::Waiting(_) => true,
                Stage::Answered(_) => false,
            };
            if lives_on {
                kept.push(flight);
            }
        }
        self.flights = kept;
        if self.view.route == Some(route) {
            self.view.route = None;
            self.watch.routed(None, self.view.epoch);
            self.tell(Event::Leader { route: None, epoch: LeaderEpoch(self.view.epoch) });
        }
        Taken::Yes
    }

    // ---- The brokers ---------------------------------------------------------------------------

    fn replicate(&mut self) -> Taken {
        if self.is_replicated() {
            return Taken::No;
        }
        self.partition.settle(self.now.as_millis());
        Taken::Yes
    }

    fn learn(&mut self) -> Taken {
        let astray: Vec<NodeId> = self.astray().collect();
        if astray.is_empty() {
            return Taken::No;
        }
        for node in astray {
            // It is up and holds a replica, or it would not believe to lead.
            let _ = self.partition.learn(node);
        }
        Taken::Yes
    }

    /// Brokers that believe to lead and do not.
    fn astray(&self) -> impl Iterator<Item = NodeId> + '_ {
        let leader = self.partition.leader();
        let lost =
            move |node: &NodeId| Some(*node) != leader && self.partition.believes_to_lead(*node);
        self.partition.nodes().filter(lost)
    }

    /// Whether a fetch would change nothing.
    fn is_replicated(&self) -> bool {
        let Some(leader) = self.partition.leader() else { return true };
        let partition = &self.partition;
        let end = partition.end_offset(leader);
        partition.nodes().all(|node| {
            partition.isr().contains(node)
                && partition.high_watermark(node) == end
                && partition.start_offset(node) == partition.start_offset(leader)
                && partition.entries(node) == partition.entries(leader)
        })
    }

    /// A fault that is paid for if it happens.
    fn paid(&mut self, fault: impl FnOnce(&mut Self) -> Taken) -> Taken {
        if self.budget.faults == 0 {
            return Taken::No;
        }
        let taken = fault(self);
        if taken == Taken::Yes {
            self.budget.faults -= 1;
        }
        taken
    }

    fn fault(&mut self, scope: &Scope, fault: Fault, node: NodeId) -> Taken {
        match fault {
            Fault::LoseWhole | Fault::LoseCut | Fault::LoseGone => self.lose(node, fault),
            Fault::Elect => self.elect(Deposed::Informed),
            Fault::Depose => self.elect(Deposed::Unaware),
            Fault::Reign => match self.partition.leader() {
                Some(leader) if self.partition.elect(leader, Deposed::Informed).is_ok() => {
                    Taken::Yes
                }
                Some(_) | None => Taken::No,
            },
            Fault::Timeout => self.time_out(),
            Fault::Purge => self.purge(),
            Fault::Recreate => self.recreate(scope),
            Fault::Shrink => {
                let config = self.partition.config_mut();
                let before = std::mem::replace(&mut config.max_message_bytes, 1);
                if before == 1 { Taken::No } else { Taken::Yes }
            }
            Fault::Refuse => self.refuse(Some(scope.refusal)),
            Fault::Lift => self.refuse(None),
            Fault::Neighbour => {
                self.machine.neighbour_bumps();
                Taken::Yes
            }
            Fault::Shed => {
                self.watch.disturbed();
                self.tell(Event::Shed);
                Taken::Yes
            }
            Fault::Forget => self.forget(),
            Fault::Lag => match self.partition.leave_isr(self.other()) {
                Ok(()) => Taken::Yes,
                Err(_) => Taken::No,
            },
            Fault::Unclean => self.elect_unclean(),
        }
    }

    pub(super) fn refuse(&mut self, code: Option<i16>) -> Taken {
        if self.refusing == code.is_some() {
            return Taken::No;
        }
        self.refusing = code.is_some();
        self.partition.refuse_with(code);
        Taken::Yes
    }

    /// The broker that does not lead.
    fn other(&self) -> NodeId {
        if self.partition.leader() == Some(LEADER) { FOLLOWER } else { LEADER }
    }

    fn elect(&mut self, old: Deposed) -> Taken {
        match self.partition.elect(self.other(), old) {
            Ok(()) => Taken::Yes,
            Err(_) => Taken::No,
        }
    }

    fn elect_unclean(&mut self) -> Taken {
        let other = self.other();
        if self.partition.isr().contains(other) {
            return Taken::No;
        }
        if self.partition.elect_unclean(other, Deposed::Informed).is_err() {
            return Taken::No;
        }
        self.excused = true;
        let end = self.partition.end_offset(other).unwrap_or_default();
        self.shown = self.shown.min(end);
        self.watch.truncated(end);
        Taken::Yes
    }

    fn forget(&mut self) -> Taken {
        let Some(leader) = self.partition.leader() else { return Taken::No };
        let ids: Vec<i64> = self.partition.producers(leader).map(|known| known.pid()).collect();
        if ids.is_empty() {
            return Taken::No;
        }
        for node in self.partition.nodes().collect::<Vec<_>>() {
            ids.iter().for_each(|id| self.partition.forget(node, *id));
        }
        self.excused = true;
        self.known.clear();
        Taken::Yes
    }

    /// The oldest request that waits for replication gets 7.
    fn time_out(&mut self) -> Taken {
        for flight in &mut self.flights {
            if let Stage::Waiting(wait) = &flight.stage {
                flight.stage = Stage::Answered(wait.timed_out());
                return Taken::Yes;
            }
        }
        Taken::No
    }

    /// Deletes what the caller knows to be delivered (A3 allows no more).
    fn purge(&mut self) -> Taken {
        let start = self.leader_start();
        let kept = self.partition.committed().find(|record| {
            let number = records(record.entry.content).nth(record.index as usize).unwrap_or(0);
            let told = number.checked_sub(1).and_then(|number| self.watch.verdict(number));
            number != 0 && !matches!(told, Some(Said::Delivered(_)))
        });
        let upto = kept.map_or(self.shown, |record| record.offset).min(self.shown);
        if upto <= start || self.partition.delete_records(upto).is_err() {
            return Taken::No;
        }
        self.partition.settle(self.now.as_millis());
        for node in [LEADER, FOLLOWER] {
            self.partition.checkpoint(node);
        }
        Taken::Yes
    }

    fn leader_start(&self) -> i64 {
        let leader = self.partition.leader();
        leader.and_then(|leader| self.partition.start_offset(leader)).unwrap_or_default()
    }

    fn recreate(&mut self, scope: &Scope) -> Taken {
        let nodes: Vec<NodeId> = self.partition.nodes().collect();
        let config = *self.partition.config();
        self.partition = Partition::new(scope.profile, &nodes);
        *self.partition.config_mut() = config;
        self.shown = 0;
        for flight in &mut self.flights {
            flight.stale = true;
            if let Stage::Waiting(wait) = &flight.stage {
                flight.stage = Stage::Answered(wait.vanished());
            }
        }
        self.watch.disturbed();
        self.tell(Event::TopicRecreated);
        Taken::Yes
    }

    fn restart(&mut self, node: NodeId, clean: bool) -> Taken {
        if self.budget.restarts == 0 || !self.partition.nodes().any(|held| held == node) {
            return Taken::No;
        }
        self.budget.restarts -= 1;
        let how = if clean { Stop::Clean } else { Stop::Crash };
        let led = self.partition.leader() == Some(node);
        self.lose(node, Fault::LoseWhole);
        self.partition.stop(node, how);
        if led {
            let other = if node == LEADER { FOLLOWER } else { LEADER };
            // Refused if the other one is not in sync: then the leader comes back as such.
            let _ = self.partition.elect(other, Deposed::Informed);
        }
        self.partition.start(node, self.now.as_millis());
        Taken::Yes
    }

    fn expire(&mut self, scope: &Scope) -> Taken {
        let late = |flight: &Flight| flight.alive && flight.stage == Stage::Sent;
        if scope.expires_ms.is_none() || self.flights.iter().any(late) {
            // A frame that outlives the broker's memory is beyond anybody's promise (A3, A5).
            return Taken::No;
        }
        self.partition.expire(self.now.as_millis());
        Taken::Yes
    }

    /// Frames of dead connections that nobody can protect from: the leader forgot their producer, so
    /// that it would take them again (A3; the published limit).
    fn bury(&mut self) {
        let Some(leader) = self.partition.leader() else { return };
        let known: Vec<i64> = self.partition.producers(leader).map(|known| known.pid()).collect();
        let knew = std::mem::replace(&mut self.known, known);
        let forgotten = |id: &i64| knew.contains(id) && !self.known.contains(id);
        let buried = |flight: &Flight| flight.stage == Stage::Sent && forgotten(&flight.batch.pid);
        let links: Vec<NodeId> = self
            .flights
            .iter()
            .filter(|flight| flight.alive && buried(flight))
            .map(|flight| flight.node)
            .collect();
        self.flights.retain(|flight| flight.alive || !buried(flight));
        for node in links {
            self.lose(node, Fault::LoseGone);
        }
    }

    /// Answers that were waiting and are decided now.
    fn wake_waiting(&mut self) {
        let partition = &self.partition;
        for flight in &mut self.flights {
            let Stage::Waiting(wait) = &flight.stage else { continue };
            match partition.progress(wait) {
                Progress::Waiting => {}
                Progress::Answer(answer) => flight.stage = Stage::Answered(answer),
                // The connection went with the broker.
                Progress::Gone => flight.stage = Stage::Answered(wait.vanished()),
            }
        }
        // Nobody hears the answer on a dead connection.
        self.flights.retain(|flight| flight.alive || !matches!(flight.stage, Stage::Answered(_)));
    }

    /// Shows the judge what was committed since.
    fn show_log(&mut self) {
        let fresh: Vec<(u64, i64)> = self
            .partition
            .committed()
            .filter(|record| record.offset >= self.shown)
            .map(|record| {
                let number = records(record.entry.content).nth(record.index as usize);
                (number.unwrap_or(0), record.offset)
            })
            .collect();
        for (number, offset) in fresh {
            self.shown = self.shown.max(offset + 1);
            // Zero: what a preset put there.
            if let Some(record) = number.checked_sub(1) {
                let found = self.watch.committed(record, offset);
                self.found.extend(found);
            }
        }
    }

    // ---- For quiet phases ----------------------------------------------------------------------

    /// From now on nothing goes wrong any more.
    pub(super) fn calm_down(&mut self) {
        self.budget = Budget { faults: 0, restarts: 0 };
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

    /// Everything is told by now.
    pub(super) fn last_judgement(&mut self, scope: &Scope) -> Result<(), Anomaly> {
        let found = self.watch.close(true);
        self.found.extend(found);
        if !self.limits.losses && !self.closed {
            for (record, plan) in (0..).zip(scope.records).take(self.sent) {
                let spared = plan.bad || plan.due_ms < Plan::LONG.due_ms;
                let cancelled = self.cancelled & 1 << record != 0;
                let delivered = matches!(self.watch.verdict(record), Some(Said::Delivered(_)));
                if !spared && !cancelled && !delivered {
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

/// The steps that may be possible here, in an order that never changes.
impl<M: Machine> World<M> {
    pub(super) fn steps(&self, scope: &Scope) -> Vec<Step> {
        let mut steps = Vec::with_capacity(32);
        if self.sent < scope.records.len() && !self.closed {
            steps.push(Step::Append);
        }
        if self.view.route.is_some() && self.machine.offerable(self.now) {
            steps.push(Step::Offer);
        }
        self.flight_steps(scope, &mut steps);
        if !self.is_replicated() {
            steps.push(Step::Replicate);
        }
        if self.astray().next().is_some() {
            steps.push(Step::Learn);
        }
        if self.may_follow() {
            steps.push(Step::Follow);
        }
        if self.may_tick(scope.ticks) {
            steps.push(Step::Tick);
        }
        if scope.expires_ms.is_some() {
            steps.push(Step::Expire);
        }
        steps.extend(scope.cancels.iter().map(|record| Step::Cancel(*record)));
        if scope.closes.is_some() {
            steps.push(Step::Close);
        }
        self.fault_steps(scope, &mut steps);
        steps
    }

    fn flight_steps(&self, scope: &Scope, steps: &mut Vec<Step>) {
        for (index, flight) in (0_u8..).zip(&self.flights) {
            let mut before = self.flights[..usize::from(index)]
                .iter()
                .filter(|other| other.route == flight.route);
            match flight.stage {
                Stage::Sent if before.all(|other| matches!(other.stage, Stage::Answered(_))) => {
                    steps.push(Step::Deliver(index));
                    if self.budget.faults > 0 {
                        steps.extend(scope.codes.iter().map(|say| Step::Say(index, *say)));
                    }
                }
                Stage::Answered(_) if flight.alive && before.next().is_none() => {
                    steps.push(Step::Answer(index));
                }
                Stage::Sent | Stage::Waiting(_) | Stage::Answered(_) => {}
            }
        }
    }

    fn fault_steps(&self, scope: &Scope, steps: &mut Vec<Step>) {
        let nodes = || (1_u8..).take(scope.replicas);
        if self.budget.faults > 0 {
            for fault in scope.kinds {
                match fault {
                    Fault::LoseWhole | Fault::LoseCut | Fault::LoseGone => {
                        let linked = |node: &u8| self.links[usize::from(node - 1)].is_some();
                        let lost = nodes().filter(linked).map(|node| Step::Fault(*fault, node));
                        steps.extend(lost);
                    }
                    Fault::Elect
                    | Fault::Depose
                    | Fault::Reign
                    | Fault::Timeout
                    | Fault::Purge
                    | Fault::Recreate
                    | Fault::Shrink
                    | Fault::Refuse
                    | Fault::Lift
                    | Fault::Shed
                    | Fault::Forget
                    | Fault::Lag
                    | Fault::Unclean
                    | Fault::Neighbour => steps.push(Step::Fault(*fault, 0)),
                }
            }
        }
        if self.budget.restarts > 0 {
            for node in nodes() {
                steps.push(Step::Restart { node, clean: true });
                steps.push(Step::Restart { node, clean: false });
            }
        }
    }
}

fn preset(partition: &mut Partition<Content>, epoch: i16, next: i32) -> Option<Preset> {
    let first = next.checked_sub(1).unwrap_or(i32::MAX);
    let stamp = START.as_millis();
    let call = Call { node: LEADER, now: stamp, acks: ACKS_ALL, version: 12 };
    // Its answer is of no interest: it commits as soon as the follower has it.
    let _ = partition.produce(call, &Batch::new(FIRST_ID, epoch, first, 1, stamp, 0));
    partition.settle(stamp);
    let identity = Identity { id: ProducerId::new(FIRST_ID)?, epoch: ProducerEpoch::new(epoch)? };
    Some(Preset { identity, next: Sequence::new(next)?, last_acknowledged: Offset::new(0)? })
}

fn lane_config(scope: &Scope) -> LaneConfig {
    LaneConfig {
        linger: Span::from_millis(scope.linger_ms),
        batch_size: scope.batch_size,
        backoff: Span::from_millis(scope.backoff_ms),
        backoff_max: Span::from_millis(scope.backoff_ms),
        jitter: None,
        state_ttl: Span::from_millis(scope.state_ttl_ms),
        on_data_loss: scope.on_data_loss,
        beyond_memory: scope.beyond_memory,
        trust_base_offset: scope.trust_base_offset,
    }
}

fn settings(scope: &Scope) -> Settings {
    Settings {
        state_ttl: match scope.beyond_memory {
            BeyondMemory::Keep => Some(scope.state_ttl_ms * 1_000),
            BeyondMemory::Resend => None,
        },
        timestamps_count: !scope.log_append_time,
        trust_base_offset: scope.trust_base_offset,
        backoff: scope.backoff_ms * 1_000,
        log: LogIs::Live,
        first_sequence: scope.preset.map_or(0, |(_, next)| i64::from(next)),
        ..Settings::default()
    }
}

fn core_answer(answer: Answer) -> CoreAnswer {
    CoreAnswer::Response(PartitionResponse {
        error_code: answer.code,
        base_offset: answer.base_offset,
        log_append_time: answer.log_append_time,
        log_start_offset: answer.log_start_offset,
        record_errors: answer.record_errors.iter().filter_map(|i| u32::try_from(*i).ok()).collect(),
    })
}

fn verdict_said(verdict: Verdict) -> Said {
    match verdict {
        Verdict::Delivered { offset } => Said::Delivered(offset.map(Offset::get)),
        Verdict::NotDelivered(_) => Said::NotDelivered,
        Verdict::Unknown(_) => Said::Unknown,
    }
}

fn resolution_said(resolution: Resolution) -> Said {
    match resolution {
        Resolution::Delivered { offset } => Said::Delivered(offset.map(Offset::get)),
        Resolution::NotDelivered(_) => Said::NotDelivered,
        Resolution::Never { .. } => Said::Unknown,
    }
}

fn noticed(notice: Notice) -> Noticed {
    match notice {
        Notice::DataLoss { .. } => Noticed::DataLoss,
        Notice::StateLost => Noticed::StateLost,
        Notice::IdentityConflict => Noticed::IdentityConflict,
        Notice::Unfenced => Noticed::Unfenced,
        Notice::Fence { .. } => Noticed::Fence,
        Notice::Contradiction { .. } => Noticed::Contradiction,
        Notice::Stopped => Noticed::Stopped,
    }
}
