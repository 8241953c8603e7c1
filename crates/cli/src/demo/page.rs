//! The demo as a page: what happened to the cluster, and what became of the batches, over time.

use candor_sim::judge::{LogBatch, Said, Stored};
use candor_sim::timeline::{Ending, Event, Offer, Page, Scale, What, Word};

use super::diary::{Diary, Fate};
use super::trial::Trial;
use super::watch::Act;
use crate::output::count;
use crate::run::Outcome;

/// Draws the demo.
pub(crate) fn draw(
    seed: u64,
    acts: &[Act],
    diary: &Diary,
    trial: &Trial,
    outcome: &Outcome,
) -> Page {
    let mut page = Page::new(&format!("candor demo, seed {seed}"))
        .about(&outcome.counts.line())
        .about(
            "Each bar is a batch as it stands in the log, from the time its first record was read \
             to the last verdict. Marks above the bars are records that were not simply delivered.",
        )
        .again(&format!("candor demo --seed {seed}"))
        .scale(Scale::Time);
    let mut events: Vec<Event> = acts.iter().map(act).collect();
    for (index, batches) in trial.batches().iter().enumerate() {
        for batch in *batches {
            events.extend(bar(index, batch, diary));
        }
    }
    events.extend(words(diary));
    events.sort_by_key(|event| event.at);
    events.into_iter().for_each(|event| page.tell(event));
    page.end(if trial.is_clean() {
        Ending::Well
    } else {
        Ending::Wrong { line: None, text: trial.findings(3).join("\n") }
    });
    page
}

fn act(act: &Act) -> Event {
    let at = u64::try_from(act.at.as_micros()).unwrap_or(u64::MAX);
    Event::at(at, What::Happened(act.what.clone()))
}

fn lane(partition: impl std::fmt::Display) -> String {
    format!("{}-{partition}", super::TOPIC)
}

/// A batch from its first record to its last verdict.
fn bar(partition: usize, batch: &LogBatch, diary: &Diary) -> Vec<Event> {
    let number = |stored: &Stored| match stored {
        Stored::Ours(number) => Some(*number),
        Stored::Foreign | Stored::Corrupt => None,
    };
    let numbers: Vec<u64> = batch.records.iter().filter_map(number).collect();
    let pages = || numbers.iter().filter_map(|number| diary.page(*number));
    let told = pages().filter_map(|page| page.resolution.map(|(at, _)| at).or_else(|| page.told()));
    let (Some(from), Some(to)) = (pages().map(|page| page.read).min(), told.max()) else {
        return Vec::new();
    };
    let (first, last) = (numbers.first().copied(), numbers.last().copied());
    let (first, last) = (first.unwrap_or_default(), last.unwrap_or_default());
    let attempt = (partition as u64) << 40 | batch.base_offset.unsigned_abs();
    let offer = Offer {
        attempt,
        lane: lane(partition),
        broker: String::new(),
        identity: format!("{}/{}", batch.producer_id, batch.epoch),
        first: batch.first,
        last: batch.first + i32::try_from(batch.records.len()).unwrap_or(0) - 1,
        records: format!("{} from {first} to {last}", count(numbers.len() as u64, "record")),
    };
    let answered = What::Answered { attempt, code: 0, offset: Some(batch.base_offset) };
    vec![Event::at(from, What::Offered(offer)), Event::at(to.max(from), answered)]
}

/// What was said of records that were not simply delivered.
fn words(diary: &Diary) -> Vec<Event> {
    let mut events = Vec::new();
    for (number, page) in (1_u64..).zip(diary.pages()) {
        let (Some((at, Fate::Said(said))), Some(partition)) = (page.verdict, page.partition) else {
            continue;
        };
        let word = word(said);
        if word == Word::Delivered {
            continue;
        }
        let told = || (lane(partition), format!("record {number}"));
        let (lane, records) = told();
        events.push(Event::at(at, What::Said { lane, records, word, text: String::new() }));
        if let Some((at, said)) = page.resolution {
            let ((lane, records), word) = (told(), self::word(said));
            events.push(Event::at(at, What::Resolved { lane, records, word, text: String::new() }));
        }
    }
    events
}

const fn word(said: Said) -> Word {
    match said {
        Said::Delivered(_) => Word::Delivered,
        Said::NotDelivered => Word::NotDelivered,
        Said::Unknown => Word::Unknown,
    }
}
