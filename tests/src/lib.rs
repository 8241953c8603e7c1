//! Checks that concern several crates of Candor; see `tests/`. Nothing of it is published.
