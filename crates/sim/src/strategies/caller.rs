//! The caller of a run: what it wanted, and what it was told.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use candor_core::Ticket;
use candor_proto::{Notice, Output, Producer, Record, Settlement};

use super::plan::{Call, Regret, TOPIC, Wish};
use super::sockets::Sockets;
use super::{PARTITIONS, harness::instant};
use crate::judge::{Entry, Fact, History, Lane, Log, LogBatch, LogIs, Said, Settings, Stored};
use crate::words;

/// How exactly times are kept, in microseconds.
pub(super) const SLACK: u64 = 1_000;

const fn lane(partition: i32) -> Lane {
    Lane { producer: 0, topic: 0, partition }
}

#[derive(Debug, Default)]
pub(super) struct Caller {
    entries: Vec<Entry>,
    values: Vec<Vec<u8>>,
    tickets: BTreeMap<Ticket, u64>,
    untold: BTreeSet<u64>,
    unresolved: BTreeSet<u64>,
    /// By when, and by record.
    regrets: BTreeMap<(u64, u64), (Ticket, Lane, Call)>,
    pub(super) closed: bool,
    pub(super) now: u64,
    pub(super) story: Vec<(u64, String)>,
    /// What no history can hold.
    pub(super) complaints: Vec<String>,
}

impl Caller {
    fn fact(&mut self, fact: Fact) {
        self.entries.push(Entry { at: self.now, fact });
    }

    fn tell(&mut self, text: String) {
        self.story.push((self.now, text));
    }

    /// Every record has its verdict, and every `Unknown` its resolution.
    pub(super) fn is_content(&self) -> bool {
        self.untold.is_empty() && self.unresolved.is_empty()
    }

    /// Sends a record.
    pub(super) fn send(&mut self, producer: &mut Producer, wish: &Wish) {
        let number = self.values.len() as u64;
        let mut value = format!("record {number} ").into_bytes();
        value.extend(std::iter::repeat_n(b'.', wish.bytes));
        self.values.push(value.clone());
        let now = instant(self.now);
        let record = Record::to(TOPIC)
            .partition(wish.partition)
            .value(Bytes::from(value))
            .deadline(core::time::Duration::from_millis(wish.deadline_ms));
        let due = producer.deadline_of(now, &record).as_micros();
        let lane = lane(i32::try_from(wish.partition).unwrap_or(-1));
        self.fact(Fact::Intent { record: number, lane, due });
        self.tell(format!("record {number} is sent to {TOPIC}-{}", wish.partition));
        match producer.append(now, now, record) {
            Ok(ticket) => {
                self.fact(Fact::Accepted { record: number });
                self.tickets.insert(ticket, number);
                if let Some(Regret { after_ms, call }) = wish.regret {
                    let at = self.now + after_ms * 1_000;
                    self.regrets.insert((at, number), (ticket, lane, call));
                }
                self.untold.insert(number);
            }
            Err(refused) => {
                self.fact(Fact::Refused { record: number });
                self.tell(format!("record {number} is refused: {refused:?}"));
            }
        }
    }

    /// When the caller next changes its mind.
    pub(super) fn next_regret(&self) -> Option<u64> {
        self.regrets.first_key_value().map(|((at, _), _)| *at)
    }

    /// Changes its mind where that is due and the record has not had its last word.
    pub(super) fn regret(&mut self, producer: &mut Producer) {
        while let Some(first) = self.regrets.first_entry() {
            if first.key().0 > self.now {
                return;
            }
            let ((_, record), (ticket, lane, call)) = first.remove_entry();
            if self.untold.contains(&record) || self.unresolved.contains(&record) {
                self.tell(format!("record {record}: {call:?}"));
                self.call(producer, (record, ticket), lane, call);
            }
        }
    }

    fn call(&mut self, producer: &mut Producer, of: (u64, Ticket), lane: Lane, call: Call) {
        let now = instant(self.now);
        let (record, ticket) = of;
        if self.untold.contains(&record) && call != Call::Abandon {
            // After either its verdict is due.
            self.fact(Fact::Cancelled { record });
        }
        match call {
            Call::Cancel => producer.cancel(now, ticket),
            Call::Revoke => {
                if let Err(ended) = producer.revoke(now, ticket) {
                    self.tell(ended.to_string());
                }
            }
            Call::Abandon => {
                self.fact(Fact::Abandoned { lane });
                if let Err(unused) = producer.abandon(now, TOPIC, lane.partition) {
                    self.tell(unused.to_string());
                }
            }
        }
    }

    /// The producer is to close, and must have told everything by then.
    pub(super) fn close(&mut self, producer: &mut Producer, due: u64) {
        self.fact(Fact::Closing { producer: 0, due });
        self.tell("the producer is closed".to_owned());
        producer.close(instant(self.now), instant(due));
    }

    /// The loop passes on what the producer has to say.
    pub(super) fn hear(&mut self, output: Output) {
        match output {
            Output::Settled(settlement) => self.settled(&settlement),
            Output::Notice(notice) => self.noticed(&notice),
            Output::Closed => self.closed = true,
            Output::Flushed(_) => {}
            Output::Connect { .. } | Output::Disconnect { .. } => {
                self.complaints.push(format!("{output:?} is the loop's to obey, not to pass on"));
            }
        }
    }

    fn settled(&mut self, settlement: &Settlement) {
        for (ticket, verdict) in settlement.settled.verdicts() {
            let Some(record) = self.number(ticket) else { continue };
            let said = words::verdict(verdict);
            self.tell(format!("record {record}: {verdict:?}"));
            self.untold.remove(&record);
            if said == Said::Unknown {
                self.unresolved.insert(record);
            }
            self.fact(Fact::Verdict { record, said });
        }
        for (ticket, resolution) in settlement.settled.resolutions() {
            let Some(record) = self.number(ticket) else { continue };
            let said = words::resolution(resolution);
            self.tell(format!("record {record} is resolved: {resolution:?}"));
            self.unresolved.remove(&record);
            self.fact(Fact::Resolution { record, said });
        }
    }

    fn number(&mut self, ticket: Ticket) -> Option<u64> {
        let number = self.tickets.get(&ticket).copied();
        if number.is_none() {
            self.complaints.push(format!("a word about {ticket}, which nobody has"));
        }
        number
    }

    fn noticed(&mut self, notice: &Notice) {
        self.tell(format!("notice: {notice}"));
        let Notice::Partition { partition, notice, .. } = notice else { return };
        self.fact(Fact::Notice { lane: lane(*partition), notice: words::notice(*notice) });
    }

    /// Everything that the judge needs to know.
    pub(super) fn history(&self, sockets: &Sockets) -> History {
        let logs = (0..PARTITIONS).map(|partition| Log {
            topic: 0,
            partition: i32::try_from(partition).unwrap_or(-1),
            batches: self.log(sockets, partition as usize),
        });
        History {
            settings: Settings {
                slack: SLACK,
                wire: false,
                log: LogIs::ShownAtTheEnd,
                ..Settings::default()
            },
            entries: self.entries.clone(),
            logs: logs.collect(),
            read_at: 0,
            excuses: Vec::new(),
            closed: true,
        }
    }

    fn log(&self, sockets: &Sockets, partition: usize) -> Vec<LogBatch> {
        let log = sockets.net.log(TOPIC, partition);
        log.iter()
            .map(|batch| LogBatch::read(batch, |record| self.stored(record.value.as_deref())))
            .collect()
    }

    fn stored(&self, value: Option<&[u8]>) -> Stored {
        let found = self.values.iter().position(|ours| Some(&ours[..]) == value);
        found.map_or(Stored::Corrupt, |at| Stored::Ours(at as u64))
    }
}
