//! The demo's result, drawn.

use std::io::IsTerminal;

use candor_sim::judge::Said;

use super::diary::{Diary, Fate, Page};
use super::trial::Trial;
use super::watch::Act;
use super::{BROKERS, PARTITIONS};
use crate::output::{count, grouped};
use crate::run::{End, Outcome};

/// Marks in a row.
const WIDTH: usize = 48;

/// How records ended; where several share a mark, the last of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Mark {
    Nothing,
    Delivered,
    Resolved,
    NotDelivered,
    Never,
}

impl Mark {
    fn of(page: &Page) -> Self {
        match (page.verdict, page.resolution) {
            (None, _) => Self::Nothing,
            (Some((_, Fate::Said(Said::Delivered(_)))), _) => Self::Delivered,
            (Some((_, Fate::Refused | Fate::Said(Said::NotDelivered))), _) => Self::NotDelivered,
            (Some((_, Fate::Said(Said::Unknown))), Some((_, Said::Delivered(_)))) => Self::Resolved,
            (Some((_, Fate::Said(Said::Unknown))), Some((_, Said::NotDelivered))) => {
                Self::NotDelivered
            }
            (Some((_, Fate::Said(Said::Unknown))), Some((_, Said::Unknown)) | None) => Self::Never,
        }
    }

    /// The sign and the number of its colour on a terminal.
    const fn sign(self) -> (char, u8) {
        match self {
            Self::Nothing => (' ', 0),
            Self::Delivered => ('█', 32),
            Self::Resolved => ('▒', 33),
            Self::NotDelivered => ('░', 36),
            Self::Never => ('?', 31),
        }
    }
}

/// Writes marks, in colour if somebody sees them.
struct Pen {
    colour: bool,
}

impl Pen {
    fn new() -> Self {
        let wanted = std::env::var_os("NO_COLOR").is_none();
        Self { colour: wanted && std::io::stdout().is_terminal() }
    }

    fn marks(&self, marks: &[Mark]) -> String {
        let one = |mark: &Mark| {
            let (sign, colour) = mark.sign();
            if self.colour { format!("\x1b[{colour}m{sign}\x1b[0m") } else { sign.to_string() }
        };
        marks.iter().map(one).collect()
    }
}

pub(crate) fn draw(
    seed: u64,
    acts: &[Act],
    diary: &Diary,
    trial: &Trial,
    outcome: &Outcome,
) -> String {
    let pen = Pen::new();
    let parts = [
        format!(
            "{} to {PARTITIONS} partitions on {BROKERS} brokers of our own, seed {seed}\n\n",
            count(outcome.counts.records, "record")
        ),
        faults(acts),
        partitions(&pen, diary, trial),
        verdicts(diary, outcome),
        judgement(trial),
    ];
    parts.concat()
}

fn faults(acts: &[Act]) -> String {
    let lines =
        acts.iter().map(|Act { at, what }| format!("  {:>5.2} s  {what}\n", at.as_secs_f64()));
    format!("What happened to the cluster:\n{}\n", lines.collect::<String>())
}

fn partitions(pen: &Pen, diary: &Diary, trial: &Trial) -> String {
    let mut text =
        "What was said of the records, by partition and in the order of sending:\n".to_owned();
    for (index, stored) in (0..).zip(trial.stored()) {
        let of = diary.pages().iter().filter(|page| page.partition == Some(index));
        let marks: Vec<Mark> = of.map(Mark::of).collect();
        let row = pen.marks(&squeeze(&marks));
        text.push_str(&format!("  {index}  {row}  {} in the log\n", grouped(*stored)));
    }
    let legend = [
        (Mark::Delivered, "delivered"),
        (Mark::Resolved, "unknown at its deadline, found out later"),
        (Mark::NotDelivered, "not delivered, safe to send again"),
        (Mark::Never, "only the log can tell"),
    ];
    let legend = legend.map(|(mark, what)| format!("{} {what}", pen.marks(&[mark])));
    format!("{text}     {}\n\n", legend.join("   "))
}

/// At most `WIDTH` marks that tell of all of them.
fn squeeze(marks: &[Mark]) -> Vec<Mark> {
    let width = WIDTH.min(marks.len());
    let slice = |at: usize| &marks[at * marks.len() / width..(at + 1) * marks.len() / width];
    let worst = |at: usize| slice(at).iter().copied().max().unwrap_or(Mark::Nothing);
    (0..width).map(worst).chain(std::iter::repeat(Mark::Nothing)).take(WIDTH).collect()
}

fn verdicts(diary: &Diary, outcome: &Outcome) -> String {
    let slowest = diary.pages().iter().filter_map(Page::took).max().unwrap_or_default();
    let stopped = match outcome.end {
        End::Finished => "",
        End::Interrupted | End::Failed(_) => " Stopped before the end.",
    };
    format!(
        "{}\n  in {:.1} s; the slowest verdict took {} ms.{stopped}\n\n",
        outcome.counts.line(),
        outcome.took.as_secs_f64(),
        grouped(slowest / 1000),
    )
}

fn judgement(trial: &Trial) -> String {
    let read = count(trial.stored().iter().sum(), "record");
    let mut text = format!(
        "The judge read {read} back from the log: {} lost, {} duplicated, {} out of order, \
         {}.\n",
        grouped(trial.lost()),
        grouped(trial.duplicates()),
        grouped(trial.reordered()),
        count(trial.wrong_verdicts(), "wrong verdict"),
    );
    for finding in trial.findings(5) {
        text.push_str(&format!("  {finding}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_tells_the_worst_of_each_stretch() {
        let mut marks = vec![Mark::Delivered; 4800];
        marks[150] = Mark::Resolved;
        marks[4799] = Mark::Never;
        let row = squeeze(&marks);
        assert_eq!((row.len(), row[1], row[47]), (48, Mark::Resolved, Mark::Never));
        assert_eq!(row.iter().filter(|mark| **mark == Mark::Delivered).count(), 46);
        assert_eq!(squeeze(&marks[..2])[..3], [Mark::Delivered, Mark::Delivered, Mark::Nothing]);
        assert_eq!(squeeze(&[]), [Mark::Nothing; 48]);
    }
}
