"""Other people's clients on `candor broker`: each writes, each reads, and all of them see the same log. See README.md."""

import contextlib
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import checks
import cluster
import foreign
from checks import ensure

HERE = Path(__file__).resolve().parent / "peers"
LINES = 3_000
PARTITIONS = 3
PATIENCE_S = 90
CONFLUENT_KAFKA = "2.16.1"
# Answers that are lost in the middle: a client resends, and the broker must know the batch again. The first three hit any client,
# for each broker leads a partition; what is sent again meets the others.
FAULTS = tuple(f"produce:{nth} cut-reply:{after}" for nth, after in ((1, 5), (2, 0), (3, 20), (5, 1), (6, 7)))


@dataclass
class Peers:
    """Commands of the clients, and a directory for what they leave."""

    version: str
    candor: Path
    python: Path
    franz: Path
    java: foreign.Foreign
    out: Path
    bootstrap: str = ""

    def run(self, name, *command, stdin=None):
        """Runs a command to its end; what it says is kept."""
        log = self.out / f"{name}.log"
        with open(log, "wb") as file, contextlib.ExitStack() as stack:
            source = stack.enter_context(open(stdin, "rb")) if stdin else subprocess.DEVNULL
            ended = subprocess.run(
                cluster.with_harness(list(map(str, command))), stdin=source, stdout=file, stderr=file, timeout=PATIENCE_S, check=False)  # fmt: skip
        ensure(ended.returncode == 0, f"{name} ended with {ended.returncode}", log, log.read_text(errors="replace")[-800:].strip())
        return log

    def tool(self, name, main, *arguments, stdin=None):
        command = cluster.java(self.version, main, "--bootstrap-server", self.bootstrap, *arguments)
        return self.run(name, *command, stdin=stdin)


def make_librdkafka(home):
    """A virtual environment with librdkafka's Python binding; made once."""
    place = home / f"venv-{CONFLUENT_KAFKA}"
    if not (place / "complete").exists():
        shutil.rmtree(place, ignore_errors=True)
        subprocess.run(["python3", "-m", "venv", place], check=True, stdout=2)
        wanted = f"confluent-kafka=={CONFLUENT_KAFKA}"
        subprocess.run([place / "bin" / "pip", "install", "-q", "--disable-pip-version-check", wanted], check=True, stdout=2)
        (place / "complete").touch()
    return place / "bin" / "python"


def make_franz(home):
    """The peer that uses franz-go, by Go's own tool, which keeps what is built."""
    subprocess.run(["go", "build", "-o", home / "franz", "."], cwd=HERE / "franz", check=True, stdout=2)
    return home / "franz"


def write_input(path):
    with open(path, "w", encoding="utf-8") as file:
        for i in range(LINES):
            file.write(f"k{i * 7919 % 97}:line {i + 1}, äöü {'x' * (i % 50)}\n")
    return path


def librdkafka_produces(peers, topic, source):
    peers.run(f"{topic}.produce", peers.python, HERE / "librdkafka.py", peers.bootstrap, "produce", topic, source)


def librdkafka_reads(peers, topic, out):
    peers.run(f"{topic}.read-librdkafka", peers.python, HERE / "librdkafka.py", peers.bootstrap, "read", topic, out)


def franz_produces(peers, topic, source):
    peers.run(f"{topic}.produce", peers.franz, peers.bootstrap, "produce", topic, source)


def franz_reads(peers, topic, out):
    peers.run(f"{topic}.read-franz", peers.franz, peers.bootstrap, "read", topic, out)


def console_produces(peers, topic, source):
    how = "--reader-property" if peers.version.startswith("4.4") else "--property"
    main = "kafka.tools.ConsoleProducer" if peers.version.startswith("3.") else "org.apache.kafka.tools.ConsoleProducer"
    peers.tool(f"{topic}.produce", main, "--topic", topic, how, "parse.key=true", how, "key.separator=:", stdin=source)


def java_reads(peers, topic, out):
    peers.java.ask("dump", topic, out, LINES, 30)


def candor_produces(peers, topic, source):
    peers.run(f"{topic}.produce", peers.candor, "produce", "--bootstrap-server", peers.bootstrap, "--topic", topic,
              "--key-separator", ":", source)  # fmt: skip


def check_log(name, source, dump):
    """A log that holds each line once, the keys in the input's order, each key on one partition."""
    with open(source, "rb") as lines:
        records = checks.parse_input(lines, b":")
    with open(dump, "rb") as lines:
        rows = sorted((line.rstrip(b"\n").split(b"\t") for line in lines), key=lambda row: (int(row[0]), int(row[1])))
    log = checks.parse_log(b"\t".join(row) + b"\n" for row in rows)
    ensure(sum(map(len, log.values())) == len(records), f"{name}: {len(records)} lines, the log holds", sum(map(len, log.values())))
    home = {key: partition for partition, found in log.items() for key, _ in found}
    for partition, found in log.items():
        checks.check_sequence([record for record in records if home[record[0]] == partition], found, f"{name}, partition {partition}")
    return rows


def check_console(peers, topic, rows):
    """Kafka's console consumer, a partition at a time: the same records."""
    for partition in range(PARTITIONS):
        expected = [row for row in rows if int(row[0]) == partition]
        how = "--formatter-property" if peers.version.startswith("4.4") else "--property"
        shown = [arg for field in ("partition", "offset", "key") for arg in (how, f"print.{field}=true")]
        main = "org.apache.kafka.tools.consumer.ConsoleConsumer"
        log = peers.tool(f"{topic}.console-{partition}", main, "--topic", topic, "--partition", partition, "--offset", "earliest",
                         "--max-messages", len(expected), "--timeout-ms", 30_000, *shown)  # fmt: skip
        lines = [line for line in log.read_bytes().split(b"\n") if line.startswith(b"Partition:")]
        wanted = [b"Partition:%s\tOffset:%s\t%s\t%s" % tuple(row) for row in expected]
        checks.check_sequence(wanted, lines, f"the console consumer on partition {partition}")


@contextlib.contextmanager
def model_broker(candor, out):
    """`candor broker` with three nodes and its faults; gives its bootstrap addresses."""
    faults = [word for fault in FAULTS for word in ("--fault", fault)]
    command = [candor, "broker", "--listen", "127.0.0.1:0", "--brokers", "3", "--partitions", PARTITIONS, *faults]
    with open(out / "broker.stderr", "wb") as errors:
        process = subprocess.Popen(
            cluster.with_harness(list(map(str, command))), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True)  # fmt: skip
    try:
        line = ""
        while not line.startswith("bootstrap "):
            line = process.stdout.readline()
            ensure(line, "candor broker ended", out / "broker.stderr")
        yield line.split()[1]
    finally:
        process.kill()
        process.wait()


PRODUCERS = {"librdkafka": librdkafka_produces, "java-console": console_produces, "franz-go": franz_produces, "candor": candor_produces}
READERS = {"librdkafka": librdkafka_reads, "java": java_reads, "franz-go": franz_reads}


def run(options):
    """Every producer, each read by every reader; gives the numbers of topics and of failures."""
    begun = time.monotonic()
    out = cluster.HOME / options.version / "run" / "peers"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    python, franz = make_librdkafka(cluster.HOME), make_franz(cluster.HOME)
    source = write_input(out / "input")
    failures = 0
    with foreign.Foreign(options.version, out / "foreign") as java:
        print(f"peers of candor broker: made in {time.monotonic() - begun:.1f} s", flush=True)
        for name, produces in PRODUCERS.items():
            begun = time.monotonic()
            try:
                # A broker for each: the faults are counted from its start.
                with model_broker(options.bin / "candor", out) as bootstrap:
                    peers = Peers(options.version, options.bin / "candor", python, franz, java, out, bootstrap)
                    java.ask("connect", bootstrap)
                    told = f"PASS peer {name}: {one_topic(peers, name, produces, source)}"
            except Exception as error:  # noqa: BLE001 - one failure does not hide the others
                failures += 1
                told = f"FAIL peer {name}: {type(error).__name__}: {error}\n     kept: {out}"
            print(f"{told} [{time.monotonic() - begun:.1f} s]", flush=True)
    return len(PRODUCERS), failures


def one_topic(peers, topic, produces, source):
    produces(peers, topic, source)
    logs = {}
    for reader, reads in READERS.items():
        dump = peers.out / f"{topic}.{reader}"
        reads(peers, topic, dump)
        logs[reader] = check_log(f"{topic} read by {reader}", source, dump)
    ensure(len({tuple(map(tuple, rows)) for rows in logs.values()}) == 1, "readers see different logs", *logs)
    if topic == "java-console":
        check_console(peers, topic, logs["java"])
    return f"{LINES} lines once and in order over {len(FAULTS)} lost answers, for {', '.join(READERS)}"
