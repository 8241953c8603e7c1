#!/usr/bin/env bash
# One command by Kafka's own clients: foreign.sh VERSION BOOTSTRAP COMMAND [ARGUMENT]..
#   create TOPIC PARTITIONS REPLICAS [CONFIG=VALUE]..
#   dump TOPIC FILE LEAST PATIENCE_S          a line per record: partition, offset, key, value, once there are LEAST
#   produce TOPIC KEY_SEPARATOR FILE LEDGER   a record per line
#   partition PARTITIONS KEYS FILE            the partition of each key
#   segments FILE SEGMENT[,SEGMENT]..         what DumpLogSegments says of segment files
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/tools.sh"
exec python3 "$here/foreign.py" "$@"
