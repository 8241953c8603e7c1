//! Telling people how it goes, on standard error: a bar on a terminal, and otherwise only what they
//! must know.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::{complain, count, grouped};
use crate::tally::Counts;

/// Nothing heard for so long: people are told why.
const SILENCE: Duration = Duration::from_secs(1);
/// The same thing is not told again within.
const REMIND: Duration = Duration::from_secs(10);
/// Different notices that are remembered.
const NOTICES: usize = 64;

/// A line on a terminal, with a message: a bar of so many steps, or how long it has taken so far.
pub(crate) fn bar(steps: Option<u64>) -> ProgressBar {
    let template = match steps {
        Some(_) => "{bar:30.green/black.bright} {percent:>3}% {msg}",
        None => "{spinner} {elapsed} {msg}",
    };
    let bar = ProgressBar::with_draw_target(steps, ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("━╸━"));
    }
    bar
}

/// How it goes.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    /// Only the bar.
    quiet: bool,
    last_heard: Instant,
    told_to_wait: Option<(Instant, String)>,
    notices: BTreeMap<String, u64>,
}

impl Progress {
    /// A bar over so many bytes of input, or without an end.
    pub(crate) fn new(bytes: Option<u64>) -> Self {
        Self {
            bar: bar(bytes),
            quiet: false,
            last_heard: Instant::now(),
            told_to_wait: None,
            notices: BTreeMap::new(),
        }
    }

    /// The same without notices, for who expects faults.
    pub(crate) fn quiet(bytes: Option<u64>) -> Self {
        Self { quiet: true, ..Self::new(bytes) }
    }

    /// So many bytes of the input are with the producer.
    pub(crate) fn sent(&self, bytes: usize) {
        self.bar.inc(bytes as u64);
    }

    /// Something was heard: nobody waits.
    pub(crate) fn heard(&mut self) {
        self.last_heard = Instant::now();
        self.told_to_wait = None;
    }

    /// Whether nothing was heard for so long.
    pub(crate) fn is_silent(&self, time: Duration) -> bool {
        self.last_heard.elapsed() >= time
    }

    /// Shows where things stand, and what the oldest record waits for.
    pub(crate) fn show(&mut self, counts: &Counts, waits: Option<&str>, unresolved: usize) {
        let mut message = format!(
            "{} delivered · {} not delivered · {} unknown",
            grouped(counts.delivered + counts.resolved_delivered),
            grouped(counts.not_delivered),
            grouped(counts.open() + counts.never),
        );
        if self.is_silent(SILENCE) {
            if let Some(what) = waits {
                message.push_str(&format!(" · waiting for {what}"));
                self.tell_to_wait(what.to_owned());
            } else if unresolved > 0 {
                let what = format!("what became of {}", count(unresolved as u64, "unknown record"));
                message.push_str(&format!(" · finding out {what}"));
                self.tell_to_wait(what);
            }
        }
        self.bar.set_message(message);
        self.bar.tick();
    }

    /// On a terminal the bar shows it; elsewhere it is a line, now and then.
    fn tell_to_wait(&mut self, what: String) {
        let told = self.told_to_wait.as_ref();
        let fresh = told.is_none_or(|(at, before)| *before != what || at.elapsed() >= REMIND);
        if fresh && !self.quiet && !std::io::stderr().is_terminal() {
            complain(&format!("candor: waiting for {what}"));
        }
        if fresh {
            self.told_to_wait = Some((Instant::now(), what));
        }
    }

    /// Tells a line; the same line once.
    pub(crate) fn notice(&mut self, text: String) {
        if let Some(times) = self.notices.get_mut(&text) {
            *times += 1;
            return;
        }
        if self.notices.len() < NOTICES && !self.quiet {
            self.tell(&format!("candor: {text}"));
            self.notices.insert(text, 1);
        }
    }

    /// Tells a line.
    pub(crate) fn tell(&self, line: &str) {
        self.bar.suspend(|| complain(line));
    }

    /// No bar any more. Tells how often notices were repeated.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
        for (text, times) in self.notices.iter().filter(|(_, times)| **times > 1) {
            complain(&format!("candor: {times} times: {text}"));
        }
    }
}
