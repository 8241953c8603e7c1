//! The shipped lane in all small scopes: no schedule convicts it, and each scope is closed.
#![allow(clippy::expect_used, reason = "a test's helpers may fail the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::thread;

use candor_core::rules::{Class, Honest, Rules};
use candor_sim::search::{
    Contest, Course, Fault, Plan, Report, SCOPES, Say, Scope, Shipped, Size, Ticks, explore,
    explore_twins, explore_wide, independent, scope,
};

/// More states than any scope that is run here has.
const LIMIT: usize = 20_000_000;

fn explore_all(scopes: &[&Scope]) -> Vec<Report> {
    scopes.iter().map(|scope| explore::<Shipped>(scope, LIMIT)).collect()
}

#[test]
fn no_schedule_convicts_the_lane() {
    // The widest scope has a thread of its own: the others together take as long.
    let (wide, narrow): (Vec<&Scope>, Vec<&Scope>) = SCOPES
        .iter()
        .filter(|scope| scope.size == Size::Small && scope.name != "two-faults")
        .partition(|scope| scope.name == "any-fault");
    let reports = thread::scope(|threads| {
        let wide = threads.spawn(|| explore_all(&wide));
        let mut reports = explore_all(&narrow);
        reports.extend(wide.join().expect("the search does not panic"));
        reports
    });
    for report in &reports {
        println!("{report}");
    }
    for report in &reports {
        assert!(report.counterexample.is_none(), "{report}");
        assert!(report.closed, "{report}");
    }
    let states: usize = reports.iter().map(|report| report.states).sum();
    println!("{states} states in {} scopes", reports.len());
    assert!(states > 100_000, "too small to mean anything: {states}");
}

#[test]
fn two_faults_of_any_kind_convict_nobody() {
    let report = explore_wide::<Shipped>(2, named("two-faults"), LIMIT, &Course::default());
    println!("{report}");
    assert!(report.closed && report.counterexample.is_none(), "{report}");
    assert!(report.states > 100_000, "too small to mean anything: {report}");
}

/// Two partitions share ids, connections and brokers: each lives through exactly what it would live
/// through alone (S9).
#[test]
fn partitions_of_one_producer_do_not_touch_each_other() {
    for name in ["neighbour", "refused", "conflict", "failover"] {
        let scope = Scope { records: &[Plan::SHORT], at_once: 1, ..named(name).clone() };
        let twins = explore_twins::<Shipped>(&scope, LIMIT);
        println!("{name} twice: {} states, {} transitions", twins.states, twins.transitions);
        assert!(twins.closed && twins.found.is_none(), "{twins:?}");
        assert!(independent::<Shipped>(&scope, &twins), "{name}");
        let other = Scope { faults: scope.faults - 1, ..scope };
        assert!(
            !independent::<Shipped>(&other, &twins),
            "{name}: whatever happens, it is the same"
        );
    }
}

/// C2, C3: the size of a replacement of batches of these sizes that keeps `kept` records and may take
/// `newer` others, in a batch of three at most.
fn cut(sizes: &[u32], kept: u32, newer: u32) -> Option<u32> {
    let begins = |at: u32| (1..sizes.len()).any(|n| sizes[..n].iter().sum::<u32>() == at);
    let legal = |size: &u32| *size != sizes[0] && !begins(*size) && *size <= 3;
    (kept.max(1)..=kept + newer).find(legal).or_else(|| (1..kept).rev().find(legal))
}

/// Two and three batches in doubt behind one that was delivered, of every size: the slot of the
/// first one is contested with what C2 and C3 call for, and with nothing else (T42, T59).
#[test]
fn every_cut_is_legal_and_every_legal_one_is_reached() {
    let report = explore::<Shipped>(named("revoke-two"), LIMIT);
    assert!(report.closed && report.counterexample.is_none(), "{report}");
    let mut expected = BTreeSet::new();
    let sizes = (1..=3).flat_map(|a| (1..=3).flat_map(move |b| (0..=3).map(move |c| [a, b, c])));
    for sizes in sizes.filter(|sizes| sizes.iter().sum::<u32>() <= 4) {
        let sizes: Vec<u32> = sizes.into_iter().filter(|size| *size > 0).collect();
        let sum: u32 = sizes.iter().sum();
        // Record 0 was delivered, and record 1 is revoked: four are left, of which one is not kept.
        let cuts = (0..=4 - sum).filter_map(|newer| cut(&sizes, sum - 1, newer));
        expected.extend(cuts.map(|size| Contest { contested: sizes.clone(), size }));
    }
    let (alone, several): (BTreeSet<Contest>, BTreeSet<Contest>) =
        report.contests.into_iter().partition(|contest| contest.contested.len() == 1);
    assert_eq!(several, expected);
    assert!(alone.iter().all(|contest| contest.size != contest.contested[0]), "{alone:?}");
    let lone: BTreeSet<u32> = alone.iter().map(|contest| contest.contested[0]).collect();
    assert_eq!(lone, BTreeSet::from([1, 2, 3]));
}

fn named(name: &str) -> &'static Scope {
    scope(name).expect("a scope of this name")
}

/// Scopes in which the search is run with and without everything that makes it smaller.
fn compared() -> Vec<Scope> {
    let names = ["first-contact", "lost-answers", "refused", "purge", "recreated", "cancel"];
    let mut scopes: Vec<Scope> = names.iter().map(|name| named(name).clone()).collect();
    let everything = named("everything");
    let two = &[Plan::SHORT, Plan::LONG];
    scopes.push(Scope { records: two, at_once: 2, faults: 1, ..everything.clone() });
    let kinds = &[Fault::Elect, Fault::Depose, Fault::LoseWhole, Fault::LoseGone];
    let one = Scope { records: two, at_once: 2, codes: &[Say::Before(19)], ..everything.clone() };
    scopes.push(Scope { kinds, ..one });
    scopes
}

/// Canonical names, the coarser form of what is still, frames that are taken away, states that are
/// contained in others: with all of it, and without any of it, runs end in the same ways.
#[test]
fn what_makes_the_search_smaller_hides_no_end() {
    for scope in compared() {
        let plain = explore::<Shipped>(&Scope { plain: true, ..scope.clone() }, LIMIT);
        let canonical = explore::<Shipped>(&scope, LIMIT);
        let wide = explore_wide::<Shipped>(2, &scope, LIMIT, &Course::default());
        println!("{plain}\n{canonical}\n{wide}");
        for report in [&plain, &canonical, &wide] {
            assert!(report.closed && report.counterexample.is_none(), "{report}");
            assert_eq!(report.ends, plain.ends, "{}", scope.name);
        }
        assert!(canonical.states <= plain.states && wide.states <= canonical.states);
    }
}

/// The number of threads changes nothing of what a wide search reports.
#[test]
fn threads_change_nothing() {
    let scope = named("failover");
    let one = explore_wide::<Shipped>(1, scope, LIMIT, &Course::default());
    let three = explore_wide::<Shipped>(3, scope, LIMIT, &Course::default());
    assert_eq!((one.states, &one.layers, &one.ends), (three.states, &three.layers, &three.ends));
    assert!(one.layers.len() == 3 && one.layers.iter().all(|layer| *layer > 0), "{one}");
}

/// Whether a code makes the lane ask where the leader is. What the table of the rules does not tell
/// apart but the lane does.
fn asks_for_leader(code: i16) -> bool {
    [3, 5, 6, 8, 9, 56, 72, 74, 100].contains(&code)
}

fn codes_of(class: Class, asks: bool) -> Vec<i16> {
    let all = (-1..140).chain([1_234]).filter(|code| *code != 0);
    all.filter(|code| Honest::class(*code) == class && asks_for_leader(*code) == asks).collect()
}

/// One code stands for its class: with any other of the same class the same happens.
#[test]
fn a_code_stands_for_its_class() {
    let everything = named("everything");
    let mut represented = BTreeSet::new();
    for say in everything.codes {
        let (code, of): (i16, fn(i16) -> Say) = match *say {
            Say::Before(code) => (code, Say::Before),
            Say::After(code) => (code, Say::After),
            Say::AfterBlind(code) => (code, Say::AfterBlind),
            Say::Below => (46, |_| Say::Below),
        };
        let class = Honest::class(code);
        represented.insert(format!("{class:?}"));
        let mut seen = BTreeMap::new();
        for other in codes_of(class, asks_for_leader(code)) {
            let codes = vec![of(other), Say::Before(45)].leak();
            let scope = Scope {
                records: &[Plan::SHORT, Plan::LONG],
                at_once: 2,
                replicas: 1,
                kinds: &[Fault::LoseWhole],
                codes,
                ticks: Ticks::Deadlines(1),
                restarts: 0,
                ..everything.clone()
            };
            let report = explore::<Shipped>(&scope, LIMIT);
            assert!(report.closed, "{report}");
            seen.insert(other, (report.states, report.transitions, report.depth, report.ends));
        }
        let own = &seen[&code];
        for (other, it) in &seen {
            assert_eq!(it, own, "{other} is not like {code}");
        }
    }
    let all: BTreeSet<String> =
        (-1..140).map(|code| format!("{:?}", Honest::class(code))).collect();
    let missing: Vec<_> = all.difference(&represented).filter(|class| *class != "None").collect();
    assert!(missing.is_empty(), "no code of these classes: {missing:?}");
}
