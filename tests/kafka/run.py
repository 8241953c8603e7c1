"""The run behind `just kafka`: every scenario on one and on three nodes, then a plan of faults and the peers of `candor broker`; or
those that are named."""

import argparse
import signal
import sys
import time
import traceback
from pathlib import Path

import cluster
import faults
import foreign
import peers
import scenarios


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--version", default="4.4.0", help="of Kafka")
    parser.add_argument("--bin", type=Path, required=True, help="where `candor` and `candor-kafka` were built to")
    parser.add_argument("--nodes", type=int, choices=(1, 3), help="only on so many nodes")
    parser.add_argument("--seed", type=int, default=1, help="of the plan of faults")
    parser.add_argument("--minutes", type=float, default=2.5, help="how long the plan of faults is")
    parser.add_argument("only", nargs="*", metavar="SCENARIO", help="concurrent peer file ten paused moved doubt million faults peers")
    return parser.parse_args()


def run(options, nodes, chosen):
    """Runs scenarios on a fresh cluster; gives the number of failures."""
    failures = 0
    home = cluster.HOME / options.version / "run" / f"{nodes}-nodes"
    begun = time.monotonic()
    with (
        cluster.Cluster(options.version, nodes, home) as running,
        foreign.Foreign(options.version, home / "foreign") as reader,
    ):
        reader.ask("connect", running.bootstrap)
        print(f"kafka {options.version}, {nodes} node(s): up in {time.monotonic() - begun:.1f} s", flush=True)
        for scenario in chosen:
            begun = time.monotonic()
            out = home / scenario.__name__
            out.mkdir()
            try:
                seen = scenario(scenarios.Bench(running, reader, options.bin / "candor", options.bin / "candor-kafka", out))
                told = f"PASS {scenario.__name__} on {nodes}: {seen}"
            except Exception as error:  # noqa: BLE001 - one failure does not hide the others
                failures += 1
                (out / "failure").write_text(traceback.format_exc())
                told = f"FAIL {scenario.__name__} on {nodes}: {type(error).__name__}: {error}\n     kept: {out}, {home}/node*.log"
            print(f"{told} [{time.monotonic() - begun:.1f} s]", flush=True)
    return failures


def main():
    # An end by signal also ends the brokers.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))
    options = arguments()
    failures = ran = 0
    for nodes, all_of_them in ((1, scenarios.ONE_NODE), (3, scenarios.THREE_NODES)):
        chosen = [s for s in all_of_them if not options.only or s.__name__ in options.only]
        if chosen and options.nodes in (None, nodes):
            failures += run(options, nodes, chosen)
            ran += len(chosen)
    others = (("faults", lambda: faults.run(options, options.seed, options.minutes)), ("peers", lambda: peers.run(options)))
    for name, runs in others:
        if name in options.only or (not options.only and options.nodes is None):
            done, failed = runs()
            ran, failures = ran + done, failures + failed
    print(f"{ran} scenarios, {failures} failed")
    sys.exit(failures > 0 or ran == 0)


if __name__ == "__main__":
    main()
