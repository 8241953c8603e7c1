"""Every check passes on what is right and fails on each planted fault."""

import json
import unittest

from checks import (
    Failed, check_batches, check_claims, check_doubt, check_ledger, check_order, check_partitions, check_rejects, check_sequence,
    parse_claims, parse_input, parse_ledger, parse_log,
)  # fmt: skip
from foreign import Batch, parse_segment

INPUT = [b"a:1\n", b"b:2\n", b"a:3\n", b"no key\n"]
RECORDS = [(b"a", b"1"), (b"b", b"2"), (b"a", b"3"), (None, b"no key")]
DUMP = [b"0\t0\ta\t1\n", b"0\t1\ta\t3\n", b"1\t0\tb\t2\n", b"1\t1\t\\N\tno key\n"]
PLACES = [(0, 0), (1, 0), (0, 1), (1, 1)]
PARTITIONS = {b"a": 0, b"b": 1, None: 1}


def ledger(places=PLACES, **change):
    row = {"verdict": "delivered", "reason": None, "resolution": None, "at_ms": 3}
    return [json.dumps({"line": i + 1, "partition": p, "offset": o, **row, **change}) for i, (p, o) in enumerate(places)]


def entries(places=PLACES):
    return parse_ledger(ledger(places), len(places))


class Checks(unittest.TestCase):
    def test_right(self):
        log = parse_log(DUMP)
        self.assertEqual(parse_input(INPUT, b":"), RECORDS)
        check_ledger(RECORDS, entries(), log)
        check_order(entries())
        check_partitions(RECORDS, log, PARTITIONS)

    def test_input_without_separator_has_no_keys(self):
        self.assertEqual(parse_input([b"a:1\n", b"\n"], b""), [(None, b"a:1"), (None, b"")])

    def test_escapes(self):
        self.assertEqual(parse_log([b"0\t0\t\t\\\\t\\t\\n\\\\N\n"]), {0: [(b"", b"\\t\t\n\\N")]})

    def test_log_with_a_hole(self):
        with self.assertRaisesRegex(Failed, "hole"):
            parse_log([DUMP[0], b"0\t2\ta\t3\n"])

    def test_ledger_faults(self):
        faults = {
            "not delivered": ledger(verdict="unknown"),
            "lacks 1 lines": ledger()[:3],
            "twice": ledger() + ledger()[:1],
            "not in the input": ledger() + [ledger()[0].replace('"line": 1', '"line": 9')],
            "lacks fields": [line.replace("at_ms", "at") for line in ledger()],
        }
        for message, lines in faults.items():
            with self.subTest(message), self.assertRaisesRegex(Failed, message):
                parse_ledger(lines, 4)

    def test_log_faults(self):
        faults = {
            "ends before": parse_log(DUMP[:3]),  # lost
            "the log holds 5": parse_log([*DUMP, b"1\t2\t\\N\tno key\n"]),  # twice
            "something else": parse_log([b"0\t0\ta\t3\n", b"0\t1\ta\t1\n", *DUMP[2:]]),  # reordered
        }
        for message, log in faults.items():
            with self.subTest(message), self.assertRaisesRegex(Failed, message):
                check_ledger(RECORDS, entries(), log)
            with self.subTest("without the ledger: " + message), self.assertRaises(Failed):
                check_partitions(RECORDS, log, PARTITIONS)

    def test_unknown_offset_is_not_a_lost_record(self):
        lines = ledger([(0, 0), (1, None), (0, 1), (1, 1)])
        check_ledger(RECORDS, parse_ledger(lines, 4), parse_log(DUMP))
        check_order(parse_ledger(lines, 4))
        with self.assertRaisesRegex(Failed, "the log holds 3"):
            check_ledger(RECORDS, parse_ledger(ledger([(0, 0), (1, 0), (0, 1), (1, None)]), 4), parse_log(DUMP[:3]))

    def test_claims(self):
        claims = [("a", "delivered", 0), ("b", "not_delivered", None), ("c", "never", None), ("d", "delivered", None)]
        check_claims(claims, ["a", "c", "d"])
        check_claims(claims, ["a", "d"])
        faults = {
            "twice": ["a", "c", "d", "c"],
            "but not in": ["a", "c"],
            "not at its offset": ["c", "a", "d"],
            "but in the log": ["a", "b", "d"],
            "offset 1": ["a", "d", "c"],
            "expected 2 records": ["a", "d", "x"],
        }
        for message, log in faults.items():
            with self.subTest(message), self.assertRaisesRegex(Failed, message):
                check_claims(claims, log)

    def test_ledger_with_doubt(self):
        rows = ledger()[:1] + [ledger(verdict="unknown", resolution="never")[1], ledger(verdict="not_delivered")[2]]
        self.assertEqual([c for c, _, _ in parse_claims(rows, 3)], ["delivered", "never", "not_delivered"])
        faults = {
            "without its end": [*rows[:2], ledger(verdict="unknown")[2]],
            "nothing was unknown": [*rows[:2], ledger(resolution="delivered")[2]],
            "lacks 1 lines": rows[:2],
            "twice": [*rows, rows[0]],
        }
        for message, lines in faults.items():
            with self.subTest(message), self.assertRaisesRegex(Failed, message):
                parse_claims(lines, 3)

    def test_doubt(self):
        records = [(None, b"%d" % n) for n in range(5)]
        claims = [("delivered", 0, 0), ("not_delivered", 0, None), ("never", 0, None), ("delivered", 0, None), ("delivered", 1, 0)]

        def log(*zero, one=(4,)):
            return {0: [records[n] for n in zero], 1: [records[n] for n in one]}

        for right in (log(0, 2, 3), log(0, 3), log(0, 3, 2)):
            check_doubt(records, claims, right)
        faults = {
            "never sent": {**log(0, 3), 2: [(None, b"x")]},
            "twice": log(0, 3, 3),
            "order": log(0, 3, one=(4, 1)) | log(3, 0),
            "delivered, but not": log(0),
            "not where": log(0, 3, 4, one=()),
            "but in the log": log(0, 1, 3),
        }
        for message, held in faults.items():
            with self.subTest(message), self.assertRaisesRegex(Failed, message):
                check_doubt(records, claims, held)

    def test_rejects(self):
        claims = [("delivered", 0, 0), ("never", 0, None), ("not_delivered", None, None)]
        source = [b"a\n", b"b\n", b"\xff\n"]
        rows = ['{"line": 3, "hex": "ff"}', '{"line": 2, "text": "b"}']
        check_rejects(rows, source, claims)
        for lines in (rows[:1], [*rows, '{"line": 1, "text": "a"}'], [rows[0], '{"line": 2, "text": "c"}']):
            with self.subTest(lines), self.assertRaises(Failed):
                check_rejects(lines, source, claims)

    def test_shared_place(self):
        with self.assertRaisesRegex(Failed, "share"):
            check_ledger([(None, b"x")] * 2, entries([(0, 0), (0, 0)]), {0: [(None, b"x")] * 2})

    def test_order(self):
        with self.assertRaisesRegex(Failed, "order"):
            check_order(entries([(0, 1), (1, 0), (0, 0), (1, 1)]))

    def test_wrong_partition(self):
        with self.assertRaises(Failed):
            check_partitions(RECORDS, parse_log(DUMP), {**PARTITIONS, b"b": 0})

    def test_sequence(self):
        check_sequence([1, 2], [1, 2], "here")
        for found in ([1], [1, 3], [1, 2, 2]):
            with self.subTest(found), self.assertRaisesRegex(Failed, "here"):
                check_sequence([1, 2], found, "here")

    def test_batches(self):
        good = [Batch(0, 1, 0, 7, 0, True), Batch(2, 2, 0, 8, 0, True), Batch(3, 5, 2, 7, 0, True)]
        check_batches(good, 6, {0})
        faults = {
            "bump": [*good[:2], Batch(3, 5, 0, 7, 1, True)],
            "jump": [*good[:2], Batch(3, 5, 3, 7, 0, True)],
            "hole": [good[0], good[2]],
            "CRC": [*good[:2], Batch(3, 5, 2, 7, 0, False)],
            "without a producer id": [Batch(0, 5, -1, -1, -1, True)],
            "records on disk": good[:2],
        }
        for message, batches in faults.items():
            with self.subTest(message), self.assertRaisesRegex(Failed, message):
                check_batches(batches, 6, {0})
        check_batches(faults["bump"], 6, None)

    def test_segment_text(self):
        line = (
            "baseOffset: 544 lastOffset: 1071 count: 528 baseSequence: 44 lastSequence: 571 producerId: 3 producerEpoch: 2 "
            "partitionLeaderEpoch: 0 isTransactional: false isControl: false deleteHorizonMs: OptionalLong.empty position: 16383 "
            "CreateTime: 1795986809008 size: 16365 magic: 2 compresscodec: none crc: 1782592479 isvalid: "
        )
        text = f"Dumping x\nLog starting offset: 0\n{line}true\n{line}false\n"
        self.assertEqual(parse_segment(text), [Batch(544, 1071, 44, 3, 2, True), Batch(544, 1071, 44, 3, 2, False)])


if __name__ == "__main__":
    unittest.main()
