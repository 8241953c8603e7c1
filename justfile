# Commands of this repository; `just` lists them.

_default:
    @just --list

# Real Apache Kafka beside us, on one and on three nodes; see tests/kafka/README.md
kafka *ARGS:
    tests/kafka/run.sh {{ARGS}}

# Real Kafka under seeded plans of faults for so many minutes, three nodes behind byte proxies.
kafka-faults SEED="1" MINUTES="60" *ARGS:
    tests/kafka/run.sh faults --seed {{SEED}} --minutes {{MINUTES}} {{ARGS}}

# Other people's clients (librdkafka, Java, franz-go) on `candor broker`.
kafka-peers *ARGS:
    tests/kafka/run.sh peers {{ARGS}}

# The test suite that needs nothing but Rust.
test:
    cargo test --workspace

# Line and branch coverage of the lane by its own tests; needs the nightly toolchain with llvm-tools,
# and cargo-llvm-cov. `just coverage --html` draws the sources.
coverage *ARGS:
    cargo +nightly llvm-cov --branch -p candor-core --tests {{ARGS}}

# Changes one operator, value or guard of the lane after the other, and asks its own tests; needs
# cargo-mutants. `just mutants -f crates/core/src/lane/pass.rs` asks about one module.
mutants *ARGS:
    CARGO_PROFILE_TEST_OPT_LEVEL=0 CARGO_PROFILE_TEST_DEBUG=0 cargo mutants -p candor-core \
        --output target --exclude crates/core/src/testing.rs --exclude-re fmt --timeout 60 --cap-lints=true {{ARGS}}

# Formatting and lints, warnings being errors.
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings

# The documentation, warnings being errors.
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

# The exhaustive search of the lane in one scope; `candor sim search --list` lists them.
search SCOPE="any-fault":
    cargo run --release -p candor-cli -- sim search --scope {{SCOPE}}

# The exhaustive search in all scopes that take minutes at most: two faults of any kind among them.
search-wide:
    cargo run --release -p candor-cli -- sim search --size wide

# The exhaustive search in all scopes; one that does not close in this time is left for the next one.
# Their sizes, as far as they were measured, are in docs/verification.md.
search-nightly BUDGET="1h":
    nice -n 10 cargo run --release -p candor-cli -- sim search --size night --budget {{BUDGET}}

# One scenario, or all of a directory; docs/replays.md tells how they are written.
replay FILE="crates/sim/replays" *ARGS:
    cargo run -p candor-cli -- sim run {{FILE}} {{ARGS}}

# The seeded swarm over the whole producer: 2,000 seeds and its two tables, or what ARGS say
# (--budget 10m, --from 5000, --calm 1000000). `candor sim replay SEED` tells one of them.
swarm *ARGS:
    cargo run --release -p candor-cli -- sim swarm {{ARGS}}

# Every planted bug has to be found, and the tables of the rules have to be true: half a minute behind `just test`.
verify:
    cargo test --workspace --test traces --test planted --test inversions --test replays --test swarm
    cargo test --workspace --test rules_table --test docs
    cargo test --workspace --lib planted

# Planted bugs in the swarm, each in so many seeds; those that only bytes show have to be found.
planted SEEDS="100":
    cargo run --release -p candor-cli -- sim swarm --planted {{SEEDS}}

# All of that; each scope that does not close before, swarm and real Kafka for MINUTES each, every fuzz
# target for ten seconds per minute of them.
verify-nightly MINUTES="120" SEED="1":
    #!/usr/bin/env bash
    # A night goes on behind what it finds, and fails at its end.
    failed=()
    stage() { printf '\n== %s (%ss)\n' "$*" "$SECONDS"; "$@" || failed+=("$*"); }
    stage just verify
    stage just search-nightly {{MINUTES}}m
    stage just planted 300
    stage just swarm --from {{SEED}}000000 --budget {{MINUTES}}m
    stage just fuzz-all {{MINUTES}}0
    stage just kafka-faults {{SEED}} {{MINUTES}}
    printf '\n== a night of %ss, failed: %s\n' "$SECONDS" "${failed[*]:-nothing}"
    ((${#failed[@]} == 0))

# Fuzzes one target of fuzz/bodies; needs cargo-fuzz and nightly. New inputs go to fuzz/target.
fuzz TARGET SECONDS="60":
    mkdir -p fuzz/target/corpus/{{TARGET}}
    cargo +nightly fuzz run {{TARGET}} fuzz/target/corpus/{{TARGET}} fuzz/corpus/{{TARGET}} -- \
        -max_total_time={{SECONDS}} -max_len=1024 -rss_limit_mb=1024

# Fuzzes every target, one after the other.
fuzz-all SECONDS="60":
    for target in fuzz/corpus/*; do just fuzz "$(basename "$target")" {{SECONDS}} || exit 1; done

# Everything that continuous integration runs.
ci:
    .ci/run
