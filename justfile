# Commands of this repository; `just` lists them.

_default:
    @just --list

# Real Apache Kafka beside us, on one and on three nodes; see tests/kafka/README.md
kafka *ARGS:
    tests/kafka/run.sh {{ARGS}}

# The test suite that needs nothing but Rust.
test:
    cargo test --workspace

# Formatting and lints, warnings being errors.
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings

# The documentation, warnings being errors.
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

# Random schedules with all faults over the whole producer, in virtual time.
swarm SEEDS="300":
    cargo run --release -p candor-cli -- sim swarm --seeds {{SEEDS}}

# The exhaustive search of the lane, all scopes.
search:
    cargo run --release -p candor-cli -- sim search

# Everything that continuous integration runs.
ci:
    .ci/run
