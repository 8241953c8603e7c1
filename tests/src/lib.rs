//! Checks that concern several crates of Candor
