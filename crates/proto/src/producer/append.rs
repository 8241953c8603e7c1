//! Records come in, are routed, are cancelled, and tell what they wait for.

use candor_core::rules::Rules;
use candor_core::{
    Append, Event, Instant, Outcome, Payload, Proof, RouteId, Settled, Ticket, Told, Why,
};
use candor_wire::{RecordBatch, check_topic_name};

use super::{Chore, Life, Producer, span};
use crate::budget::{RAW_COST, RECORD_COST};
use crate::cluster::Topic;
use crate::io::{Ended, Output, Settlement, Unused, Waiting};
use crate::lanes::LaneKey;
use crate::record::{Record, Refused, WhyRefused};
use crate::router::{Raw, TopicKey};
use crate::tickets::{Entry, Held, Tickets};

/// Unrouted records that one step of `poll` routes.
const ROUTED_PER_STEP: usize = 64;

/// A record that may come in.
struct Admitted {
    /// Bytes that it is charged for.
    cost: usize,
    born: Instant,
    deadline: Instant,
    /// Nothing keeps it from its partition's lane.
    goes_at_once: bool,
}

impl<R: Rules> Producer<R> {
    /// Accepts a record, or hands it back; never waits. `born` is when the caller began to send it:
    /// its deadline counts from there.
    ///
    /// # Errors
    ///
    /// [`Refused`] with the record and the reason; nothing of it was kept.
    // The record comes back whole and without an allocation: the error is as large as it is.
    #[allow(clippy::result_large_err)]
    pub fn append<'r>(
        &mut self,
        now: Instant,
        born: Instant,
        record: Record<'r>,
    ) -> Result<Ticket, Refused<'r>> {
        let now = self.clock.at(now);
        let known = self.cluster.find(record.topic());
        // Before anything is asked for: who waits for room tries again at every turn.
        let admitted = match self.admit(now, born, &record, known) {
            Ok(admitted) => admitted,
            Err(why) => {
                if why == WhyRefused::Full {
                    // While a leader is away room comes record by record, and each try finds the
                    // memory full: that must not cut what waits into batches of one.
                    self.all_is_due(|| Event::Due);
                }
                return Err(Refused { record, why });
            }
        };
        let topic = self.cluster.using(known, record.topic(), now);
        self.foresee();
        if !admitted.goes_at_once {
            return Ok(self.hold(topic, admitted, record));
        }
        match self.route(now, topic, &admitted, &record) {
            Ok(ticket) => Ok(ticket),
            Err(why) => Err(Refused { record, why }),
        }
    }

    fn admit(
        &self,
        now: Instant,
        born: Instant,
        record: &Record<'_>,
        known: Option<TopicKey>,
    ) -> Result<Admitted, WhyRefused> {
        if self.life != Life::Open {
            return Err(WhyRefused::Closed);
        }
        if known.is_none() && check_topic_name(record.topic()).is_err() {
            return Err(WhyRefused::BadTopic);
        }
        if record.asked_partition().is_some_and(|partition| i32::try_from(partition).is_err()) {
            return Err(WhyRefused::BadPartition);
        }
        let size = RecordBatch::empty().size_with(0, &record.as_wire());
        if size > self.limits.max_request {
            return Err(WhyRefused::TooLarge { size, limit: self.limits.max_request });
        }
        let cost = record.payload_bytes().saturating_add(RECORD_COST);
        let least = cost.saturating_add(RAW_COST + Tickets::PAGE_BYTES);
        if least > self.budget.limit() {
            return Err(WhyRefused::TooLarge { size: least, limit: self.budget.limit() });
        }
        let goes_at_once =
            known.is_some_and(|topic| self.is_routable(topic) && !self.router.holds(topic));
        let cost = if goes_at_once { cost } else { cost + RAW_COST };
        if !self.budget.fits(cost, self.tickets.bytes_with_next()) {
            return Err(WhyRefused::Full);
        }
        let born = born.min(now);
        let deadline = self.deadline_of(born, record);
        Ok(Admitted { cost, born, deadline, goes_at_once })
    }

    /// When the verdict of a record is due whose sending began at `born`, accepted or not.
    pub fn deadline_of(&self, born: Instant, record: &Record<'_>) -> Instant {
        let asked = record.asked_deadline().map_or(self.limits.deadline, span);
        born + asked.min(self.limits.longest_deadline)
    }

    /// Fetches a producer id before the first record needs one: a broker that gives it is reachable
    /// and takes idempotent producers.
    pub fn prepare(&mut self, now: Instant) {
        self.clock.at(now);
        self.identities.prepare();
        self.foresee();
    }

    /// Whether there is a producer id.
    pub fn is_prepared(&self) -> bool {
        self.identities.pool.next(None).is_some()
    }

    /// Metadata and an id are asked for as soon as a record makes them necessary.
    fn foresee(&mut self) {
        self.identities.foresee();
        if self.cluster.asks.deadline().is_some() {
            self.todo.push(Chore::Metadata);
        }
        if self.identities.deadline().is_some() {
            self.todo.push(Chore::Identity);
        }
    }

    fn hold(&mut self, topic: TopicKey, admitted: Admitted, record: Record<'_>) -> Ticket {
        let ticket = self.accept(Held::Raw(topic), admitted.cost);
        let Admitted { born, deadline, .. } = admitted;
        let record = record.into_owned_elsewhere();
        self.router.hold(topic, ticket, Raw { born, deadline, record });
        self.todo.push(Chore::Unrouted);
        self.todo.push(Chore::Metadata);
        ticket
    }

    fn accept(&mut self, held: Held, cost: usize) -> Ticket {
        self.budget.charge(cost);
        self.flushes.accepted();
        self.counts.accepted += 1;
        self.tickets.issue(Entry { held, bytes: u32::try_from(cost).unwrap_or(u32::MAX) })
    }

    /// Puts a new record into the lane of its partition.
    fn route(
        &mut self,
        now: Instant,
        topic: TopicKey,
        admitted: &Admitted,
        record: &Record<'_>,
    ) -> Result<Ticket, WhyRefused> {
        let key = self.choose(now, topic, record);
        let ticket = self.tickets.next();
        self.append_to(now, key, ticket, admitted.born, admitted.deadline, record)?;
        Ok(self.accept(Held::Lane(key), admitted.cost))
    }

    fn choose(&mut self, now: Instant, topic: TopicKey, record: &Record<'_>) -> LaneKey {
        let (count, led) = match self.cluster.topic(topic) {
            Some(topic) => (topic.count(), topic.led()),
            None => (0, &[][..]),
        };
        let partition = self.router.choose(topic, record, count, led);
        self.lanes.at(topic, partition as i32, now)
    }

    fn append_to(
        &mut self,
        now: Instant,
        key: LaneKey,
        ticket: Ticket,
        born: Instant,
        deadline: Instant,
        record: &Record<'_>,
    ) -> Result<(), WhyRefused> {
        let Some(slot) = self.lanes.get_mut(key) else { return Err(WhyRefused::Closed) };
        let timestamp = record.asked_timestamp().unwrap_or_else(|| born.as_millis());
        let record = record.as_wire();
        let append = Append { ticket, born, deadline, timestamp, record };
        match slot.lane.handle(now, Event::Append(append)) {
            Ok(()) => {
                self.lanes.lingering.push(key);
                self.lanes_todo.push(key);
                Ok(())
            }
            Err(candor_core::Misuse::Closed) => Err(WhyRefused::Closed),
            Err(candor_core::Misuse::Stopped) => {
                self.look_for_new_topic(key);
                Err(WhyRefused::Stopped)
            }
            Err(
                candor_core::Misuse::TicketOrder
                | candor_core::Misuse::UnknownAttempt(_)
                | candor_core::Misuse::UnexpectedIdentity,
            ) => Err(WhyRefused::Stopped),
        }
    }

    /// U1: routes some of a topic's unrouted records, in order.
    pub(super) fn drain(&mut self, now: Instant, topic: TopicKey) {
        if !self.is_routable(topic) {
            return;
        }
        let mut due = false;
        for _ in 0..ROUTED_PER_STEP {
            let Some((ticket, raw)) = self.router.next(topic) else { break };
            if ticket >= self.due_before {
                self.hurry_up(&mut due);
            }
            let key = self.choose(now, topic, &raw.record);
            match self.append_to(now, key, ticket, raw.born, raw.deadline, &raw.record) {
                Ok(()) => {
                    self.tickets.moved(ticket, Held::Lane(key));
                    self.tickets.lighten(ticket, RAW_COST as u32);
                    self.budget.release(RAW_COST);
                    due |= ticket < self.due_before;
                }
                Err(_) => self.end_raw(topic, ticket, Proof::NeverOffered),
            }
        }
        self.hurry_up(&mut due);
        if self.router.holds(topic) {
            self.todo.push(Chore::Route(topic));
        } else {
            self.drained(now, topic);
        }
        self.todo.push(Chore::Unrouted);
    }

    /// A flush, or a full memory, reaches records that were not routed then.
    fn hurry_up(&mut self, due: &mut bool) {
        if core::mem::take(due) {
            self.hurry(|| Event::Flush);
        }
    }

    /// Nothing of the topic waits any more: closing reaches its lanes now.
    fn drained(&mut self, now: Instant, topic: TopicKey) {
        if let Life::Closing { deadline } = self.life {
            let lanes: Vec<_> = self.lanes.of_topic(topic).collect();
            lanes.into_iter().for_each(|key| self.close_lane(now, key, deadline));
        }
    }

    /// One unrouted record ended without ever having been offered.
    pub(super) fn end_raw(&mut self, topic: TopicKey, ticket: Ticket, proof: Proof) {
        self.router.take(topic, ticket);
        let Some(entry) = self.tickets.end(ticket) else { return };
        self.budget.release(entry.bytes as usize);
        self.flushes.told(ticket);
        self.counts.not_delivered += 1;
        self.todo.push(Chore::Flushes);
        self.todo.push(Chore::Close);
        let records = vec![Told { ticket, index: 0, unknown: false }];
        self.outbox.push_back(Output::Settled(Settlement {
            topic: self.cluster.name(topic),
            partition: None,
            settled: Settled { records, outcome: Outcome::NotDelivered(proof) },
        }));
    }

    /// D1: unrouted records whose time is up.
    pub(super) fn expire_unrouted(&mut self, now: Instant) {
        if let Some((topic, ticket)) = self.router.due(now) {
            self.end_raw(topic, ticket, Proof::NeverOffered);
            self.todo.push(Chore::Unrouted);
        }
        let at = self.router.deadline();
        self.timers.set(crate::timers::Timer::Unrouted, at, candor_core::Wakeup::Verdict);
    }

    /// D4: this record's deadline is now. Its verdict comes from the next `poll`; a ticket that ended
    /// is ignored.
    pub fn cancel(&mut self, now: Instant, ticket: Ticket) {
        let now = self.clock.at(now);
        match self.tickets.get(ticket).map(|entry| entry.held) {
            Some(Held::Raw(topic)) => {
                self.end_raw(topic, ticket, Proof::TakenBack);
                self.todo.push(Chore::Unrouted);
            }
            Some(Held::Lane(key)) => self.tell(now, key, Event::Cancel(ticket)),
            Some(Held::Unknown(_)) | None => {}
        }
    }

    /// This record shall never be written, or be known to be (rule C). Its verdict comes from the
    /// next `poll`, as after [`cancel`](Self::cancel); if that is `Unknown`, other records are
    /// offered in its place, if there are enough, and the broker's answer is its resolution:
    /// `NotDelivered(SlotTaken)` or `Delivered`. Where nothing can take its place it is settled as
    /// it would have been. After an `Unknown` it works as well.
    ///
    /// # Errors
    ///
    /// The record has ended: its verdict, or its resolution, was told.
    ///
    /// ```
    /// use candor_core::{Instant, Ticket};
    /// use candor_proto::{Config, Producer, Record};
    /// let now = Instant::from_millis(1_700_000_000_000);
    /// let mut producer: Producer = Producer::new(&Config::new(["localhost:9092"]), 1, now).unwrap();
    /// let ticket = producer.append(now, now, Record::to("orders").value("created")).unwrap();
    /// assert!(producer.revoke(now, ticket).is_ok());
    /// assert!(producer.revoke(now, Ticket(7)).is_err());
    /// ```
    pub fn revoke(&mut self, now: Instant, ticket: Ticket) -> Result<(), Ended> {
        let at = self.clock.at(now);
        match self.tickets.get(ticket).map(|entry| entry.held) {
            Some(Held::Raw(_)) => self.cancel(at, ticket),
            Some(Held::Lane(key) | Held::Unknown(key)) => {
                self.tell(at, key, Event::Revoke(ticket));
            }
            None => return Err(Ended(ticket)),
        }
        Ok(())
    }

    /// What is in doubt on this partition is given up: it is not resent, and ends
    /// `Never(Abandoned)` unless an answer is still to come. The partition goes on under the next
    /// epoch; the notice [`Fence`](candor_core::Notice::Fence) names the offset from which on
    /// nothing of what was given up can appear any more. Records without doubt stay.
    ///
    /// # Errors
    ///
    /// No record was ever routed to this partition.
    ///
    /// ```
    /// use candor_core::Instant;
    /// use candor_proto::{Config, Producer};
    /// let now = Instant::from_millis(1_700_000_000_000);
    /// let mut producer: Producer = Producer::new(&Config::new(["localhost:9092"]), 1, now).unwrap();
    /// let unused = producer.abandon(now, "orders", 3).unwrap_err();
    /// assert_eq!(unused.to_string(), "orders-3: nothing was sent there, and nothing is in doubt");
    /// ```
    pub fn abandon(&mut self, now: Instant, topic: &str, partition: i32) -> Result<(), Unused> {
        let now = self.clock.at(now);
        let key = self.cluster.find(topic).and_then(|topic| self.lanes.find(topic, partition));
        let key = key.ok_or_else(|| Unused { topic: topic.into(), partition })?;
        self.tell(now, key, Event::Abandon);
        Ok(())
    }

    /// What a record is waiting for.
    pub fn why(&self, ticket: Ticket) -> Waiting {
        match self.tickets.get(ticket).map(|entry| entry.held) {
            None => Waiting::Gone,
            Some(Held::Raw(_)) => Waiting::Metadata,
            Some(Held::Lane(key) | Held::Unknown(key)) => match self.lanes.get(key) {
                None => Waiting::Gone,
                Some(slot) => match slot.lane.why(ticket) {
                    Why::Transmit => self.why_not_transmitted(slot.told.0),
                    Why::Leader => {
                        let lacks = self.lacks_partition(key);
                        let partition = slot.partition;
                        lacks.map_or(Waiting::Partition(Why::Leader), |partitions| {
                            Waiting::NoPartition { partition, partitions }
                        })
                    }
                    why @ (Why::Gone
                    | Why::Metadata
                    | Why::Identity
                    | Why::Linger
                    | Why::Queue
                    | Why::Span
                    | Why::Gate
                    | Why::Backoff { .. }
                    | Why::Hold
                    | Why::Answer { .. }
                    | Why::Confirmation { .. }
                    | Why::Resolution) => Waiting::Partition(why),
                },
            },
        }
    }

    /// How many partitions the lane's topic has, if the lane's is none of them.
    pub(super) fn lacks_partition(&self, key: LaneKey) -> Option<u32> {
        let slot = self.lanes.get(key)?;
        let partitions = self.cluster.topic(slot.topic).map_or(0, Topic::count);
        let place = u32::try_from(slot.partition).ok()?;
        (partitions > 0 && place >= partitions).then_some(partitions)
    }

    fn why_not_transmitted(&self, route: Option<RouteId>) -> Waiting {
        let now = self.clock.now;
        let Some(connection) = route.and_then(|conn| self.connections.get(&conn)) else {
            return Waiting::Partition(Why::Leader);
        };
        match connection.throttled::<R>(now) {
            Some(until) => Waiting::Throttle { until },
            None if !connection.may_produce::<R>(now, &self.terms) => Waiting::Connection,
            None => Waiting::Partition(Why::Transmit),
        }
    }
}
