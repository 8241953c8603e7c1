//! The swarm over the whole producer, as far as `cargo test` has time for it, and whether it would
//! find anything: planted bugs, and what they are shrunk to.

#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests")]

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use candor_sim::judge::Class;
use candor_sim::swarm::{
    Extent, Keep, Options, Plant, Report, SHRINK_RUNS, Step, calm, plants, run_many, run_seed,
};

/// Where people read of planted bugs; rows are what the tests below print with `--nocapture`.
const TABLE: &str = include_str!("../../../docs/planted-bugs.md");

#[test]
fn three_hundred_seeds_are_clean() {
    let mut summary = run_many(0, Extent::Seeds(300), 2, &Options::default());
    println!("{summary}");
    if !summary.is_well() {
        summary.shrink_first();
        panic!("{summary}");
    }
}

#[test]
fn a_seed_is_a_world() {
    for seed in 0..10 {
        let (once, again) =
            (run_seed(seed, &Options::default()), run_seed(seed, &Options::default()));
        assert_eq!(once.trace, again.trace, "seed {seed}");
        assert_ne!(once.trace, run_seed(seed + 1, &Options::default()).trace);
    }
}

/// A first slot that is contested, written, deleted and forgotten, and written again (A3); a lane
/// that was idle while brokers told of other leaders, and heard of none of them; slots that were given
/// up with one behind them (V2); a replacement that came with the second pass; a record that was
/// refused in the moment in which it was given up for want of memory; copies that came when the broker
/// had forgotten their own batch, or the one behind it, or what had taken its slot; leaders that did not
/// know of their fall for longer than metadata was believed (S21); a batch whose attempts before a log
/// start moved were all refused; a 46 where a replacement reaches over the batch, and where another
/// broker had it; a slot that was given up to be split (V1).
#[test]
fn what_once_looked_wrong_and_was_not_is_clean() {
    let forgotten = [9_003_691, 9_008_085, 9_006_461];
    let alarms = [7_004_574, 7_011_439, 7_013_433, 7_003_089, 30_007_560, 50_053_968, 50_011_320];
    let late_copies = [9_018_568, 20_018_932, 20_018_587];
    let others = [
        7_003_167, 9_012_708, 20_015_947, 20_011_869, 50_018_383, 50_033_119, 50_054_117, 8_028_549,
    ];
    for seed in [&forgotten[..], &alarms, &late_copies, &others].concat() {
        let report = run_seed(seed, &Options::default());
        assert!(report.is_clean(), "{report}");
    }
}

/// Replacements in doubt that a 0 of their batch said nothing of (C4, A3); contests that started over
/// on another connection, and retries at an older leader, without a wait (L3); a late 0 of an older epoch
/// that a log start was not compared with (S20).
#[test]
fn what_was_wrong_once_is_clean() {
    for seed in [9_017_745, 20_007_159, 20_001_722, 20_017_991, 50_012_085, 50_033_104] {
        let report = run_seed(seed, &Options::default());
        assert!(report.is_clean(), "{report}");
    }
}

#[test]
fn without_faults_everything_is_delivered() {
    let calm = calm(100_000, 5);
    assert!(calm.is_well(), "{}", calm.report);
}

#[test]
fn steps_that_are_left_out_do_not_happen() {
    let all = run_seed(11, &Options::default());
    let records =
        |report: &Report| report.steps.iter().filter(|s| matches!(s, Step::Record(_))).count();
    let none = run_seed(11, &Options { keep: Keep::Only([].into()), ..Options::default() });
    assert!(none.is_clean() && none.steps.is_empty(), "{none}");
    assert!(none.verdicts.accepted < all.verdicts.accepted);
    let few = Keep::Only([Step::Record(0), Step::Record(3)].into());
    let few = run_seed(11, &Options { keep: few, ..Options::default() });
    assert_eq!((records(&few), few.steps.len()), (2, 2));
    let every = Keep::Only(all.steps.iter().copied().collect());
    let again = run_seed(11, &Options { keep: every, ..Options::default() });
    assert_eq!(again.trace, all.trace);
}

/// Seeds in which a planted bug must show.
const SEEDS: u64 = 300;
/// Bugs that only bytes show take so many seeds at most.
const SOON: u64 = 60;

/// Rows of the table over bytes: name, method and what it costs in seeds.
fn rows() -> Vec<(&'static str, &'static str, u64)> {
    let (_, table) = TABLE.split_once("## Over bytes").expect("the section");
    let cells = table.lines().filter(|line| line.starts_with("| ")).map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        (cells[0], cells[1].trim_matches('`'), cells[cells.len() - 1].parse())
    });
    cells.filter_map(|(name, method, cost)| Some((name, method, cost.ok()?))).collect()
}

#[test]
fn planted_bugs_are_found_over_bytes_as_the_table_says() {
    let rows = rows();
    assert!(rows.len() > 40, "{rows:?}");
    let (next, missed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some((name, method, _)) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
            let plant = plant(name);
            assert_eq!(plant.method(), *method);
            match plant.hunt(SEEDS) {
                Some(found) => println!("{name}: {:?} in {} seeds", found.classes, found.seed + 1),
                None => missed.lock().unwrap().push(name),
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    let missed = missed.into_inner().unwrap();
    assert!(missed.is_empty(), "not found: {missed:?}");
}

#[test]
fn bugs_that_only_bytes_show_are_in_the_table() {
    let rows = rows();
    for plant in plants().iter().filter(|plant| plant.only_over_bytes()) {
        let named = rows.iter().any(|(name, _, cost)| *name == plant.name() && *cost <= SOON);
        assert!(named, "{} is not found soon", plant.name());
    }
}

fn plant(name: &str) -> Plant {
    let named = |plant: &Plant| plant.name() == name;
    plants().into_iter().find(named).unwrap_or_else(|| panic!("no bug is named {name}"))
}

#[test]
fn a_failing_run_is_shrunk_to_what_makes_it_fail() {
    for name in ["NotLeaderRefuses", "NoGate"] {
        let plant = plant(name);
        let seed = plant.hunt(SEEDS).expect("found").seed;
        let report = plant.run(seed, &Options::default());
        let shrunk = plant.shrink(&report, SHRINK_RUNS).expect("it fails");
        println!("{name}: {} of {} steps, {} runs", shrunk.to, shrunk.from, shrunk.runs);
        println!("{}", shrunk.report);
        assert!(shrunk.to * 2 <= shrunk.from, "{} of {} steps", shrunk.to, shrunk.from);
        assert!(shrunk.report.classes.contains(&report.classes[0]), "{}", shrunk.report);
        // One command runs it again.
        let steps: Vec<String> = shrunk.report.steps.iter().map(Step::to_string).collect();
        let replay = shrunk.report.replay();
        assert!(steps.iter().all(|step| replay.contains(step)), "{replay}");
        let keep = steps.iter().map(|step| step.parse().expect("a step")).collect();
        let profile = Some(report.profile);
        let again = plant.run(seed, &Options { profile, keep: Keep::Only(keep), timeline: false });
        assert_eq!(again.trace, shrunk.report.trace);
    }
}

#[test]
fn an_unknown_is_a_fault_where_the_answer_was_in_hand() {
    for name in ["RefusalDoubts", "DeadlineDoubts"] {
        let plant = plant(name);
        let coward =
            |seed: &u64| plant.run(*seed, &Options::default()).classes.contains(&Class::Coward);
        assert!((0..SEEDS).any(|seed| coward(&seed)), "{name} is not called a coward");
    }
}

#[test]
fn the_page_of_a_failing_seed_names_what_is_wrong() {
    let plant = plant("NoGate");
    let seed = plant.hunt(SEEDS).expect("found").seed;
    let report = plant.run(seed, &Options::default());
    let page = report.page.expect("a page").render();
    for wanted in [report.classes[0].to_string(), report.anomalies[0].clone()] {
        assert!(page.contains(&wanted), "{wanted} is not in the page");
    }
    assert!(page.contains(&format!("candor sim replay {seed}")));
    assert!(run_seed(seed, &Options::default()).page.is_none(), "nothing is wrong without the bug");
}
