"""What must hold of an input, the producer's ledger and the log that Kafka's own consumer read. Pure: values in, `Failed` out."""

import json
import re
from collections import defaultdict
from dataclasses import dataclass

ESCAPED = {b"\\": b"\\", b"t": b"\t", b"n": b"\n"}
LEDGER_FIELDS = {"line", "partition", "verdict", "offset", "reason", "resolution", "at_ms"}
CLAIMS = ("delivered", "not_delivered", "never")


class Failed(Exception):
    """A condition that does not hold, with the first evidence."""


def ensure(holds, what, *evidence):
    if not holds:
        raise Failed(": ".join([what, *map(str, evidence)]))


@dataclass(frozen=True)
class Entry:
    """One line of the ledger."""

    line: int
    partition: int
    offset: int


def unescape(field):
    """A key or value as Foreign.java writes it."""
    if field == b"\\N":
        return None
    if b"\\" not in field:
        return field
    return re.sub(rb"\\(.)", lambda found: ESCAPED[found[1]], field)


def parse_log(lines):
    """Partition -> [(key, value)], the index being the offset: a log without a hole is demanded here."""
    log = defaultdict(list)
    for line in lines:
        partition, offset, key, value = line.rstrip(b"\n").split(b"\t")
        records = log[int(partition)]
        ensure(int(offset) == len(records), "the log has a hole", f"partition {int(partition)}", f"offset {int(offset)} after {len(records) - 1}")
        records.append((unescape(key), unescape(value)))
    return dict(log)


def parse_input(lines, separator):
    """[(key, value)] of the lines of a file; without separator, or in a line that lacks it, there is no key."""
    records = []
    for line in lines:
        key, found, value = line.rstrip(b"\n").partition(separator) if separator else (b"", b"", line.rstrip(b"\n"))
        records.append((key, value) if found else (None, key if separator else value))
    return records


def parse_ledger(lines, count):
    """[Entry], the index being line - 1, of a ledger that says `delivered` of each of `count` lines, once."""
    entries = [None] * count
    for text in lines:
        row = json.loads(text)
        ensure(LEDGER_FIELDS <= row.keys(), "a ledger line lacks fields", LEDGER_FIELDS - row.keys(), text)
        ensure(row["verdict"] == "delivered", "a line was not delivered", text)
        ensure(1 <= row["line"] <= count, "the ledger names a line that is not in the input", text)
        ensure(entries[row["line"] - 1] is None, "the ledger names a line twice", text)
        entries[row["line"] - 1] = Entry(row["line"], row["partition"], row["offset"])
    missing = [i + 1 for i, entry in enumerate(entries) if entry is None]
    ensure(not missing, f"the ledger lacks {len(missing)} lines", missing[:5])
    return entries


def check_ledger(records, entries, log):
    """The ledger tells the truth: each line stands where it says, and nothing else is in the log. A line that is delivered at an
    offset nobody knows is counted here; which it is, `check_partitions` and `check_order` see."""
    told = [(entry, record) for entry, record in zip(entries, records, strict=True) if entry.offset is not None]
    for entry, record in told:
        there = log.get(entry.partition, [])
        ensure(entry.offset < len(there), "the log ends before the offset the ledger names", entry)
        found = there[entry.offset]
        ensure(found == record, "the log holds something else where the ledger points", entry, f"expected {record}", f"found {found}")
    places = {(entry.partition, entry.offset) for entry, _ in told}
    ensure(len(places) == len(told), f"{len(told) - len(places)} lines share their place with another")
    held = sum(map(len, log.values()))
    ensure(held == len(records), f"the log holds {held} records, the input {len(records)}")


def check_order(entries):
    """Within a partition, offsets rise with lines."""
    last = {}
    for entry in entries:
        if entry.offset is None:
            continue
        before = last.get(entry.partition)
        ensure(before is None or before.offset < entry.offset, "order within a partition", before, entry)
        last[entry.partition] = entry


def check_partitions(records, log, partition_of):
    """The log of each partition is the input's lines with its keys, in order: from the input alone, without the ledger."""
    expected = defaultdict(list)
    for record in records:
        expected[partition_of[record[0]]].append(record)
    for partition in sorted(expected.keys() | log.keys()):
        check_sequence(expected.get(partition, []), log.get(partition, []), f"partition {partition}")


def check_sequence(expected, found, where):
    """Two lists are equal, or the first difference is told."""
    for at, (want, got) in enumerate(zip(expected, found, strict=False)):
        ensure(want == got, f"{where}, offset {at}", f"expected {want}", f"found {got}")
    ensure(len(expected) == len(found), where, f"expected {len(expected)} records", f"found {len(found)}")


def parse_claims(lines, count):
    """[(claim, partition, offset)] of a ledger that may hold any verdict: of each of `count` lines, once, what was said at last."""
    claims = [None] * count
    for text in lines:
        row = json.loads(text)
        ensure(LEDGER_FIELDS <= row.keys(), "a ledger line lacks fields", LEDGER_FIELDS - row.keys(), text)
        claim = row["resolution"] if row["verdict"] == "unknown" else row["verdict"]
        ensure(claim in CLAIMS, "a verdict without its end", text)
        ensure((row["resolution"] is not None) == (row["verdict"] == "unknown"), "a resolution where nothing was unknown", text)
        ensure(1 <= row["line"] <= count, "the ledger names a line that is not in the input", text)
        ensure(claims[row["line"] - 1] is None, "the ledger names a line twice", text)
        claims[row["line"] - 1] = (claim, row["partition"], row["offset"])
    missing = [i + 1 for i, claim in enumerate(claims) if claim is None]
    ensure(not missing, f"the ledger lacks {len(missing)} lines", missing[:5])
    return claims


def check_doubt(records, claims, log):
    """As `check_claims`, of a file and its ledger: each partition by itself, lines that differ from each other."""
    line_of = {record: line for line, record in enumerate(records)}
    ensure(len(line_of) == len(records), "the input repeats a line")
    where = {}
    for partition, found in log.items():
        last = -1
        for offset, record in enumerate(found):
            line = line_of.get(record)
            ensure(line is not None, "the log holds what was never sent", partition, offset, record)
            ensure(line not in where, "a line twice in the log", line + 1, where.get(line), (partition, offset))
            where[line] = (partition, offset)
            if claims[line][0] != "never":
                ensure(last < line, "order within a partition", f"partition {partition}, offset {offset}", last + 1, line + 1)
                last = line
    for line, (claim, partition, offset) in enumerate(claims):
        at = where.get(line)
        ensure(claim != "delivered" or at is not None, "delivered, but not in the log", line + 1)
        ensure(claim != "delivered" or (at[0] == partition and offset in (None, at[1])), "not where it was told", line + 1, at)
        ensure(claim != "not_delivered" or at is None, "not delivered, but in the log", line + 1, at)


def check_rejects(lines, source, claims):
    """The rejects are the lines that are not known to be in the log: none lost, none too many, byte for byte."""
    rows = [json.loads(text) for text in lines]
    expected = [line for line, (claim, _, _) in enumerate(claims, 1) if claim != "delivered"]
    check_sequence(expected, sorted(row["line"] for row in rows), "rejects")
    for row in rows:
        text = row["text"].encode() if "text" in row else bytes.fromhex(row["hex"])
        ensure(text == source[row["line"] - 1].rstrip(b"\n"), "a reject is not its line", row)


def check_claims(claims, found):
    """What the application was told at last, [(value, claim, offset)] in order of sending, against the values of the log:
    `delivered` stands there once, at its offset if one was told, `not_delivered` nowhere, `never` at most once; in order,
    and nothing else."""
    places = {value: at for at, value in enumerate(found)}
    ensure(len(places) == len(found), "a value twice in the log", found)
    for value, claim, offset in claims:
        at = places.get(value)
        ensure(claim in CLAIMS, "an unknown claim", value, claim)
        ensure(claim != "delivered" or at is not None, "delivered, but not in the log", value, found)
        ensure(claim != "delivered" or offset in (None, at), "not at its offset", value, offset, found)
        ensure(claim != "not_delivered" or at is None, "not delivered, but in the log", value, found)
    check_sequence([value for value, _, _ in claims if value in places], found, "the log")


def check_batches(batches, records, epochs):
    """What Kafka has on disk for a partition: no hole, every CRC right, sequences dense per identity; epochs among `epochs`."""
    at = 0
    next_sequence = {}
    for batch in batches:
        ensure(batch.valid, "a batch with a wrong CRC", batch)
        ensure(batch.base_offset == at, "a hole on disk", f"offset {at}", batch)
        identity = (batch.producer, batch.epoch)
        ensure(batch.producer >= 0, "a batch without a producer id", batch)
        ensure(epochs is None or batch.epoch in epochs, "an epoch bump", batch)
        ensure(batch.base_sequence == next_sequence.get(identity, 0), "a jump in the sequence", batch)
        at = batch.last_offset + 1
        next_sequence[identity] = batch.base_sequence + at - batch.base_offset
    ensure(at == records, "records on disk", at, f"expected {records}")
