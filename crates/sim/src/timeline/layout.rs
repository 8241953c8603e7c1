//! Where on the page everything stands: pure arithmetic from events to places.

use std::collections::BTreeMap;

use candor_core::rules::{Class, Honest, Rules};
use candor_proto::ErrorCode;

use super::page::Scale;
use super::text::{cut, time, width};
use super::{Event, Offer, What, Word};

/// Pixels between columns of different times.
const GAP: f64 = 16.0;
/// Pixels of a chart over real time.
const TIME_WIDTH: f64 = 1_180.0;
/// Characters of a label, and of a code with its name.
const LABEL: usize = 44;
const CODE: usize = 22;

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Open,
    Written,
    Refused,
    Doubtful,
    Sequence,
    Lost,
}

impl Kind {
    pub(super) const fn class(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Written => "written",
            Self::Refused => "refused",
            Self::Doubtful => "doubtful",
            Self::Sequence => "sequence",
            Self::Lost => "lost",
        }
    }

    fn of(code: i16) -> Self {
        match Honest::class(code) {
            Class::None => Self::Written,
            Class::Corrupt
            | Class::Retriable
            | Class::TooLarge
            | Class::InvalidRecords
            | Class::Permanent => Self::Refused,
            Class::OutOfOrder | Class::Duplicate | Class::Fenced | Class::UnknownProducer => {
                Self::Sequence
            }
            Class::Doubtful => Self::Doubtful,
        }
    }
}

/// One attempt.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bar {
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) broker: String,
    pub(super) kind: Kind,
    pub(super) label: String,
    pub(super) title: String,
}

/// One batch, or one track of several.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Row {
    pub(super) sequence: String,
    pub(super) identity: String,
    pub(super) records: String,
    pub(super) bars: Vec<Bar>,
}

/// A word to or from the caller.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Chip {
    pub(super) x: f64,
    pub(super) class: &'static str,
    pub(super) label: String,
    pub(super) title: String,
}

/// One lane.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct LaneRows {
    pub(super) name: String,
    pub(super) rows: Vec<Row>,
    pub(super) chips: Vec<Chip>,
}

/// A time on the ruler.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    pub(super) x: f64,
    pub(super) label: String,
}

/// The whole drawing.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Layout {
    pub(super) scale: Scale,
    pub(super) lanes: Vec<LaneRows>,
    /// What concerns no lane.
    pub(super) flags: Vec<Chip>,
    pub(super) ticks: Vec<Tick>,
    pub(super) width: f64,
}

/// The column that each event stands in.
struct Places {
    from: Vec<f64>,
    to: Vec<f64>,
    ticks: Vec<Tick>,
    width: f64,
}

impl Layout {
    pub(super) fn of(events: &[Event], scale: Scale) -> Self {
        let places = match scale {
            Scale::Steps => by_steps(events),
            Scale::Time => by_time(events),
        };
        let mut layout = Self {
            scale,
            lanes: Vec::new(),
            flags: Vec::new(),
            ticks: places.ticks.clone(),
            width: places.width,
        };
        let mut attempts = BTreeMap::new();
        for (event, (from, to)) in events.iter().zip(places.from.iter().zip(&places.to)) {
            layout.put(event, *from, *to, &mut attempts);
        }
        layout.end_open(&attempts);
        if scale == Scale::Time {
            layout.lanes.sort_by(|one, other| one.name.cmp(&other.name));
        }
        layout
    }

    fn lane(&mut self, name: &str) -> usize {
        let found = self.lanes.iter().position(|lane| lane.name == name);
        found.unwrap_or_else(|| {
            self.lanes.push(LaneRows { name: name.to_owned(), ..LaneRows::default() });
            self.lanes.len() - 1
        })
    }

    fn put(&mut self, event: &Event, from: f64, to: f64, attempts: &mut Attempts) {
        let label = label_of(&event.what);
        let title = format!("{}: {}", time(event.at), whole(&event.what));
        match &event.what {
            What::Offered(offer) => {
                let place = self.open_bar(offer, from, title);
                attempts.insert(offer.attempt, place);
            }
            What::Answered { attempt, code, .. } => {
                self.close_bar(attempts, *attempt, to, Kind::of(*code), &label, &title);
            }
            What::Ended { attempt, partly } => {
                let kind = if *partly { Kind::Refused } else { Kind::Lost };
                self.close_bar(attempts, *attempt, to, kind, &label, &title);
            }
            What::Sent { lane, .. } => self.chip(lane, from, "sent", label, title),
            What::Said { lane, word, .. } => self.chip(lane, from, class_of(*word), label, title),
            What::Resolved { lane, word, .. } => {
                self.chip(lane, from, resolved_class(*word), label, title);
            }
            What::Noticed { lane: Some(lane), .. } => {
                self.chip(lane, from, "notice", label, title);
            }
            What::Noticed { lane: None, .. } => {
                self.flags.push(Chip { x: from, class: "notice", label, title });
            }
            What::Happened(_) => self.flags.push(Chip { x: from, class: "happened", label, title }),
        }
    }

    fn chip(&mut self, lane: &str, x: f64, class: &'static str, label: String, title: String) {
        let lane = self.lane(lane);
        self.lanes[lane].chips.push(Chip { x, class, label, title });
    }

    fn open_bar(&mut self, offer: &Offer, x: f64, title: String) -> (usize, usize, usize) {
        let lane = self.lane(&offer.lane);
        let row = self.row(lane, offer, x);
        let bars = &mut self.lanes[lane].rows[row].bars;
        let (broker, label) = (offer.broker.clone(), String::new());
        bars.push(Bar { from: x, to: x, broker, kind: Kind::Open, label, title });
        (lane, row, bars.len() - 1)
    }

    /// The row of a batch; over real time, the first track with room.
    fn row(&mut self, lane: usize, offer: &Offer, x: f64) -> usize {
        let rows = &mut self.lanes[lane].rows;
        let found = match self.scale {
            Scale::Steps => {
                let sequence = sequence_of(offer);
                rows.iter().position(|row| {
                    (&row.sequence, &row.identity) == (&sequence, &offer.identity)
                        && row.records == offer.records
                })
            }
            Scale::Time => rows.iter().position(|row| {
                row.bars.last().is_none_or(|bar| bar.kind != Kind::Open && bar.to + 1.0 <= x)
            }),
        };
        found.unwrap_or_else(|| {
            rows.push(match self.scale {
                Scale::Steps => Row {
                    sequence: sequence_of(offer),
                    identity: offer.identity.clone(),
                    records: offer.records.clone(),
                    bars: Vec::new(),
                },
                Scale::Time => Row::default(),
            });
            rows.len() - 1
        })
    }

    fn close_bar(
        &mut self,
        attempts: &mut Attempts,
        attempt: u64,
        to: f64,
        kind: Kind,
        label: &str,
        title: &str,
    ) {
        let Some((lane, row, bar)) = attempts.remove(&attempt) else { return };
        let bar = &mut self.lanes[lane].rows[row].bars[bar];
        (bar.to, bar.kind, bar.label) = (to, kind, label.to_owned());
        bar.title = format!("{}\n{title}", bar.title);
    }

    fn end_open(&mut self, attempts: &Attempts) {
        for (lane, row, bar) in attempts.values() {
            self.lanes[*lane].rows[*row].bars[*bar].to = self.width;
        }
    }
}

/// Where the bars of open attempts are: lane, row, bar.
type Attempts = BTreeMap<u64, (usize, usize, usize)>;

fn sequence_of(offer: &Offer) -> String {
    if offer.first == offer.last {
        format!("[{}]", offer.first)
    } else {
        format!("[{}–{}]", offer.first, offer.last)
    }
}

const fn class_of(word: Word) -> &'static str {
    match word {
        Word::Delivered => "delivered",
        Word::NotDelivered => "not",
        Word::Unknown => "unknown",
    }
}

const fn resolved_class(word: Word) -> &'static str {
    match word {
        Word::Delivered => "delivered later",
        Word::NotDelivered => "not later",
        Word::Unknown => "unknown later",
    }
}

/// How a verdict is told.
pub(super) const fn word(word: Word) -> &'static str {
    match word {
        Word::Delivered => "delivered",
        Word::NotDelivered => "not delivered",
        Word::Unknown => "unknown",
    }
}

/// How a resolution is told.
pub(super) const fn resolution(word: Word) -> &'static str {
    match word {
        Word::Delivered => "delivered after all",
        Word::NotDelivered => "not delivered after all",
        Word::Unknown => "never to be known",
    }
}

fn code_name(code: i16) -> String {
    match code {
        0 => "ok".to_owned(),
        code => format!("{code} {}", ErrorCode(code).name().unwrap_or("?")),
    }
}

fn whole(what: &What) -> String {
    match what {
        What::Sent { records, .. } => format!("+ {records}"),
        What::Offered(offer) => format!(
            "{} offered to {} as {} under {}: {}",
            offer.lane,
            offer.broker,
            sequence_of(offer),
            offer.identity,
            offer.records
        ),
        What::Answered { code: 0, offset: Some(offset), .. } => format!("ok @{offset}"),
        What::Answered { code, .. } => code_name(*code),
        What::Ended { partly: true, .. } => "cut, not whole".to_owned(),
        What::Ended { partly: false, .. } => "no answer".to_owned(),
        What::Said { records, word: said, text, .. } => {
            format!("{records} {} {text}", word(*said)).trim_end().to_owned()
        }
        What::Resolved { records, word: said, text, .. } => {
            format!("{records} {} {text}", resolution(*said)).trim_end().to_owned()
        }
        What::Noticed { text, .. } | What::Happened(text) => text.clone(),
    }
}

fn label_of(what: &What) -> String {
    match what {
        What::Offered(offer) => cut(&offer.broker, 6),
        What::Answered { .. } => cut(&whole(what), CODE),
        What::Sent { .. }
        | What::Ended { .. }
        | What::Said { .. }
        | What::Resolved { .. }
        | What::Noticed { .. }
        | What::Happened(_) => cut(&whole(what), LABEL),
    }
}

/// The kind of an event and its lane: two of one lane never share a column.
fn seat(what: &What) -> (u8, Option<&str>) {
    match what {
        What::Sent { lane, .. } => (0, Some(lane)),
        What::Offered(offer) => (1, Some(&offer.lane)),
        What::Answered { .. } => (2, None),
        What::Ended { .. } => (3, None),
        What::Said { lane, .. } => (4, Some(lane)),
        What::Resolved { lane, .. } => (5, Some(lane)),
        What::Noticed { lane, .. } => (6, lane.as_deref()),
        What::Happened(_) => (7, None),
    }
}

/// Columns as wide as what stands in them, one behind the other.
fn by_steps(events: &[Event]) -> Places {
    let mut places = Places { from: Vec::new(), to: Vec::new(), ticks: Vec::new(), width: 0.0 };
    let (mut x, mut begin) = (6.0, 0);
    let mut run: Option<(u64, f64)> = None;
    for (index, event) in events.iter().enumerate() {
        let fresh = run.is_none_or(|(at, _)| at != event.at);
        if fresh || !shares(&events[begin..index], &event.what) {
            x = places.to[begin..].iter().copied().fold(x, f64::max);
            begin = index;
        }
        if fresh {
            if let Some((_, since)) = run {
                let label = places.ticks.last().map_or(0.0, |tick: &Tick| width(&tick.label));
                x = x.max(since + label) + GAP;
            }
            run = Some((event.at, x));
            places.ticks.push(Tick { x, label: time(event.at) });
        }
        places.from.push(x);
        places.to.push(x + width(&label_of(&event.what)) + 18.0);
    }
    let last = places.ticks.last().map_or(0.0, |tick| tick.x + width(&tick.label));
    places.width = places.to.iter().copied().fold(last, f64::max) + 12.0;
    places
}

/// Whether something may stand in a column with these.
fn shares(column: &[Event], what: &What) -> bool {
    let ends = |what: &What| matches!(what, What::Ended { .. });
    if ends(what) {
        // A connection takes all its attempts along.
        return column.iter().all(|other| ends(&other.what));
    }
    let (kind, lane) = seat(what);
    lane.is_some()
        && column.iter().all(|other| {
            let (other, of) = seat(&other.what);
            other == kind && of.is_some() && of != lane
        })
}

/// Places in proportion to time.
fn by_time(events: &[Event]) -> Places {
    let end = events.iter().map(|event| event.at).max().unwrap_or(0).max(1) as f64;
    let x = |at: f64| 6.0 + at / end * (TIME_WIDTH - 60.0);
    let from: Vec<f64> = events.iter().map(|event| x(event.at as f64)).collect();
    let ticks = (0..=10).map(|tenth| {
        let at = end * f64::from(tenth) / 10.0;
        let rounded = (at / 10_000.0).round() as u64 * 10_000;
        Tick { x: x(at), label: time(if end > 1_000_000.0 { rounded } else { at as u64 }) }
    });
    Places { to: from.clone(), from, ticks: ticks.collect(), width: TIME_WIDTH }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(attempt: u64, lane: &str, first: i32) -> What {
        What::Offered(Offer {
            attempt,
            lane: lane.into(),
            broker: "A".into(),
            identity: "7/0".into(),
            first,
            last: first + 9,
            records: "r".into(),
        })
    }

    #[test]
    fn attempts_of_a_batch_share_a_row_and_never_overlap() {
        let events = [
            Event::at(0, offer(1, "t-0", 0)),
            Event::at(0, offer(2, "t-0", 10)),
            Event::at(5, What::Answered { attempt: 1, code: 6, offset: None }),
            Event::at(9, offer(3, "t-0", 0)),
        ];
        let layout = Layout::of(&events, Scale::Steps);
        let rows = &layout.lanes[0].rows;
        assert_eq!(rows.iter().map(|row| row.bars.len()).collect::<Vec<_>>(), [2, 1]);
        assert!(rows[0].bars[0].to < rows[0].bars[1].from);
        assert_eq!(rows[0].bars[0].kind, Kind::Doubtful);
        assert_eq!(rows[1].bars[0].to, layout.width, "still open");
    }

    #[test]
    fn lanes_share_columns_and_one_lane_never_does() {
        let both = [Event::at(0, offer(1, "t-0", 0)), Event::at(0, offer(2, "t-1", 0))];
        let layout = Layout::of(&both, Scale::Steps);
        assert_eq!(layout.lanes[0].rows[0].bars[0].from, layout.lanes[1].rows[0].bars[0].from);
        let one = [Event::at(0, offer(1, "t-0", 0)), Event::at(0, offer(2, "t-0", 10))];
        let layout = Layout::of(&one, Scale::Steps);
        let rows = &layout.lanes[0].rows;
        assert!(rows[0].bars[0].from < rows[1].bars[0].from);
    }

    #[test]
    fn over_time_bars_are_packed_into_tracks() {
        let answer = |attempt| What::Answered { attempt, code: 0, offset: None };
        let events = [
            Event::at(0, offer(1, "t-0", 0)),
            Event::at(100, answer(1)),
            Event::at(200, offer(2, "t-0", 10)),
            Event::at(250, offer(3, "t-0", 20)),
            Event::at(300, answer(2)),
        ];
        let layout = Layout::of(&events, Scale::Time);
        let bars = layout.lanes[0].rows.iter().map(|row| row.bars.len());
        assert_eq!(bars.collect::<Vec<_>>(), [2, 1]);
    }
}
