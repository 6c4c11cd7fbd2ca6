"""Joins look into windowed and suppressed tables as Kafka Streams does: against models of one record at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib import (
    BufferConfig,
    ConfigurationError,
    EmitStrategy,
    Materialized,
    SessionWindows,
    Stores,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    count,
    per_record,
)
from tests.operators.flow import Fed, Flow
from tests.operators.tables.examples import CUTS, HOW

if TYPE_CHECKING:
    from statelib import KTable, Topology
    from statelib.settings.semantics import Semantics

TYPES = dict.fromkeys(("l", "r"), (pa.string(), pa.string()))
BOTH = per_record(lambda left, right: f"{left}|{right}", pa.string(), "left", "right")
SIZE, GRACE = 5, 3
UNBOUNDED = BufferConfig.unbounded()

RECORDS = st.lists(
    st.builds(
        Fed,
        st.sampled_from(["l", "r"]),
        st.sampled_from(["a", "b"]),
        st.sampled_from(["x", "y", None]),
        st.integers(0, 40),
    ),
    max_size=20,
)


def ms(milliseconds: int) -> timedelta:
    return timedelta(milliseconds=milliseconds)


def run(topology: Topology, records: list[Fed], cuts: list[int], flush_every: int, semantics: Semantics) -> list[Any]:
    flow = Flow(topology, TYPES, semantics)
    rows = flow.run(records, cuts, flush_every=flush_every).get("out", [])
    return [(_plain(row.key), row.value, row.timestamp) for row in rows]


def _plain(key: Any) -> Any:
    if not isinstance(key, dict):
        return key
    return (key["key"], *(round(key[f"window_{bound}"].timestamp() * 1000) for bound in ("start", "end")))


def versioned(name: str) -> Materialized:
    return Materialized.as_(Stores.persistent_versioned_key_value_store(name, ms(100)))


# --- windows ---------------------------------------------------------------------------------------------------------


@dataclass
class Windows:
    """A count by tumbling windows, and its store."""

    kept_ms: int
    counts: dict[tuple[str, int, int], tuple[int, int]] = field(default_factory=dict)
    stream_time: int = -1
    clock: int = -1

    def put(self, key: str, timestamp: int) -> tuple[str, int, int] | None:
        """The window that is updated."""
        self.stream_time = max(self.stream_time, timestamp)
        start = timestamp // SIZE * SIZE
        window = (key, start, start + SIZE)
        if window[2] <= self.stream_time - GRACE:
            return None
        self.clock = max(self.clock, start)
        before, since = self.counts.get(window, (0, -1))
        self.counts[window] = (before + 1, max(since, timestamp))
        return window

    def get(self, window: tuple[str, int, int]) -> tuple[int, int] | None:
        return self.counts.get(window) if window[1] > self.clock - self.kept_ms else None


def windowed(builder: StreamsBuilder, topic: str, kept_ms: int) -> Any:
    windows = TimeWindows.of_size_and_grace(ms(SIZE), ms(GRACE))
    return builder.stream(topic).group_by_key().windowed_by(windows).count(Materialized().with_retention(ms(kept_ms)))


@given(RECORDS, st.sampled_from([8, 9, 20]), st.sampled_from(["inner", "left", "outer"]), CUTS, HOW)
def test_what_windows_meet_is_in_retention(
    records: list[Fed], kept_ms: int, kind: str, cuts: list[int], flush_every: int
) -> None:
    """By each store's own clock, which other keys move on."""
    builder = StreamsBuilder("app")
    left, right = windowed(builder, "l", kept_ms), windowed(builder, "r", kept_ms)
    join = {"inner": left.join, "left": left.left_join, "outer": left.outer_join}[kind]
    join(right, BOTH).to_stream().to("out")
    tables = {"l": Windows(kept_ms), "r": Windows(kept_ms)}
    expected = []
    for record in records:
        own, other = tables[record.topic], tables["r" if record.topic == "l" else "l"]
        window = own.put(record.key, record.timestamp)
        if window is None:
            continue
        mine, met = own.counts[window], other.get(window)
        if met is None and (kind == "inner" or (kind == "left" and record.topic == "r")):
            continue
        values = [mine[0], None if met is None else met[0]]
        shown = "|".join(map(str, values if record.topic == "l" else reversed(values)))
        expected.append((window, shown, max(mine[1], -1 if met is None else met[1])))
    for semantics in ("kip", "kafka-4.3"):
        assert run(builder.build(), records, cuts, flush_every, semantics) == expected


def test_a_deleted_session_is_found_no_more() -> None:
    sessions = SessionWindows.of_inactivity_gap_and_grace(ms(5), ms(0))

    def table(builder: StreamsBuilder, topic: str) -> Any:
        return (
            builder.stream(topic).group_by_key().windowed_by(sessions).aggregate({"n": count()}).map_values("value.n")
        )

    builder = StreamsBuilder("app")
    table(builder, "l").outer_join(table(builder, "r"), BOTH).to_stream().to("out")
    records = [Fed("l", "a", "x", 1), Fed("r", "a", "x", 1), Fed("l", "a", "x", 3), Fed("r", "a", "x", 1)]
    for flush_every in (0, 1):
        assert run(builder.build(), records, [1, 2, 3], flush_every, "kip") == [
            (("a", 1, 1), "1|None", 1),
            (("a", 1, 1), "1|1", 1),
            (("a", 1, 1), "None|1", 1),
            (("a", 1, 3), "2|None", 3),
            (("a", 1, 1), "None|2", 1),
        ]


@pytest.mark.parametrize("flush_every", [0, 1])
def test_what_is_made_of_windows_may_have_a_store(flush_every: int) -> None:
    builder = StreamsBuilder("app")
    several = windowed(builder, "l", 8).filter(
        per_record(lambda value: value > 1, pa.bool_(), "value"), materialized=Materialized.as_("several")
    )
    told = per_record(lambda value, start: f"{value} from {start}", pa.string(), "value", "window_start")
    several.map_values(told, materialized=Materialized.as_("told")).to_stream().to("out")
    topology = builder.build()
    assert "(stores: [several])" in topology.describe()
    records = [Fed("l", "a", "x", 1), Fed("l", "a", "x", 2), Fed("l", "a", "x", 6), Fed("l", "a", "x", 3)]
    assert run(topology, records, [1, 2, 3], flush_every, "kip") == [
        (("a", 0, 5), "2 from 0", 2),
        (("a", 0, 5), "3 from 0", 3),
    ]


@pytest.mark.parametrize("flush_every", [0, 1])
@pytest.mark.parametrize("columnar", [False, True])
def test_a_table_of_final_results_is_looked_into_before_windows_close(flush_every: int, columnar: bool) -> None:
    """As in Kafka Streams: its store has what has come so far."""
    builder = StreamsBuilder("app")
    windows = TimeWindows.of_size_and_grace(ms(SIZE), ms(GRACE))
    grouped = builder.stream("r").group_by_key().windowed_by(windows).emit_strategy(EmitStrategy.on_window_close())
    final = grouped.count() if columnar else grouped.aggregate_with(int, lambda _, __, n: n + 1, pa.int64())
    windowed(builder, "l", 20).left_join(final, BOTH).to_stream().to("out")
    records = [
        Fed("r", "a", "x", 1), Fed("l", "a", "x", 1), Fed("r", "a", "x", 2), Fed("l", "a", "x", 3),
        Fed("r", "b", "x", 20), Fed("l", "a", "x", 4),
    ]  # fmt: skip
    assert run(builder.build(), records, [1, 2, 3, 4, 5], flush_every, "kip") == [
        (("a", 0, 5), "1|1", 1),
        (("a", 0, 5), "2|2", 3),
        (("a", 0, 5), "2|2", 3),
        (("a", 0, 5), "3|None", 4),
    ]


WINDOWED = pa.struct([("key", pa.string()), ("window_start", pa.int64()), ("window_end", pa.int64())])


@pytest.mark.parametrize("flush_every", [0, 1])
def test_a_foreign_key_may_be_a_windowed_one(flush_every: int) -> None:
    builder = StreamsBuilder("app")
    first_window = per_record(lambda value: {"key": value, "window_start": 0, "window_end": 5}, WINDOWED, "value")
    left = builder.table("l", Materialized.as_("l"))
    left.left_join(windowed(builder, "r", 8), BOTH, foreign_key=first_window).to_stream().to("out")
    records = [
        Fed("l", "1", "x", 0), Fed("r", "x", "v", 1), Fed("l", "2", "x", 2), Fed("r", "x", "v", 3),
        Fed("r", "y", "v", 30), Fed("l", "3", "x", 31),
    ]  # fmt: skip
    assert run(builder.build(), records, [1, 2, 3, 4, 5], flush_every, "kip") == [
        ("1", "x|None", 0),
        ("1", "x|1", 1),
        ("2", "x|1", 2),
        ("1", "x|2", 3),
        ("2", "x|2", 3),
        ("3", "x|None", 31),
    ]


def test_a_foreign_key_without_a_window_meets_no_windows() -> None:
    builder = StreamsBuilder("app")
    builder.table("l").join(windowed(builder, "r", 8), BOTH, foreign_key="value").to_stream().to("out")
    with pytest.raises(ConfigurationError, match='foreign keys are string.*let the mapper give {"key": ...'):
        run(builder.build(), [Fed("l", "1", "x", 0)], [], 0, "kip")


# --- versioned stores behind filters ---------------------------------------------------------------------------------

PASSES = per_record(lambda value: value == "y", pa.bool_(), "value")


@pytest.mark.parametrize("flush_every", [0, 1])
def test_a_versioned_store_behind_a_filter_has_deletions_of_what_was_there(flush_every: int) -> None:
    """So a late update is the latest if nothing was there before; old values are known, since the table has a store."""
    builder = StreamsBuilder("app")
    few = builder.table("l", Materialized.as_("l")).filter(PASSES, materialized=versioned("few"))
    few.to_stream().to("out")
    builder.stream("r").left_join(few, BOTH).to("joined")
    records = [
        Fed("l", "a", "x", 10), Fed("l", "a", "y", 5), Fed("r", "a", "v", 12), Fed("l", "a", "x", 20),
        Fed("l", "a", "x", 21), Fed("r", "a", "v", 15), Fed("r", "a", "v", 22),
    ]  # fmt: skip
    flow = Flow(builder.build(), TYPES)
    rows = flow.run(records, [1, 2, 3, 4, 5, 6], flush_every=flush_every)
    assert [(row.value, row.timestamp) for row in rows["out"]] == [("y", 5), (None, 20)]
    assert [row.value for row in rows["joined"]] == ["v|y", "v|y", "v|None"]


def test_a_join_that_asks_for_no_old_values_leaves_deletions_of_nothing_in() -> None:
    """As in Kafka Streams: the filter knows no old values, as the table had no store when it was made."""
    builder = StreamsBuilder("app")
    table = builder.table("l")
    table.filter(PASSES, materialized=versioned("few")).join(table, BOTH).to_stream().to("out")
    assert run(builder.build(), [Fed("l", "a", "x", 20)], [], 0, "kip") == [("a", None, 20)]


# --- suppressed tables -----------------------------------------------------------------------------------------------


@dataclass
class Suppression:
    """A table of a topic that is suppressed until a time limit."""

    limit_ms: int
    most: int | None
    table: dict[str, str] = field(default_factory=dict)
    waiting: dict[str, tuple[int, str | None]] = field(default_factory=dict)  # buffer time, what is known downstream
    stream_time: int = -1

    def put(self, key: str, value: str | None, timestamp: int) -> None:
        before = self.table.pop(key, None)
        if value is not None:
            self.table[key] = value
        self.stream_time = max(self.stream_time, timestamp)
        self.waiting.setdefault(key, (timestamp, before))
        for time, other in sorted((time, other) for other, (time, _) in self.waiting.items()):
            is_full = self.most is not None and len(self.waiting) > self.most
            if time <= self.stream_time - self.limit_ms or is_full:
                del self.waiting[other]

    def get(self, key: str) -> str | None:
        return self.waiting[key][1] if key in self.waiting else self.table.get(key)


def suppressed(builder: StreamsBuilder, limit_ms: int, most: int | None) -> KTable:
    buffer: Any = UNBOUNDED if most is None else BufferConfig.max_records(most).emit_early_when_full()
    return builder.table("r", Materialized.as_("r")).suppress(Suppressed.until_time_limit(ms(limit_ms), buffer))


@given(RECORDS, st.sampled_from([0, 5, 20]), st.sampled_from([None, 1]), CUTS, HOW)
def test_a_key_that_is_held_back_has_what_is_known_downstream(
    records: list[Fed], limit_ms: int, most: int | None, cuts: list[int], flush_every: int
) -> None:
    builder = StreamsBuilder("app")
    builder.stream("l").left_join(suppressed(builder, limit_ms, most), BOTH).to("out")
    table, expected = Suppression(limit_ms, most), []
    for record in records:
        if record.topic == "r":
            table.put(record.key, record.value, record.timestamp)
        elif record.value is not None:
            expected.append((record.key, f"{record.value}|{table.get(record.key)}", record.timestamp))
    for semantics in ("kip", "kafka-4.3"):
        assert run(builder.build(), records, cuts, flush_every, semantics) == expected


@pytest.mark.parametrize("flush_every", [0, 1])
def test_what_leaves_the_buffer_is_there_when_all_that_it_causes_has_happened(flush_every: int) -> None:
    """A table that is joined with itself: each side still sees what was known before."""
    builder = StreamsBuilder("app")
    calm = suppressed(builder, 5, None)
    calm.outer_join(calm, BOTH).to_stream().to("out")
    records = [Fed("r", "a", "x", 0), Fed("r", "b", "x", 5), Fed("r", "a", "y", 6), Fed("r", "b", "y", 20)]
    assert run(builder.build(), records, [1, 2, 3], flush_every, "kip") == [
        ("a", "x|None", 0),
        ("a", "None|x", 0),
        ("b", "y|None", 20),
        ("b", "None|y", 20),
        ("a", "y|x", 6),
        ("a", "x|y", 6),
    ]


@pytest.mark.parametrize("flush_every", [0, 1])
def test_final_results_are_found_as_long_as_their_window_is_kept(flush_every: int) -> None:
    """They are known downstream once the window has closed, and forgotten when it is out of retention."""
    builder = StreamsBuilder("app")
    final = windowed(builder, "r", 20).suppress(Suppressed.until_window_closes(UNBOUNDED))
    windowed(builder, "l", 8).left_join(final, BOTH).to_stream().to("out")
    records = [
        Fed("r", "a", "x", 1), Fed("l", "a", "x", 1), Fed("r", "b", "x", 8), Fed("l", "a", "x", 2),
        Fed("r", "b", "x", 20), Fed("l", "a", "x", 3),
    ]  # fmt: skip
    assert run(builder.build(), records, [1, 2, 3, 4, 5], flush_every, "kip") == [
        (("a", 0, 5), "1|None", 1),
        (("a", 0, 5), "1|1", 1),
        (("a", 0, 5), "2|1", 2),
        (("a", 0, 5), "3|None", 3),
    ]
