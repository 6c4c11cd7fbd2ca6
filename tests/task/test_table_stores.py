"""Custom processors use the stores of tables and aggregations: each finds what the other has put."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib import (
    ConfigurationError,
    DayWindows,
    GlobalKTable,
    Materialized,
    Processor,
    Record,
    SessionWindows,
    SlidingWindows,
    Stores,
    StreamsBuilder,
    TimeWindows,
    ValueAndTimestamp,
    Windowed,
    count,
    mean_,
    per_record,
)
from statelib.commits.layout import changelog_topic
from tests.operators.flow import Fed, Flow
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from statelib import ProcessorContext, Topology

STRING = pa.string()
MS = timedelta(milliseconds=1)
LENGTH = per_record(len, pa.int64(), "value")


class With(Processor):
    """Does something with a store for each record, and forwards what that gives as text."""

    def __init__(self, store: str, do: Callable[[Any, Record], Any]) -> None:
        self.name = store
        self.do = do

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.store = context.get_state_store(self.name)

    def process(self, record: Record) -> None:
        self.context.forward(record.with_value(repr(self.do(self.store, record))))


def found_in(build: Callable[[StreamsBuilder], Any], do: Callable[[Any, Record], Any], *fed: Fed) -> list[str]:
    """What a processor says behind what ``build`` has made of the topic ``in``, with the store ``s``."""
    builder = StreamsBuilder("app")
    build(builder)
    builder.stream("in").process(lambda: With("s", do), "s", value_type=STRING).to("out")
    flow = Flow(builder.build(), {"in": (STRING, STRING), "table": (STRING, STRING)})
    return [row.value for row in flow.run(fed or [Fed("in", "k", "abc", 5), Fed("in", "k", "d", 7)]).get("out", [])]


def grouped(builder: StreamsBuilder) -> Any:
    return builder.stream("in").group_by_key()


@pytest.mark.parametrize(
    ("build", "do", "expected"),
    [
        (lambda b: grouped(b).count(Materialized.as_("s")), lambda s, r: s.get(r.key), ["(1, 5)", "(2, 7)"]),
        (
            lambda b: grouped(b).aggregate({"m": mean_(LENGTH), "n": count()}, Materialized.as_("s")),
            lambda s, _: [(key, found.value) for key, found in s.all()],
            ["[('k', {'m': 3.0, 'n': 1})]", "[('k', {'m': 2.0, 'n': 2})]"],
        ),
        (
            lambda b: grouped(b).windowed_by(TimeWindows.of_size_with_no_grace(MS * 6)).count(Materialized.as_("s")),
            lambda s, r: [(start, found.value) for start, found in s.fetch(r.key, 0, 9)],
            ["[(0, 1)]", "[(6, 1)]"],
        ),
        (
            lambda b: (
                grouped(b)
                .windowed_by(SlidingWindows.of_time_difference_with_no_grace(MS * 4))
                .count(Materialized.as_("s"))
            ),
            lambda s, r: [(start, found.value) for start, found in s.fetch(r.key, 0, 9)],
            ["[(1, 1)]", "[(1, 1), (3, 2), (6, 1)]"],
        ),
        (
            lambda b: (
                grouped(b).windowed_by(SessionWindows.of_inactivity_gap_with_no_grace(MS)).count(Materialized.as_("s"))
            ),
            lambda s, r: list(s.fetch(r.key)),
            [f"[({Windowed('k', 5, 5)!r}, 1)]", f"[({Windowed('k', 7, 7)!r}, 1)]"],
        ),
        (
            lambda b: b.stream("in").to_table(
                materialized=Materialized.as_(Stores.persistent_versioned_key_value_store("s", MS * 100))
            ),
            lambda s, r: [version.value for version in s.history(r.key)],
            ["['abc']", "['d', 'abc']"],
        ),
    ],
    ids=["count", "states", "windows", "sliding windows", "sessions", "versions"],
)
def test_stores_of_all_kinds_are_read(
    build: Callable[[StreamsBuilder], Any], do: Callable[[Any, Record], Any], expected: list[str]
) -> None:
    found = found_in(build, do)
    assert [text.replace("ValueAndTimestamp(value=", "(").replace("timestamp=", "") for text in found] == expected


def through_a_store() -> Topology:
    """A table, a processor that puts into its store, and a join that looks into it behind the processor."""
    builder = StreamsBuilder("app")
    table = builder.table("table", Materialized.as_("s"))
    stream = builder.stream("in")

    def put(store: Any, record: Record) -> Any:
        before = store.get(record.key)
        value = None if record.value == "x" else f"put {record.value}"
        store.put(record.key, ValueAndTimestamp.make(value, record.timestamp))
        return before

    stream.process(lambda: With("s", put), "s", value_type=STRING).to("out")
    stream.join(table, per_record(lambda left, right: f"{left} {right}", STRING, "left", "right")).to("joined")
    table.to_stream().to("told")
    return builder.build()


@given(
    st.lists(
        st.builds(
            Fed,
            st.sampled_from(["in", "table"]),
            st.sampled_from(["a", "b"]),
            st.sampled_from("vwx"),
            st.integers(0, 50),
        ),
        max_size=15,
    ),
    st.lists(st.integers(0, 15), max_size=3),
    st.integers(0, 2),
)
def test_a_table_and_a_processor_find_what_the_other_has_put(fed: list[Fed], cuts: list[int], flush_every: int) -> None:
    store: dict[str, tuple[str, int]] = {}
    out, joined = [], []
    for topic, key, value, timestamp in fed:
        if topic == "table":
            store[key] = (value, timestamp)
            continue
        before = store.get(key)
        out.append(repr(None if before is None else ValueAndTimestamp(*before)))
        store[key] = (f"put {value}", timestamp)
        if value == "x":
            del store[key]
        else:
            joined.append(f"{value} put {value}")
    flow = Flow(through_a_store(), {"in": (STRING, STRING), "table": (STRING, STRING)})
    found = flow.run(fed, cuts, flush_every=flush_every)
    assert [row.value for row in found.get("out", [])] == out
    assert [row.value for row in found.get("joined", [])] == joined
    whole = Flow(through_a_store(), {"in": (STRING, STRING), "table": (STRING, STRING)})
    whole.run(fed)
    assert flow.content() == whole.content()


def refused(do: Callable[[Any, Record], Any], build: Callable[[StreamsBuilder], Any]) -> str:
    with pytest.raises(ConfigurationError) as error:
        found_in(build, do)
    return error.value.message


def test_what_cannot_be_written() -> None:
    mean = lambda b: grouped(b).aggregate({"m": mean_(LENGTH)}, Materialized.as_("s"))  # noqa: E731 - as above
    put = refused(lambda s, r: s.put(r.key, ValueAndTimestamp.make({"m": 1.0}, 1)), mean)
    assert "can only be read: a result alone makes no state" in put
    assert found_in(mean, lambda s, r: s.put(r.key, None) or s.get(r.key)) == ["None", "None"]
    windows = TimeWindows.of_size_with_no_grace(MS * 6)
    of_windows = refused(
        lambda s, r: s.put(r.key, 1, 0), lambda b: grouped(b).windowed_by(windows).count(Materialized.as_("s"))
    )
    assert "can only read the stores of versioned tables, windows and sessions" in of_windows


def test_stores_that_cannot_be_used() -> None:
    days = DayWindows.of_zone_with_no_grace("UTC")
    told = refused(lambda s, r: s.all(), lambda b: grouped(b).windowed_by(days).count(Materialized.as_("s")))
    assert "windows that differ in size" in told
    told = refused(lambda s, r: s, lambda b: b.table("table"))
    assert "there is no such store" in told

    class AtOnce(With):
        def init(self, context: ProcessorContext) -> None:
            context.get_state_store("s").get("k")

    builder = StreamsBuilder("app")
    builder.table("table", Materialized.as_("s"))
    builder.stream("in").process(lambda: AtOnce("s", print), "s")
    with pytest.raises(ConfigurationError, match=r"cannot be used in init\(\): its types are not known yet"):
        builder.build()


def test_a_global_table_is_not_connected() -> None:
    builder = StreamsBuilder("app")
    table: GlobalKTable = builder.global_table("table", Materialized.as_("s"))
    with pytest.raises(ConfigurationError, match="store of a global table"):
        builder.stream("in").process(lambda: With(table.queryable_store_name, print), "s")


def test_puts_are_in_the_changelog_where_they_happened(tmp_path: Path) -> None:
    pipeline = Pipeline(tmp_path, through_a_store(), "stores", changelogs=["s"])
    pipeline.archive("table", [("a", f"t{n}", 10 * n) for n in range(3)], (STRING, STRING), 1)
    pipeline.archive("in", [("a", f"s{n}", 10 * n + 5) for n in range(3)], (STRING, STRING), 1)
    pipeline.run()
    logged = [row[3] for row in pipeline.output(changelog_topic("stores", "s"))]
    assert logged == [b"t0", b"put s0", b"t1", b"put s1", b"t2", b"put s2"]
