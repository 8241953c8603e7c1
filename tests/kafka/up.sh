#!/usr/bin/env bash
# Brings real Kafka up and prints its bootstrap addresses: up.sh [VERSION [NODES]], by default 4.4.0 and 1. End it with down.sh.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/tools.sh"
exec python3 "$here/up.py" up "$@"
