//! The shipped lane in all small scopes: no schedule convicts it, and each scope is closed.

use std::thread;

use candor_core::Lane;
use candor_core::testing::Counted;
use candor_sim::search::{Report, SCOPES, Scope, explore};

/// More states than any scope that is run here has.
const LIMIT: usize = 2_000_000;

fn explore_all(scopes: &[&Scope]) -> Vec<Report> {
    scopes.iter().map(|scope| explore::<Lane<Counted>>(scope, LIMIT)).collect()
}

#[test]
fn no_schedule_convicts_the_lane() {
    // The widest scope has a thread of its own: the others together take as long.
    let (wide, narrow): (Vec<&Scope>, Vec<&Scope>) = SCOPES
        .iter()
        .filter(|scope| scope.name != "everything")
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
