//! The world of one trace: a lane, virtual time, and the words that a trace is written in.
//!
//! A trace is a title and steps, separated by `|` or line ends; `#` starts a comment. Records have
//! names in small letters, attempts start with a capital. Before a step that does something,
//! everything that the lane told must have been named.
//!
//! ```text
//! start s=5 [epoch=] [OPTIONS]    a lane at sequence 5 whose gate a batch opened (@99, r1, e0)
//! fresh [OPTIONS]                 a new lane; OPTIONS: loss=stop beyond=resend trust batch=4
//! append a b [c:1s] [ts=-25h]     one batch; deadline after the colon (120 s), record time ago
//! offer B1 e0 s5 a b [live=1s]    the lane offers exactly this; earliest deadline of a live record
//! replace C e0 s5 a b [live=1s]   the same, in the place of others (C)
//! silent                          the lane offers nothing
//! B1 0@100 | B1 19 [log=8] [stamped] [errors=0,2]    an answer; B1 missing: none in the response
//! B1 lost | B1 partly | B1 sent   connection over, the frame whole or not; all bytes handed over
//! leader r2 e1 | leader none | confirm | id 2 | cancel a | revoke a | recreated | shed | abandon
//! refuses STEP                    the step is misuse
//! wait 1s | backoff               time passes; until the end of a backoff, and nothing else
//! says a b Delivered@100 | resolves a Never Expired | notice Fence@101 | wants leader
//! why a Gate | idle
//! ```

use std::collections::{BTreeMap, VecDeque};

use candor_core::rules::Rules;
use candor_core::testing::{Counted, Preset};
use candor_core::{
    Action, Answer, Append, AttemptId, Deadline, Doubt, Event, HandedOver, Identity, Instant, Lane,
    LaneConfig, LeaderEpoch, Offer, Offset, PartitionResponse, Resolution, RouteId, Sequence,
    Settled, Span, Ticket, Verdict, Wakeup,
};

use crate::words::{
    Step, config, delivered, identity, not_delivered, notice_text, number, prefixed, same, span,
    value,
};

/// Runs a trace.
pub(crate) fn replay<R: Rules>(trace: &str) -> Step {
    let (title, steps) = trace.split_once('\n').unwrap_or((trace, ""));
    let mut world = World::<R>::new();
    let done = world.run(steps).and_then(|()| world.nothing_left());
    done.map_err(|error| format!("{title}\n  {}\n  FAILED: {error}", world.history.join("\n  ")))
}

struct World<R: Rules> {
    lane: Lane<Counted, R>,
    config: LaneConfig,
    now: Instant,
    /// A record's ticket and its number are its place in here.
    names: Vec<String>,
    route: Option<RouteId>,
    epoch: LeaderEpoch,
    id: i64,
    attempts: BTreeMap<String, AttemptId>,
    /// What the lane said of where a record was last offered, for the facts of a doubt.
    offered: BTreeMap<Ticket, Doubt>,
    told: VecDeque<String>,
    history: Vec<String>,
}

impl<R: Rules> World<R> {
    fn new() -> Self {
        let now = Instant::from_millis(1_700_000_000_000);
        Self {
            lane: Lane::new(LaneConfig::default(), now),
            config: LaneConfig::default(),
            now,
            names: Vec::new(),
            route: None,
            epoch: LeaderEpoch(0),
            id: 1,
            attempts: BTreeMap::new(),
            offered: BTreeMap::new(),
            told: VecDeque::new(),
            history: Vec::new(),
        }
    }

    fn run(&mut self, steps: &str) -> Step {
        for line in steps.lines() {
            let line = line.split('#').next().unwrap_or_default();
            for step in line.split('|').map(str::trim).filter(|step| !step.is_empty()) {
                self.history.push(step.to_owned());
                let words: Vec<&str> = step.split_whitespace().collect();
                self.step(words[0], &words[1..]).map_err(|error| format!("{step}: {error}"))?;
            }
        }
        Ok(())
    }

    fn step(&mut self, verb: &str, words: &[&str]) -> Step {
        match verb {
            "says" | "resolves" | "notice" | "wants" => return self.expect(verb, words),
            _ => self.nothing_left()?,
        }
        match verb {
            "start" => self.start(words),
            "fresh" => self.fresh(words),
            "offer" => self.offer(words, false),
            "replace" => self.offer(words, true),
            "silent" => self.silent(),
            "wait" => self.wait_until(self.now + span(words[0])?),
            "backoff" => self.backoff(),
            "refuses" => match self.tell(words[0], &words[1..]) {
                Ok(()) => Err("was taken".to_owned()),
                Err(_) => Ok(()),
            },
            "why" => {
                let why = format!("{:?}", self.lane.why(self.ticket(words[0])?));
                same(why.split(' ').next().unwrap_or_default(), words[1])
            }
            "idle" if self.lane.is_idle() => Ok(()),
            "idle" => Err("not idle".to_owned()),
            _ => self.tell(verb, words),
        }
    }

    fn nothing_left(&self) -> Step {
        match self.told.is_empty() {
            true => Ok(()),
            false => Err(format!("not named: {:?}", self.told)),
        }
    }

    // ---- Beginning -------------------------------------------------------------------------------

    fn fresh(&mut self, words: &[&str]) -> Step {
        self.config = config(words)?;
        self.lane = Lane::new(self.config.clone(), self.now);
        Ok(())
    }

    /// In the middle of an epoch, with a batch acknowledged at offset 99 just now.
    fn start(&mut self, words: &[&str]) -> Step {
        self.config = config(words)?;
        let next = number(value(words, "s").ok_or("s= is missing")?)? - 1;
        let epoch = number(value(words, "epoch").unwrap_or("0"))?;
        let preset = Preset {
            identity: identity(self.id, epoch)?,
            next: Sequence::new(next as i32).ok_or("no such sequence")?,
            last_acknowledged: Offset::new(98).ok_or("no such offset")?,
        };
        self.lane = Lane::preset(self.config.clone(), self.now, preset);
        self.run(&format!(
            "append opener | leader r1 e0 | offer Opener e{epoch} s{next} opener
             Opener 0@99 | says opener Delivered@99"
        ))
    }

    // ---- Telling the lane ------------------------------------------------------------------------

    fn tell(&mut self, verb: &str, words: &[&str]) -> Step {
        match verb {
            "append" => return self.append(words),
            "leader" => self.move_leader(words)?,
            "id" => self.id = number(words[0])?,
            _ => {}
        }
        let event = match verb {
            "leader" => Event::Leader { route: self.route, epoch: self.epoch },
            "confirm" => Event::LeaderConfirmed { epoch: self.epoch },
            "id" => Event::Identity(identity(self.id, 0)?),
            "cancel" => Event::Cancel(self.ticket(words[0])?),
            "revoke" => Event::Revoke(self.ticket(words[0])?),
            "abandon" => Event::Abandon,
            "recreated" => Event::TopicRecreated,
            "shed" => Event::Shed,
            name => self.answer(name, words)?,
        };
        self.handle(event)
    }

    fn handle(&mut self, event: Event<'_, Counted>) -> Step {
        self.lane.handle(self.now, event).map_err(|misuse| misuse.to_string())?;
        self.poll()
    }

    fn move_leader(&mut self, words: &[&str]) -> Step {
        self.route = match words[0] {
            "none" => None,
            route => Some(RouteId(number(prefixed(route, "r")?)? as u64)),
        };
        if let Some(epoch) = words.get(1) {
            self.epoch = LeaderEpoch(number(prefixed(epoch, "e")?)? as i32);
        }
        Ok(())
    }

    fn append(&mut self, words: &[&str]) -> Step {
        let ago = value(words, "ts").map_or(Ok(Span::ZERO), |ts| span(prefixed(ts, "-")?))?;
        let timestamp = self.now.as_millis() - ago.as_millis() as i64;
        for word in words.iter().filter(|word| !word.contains('=')) {
            let (name, time) = word.split_once(':').unwrap_or((word, "120s"));
            let number = self.names.len();
            let append = Append {
                ticket: Ticket(number as u64),
                born: self.now,
                deadline: self.now + span(time)?,
                timestamp,
                record: number as u16,
            };
            self.handle(Event::Append(append))?;
            self.names.push(name.to_owned());
        }
        self.handle(Event::Flush)
    }

    fn answer(&self, name: &str, words: &[&str]) -> Step<Event<'static, Counted>> {
        let attempt = *self.attempts.get(name).ok_or("no such step or attempt")?;
        Ok(match words[0] {
            "sent" => Event::Handed { attempt },
            "lost" => Event::Ended { attempt, handed: HandedOver::PerhapsWhole },
            "partly" => Event::Ended { attempt, handed: HandedOver::Partly },
            "missing" => Event::Answered { attempt, answer: Answer::Missing },
            code => Event::Answered { attempt, answer: self.response(code, words)?.into() },
        })
    }

    fn response(&self, code: &str, words: &[&str]) -> Step<PartitionResponse> {
        let (code, base) = code.split_once('@').unwrap_or((code, "-1"));
        let (code, base) = (number(code)? as i16, number(base)?);
        let plain = match code {
            0 => PartitionResponse::appended(base),
            _ => PartitionResponse { base_offset: base, ..PartitionResponse::error(code) },
        };
        let log_start = value(words, "log").map_or(Ok(plain.log_start_offset), number)?;
        let stamped = words.contains(&"stamped");
        let errors = value(words, "errors").map_or(Vec::new(), |list| list.split(',').collect());
        Ok(PartitionResponse {
            log_start_offset: log_start,
            log_append_time: if stamped { self.now.as_millis() } else { plain.log_append_time },
            record_errors: errors
                .iter()
                .map(|index| Ok(number(index)? as u32))
                .collect::<Step<_>>()?,
            ..plain
        })
    }

    // ---- Offers and time -------------------------------------------------------------------------

    fn next_offer(&mut self) -> Step<Option<Offer<Counted>>> {
        let offerable = self.lane.offerable(self.now);
        let route = self.route.unwrap_or(RouteId(0));
        let offer = self.lane.offer(self.now, route, usize::MAX);
        match offer.is_some() == offerable {
            true => Ok(offer),
            false => Err(format!("offerable is {offerable}, but offer gives {offer:?}")),
        }
    }

    fn offer(&mut self, words: &[&str], replacement: bool) -> Step {
        let Some(offer) = self.next_offer()? else { return Err("nothing is offered".to_owned()) };
        let Identity { id, epoch } = offer.identity;
        let records = offer.batch.records();
        let names: Vec<_> = records.iter().map(|&record| self.name(record)).collect();
        let came =
            format!("id{} e{} s{} {}", id.get(), epoch.get(), offer.first.get(), names.join(" "));
        let wanted: Vec<_> =
            words[1..].iter().filter(|word| !word.contains('=')).copied().collect();
        same(&came, &format!("id{} {}", self.id, wanted.join(" ")))?;
        same(&format!("replaces: {}", offer.replacement), &format!("replaces: {replacement}"))?;
        if let Some(live) = value(words, "live") {
            let live = if live == "none" { None } else { Some(self.now + span(live)?) };
            same(&format!("{:?}", offer.earliest_deadline), &format!("{live:?}"))?;
        }
        for (index, record) in records.iter().enumerate() {
            let facts = Doubt {
                identity: offer.identity,
                first: offer.first,
                count: records.len() as u32,
                index: index as u32,
                last_acknowledged: None,
            };
            let known = self.offered.entry(Ticket(u64::from(*record))).or_insert(facts);
            if !replacement {
                // What stands in a batch and in its replacement is told of as part of the batch.
                *known = facts;
            }
        }
        self.attempts.insert(words[0].to_owned(), offer.attempt);
        Ok(())
    }

    fn silent(&mut self) -> Step {
        match self.next_offer()? {
            None => Ok(()),
            Some(offer) => Err(format!("offers {offer:?}")),
        }
    }

    /// Wakes the lane whenever it wants to be woken; it must not want that twice at one time (L3).
    fn wait_until(&mut self, end: Instant) -> Step {
        while let Some(deadline) = self.lane.deadline().filter(|deadline| deadline.at < end) {
            if deadline.at <= self.now {
                return Err(format!("polled, and wants to be polled at once: {deadline:?}"));
            }
            self.now = deadline.at;
            self.poll()?;
        }
        self.now = end;
        self.poll()
    }

    fn backoff(&mut self) -> Step {
        self.silent()?;
        match self.lane.deadline() {
            Some(Deadline { at, why: Wakeup::Backoff }) => self.wait_until(at),
            other => Err(format!("waits for {other:?}")),
        }
    }

    // ---- What the lane tells ---------------------------------------------------------------------

    fn poll(&mut self) -> Step {
        while let Some(action) = self.lane.poll(self.now) {
            match action {
                Action::Settled(settled) => self.settled(&settled)?,
                Action::Notice(notice) => self.come(format!("notice {}", notice_text(notice))),
                Action::NeedIdentity => self.come("wants id".to_owned()),
                Action::NeedLeader => self.come("wants leader".to_owned()),
            }
        }
        Ok(())
    }

    fn come(&mut self, text: String) {
        self.history.push(format!("    > {text}"));
        self.told.push_back(text);
    }

    fn settled(&mut self, settled: &Settled) -> Step {
        for (ticket, verdict) in settled.verdicts() {
            let text = match verdict {
                Verdict::Delivered { offset } => delivered(offset),
                Verdict::NotDelivered(proof) => not_delivered(proof),
                Verdict::Unknown(facts) => self.doubted(ticket, facts, "Unknown".to_owned())?,
            };
            self.come(format!("says {} {text}", self.name(ticket.0 as u16)));
        }
        for (ticket, resolution) in settled.resolutions() {
            let text = match resolution {
                Resolution::Delivered { offset } => delivered(offset),
                Resolution::NotDelivered(proof) => not_delivered(proof),
                Resolution::Never { reason, facts } => {
                    self.doubted(ticket, facts, format!("Never {reason:?}"))?
                }
            };
            self.come(format!("resolves {} {text}", self.name(ticket.0 as u16)));
        }
        Ok(())
    }

    /// The facts of a doubt are those of the record's last offer.
    fn doubted(&self, ticket: Ticket, facts: Doubt, text: String) -> Step<String> {
        let wanted = self.offered.get(&ticket).ok_or("in doubt, and never offered")?;
        let facts = Doubt { last_acknowledged: None, ..facts };
        same(&format!("{facts:?}"), &format!("{wanted:?}")).map(|()| text)
    }

    /// `says a b Delivered@100`: one line for each record, with offsets that go up.
    fn expect(&mut self, verb: &str, words: &[&str]) -> Step {
        let outcome_at = words.iter().position(|word| word.starts_with(char::is_uppercase));
        let (names, outcome) = words.split_at(outcome_at.unwrap_or(words.len()));
        let outcome = outcome.join(" ");
        if names.is_empty() || outcome.is_empty() {
            return self.expect_one(format!("{verb} {}", words.join(" ")));
        }
        for (index, name) in names.iter().enumerate() {
            let outcome = match outcome.split_once('@') {
                Some((kind, base)) => format!("{kind}@{}", number(base)? + index as i64),
                None => outcome.clone(),
            };
            self.expect_one(format!("{verb} {name} {outcome}"))?;
        }
        Ok(())
    }

    fn expect_one(&mut self, wanted: String) -> Step {
        same(&self.told.pop_front().unwrap_or_else(|| "nothing".to_owned()), &wanted)
    }

    fn name(&self, record: u16) -> String {
        self.names.get(usize::from(record)).cloned().unwrap_or_else(|| format!("#{record}"))
    }

    fn ticket(&self, name: &str) -> Step<Ticket> {
        let index = self.names.iter().position(|known| known == name);
        index.map(|index| Ticket(index as u64)).ok_or_else(|| format!("no record {name}"))
    }
}
