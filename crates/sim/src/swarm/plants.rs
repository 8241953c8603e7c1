//! Planted bugs: what a swarm that finds nothing must be able to find.

use candor_core::rules::{CutFacts, Rules};
use candor_core::{LeaderEpoch, Span};

use super::run::{Options, Report, run_with};
use super::shrink::{Shrunk, shrink_with};
use crate::judge::Class;
use crate::search::{Bent, Decisions, INVERSIONS};

macro_rules! plants {
    ($($(#[doc = $about:literal])+ $name:ident {
        fn $method:ident($($argument:tt)*) -> $result:ty $body:block
    })*) => {
        $(
            $(#[doc = $about])+
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            struct $name;

            impl Rules for $name {
                fn $method($($argument)*) -> $result $body
            }
        )*

        /// Bugs in what concerns several partitions, or bytes: no search over one lane sees them.
        const BYTES: &[(&str, &str, Decisions)] = &[
            $((stringify!($name), stringify!($method), Decisions::of::<$name>())),*
        ];
    };
}

plants! {
    /// Whoever was heard last is the leader.
    LastWordLeads {
        fn follows_leader(_: LeaderEpoch, _: LeaderEpoch) -> bool {
            true
        }
    }
    /// A partition may stand in a request twice.
    TwiceInRequest {
        fn may_repeat_in_request() -> bool {
            true
        }
    }
    /// Brokers may take as long as we do.
    PatientBroker {
        fn produce_timeout(request_timeout: Span, _: Option<Span>) -> Span {
            request_timeout
        }
    }
    /// Unknowns may hold all memory.
    UnknownsHoldAll {
        fn unknown_share(memory: usize) -> usize {
            memory
        }
    }
    /// Replacements of any size.
    AnyCut {
        fn cut_is_legal(facts: &CutFacts<'_>) -> bool {
            facts.count > 0
        }
    }
    /// Nobody waits until bytes are sent.
    BottomlessWindow {
        fn window_has_room(_: usize, _: usize) -> bool {
            true
        }
    }
}

/// A planted bug.
///
/// ```
/// use candor_sim::swarm::plants;
/// assert!(plants().iter().any(|plant| plant.method() == "window_has_room"));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Plant {
    name: &'static str,
    method: &'static str,
    only_over_bytes: bool,
    decisions: Decisions,
}

/// Where a planted bug was found, and as what.
///
/// ```
/// use candor_sim::judge::Class;
/// let found = candor_sim::swarm::PlantFound { seed: 3, classes: vec![Class::Lost] };
/// assert_eq!(found.seed, 3);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlantFound {
    /// The first seed that shows it.
    pub seed: u64,
    /// What the judge calls it.
    pub classes: Vec<Class>,
}

/// All planted bugs: those of the search, and those that only bytes show.
#[must_use]
pub fn plants() -> Vec<Plant> {
    let bytes = BYTES.iter().map(|(name, method, decisions)| Plant {
        name,
        method,
        only_over_bytes: true,
        decisions: *decisions,
    });
    let lanes = INVERSIONS.iter().map(|inversion| Plant {
        name: inversion.name,
        method: inversion.method,
        only_over_bytes: false,
        decisions: inversion.decisions(),
    });
    bytes.chain(lanes).collect()
}

impl Plant {
    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The method of `Rules` that it overrides.
    #[must_use]
    pub const fn method(&self) -> &'static str {
        self.method
    }

    /// Whether it concerns several partitions or bytes, so that no search over one lane sees it.
    #[must_use]
    pub const fn only_over_bytes(&self) -> bool {
        self.only_over_bytes
    }

    /// Runs seeds from 0 on until one shows it, at most so many.
    #[must_use]
    pub fn hunt(&self, seeds: u64) -> Option<PlantFound> {
        let options = Options::default();
        (0..seeds).find_map(|seed| {
            let mut classes = self.run(seed, &options).classes;
            classes.sort_unstable();
            classes.dedup();
            (!classes.is_empty()).then_some(PlantFound { seed, classes })
        })
    }

    /// What comes of a seed with the bug in it.
    #[must_use]
    pub fn run(&self, seed: u64, options: &Options) -> Report {
        Bent::under(self.decisions, || run_with::<Bent>(seed, options))
    }

    /// Leaves out of a run what it can do without and still show the bug, in at most `most` runs.
    #[must_use]
    pub fn shrink(&self, report: &Report, most: u32) -> Option<Shrunk> {
        Bent::under(self.decisions, || shrink_with::<Bent>(report, most))
    }
}
