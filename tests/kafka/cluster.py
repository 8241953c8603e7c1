"""Real Kafka on loopback: its jars, its nodes, its life and death. See README.md."""

import base64
import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import time
import uuid
from pathlib import Path

import metadata

HERE = Path(__file__).resolve().parent
HOME = HERE.parent.parent / "target" / "kafka"
HOST = "127.0.0.1"

PROPERTIES = """\
process.roles=broker,controller
node.id={node}
controller.quorum.voters={voters}
listeners=CLIENT://127.0.0.1:{client},INTERNAL://127.0.0.1:{internal},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=CLIENT://127.0.0.1:{advertised},INTERNAL://127.0.0.1:{internal}
inter.broker.listener.name=INTERNAL
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,CLIENT:PLAINTEXT,INTERNAL:PLAINTEXT
log.dirs={data}
auto.create.topics.enable=false
default.replication.factor={replicas}
min.insync.replicas={least}
unclean.leader.election.enable=false
offsets.topic.num.partitions=1
offsets.topic.replication.factor={replicas}
transaction.state.log.replication.factor={replicas}
transaction.state.log.min.isr={least}
group.initial.rebalance.delay.ms=0
broker.heartbeat.interval.ms=200
broker.session.timeout.ms=2000
controller.quorum.election.timeout.ms=500
controller.quorum.fetch.timeout.ms=1000
"""


def jars(version):
    """The class path of one Kafka version; fetched once."""
    lib = HOME / version / "lib"
    if not lib.is_dir():
        part = HOME / version / f"lib.part-{os.getpid()}"
        subprocess.run(
            ["mvn", "-B", "-q", "-f", HERE / "pom.xml", f"-Dkafka.version={version}", "dependency:copy-dependencies",
             f"-DoutputDirectory={part}", "-DincludeScope=runtime"],
            check=True, stdout=2)  # fmt: skip
        part.rename(lib)  # whole or not at all
    return lib


def java(version, *args, memory="512m"):
    """The command line of a Java process with Kafka's class path; no shell ever expands the star."""
    classes = f"{classes_of(version)}:{jars(version)}/*"
    return ["java", f"-Xmx{memory}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", classes,
            f"-Dlog4j2.configurationFile={HERE / 'log4j2.yaml'}", *map(str, args)]  # fmt: skip


def classes_of(version):
    return HOME / version / "classes"


def compile_foreign(version):
    """Compiles Foreign.java against that version's jars, if it is newer than what stands."""
    source, out = HERE / "Foreign.java", classes_of(version)
    if (out / "Foreign.class").exists() and (out / "Foreign.class").stat().st_mtime >= source.stat().st_mtime:
        return
    out.mkdir(parents=True, exist_ok=True)
    subprocess.run(["javac", "-nowarn", "-cp", f"{jars(version)}/*", "-d", out, source], check=True, stdout=2)


def with_harness(command):
    """Has the kernel kill the process should the harness die first, however it dies."""
    return ["setpriv", "--pdeathsig", "KILL", *command]


def free_ports(count):
    """Free ports *below* the range the kernel draws from for outgoing connections: nobody takes the port of a broker
    that is down, and a client that dials it is refused (inside the range a socket can connect to itself)."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as f:
        low = int(f.read().split()[0])
    found = []
    with contextlib.ExitStack() as held:
        for port in random.SystemRandom().sample(range(max(1024, low // 3), low), 2000):
            sock = held.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                sock.bind((HOST, port))
                found.append(port)
            if len(found) == count:
                return found
    raise RuntimeError("no free ports")


class Node:
    """One process of Kafka, broker and controller in one."""

    def __init__(self, version, directory, number, client):
        self.version, self.directory, self.number = version, directory, number
        self.address = (HOST, client)
        self.data = directory / f"node{number}"
        self.properties = directory / f"node{number}.properties"
        self.log = directory / f"node{number}.log"
        self.process = None

    def start(self, bound):
        command = java(self.version, "kafka.Kafka", self.properties)
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                with_harness(command) if bound else command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True)  # fmt: skip

    def signal(self, number):
        os.kill(self.process.pid, number)

    def pause(self):
        """SIGSTOP, and only back when the kernel says that the whole process stands."""
        self.signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WNOWAIT)

    def resume(self):
        self.signal(signal.SIGCONT)

    def kill(self):
        """SIGKILL; back when the process is gone, and with it its listening ports."""
        self.process.kill()
        self.process.wait()

    def stop(self, patience=15):
        """A clean stop, or a kill for one that does not obey."""
        if self.process is None or self.process.poll() is not None:
            return
        self.signal(signal.SIGCONT)
        self.process.terminate()
        try:
            self.process.wait(patience)
        except subprocess.TimeoutExpired:
            self.kill()


class Cluster:
    """Nodes of one version. `with Cluster(...) as cluster:` ends them, whatever happens."""

    def __init__(self, version, nodes, directory, advertised=None, extra=()):
        self.version, self.directory = version, directory
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        ports = free_ports(3 * nodes)
        client, internal, controller = ports[:nodes], ports[nodes : 2 * nodes], ports[2 * nodes :]
        voters = ",".join(f"{i + 1}@{HOST}:{controller[i]}" for i in range(nodes))
        self.nodes = []
        for i in range(nodes):
            node = Node(version, directory, i + 1, client[i])
            # A byte proxy in front of a node advertises its own port in place of the node's.
            text = PROPERTIES.format(
                node=i + 1, voters=voters, client=client[i], internal=internal[i], controller=controller[i],
                advertised=advertised(i + 1, client[i]) if advertised else client[i], data=node.data,
                replicas=nodes, least=max(1, nodes - 1))  # fmt: skip
            node.properties.write_text(text + "".join(f"{line}\n" for line in extra))
            self.nodes.append(node)
        self.replicas = nodes
        # What tools use beside a byte proxy: the listener of the nodes among themselves.
        self.internal = ",".join(f"{HOST}:{port}" for port in internal)

    @property
    def bootstrap(self):
        return ",".join(f"{host}:{port}" for host, port in self.addresses)

    @property
    def addresses(self):
        return [node.address for node in self.nodes]

    def format(self):
        cluster = base64.urlsafe_b64encode(b"\0" + uuid.uuid4().bytes[1:]).decode().rstrip("=")
        running = []
        for node in self.nodes:
            command = java(self.version, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", node.properties)
            with open(node.log, "ab") as log:
                running.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log))
        for node, process in zip(self.nodes, running, strict=True):
            if process.wait() != 0:
                raise RuntimeError(f"formatting failed: see {node.log}")

    def start(self, bound=True):
        self.format()
        for node in self.nodes:
            node.start(bound)
        self.wait_for_nodes()

    def wait_for_nodes(self):
        """Every node answers and lists every node."""

        def good(answer):
            return len(answer.brokers) == len(self.nodes)

        self._wait((), good, "all nodes up")

    def wait_for_topic(self, topic, partitions=None, in_sync=True):
        """Every node knows a leader for every partition and, if asked, every replica is in sync."""

        def good(answer):
            error, found = answer.topics.get(topic, (3, []))
            if error or (partitions is not None and len(found) != partitions):
                return False
            return all(p.error == 0 and p.leader > 0 and (not in_sync or len(p.in_sync) == len(p.replicas)) for p in found)

        def agreed(answers):
            return len({tuple((p.leader, p.leader_epoch) for p in answer.topics[topic][1]) for answer in answers}) == 1

        # A node that stood still first tells what it knew before.
        until = time.monotonic() + 180
        while not agreed(answers := list(self._wait((topic,), good, f"leaders of {topic}").values())):
            if time.monotonic() > until:
                raise TimeoutError(f"nodes do not agree about the leaders of {topic}: {answers}")
            time.sleep(0.05)  # between two questions
        return answers[0].topics[topic][1]

    def _wait(self, topics, good, what):
        def alive_and_good(answer):
            for node in self.nodes:
                if node.process.poll() is not None:
                    raise RuntimeError(f"node {node.number} ended with {node.process.returncode}: see {node.log}")
            return good(answer)

        return metadata.wait(self.addresses, topics, alive_and_good, what)

    def stop(self):
        for node in self.nodes:
            if node.process and node.process.poll() is None:
                node.kill()

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()


def process_of(pid):
    """The command line of a process, empty if it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
    except OSError:
        return ""


def end_detached(directory):
    """Ends the nodes that `up` left running in that directory, by their pids, if the pids are still theirs."""
    for file in directory.glob("node*.pid"):
        pid = int(file.read_text())
        if str(directory) in process_of(pid):
            os.kill(pid, signal.SIGKILL)
            until = time.monotonic() + 10
            while process_of(pid) and time.monotonic() < until:
                time.sleep(0.02)  # polls the end of a process that is no child of this one
        file.unlink()
