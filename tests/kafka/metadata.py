"""The one question a harness must ask a broker itself: Metadata, version 7, over a plain socket.

Ready means what the brokers say, not what a log says or how long one waited.
"""

import socket
import struct
import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Partition:
    error: int
    index: int
    leader: int
    leader_epoch: int
    replicas: tuple
    in_sync: tuple


@dataclass(frozen=True)
class Answer:
    brokers: dict  # node id -> (host, port)
    controller: int
    topics: dict  # name -> (error, [Partition])


class _Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, layout):
        (value,) = struct.unpack_from(">" + layout, self.data, self.at)
        self.at += struct.calcsize(">" + layout)
        return value

    def string(self):
        length = self.take("h")
        if length < 0:
            return None
        self.at += length
        return self.data[self.at - length : self.at].decode()

    def array(self, item):
        return [item() for _ in range(self.take("i"))]


def _string(text):
    return struct.pack(">h", len(text)) + text.encode()


def _exactly(sock, count):
    data = b""
    while len(data) < count:
        more = sock.recv(count - len(data))
        if not more:
            raise ConnectionError("closed in the middle of an answer")
        data += more
    return data


def ask(host, port, topics=(), timeout=2.0):
    """One Metadata request on a connection of its own."""
    body = struct.pack(">hhi", 3, 7, 1) + _string("candor-harness")
    body += struct.pack(">i", len(topics)) + b"".join(map(_string, topics)) + b"\0"
    with socket.create_connection((host, port), timeout) as sock:
        sock.settimeout(timeout)
        sock.sendall(struct.pack(">i", len(body)) + body)
        (size,) = struct.unpack(">i", _exactly(sock, 4))
        r = _Reader(_exactly(sock, size))
    r.take("i")  # correlation id
    r.take("i")  # throttle
    brokers = {}

    def broker():
        node, host, port, _rack = r.take("i"), r.string(), r.take("i"), r.string()
        brokers[node] = (host, port)

    def integers():
        return tuple(r.array(lambda: r.take("i")))

    def partition():
        one = Partition(r.take("h"), r.take("i"), r.take("i"), r.take("i"), integers(), integers())
        integers()  # offline replicas
        return one

    def topic():
        error, name, _internal = r.take("h"), r.string(), r.take("b")
        return name, (error, r.array(partition))

    r.array(broker)
    r.string()  # cluster id
    controller = r.take("i")
    return Answer(brokers, controller, dict(r.array(topic)))


def wait(addresses, topics, good, what, patience=180.0):
    """Asks until the answer of *every* address is `good`; raises after `patience` seconds with the last answers."""
    until = time.monotonic() + patience
    seen = {}
    waiting = list(addresses)
    while True:
        for address in list(waiting):
            try:
                seen[address] = ask(*address, topics)
                if good(seen[address]):
                    waiting.remove(address)
            except (OSError, struct.error) as error:
                seen[address] = error
        if not waiting:
            return seen
        if time.monotonic() > until:
            raise TimeoutError(f"{what}: not within {patience} s; last seen: {seen}")
        time.sleep(0.05)  # between two questions
