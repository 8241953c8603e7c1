"""Kafka's own clients and tools, by Foreign.java. As a command: foreign.py VERSION BOOTSTRAP COMMAND [ARGUMENT].."""

import re
import subprocess
import sys
from dataclasses import dataclass

import cluster


@dataclass(frozen=True)
class Batch:
    """A batch as DumpLogSegments prints it from the disk."""

    base_offset: int
    last_offset: int
    base_sequence: int
    producer: int
    epoch: int
    valid: bool


class Foreign:
    """One JVM that takes commands for as long as the harness lives."""

    def __init__(self, version, scratch):
        self.scratch = scratch
        scratch.mkdir(parents=True, exist_ok=True)
        cluster.compile_foreign(version)
        with open(scratch / "foreign.log", "ab") as log:
            self.process = subprocess.Popen(
                cluster.with_harness(cluster.java(version, "Foreign", memory="1g")), stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=log, text=True, encoding="utf-8", bufsize=1)  # fmt: skip

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def ask(self, *command):
        self.process.stdin.write("\t".join(map(str, command)) + "\n")
        answer = self.process.stdout.readline().rstrip("\n")
        if not answer.startswith("OK "):
            raise RuntimeError(f"{command}: {answer or 'the JVM ended'}; see {self.scratch / 'foreign.log'}")
        return answer[3:]

    def batches(self, running, topic, partition, node):
        """Every batch that one node has on disk for one partition, oldest first."""
        directory = running.nodes[node - 1].data / f"{topic}-{partition}"
        out = self.scratch / f"{topic}-{partition}.node{node}.segments"
        self.ask("segments", out, ",".join(map(str, sorted(directory.glob("*.log")))))
        return parse_segment(out.read_text())


def parse_segment(text):
    found = []
    for line in text.splitlines():
        if line.startswith("baseOffset:"):
            number = {k: int(v) for k, v in re.findall(r"(\w+): (-?\d+)(?= |$)", line)}
            found.append(
                Batch(number["baseOffset"], number["lastOffset"], number["baseSequence"], number["producerId"],
                      number["producerEpoch"], line.rstrip().endswith("isvalid: true")))  # fmt: skip
    return found


def main(version, bootstrap, *command):
    with Foreign(version, cluster.HOME / version / "foreign") as foreign:
        foreign.ask("connect", bootstrap)
        print(foreign.ask(*command))


if __name__ == "__main__":
    main(*sys.argv[1:])
