//! What was handed in and what was said, for the judge and for the picture.

use std::time::{Duration, Instant};

use candor_sim::judge::{Entry, Fact, Lane, Said};
use candor_tokio::{Record, Resolution, Verdict, WhyNot};

use super::DEADLINE;
use crate::line::Line;
use crate::run::Book;
use crate::window::Heard;

/// The header that carries a record's number.
pub(crate) const NUMBER: &str = "line";
/// One record in so many is impatient.
const IMPATIENT: u64 = 8;
/// How long those wait.
const PATIENCE: Duration = Duration::from_millis(400);

/// Everything that happened.
#[derive(Debug)]
pub(crate) struct Diary {
    began: Instant,
    pages: Vec<Page>,
}

/// One record.
#[derive(Debug)]
pub(crate) struct Page {
    /// Its content.
    pub(crate) text: Vec<u8>,
    /// When it was read, in microseconds since the beginning.
    pub(crate) read: u64,
    due: u64,
    /// What was said first, and when.
    pub(crate) verdict: Option<(u64, Fate)>,
    /// What was said of an unknown record later, and when.
    pub(crate) resolution: Option<(u64, Said)>,
    /// Where it went, as far as anybody was told.
    pub(crate) partition: Option<u32>,
}

/// A first verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It was never accepted.
    Refused,
    /// It was.
    Said(Said),
}

impl Diary {
    pub(crate) fn new() -> Self {
        Self { began: Instant::now(), pages: Vec::new() }
    }

    pub(crate) const fn began(&self) -> Instant {
        self.began
    }

    /// All records, in order.
    pub(crate) fn pages(&self) -> &[Page] {
        &self.pages
    }

    /// The record with this number, from 1.
    pub(crate) fn page(&self, number: u64) -> Option<&Page> {
        self.pages.get(usize::try_from(number).ok()?.checked_sub(1)?)
    }

    fn now(&self) -> u64 {
        micros(self.began.elapsed())
    }

    /// The ledger that the judge reads.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        let mut entries = Vec::new();
        for (record, page) in (1..).zip(&self.pages) {
            let mut add = |at, fact| entries.push(Entry { at, fact });
            let partition = page.partition.and_then(|one| i32::try_from(one).ok()).unwrap_or(-1);
            let lane = Lane { producer: 0, topic: 0, partition };
            add(page.read, Fact::Intent { record, lane, due: page.due });
            match page.verdict {
                Some((_, Fate::Refused)) => add(page.read, Fact::Refused { record }),
                Some((at, Fate::Said(said))) => {
                    add(page.read, Fact::Accepted { record });
                    add(at, Fact::Verdict { record, said });
                }
                None => add(page.read, Fact::Accepted { record }),
            }
            if let Some((at, said)) = page.resolution {
                add(at, Fact::Resolution { record, said });
            }
        }
        entries.sort_by_key(|entry| entry.at);
        entries
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// How long a record may wait.
fn patience(number: u64) -> Duration {
    if number.is_multiple_of(IMPATIENT) { PATIENCE } else { DEADLINE }
}

impl Page {
    /// How long its verdict took, in microseconds.
    pub(crate) fn took(&self) -> Option<u64> {
        self.verdict.map(|(at, _)| at.saturating_sub(self.read))
    }

    /// When its verdict was heard.
    pub(crate) fn told(&self) -> Option<u64> {
        self.verdict.map(|(at, _)| at)
    }

    fn hear(&mut self, at: u64, heard: &Heard<'_>) {
        match heard {
            Heard::Verdict(verdict) => {
                let fate;
                (fate, self.partition) = match verdict {
                    Verdict::Delivered(place) => {
                        (Fate::Said(Said::Delivered(place.offset)), Some(place.partition))
                    }
                    Verdict::NotDelivered(no) => match no.why {
                        WhyNot::Proven(_) => (Fate::Said(Said::NotDelivered), no.partition),
                        WhyNot::Refused(_)
                        | WhyNot::NoRoom
                        | WhyNot::Cancelled
                        | WhyNot::DriverGone => (Fate::Refused, no.partition),
                    },
                    Verdict::Unknown(unknown) => (Fate::Said(Said::Unknown), unknown.partition()),
                };
                self.verdict = Some((at, fate));
            }
            Heard::Resolution(resolution) => {
                let said = match resolution {
                    Resolution::Delivered(place) => Said::Delivered(place.offset),
                    Resolution::NotDelivered(_) => Said::NotDelivered,
                    Resolution::Never(_) => Said::Unknown,
                };
                self.resolution = Some((at, said));
            }
        }
    }
}

impl Book for Diary {
    fn record<'l>(&mut self, topic: &'l str, line: &Line<'l>) -> Record<'l> {
        let number = line.number.to_string();
        let record = Record::to(topic).value(line.text).header(NUMBER, number);
        record.deadline(patience(line.number))
    }

    fn read(&mut self, line: &Line<'_>) {
        let read = self.now();
        self.pages.push(Page {
            text: line.text.to_vec(),
            read,
            due: read + micros(patience(line.number)),
            verdict: None,
            resolution: None,
            partition: None,
        });
    }

    fn hear(&mut self, line: &Line<'_>, heard: &Heard<'_>) -> anyhow::Result<()> {
        let now = self.now();
        let page = usize::try_from(line.number).ok().and_then(|n| self.pages.get_mut(n - 1));
        if let Some(page) = page {
            page.hear(now, heard);
        }
        Ok(())
    }

    fn tick(&mut self) -> anyhow::Result<()> {
        Ok(())
    }
}
