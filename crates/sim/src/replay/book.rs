//! What was sent and what was said of it: by name, for the judge and for the page.

use std::collections::BTreeMap;

use bytes::Bytes;
use candor_core::{Instant, Proof, Resolution, Ticket, Verdict};
use candor_proto::Settlement;

use super::script::{Body, Send};
use super::words::briefly;
use crate::codec::Record;
use crate::judge::{Entry, Fact, Lane};
use crate::timeline::{Event, Page, What, Word};
use crate::words;

/// One record.
#[derive(Clone, Debug)]
pub(super) struct Sheet {
    pub(super) name: String,
    pub(super) topic: u32,
    pub(super) partition: Option<i32>,
    pub(super) record: Record,
    /// Whether its timestamp was given, not taken from the clock.
    pub(super) stamped: bool,
    pub(super) ticket: Option<Ticket>,
    pub(super) verdict: Option<Verdict>,
    pub(super) resolution: Option<Resolution>,
    /// A step expects something of it.
    pub(super) expected: bool,
}

/// Everything that was sent and said.
#[derive(Debug)]
pub(super) struct Book {
    pub(super) sheets: Vec<Sheet>,
    by_name: BTreeMap<String, usize>,
    by_ticket: BTreeMap<Ticket, usize>,
    topics: Vec<String>,
    pub(super) entries: Vec<Entry>,
    pub(super) page: Page,
    begin: u64,
    /// The line that is acted upon.
    pub(super) line: usize,
}

/// The lane of records that have no partition yet.
pub(super) const NOWHERE: i32 = -1;

impl Book {
    pub(super) fn new(page: Page, begin: Instant) -> Self {
        Self {
            sheets: Vec::new(),
            by_name: BTreeMap::new(),
            by_ticket: BTreeMap::new(),
            topics: Vec::new(),
            entries: Vec::new(),
            page,
            begin: begin.as_micros(),
            line: 0,
        }
    }

    /// A topic's number.
    pub(super) fn topic(&mut self, name: &str) -> u32 {
        let found = self.topics.iter().position(|topic| topic == name);
        let at = found.unwrap_or_else(|| {
            self.topics.push(name.to_owned());
            self.topics.len() - 1
        });
        u32::try_from(at).unwrap_or(u32::MAX)
    }

    /// The topics that were named, in order.
    pub(super) fn topics(&self) -> &[String] {
        &self.topics
    }

    pub(super) fn find(&self, name: &str) -> Option<&Sheet> {
        self.sheets.get(*self.by_name.get(name)?)
    }

    pub(super) fn find_mut(&mut self, name: &str) -> Option<&mut Sheet> {
        self.sheets.get_mut(*self.by_name.get(name)?)
    }

    pub(super) fn fact(&mut self, now: Instant, fact: Fact) {
        self.entries.push(Entry { at: now.as_micros(), fact });
    }

    pub(super) fn tell(&mut self, now: Instant, what: What) {
        let event = Event::at(now.as_micros() - self.begin, what);
        self.page.tell(if self.line > 0 { event.on_line(self.line) } else { event });
    }

    /// A record is about to be sent. False if its name is taken.
    pub(super) fn intend(&mut self, now: Instant, name: &str, send: &Send, due: Instant) -> bool {
        if self.by_name.contains_key(name) {
            return false;
        }
        let topic = self.topic(&send.topic);
        let partition = send.partition.and_then(|one| i32::try_from(one).ok());
        let mut record = Record::new(
            send.timestamp.unwrap_or_else(|| now.as_millis()),
            send.key.as_ref().map(String::as_bytes),
            body(name, send.body).as_deref(),
        );
        for (header, value) in &send.headers {
            let value = value.as_ref().map(String::as_bytes);
            record = record.with_header(header.as_bytes(), value);
        }
        let number = self.sheets.len();
        self.by_name.insert(name.to_owned(), number);
        self.sheets.push(Sheet {
            name: name.to_owned(),
            topic,
            partition,
            record,
            stamped: send.timestamp.is_some(),
            ticket: None,
            verdict: None,
            resolution: None,
            expected: false,
        });
        let lane = Lane { producer: 0, topic, partition: partition.unwrap_or(NOWHERE) };
        let due = due.as_micros();
        self.fact(now, Fact::Intent { record: number as u64, lane, due });
        true
    }

    pub(super) fn accepted(&mut self, now: Instant, name: &str, ticket: Ticket) {
        let Some(&number) = self.by_name.get(name) else { return };
        self.sheets[number].ticket = Some(ticket);
        self.by_ticket.insert(ticket, number);
        self.fact(now, Fact::Accepted { record: number as u64 });
    }

    pub(super) fn refused(&mut self, now: Instant, name: &str) {
        let Some(&number) = self.by_name.get(name) else { return };
        self.sheets[number].expected = true;
        self.fact(now, Fact::Refused { record: number as u64 });
    }

    pub(super) fn cancelled(&mut self, now: Instant, name: &str) {
        let Some(&number) = self.by_name.get(name) else { return };
        self.fact(now, Fact::Cancelled { record: number as u64 });
    }

    /// Whose content this is: the first of that content in this place that comes behind `after`.
    pub(super) fn recognise(
        &self,
        topic: u32,
        partition: i32,
        found: &Record,
        after: Option<usize>,
    ) -> Option<usize> {
        let from = after.map_or(0, |after| after + 1);
        let is = |sheet: &Sheet| {
            sheet.topic == topic
                && sheet.partition.is_none_or(|of| of == partition)
                && (&sheet.record.key, &sheet.record.value, &sheet.record.headers)
                    == (&found.key, &found.value, &found.headers)
        };
        let behind = self.sheets.iter().enumerate().skip(from).find(|(_, sheet)| is(sheet));
        behind
            .or_else(|| self.sheets.iter().enumerate().find(|(_, sheet)| is(sheet)))
            .map(|(at, _)| at)
    }

    /// The record is seen in this partition.
    pub(super) fn placed(&mut self, number: usize, partition: i32) {
        if let Some(sheet) = self.sheets.get_mut(number) {
            sheet.partition = sheet.partition.or(Some(partition));
        }
    }

    pub(super) fn names(&self, numbers: &[usize]) -> Vec<String> {
        let name = |number: &usize| self.sheets.get(*number).map(|sheet| sheet.name.clone());
        numbers.iter().filter_map(name).collect()
    }

    /// Takes down a settlement. An error says what cannot be.
    pub(super) fn settled(&mut self, now: Instant, of: &Settlement) -> Result<(), String> {
        let lane = match of.partition {
            Some(partition) => format!("{}-{partition}", of.topic),
            None => of.topic.to_string(),
        };
        let verdicts: Vec<_> = of.settled.verdicts().collect();
        let resolutions: Vec<_> = of.settled.resolutions().collect();
        let mut told = Vec::new();
        for (ticket, verdict) in &verdicts {
            let number = self.number(*ticket)?;
            let sheet = &mut self.sheets[number];
            if sheet.verdict.is_some() {
                return Err(format!("{} gets a second verdict: {verdict:?}", sheet.name));
            }
            sheet.verdict = Some(*verdict);
            sheet.partition = sheet.partition.or(of.partition);
            told.push(number);
            self.fact(now, Fact::Verdict { record: number as u64, said: words::verdict(*verdict) });
        }
        if let Some((_, first)) = verdicts.first() {
            let (word, text) = verdict_text(*first);
            let records = briefly(&self.names(&told));
            self.tell(now, What::Said { lane: lane.clone(), records, word, text });
        }
        self.take_resolutions(now, &lane, &resolutions)
    }

    fn take_resolutions(
        &mut self,
        now: Instant,
        lane: &str,
        resolutions: &[(Ticket, Resolution)],
    ) -> Result<(), String> {
        let mut told = Vec::new();
        for (ticket, resolution) in resolutions {
            let number = self.number(*ticket)?;
            let sheet = &mut self.sheets[number];
            if !matches!(sheet.verdict, Some(Verdict::Unknown(_))) || sheet.resolution.is_some() {
                return Err(format!("{} is resolved out of turn: {resolution:?}", sheet.name));
            }
            sheet.resolution = Some(*resolution);
            told.push(number);
            self.fact(
                now,
                Fact::Resolution { record: number as u64, said: words::resolution(*resolution) },
            );
        }
        if let Some((_, first)) = resolutions.first() {
            let (word, text) = resolution_text(*first);
            let records = briefly(&self.names(&told));
            self.tell(now, What::Resolved { lane: lane.to_owned(), records, word, text });
        }
        Ok(())
    }

    fn number(&self, ticket: Ticket) -> Result<usize, String> {
        let known = self.by_ticket.get(&ticket).copied();
        known.ok_or_else(|| format!("{ticket} was never given"))
    }
}

/// The value of a record.
pub(super) fn body(name: &str, body: Body) -> Option<Bytes> {
    match body {
        Body::Null => None,
        Body::Empty => Some(Bytes::new()),
        Body::Named(size) => {
            let mut bytes = name.as_bytes().to_vec();
            bytes.resize(size.max(bytes.len()), b'.');
            Some(bytes.into())
        }
    }
}

/// A verdict in words.
pub(super) fn verdict_text(verdict: Verdict) -> (Word, String) {
    match verdict {
        Verdict::Delivered { offset: Some(offset) } => (Word::Delivered, format!("@{offset}")),
        Verdict::Delivered { offset: None } => (Word::Delivered, "@?".to_owned()),
        Verdict::NotDelivered(proof) => (Word::NotDelivered, reason(&proof)),
        Verdict::Unknown(_) => (Word::Unknown, String::new()),
    }
}

/// A resolution in words.
pub(super) fn resolution_text(resolution: Resolution) -> (Word, String) {
    match resolution {
        Resolution::Delivered { offset } => verdict_text(Verdict::Delivered { offset }),
        Resolution::NotDelivered(proof) => verdict_text(Verdict::NotDelivered(proof)),
        Resolution::Never { reason, .. } => (Word::Unknown, format!("{reason:?}")),
    }
}

/// A proof as scenarios write it: `Refused`, `Rejected 87`.
pub(super) fn reason(proof: &Proof) -> String {
    match proof {
        Proof::Rejected { code } => format!("Rejected {code}"),
        Proof::NoPartition { partitions } => format!("NoPartition {partitions}"),
        Proof::NeverOffered
        | Proof::TakenBack
        | Proof::Refused
        | Proof::Unreachable
        | Proof::Overtaken
        | Proof::SlotTaken => format!("{proof:?}"),
    }
}
