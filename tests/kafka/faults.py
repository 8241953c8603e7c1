"""Real Kafka under seeded plans of faults: the nodes, for the plans that `candor-kafka faults` draws and judges. See README.md."""

import concurrent.futures
import json
import os
import shutil
import subprocess
import threading
import time

import cluster
import foreign
from checks import ensure

NODES = 3
# A long time is cut into rounds, each with its own seed, topics and producers: a failure is found early, and a log stays readable.
ROUND_S = 180
# What a round may take beside its length: to heal, to close, to restart every node, to read the logs.
PATIENCE_S = 600
# Longer than `STATE_TTL` in faults/mod.rs and all that can delay a request on its way: assumption A3.
EXTRA = ("producer.id.expiration.ms=25000", "producer.id.expiration.check.interval.ms=1000")


class Hands:
    """Does what a run asks for, each thing in a thread that outlives it (nodes die with the thread that started them)."""

    def __init__(self, running, reader, out, pool):
        self.cluster, self.foreign, self.out, self.pool = running, reader, out, pool
        self.one_at_a_time = threading.Lock()
        self.topics = {}

    def ask(self, *command):
        with self.one_at_a_time:
            return self.foreign.ask(*command)

    def until_done(self, *command, good=(), patience=120):
        """While brokers are down, tools fail: again, until it is done or is found to be done."""
        until = time.monotonic() + patience
        while True:
            try:
                return self.ask(*command)
            except RuntimeError as error:
                if any(word in str(error) for word in good):
                    return ""
                if time.monotonic() > until:
                    raise
                time.sleep(0.2)  # between two attempts

    def do(self, command):
        getattr(self, "do_" + command.pop("do"))(**command)

    def do_create(self, topic, partitions):
        self.until_done("create", topic, partitions, self.cluster.replicas, good=["TopicExists"])
        self.cluster.wait_for_topic(topic, partitions)
        self.topics[topic] = partitions

    def do_kill(self, node):
        self.cluster.nodes[node].kill()

    def do_stop(self, node):
        self.cluster.nodes[node].stop()

    def do_start(self, node):
        self.cluster.nodes[node].start(bound=True)

    def do_pause(self, node):
        self.cluster.nodes[node].pause()

    def do_resume(self, node):
        self.cluster.nodes[node].resume()

    def do_lead(self, topic, partition, node):
        self.ask("lead", topic, partition, node + 1)

    def do_limit(self, topic, bytes):  # noqa: A002 - the word of the plan
        if bytes is None:
            self.until_done("config", topic, "max.message.bytes", "")
        else:
            self.ask("config", topic, "max.message.bytes", bytes)

    def do_recreate(self, topic, partitions):
        self.until_done("delete", topic, good=["UnknownTopicOrPartition"])
        # An attempt whose answer was lost may have done it.
        self.until_done("create", topic, partitions, self.cluster.replicas, good=["TopicExists"])

    def do_heal(self):
        for node in self.cluster.nodes:
            if node.process.poll() is not None:
                node.start(bound=True)
            node.resume()
        self.settle()

    def settle(self):
        self.cluster.wait_for_nodes()
        for topic, partitions in self.topics.items():
            self.cluster.wait_for_topic(topic, partitions)

    def do_truth(self, topics):
        """Ends what still waits in any broker, and writes down what the logs hold: batches of every replica, records by a consumer."""
        for node in self.cluster.nodes:
            node.kill()
            node.start(bound=True)
            self.settle()
        for topic in topics:
            self.write_down(topic)

    def write_down(self, topic):
        leaders = self.cluster.wait_for_topic(topic)
        held = 0
        with open(self.out / f"{topic}.batches", "w", encoding="ascii") as file:
            for partition in leaders:
                batches = self.foreign.batches(self.cluster, topic, partition.index, partition.leader)
                ensure(all(batch.valid for batch in batches), "a batch with a wrong CRC", topic, partition.index)
                for replica in partition.replicas:
                    copies = self.foreign.batches(self.cluster, topic, partition.index, replica)
                    ensure(copies == batches, "replicas differ", f"{topic}-{partition.index}", f"nodes {partition.leader} and {replica}")
                held += batches[-1].last_offset + 1 if batches else 0
                file.writelines(
                    f"{partition.index}\t{b.base_offset}\t{b.last_offset}\t{b.producer}\t{b.epoch}\t{b.base_sequence}\n" for b in batches
                )
        # A consumer sees everything once the high watermark stands where the log ends.
        self.foreign.ask("dump", topic, self.out / f"{topic}.log", held, 180)


def converse(process, hands, late):
    """Serves a run until it ends; gives its last words."""
    last, mouth = {}, threading.Lock()

    def answer(identity, command):
        told = {"id": identity}
        try:
            hands.do(command)
        except Exception as error:  # noqa: BLE001 - the run decides what a failure means
            told["error"] = f"{type(error).__name__}: {error}"
            if "NotNeeded" not in told["error"] and "NotAvailable" not in told["error"]:
                print(f"     {command}: {told['error'][:300]}", flush=True)
        with mouth:
            process.stdin.write(json.dumps(told).encode() + b"\n")
            process.stdin.flush()

    for line in process.stdout:
        said = json.loads(line)
        if "do" in said:
            hands.pool.submit(answer, said.pop("id"), said)
        elif "note" in said:
            print(f"     {said['note']}", flush=True)
        else:
            last = said
    code = process.wait()
    ensure(not late.is_set(), "the run took too long")
    return code, last


def one_round(options, running, reader, ports, seed, seconds, pool):
    """One plan; raises what does not hold, and gives a line of what was seen."""
    out = running.directory / f"seed-{seed}"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    pairs = [f"{proxy}:{node.address[1]}" for proxy, node in zip(ports, running.nodes, strict=True)]
    command = [options.bin / "candor-kafka", "faults", seed, seconds, out, *pairs]
    late = threading.Event()
    with open(out / "stderr", "wb") as errors:
        process = subprocess.Popen(
            cluster.with_harness(list(map(str, command))), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
            env=os.environ | {"RUST_BACKTRACE": "0"})  # fmt: skip

    def too_late():
        late.set()
        process.kill()

    timer = threading.Timer(seconds + PATIENCE_S, too_late)
    timer.start()
    try:
        code, last = converse(process, Hands(running, reader, out, pool), late)
    finally:
        timer.cancel()
        process.kill()
    ensure("report" in last, f"the run ended with {code}", (out / "stderr").read_text(errors="replace")[-1500:].strip())
    (out / "report.json").write_text(json.dumps(last, indent=1))
    (out / "findings").write_text("\n".join(last["findings"]))
    ensure(code == 0 and not last["findings"], f"{last['report']['anomalies']} anomalies, all in findings", *[found.split("\n")[0] for found in last["findings"][:5]])
    return tell(last["report"])


def tell(report):
    def counts(of):
        return ", ".join(f"{key} {value}" for key, value in of.items())

    happened = {kind: done["happened"] for kind, done in report["faults"].items()}
    return "\n     ".join([
        f"{sum(happened.values())} faults: {counts(happened)}",
        f"verdicts: {counts(report['verdicts'])}; resolutions: {counts(report['resolutions'])}; "
        f"never because of: {counts(report['reasons of never'])}; notices: {counts(report['notices'])}",
        f"{report['records in the logs']} records in the logs; {report['wire']['attempts']} attempts of {report['wire']['batches']} batches; "
        f"answers: {counts(report['wire']['answers'])}; "
        f"{report['wire']['refused']} batches refused at every attempt, {report['wire']['refused by H1']} of them by H1; "
        f"{report['wire']['contested slots']} slots contested",
        f"lateness: {counts(report['lateness'])}; stalls of the host: {counts(report['stalls'])}; excused {report['excused']}",
    ])  # fmt: skip


def run(options, seed, minutes):
    """Rounds for so long, on one cluster; gives their number and the number of failures."""
    begun = time.monotonic()
    home = cluster.HOME / options.version / "run" / "faults"
    ports = cluster.free_ports(NODES)
    rounds = failures = 0
    with (
        concurrent.futures.ThreadPoolExecutor(16) as pool,
        cluster.Cluster(options.version, NODES, home, lambda number, _: ports[number - 1], EXTRA) as running,
        foreign.Foreign(options.version, home / "foreign") as reader,
    ):
        reader.ask("connect", running.internal)
        print(f"kafka {options.version}, {NODES} nodes behind proxies: up in {time.monotonic() - begun:.1f} s", flush=True)
        until = time.monotonic() + minutes * 60
        while rounds == 0 or (until - time.monotonic() > 30 and not failures):
            seconds = max(10, min(ROUND_S, round(until - time.monotonic())))
            began = time.monotonic()
            try:
                told = f"PASS faults, seed {seed}: {one_round(options, running, reader, ports, seed, seconds, pool)}"
            except Exception as error:  # noqa: BLE001 - told with its seed
                failures += 1
                told = (f"FAIL faults, seed {seed}: {type(error).__name__}: {error}\n"
                        f"     kept: {home}/seed-{seed}/{{findings,report.json}}, {home}/node*.log\n"
                        f"     again: just kafka-faults {seed} {seconds / 60:.3g} --version {options.version}")  # fmt: skip
            print(f"{told} [{time.monotonic() - began:.1f} s]", flush=True)
            rounds += 1
            seed += 1
    return rounds, failures
