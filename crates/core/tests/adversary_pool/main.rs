//! Several lanes on one pool of ids against brokers of an own hand: any schedule, judged by what is
//! committed. `ADVERSARY_SEEDS=100000` runs more, from `ADVERSARY_FROM` on; `ADVERSARY_SEED=17
//! cargo test .. -- --nocapture` tells one, shortened if it fails (whole with `ADVERSARY_WHOLE=1`).
#![allow(clippy::expect_used, clippy::panic, reason = "a test")]

mod bent;
mod broker;
mod dice;
mod schedules;
mod world;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use candor_core::rules::{Honest, Rules};

use bent::{Bent, PLANTS, Plant};
use dice::Dice;
use world::{Fault, World};

/// What happened how often.
type Tally = BTreeMap<&'static str, u64>;

struct Ending {
    fault: Option<Fault>,
    drawn: Vec<u32>,
    log: Vec<String>,
}

fn live<R: Rules>(mut dice: Dice, tells: bool, tally: &mut Tally) -> Ending {
    let steps = [40, 80, 160, 400][dice.below(4) as usize];
    let mut world: World<R> = World::new(dice, tells);
    let ran = catch_unwind(AssertUnwindSafe(|| world.run(steps)));
    let fault = match ran {
        Ok(Ok(())) => None,
        Ok(Err(fault)) => Some(fault),
        Err(_) => Some(Fault { kind: "panic", detail: String::new() }),
    };
    for (what, count) in &world.tally {
        *tally.entry(what).or_default() += count;
    }
    let (drawn, log) = world.drawn();
    Ending { fault, drawn, log }
}

/// How much happens.
fn weight(ending: &Ending) -> usize {
    ending.drawn.len() + ending.drawn.iter().filter(|draw| **draw != 0).count()
}

/// Leaves out draws for as long as the same kind of fault remains.
fn shrink<R: Rules>(ending: Ending) -> Ending {
    let kind = ending.fault.as_ref().map(|fault| fault.kind);
    let mut best = ending;
    let mut nothing = Tally::new();
    let mut size = best.drawn.len() / 2;
    let mut budget = 2_000;
    while size >= 1 && budget > 0 {
        let mut at = 0;
        let mut better = false;
        while at < best.drawn.len() && budget > 0 {
            for zero in [false, true] {
                budget -= 1;
                let mut script = best.drawn.clone();
                let end = (at + size).min(script.len());
                if zero {
                    if script[at..end].iter().all(|draw| *draw == 0) {
                        continue;
                    }
                    script[at..end].fill(0);
                } else {
                    script.drain(at..end);
                }
                let tried = live::<R>(Dice::scripted(script), false, &mut nothing);
                let same = tried.fault.as_ref().map(|fault| fault.kind) == kind;
                if same && weight(&tried) < weight(&best) {
                    best = tried;
                    better = true;
                }
            }
            at += size;
        }
        if !better || size > 1 {
            size /= 2;
        }
    }
    best
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn lanes_on_one_pool_tell_the_truth_whatever_happens() {
    if let Some(seed) = number("ADVERSARY_SEED") {
        let mut ending = live::<Honest>(Dice::seeded(seed), true, &mut Tally::new());
        if ending.fault.is_some() && std::env::var("ADVERSARY_WHOLE").is_err() {
            let script = shrink::<Honest>(ending).drawn;
            ending = live::<Honest>(Dice::scripted(script), true, &mut Tally::new());
        }
        println!("{}\n{:?}", ending.log.join("\n"), ending.fault);
        return;
    }
    let from = number("ADVERSARY_FROM").unwrap_or(0);
    let seeds = number("ADVERSARY_SEEDS").unwrap_or(3_000);
    let mut tally = Tally::new();
    let mut kinds = BTreeMap::<&str, Vec<u64>>::new();
    for seed in from..from + seeds {
        let ending = live::<Honest>(Dice::seeded(seed), false, &mut tally);
        if let Some(fault) = &ending.fault {
            kinds.entry(fault.kind).or_default().push(seed);
        }
    }
    println!("{tally:#?}");
    let brief: Vec<_> = kinds
        .iter()
        .map(|(kind, seeds)| (kind, seeds.len(), &seeds[..seeds.len().min(8)]))
        .collect();
    assert!(kinds.is_empty(), "{brief:?}");
}

/// The seeds in which a bent lane is convicted, as far as the first one.
fn convicted(plant: Option<Plant>, seeds: std::ops::Range<u64>) -> Option<(u64, Fault)> {
    bent::set(plant);
    let mut nothing = Tally::new();
    seeds.into_iter().find_map(|seed| {
        let ending = live::<Bent>(Dice::seeded(seed), false, &mut nothing);
        Some((seed, ending.fault?))
    })
}

#[test]
fn wrong_decisions_are_convicted() {
    let seeds = number("ADVERSARY_PLANTS").unwrap_or(3_000);
    let mut unseen = Vec::new();
    for plant in PLANTS {
        let found = convicted(Some(*plant), 0..seeds);
        println!("{plant:?}: {:?}", found.as_ref().map(|(seed, fault)| (seed, fault.kind)));
        unseen.extend(found.is_none().then_some(*plant));
    }
    assert_eq!(unseen, []);
    assert_eq!(convicted(None, 0..50), None, "it was the plant");
}
