//! The swarm over the whole producer, as far as continuous integration has time for it.

use candor_sim::swarm::{Extent, Options, run_many, run_seed};

#[test]
fn three_hundred_seeds_are_clean() {
    let summary = run_many(0, Extent::Seeds(300), 2, &Options::default());
    println!("{summary}");
    assert_eq!(summary.failed, 0, "{summary}");
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
