"""What is shown on real Kafka. A scenario takes a Bench, raises what does not hold, and returns one line of what it saw."""

import contextlib
import json
import os
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import checks
import cluster
import foreign
import metadata
from checks import Failed, ensure


@dataclass
class Bench:
    """A running cluster, Kafka's own clients, our two programs, and a directory for what this scenario leaves."""

    cluster: cluster.Cluster
    foreign: foreign.Foreign
    candor: Path
    client: Path
    out: Path
    topics: int = field(default=0)

    def topic(self, name, partitions):
        self.foreign.ask("create", name, partitions, self.cluster.replicas)
        self.cluster.wait_for_topic(name, partitions)
        return name

    def log(self, topic, least):
        """The whole topic by Kafka's consumer, once every replica is in sync and there are `least` records."""
        leaders = self.cluster.wait_for_topic(topic)
        dump = self.out / f"{topic}.log"
        self.foreign.ask("dump", topic, dump, least, 20)
        with open(dump, "rb") as lines:
            return checks.parse_log(lines), leaders

    def check_disk(self, topic, log, leaders, epochs):
        """Kafka's DumpLogSegments on the leader of each partition."""
        seen = set()
        for leader in leaders:
            batches = self.foreign.batches(self.cluster, topic, leader.index, leader.leader)
            checks.check_batches(batches, len(log.get(leader.index, [])), epochs)
            seen |= {(leader.index, batch.producer, batch.epoch) for batch in batches}
        return seen


class Program:
    """One of our programs: what it says goes to files, and it is ended if it takes longer than it may."""

    def __init__(self, bench, name, command, patience, stdout=None):
        self.name, self.errors = name, bench.out / f"{name}.stderr"
        self.outputs = open(bench.out / f"{name}.stdout", "wb") if stdout is None else None  # noqa: SIM115
        with open(self.errors, "wb") as errors:
            self.process = subprocess.Popen(
                cluster.with_harness(list(map(str, command))), stdin=subprocess.PIPE, stdout=stdout or self.outputs,
                stderr=errors, env=os.environ | {"RUST_BACKTRACE": "0"})  # fmt: skip
        self.late = False
        self.timer = threading.Timer(patience, self._too_late)
        self.timer.start()

    def _too_late(self):
        self.late = True
        self.process.kill()

    def say(self, data):
        try:
            self.process.stdin.write(data)
            self.process.stdin.flush()
        except BrokenPipeError:
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.close()
            self.end()
            raise Failed(f"{self.name} ended before its input did") from None

    def hear(self):
        """The next event of a program that speaks JSON lines."""
        line = self.process.stdout.readline()
        if not line:
            self.end()
            raise Failed(f"{self.name} ended without a further event")
        return json.loads(line)

    def end(self, good=(0,)):
        """Waits for the end, and gives its exit code; only `good` ones are good."""
        self.process.stdin.close()
        code = self.process.wait()
        self.timer.cancel()
        ensure(not self.late, f"{self.name} took too long", f"see {self.errors}")
        ensure(code in good, f"{self.name} ended with {code}", f"see {self.errors}", self.errors.read_text(errors="replace")[:500].strip())
        return code

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.timer.cancel()
        self.process.kill()
        self.process.wait()
        if self.outputs:
            self.outputs.close()


def client(bench, scenario, topic, patience=60):
    command = [bench.client, scenario, bench.cluster.bootstrap, topic]
    return Program(bench, f"client-{scenario}", command, patience, stdout=subprocess.PIPE)


def candor(bench, topic, ledger, *more, patience=120):
    command = [bench.candor, "produce", "--bootstrap-server", bench.cluster.bootstrap, "--topic", topic, "--ledger", ledger,
               "--rejects", bench.out / f"{topic}.rejects", "--format", "json", *more]  # fmt: skip
    return Program(bench, f"candor-{topic}", command, patience)


def write_input(path, keyed, lines):
    with open(path, "w", encoding="utf-8") as file:
        for i in range(lines):
            file.write(f"k{i * 7919 % 1000}:" if keyed else "")
            file.write(f"line {i + 1} of the file, mit Umlauten äöü and a tab\t.\n")
    return path


def partitions_of(bench, keys, partitions):
    """Key -> partition, as Kafka's own partitioner has it."""
    asked, answered = bench.out / "keys", bench.out / "partitions"
    asked.write_bytes(b"".join(key + b"\n" for key in keys))
    bench.foreign.ask("partition", partitions, asked, answered)
    return dict(zip(keys, map(int, answered.read_text().split()), strict=True))


def judge_file(bench, topic, source, separator, ledger, epochs):
    """Input, ledger and log of a file that was produced."""
    with open(source, "rb") as lines:
        records = checks.parse_input(lines, separator)
    log, leaders = bench.log(topic, len(records))
    with open(ledger, "rb") as lines:
        entries = checks.parse_ledger(lines, len(records))
    checks.check_ledger(records, entries, log)
    checks.check_order(entries)
    if separator:
        keys = sorted({key for key, _ in records})
        checks.check_partitions(records, log, partitions_of(bench, keys, len(leaders)))
    seen = bench.check_disk(topic, log, leaders, epochs)
    return len(records), log, seen


def peer(bench):
    """The harness's own control: Kafka's producer passes what ours has to pass."""
    topic = bench.topic("peer", 3)
    source, ledger = write_input(bench.out / "input", True, 20_000), bench.out / "ledger"
    bench.foreign.ask("produce", topic, ":", source, ledger)
    count, log, _ = judge_file(bench, topic, source, b":", ledger, {0})
    return f"{count} lines by Kafka's own producer on {len(log)} partitions"


def file(bench):
    """A file by `candor produce`, with and without keys: read back identical, the ledger true."""
    told = []
    for topic, separator in (("file-keyed", b":"), ("file-plain", b"")):
        bench.topic(topic, 3)
        source, ledger = write_input(bench.out / f"{topic}.input", bool(separator), 50_000), bench.out / f"{topic}.ledger"
        more = ["--key-separator", separator.decode()] if separator else []
        with candor(bench, topic, ledger, *more, source) as program:
            program.end()
        rejects = bench.out / f"{topic}.rejects"
        ensure(not rejects.exists() or not rejects.read_bytes(), "there are rejects", rejects)
        count, log, _ = judge_file(bench, topic, source, separator, ledger, {0})
        told.append(f"{topic} {count} lines on {len(log)} partitions")
    return ", ".join(told)


def concurrent(bench):
    """20 sends at once on one partition, in one batch and in 20: their offsets in order of sending, no bump."""
    topic = bench.topic("concurrent", 1)
    with client(bench, "concurrent", topic) as program:
        rounds = [program.hear()["verdicts"] for _ in range(2)]
        program.end()
    verdicts = sum(rounds, [])
    ensure([v["verdict"] for v in verdicts] == ["delivered"] * 40, "all delivered", verdicts)
    ensure([v["offset"] for v in verdicts] == list(range(40)), "offsets in order of sending", verdicts)
    log, leaders = bench.log(topic, 40)
    checks.check_sequence([(None, v["value"].encode()) for v in verdicts], log[0], "the log")
    bench.check_disk(topic, log, leaders, {0})
    batches = bench.foreign.batches(bench.cluster, topic, 0, leaders[0].leader)
    ensure([b.base_offset for b in batches][-20:] == list(range(20, 40)), "the last 20 are batches of their own", batches)
    ensure(len(batches) < 40, "the first 20 share batches", batches)
    return "twice 20 sends, offsets 0 to 39 in order, epoch 0"


def ten(bench):
    """10 producers with 10 kB records on one partition, then flush: all delivered, each in its order, no bump."""
    topic = bench.topic("ten", 1)
    with client(bench, "ten", topic) as program:
        producers = [program.hear() for _ in range(10)]
        program.end()
    expected = {p["producer"]: p["records"] for p in producers}
    for p in producers:
        ensure(p["delivered"] == p["records"] and p["records"] > 0, "all delivered after flush", p)
    log, leaders = bench.log(topic, sum(expected.values()))
    found = {name: [] for name in expected}
    for _, value in log[0]:
        ensure(len(value) == 10_000, "a value of 10 kB", len(value))
        name, number = value.split(b" ")[:2]
        found[int(name)].append(int(number))
    for name, records in expected.items():
        checks.check_sequence(list(range(records)), found[name], f"producer {name}")
    seen = bench.check_disk(topic, log, leaders, {0})
    ensure(len(seen) == 10, "ten producer ids", seen)
    return f"{sum(expected.values())} records of 10 kB from 10 producers, epoch 0"


def stopped(node):
    """Whether the kernel says that the process stands still."""
    return Path(f"/proc/{node.process.pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[0] == "T"


def paused(bench):
    """Brokers that stop answering: verdicts in time while they stand; they go on: resolved, delivered, each once."""
    topic = bench.topic("paused", 1)
    with client(bench, "paused", topic) as program:
        ensure(program.hear()["event"] == "ready", "the first record delivered")
        with standing(bench.cluster.nodes):
            verdicts = unknowns(program)
        program.say(b"go on\n")
        claims = rest(program, verdicts)
    log, leaders = bench.log(topic, 6)
    if len(bench.cluster.nodes) == 1:
        # It has the requests in its socket and answers them. Of three, another may lead by then, and refuse them.
        ensure([claim for _, claim, _ in claims] == ["delivered"] * 8, "all resolved as delivered", claims)
    checks.check_claims(claims, [value.decode() for _, value in log[0]])
    bench.check_disk(topic, log, leaders, None)
    return told(verdicts, claims)


def moved(bench):
    """The leader stops and another leads: what was Unknown is resolved there, and what follows is delivered, while the old one
    stands with the requests in its sockets. Then it goes on, and nothing of that comes into the log."""
    topic = bench.topic("moved", 1)
    leader = bench.cluster.wait_for_topic(topic)[0].leader
    old = bench.cluster.nodes[leader - 1]
    others = [node.address for node in bench.cluster.nodes if node is not old]
    with client(bench, "moved", topic) as program:
        ensure(program.hear()["event"] == "ready", "the first record delivered")
        with standing([old]):
            verdicts = unknowns(program)
            metadata.wait(others, (topic,), lambda answer: answer.topics[topic][1][0].leader not in (-1, leader), "a new leader")
            program.say(b"go on\n")
            claims = rest(program, verdicts)
    log, leaders = bench.log(topic, 6)
    checks.check_claims(claims, [value.decode() for _, value in log[0]])
    bench.check_disk(topic, log, leaders, None)
    return f"node {leader} to {leaders[0].leader}: {told(verdicts, claims)}"


@contextlib.contextmanager
def standing(nodes):
    """Nodes that stand still inside of the `with`, by the kernel's word also at its end."""
    for node in nodes:
        node.pause()
    try:
        yield
        ensure(all(map(stopped, nodes)), "the brokers still stand when the answers are there")
    finally:
        for node in nodes:
            node.resume()


def unknowns(program):
    """The two verdicts that come while nothing answers."""
    program.say(b"paused\n")
    verdicts = {v["name"]: v for v in (program.hear(), program.hear())}
    for verdict in verdicts.values():
        ensure(verdict["verdict"] == "unknown", "an outstanding record is Unknown", verdict)
    ensure(2000 <= verdicts["deadline"]["after_ms"] < 3000, "the deadline of 2 s", verdicts["deadline"])
    ensure(verdicts["until"]["after_ms"] < 500, "until(..) answers at once", verdicts["until"])
    return verdicts


def rest(program, verdicts):
    """The resolutions of the two and the verdicts of five more: what is claimed of each record, in order of sending."""
    resolutions = {r["name"]: r for r in (program.hear(), program.hear())}
    after = program.hear()["verdicts"]
    program.end()
    ensure([v["verdict"] for v in after] == ["delivered"] * 5, "what follows is delivered", after)
    claims = [("ready", "delivered", 0)]
    claims += [(verdicts[n]["value"], resolutions[n]["resolution"], resolutions[n].get("offset")) for n in ("deadline", "until")]
    return claims + [(v["value"], v["verdict"], v["offset"]) for v in after]


def told(verdicts, claims):
    times = {name: verdict["after_ms"] for name, verdict in verdicts.items()}
    return f"Unknown after {times} ms, then {claims[1:3]}, 5 more from offset {claims[3][2]}"


def doubt(bench, lines=200_000):
    """Deadlines of 1 s while one leader stands and another dies: what the ledger says of each line is true, and what is not known
    to be in the log is in the rejects."""
    topic = bench.topic("doubt", 6)
    source, ledger = write_input(bench.out / "input", True, lines), bench.out / "ledger"
    first, second, third = bench.cluster.nodes
    size = source.stat().st_size

    def left(node):
        return lambda answer: all(p.leader not in (-1, node.number) for p in answer.topics[topic][1])

    more = ["--key-separator", ":", "--deadline", "1s", "--property", "request.timeout.ms=1000", "-"]
    with candor(bench, topic, ledger, *more) as program, open(source, "rb") as text:
        program.say(text.read(size // 10))
        with standing([first]):
            program.say(text.read(size * 3 // 10))
            metadata.wait([second.address, third.address], (topic,), left(first), "leaders moved away from the node that stands")
            program.say(text.read(size // 10))
        program.say(text.read(size // 10))
        second.kill()
        program.say(text.read(size * 3 // 10))
        metadata.wait([third.address], (topic,), left(second), "leaders moved away from the killed node")
        second.start(bound=True)
        program.say(text.read())
        code = program.end(good=(0, 1))
    return judge_doubt(bench, topic, source, ledger, code)


def judge_doubt(bench, topic, source, ledger, code):
    with open(source, "rb") as lines:
        raw = list(lines)
    records = checks.parse_input(raw, b":")
    with open(ledger, "rb") as lines:
        rows = list(lines)
    claims = checks.parse_claims(rows, len(records))
    unknown = sum(b'"verdict":"unknown"' in row for row in rows)
    latest = max(json.loads(row)["at_ms"] for row in rows)
    # How late a loaded machine lets a command tell so many is reported, not held: `paused` holds the deadline.
    ensure(latest < 10_000, "verdicts by the deadline of 1 s", f"one after {latest} ms")
    log, leaders = bench.log(topic, 1)
    checks.check_doubt(records, claims, log)
    with open(bench.out / f"{topic}.rejects", "rb") as lines:
        checks.check_rejects(lines, raw, claims)
    at_last = {claim: sum(c == claim for c, _, _ in claims) for claim in checks.CLAIMS}
    ensure((code == 0) == (at_last["delivered"] == len(records)), "exit code 0 says that all were delivered", code, at_last)
    ensure(unknown > 0 and at_last["delivered"] > 0, "something was in doubt, and something delivered", unknown, at_last)
    bench.check_disk(topic, log, leaders, None)
    return f"{len(records)} lines, {unknown} unknown first, at last {at_last}; the latest verdict after {latest} ms"


def million(bench, lines=1_000_000, partitions=6):
    """A million lines over three nodes, one of them killed and restarted meanwhile: all delivered, the log is the input."""
    topic = bench.topic("million", partitions)
    source, ledger = write_input(bench.out / "input", True, lines), bench.out / "ledger"
    victim = bench.cluster.nodes[0]
    ensure(any(p.leader == 1 for p in bench.cluster.wait_for_topic(topic)), "node 1 leads something")
    others = [node.address for node in bench.cluster.nodes[1:]]

    def moved(answer):
        return all(p.leader not in (-1, 1) for p in answer.topics[topic][1])

    begun = time.monotonic()
    with candor(bench, topic, ledger, "--key-separator", ":", "-", patience=150) as program, open(source, "rb") as text:
        size = source.stat().st_size
        program.say(text.read(size * 4 // 10))
        victim.kill()
        program.say(text.read(size * 2 // 10))
        metadata.wait(others, (topic,), moved, "leaders moved away from the killed node")
        program.say(text.read(size * 2 // 10))
        victim.start(bound=True)
        program.say(text.read())
        program.end()
    seconds = time.monotonic() - begun
    count, log, seen = judge_file(bench, topic, source, b":", ledger, None)
    epochs = sorted({epoch for _, _, epoch in seen})
    return f"{count} lines on {len(log)} partitions in {seconds:.1f} s with node 1 killed and restarted; epochs on disk {epochs}"


# The first client of fresh brokers is ours: they answer its first request for a producer id with an error.
ONE_NODE = (concurrent, peer, file, ten, paused)
THREE_NODES = (concurrent, file, ten, paused, moved, doubt, million)
