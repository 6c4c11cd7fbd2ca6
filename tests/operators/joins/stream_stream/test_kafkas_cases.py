"""The records of Kafka's own tests of joins of two streams, in both modes: `kafkas_cases.txt` has its layout."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

import pytest

from statelib.operators.joins.stream_stream.definition import JoinWindows
from tests.operators.joins.stream_stream.stream_joins import LEFT, RIGHT, Case, records_of, shown

if TYPE_CHECKING:
    from tests.reference.stream_stream_join import Kind

TEXT = Path(__file__).with_name("kafkas_cases.txt").read_text()


class KafkaTest(NamedTuple):
    name: str
    case: Case
    values: list[str]
    rows: list[tuple[int, str, int | str, int]]
    """Values are numbers: those of `values`."""
    results: list[str]


def kafka_tests() -> list[KafkaTest]:
    tests = []
    for text in TEXT.split("\n== ")[1:]:
        head, *lines = text.splitlines()
        name, kind, *bounds = head.split()
        case = Case(cast("Kind", kind), JoinWindows(*map(int, bounds)))
        test = KafkaTest(name, case, [], [], [])
        side = LEFT
        for line in lines:
            given, _, results = line.partition("->")
            test.results.extend(results.split())
            for word in given.split():
                if word in "LR":
                    side = LEFT if word == "L" else RIGHT
                    continue
                key, value, time = re.split("[=@]", word)
                number = len(test.values)
                test.values.append(value)
                test.rows.append((side, key, number if side == LEFT else str(number), int(time)))
        tests.append(test)
    return tests


TESTS = kafka_tests()


def test_all_of_them_are_read() -> None:
    assert len(TESTS) == TEXT.count("==") - 1 == 26
    assert sum(len(test.results) for test in TESTS) == TEXT.count("|") - 1


@pytest.mark.parametrize("test", TESTS, ids=[test.name for test in TESTS])
def test_the_shipped_librarys_results(test: KafkaTest) -> None:
    made = shown(test.case.task("kafka-4.3").run(records_of(*test.rows)))
    names = [
        f"{key}={'|'.join('null' if one is None else test.values[int(one)] for one in (left, right))}@{time}"
        for _, (key, left, right, time) in made
    ]
    assert names == test.results


@pytest.mark.parametrize("test", TESTS, ids=[test.name for test in TESTS])
def test_no_pair_is_lost_and_each_other_record_has_one_lone_result(test: KafkaTest) -> None:
    task, as_shipped = test.case.task(), test.case.task("kafka-4.3")
    results = shown(task.run(records_of(*test.rows), range(len(test.rows)), flush_every=3))
    pairs = [(left, right) for _, (_, left, right, _) in results if left is not None and right is not None]
    shipped = shown(as_shipped.run(records_of(*test.rows)))
    assert pairs == [(left, right) for _, (_, left, right, _) in shipped if left is not None and right is not None]
    results += shown([task.operator.seal([task.input_of([], side) for side in (LEFT, RIGHT)])])  # type: ignore[attr-defined]
    lone = Counter(left if right is None else right for _, (_, left, right, _) in results if None in (left, right))
    kept = {"inner": (), "left": (LEFT,), "outer": (LEFT, RIGHT)}[test.case.kind]
    joined = {value for pair in pairs for value in pair}
    assert lone == Counter(value for side, _, value, _ in test.rows if side in kept and value not in joined)
