//! Writes the seeds of every target to `fuzz/corpus`:
//! `cargo run --manifest-path fuzz/Cargo.toml -p candor-fuzz-bodies --example seeds`

use std::fs;
use std::io;
use std::path::Path;

fn main() -> io::Result<()> {
    let corpus = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../corpus"));
    for seed in candor_fuzz_bodies::seeds::all() {
        let directory = corpus.join(seed.target);
        fs::create_dir_all(&directory)?;
        fs::write(directory.join(seed.name), seed.bytes)?;
    }
    Ok(())
}
