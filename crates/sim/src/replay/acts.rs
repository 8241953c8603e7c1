//! The steps of a scenario, done.

use candor_core::rules::Rules;
use candor_core::{RouteId, Span};
use candor_proto::{Handed, Input, Loss, Record};

use super::book::body;
use super::run::{Mismatch, mismatch};
use super::script::{Answer, Blow, Condition, Meta, Out, Piece, Send, Step, Tick, Vouched};
use super::words::{briefly, range_text};
use super::world::{Side, World};
use crate::judge::Fact;
use crate::serve::Upset;

type Done = Result<(), Mismatch>;

/// Longest that `tick until` waits.
const LONGEST: Span = Span::from_secs(600);

impl<R: Rules> World<R> {
    /// Does one step.
    pub(super) fn act(&mut self, step: &Step) -> Done {
        match step {
            Step::Send(send) => self.send(send)?,
            Step::Cancel(names) => self.cancel(names)?,
            Step::Flush(name) => {
                let id = self.producer.flush(self.now);
                self.flushes.insert(name.clone(), id);
            }
            Step::Close(after) => self.close(*after),
            Step::Out(out) => return self.claim(out),
            Step::NoOut(broker) => return self.nothing_out(broker.as_deref()),
            Step::Answer(answer) => self.reply(answer)?,
            Step::Append { broker } => {
                let conn = self.asking(broker)?;
                if !self.give(conn) {
                    return mismatch("a request that was not handled yet", "it was");
                }
                self.happened(format!("{broker} appends"));
            }
            Step::Frame { broker, pieces } => self.frame(broker, pieces)?,
            Step::End { broker, stored, vouched } => self.cut(broker, *stored, *vouched)?,
            Step::Condition { broker, condition } => self.become_so(broker, *condition),
            Step::Meta(meta) => self.change(meta)?,
            Step::Id(what) => match &mut self.side {
                Side::Scripted(scripted) => scripted.will_give(*what),
                Side::Modelled(_) => return only("scripted"),
            },
            Step::Blow(blow) => self.blow(blow)?,
            Step::Auto(auto) => {
                if matches!(self.side, Side::Scripted(_)) {
                    return only("modelled");
                }
                self.auto = *auto;
            }
            Step::Tick(tick) => return self.tick(tick),
            Step::Expect(expect) => return self.expect(expect),
            Step::Never(never) => self.offers.nevers.push(never.clone()),
        }
        self.settle();
        Ok(())
    }

    fn send(&mut self, send: &Send) -> Done {
        let mut accepted = Vec::new();
        for name in &send.names {
            let mut record = Record::to(send.topic.clone());
            if let Some(partition) = send.partition {
                record = record.partition(partition);
            }
            if let Some(key) = &send.key {
                record = record.key(key.clone());
            }
            if let Some(value) = body(name, send.body) {
                record = record.value(value);
            }
            for (header, value) in &send.headers {
                record = match value {
                    Some(value) => record.header(header.clone(), value.clone()),
                    None => record.header_null(header.clone()),
                };
            }
            if let Some(stamp) = send.timestamp {
                record = record.timestamp(stamp);
            }
            if let Some(deadline) = send.deadline {
                record = record.deadline(std::time::Duration::from_micros(deadline.as_micros()));
            }
            let due = self.producer.deadline_of(self.now, &record);
            if !self.book.intend(self.now, name, send, due) {
                return mismatch("a name that is not taken", name);
            }
            match (self.producer.append(self.now, self.now, record), &send.refused) {
                (Ok(ticket), None) => {
                    self.book.accepted(self.now, name, ticket);
                    accepted.push(name.clone());
                }
                (Ok(_), Some(why)) => {
                    return mismatch(&format!("{name} refused: {why}"), "it was accepted");
                }
                (Err(refused), wanted) => {
                    let why = super::wants::ident(&refused.why);
                    if wanted.as_ref() != Some(&why) {
                        let wanted = wanted.as_deref().unwrap_or("accepted");
                        return mismatch(&format!("{name} {wanted}"), &format!("refused: {why}"));
                    }
                    self.book.refused(self.now, name);
                    self.happened(format!("{name} is refused: {why}"));
                }
            }
        }
        if !accepted.is_empty() {
            let lane = match send.partition {
                Some(partition) => format!("{}-{partition}", send.topic),
                None => send.topic.clone(),
            };
            let records = briefly(&accepted);
            self.book.tell(self.now, crate::timeline::What::Sent { lane, records });
        }
        Ok(())
    }

    fn cancel(&mut self, names: &[String]) -> Done {
        for name in names {
            let ticket = self.book.find(name).and_then(|sheet| sheet.ticket);
            let Some(ticket) = ticket else {
                return mismatch("a record that was sent", name);
            };
            self.book.cancelled(self.now, name);
            self.producer.cancel(self.now, ticket);
        }
        self.happened(format!("{} cancelled", briefly(names)));
        Ok(())
    }

    pub(super) fn close(&mut self, after: Span) {
        let due = self.now + after;
        self.book.fact(self.now, Fact::Closing { producer: 0, due: due.as_micros() });
        self.happened("close".to_owned());
        self.producer.close(self.now, due);
    }

    /// The next offer to a partition that no step named yet must be this one.
    fn claim(&mut self, out: &Out) -> Done {
        let next = |one: &&mut super::offers::Offered| !one.claimed && one.place == out.place;
        let wanted = out.to_string();
        let Some(offered) = self.offers.all.iter_mut().find(next) else {
            return mismatch(&wanted, "nothing was offered to that partition");
        };
        offered.claimed = true;
        let found = (&offered.broker, offered.range) == (&out.broker, out.range)
            && out.epoch.is_none_or(|epoch| epoch == offered.epoch)
            && out.pid.is_none_or(|pid| pid == offered.pid)
            && out.version.is_none_or(|version| version == offered.version);
        let names = self.book.names(&offered.records);
        let came = format!(
            "{offered} {} version {} bytes {}",
            briefly(&names),
            offered.version,
            offered.bytes
        );
        let carries = out.names.as_ref().is_none_or(|wanted| *wanted == names);
        let fits = out.at_most.is_none_or(|most| offered.bytes <= most);
        if found && carries && fits { Ok(()) } else { mismatch(&wanted, &came) }
    }

    pub(super) fn nothing_out(&self, broker: Option<&str>) -> Done {
        let loose = |one: &&super::offers::Offered| {
            !one.claimed && broker.is_none_or(|broker| one.broker == broker)
        };
        match self.offers.all.iter().find(loose) {
            None => Ok(()),
            Some(offered) => {
                let names = briefly(&self.book.names(&offered.records));
                mismatch("nothing more offered", &format!("{offered} {names}"))
            }
        }
    }

    /// The connection on which a broker owes the oldest answer to a Produce request.
    fn asking(&self, broker: &str) -> Result<RouteId, Mismatch> {
        let owes = self
            .links
            .iter()
            .filter(|(_, link)| link.host == broker)
            .find(|(_, link)| link.queue.front().is_some_and(super::link::Pending::is_produce));
        match owes {
            Some((conn, _)) => Ok(*conn),
            None => mismatch(&format!("a Produce request open at {broker}"), "there is none")
                .map(|()| RouteId(0)),
        }
    }

    fn reply(&mut self, answer: &Answer) -> Done {
        let conn = self.asking(&answer.broker)?;
        let Some(pending) = self.links.get(&conn).and_then(|link| link.queue.front()) else {
            return Ok(());
        };
        let frame = match &answer.parts {
            Some(parts) => {
                let scripted = match &self.side {
                    Side::Scripted(scripted) => Some(scripted),
                    Side::Modelled(_) => None,
                };
                if scripted.is_none() && parts.iter().any(|part| part.code == 0) {
                    return mismatch("`in A stored`", "a model broker's ok comes from its log");
                }
                let frame = super::answers::make(pending, &self.offers, scripted, answer, parts);
                for (place, (_, epoch)) in
                    parts.iter().filter_map(|part| Some((part.place.clone(), part.hint.as_ref()?)))
                {
                    let told = self.offers.told.entry(place.unwrap_or_default()).or_insert(-1);
                    *told = (*told).max(*epoch);
                }
                frame
            }
            None => {
                if matches!(self.side, Side::Scripted(_)) {
                    return only("modelled");
                }
                self.give(conn);
                let kept = self.links.get_mut(&conn).and_then(|link| link.queue.front_mut());
                match kept.and_then(|pending| pending.kept.take()) {
                    Some(frame) => frame,
                    None => return mismatch("an answer of the model", "it does not answer yet"),
                }
            }
        };
        self.answer(conn, frame);
        Ok(())
    }

    /// Bytes written by hand; if they are no answer, the request stays open for the broker.
    fn frame(&mut self, broker: &str, pieces: &[Piece]) -> Done {
        let conn = self.asking(broker)?;
        let front = self.links.get(&conn).and_then(|link| link.queue.front());
        let correlation = front.map_or(0, |pending| pending.header.correlation);
        let mut bytes = Vec::new();
        for piece in pieces {
            match piece {
                Piece::Byte(byte) => bytes.push(*byte),
                Piece::Correlation => bytes.extend_from_slice(&correlation.to_be_bytes()),
            }
        }
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let frame = [&length.to_be_bytes()[..], &bytes].concat();
        self.happened(format!("{broker} answers with {} strange bytes", bytes.len()));
        self.input(Input::Received { conn, bytes: frame.into() });
        Ok(())
    }

    fn cut(&mut self, broker: &str, stored: bool, vouched: Vouched) -> Done {
        let to = |(_, link): &(&RouteId, &super::link::Link)| link.host == broker;
        let conns: Vec<RouteId> = self.links.iter().filter(to).map(|(conn, _)| *conn).collect();
        if conns.is_empty() {
            return mismatch(&format!("a connection to {broker}"), "there is none");
        }
        let how = if stored { " behind the append" } else { "" };
        self.happened(format!("eof {broker}{how}"));
        for conn in conns {
            if stored {
                self.store_all(conn);
            }
            let handed = match vouched {
                Vouched::WhatWasTaken => None,
                Vouched::Nothing => Some(Handed::Unknown),
            };
            self.lose(conn, handed, Loss::Broken);
        }
        Ok(())
    }

    /// The model acts upon everything that it got on a connection; nobody hears of it.
    fn store_all(&mut self, conn: RouteId) {
        let Some(link) = self.links.get(&conn) else { return };
        let frames: Vec<_> =
            link.queue.iter().filter(|one| !one.given).map(|one| one.frame.clone()).collect();
        let Some(id) = link.net else { return };
        if let Side::Modelled(net) = &mut self.side {
            for frame in frames {
                net.receive(self.now.as_micros(), id, &frame);
            }
        }
    }

    fn become_so(&mut self, broker: &str, condition: Condition) {
        self.happened(match condition {
            Condition::Up => format!("{broker} is well"),
            Condition::Down => format!("{broker} refuses connections"),
            Condition::Hung => format!("{broker} lets connections hang"),
            Condition::Mute => format!("{broker} says nothing"),
            Condition::Stuck(bytes) => format!("the transport to {broker} takes {bytes} bytes"),
        });
        self.conditions.insert(broker.to_owned(), condition);
        let room = match condition {
            Condition::Up => None,
            Condition::Stuck(room) => Some(room),
            Condition::Down | Condition::Hung | Condition::Mute => return,
        };
        for link in self.links.values_mut().filter(|link| link.host == broker) {
            link.room = room;
        }
    }

    fn change(&mut self, meta: &Meta) -> Done {
        self.happened(meta.to_string());
        let Side::Scripted(scripted) = &mut self.side else { return only("scripted") };
        if let Err(why) = scripted.change(meta) {
            return mismatch("metadata that can be", &why);
        }
        self.learn_ids();
        Ok(())
    }

    fn blow(&mut self, blow: &Blow) -> Done {
        self.happened(blow.to_string());
        let now = self.now.as_micros();
        let node = |world: &Self, name: &str| -> u8 {
            let at = world.setup.names.iter().position(|one| one == name).unwrap_or(0);
            u8::try_from(at + 1).unwrap_or(u8::MAX)
        };
        let upset = match blow {
            Blow::Move { place, broker } => Upset::MoveLeader {
                topic: place.topic.clone(),
                partition: place.partition,
                to: node(self, broker),
            },
            Blow::Forget { place } => {
                Upset::ForgetProducers { topic: place.topic.clone(), partition: place.partition }
            }
            Blow::Recreate { topic } => {
                self.excuse_all(topic);
                Upset::RecreateTopic { topic: topic.clone() }
            }
            Blow::Restart { broker, crash } => {
                Upset::Restart { node: node(self, broker), crash: *crash }
            }
            Blow::Stop { broker, crash } => Upset::Stop { node: node(self, broker), crash: *crash },
            Blow::Start { broker } => {
                let node = node(self, broker);
                let Side::Modelled(net) = &mut self.side else { return only("modelled") };
                net.start_node(now, node);
                return Ok(());
            }
            Blow::Purge { place, before } => return self.purge(place, *before),
        };
        let Side::Modelled(net) = &mut self.side else { return only("modelled") };
        net.upset(now, &upset);
        self.learn_ids();
        Ok(())
    }

    /// Everything that the log of a topic held is gone.
    fn excuse_all(&mut self, name: &str) {
        let partitions = self.setup.topics.iter().find(|plan| plan.name == name);
        let partitions = partitions.map_or(0, |plan| plan.partitions);
        let topic = self.book.topic(name);
        for partition in (0..).take(partitions) {
            self.excuses.push(super::trial::made_anew(topic, partition));
        }
    }

    fn purge(&mut self, place: &super::words::Place, before: i64) -> Done {
        let topic = self.book.topic(&place.topic);
        self.excuses.push(super::trial::deleted(topic, place.partition, before));
        let Side::Modelled(net) = &mut self.side else { return only("modelled") };
        let index = usize::try_from(place.partition).unwrap_or(usize::MAX);
        let partition = net.cluster_mut().partition_mut(&place.topic, index);
        match partition.map(|partition| partition.delete_records(before)) {
            Some(Ok(())) => Ok(()),
            Some(Err(why)) => mismatch("records deleted", &format!("{why:?}")),
            None => mismatch("a partition", &format!("there is no {place}")),
        }
    }

    fn tick(&mut self, tick: &Tick) -> Done {
        match tick {
            Tick::For(span) => {
                self.run(*span);
                Ok(())
            }
            Tick::Next => match self.next() {
                Some(at) => {
                    self.step(at);
                    Ok(())
                }
                None => mismatch("something to come", "nothing is to come"),
            },
            Tick::UntilOut(broker) => {
                let waits = |world: &Self| world.nothing_out(Some(broker)).is_ok();
                self.tick_while(waits, &format!("an offer to {broker}"))
            }
            Tick::UntilTold(names) => {
                let waits = |world: &Self| {
                    let told = |name: &String| world.book.find(name)?.verdict;
                    names.iter().any(|name| told(name).is_none())
                };
                self.tick_while(waits, &format!("verdicts of {}", briefly(names)))
            }
        }
    }

    fn tick_while(&mut self, waits: impl Fn(&Self) -> bool, wanted: &str) -> Done {
        let limit = self.now + LONGEST;
        while waits(self) {
            if !self.step(limit) {
                return mismatch(wanted, "none in ten minutes");
            }
        }
        Ok(())
    }
}

fn only(kind: &str) -> Done {
    mismatch(&format!("{kind} brokers for this step"), "they are not")
}

impl std::fmt::Display for Out {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "out {} {} {}", self.broker, self.place, range_text(self.range))?;
        if let Some(epoch) = self.epoch {
            write!(f, " e{epoch}")?;
        }
        if let Some(pid) = self.pid {
            write!(f, " pid {pid}")?;
        }
        if let Some(names) = &self.names {
            write!(f, " {}", briefly(names))?;
        }
        if let Some(version) = self.version {
            write!(f, " version {version}")?;
        }
        match self.at_most {
            Some(bytes) => write!(f, " bytes up to {bytes}"),
            None => Ok(()),
        }
    }
}

impl std::fmt::Display for Meta {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Leader { place, broker: Some(broker), epoch: None } => {
                write!(f, "{broker} leads {place}")
            }
            Self::Leader { place, broker: Some(broker), epoch: Some(epoch) } => {
                write!(f, "{broker} leads {place} in epoch {epoch}")
            }
            Self::Leader { place, broker: None, .. } => write!(f, "nobody leads {place}"),
            Self::Missing { topic } => write!(f, "brokers do not know {topic}"),
            Self::Refused { topic, code } => write!(f, "brokers refuse {topic} with {code}"),
            Self::Back { topic } => write!(f, "brokers know {topic} again"),
            Self::Renewed { topic } => write!(f, "{topic} was deleted and made anew"),
            Self::Grown { topic, partitions } => write!(f, "{topic} has {partitions} partitions"),
            Self::Rebootstrap => f.write_str("brokers ask to start from the seeds"),
            Self::Usual => f.write_str("brokers answer as usual"),
        }
    }
}

impl std::fmt::Display for Blow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let how = |crash: &bool| if *crash { "crashes" } else { "goes down in good order" };
        match self {
            Self::Move { place, broker } => write!(f, "{broker} leads {place}"),
            Self::Forget { place } => write!(f, "{place} forgets all producers"),
            Self::Purge { place, before } => write!(f, "{place} loses what is before {before}"),
            Self::Recreate { topic } => write!(f, "{topic} is deleted and made anew"),
            Self::Restart { broker, crash } => write!(f, "{broker} {} and comes back", how(crash)),
            Self::Stop { broker, crash } => write!(f, "{broker} {}", how(crash)),
            Self::Start { broker } => write!(f, "{broker} comes back"),
        }
    }
}
