//! What a run is made of, piece by piece, so that a failing one can do with fewer.
//!
//! A step is a record, or one thing that befell the run. At every step the draws begin anew, from the
//! seed and the step alone: a run that leaves one out goes on much like the run that did not.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;
use std::rc::Rc;
use std::str::FromStr;

use fastrand::Rng;
use thiserror::Error;

use super::rows::Trouble;

/// One piece of a run.
///
/// Written `r3` for the fourth record, `CutReply.0` for the first connection that is cut within a
/// reply.
///
/// ```
/// use candor_sim::swarm::{Step, Trouble};
/// assert_eq!("CutReply.2".parse(), Ok(Step::Trouble(Trouble::CutReply, 2)));
/// assert_eq!(Step::Record(17).to_string(), "r17");
/// assert!("CutReply".parse::<Step>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// A record is sent; counted from 0.
    Record(u32),
    /// Something happens; counted from 0 for each trouble.
    Trouble(Trouble, u32),
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Record(nth) => write!(f, "r{nth}"),
            Self::Trouble(trouble, nth) => write!(f, "{trouble:?}.{nth}"),
        }
    }
}

/// A step that cannot be read.
///
/// ```
/// let error = "x9".parse::<candor_sim::swarm::Step>().unwrap_err();
/// assert!(error.to_string().contains("x9"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0} is no step of a run: write r3 for a record, CutReply.0 for a trouble")]
pub struct BadStep(String);

impl FromStr for Step {
    type Err = BadStep;

    fn from_str(text: &str) -> Result<Self, BadStep> {
        let bad = || BadStep(text.to_owned());
        if let Some(nth) = text.strip_prefix('r')
            && let Ok(nth) = nth.parse()
        {
            return Ok(Self::Record(nth));
        }
        let (name, nth) = text.split_once('.').ok_or_else(bad)?;
        let named = |trouble: &&Trouble| format!("{trouble:?}") == name;
        let trouble = Trouble::ALL.iter().find(named).ok_or_else(bad)?;
        Ok(Self::Trouble(*trouble, nth.parse().map_err(|_| bad())?))
    }
}

/// What of a run happens.
///
/// ```
/// use candor_sim::swarm::{Keep, Step};
/// assert!(Keep::All.has(Step::Record(4)));
/// assert!(!Keep::Only([Step::Record(3)].into()).has(Step::Record(4)));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// Everything.
    #[default]
    All,
    /// These steps only.
    Only(BTreeSet<Step>),
}

impl Keep {
    /// Whether a step happens.
    #[must_use]
    pub fn has(&self, step: Step) -> bool {
        match self {
            Self::All => true,
            Self::Only(steps) => steps.contains(&step),
        }
    }
}

/// Steps that were taken, in order. Whoever started the run can read it even if the run panics.
pub(super) type Taken = Rc<RefCell<Vec<Step>>>;

/// The steps of a run as they come up.
#[derive(Clone, Debug)]
pub(super) struct Steps {
    seed: u64,
    keep: Keep,
    turns: u64,
    records: u32,
    troubles: [u32; Trouble::COUNT],
    taken: Taken,
}

impl Steps {
    pub(super) fn new(seed: u64, keep: Keep, taken: Taken) -> Self {
        Self { seed, keep, turns: 0, records: 0, troubles: [0; Trouble::COUNT], taken }
    }

    /// The caller's next turn, with its own draws.
    pub(super) fn turn(&mut self) -> Rng {
        self.turns += 1;
        self.draws(u64::MAX, self.turns)
    }

    /// The next record, with its own draws; whether it is sent.
    pub(super) fn record(&mut self) -> (bool, Rng) {
        let step = Step::Record(self.records);
        self.records += 1;
        (self.take(step), self.draws(u64::MAX - 1, u64::from(self.records)))
    }

    /// The next trouble of its kind, with its own draws; whether it happens.
    pub(super) fn trouble(&mut self, trouble: Trouble) -> (bool, Rng) {
        let Some(nth) = self.troubles.get_mut(trouble as usize) else {
            return (false, Rng::with_seed(self.seed));
        };
        let step = Step::Trouble(trouble, *nth);
        *nth += 1;
        let rng = self.draws(trouble as u64, u64::from(self.troubles[trouble as usize]));
        (self.take(step), rng)
    }

    fn take(&mut self, step: Step) -> bool {
        let kept = self.keep.has(step);
        if kept {
            self.taken.borrow_mut().push(step);
        }
        kept
    }

    fn draws(&self, kind: u64, nth: u64) -> Rng {
        let mut rng = Rng::with_seed(self.seed ^ kind.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let seed = rng.u64(..) ^ nth.wrapping_mul(0xd1b5_4a32_d192_ed03);
        Rng::with_seed(seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_can_be_written_and_read() {
        for trouble in Trouble::ALL {
            let step = Step::Trouble(*trouble, 12);
            assert_eq!(step.to_string().parse(), Ok(step));
        }
        assert_eq!("r0".parse(), Ok(Step::Record(0)));
        for text in ["", "r", "r-1", "CutReply.", "Nothing.1", "CutReply.x"] {
            assert!(text.parse::<Step>().is_err(), "{text}");
        }
    }

    #[test]
    fn draws_of_a_step_do_not_depend_on_those_before() {
        let (every, one) = (Taken::default(), Taken::default());
        let mut all = Steps::new(7, Keep::All, every.clone());
        let mut some = Steps::new(7, Keep::Only([Step::Record(1)].into()), one.clone());
        assert!(all.record().0);
        let ((_, mut here), (_, mut there)) = (all.record(), {
            assert!(!some.record().0);
            some.record()
        });
        assert_eq!(here.u64(..), there.u64(..));
        assert_eq!((every.borrow().len(), one.borrow().len()), (2, 1));
    }
}
