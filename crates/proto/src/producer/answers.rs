//! What brokers answer to Produce and InitProducerId.

use std::collections::BTreeMap;

use candor_core::rules::Rules;
use candor_core::{Event, Instant, PartitionResponse, ProducerId};
use candor_wire::produce::PartitionAnswer;
use candor_wire::{Topic, init_producer_id, metadata, produce};

use super::{Chore, Producer};
use crate::address::Address;
use crate::cluster;
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
            Ok(identity) => self.take_producer_id(now, conn, identity.id),
            Err(code) => {
                if self.identities.failed::<R>(now, conn, Some(code)) {
                    self.outbox.push_back(Output::Notice(Notice::NoProducerId { code }));
                }
            }
        }
        self.todo.push(Chore::Identity);
    }

    fn take_producer_id(&mut self, now: Instant, conn: Conn, id: ProducerId) {
        for key in self.identities.came::<R>(now, conn, id) {
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
        let names: Vec<_> = entries.iter().map(|entry| self.cluster.name(entry.topic)).collect();
        let asked = entries.iter().zip(&names).map(|(entry, name)| {
            (entry.topic_id.map_or(Topic::Name(name), Topic::Id), entry.partition)
        });
        let told = Answers::read(response, asked.clone());
        for (entry, (topic, partition)) in entries.iter().zip(asked) {
            let answer = told.get(topic, partition);
            self.answered(now, entry, answer);
            if let Some(answer) = answer {
                self.take_hint(entry, answer, response);
            }
        }
        if told.more_than_asked { Err(Fault::Contradiction) } else { Ok(()) }
    }

    fn answered(&mut self, now: Instant, entry: &Entry, answer: Option<&PartitionAnswer<'_>>) {
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
        let told = cluster::Told { leader: Some(hint.node), epoch: hint.epoch };
        if !self.cluster.hint::<R>(entry.topic, entry.partition, told) {
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

/// What is told of a partition that was asked about.
enum Told<'a> {
    Nothing,
    Once(PartitionAnswer<'a>),
    /// Twice and differently: that is told not at all.
    Unclear,
}

/// A Produce answer by partition. What was not asked is not kept.
struct Answers<'a> {
    by_place: BTreeMap<(Topic<'a>, i32), Told<'a>>,
    more_than_asked: bool,
}

impl<'a> Answers<'a> {
    fn read(
        response: &produce::Response<'a>,
        asked: impl Iterator<Item = (Topic<'a>, i32)>,
    ) -> Self {
        let by_place = asked.map(|place| (place, Told::Nothing)).collect();
        let mut answers = Self { by_place, more_than_asked: false };
        for answer in response.partitions() {
            match answers.by_place.get_mut(&(answer.topic, answer.index)) {
                Some(told @ Told::Nothing) => *told = Told::Once(answer),
                Some(told) => {
                    answers.more_than_asked = true;
                    if !matches!(told, Told::Once(before) if *before == answer) {
                        *told = Told::Unclear;
                    }
                }
                None => answers.more_than_asked = true,
            }
        }
        answers
    }

    /// What is told of a partition, if it is usable.
    fn get(&self, topic: Topic<'a>, partition: i32) -> Option<&PartitionAnswer<'a>> {
        match self.by_place.get(&(topic, partition))? {
            Told::Once(answer) => Some(answer),
            Told::Nothing | Told::Unclear => None,
        }
    }
}
