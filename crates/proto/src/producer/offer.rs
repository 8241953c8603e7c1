//! Produce requests are put together, as late as possible.

use bytes::Bytes;
use candor_core::rules::Rules;
use candor_core::{Event, HandedOver, Instant, Span};
use candor_wire::{RequestHeader, Topic, TopicId, produce};

use super::Producer;
use crate::connection::{Conn, Entry, Request, Versions};
use crate::lanes::LaneKey;

/// Bytes that a request has beside topics and client id, at most.
const AROUND_REQUEST: usize = 64;
/// Bytes that a topic has beside its name or id, and a partition beside its batch, at most.
const AROUND_ENTRY: usize = 16;

/// How topics are named in a request: all in the same way (S17, fault 159).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Naming {
    by_id: bool,
    version: i16,
}

/// The batches that one request will carry.
struct Load {
    /// Set by the first batch.
    naming: Option<Naming>,
    /// L7: the first one goes alone, since its requests were lost before.
    alone: bool,
    batches: Vec<(Entry, Bytes)>,
    size: usize,
    earliest: Option<Instant>,
}

/// What came of asking a lane.
enum Asked {
    /// The load has a batch of it now.
    Loaded,
    /// It may have one, but not for this request.
    NextTime,
    /// It has one, but there is no room for it.
    Full,
    /// It has none, or not for this connection.
    Nothing,
}

impl<R: Rules> Producer<R> {
    /// Fills a connection with Produce requests, until `budget` bytes wait, the window is full (U3),
    /// enough requests are open, or nothing may be offered.
    pub(super) fn offer(&mut self, now: Instant, conn: Conn, budget: usize) {
        loop {
            let Some(connection) = self.connections.get(&conn) else { return };
            let enough = connection.waiting() >= budget as u64;
            if enough || !connection.may_produce::<R>(now, &self.terms) {
                return;
            }
            let Some(versions) = connection.versions() else { return };
            let load = self.load(now, conn, versions);
            if load.batches.is_empty() {
                return;
            }
            self.send(now, conn, load);
        }
    }

    /// Asks the lanes that are ready, each once (U4), in turn (fault 81).
    fn load(&mut self, now: Instant, conn: Conn, versions: Versions) -> Load {
        let mut ready = self.lanes.take_ready(conn);
        let size = AROUND_REQUEST + self.terms.client_id.len();
        let mut load =
            Load { naming: None, alone: false, batches: Vec::new(), size, earliest: None };
        let mut asked = Vec::with_capacity(ready.len());
        while let Some(key) = ready.pop() {
            match self.ask_lane(now, conn, versions, key, &mut load) {
                Asked::Loaded if R::may_repeat_in_request() => ready.push(key),
                Asked::Loaded | Asked::NextTime => asked.push(key),
                Asked::Full => {
                    ready.push_front(key);
                    break;
                }
                Asked::Nothing => self.lanes_todo.push(key),
            }
        }
        for key in asked {
            if self.lanes.get(key).is_some_and(|slot| slot.lane.offerable(now)) {
                ready.push(key);
            }
            self.lanes_todo.push(key);
        }
        self.lanes.put_ready(conn, ready);
        load
    }

    fn ask_lane(
        &mut self,
        now: Instant,
        conn: Conn,
        versions: Versions,
        key: LaneKey,
        load: &mut Load,
    ) -> Asked {
        let Some(slot) = self.lanes.get_mut(key) else { return Asked::Nothing };
        let Some(topic) = self.cluster.topic(slot.topic) else { return Asked::Nothing };
        let Some(naming) = naming(versions, topic.id()) else { return Asked::Nothing };
        if slot.told.0 != Some(conn) {
            return Asked::Nothing;
        }
        let alone = R::goes_alone(slot.losses);
        let first = load.batches.is_empty();
        if !first && (load.naming != Some(naming) || load.alone || alone) {
            return Asked::NextTime;
        }
        let around = topic.name.len().max(TopicId::SIZE) + 2 * AROUND_ENTRY;
        let room = self.limits.max_request.saturating_sub(load.size + around);
        let room = if first { usize::MAX } else { room };
        let Some(offer) = slot.lane.offer(now, conn, room) else {
            let full = slot.lane.offerable(now);
            return if full { Asked::Full } else { Asked::Nothing };
        };
        slot.unsent.offered(offer.attempt);
        self.counts.offers += 1;
        let bytes = offer.batch.encoded().clone();
        load.naming = Some(naming);
        load.alone |= alone;
        load.size += around + bytes.len();
        load.earliest = load.earliest.into_iter().chain(offer.earliest_deadline).min();
        let entry = Entry {
            lane: key,
            attempt: offer.attempt,
            topic: slot.topic,
            topic_id: topic.id().filter(|_| naming.by_id),
            partition: slot.partition,
        };
        load.batches.push((entry, bytes));
        Asked::Loaded
    }

    /// Queues the request. A load that cannot be encoded was never handed over.
    fn send(&mut self, now: Instant, conn: Conn, load: Load) {
        let left = load.earliest.map(|deadline| deadline.since(now));
        let wait = R::produce_timeout(self.terms.request_timeout, left);
        let encoded = self
            .connections
            .get(&conn)
            .and_then(|connection| self.encode(connection.header(&self.terms), wait, &load));
        let entries: Vec<_> = load.batches.into_iter().map(|(entry, _)| entry).collect();
        match (encoded, load.naming, self.connections.get_mut(&conn)) {
            (Some(frame), Some(naming), Some(connection)) => {
                let expires = R::request_expires(now, self.terms.request_timeout);
                let request = Request::Produce(entries);
                connection.push(request, naming.version, frame.into_parts(), expires);
                self.counts.requests += 1;
            }
            (None, ..) | (_, None, _) | (.., None) => {
                debug_assert!(false, "a load that was checked cannot be encoded");
                for entry in entries {
                    self.out(&entry);
                    let Entry { lane, attempt, .. } = entry;
                    self.tell(now, lane, Event::Ended { attempt, handed: HandedOver::Partly });
                }
            }
        }
    }

    fn encode(
        &self,
        header: RequestHeader<'_>,
        wait: Span,
        load: &Load,
    ) -> Option<produce::Segments> {
        let version = load.naming?.version;
        let wait = i32::try_from(wait.as_millis()).unwrap_or(i32::MAX);
        let mut request = produce::Request::new(version, header, wait).ok()?;
        for (entry, batch) in &load.batches {
            let topic = match entry.topic_id {
                Some(id) => Topic::Id(id),
                None => Topic::Name(&self.cluster.topic(entry.topic)?.name),
            };
            request.add(topic, entry.partition, batch.clone()).ok()?;
        }
        Some(request.encode())
    }
}

/// By id where both sides can, by name otherwise.
pub(super) fn naming(versions: Versions, id: Option<TopicId>) -> Option<Naming> {
    match (versions.produce_by_id, id) {
        (Some(version), Some(_)) => Some(Naming { by_id: true, version }),
        (None, _) | (_, None) => {
            versions.produce_by_name.map(|version| Naming { by_id: false, version })
        }
    }
}
