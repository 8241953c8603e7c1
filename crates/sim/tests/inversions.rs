//! Every planted bug is found.

use candor_sim::search::INVERSIONS;

#[test]
fn probe() {
    for inversion in INVERSIONS {
        let report = inversion.hunt();
        let found = report.counterexample.as_ref().map(|c| c.anomaly.to_string());
        println!(
            "{:20} {:22} {:18} {:?} {} states depth {} {}",
            inversion.name,
            inversion.method,
            inversion.scope,
            found,
            report.states,
            report.depth,
            if found.is_none() { "<<<<<<<<" } else { "" }
        );
    }
}
