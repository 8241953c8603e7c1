//! One scenario from its first step to its verdict.

use std::fmt;

use candor_core::rules::{Honest, NextIdentity, Rules};
use candor_core::{ProducerEpoch, Sequence, Span};

use super::script::{NearTheEnd, Scenario, Step};
use super::wants::notice_name;
use super::world::{Side, World};
use crate::search::{Bent, Decisions, Inversion};
use crate::timeline::{Ending, Page};

/// Where sequences begin if a scenario says `sequences near the end`.
pub(super) const NEAR: i32 = 2_147_483_640;

/// The honest rules, but that sequences begin shortly before their end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LateSequences;

impl Rules for LateSequences {
    fn first_sequence() -> Sequence {
        Sequence::new(NEAR).unwrap_or_else(Honest::first_sequence)
    }
}

/// The honest rules, but that the first epoch counts as 32766: brokers give no id with an epoch
/// other than 0, and nobody waits for so many bumps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LateEpochs;

impl LateEpochs {
    fn aged(epoch: ProducerEpoch) -> ProducerEpoch {
        ProducerEpoch::new(epoch.get().saturating_add(32_766)).unwrap_or(epoch)
    }
}

impl Rules for LateEpochs {
    fn next_identity(epoch: ProducerEpoch, left_in_doubt: bool) -> NextIdentity {
        Honest::next_identity(Self::aged(epoch), left_in_doubt)
    }

    fn epoch_is_used_up(epoch: ProducerEpoch, acknowledged: bool) -> bool {
        Honest::epoch_is_used_up(Self::aged(epoch), acknowledged)
    }
}

/// Something came otherwise than a step wanted it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mismatch {
    wanted: String,
    came: String,
}

/// The error of a step.
pub(super) fn mismatch(wanted: &str, came: &str) -> Result<(), Mismatch> {
    Err(Mismatch { wanted: wanted.to_owned(), came: came.to_owned() })
}

/// What went wrong in a scenario.
///
/// ```
/// use candor_sim::replay::Scenario;
/// let scenario = Scenario::parse("title t\nsend r1\nout A [0]\nin A ok 7\nexpect delivered r1 @8\n").unwrap();
/// let failure = scenario.run("t.replay").failure.unwrap();
/// assert_eq!((failure.line, &*failure.wanted), (5, "r1 delivered @8"));
/// assert!(failure.to_string().contains("candor sim run t.replay"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The scenario's name: its file.
    pub name: String,
    /// The line, from 1.
    pub line: usize,
    /// The line's text.
    pub text: String,
    /// What was wanted.
    pub wanted: String,
    /// What came.
    pub came: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, line, text, wanted, came } = self;
        writeln!(f, "{name}:{line}: {text}")?;
        writeln!(f, "  expected: {wanted}")?;
        writeln!(f, "  happened: {came}")?;
        write!(f, "  again: candor sim run {name}")
    }
}

/// How a scenario went.
///
/// ```
/// use candor_sim::replay::Scenario;
/// let scenario = Scenario::parse("title t\nsend r1\nout A [0]\nin A ok 7\nexpect delivered r1 @7\n").unwrap();
/// let report = scenario.run("t.replay");
/// assert!(report.failure.is_none());
/// assert!(report.page.render().contains("<svg"));
/// ```
#[derive(Clone, Debug)]
pub struct Report {
    /// What went wrong, if anything did.
    pub failure: Option<Failure>,
    /// What happened, to be looked at.
    pub page: Page,
    /// How many batches were offered.
    pub offers: usize,
    /// How many records were sent.
    pub records: usize,
}

impl Scenario {
    /// Runs it with the shipped producer. `name` is how failures call it: its file.
    #[must_use]
    pub fn run(&self, name: &str) -> Report {
        let bent = |decisions| Bent::under(decisions, || self.run_under::<Bent>(name));
        match self.setup.near_the_end {
            NearTheEnd::Nothing => self.run_under::<Honest>(name),
            NearTheEnd::Sequences => bent(Decisions::of::<LateSequences>()),
            NearTheEnd::Epochs => bent(Decisions::of::<LateEpochs>()),
        }
    }

    /// Runs it with a bug planted in the producer: a scenario must be able to fail. Where numbers
    /// begin near their end the bug is not there.
    ///
    /// ```
    /// use candor_sim::{replay::Scenario, search::INVERSIONS};
    /// let text = "title t\nsend r1 deadline 1s\nout A [0]\ntick 1s\nexpect unknown r1\n";
    /// let bug = INVERSIONS.iter().find(|bug| bug.name == "DeadlineRefuses").unwrap();
    /// let failure = Scenario::parse(text).unwrap().run_planted("t", bug).failure.unwrap();
    /// assert_eq!((failure.line, &*failure.came), (5, "not delivered Refused"));
    /// ```
    #[must_use]
    pub fn run_planted(&self, name: &str, bug: &Inversion) -> Report {
        match self.setup.near_the_end {
            NearTheEnd::Nothing => Bent::under(bug.decisions(), || self.run_under::<Bent>(name)),
            NearTheEnd::Sequences | NearTheEnd::Epochs => self.run(name),
        }
    }

    fn run_under<R: Rules>(&self, name: &str) -> Report {
        let mut world = match World::<R>::new(self, name) {
            Ok(world) => world,
            Err(why) => {
                let wanted =
                    Mismatch { wanted: "a configuration that works".to_owned(), came: why };
                return Report {
                    failure: Some(self.failure(name, 1, wanted)),
                    page: Page::new(&self.title),
                    offers: 0,
                    records: 0,
                };
            }
        };
        let failure = self.play(&mut world).err().map(|(line, why)| self.failure(name, line, why));
        let mut page = world.book.page;
        page.end(match &failure {
            None => Ending::Well,
            Some(Failure { line, wanted, came, .. }) => Ending::Wrong {
                line: Some(*line),
                text: format!("expected: {wanted}\nhappened: {came}"),
            },
        });
        let page = page.again(&format!("candor sim run {name}"));
        Report { failure, page, offers: world.offers.all.len(), records: world.book.sheets.len() }
    }

    fn failure(&self, name: &str, line: usize, mismatch: Mismatch) -> Failure {
        let text = self.text.lines().nth(line.saturating_sub(1)).unwrap_or_default().trim();
        let Mismatch { wanted, came } = mismatch;
        Failure { name: name.to_owned(), line, text: text.to_owned(), wanted, came }
    }

    fn play<R: Rules>(&self, world: &mut World<R>) -> Result<(), (usize, Mismatch)> {
        for line in &self.steps {
            world.book.line = line.number;
            let done = world.act(&line.step);
            if let Some(wrong) = world.first_wrong() {
                let wanted = "nothing that no scenario allows".to_owned();
                return Err((line.number, Mismatch { wanted, came: wrong }));
            }
            done.map_err(|why| (line.number, why))?;
        }
        let last = self.steps.last().map_or(1, |line| line.number);
        self.finish(world).map_err(|why| (last, why))
    }

    /// What must hold at the end of every scenario.
    fn finish<R: Rules>(&self, world: &mut World<R>) -> Result<(), Mismatch> {
        world.book.line = 0;
        if !world.auto {
            world.nothing_out(None)?;
        }
        if let Some(sheet) = world.book.sheets.iter().find(|sheet| !sheet.expected) {
            let wanted = format!("a step that says what becomes of {}", sheet.name);
            return mismatch(&wanted, "there is none");
        }
        let unclaimed = world.notices.iter().find(|heard| {
            let name = notice_name(&heard.notice);
            let loud = matches!(heard.notice, candor_proto::Notice::Partition { .. });
            loud && name != "Fence" && !heard.claimed
        });
        if let Some(heard) = unclaimed {
            return mismatch(
                "no notice that the scenario does not name",
                &heard.notice.to_string(),
            );
        }
        if matches!(world.side, Side::Modelled(_)) {
            quiet(world)?;
        }
        match world.judged() {
            None => Ok(()),
            Some(found) => mismatch("nothing for the judge to find", &found),
        }
    }

    /// The steps, for tests: how many there are.
    #[must_use]
    pub fn steps(&self) -> usize {
        self.steps.len()
    }

    /// Whether it claims anything at all.
    #[must_use]
    pub fn expects(&self) -> bool {
        self.steps.iter().any(|line| matches!(line.step, Step::Expect(_)))
    }
}

/// Brokers are well and answer; everything ends, and the producer is closed.
fn quiet<R: Rules>(world: &mut World<R>) -> Result<(), Mismatch> {
    world.auto = true;
    world.conditions.clear();
    world.links.values_mut().for_each(|link| link.room = None);
    world.settle();
    world.run(Span::from_secs(180));
    if !world.closed {
        world.close(Span::from_secs(10));
        world.run(Span::from_secs(10));
    }
    match world.first_wrong() {
        Some(wrong) => mismatch("nothing that no scenario allows", &wrong),
        None if !world.closed => mismatch("closed in ten seconds", "it is open"),
        None => Ok(()),
    }
}
