//! Counting what was said.

use std::collections::BTreeMap;

use candor_tokio::{Proof, Resolution, Verdict, WhyNot};
use serde::Serialize;

use crate::output::count;
use crate::window::Heard;
use crate::words;

/// Different reasons that are told apart; the rest is counted together.
const REASONS: usize = 12;

/// Counts of verdicts and resolutions: `records` is the sum of the verdicts, `unknown` of what
/// became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Counts {
    /// Records that were read.
    pub(crate) records: u64,
    /// Verdicts "delivered".
    pub(crate) delivered: u64,
    /// Verdicts "not delivered".
    pub(crate) not_delivered: u64,
    /// Verdicts "unknown".
    pub(crate) unknown: u64,
    /// Of the unknown: those of which it turned out what became of them.
    pub(crate) resolved: u64,
    /// Of the resolved: those that are in the log.
    pub(crate) resolved_delivered: u64,
    /// Of the unknown: those of which nobody will find out by producing.
    pub(crate) never: u64,
}

impl Counts {
    pub(crate) fn hear(&mut self, heard: &Heard<'_>) {
        match heard {
            Heard::Verdict(verdict) => {
                self.records += 1;
                match verdict {
                    Verdict::Delivered(_) => self.delivered += 1,
                    Verdict::NotDelivered(_) => self.not_delivered += 1,
                    Verdict::Unknown(_) => self.unknown += 1,
                }
            }
            Heard::Resolution(Resolution::Delivered(_)) => {
                self.resolved += 1;
                self.resolved_delivered += 1;
            }
            Heard::Resolution(Resolution::NotDelivered(_)) => self.resolved += 1,
            Heard::Resolution(Resolution::Never(_)) => self.never += 1,
        }
    }

    /// Whether every record is known to be in the log.
    pub(crate) const fn all_delivered(&self) -> bool {
        self.delivered + self.resolved_delivered == self.records
    }

    /// Unknown, and nothing more is known of them yet.
    pub(crate) const fn open(&self) -> u64 {
        self.unknown - self.resolved - self.never
    }

    /// One line for people.
    pub(crate) fn line(&self) -> String {
        let mut line = format!(
            "{}: {} delivered, {} not delivered, {} unknown",
            count(self.records, "record"),
            crate::output::grouped(self.delivered),
            crate::output::grouped(self.not_delivered),
            crate::output::grouped(self.unknown),
        );
        if self.unknown > 0 {
            let mut parts = Vec::new();
            let refuted = self.resolved - self.resolved_delivered;
            for (number, what) in [
                (self.resolved_delivered, "turned out delivered"),
                (refuted, "turned out not delivered"),
                (self.never, "can only be found in the log"),
                (self.open(), "not resolved yet"),
            ] {
                if number > 0 {
                    parts.push(format!("{} {what}", crate::output::grouped(number)));
                }
            }
            line.push_str(&format!(" ({})", parts.join(", ")));
        }
        line
    }
}

/// Why records were not delivered, or are in doubt.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reasons {
    by_text: BTreeMap<String, Reason>,
    ran_out_of_time: bool,
}

#[derive(Clone, Copy, Debug)]
struct Reason {
    records: u64,
    first_line: u64,
}

impl Reasons {
    pub(crate) fn hear(&mut self, line: u64, heard: &Heard<'_>) {
        let reason = match heard {
            Heard::Verdict(Verdict::NotDelivered(no))
            | Heard::Resolution(Resolution::NotDelivered(no)) => {
                self.ran_out_of_time |= is_about_time(&no.why);
                format!("not delivered: {}", words::why_not(&no.why))
            }
            Heard::Resolution(Resolution::Never(never)) => {
                format!("unknown: {}", words::never(never.reason))
            }
            Heard::Verdict(Verdict::Delivered(_) | Verdict::Unknown(_))
            | Heard::Resolution(Resolution::Delivered(_)) => return,
        };
        let full = self.by_text.len() >= REASONS && !self.by_text.contains_key(&reason);
        let reason = if full { "other reasons: see the ledger".to_owned() } else { reason };
        let entry = self.by_text.entry(reason).or_insert(Reason { records: 0, first_line: line });
        entry.records += 1;
        entry.first_line = entry.first_line.min(line);
    }

    /// Whether some records waited until there was no more time.
    pub(crate) const fn ran_out_of_time(&self) -> bool {
        self.ran_out_of_time
    }

    /// For people, one line per reason.
    pub(crate) fn lines(&self) -> String {
        let lines = self.by_text.iter().map(|(reason, Reason { records, first_line })| {
            format!("  {} (first: line {first_line}): {reason}\n", count(*records, "record"))
        });
        lines.collect()
    }
}

const fn is_about_time(why: &WhyNot) -> bool {
    match why {
        WhyNot::Proven(Proof::NeverOffered | Proof::Refused) | WhyNot::NoRoom => true,
        WhyNot::Proven(
            Proof::NoPartition { .. }
            | Proof::TakenBack
            | Proof::Rejected { .. }
            | Proof::Unreachable
            | Proof::Overtaken
            | Proof::SlotTaken,
        )
        | WhyNot::Refused(_)
        | WhyNot::Cancelled
        | WhyNot::DriverGone => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_turned_out_delivered_counts_as_delivered() {
        let counts = Counts { records: 3, delivered: 2, unknown: 1, ..Counts::default() };
        assert!(!counts.all_delivered());
        assert_eq!(counts.open(), 1);
        let counts = Counts { resolved: 1, resolved_delivered: 1, ..counts };
        assert!(counts.all_delivered());
        let line = "3 records: 2 delivered, 0 not delivered, 1 unknown (1 turned out delivered)";
        assert_eq!(counts.line(), line);
    }
}
