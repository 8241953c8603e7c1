//! The shipped lane in small scopes.

use candor_core::Lane;
use candor_core::testing::Counted;
use candor_sim::search::{SCOPES, explore};

#[test]
fn probe() {
    for s in SCOPES {
        let t = std::time::Instant::now();
        if s.name == "everything" {
            continue;
        }
        let report = explore::<Lane<Counted>>(s, 300_000);
        println!("{report} {:?}", t.elapsed());
    }
}
