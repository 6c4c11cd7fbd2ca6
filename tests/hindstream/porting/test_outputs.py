"""How records are compared: key by key in order, values field by field, JSON whole."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from hindstream.porting.formats import Formats
from hindstream.porting.outputs import Comparing
from hindstream.porting.protocol import Written
from statelib import Job, JsonSerde, KafkaTopic, StreamsBuilder, StringSerde
from statelib.comparison.fields import Rules
from statelib.errors.kinds import ConfigurationError, InputError
from statelib.topics.archive import topic_schema

TOTALS = pa.struct([("n", pa.int64()), ("sum", pa.float64())])


def job() -> Job:
    builder = StreamsBuilder("job")
    builder.stream("in").to("out")
    return Job("job", builder.build())


def ours(*rows, value=TOTALS) -> dict[str, pa.Table]:
    schema = topic_schema(pa.string(), value)
    columns = pa.schema([schema.field(name) for name in ("key", "value", "timestamp", "headers")])
    names = ("key", "value", "timestamp", "headers")
    return {"out": pa.Table.from_pylist([dict(zip(names, (*row, []), strict=True)) for row in rows], columns)}


def theirs(*rows, topic="out") -> list[Written]:
    return [
        Written(topic, n, time, key.encode(), None if value is None else json.dumps(value).encode(), ())
        for n, (key, value, time) in enumerate(rows)
    ]


def compared(written, sinks, rules=Rules(), topics=()):  # noqa: B008
    return Comparing(Formats(job(), topics), rules).compare(written, sinks)


A1, A2, B1 = ("a", {"n": 1, "sum": 0.5}, 1), ("a", {"n": 2, "sum": 0.5}, 2), ("b", {"n": 1, "sum": None}, 3)


def test_the_same_records_are_equal_in_any_order_of_keys() -> None:
    (found,) = compared(theirs(A1, A2, B1), ours(A1, A2, B1))
    assert (found.pairs, found.only_order, found.compared) == ((), False, 3)
    (found,) = compared(theirs(B1, A1, A2), ours(A1, A2, B1))
    assert (found.pairs, found.only_order) == ((), True)
    (found,) = compared(theirs(A2, A1, B1), ours(A1, A2, B1))
    assert [(pair.key, pair.theirs is None, pair.ours is None) for pair in found.pairs] == [
        ("a", False, True), ("a", True, False),
    ] or len(found.pairs) == 2  # fmt: skip


def test_a_record_that_is_missing_in_between_is_one_difference() -> None:
    rows = [("a", {"n": n, "sum": None}, n) for n in range(9)]
    (found,) = compared(theirs(*rows), ours(*rows[:4], *rows[5:]))
    ((pair),) = found.pairs
    assert (pair.theirs.value["n"], pair.ours, pair.cause) == (4, None, 4)
    (found,) = compared(theirs(*rows[:4], *rows[5:]), ours(*rows))
    ((pair),) = found.pairs
    assert (pair.theirs, pair.ours.value["n"], pair.cause) == (None, 4, None)


@pytest.mark.parametrize(
    ("other", "fields"),
    [
        (("a", {"n": 1}, 1), ("value.sum",)),
        (("a", {"n": 1, "sum": 0.5, "more": None}, 1), ()),
        (("a", {"n": 1, "sum": 0.5, "more": 0}, 1), ("value.more",)),
        (("a", {"sum": 0.5, "n": 1}, 2), ("timestamp",)),
        (("a", {"n": 2, "sum": 0.25}, 1), ("value.n", "value.sum")),
        (("a", None, 1), ("value",)),
    ],
)
def test_fields_that_differ_are_named(other, fields) -> None:
    (found,) = compared(theirs(other), ours(A1))
    assert [pair.fields for pair in found.pairs] == ([fields] if fields else [])


def test_rules_say_what_counts() -> None:
    other = ("a", {"n": 1, "sum": 0.5000001}, 9)
    rules = Rules(tolerances={"value.sum": 1e-6}, ignored=frozenset({"timestamp"}))
    assert compared(theirs(other), ours(A1), rules)[0].pairs == ()
    assert compared(theirs(("a", {"n": 1, "sum": 0.6}, 1)), ours(A1), rules)[0].pairs[0].fields == ("value.sum",)


def test_a_topic_has_another_name_and_serdes() -> None:
    topic = KafkaTopic("live.out", key=StringSerde(), value=JsonSerde(TOTALS), archive="out")
    assert compared(theirs(A1, topic="live.out"), ours(A1), topics=(topic,))[0].pairs == ()


def test_a_topic_of_the_application_alone_is_a_difference() -> None:
    found = compared([*theirs(A1), Written("more", 0, 1, b"k", b"v", ())], ours(A1))
    assert [(sink.topic, len(sink.pairs)) for sink in found] == [("out", 0), ("more", 1)]


def test_a_topic_keeps_its_serdes_when_the_job_writes_nothing_to_it() -> None:
    comparing = Comparing(Formats(job()), Rules())
    comparing.compare([], ours(A1))
    (found,) = comparing.compare(theirs(A1), {})
    assert found.theirs[0].value == {"n": 1, "sum": 0.5}
    assert found.pairs[0].ours is None


def test_bytes_that_cannot_be_read_end_it() -> None:
    with pytest.raises(InputError, match=r"cannot be read as int64: .*--topics FILE.py:NAME"):
        compared(theirs(A1), ours(("a", 1, 1), value=pa.int64()))
    with pytest.raises(ConfigurationError, match=r"Kafka has no serde of its own for date32.*--topics"):
        compared(theirs(A1), ours(("a", None, 1), value=pa.date32()))
