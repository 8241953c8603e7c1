//! The `candor` command.
fn main() {}
