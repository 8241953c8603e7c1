//! What brokers answer to Produce and InitProducerId.

use std::collections::BTreeMap;

use candor_core::rules::Rules;
use candor_core::{Event, Instant, PartitionResponse, ProducerId};
use candor_wire::produce::PartitionAnswer;
use candor_wire::{Topic, init_producer_id, metadata, produce};

use super::{Chore, Producer};
use crate::address::Address;
use crate::cluster::Told;
use crate::connection::{Body, Conn, Entry, Request};
use crate::fault::Fault;
use crate::io::{Notice, Output};

impl<R: Rules> Producer<R> {
    /// Reads an answer whole before anything of it counts. One that cannot be read was no answer.
    pub(super) fn answer(&mut self, now: Instant, conn: Conn, body: Body) -> Result<(), Fault> {
        let Body { request, version, bytes } = body;
        match request {
            Request::Greeting => Err(Fault::Unasked),
            Request::Metadata(ask) => match metadata::Response::decode(version, &bytes) {
                Ok(response) => self.metadata(now, conn, ask, &response, version),
                Err(error) => self.unanswer(conn, Request::Metadata(ask), version, error),
            },
            Request::ProducerId => match init_producer_id::Response::decode(version, &bytes) {
                Ok(response) => {
                    self.producer_id(now, conn, &response);
                    Ok(())
                }
                Err(error) => self.unanswer(conn, Request::ProducerId, version, error),
            },
            Request::Produce(entries) => match produce::Response::decode(version, &bytes) {
                Ok(response) => self.produced(now, conn, &entries, &response),
                Err(error) => self.unanswer(conn, Request::Produce(entries), version, error),
            },
        }
    }

    fn unanswer(
        &mut self,
        conn: Conn,
        request: Request,
        version: i16,
        error: candor_wire::DecodeError,
    ) -> Result<(), Fault> {
        if let Some(connection) = self.connections.get_mut(&conn) {
            connection.unanswer(request, version);
        }
        Err(Fault::Malformed(error))
    }

    pub(super) fn throttle(&mut self, now: Instant, conn: Conn, milliseconds: i32) {
        if let Some(connection) = self.connections.get_mut(&conn) {
            connection.throttle(now, milliseconds);
        }
    }

    fn producer_id(&mut self, now: Instant, conn: Conn, response: &init_producer_id::Response) {
        self.throttle(now, conn, response.throttle_ms);
        match response.outcome {
            Ok(identity) => self.take_producer_id(now, identity.id),
            Err(code) => {
                if self.identities.failed(now, Some(code)) {
                    self.outbox.push_back(Output::Notice(Notice::NoProducerId { code }));
                }
            }
        }
        self.todo.push(Chore::Identity);
    }

    fn take_producer_id(&mut self, now: Instant, id: ProducerId) {
        for key in self.identities.came(id) {
            self.give_or_want_identity(now, key);
        }
    }

    /// Matches a Produce answer to its request, by topic and index (U4).
    fn produced(
        &mut self,
        now: Instant,
        conn: Conn,
        entries: &[Entry],
        response: &produce::Response<'_>,
    ) -> Result<(), Fault> {
        self.throttle(now, conn, response.throttle_ms);
        let told = Answers::read(response);
        let mut asked = 0;
        for entry in entries {
            let name = self.cluster.name(entry.topic);
            let topic = entry.topic_id.map_or(Topic::Name(&name), Topic::Id);
            let found = told.get(topic, entry.partition);
            asked += usize::from(found.is_some());
            let answer = found.flatten();
            self.answered(now, entry, answer);
            if let Some(answer) = answer {
                self.take_hint(entry, answer, response);
            }
        }
        let more_than_asked = told.told_twice || told.by_place.len() > asked;
        if more_than_asked { Err(Fault::Contradiction) } else { Ok(()) }
    }

    fn answered(&mut self, now: Instant, entry: &Entry, answer: Option<&PartitionAnswer<'_>>) {
        self.out(entry);
        if let Some(slot) = self.lanes.get_mut(entry.lane) {
            slot.losses = 0;
        }
        let answer = answer.map_or(candor_core::Answer::Missing, |answer| {
            candor_core::Answer::Response(PartitionResponse::from(answer))
        });
        self.tell(now, entry.lane, Event::Answered { attempt: entry.attempt, answer });
    }

    /// KIP-951, S21: a newer leader, with its address; metadata is asked for all the same.
    fn take_hint(
        &mut self,
        entry: &Entry,
        answer: &PartitionAnswer<'_>,
        response: &produce::Response<'_>,
    ) {
        let Some(hint) = answer.current_leader else { return };
        let told = Told { leader: Some(hint.node), epoch: hint.epoch };
        if !self.cluster.hint(entry.topic, entry.partition, told) {
            return;
        }
        let endpoint = response.node_endpoints.iter().find(|broker| broker.node == hint.node);
        let address = endpoint.and_then(|e| Address::new(e.host, i32::from(e.port)));
        if let Some(address) = address {
            self.take_address(hint.node, address);
        }
        self.cluster.asks.again(entry.topic);
        self.todo.push(Chore::Metadata);
    }
}

/// A Produce answer by partition. What is told twice and differently is told not at all.
struct Answers<'a> {
    by_place: BTreeMap<(Topic<'a>, i32), Option<PartitionAnswer<'a>>>,
    told_twice: bool,
}

impl<'a> Answers<'a> {
    fn read(response: &produce::Response<'a>) -> Self {
        let mut answers = Self { by_place: BTreeMap::new(), told_twice: false };
        for answer in response.partitions() {
            let place = (answer.topic, answer.index);
            match answers.by_place.get_mut(&place) {
                None => {
                    answers.by_place.insert(place, Some(answer));
                }
                Some(before) => {
                    answers.told_twice = true;
                    if before.as_ref() != Some(&answer) {
                        *before = None;
                    }
                }
            }
        }
        answers
    }

    /// What is told of a partition; inside, the answer if it is usable.
    fn get<'s>(
        &'s self,
        topic: Topic<'s>,
        partition: i32,
    ) -> Option<Option<&'s PartitionAnswer<'s>>> {
        let by_place: &'s BTreeMap<(Topic<'s>, i32), Option<PartitionAnswer<'s>>> = &self.by_place;
        by_place.get(&(topic, partition)).map(Option::as_ref)
    }
}
