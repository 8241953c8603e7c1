//! The page around the chart.

use std::fmt::Write;

use super::chart;
use super::layout::{Layout, resolution, word};
use super::style::STYLE;
use super::text::{escape, time};
use super::{Event, What, Word};

/// Events that a page draws; of more, the last ones.
const MOST: usize = 4_000;
/// Rows of the table of records.
const ROWS: usize = 400;

/// What the horizontal axis is.
///
/// ```
/// assert_eq!(candor_sim::timeline::Scale::default(), candor_sim::timeline::Scale::Steps);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// One event behind the other, with room for words; a gap where time passed. For stories.
    #[default]
    Steps,
    /// Time, in proportion. For crowds.
    Time,
}

/// How it ended.
///
/// ```
/// use candor_sim::timeline::Ending;
/// assert_ne!(Ending::Well, Ending::Wrong { line: Some(3), text: "r1 is lost".into() });
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// As it should.
    Well,
    /// Something is wrong.
    Wrong {
        /// The line of the scenario, from 1.
        line: Option<usize>,
        /// What, for people.
        text: String,
    },
}

/// The text that a page shows beside the chart.
///
/// ```
/// let source = candor_sim::timeline::Source { name: "007-x.replay".into(), text: "send r1".into() };
/// assert_eq!(source.text.lines().count(), 1);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Its name.
    pub name: String,
    /// Its lines.
    pub text: String,
}

/// A page on what happened.
///
/// ```
/// use candor_sim::timeline::{Ending, Event, Page, What};
/// let mut page = Page::new("seed 42").about("three brokers, one restart");
/// page.tell(Event::at(0, What::Happened("B restarts".into())));
/// page.end(Ending::Wrong { line: None, text: "LOST: record 7".into() });
/// let html = page.render();
/// assert!(html.starts_with("<!doctype html>") && html.contains("LOST: record 7"));
/// assert!(!html.contains("<script"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    title: String,
    about: Vec<String>,
    scale: Scale,
    events: Vec<Event>,
    source: Option<Source>,
    ending: Option<Ending>,
    again: Option<String>,
}

impl Page {
    /// An empty page.
    #[must_use]
    pub fn new(title: &str) -> Self {
        Self {
            title: title.to_owned(),
            about: Vec::new(),
            scale: Scale::Steps,
            events: Vec::new(),
            source: None,
            ending: None,
            again: None,
        }
    }

    /// One more line below the title.
    #[must_use]
    pub fn about(mut self, line: &str) -> Self {
        self.about.push(line.to_owned());
        self
    }

    /// What the horizontal axis is. Default: steps.
    #[must_use]
    pub fn scale(mut self, scale: Scale) -> Self {
        self.scale = scale;
        self
    }

    /// The text to show beside the chart.
    #[must_use]
    pub fn source(mut self, source: Source) -> Self {
        self.source = Some(source);
        self
    }

    /// The command that does it again.
    #[must_use]
    pub fn again(mut self, command: &str) -> Self {
        self.again = Some(command.to_owned());
        self
    }

    /// One more event; they come in the order of their happening.
    pub fn tell(&mut self, event: Event) {
        self.events.push(event);
    }

    /// How it ended.
    pub fn end(&mut self, ending: Ending) {
        self.ending = Some(ending);
    }

    /// What was told so far.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// The page as HTML.
    #[must_use]
    pub fn render(&self) -> String {
        let left_out = match self.scale {
            Scale::Steps => self.events.len().saturating_sub(MOST),
            Scale::Time => 0,
        };
        let events = &self.events[left_out..];
        let layout = Layout::of(events, self.scale);
        let chart = chart::draw(&layout);
        let records = match self.scale {
            Scale::Steps => records(events),
            Scale::Time => String::new(),
        };
        let note = match left_out {
            0 => String::new(),
            n => format!(r#"<p class="sub">The first {n} events are not drawn.</p>"#),
        };
        let beside = match (&self.source, records.is_empty()) {
            (Some(source), _) => {
                format!(r#"<div class="beside">{}{records}</div>"#, self.script(source))
            }
            (None, false) => records,
            (None, true) => String::new(),
        };
        format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
             <title>{title}</title><style>{STYLE}</style></head>\n<body>{header}\n\
             <main><section><h2>What happened</h2>{note}{chart}{legend}</section>{beside}</main>\n\
             {footer}</body></html>\n",
            title = escape(&self.title),
            header = self.header(),
            legend = legend(self.scale),
            footer = self.footer(),
        )
    }

    fn header(&self) -> String {
        let badge = match &self.ending {
            None => "",
            Some(Ending::Well) => r#"<span class="badge good">as it should</span>"#,
            Some(Ending::Wrong { .. }) => r#"<span class="badge bad">wrong</span>"#,
        };
        let about = self.about.iter().map(|line| format!(r#"<p class="sub">{}</p>"#, escape(line)));
        let about: String = about.collect();
        let wrong = match &self.ending {
            Some(Ending::Wrong { line, text }) => {
                let line = line.map_or(String::new(), |line| format!("line {line}: "));
                format!(r#"<div class="wrong">{line}{}</div>"#, escape(text))
            }
            Some(Ending::Well) | None => String::new(),
        };
        format!("<header><h1>{badge}{}</h1>{about}{wrong}</header>", escape(&self.title))
    }

    fn script(&self, source: &Source) -> String {
        let failed = match &self.ending {
            Some(Ending::Wrong { line, .. }) => *line,
            Some(Ending::Well) | None => None,
        };
        let mut text = format!(r#"<section><h2>{}</h2><ol class="script">"#, escape(&source.name));
        for (number, line) in (1..).zip(source.text.lines()) {
            let class = match line.trim_start() {
                _ if failed == Some(number) => "failed",
                start if start.starts_with('#') => "note",
                start if start.starts_with("expect") || start.starts_with("never") => "want",
                _ => "",
            };
            let line = if line.is_empty() { " " } else { line };
            let _ = write!(text, r#"<li class="{class}">{}</li>"#, escape(line));
        }
        text.push_str("</ol></section>");
        text
    }

    fn footer(&self) -> String {
        match &self.again {
            Some(command) => {
                format!("<footer>Again: <code>{}</code></footer>", escape(command))
            }
            None => String::new(),
        }
    }
}

/// What became of the records, as it was told.
fn records(events: &[Event]) -> String {
    let mut rows = String::new();
    let mut count = 0;
    for event in events {
        let (lane, of, told, class, text) = match &event.what {
            What::Said { lane, records, word: said, text } => {
                (lane, records, word(*said), class(*said), text)
            }
            What::Resolved { lane, records, word: said, text } => {
                (lane, records, resolution(*said), class(*said), text)
            }
            What::Sent { .. }
            | What::Offered(_)
            | What::Answered { .. }
            | What::Ended { .. }
            | What::Noticed { .. }
            | What::Happened(_) => continue,
        };
        count += 1;
        if count > ROWS {
            continue;
        }
        let _ = write!(
            rows,
            r#"<tr><td class="mono">{}</td><td class="mono">{}</td><td class="mono">{}</td><td><span class="v {class}">{told}</span> {}</td></tr>"#,
            escape(&time(event.at)),
            escape(lane),
            escape(of),
            escape(text),
        );
    }
    if count == 0 {
        return String::new();
    }
    let more = match count.saturating_sub(ROWS) {
        0 => String::new(),
        n => format!(r#"<p class="sub">and {n} more</p>"#),
    };
    format!(
        "<section><h2>What was said of the records</h2><table><tr><th>at</th><th>lane</th>\
         <th>records</th><th>told</th></tr>{rows}</table>{more}</section>"
    )
}

const fn class(word: Word) -> &'static str {
    match word {
        Word::Delivered => "delivered",
        Word::NotDelivered => "not",
        Word::Unknown => "unknown",
    }
}

/// What the signs mean.
fn legend(scale: Scale) -> String {
    let bars = [
        ("written", "written"),
        ("refused", "refused, certainly not written by this attempt"),
        ("doubtful", "doubtful: may have come after the append"),
        ("sequence", "judged by its sequence (45, 46, 47, 59)"),
        ("lost", "connection over, no answer"),
        ("open", "open"),
    ];
    let chips = [
        ("delivered", "delivered"),
        ("not", "not delivered, safe to send again"),
        ("unknown", "unknown"),
        ("later delivered", "an unknown record resolved later"),
        ("notice", "notice"),
        ("happened", "what befell cluster and network"),
    ];
    let sign = |class: &str, rx: u8, what: &str, kind: &str| {
        format!(
            r#"<span><svg width="22" height="12"><g class="{kind} {class}"><rect x="1" y="1" width="20" height="10" rx="{rx}"/></g></svg>{what}</span>"#
        )
    };
    let bars = bars.iter().map(|(class, what)| sign(class, 3, what, "bar"));
    let chips = chips.iter().map(|(class, what)| sign(class, 5, what, "chip"));
    let axis = match scale {
        Scale::Steps => "Left to right: one event after the other; each gap is time passing.",
        Scale::Time => "Left to right: time.",
    };
    let signs: String = bars.chain(chips).collect();
    format!(r#"<div class="legend">{signs}<span>{axis}</span></div>"#)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::Offer;

    const HOSTILE: &str = "</svg><script src=http://x>\"'&";

    #[test]
    fn whatever_comes_from_outside_is_escaped() {
        let hostile = || HOSTILE.to_owned();
        let mut page = Page::new(HOSTILE)
            .about(HOSTILE)
            .again(HOSTILE)
            .source(Source { name: hostile(), text: hostile() });
        let offer = Offer {
            attempt: 1,
            lane: hostile(),
            broker: hostile(),
            identity: hostile(),
            first: 0,
            last: 3,
            records: hostile(),
        };
        let (lane, records) = (hostile(), hostile());
        page.tell(Event::at(0, What::Sent { lane, records }));
        page.tell(Event::at(0, What::Offered(offer)));
        page.tell(Event::at(9, What::Answered { attempt: 1, code: 6, offset: None }));
        let (lane, records) = (hostile(), hostile());
        let word = Word::Unknown;
        page.tell(Event::at(9, What::Said { lane, records, word, text: hostile() }));
        page.tell(Event::at(9, What::Noticed { lane: Some(hostile()), text: hostile() }));
        page.tell(Event::at(9, What::Happened(hostile())));
        page.end(Ending::Wrong { line: Some(1), text: hostile() });
        for scale in [Scale::Steps, Scale::Time] {
            let html = page.clone().scale(scale).render();
            assert!(!html.contains("<script") && !html.contains("</svg><s"), "{html}");
            assert!(!html.contains("\"'&"));
            assert!(html.contains("&lt;/svg&gt;"));
        }
    }

    #[test]
    fn a_page_loads_nothing() {
        let mut page = Page::new("x");
        page.tell(Event::at(0, What::Happened("y".into())));
        let html = page.render();
        for outside in ["http:", "https:", "//", "url(", "@import", "src=", "href="] {
            assert!(!html.contains(outside), "{outside}");
        }
    }

    #[test]
    fn the_failing_line_is_marked() {
        let mut page =
            Page::new("x").source(Source { name: "f".into(), text: "send r1\nexpect r1".into() });
        page.end(Ending::Wrong { line: Some(2), text: "no".into() });
        assert!(page.render().contains(r#"<li class="failed">expect r1</li>"#));
    }

    #[test]
    fn of_a_long_story_the_end_is_drawn() {
        let mut page = Page::new("x");
        for n in 0..MOST as u64 + 5 {
            page.tell(Event::at(n, What::Happened("e".into())));
        }
        assert!(page.render().contains("The first 5 events are not drawn"));
    }
}
