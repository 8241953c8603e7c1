//! Which faults come when: a function of the seed and of how much there is to send.

use candor_sim::serve::{Effect, Fault, Moment, Release, Trigger, Upset};

use super::{BROKERS, PARTITIONS, TOPIC};

/// How long a broker holds its answer back when it freezes, in microseconds: longer than impatient
/// records wait, shorter than a request may take.
const FREEZE: u64 = 900_000;
/// Codes that the demo's brokers answer: after the append, and instead of it.
const REQUEST_TIMED_OUT: i16 = 7;
const NOT_ENOUGH_REPLICAS: i16 = 19;
/// Batches of a partition that the whole input should fill.
const BATCHES: u64 = 40;
/// Less would refuse long lines.
const LEAST_MEMORY: usize = 64 << 10;

/// The demo's faults, in the order of their coming.
#[derive(Debug)]
pub(crate) struct Plan {
    faults: Vec<Fault>,
    batch_size: usize,
}

impl Plan {
    /// For so many bytes of input.
    pub(crate) fn new(seed: u64, bytes: u64) -> Self {
        let batch_size = (bytes / (BATCHES * PARTITIONS as u64)).clamp(1, 64 << 10) as usize;
        let requests = bytes / batch_size as u64;
        let mut dice = Dice(seed);
        let effects = effects(&mut dice);
        let gap = (requests * 3 / 4 / effects.len() as u64).max(2);
        let mut nth = 1;
        let mut faults = Vec::new();
        for effect in effects {
            nth += gap / 2 + dice.below(gap);
            faults.push(Fault::on_produce(nth, effect));
        }
        Self { faults, batch_size }
    }

    pub(crate) fn faults(&self) -> &[Fault] {
        &self.faults
    }

    pub(crate) const fn batch_size(&self) -> usize {
        self.batch_size
    }

    /// Some batches per partition.
    pub(crate) const fn memory(&self) -> usize {
        let batches = self.batch_size * 8 * PARTITIONS;
        if batches < LEAST_MEMORY { LEAST_MEMORY } else { batches }
    }
}

fn effects(dice: &mut Dice) -> Vec<Effect> {
    let freeze = || Effect::HoldReply(Release::Elapsed(FREEZE));
    let upset = |upset| Effect::Upset { upset, at: Moment::After };
    let mut effects = vec![
        Effect::DropReply,
        Effect::CutReply(dice.below(40) as usize),
        Effect::CutRequest(100 + dice.below(400) as usize),
        upset(dice.leader_move()),
        upset(dice.leader_move()),
        upset(Upset::Restart { node: dice.broker(), crash: true }),
        Effect::Answer { code: REQUEST_TIMED_OUT, at: Moment::After },
        Effect::Answer { code: NOT_ENOUGH_REPLICAS, at: Moment::Before },
        Effect::CutReply(dice.below(40) as usize),
        freeze(),
    ];
    for last in (1..effects.len()).rev() {
        effects.swap(last, dice.below(last as u64 + 1) as usize);
    }
    // However short the demo is, it begins with what it is about.
    effects.insert(0, freeze());
    effects
}

/// What a fault is, for people.
pub(crate) fn describe(fault: &Fault) -> String {
    let what = match &fault.effect {
        Effect::DropReply => "written, and its answer was lost".to_owned(),
        Effect::CutReply(bytes) => {
            format!("written, and the connection broke {bytes} bytes into its answer")
        }
        Effect::CutRequest(bytes) => format!("lost: the connection broke {bytes} bytes into it"),
        Effect::Answer { code: REQUEST_TIMED_OUT, at: Moment::After } => {
            "written, and yet answered REQUEST_TIMED_OUT".to_owned()
        }
        Effect::Answer { code: NOT_ENOUGH_REPLICAS, .. } => {
            "refused: NOT_ENOUGH_REPLICAS".to_owned()
        }
        Effect::Answer { code, .. } => format!("answered with code {code}"),
        Effect::HoldReply(_) => {
            format!("written, and the broker froze for {} ms before the answer", FREEZE / 1000)
        }
        Effect::Upset { upset, .. } => format!("written, then {}", describe_upset(upset)),
        Effect::Throttle(_) => "throttled".to_owned(),
    };
    match fault.trigger {
        Trigger::Produce(nth) => format!("request {nth:>3} was {what}"),
        Trigger::ProduceTo { .. } | Trigger::Request { .. } => format!("a request was {what}"),
    }
}

fn describe_upset(upset: &Upset) -> String {
    match upset {
        Upset::MoveLeader { partition, to, .. } => {
            format!("broker {to} became the leader of partition {partition}")
        }
        Upset::Restart { node, .. } => format!("broker {node} crashed and started again"),
        Upset::Stop { node, .. } => format!("broker {node} went down"),
        Upset::ForgetProducers { partition, .. } => {
            format!("partition {partition} forgot its producers")
        }
        Upset::RecreateTopic { topic } => format!("topic {topic} was made anew"),
    }
}

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound.max(1)
    }

    fn broker(&mut self) -> u8 {
        1 + self.below(u64::from(BROKERS)) as u8
    }

    fn leader_move(&mut self) -> Upset {
        let partition = self.below(PARTITIONS as u64) as i32;
        Upset::MoveLeader { topic: TOPIC.to_owned(), partition, to: self.broker() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_a_plan() {
        assert_eq!(Plan::new(7, 500_000).faults(), Plan::new(7, 500_000).faults());
        assert_ne!(Plan::new(7, 500_000).faults(), Plan::new(8, 500_000).faults());
    }

    #[test]
    fn all_faults_come_while_there_is_something_to_send() {
        for seed in 0..100 {
            let plan = Plan::new(seed, 500_000);
            let last = plan.faults().last().unwrap();
            let requests = 500_000 / plan.batch_size() as u64;
            assert!(matches!(last.trigger, Trigger::Produce(nth) if nth < requests), "{last:?}");
        }
    }
}
