//! Nothing befalls the producer: then everything is delivered, and nothing is unknown.

use candor_core::rules::Honest;
use fastrand::Rng;

use super::run::{Options, Report, report_of_nothing};
use super::scenario::{Scenario, TopicPlan};
use super::steps::{Keep, Steps, Taken};
use super::world::World;
use super::{tally, trial};
use crate::broker::Profile;

/// What came of a run without faults.
///
/// ```
/// let calm = candor_sim::swarm::calm(500, 1);
/// assert!(calm.is_well(), "{}", calm.report);
/// assert_eq!(calm.report.verdicts.delivered, 500);
/// ```
#[derive(Clone, Debug)]
pub struct Calm {
    /// Records that were sent.
    pub records: u64,
    /// Virtual time until the last verdict, in microseconds.
    pub lasted: u64,
    /// The judge's word on it.
    pub report: Report,
}

impl Calm {
    /// Everything was delivered, in time, and nothing was found.
    #[must_use]
    pub fn is_well(&self) -> bool {
        let verdicts = self.report.verdicts;
        self.report.is_clean()
            && (verdicts.accepted, verdicts.delivered) == (self.records, self.records)
            && (verdicts.unknown, verdicts.latest) == (0, 0)
    }
}

/// Sends so many records in bursts to a cluster that nothing befalls, and judges that.
#[must_use]
pub fn calm(records: u64, seed: u64) -> Calm {
    let mut rng = Rng::with_seed(seed);
    let scenario = scenario(&mut rng, records);
    let empty = report_of_nothing(seed, Profile::V4_4, &Options::default());
    tally::begin(None, 0);
    let steps = Steps::new(seed, Keep::All, Taken::default());
    let (lasted, mut report) = match World::<Honest>::new(scenario, seed, rng, steps, false) {
        Ok(mut world) => {
            let lasted = world.run_calmly();
            (lasted, trial::judge_world(&mut world, empty))
        }
        Err(error) => {
            let anomalies = vec![format!("the scenario's configuration: {error}")];
            (0, Report { anomalies, ..empty })
        }
    };
    report.rules = tally::end();
    Calm { records, lasted, report }
}

fn scenario(rng: &mut Rng, records: u64) -> Scenario {
    let topic = |at: usize| TopicPlan {
        name: format!("topic-{at}"),
        partitions: 3,
        min_insync: 2,
        log_append_time: false,
        exists: true,
    };
    Scenario { records, topics: (0..3).map(topic).collect(), ..Scenario::calm(rng) }
}

impl World<Honest> {
    /// Sends everything and waits for every word; gives how long that took.
    fn run_calmly(&mut self) -> u64 {
        self.rough = false;
        let began = self.clock.now;
        while self.left_to_send > 0 && self.step(u64::MAX) {}
        self.await_words();
        let lasted = self.clock.now - began;
        self.close_in_peace();
        self.let_all_arrive();
        lasted
    }
}
