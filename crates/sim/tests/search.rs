//! The shipped lane in small scopes.

use candor_core::Lane;
use candor_core::testing::Counted;
use candor_sim::search::{Fault, Say, Scope, explore};

#[test]
fn probe() {
    let scope = Scope {
        faults: 1,
        kinds: &[Fault::LoseWhole, Fault::LoseCut, Fault::Elect],
        codes: &[Say::Before(19)],
        restarts: 0,
        ..Scope::BASE
    };
    let t = std::time::Instant::now();
    for s in [
        Scope::BASE,
        scope.clone(),
        Scope { faults: 2, ..scope.clone() },
        Scope { restarts: 1, ..scope },
    ] {
        let report = explore::<Lane<Counted>>(&s, 2_000_000);
        println!("{report} {:?}", t.elapsed());
    }
}
