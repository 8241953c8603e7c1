# Sourced: what the harness needs, from Debian's packages, and only what is missing.
need=()
command -v python3 >/dev/null || need+=(python3)
python3 -c 'import ensurepip' 2>/dev/null || need+=(python3-venv)
# franz-go wants a newer Go than Debian 12 has: an old one says so, or fetches its successor itself.
command -v go >/dev/null || need+=(golang-go)
command -v javac >/dev/null || need+=(default-jdk-headless)
command -v mvn >/dev/null || need+=(maven)
command -v setpriv >/dev/null || need+=(util-linux)
if [ ${#need[@]} -gt 0 ]; then
    sudo=$([ "$(id -u)" = 0 ] || echo sudo)
    { $sudo apt-get update -q && $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "${need[@]}"; } >&2
fi
export PYTHONDONTWRITEBYTECODE=1
