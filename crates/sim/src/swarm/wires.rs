//! What happens on connections: they are opened, carry bytes, and end.

use bytes::Bytes;
use candor_core::RouteId;
use candor_core::rules::Rules;
use candor_proto::{Address, Handed, Input, Loss, PartitionLeader};

use super::book::lane;
use super::link::{Link, Phase, Traits};
use super::neighbour::Neighbour;
use super::rows::{Rule, Trouble};
use super::scenario::{Dice, MS, SECOND};
use super::tally::count;
use super::tap::{Delivered, Offered, read_attempt, read_request};
use super::world::{Event, World};
use crate::broker::NodeId;
use crate::codec::{ProduceRequest, Request, RequestHeader, TopicKey, frame_length, whole_frame};
use crate::judge::{Attempt, Class, Fact, Lane};
use crate::serve::{ConnectionId, Hangup, Output};

/// Opening and closing.
impl<R: Rules> World<R> {
    pub(super) fn dial(&mut self, conn: RouteId, address: &Address) {
        let node = node_of(address);
        let traits = self.draw_traits();
        self.book.line(self.clock.now, format_args!("connection {} to {address}", conn.0));
        self.links.insert(conn, Link::new(conn, node, traits));
        if self.draws(Trouble::ConnectHangs) {
            return self.trouble(Trouble::ConnectHangs, format_args!("connection {}", conn.0));
        }
        let refused = self.draws(Trouble::ConnectRefused);
        if refused {
            self.trouble(Trouble::ConnectRefused, format_args!("connection {}", conn.0));
        }
        let after = self.rng.about(traits.delay);
        self.schedule(after, Event::Dialled(conn, !refused));
    }

    pub(super) fn dialled(&mut self, conn: RouteId, up: bool) {
        let Some(link) = self.links.get_mut(&conn).filter(|l| l.phase == Phase::Connecting) else {
            return;
        };
        match self.net.connect(link.node).filter(|_| up) {
            Some(server) => {
                link.server = Some(server);
                link.phase = Phase::Up;
                self.tell(Input::Connected { conn });
            }
            None => self.lose(conn, Loss::Refused),
        }
    }

    fn tell(&mut self, input: Input) {
        let now = self.clock.tell();
        if let Err(misuse) = self.producer.handle(now, input) {
            let text = format!("the producer calls a fact a misuse: {misuse}");
            self.book.complain(self.clock.now, Class::Contract, None, text);
        }
        self.touch();
    }

    /// The producer wants the connection closed.
    pub(super) fn leave(&mut self, conn: RouteId, abort: bool) {
        let Some(link) = self.links.get_mut(&conn) else { return };
        self.book.line(self.clock.now, format_args!("leaves {} (abort: {abort})", conn.0));
        if link.phase == Phase::Over {
            return;
        }
        link.phase = Phase::Leaving;
        let after = if self.rng.bool() { 0 } else { self.rng.about(MS) };
        self.schedule(after, Event::End(conn));
    }

    /// The producer is told of the end, if it was not yet.
    pub(super) fn end(&mut self, conn: RouteId) {
        let why = match self.links.get(&conn).map(|link| (link.phase, link.ended)) {
            None | Some((Phase::Over, _)) => return,
            Some((Phase::Leaving, _)) => Loss::Asked,
            Some((Phase::Connecting | Phase::Up, true)) => Loss::Ended,
            Some((Phase::Connecting | Phase::Up, false)) => Loss::Broken,
        };
        self.lose(conn, why);
    }

    fn lose(&mut self, conn: RouteId, why: Loss) {
        let at = self.clock.believed();
        let Some(link) = self.links.get_mut(&conn) else { return };
        let handed = link.handed();
        let most = handed.map_or(link.taken, |handed| handed.clamp(link.told_sent, link.taken));
        let offered = std::mem::take(&mut link.offered);
        link.abandon();
        let unknown = handed.is_none();
        self.lost_any |= !offered.is_empty();
        let handed = handed.map_or(Handed::Unknown, Handed::AtMost);
        if unknown && !offered.is_empty() {
            self.trouble(Trouble::HandedUnknown, format_args!("connection {}", conn.0));
        }
        self.book.line(self.clock.now, format_args!("lost {}: {why}, {handed:?}", conn.0));
        let mut doubtful = Vec::new();
        for Offered { end, lane, attempt, records, .. } in offered {
            let partly = end > most;
            if !partly {
                doubtful.push((lane, records));
            }
            self.meddler.lost(lane, partly);
            self.look_at_leader(lane);
            let fact = Fact::Ended { lane, attempt, partly };
            self.book.fact(self.clock.now, at, fact);
        }
        self.tell(Input::Lost { conn, handed, why });
        doubtful.into_iter().for_each(|(lane, records)| self.regret(lane, &records));
        self.leave_late(conn);
    }

    /// What is under way when the client goes: it comes at once, late, or never.
    fn leave_late(&mut self, conn: RouteId) {
        let Some(link) = self.links.get_mut(&conn) else { return };
        link.traits.mute_out = None;
        let nothing_left = link.out.is_empty() && link.arriving.is_empty();
        if nothing_left {
            return self.hang_up(conn);
        }
        let late = link.traits.late;
        if let Some(after) = late {
            // Nothing of it passes before.
            link.traits.mute_out = Some(link.out_delivered);
            self.trouble(Trouble::LateRequest, format_args!("connection {}", conn.0));
            return self.schedule(after, Event::Late(conn));
        }
        if self.rng.bool() {
            link.out.clear();
            return self.hang_up(conn);
        }
        self.flow_out(conn);
    }

    pub(super) fn come_late(&mut self, conn: RouteId) {
        if let Some(link) = self.links.get_mut(&conn) {
            link.traits.mute_out = None;
            self.book.line(self.clock.now, format_args!("what was left of {} comes", conn.0));
            self.flow_out(conn);
        }
    }

    /// The broker learns that its client is gone; what it has it may still act upon.
    fn hang_up(&mut self, conn: RouteId) {
        let Some(mut link) = self.links.remove(&conn) else { return };
        let Some(server) = link.server.take() else { return };
        let served = link.asked.len();
        let how = match self.rng.u32(0..3) {
            0 => Hangup::Fin,
            1 => Hangup::Reset,
            _ => Hangup::After(self.rng.u32(0..6)),
        };
        if served > 0 && self.rough {
            self.trouble(Trouble::OrphanServed, format_args!("connection {}, {how:?}", conn.0));
        }
        self.net.hang_up(self.clock.now, server, how);
    }

    fn draw_traits(&mut self) -> Traits {
        let delay = self.scenario.latency;
        let mut traits = Traits::plain(delay);
        if !self.rough {
            return traits;
        }
        if self.draws(Trouble::LongTail) {
            self.trouble(Trouble::LongTail, format_args!(""));
            traits.delay = self.rng.about(self.scenario.request_timeout / 2);
        }
        if self.draws(Trouble::Trickle) {
            self.trouble(Trouble::Trickle, format_args!(""));
            (traits.chunk, traits.delay) = (self.rng.usize(1..40), traits.delay.min(MS));
        } else if self.rng.permille(300) {
            traits.chunk = self.rng.usize(1..2_000);
        }
        if self.draws(Trouble::SlowDrain) {
            self.trouble(Trouble::SlowDrain, format_args!(""));
            traits.drain = Some((self.rng.usize(20..2_000), self.rng.about(5 * MS)));
            traits.budget = self.rng.usize(1..4_000);
        }
        let long = self.rng.permille(300);
        let limit = if long { 40_000 } else { 3_000 };
        // Where the window is narrow, nothing goes on until it is told.
        let wide = self.scenario.write_window > 100_000;
        if wide && self.draws(Trouble::NeverSent) {
            self.trouble(Trouble::NeverSent, format_args!(""));
            traits.tells_sent = false;
            traits.breaks_out = Some(self.rng.u64(100..limit));
        }
        traits.tells_handed = !self.draws(Trouble::HandedUnknown);
        self.draw_cuts(&mut traits, limit);
        if self.draws(Trouble::LateRequest) {
            traits.late = Some(self.rng.about(3 * SECOND));
        }
        traits
    }

    fn draw_cuts(&mut self, traits: &mut Traits, limit: u64) {
        if self.draws(Trouble::CutRequest) {
            self.trouble(Trouble::CutRequest, format_args!(""));
            traits.breaks_out = Some(self.rng.u64(1..limit));
        }
        if self.draws(Trouble::CutReply) {
            self.trouble(Trouble::CutReply, format_args!(""));
            traits.breaks_in = Some(self.rng.u64(1..limit / 4));
        }
        if self.draws(Trouble::OneWayOut) {
            self.trouble(Trouble::OneWayOut, format_args!(""));
            traits.mute_out = Some(self.rng.u64(0..limit));
        }
        if self.draws(Trouble::OneWayIn) {
            self.trouble(Trouble::OneWayIn, format_args!(""));
            traits.mute_in = Some(self.rng.u64(0..limit / 4));
        }
        if self.draws(Trouble::HalfOpen) {
            self.trouble(Trouble::HalfOpen, format_args!(""));
            traits.mute_out = Some(self.rng.u64(0..limit));
            traits.mute_in = Some(self.rng.u64(0..limit / 4));
        }
    }

    /// An established connection breaks now.
    pub(super) fn cut_between(&mut self, conn: RouteId) {
        self.trouble(Trouble::CutBetween, format_args!("connection {}", conn.0));
        self.schedule(0, Event::End(conn));
    }
}

/// From the producer to the broker.
impl<R: Rules> World<R> {
    /// Asks the producer for bytes; gives whether it was asked, so that it is to be polled again.
    pub(super) fn transmit(&mut self, conn: RouteId) -> bool {
        let Some(link) = self.links.get(&conn).filter(|link| link.is_writable()) else {
            return false;
        };
        if !self.producer.wants_transmit(conn) {
            return false;
        }
        let budget = link.traits.budget;
        let now = self.clock.tell();
        let mut bufs: Vec<Bytes> = Vec::new();
        let n = self.producer.transmit(now, conn, budget, &mut bufs);
        if n != bufs.iter().map(Bytes::len).sum::<usize>() || n > budget {
            let text = format!("transmit says {n} bytes of at most {budget}");
            self.book.complain(self.clock.now, Class::Contract, None, text);
        }
        let Some(link) = self.links.get_mut(&conn).filter(|_| n > 0) else { return true };
        link.taken += n as u64;
        for bytes in &bufs {
            link.outbox.extend_from_slice(bytes);
            link.leaving.extend_from_slice(bytes);
        }
        self.read_offers(conn);
        self.drain(conn);
        true
    }

    /// Takes down every attempt in what the producer let go.
    fn read_offers(&mut self, conn: RouteId) {
        loop {
            let Some(link) = self.links.get_mut(&conn) else { return };
            let foreseen = link.foreseen;
            let end = link.taken - link.leaving.len() as u64;
            let Some(frame) = whole_frame(&mut link.leaving) else { break };
            link.foreseen = false;
            if !foreseen {
                self.read_offer(conn, &frame, end + frame.len() as u64);
            }
        }
        self.foresee(conn);
    }

    /// A frame that was cut by the budget was offered as a whole: what is still to come of it is
    /// read from a copy of the producer.
    fn foresee(&mut self, conn: RouteId) {
        let Some(link) = self.links.get_mut(&conn) else { return };
        if link.leaving.is_empty() || link.foreseen {
            return;
        }
        link.foreseen = true;
        let start = link.taken - link.leaving.len() as u64;
        let mut all = link.leaving.to_vec();
        let now = self.clock.tell();
        let mut rest = Vec::new();
        self.producer.clone().transmit(now, conn, usize::MAX, &mut rest);
        rest.iter().for_each(|bytes| all.extend_from_slice(bytes));
        let Some(length) = frame_length(&all).filter(|length| *length <= all.len()) else { return };
        all.truncate(length);
        self.read_offer(conn, &all.into(), start + length as u64);
    }

    fn read_offer(&mut self, conn: RouteId, frame: &Bytes, end: u64) {
        let Some((header, request)) = read_request(frame) else {
            let text = format!("connection {}: what it sends is no request", conn.0);
            return self.book.complain(self.clock.now, Class::Contract, None, text);
        };
        let now = self.clock.now;
        self.book.line(now, format_args!("connection {}: {}", conn.0, summary(&header, &request)));
        if let Request::Produce(produce) = request {
            self.check_request(conn, &produce);
            self.check_window(conn, end - frame.len() as u64);
            self.take_down_attempts(conn, &header, &produce, end);
        }
    }

    /// S17, U4, L9: what holds for every Produce request.
    fn check_request(&mut self, conn: RouteId, produce: &ProduceRequest) {
        let now = self.clock.now;
        let Some(link) = self.links.get(&conn) else { return };
        if self.clock.believed() < link.quiet_until {
            let text = format!("connection {} is throttled, and is sent a Produce", conn.0);
            self.book.complain(now, Class::Contract, None, text);
        }
        let longest = self.scenario.request_timeout / 2 / 1_000;
        if produce.timeout_ms < 0 || produce.timeout_ms as u64 > longest || produce.acks != -1 {
            let text = format!("acks {}, timeout {} ms", produce.acks, produce.timeout_ms);
            self.book.complain(now, Class::Contract, None, text);
        }
        let mut places: Vec<(&TopicKey, i32)> = produce
            .topics
            .iter()
            .flat_map(|topic| topic.partitions.iter().map(|one| (&topic.key, one.index)))
            .collect();
        let all = places.len();
        places.sort_by_key(|(key, index)| (format!("{key:?}"), *index));
        places.dedup();
        if places.len() != all {
            let text = "a partition stands twice in a request".to_owned();
            self.book.complain(now, Class::Contract, None, text);
        }
    }

    /// U3: nothing is offered behind a full window.
    fn check_window(&mut self, conn: RouteId, start: u64) {
        let Some(link) = self.links.get(&conn) else { return };
        let unsent = start.saturating_sub(link.told_sent);
        if unsent >= self.scenario.write_window as u64 {
            let text = format!("connection {}: offered behind {unsent} bytes unsent", conn.0);
            self.book.complain(self.clock.now, Class::Contract, None, text);
        }
    }

    fn take_down_attempts(
        &mut self,
        conn: RouteId,
        header: &RequestHeader,
        produce: &ProduceRequest,
        end: u64,
    ) {
        let alone = produce.topics.iter().map(|topic| topic.partitions.len()).sum::<usize>() == 1;
        for topic in &produce.topics {
            let Some(index) = self.topic_of_key(&topic.key) else { continue };
            for one in &topic.partitions {
                let Some(read) = read_attempt(self.run, index, &one.records) else {
                    let text = format!("batch for partition {} cannot be read", one.index);
                    self.book.complain(self.clock.now, Class::Corrupt, None, text);
                    continue;
                };
                let lane = lane(index, one.index);
                let id = self.meddler.number();
                let leader = self.look_at_leader(lane);
                self.check_leader(conn, lane, leader);
                let leader_epoch = leader.map_or(-1, |leader| leader.epoch.0);
                let replacement = self.meddler.replaces(lane, &read);
                if replacement {
                    count(Rule::ReplacementOffered);
                }
                let connection = conn.0;
                let attempt = Attempt { id, connection, leader_epoch, replacement, ..read };
                if !self.meddler.offered(lane, &attempt, alone) {
                    let text = format!("{lane} lost two requests and is not sent alone");
                    self.book.complain(self.clock.now, Class::Contract, None, text);
                }
                let records = attempt.records.clone();
                let correlation = header.correlation;
                let offered = Offered { end, correlation, lane, attempt: id, records };
                let at = self.clock.believed();
                self.book.fact(self.clock.now, at, Fact::Offered { lane, attempt });
                if let Some(link) = self.links.get_mut(&conn) {
                    link.offered.push(offered);
                }
            }
        }
    }

    /// Asks which leader a lane was told; if it was told since it was asked last, the judge is to know.
    pub(super) fn look_at_leader(&mut self, lane: Lane) -> Option<PartitionLeader> {
        let plan = self.scenario.topics.get(lane.topic as usize)?;
        let leader = self.producer.leader(&plan.name, lane.partition)?;
        if let Some(fact) = self.routes.changed(lane, leader) {
            let at = self.clock.believed();
            self.book.fact(self.clock.now, at, fact);
        }
        Some(leader)
    }

    /// S7, S21: an attempt goes where its lane was told that its leader is, and where brokers leave no
    /// choice that is the leader that they tell of. One answer makes nobody follow an older one.
    fn check_leader(&mut self, conn: RouteId, lane: Lane, leader: Option<PartitionLeader>) {
        let Some(node) = self.links.get(&conn).map(|link| i32::from(link.node)) else { return };
        if leader.is_none_or(|leader| leader.route != Some(conn)) {
            let text = format!("{lane} goes to connection {} and follows {leader:?}", conn.0);
            self.book.complain(self.clock.now, Class::Contract, None, text);
        }
        let Some(told) = self.routes.followed(lane.topic, lane.partition) else { return };
        let epoch = leader.map(|leader| leader.epoch.0);
        if told.0 != Some(node) || Some(told.1) != epoch {
            let text = format!("{lane} goes to node {node} at {epoch:?}, and was told {told:?}");
            self.book.complain(self.clock.now, Class::Contract, None, text);
        }
    }

    pub(super) fn topic_of_key(&mut self, key: &TopicKey) -> Option<u32> {
        match key {
            TopicKey::Name(name) => self.topic_index(name),
            TopicKey::Id(id) => self.topic_of(id),
        }
    }

    /// The socket takes what it can.
    pub(super) fn drain(&mut self, conn: RouteId) {
        let Some(link) = self.links.get_mut(&conn) else { return };
        link.drain_scheduled = false;
        if link.phase != Phase::Up {
            return;
        }
        let (n, broke) = link.drain();
        let tells = link.traits.tells_sent && n > 0;
        if tells {
            link.told_sent += n as u64;
        }
        let (left, pause) = (!link.outbox.is_empty(), link.traits.drain.map_or(0, |(_, t)| t));
        if tells {
            self.tell(Input::Sent { conn, n });
        }
        if broke {
            let after = self.rng.about(MS);
            self.schedule(after, Event::End(conn));
        } else if left && let Some(link) = self.links.get_mut(&conn) {
            link.drain_scheduled = true;
            self.schedule(pause.max(1), Event::Drain(conn));
        }
        self.flow_out(conn);
    }

    fn flow_out(&mut self, conn: RouteId) {
        let Some(link) = self.links.get_mut(&conn) else { return };
        if link.has_out() && !link.out_scheduled {
            link.out_scheduled = true;
            let after = self.rng.about(link.traits.delay);
            self.schedule(after, Event::Out(conn));
        }
    }

    pub(super) fn reach_broker(&mut self, conn: RouteId) {
        let Some(link) = self.links.get_mut(&conn) else { return };
        link.out_scheduled = false;
        let bytes = link.next_out();
        self.book.bytes(&bytes);
        link.arriving.extend_from_slice(&bytes);
        while let Some(frame) = self.links.get_mut(&conn).and_then(Link::next_frame) {
            self.forward(conn, frame);
        }
        let over =
            self.links.get(&conn).is_some_and(|l| l.phase == Phase::Over && l.out.is_empty());
        if over {
            return self.hang_up(conn);
        }
        self.flow_out(conn);
    }

    /// Whether bytes of a record are still to be taken by a socket.
    pub(super) fn is_on_its_way(&self, record: u64) -> bool {
        self.links.values().filter(|link| link.taken > link.told_sent).any(|link| {
            link.offered.iter().any(|one| one.end > link.told_sent && one.records.contains(&record))
        })
    }
}

/// From the broker to the producer.
impl<R: Rules> World<R> {
    /// Takes what the brokers have to say.
    pub(super) fn pump(&mut self) {
        while let Some(output) = self.net.poll() {
            match output {
                Output::Bytes { connection, bytes } => {
                    let hears = |one: &mut Neighbour<R>| one.hear(connection, &bytes);
                    if !self.neighbours.iter_mut().any(hears) {
                        self.answer(connection, bytes);
                    }
                }
                Output::Closed { connection } => {
                    let ends = |one: &mut Neighbour<R>| one.hang_up(connection);
                    if !self.neighbours.iter_mut().any(ends) {
                        self.broker_closed(connection);
                    }
                }
            }
        }
    }

    fn link_of(&self, server: ConnectionId) -> Option<RouteId> {
        let link = self.links.values().find(|link| link.server == Some(server))?;
        Some(link.conn)
    }

    fn broker_closed(&mut self, server: ConnectionId) {
        let Some(conn) = self.link_of(server) else { return };
        self.book.line(self.clock.now, format_args!("broker closes {}", conn.0));
        if let Some(link) = self.links.get_mut(&conn) {
            link.server = None;
            link.ended = true;
            link.asked.clear();
            let delay = link.traits.delay;
            let after = self.rng.about(delay);
            // Behind what is under way, or as a reset that overtakes it.
            self.schedule(after, Event::End(conn));
        }
    }

    fn answer(&mut self, server: ConnectionId, frame: Vec<u8>) {
        let Some(conn) = self.link_of(server) else { return };
        let Some(asked) = self.links.get_mut(&conn).and_then(|link| link.asked.pop_front()) else {
            return;
        };
        let Some((frame, tells)) = self.meddle_answer(conn, &asked, frame) else { return };
        self.book.bytes(&frame);
        if let Some(link) = self.links.get_mut(&conn) {
            link.push_back(&frame, tells);
            self.flow_back(conn);
        }
    }

    fn flow_back(&mut self, conn: RouteId) {
        let Some(link) = self.links.get_mut(&conn) else { return };
        if !link.back.is_empty() && !link.back_scheduled {
            link.back_scheduled = true;
            let after = self.rng.about(link.traits.delay);
            self.schedule(after, Event::Back(conn));
        }
    }

    pub(super) fn reach_client(&mut self, conn: RouteId) {
        let Some(link) = self.links.get_mut(&conn) else { return };
        link.back_scheduled = false;
        let (bytes, told) = link.next_back();
        let listens = link.phase == Phase::Up;
        let broke = link.broke_in();
        if !bytes.is_empty() && listens {
            told.into_iter().for_each(|tells| self.hear(conn, tells));
            self.tell(Input::Received { conn, bytes });
        }
        if broke {
            self.schedule(0, Event::End(conn));
        }
        self.flow_back(conn);
    }

    /// An answer is about to be read by the producer.
    fn hear(&mut self, conn: RouteId, tells: Delivered) {
        let Some(link) = self.links.get_mut(&conn).filter(|link| !link.deaf) else { return };
        match tells {
            Delivered::Other => {}
            Delivered::Garbled => link.deaf = true,
            Delivered::Metadata(metadata) => self.routes.hear(&metadata, &self.scenario.topics),
            Delivered::Produce { correlation, replies, hints, throttle_ms } => {
                let (mine, others) = std::mem::take(&mut link.offered)
                    .into_iter()
                    .partition(|offered| offered.correlation == correlation);
                link.offered = others;
                let cut_off = self.net.cluster().is_cut_off(NodeId(link.node));
                if throttle_ms > 0 {
                    // Told in milliseconds from when it is read.
                    let now = self.clock.tell();
                    let believed = now.as_micros().max(self.clock.believed());
                    link.quiet_until = believed + throttle_ms as u64 * 1_000;
                    count(Rule::Throttled);
                }
                self.hear_replies(mine, &replies, cut_off);
                for (key, partition, leader, epoch) in hints {
                    if let Some(topic) = self.topic_of_key(&key) {
                        self.routes.hear_hint(topic, partition, leader, epoch);
                    }
                }
            }
        }
    }

    fn hear_replies(
        &mut self,
        offered: Vec<Offered>,
        replies: &[(TopicKey, i32, crate::judge::Reply)],
        cut_off: bool,
    ) {
        self.clock.tell();
        let at = self.clock.believed();
        for Offered { lane, attempt, .. } in offered {
            let reply = replies.iter().find(|(key, partition, _)| {
                *partition == lane.partition && self.key_is(key, lane.topic)
            });
            let reply = reply.map(|(.., reply)| *reply);
            self.meddler.answered(lane, reply, cut_off);
            self.look_at_leader(lane);
            self.book.fact(self.clock.now, at, Fact::Answered { lane, attempt, reply });
        }
    }

    fn key_is(&self, key: &TopicKey, topic: u32) -> bool {
        match key {
            TopicKey::Name(name) => self.topic_index(name) == Some(topic),
            TopicKey::Id(id) => self.ids.get(id) == Some(&topic),
        }
    }
}

pub(super) fn node_of(address: &Address) -> u8 {
    let text = address.to_string();
    let digit = text.bytes().find(u8::is_ascii_digit).unwrap_or(b'1');
    digit - b'0'
}

fn summary(header: &RequestHeader, request: &Request) -> String {
    match request {
        Request::Produce(produce) => {
            let partitions: usize = produce.topics.iter().map(|topic| topic.partitions.len()).sum();
            format!("Produce v{} #{} of {partitions}", header.version, header.correlation)
        }
        Request::Metadata(_) => format!("Metadata v{} #{}", header.version, header.correlation),
        Request::InitProducerId(_) => format!("InitProducerId #{}", header.correlation),
        Request::ApiVersions(_) => format!("ApiVersions v{}", header.version),
        Request::UnknownApiVersions => format!("ApiVersions v{} (unknown)", header.version),
        Request::Fetch(_) | Request::ListOffsets(_) | Request::FindCoordinator(_) => {
            format!("API {}, which no producer needs", header.api)
        }
    }
}
