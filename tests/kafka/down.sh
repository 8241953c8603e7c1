#!/usr/bin/env bash
# Ends what up.sh started: down.sh [VERSION [NODES]], by default all.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/tools.sh"
exec python3 "$here/up.py" down "$@"
