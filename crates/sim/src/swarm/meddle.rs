//! Between network and broker: answers that the model would not give, and attempts by content.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use candor_core::RouteId;
use candor_core::rules::Rules;

use super::book::lane;
use super::rows::{Rule, Trouble};
use super::scenario::{Dice, MS, SECOND};
use super::tally::count;
use super::tap::{
    Asked, Delivered, Meddling, Offered, Order, read_attempt, read_request, rewrite, strip,
};
use super::world::{Event, World};
use crate::broker::NodeId;
use crate::codec::{
    API_VERSIONS, ApiVersionsResponse, INIT_PRODUCER_ID, InitProducerIdResponse, METADATA,
    MetadataResponse, MetadataTopic, PRODUCE, ProduceRequest, Request, RequestHeader, TopicKey,
};
use crate::judge::{Attempt, Class, Lane, Reply, Said};
use crate::serve::{Effect, Fault, Moment, Upset};

const RETRIABLE: [i16; 10] = [5, 8, 9, 14, 15, 16, 19, 72, 74, 89];
const PERMANENT: [i16; 9] = [17, 21, 29, 31, 35, 42, 43, 44, 76];
/// Codes that may come after an append, with the offset at that leader.
const AFTER: [i16; 6] = [3, 6, 7, 20, 56, -1];
const NOBODY_KNOWS: [i16; 3] = [999, -77, 121];
const UNKNOWN_TOPIC_ID: i16 = 100;

/// What a partition answers for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spell {
    pub(super) code: i16,
    pub(super) until: u64,
    /// Where it says that its log starts; -1 if it does not.
    pub(super) log_start: i64,
}

/// What a batch meets that runs into an ambush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing.
    Pass,
    /// Refused, and the broker forgets the producer.
    Forget,
    /// Appended and not confirmed.
    Doubt,
    /// The same, and the leader is restarted soon.
    DoubtAndReload,
    /// The same, and all that the partition holds is deleted.
    DoubtAndPurge,
    /// All that the partition holds is deleted, and the broker does not know the producer for a while.
    Purge,
}

/// What is known of attempts, and what brokers say for a while.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Meddler {
    numbers: u64,
    /// How often each content was offered.
    contents: BTreeMap<(Lane, i64, i16, i32, u64), u64>,
    /// How many records were offered first at each place.
    sizes: BTreeMap<(Lane, i64, i16, i32), u32>,
    /// The identity under which a record was offered last.
    identities: BTreeMap<u64, (i64, i16)>,
    /// Requests that a lane lost in a row, with no answer.
    losses: BTreeMap<Lane, u32>,
    /// Lanes that ever had an answer which left doubt.
    doubted: BTreeSet<Lane>,
    /// Lanes that were answered 45 or 59 since their last 0: whether only by brokers that were cut off from
    /// the others, and led no more (S21).
    asked_in_vain: BTreeMap<Lane, bool>,
    /// Lanes in which a replacement was offered (C).
    contested: BTreeSet<Lane>,
    /// Lanes that brokers forgot although they must not (A3).
    pub(super) forgotten: BTreeSet<Lane>,
    /// Lanes that were told offsets that cannot be (A1).
    pub(super) lied: BTreeSet<Lane>,
    /// Codes that partitions answer for a while.
    pub(super) spells: BTreeMap<(u32, i32), Spell>,
    /// Brokers that answer errors only until then.
    pub(super) storms: BTreeMap<u8, u64>,
    /// What the next new batches of a partition meet, one after the other.
    ambushes: BTreeMap<(u32, i32), VecDeque<Step>>,
    /// What was told of topics before.
    old: BTreeMap<String, Vec<MetadataTopic>>,
}

impl Meddler {
    /// The next new batches of a partition run into this, unless something is laid there already.
    pub(super) fn lay(&mut self, place: (u32, i32), steps: &[Step]) {
        self.ambushes.entry(place).or_insert_with(|| steps.iter().copied().collect());
    }

    /// Nothing more is to come of what was begun.
    pub(super) fn rest(&mut self) {
        self.spells.clear();
        self.storms.clear();
        self.ambushes.clear();
    }

    fn next_step(&mut self, place: (u32, i32)) -> Option<Step> {
        let steps = self.ambushes.get_mut(&place)?;
        let step = steps.pop_front();
        if steps.is_empty() {
            self.ambushes.remove(&place);
        }
        step
    }

    pub(super) fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// Whether an attempt takes the slot of others (C): another size stood at its place before.
    pub(super) fn replaces(&mut self, lane: Lane, attempt: &Attempt) -> bool {
        let place = (lane, attempt.producer_id, attempt.epoch, attempt.first);
        let replaces = *self.sizes.entry(place).or_insert(attempt.count) != attempt.count;
        if replaces {
            self.contested.insert(lane);
        }
        replaces
    }

    /// An attempt leaves the producer. False if it breaks L7.
    pub(super) fn offered(&mut self, lane: Lane, attempt: &Attempt, alone: bool) -> bool {
        let Attempt { producer_id, epoch, first, content, .. } = *attempt;
        let offers = self.contents.entry((lane, producer_id, epoch, first, content)).or_default();
        *offers += 1;
        if *offers > 1 {
            count(Rule::Repeated);
        }
        for record in &attempt.records {
            let before = self.identities.insert(*record, (producer_id, epoch));
            if before.is_some_and(|before| before != (producer_id, epoch)) {
                count(Rule::SecondIdentity);
            }
        }
        let lost = self.losses.get(&lane).copied().unwrap_or(0);
        if lost >= 2 && alone {
            count(Rule::GoesAlone);
        }
        lost < 2 || alone
    }

    pub(super) fn answered(&mut self, lane: Lane, reply: Option<Reply>, cut_off: bool) {
        self.losses.remove(&lane);
        match reply.map(|reply| reply.code) {
            Some(0) => _ = self.asked_in_vain.remove(&lane),
            Some(45 | 59) => {
                let only = self.asked_in_vain.entry(lane).or_insert(true);
                *only &= cut_off;
            }
            Some(_) | None => {}
        }
        let doubt = reply
            .is_none_or(|reply| AFTER.contains(&reply.code) || NOBODY_KNOWS.contains(&reply.code));
        if doubt {
            self.doubted.insert(lane);
        }
    }

    /// Whether leaders that do not know of their fall, and nobody else, knew nothing of a lane.
    pub(super) fn is_told_by_the_fallen(&self, lane: Lane) -> bool {
        self.asked_in_vain.get(&lane) == Some(&true)
    }

    pub(super) fn is_contested(&self, lane: Lane) -> bool {
        self.contested.contains(&lane)
    }

    pub(super) fn lost(&mut self, lane: Lane, partly: bool) {
        if !partly {
            *self.losses.entry(lane).or_default() += 1;
        }
    }
}

/// Requests.
impl<R: Rules> World<R> {
    /// A whole request has reached the broker.
    pub(super) fn forward(&mut self, conn: RouteId, frame: Bytes) {
        let Some(server) = self.links.get(&conn).and_then(|link| link.server) else { return };
        let mut bytes = frame.clone();
        if let Some((header, request)) = read_request(&frame) {
            let mut asked = Asked { header, meddled: Vec::new() };
            if let Request::Produce(produce) = &request {
                asked.meddled = self.draw_meddlings(conn, &asked.header, produce);
                self.maybe_crash(conn);
                bytes = strip(&asked, produce).into();
            }
            if let Some(link) = self.links.get_mut(&conn) {
                link.asked.push_back(asked);
            }
        }
        self.net.receive(self.clock.now, server, &bytes);
    }

    /// The broker goes down between the append and its answer.
    fn maybe_crash(&mut self, conn: RouteId) {
        if !self.draws(Trouble::MidRequest) || self.rng.permille(800) {
            return;
        }
        let Some(node) = self.links.get(&conn).map(|link| link.node) else { return };
        let crash = self.rng.bool();
        self.trouble(Trouble::MidRequest, format_args!("node {node}, crash: {crash}"));
        let nth = self.net.taken_up(PRODUCE) + 1;
        let upset = Upset::Restart { node, crash };
        self.net.inject(Fault::on_produce(nth, Effect::Upset { upset, at: Moment::After }));
    }

    fn draw_meddlings(
        &mut self,
        conn: RouteId,
        header: &RequestHeader,
        produce: &ProduceRequest,
    ) -> Vec<(TopicKey, i32, Meddling)> {
        let mut meddled = Vec::new();
        let stormy = self.is_stormy(conn);
        let empty = !stormy && self.draws(Trouble::EmptyReply);
        if empty {
            self.trouble(Trouble::EmptyReply, format_args!("connection {}", conn.0));
        }
        for topic in &produce.topics {
            let Some(index) = self.topic_of_key(&topic.key) else { continue };
            for one in &topic.partitions {
                let Some(attempt) = read_attempt(self.run, index, &one.records) else { continue };
                let by_id = matches!(topic.key, TopicKey::Id(_));
                let version = header.version;
                let lane = lane(index, one.index);
                let meddling = if empty {
                    Some(Meddling::Omit)
                } else if stormy {
                    self.rng.pick(&RETRIABLE).map(|code| Meddling::Refuse { code, named: vec![] })
                } else {
                    self.draw_meddling(conn, lane, &attempt, by_id, version)
                };
                if let Some(meddling) = meddling {
                    self.book.line(
                        self.clock.now,
                        format_args!("{lane}: sequence {}: {meddling:?}", attempt.first),
                    );
                    meddled.push((topic.key.clone(), one.index, meddling));
                }
            }
        }
        meddled
    }

    /// Whether the broker at the other end answers errors only.
    fn is_stormy(&self, conn: RouteId) -> bool {
        let until = self.links.get(&conn).and_then(|link| self.meddler.storms.get(&link.node));
        until.is_some_and(|until| self.clock.now < *until)
    }

    fn draw_meddling(
        &mut self,
        conn: RouteId,
        lane: Lane,
        attempt: &Attempt,
        by_id: bool,
        version: i16,
    ) -> Option<Meddling> {
        let refuse = |code| Some(Meddling::Refuse { code, named: Vec::new() });
        if let Some(spell) = self.meddler.spells.get(&(lane.topic, lane.partition)).copied()
            && self.clock.now < spell.until
        {
            return Some(Meddling::RefuseAt { code: spell.code, log_start: spell.log_start });
        }
        let repeats = self.is_in_log(conn, lane, attempt);
        if repeats && self.draws(Trouble::DuplicateCode) {
            self.trouble(Trouble::DuplicateCode, format_args!("{lane}"));
            return Some(Meddling::Instead { code: 46, offset: false });
        }
        let Attempt { producer_id, epoch, first, content, .. } = *attempt;
        let offers = self.meddler.contents.get(&(lane, producer_id, epoch, first, content));
        let first_offer = offers == Some(&1);
        if first_offer && let Some(step) = self.meddler.next_step((lane.topic, lane.partition)) {
            return self.ambush(lane, attempt, step);
        }
        if first_offer && self.draws(Trouble::ConflictCode) && self.rng.permille(200) {
            self.trouble(Trouble::ConflictCode, format_args!("{lane}"));
            return refuse(46);
        }
        self.draw_refusal(lane, attempt.count, by_id, version).or_else(|| self.draw_after(lane))
    }

    fn ambush(&mut self, lane: Lane, attempt: &Attempt, step: Step) -> Option<Meddling> {
        let doubt = Meddling::Instead { code: 7, offset: true };
        match step {
            Step::Pass => None,
            Step::Doubt => Some(doubt),
            Step::DoubtAndReload => {
                self.trouble(Trouble::ReloadInDoubt, format_args!("{lane}"));
                let after = 4 * self.scenario.latency + 10 * MS;
                self.restart_leader_later(lane, after);
                Some(doubt)
            }
            Step::DoubtAndPurge => {
                // With the batch itself, once it is there.
                self.schedule(2 * MS, Event::Purge(lane));
                Some(doubt)
            }
            Step::Purge => {
                let log_start = self.purge(lane)?;
                let code = self.rng.pick(&[45, 59])?;
                let until = self.clock.now + 2 * SECOND + 40 * self.scenario.latency;
                self.trouble(Trouble::MemorySpell, format_args!("{lane}: {code} until {until}"));
                let spell = Spell { code, until, log_start };
                self.meddler.spells.insert((lane.topic, lane.partition), spell);
                Some(Meddling::RefuseAt { code, log_start })
            }
            // While anything is in doubt a broker does not forget us (A3).
            Step::Forget
                if self.lost_any
                    || self.meddler.doubted.contains(&lane)
                    || attempt.first == self.scenario.origin =>
            {
                None
            }
            Step::Forget => {
                self.trouble(Trouble::Forgotten, format_args!("{lane}"));
                self.meddler.forgotten.insert(lane);
                self.forget(lane, attempt.producer_id);
                Some(Meddling::Refuse { code: 19, named: Vec::new() })
            }
        }
    }

    fn draw_refusal(
        &mut self,
        lane: Lane,
        records: u32,
        by_id: bool,
        version: i16,
    ) -> Option<Meddling> {
        let mut retriable = RETRIABLE.to_vec();
        if by_id {
            retriable.push(UNKNOWN_TOPIC_ID);
        }
        let choices: [(Trouble, &[i16], u32); 9] = [
            (Trouble::RetriableCode, &retriable, 1_000),
            (Trouble::PermanentCode, &PERMANENT, 400),
            (Trouble::TooLargeCode, &[10, 18], 400),
            (Trouble::RecordCode, &[32, 87], 400),
            (Trouble::CorruptCode, &[2], 1_000),
            (Trouble::OutOfOrderCode, &[45], 400),
            (Trouble::UnknownProducerCode, &[59], 300),
            (Trouble::FencedCode, &[47, 90], 300),
            (Trouble::BeforeAppend, &AFTER, 1_000),
        ];
        for (trouble, codes, share) in choices {
            if !self.draws(trouble) || !self.rng.permille(share) {
                continue;
            }
            let code = self.rng.pick(codes)?;
            self.trouble(trouble, format_args!("{lane}: {code}"));
            let names = matches!(code, 32 | 87) && version >= 8 && self.rng.bool();
            let named = if names { self.draw_named(records) } else { Vec::new() };
            return Some(Meddling::Refuse { code, named });
        }
        None
    }

    fn draw_named(&mut self, records: u32) -> Vec<i32> {
        let all = 0..i32::try_from(records).unwrap_or(0);
        let named: Vec<i32> = all.filter(|_| self.rng.bool()).collect();
        if named.is_empty() { vec![0] } else { named }
    }

    fn draw_after(&mut self, lane: Lane) -> Option<Meddling> {
        if self.draws(Trouble::Lie) && self.rng.permille(150) {
            self.trouble(Trouble::Lie, format_args!("{lane}"));
            self.meddler.lied.insert(lane);
            return Some(Meddling::Lie { offset: 0 });
        }
        if self.draws(Trouble::AfterAppend) {
            let code = self.rng.pick(&AFTER)?;
            self.trouble(Trouble::AfterAppend, format_args!("{lane}: {code}"));
            return Some(Meddling::Instead { code, offset: true });
        }
        if self.draws(Trouble::UnknownCode) {
            let code = self.rng.pick(&NOBODY_KNOWS)?;
            self.trouble(Trouble::UnknownCode, format_args!("{lane}: {code}"));
            return Some(Meddling::Instead { code, offset: self.rng.bool() });
        }
        if self.draws(Trouble::MissingEntry) {
            self.trouble(Trouble::MissingEntry, format_args!("{lane}"));
            return Some(Meddling::Omit);
        }
        None
    }

    /// Whether the broker at the other end leads, and its log holds the batch already, so that it can only
    /// be a duplicate.
    fn is_in_log(&self, conn: RouteId, lane: Lane, attempt: &Attempt) -> bool {
        let Some(node) = self.links.get(&conn).map(|link| NodeId(link.node)) else { return false };
        let Some(plan) = self.scenario.topics.get(lane.topic as usize) else { return false };
        let Ok(index) = usize::try_from(lane.partition) else { return false };
        let Some(partition) = self.net.cluster().partition(&plan.name, index) else { return false };
        let known = partition.known(node, attempt.producer_id);
        partition.believes_to_lead(node)
            && known.is_some_and(|known| {
                known.epoch() == attempt.epoch
                    && known.batches().iter().any(|batch| batch.first == attempt.first)
            })
    }
}

/// Answers.
impl<R: Rules> World<R> {
    /// An answer sets out; `None` if it is lost at once.
    pub(super) fn meddle_answer(
        &mut self,
        conn: RouteId,
        asked: &Asked,
        frame: Vec<u8>,
    ) -> Option<(Vec<u8>, Delivered)> {
        if self.draws(Trouble::LostReply) {
            self.trouble(Trouble::LostReply, format_args!("connection {}", conn.0));
            if let Some(link) = self.links.get_mut(&conn) {
                link.out_of_turn = true;
            }
            return None;
        }
        let (frame, tells) = match asked.header.api {
            PRODUCE => {
                let order = self.draw_order(conn);
                let mut asked = asked.clone();
                self.lie_of_the_settled(conn, &mut asked);
                rewrite(&asked, frame, self.draw_throttle(conn), order)
            }
            METADATA => self.meddle_metadata(asked, frame),
            INIT_PRODUCER_ID => (self.meddle_producer_id(asked, frame), Delivered::Other),
            API_VERSIONS => (self.meddle_greeting(asked, frame), Delivered::Other),
            _ => (frame, Delivered::Other),
        };
        if self.draws(Trouble::GarbledReply) && frame.len() > 16 {
            self.trouble(Trouble::GarbledReply, format_args!("connection {}", conn.0));
            return Some((garbled(&frame, self.rng.usize(1..8)), Delivered::Garbled));
        }
        // Behind a lost answer every other comes out of turn, and means nothing.
        let out_of_turn = self.links.get(&conn).is_some_and(|link| link.out_of_turn);
        Some((frame, if out_of_turn { Delivered::Garbled } else { tells }))
    }

    /// A second 0 for a batch names another offset than the first: who hears both has to notice (S13).
    fn lie_of_the_settled(&mut self, conn: RouteId, asked: &mut Asked) {
        if !(self.rough && self.scenario.has(Trouble::Lie)) {
            return;
        }
        let Some(link) = self.links.get(&conn) else { return };
        let settled = |offered: &&Offered| {
            let first = offered.records.first().and_then(|record| usize::try_from(*record).ok());
            let page = first.and_then(|record| self.book.pages.get(record));
            let said = page.and_then(|page| page.resolved.or(page.said));
            matches!(said, Some(Said::Delivered(_)))
        };
        let mine = link.offered.iter().filter(|one| one.correlation == asked.header.correlation);
        let lanes: Vec<Lane> = mine.filter(settled).map(|offered| offered.lane).collect();
        for lane in lanes {
            if !self.befalls(Trouble::Lie) {
                continue;
            }
            self.trouble(Trouble::Lie, format_args!("{lane}"));
            self.meddler.lied.insert(lane);
            let ids = self.ids.iter().filter(|(_, topic)| **topic == lane.topic);
            let names = self.scenario.topics.get(lane.topic as usize).map(|plan| &plan.name);
            let keys = ids.map(|(id, _)| TopicKey::Id(*id));
            let keys = keys.chain(names.map(|name| TopicKey::Name(name.clone())));
            let lie = Meddling::Lie { offset: 1_000_000 };
            asked.meddled.extend(keys.map(|key| (key, lane.partition, lie.clone())));
        }
    }

    /// A broker may answer partitions in any order.
    fn draw_order(&mut self, conn: RouteId) -> Order {
        if !self.draws(Trouble::ShuffledReply) {
            return Order::AsAsked;
        }
        self.trouble(Trouble::ShuffledReply, format_args!("connection {}", conn.0));
        Order::Reversed
    }

    /// For how long the broker wants silence, in milliseconds.
    fn draw_throttle(&mut self, conn: RouteId) -> i32 {
        if self.draws(Trouble::LongThrottle) && self.rng.permille(200) {
            self.trouble(Trouble::LongThrottle, format_args!("connection {}", conn.0));
            if let Some(link) = self.links.get_mut(&conn) {
                link.silenced = true;
            }
            return i32::MAX;
        }
        if !self.draws(Trouble::Throttle) {
            return 0;
        }
        let longest = self.scenario.request_timeout / MS;
        let milliseconds = self.rng.u64(1..=longest);
        self.trouble(Trouble::Throttle, format_args!("connection {}: {milliseconds} ms", conn.0));
        milliseconds as i32
    }

    /// Connections that are throttled for weeks end at last: brokers are restarted, quotas changed.
    pub(super) fn end_long_silences(&mut self) {
        let silenced: Vec<RouteId> =
            self.links.values().filter(|link| link.silenced).map(|link| link.conn).collect();
        silenced.into_iter().for_each(|conn| self.schedule(0, Event::End(conn)));
    }

    fn meddle_metadata(&mut self, asked: &Asked, frame: Vec<u8>) -> (Vec<u8>, Delivered) {
        let bytes = Bytes::from(frame);
        let Some(mut metadata) = asked.header.read_answer(&bytes, MetadataResponse::decode) else {
            let text = "the model's own Metadata answer cannot be read".to_owned();
            self.book.complain(self.clock.now, Class::Corrupt, None, text);
            return (bytes.to_vec(), Delivered::Other);
        };
        let fresh = metadata.topics.clone();
        self.spoil_metadata(&mut metadata);
        for topic in fresh {
            let Some(name) = topic.name.clone().filter(|_| topic.error == 0) else { continue };
            let before = self.meddler.old.entry(name).or_default();
            if before.last() != Some(&topic) {
                before.push(topic);
            }
        }
        let body = metadata.encode(asked.header.version);
        (asked.header.answer(&body), Delivered::Metadata(metadata))
    }

    fn spoil_metadata(&mut self, metadata: &mut MetadataResponse) {
        if self.draws(Trouble::StaleMetadata) {
            self.trouble(Trouble::StaleMetadata, format_args!(""));
            for topic in &mut metadata.topics {
                let before = topic.name.as_ref().and_then(|name| self.meddler.old.get(name));
                let Some(before) = before else { continue };
                if !before.is_empty() {
                    *topic = before[self.rng.usize(0..before.len())].clone();
                }
            }
        }
        if self.draws(Trouble::EmptyMetadata) {
            self.trouble(Trouble::EmptyMetadata, format_args!(""));
            match self.rng.u32(0..3) {
                0 => metadata.topics.clear(),
                1 => metadata.brokers.truncate(1),
                _ => metadata.topics.iter_mut().for_each(|topic| topic.partitions.clear()),
            }
        }
        if self.draws(Trouble::LeaderlessMetadata) {
            self.trouble(Trouble::LeaderlessMetadata, format_args!(""));
            let partitions = metadata.topics.iter_mut().flat_map(|topic| &mut topic.partitions);
            for partition in partitions.filter(|_| self.rng.bool()) {
                (partition.leader, partition.error) = (-1, 5);
            }
        }
        if self.draws(Trouble::RefusedMetadata) {
            let Some(code) = self.rng.pick(&[3, 5, 29, 17]) else { return };
            self.trouble(Trouble::RefusedMetadata, format_args!("{code}"));
            for topic in &mut metadata.topics {
                topic.error = code;
                topic.partitions.clear();
            }
        }
    }

    fn meddle_producer_id(&mut self, asked: &Asked, frame: Vec<u8>) -> Vec<u8> {
        if !self.draws(Trouble::NoProducerId) {
            return frame;
        }
        let Some(error) = self.rng.pick(&[14, 15, 16, 31, 42, 53, -1, 999]) else { return frame };
        self.trouble(Trouble::NoProducerId, format_args!("{error}"));
        let refused = InitProducerIdResponse { error, producer_id: -1, producer_epoch: -1 };
        asked.header.answer(&refused.encode(asked.header.version))
    }

    fn meddle_greeting(&mut self, asked: &Asked, frame: Vec<u8>) -> Vec<u8> {
        if asked.header.version > 0 && self.draws(Trouble::OldGreeting) {
            self.trouble(Trouble::OldGreeting, format_args!(""));
            let highest = self.rng.i16(0..asked.header.version);
            return asked.header.answer(&ApiVersionsResponse::fallback(highest).encode(0));
        }
        if self.draws(Trouble::GreetingRefused) {
            self.trouble(Trouble::GreetingRefused, format_args!(""));
            let refused = ApiVersionsResponse::refused(42).encode(asked.header.version);
            return asked.header.answer(&refused);
        }
        frame
    }
}

/// The frame without its last bytes: no answer can do without them.
fn garbled(frame: &[u8], cut: usize) -> Vec<u8> {
    let length = frame.len().saturating_sub(4 + cut);
    let mut short = (length as u32).to_be_bytes().to_vec();
    short.extend_from_slice(frame.get(4..4 + length).unwrap_or_default());
    short
}
