//! A page from what the judge reads.

use std::collections::BTreeMap;

use super::{Event, Offer, Page, What, Word};
use crate::judge::{Entry, Fact, History, Lane, Said};

impl Page {
    /// A page from a history: everything that a judge was told of one lane, or of all.
    ///
    /// Lanes are called `topic-partition` by their numbers, connections `c7`, records by theirs.
    ///
    /// ```
    /// use candor_sim::judge::{Entry, Fact, History, Lane, Said};
    /// use candor_sim::timeline::Page;
    /// let lane = Lane { producer: 0, topic: 0, partition: 3 };
    /// let mut history = History::default();
    /// for (at, fact) in [
    ///     (0, Fact::Intent { record: 7, lane, due: 99 }),
    ///     (0, Fact::Accepted { record: 7 }),
    ///     (5, Fact::Verdict { record: 7, said: Said::Delivered(Some(40)) }),
    /// ] {
    ///     history.entries.push(Entry { at, fact });
    /// }
    /// let page = Page::of_history("seed 1", &history, Some(lane));
    /// assert_eq!(page.events().len(), 2);
    /// assert!(page.render().contains("@40"));
    /// ```
    #[must_use]
    pub fn of_history(title: &str, history: &History, only: Option<Lane>) -> Self {
        let mut page = Self::new(title);
        let begin = history.entries.iter().map(|entry| entry.at).min().unwrap_or(0);
        let mut homes = BTreeMap::new();
        for Entry { at, fact } in &history.entries {
            if let Fact::Intent { record, lane, .. } = fact {
                homes.insert(*record, *lane);
            }
            let lane = lane_of(fact, &homes);
            let wanted = only.is_none() || lane.is_none() || lane == only;
            if let Some(what) = what(fact, lane).filter(|_| wanted) {
                page.tell(Event::at(at.saturating_sub(begin), what));
            }
        }
        page
    }
}

fn lane_of(fact: &Fact, homes: &BTreeMap<u64, Lane>) -> Option<Lane> {
    match fact {
        Fact::Intent { lane, .. }
        | Fact::Notice { lane, .. }
        | Fact::Disturbed { lane }
        | Fact::Abandoned { lane }
        | Fact::Offered { lane, .. }
        | Fact::Answered { lane, .. }
        | Fact::Ended { lane, .. }
        | Fact::Routed { lane, .. } => Some(*lane),
        Fact::Accepted { record }
        | Fact::Refused { record }
        | Fact::Cancelled { record }
        | Fact::Hidden { record }
        | Fact::Verdict { record, .. }
        | Fact::Resolution { record, .. } => homes.get(record).copied(),
        Fact::Closing { .. } | Fact::Killed { .. } | Fact::Stall { .. } => None,
    }
}

fn name(lane: Option<Lane>) -> String {
    lane.map_or_else(|| "?".to_owned(), |lane| format!("{}-{}", lane.topic, lane.partition))
}

fn what(fact: &Fact, lane: Option<Lane>) -> Option<What> {
    let lane = name(lane);
    Some(match fact {
        Fact::Accepted { record } => What::Sent { lane, records: record.to_string() },
        Fact::Offered { attempt, .. } => {
            let of = attempt;
            let last = i64::from(of.first) + i64::from(of.count) - 1;
            What::Offered(Offer {
                attempt: of.id,
                lane,
                broker: format!("c{}", of.connection),
                identity: format!("{}/{}", of.producer_id, of.epoch),
                first: of.first,
                last: i32::try_from(last % (1 << 31)).unwrap_or(of.first),
                records: numbers(&of.records),
            })
        }
        Fact::Answered { attempt, reply: Some(reply), .. } => What::Answered {
            attempt: *attempt,
            code: reply.code,
            offset: (reply.base_offset >= 0).then_some(reply.base_offset),
        },
        Fact::Answered { attempt, reply: None, .. } => {
            What::Ended { attempt: *attempt, partly: false }
        }
        Fact::Ended { attempt, partly, .. } => What::Ended { attempt: *attempt, partly: *partly },
        Fact::Verdict { record, said } => {
            let (word, text) = words(*said);
            What::Said { lane, records: record.to_string(), word, text }
        }
        Fact::Resolution { record, said } => {
            let (word, text) = words(*said);
            What::Resolved { lane, records: record.to_string(), word, text }
        }
        Fact::Notice { notice, .. } => {
            What::Noticed { lane: Some(lane), text: format!("{notice:?}") }
        }
        Fact::Refused { record } => What::Happened(format!("record {record} is refused")),
        Fact::Cancelled { record } => What::Happened(format!("record {record} cancelled")),
        Fact::Abandoned { .. } => {
            What::Noticed { lane: Some(lane), text: "what is in doubt is given up".to_owned() }
        }
        Fact::Closing { .. } => What::Happened("close".to_owned()),
        Fact::Killed { .. } => What::Happened("killed".to_owned()),
        Fact::Stall { from, to } => What::Happened(format!("asleep for {} µs", to - from)),
        Fact::Routed { connection: Some(connection), leader_epoch, .. } => What::Noticed {
            lane: Some(lane),
            text: format!("goes to c{connection}, leader epoch {leader_epoch}"),
        },
        Fact::Intent { .. }
        | Fact::Disturbed { .. }
        | Fact::Hidden { .. }
        | Fact::Routed { connection: None, .. } => return None,
    })
}

fn words(said: Said) -> (Word, String) {
    match said {
        Said::Delivered(Some(offset)) => (Word::Delivered, format!("@{offset}")),
        Said::Delivered(None) => (Word::Delivered, "@?".to_owned()),
        Said::NotDelivered => (Word::NotDelivered, String::new()),
        Said::Unknown => (Word::Unknown, String::new()),
    }
}

/// `3..9`, or all of them.
fn numbers(records: &[u64]) -> String {
    let run = records.windows(2).all(|pair| pair[1] == pair[0] + 1);
    match (records.first(), records.last()) {
        (Some(first), Some(last)) if run && records.len() > 2 => format!("{first}..{last}"),
        (Some(_) | None, _) => {
            let all: Vec<String> = records.iter().map(u64::to_string).collect();
            all.join(",")
        }
    }
}
