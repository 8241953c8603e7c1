//! What the producer offered: every batch of every Produce request, and what must hold of each
//! whatever the scenario says.

use std::collections::BTreeMap;

use candor_core::Instant;

use super::book::Book;
use super::script::Never;
use super::words::{Place, briefly, range_text};
use crate::codec::{Batch, ProduceRequest, Record, RequestHeader, TopicKey, Uuid};
use crate::judge::{Attempt, Fact, Lane};
use crate::timeline::{Offer, What};

/// One batch in one request.
#[derive(Clone, Debug)]
pub(super) struct Offered {
    pub(super) broker: String,
    pub(super) place: Place,
    pub(super) lane: Lane,
    pub(super) pid: i64,
    pub(super) epoch: i16,
    pub(super) range: (i32, i32),
    pub(super) records: Vec<usize>,
    pub(super) bytes: usize,
    pub(super) version: i16,
    /// A step named it.
    pub(super) claimed: bool,
}

/// All of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Offers {
    pub(super) all: Vec<Offered>,
    /// Contents by place, identity and first sequence.
    contents: BTreeMap<(Place, i64, i16, i32), (i32, u32)>,
    pub(super) nevers: Vec<Never>,
    /// Topics by id, those that are gone included.
    pub(super) ids: BTreeMap<Uuid, String>,
    /// The highest leader epoch that the producer was told.
    pub(super) told: BTreeMap<Place, i32>,
}

/// From where a request came.
#[derive(Clone, Copy, Debug)]
pub(super) struct From<'a> {
    pub(super) now: Instant,
    pub(super) broker: &'a str,
    pub(super) connection: u64,
}

impl Offers {
    /// Takes in a Produce request; gives the numbers of its offers.
    pub(super) fn take(
        &mut self,
        book: &mut Book,
        from: From<'_>,
        header: &RequestHeader,
        request: &ProduceRequest,
    ) -> Result<Vec<usize>, String> {
        if request.acks != -1 {
            return Err(format!("a Produce request with acks={}", request.acks));
        }
        let mut numbers = Vec::new();
        for topic in &request.topics {
            let name = match &topic.key {
                TopicKey::Name(name) => name.clone(),
                TopicKey::Id(id) => {
                    let known = self.ids.get(id).cloned();
                    known.ok_or_else(|| format!("a Produce request for the topic id {id:02x?}"))?
                }
            };
            for part in &topic.partitions {
                let place = Place { topic: name.clone(), partition: part.index };
                let bytes = part.records.clone().ok_or("null records were offered")?;
                let batch = Batch::parse(bytes).map_err(|error| format!("{place}: {error}"))?;
                numbers.push(self.take_batch(book, from, place, &batch, header.version)?);
            }
        }
        Ok(numbers)
    }

    fn take_batch(
        &mut self,
        book: &mut Book,
        from: From<'_>,
        place: Place,
        batch: &Batch,
        version: i16,
    ) -> Result<usize, String> {
        let of = &batch.header;
        let lane =
            Lane { producer: 0, topic: book.topic(&place.topic), partition: place.partition };
        let records = recognise(book, lane, batch)?;
        let names = briefly(&book.names(&records));
        let offered = Offered {
            broker: from.broker.to_owned(),
            lane,
            pid: of.producer_id,
            epoch: of.producer_epoch,
            range: (of.base_sequence, last(of.base_sequence, of.count)),
            records,
            bytes: batch.bytes.len(),
            version,
            claimed: false,
            place,
        };
        let number = self.all.len();
        book.tell(
            from.now,
            What::Offered(Offer {
                attempt: number as u64,
                lane: offered.place.to_string(),
                broker: offered.broker.clone(),
                identity: format!("{}/{}", offered.pid, offered.epoch),
                first: offered.range.0,
                last: offered.range.1,
                records: names.clone(),
            }),
        );
        let attempt = Attempt {
            id: number as u64,
            connection: from.connection,
            leader_epoch: self.told.get(&offered.place).copied().unwrap_or(-1),
            producer_id: offered.pid,
            epoch: offered.epoch,
            first: offered.range.0,
            count: u32::try_from(of.count).unwrap_or(0),
            content: u64::from(of.crc) << 32 | batch.bytes.len() as u64,
            records: offered.records.iter().map(|number| *number as u64).collect(),
            max_timestamp: of.max_timestamp,
            replacement: false,
        };
        book.fact(from.now, Fact::Offered { lane, attempt });
        let frozen = self.is_frozen(&offered, of.count, of.crc);
        let allowed = self.is_allowed(book, &offered);
        self.all.push(offered);
        frozen.and(allowed).map_err(|why| format!("{why}, carrying {names}")).map(|()| number)
    }

    /// From its first offer a batch is frozen, and its numbers are nobody else's.
    fn is_frozen(&mut self, offered: &Offered, count: i32, crc: u32) -> Result<(), String> {
        let (pid, epoch, first) = (offered.pid, offered.epoch, offered.range.0);
        let key = (offered.place.clone(), pid, epoch, first);
        let before = self.contents.insert(key, (count, crc));
        match before {
            Some(before) if before != (count, crc) => Err(format!(
                "{offered}: other content stood at these numbers before, {} records",
                before.0
            )),
            Some(_) | None => Ok(()),
        }
    }

    fn is_allowed(&self, book: &Book, offered: &Offered) -> Result<(), String> {
        match self.nevers.iter().find(|never| never.hits(book, offered, &self.all)) {
            Some(never) => Err(format!("{offered}, which line {} forbids", never.line)),
            None => Ok(()),
        }
    }

    /// The identities under which batches of a partition were offered, one after the other.
    pub(super) fn identities(&self, place: &Place) -> Vec<(i64, i16)> {
        let of = self.all.iter().filter(|offered| offered.place == *place);
        let mut all: Vec<_> = of.map(|offered| (offered.pid, offered.epoch)).collect();
        all.dedup();
        all
    }
}

impl Never {
    fn hits(&self, book: &Book, offered: &Offered, before: &[Offered]) -> bool {
        let same = |one: &&Offered| one.place == offered.place;
        let bumped = before
            .iter()
            .rev()
            .find(same)
            .is_some_and(|one| (one.pid, one.epoch) != (offered.pid, offered.epoch));
        let names = || book.names(&offered.records);
        self.broker.as_ref().is_none_or(|broker| *broker == offered.broker)
            && self.place.as_ref().is_none_or(|place| *place == offered.place)
            && self.range.is_none_or(|range| range == offered.range)
            && self.epoch.is_none_or(|epoch| epoch == offered.epoch)
            && self.names.as_ref().is_none_or(|named| {
                let carried = names();
                named.iter().any(|name| carried.contains(name))
            })
            && (!self.bump || bumped)
    }
}

impl std::fmt::Display for Offered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sequences = range_text(self.range);
        write!(f, "out {} {} {sequences} e{} pid {}", self.broker, self.place, self.epoch, self.pid)
    }
}

/// The last sequence; after 2147483647 comes 0.
fn last(first: i32, count: i32) -> i32 {
    let last = (i64::from(first) + i64::from(count) - 1) % (1 << 31);
    i32::try_from(last).unwrap_or(-1)
}

/// Whose records these are. They must be whole: key, value, headers and timestamp as sent.
fn recognise(book: &mut Book, lane: Lane, batch: &Batch) -> Result<Vec<usize>, String> {
    let records = batch.records().map_err(|error| error.to_string())?;
    let mut numbers: Vec<usize> = Vec::new();
    for record in &records {
        let after = numbers.last().copied();
        let found = book.recognise(lane.topic, lane.partition, record, after);
        let number = found.ok_or_else(|| {
            let value = record.value.as_deref().map(String::from_utf8_lossy);
            format!("a record was offered that nobody sent: value {value:?}")
        })?;
        book.placed(number, lane.partition);
        let sheet = &book.sheets[number];
        if sheet.stamped && sheet.record.timestamp != record.timestamp {
            return Err(format!(
                "{} is stamped {} on the wire, not {}",
                sheet.name, record.timestamp, sheet.record.timestamp
            ));
        }
        numbers.push(number);
    }
    let newest = records.iter().map(|record: &Record| record.timestamp).max();
    match newest {
        Some(newest) if newest != batch.header.max_timestamp => {
            Err(format!("max timestamp is {}, not {newest}", batch.header.max_timestamp))
        }
        Some(_) | None => Ok(numbers),
    }
}
