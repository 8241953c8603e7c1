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

# The exhaustive search of the lane in one scope; `candor sim search --help` lists them.
search SCOPE="any-fault":
    cargo run --release -p candor-cli -- sim search --scope {{SCOPE}}

# Fuzzes one target of fuzz/bodies; needs cargo-fuzz and nightly. New inputs go to fuzz/target.
fuzz TARGET SECONDS="60":
    mkdir -p fuzz/target/corpus/{{TARGET}}
    cargo +nightly fuzz run {{TARGET}} fuzz/target/corpus/{{TARGET}} fuzz/corpus/{{TARGET}} -- \
        -max_total_time={{SECONDS}} -max_len=1024

# Everything that continuous integration runs.
ci:
    .ci/run
