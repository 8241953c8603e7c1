#!/usr/bin/env bash
# Holds Candor to real Kafka: run.sh [--version V] [--nodes 1|3] [SCENARIO]..
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/tools.sh"
cd "$here/../.."
python3 "$here/test_checks.py" -q
cargo build --release -p candor-cli -p candor-tests --bin candor --bin candor-kafka
exec python3 "$here/run.py" --bin "${CARGO_TARGET_DIR:-target}/release" "$@"
