"""Final results of windows that close (KIP-825), of all kinds: like plain models, however the input is cut."""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from statelib import (
    ConfigurationError,
    EmitStrategy,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    TimeWindows,
    UnlimitedWindows,
    collect_list,
    count,
)
from tests.operators.flow import Fed, Flow
from tests.reference.session_aggregate import all_values
from tests.reference.sliding_aggregate import SlidingWindowed
from tests.reference.window_aggregate import TimeWindowed

TYPES = {"in": (pa.string(), pa.int64())}
KEYS = st.sampled_from([None, "a", "a", "ab", "b"])
VALUES = st.none() | st.integers(0, 9)
AT_RANDOM = st.lists(st.builds(Fed, st.just("in"), KEYS, VALUES, st.integers(0, 90)), max_size=30)


def moving(steps: list[tuple[Any, Any, int, int]]) -> list[Fed]:
    """Time moves on by some milliseconds a record; some are late."""
    times = itertools.accumulate(moved for _, _, moved, _ in steps)
    return [
        Fed("in", key, value, max(0, time - late)) for (key, value, _, late), time in zip(steps, times, strict=True)
    ]


STEPS = st.tuples(KEYS, VALUES, st.sampled_from([0, 1, 6, 6, 16]), st.sampled_from([0, 0, 4, 14]))
MOVING = st.lists(STEPS, min_size=8, max_size=30).map(moving)
RECORDS = AT_RANDOM | MOVING
CUTS = st.lists(st.integers(1, 29), max_size=4)
FLUSHED = st.integers(0, 3)
GRACES = st.sampled_from([0, 1, 10])
ON_CLOSE = EmitStrategy.on_window_close()

Final = tuple[int, Any, int, int, Any, int]
"""The number of the record that closed it, key, start, end, values, timestamp."""


def ms(of: int) -> timedelta:
    return timedelta(milliseconds=of)


def run(windows: Any, fed: list[Fed], cuts: list[int], flushed: int, *, in_python: bool) -> list[Final]:
    builder = StreamsBuilder("job")
    windowed = builder.stream("in").group_by_key().windowed_by(windows).emit_strategy(ON_CLOSE)
    if in_python:
        functions = [lambda _, value, values: [*values, value]]
        if isinstance(windows, SessionWindows):
            functions.append(lambda _, one, other: one + other)
        table = windowed.aggregate_with(list, *functions, pa.list_(pa.int64()))
    else:
        table = windowed.aggregate({"values": collect_list("value"), "n": count()})
    table.to_stream().to("out")
    rows = Flow(builder.build(), TYPES).run(fed, cuts, flush_every=flushed).get("out", [])
    assert all(in_python or row.value["n"] >= len(row.value["values"] or ()) for row in rows)
    return [
        (row.cause, row.key["key"], *bounds(row.key), row.value if in_python else row.value["values"], row.timestamp)
        for row in rows
    ]


def bounds(key: dict[str, Any]) -> tuple[int, int]:
    return tuple(round(key[f"window_{bound}"].timestamp() * 1000) for bound in ("start", "end"))  # type: ignore[return-value]


def shown(values: list[Any], *, in_python: bool) -> list[Any] | None:
    """What a list of SQL has of them: no nulls, and nothing at all of nulls alone."""
    return values if in_python else [value for value in values if value is not None] or None


@given(RECORDS, CUTS, FLUSHED, st.booleans(), GRACES, st.sampled_from([20, 7, 1]))
def test_time_windows(fed: list[Fed], cuts: list[int], flushed: int, in_python: bool, grace: int, advance: int) -> None:
    model, expected, given_ = TimeWindowed(20, advance, grace), [], set()
    for cause, each in enumerate(fed):
        model.process(each.key, each.value, each.timestamp)
        closing = [
            (start, key.encode(), taken)
            for (key, start), taken in model.windows.items()
            if start + 20 <= model.stream_time - grace and (key, start) not in given_
        ]
        for start, key, taken in sorted(closing):
            given_.add((key.decode(), start))
            values = shown([value for value, _ in taken], in_python=in_python)
            expected.append((cause, key.decode(), start, start + 20, values, max(time for _, time in taken)))
    windows = TimeWindows.of_size_and_grace(ms(20), ms(grace)).advance_by(ms(advance))
    assert run(windows, fed, cuts, flushed, in_python=in_python) == expected


@given(RECORDS, CUTS, FLUSHED, st.booleans(), GRACES)
def test_sliding_windows(fed: list[Fed], cuts: list[int], flushed: int, in_python: bool, grace: int) -> None:
    model, expected, given_ = SlidingWindowed(10, grace, 1_000), [], set()
    for cause, each in enumerate(fed):
        model.process(each.key, each.value, each.timestamp)
        closing = [
            (start, key.encode(), taken)
            for (key, start), taken in model.windows.items()
            if start + 10 < model.stream_time - grace and (key, start) not in given_
        ]
        for start, key, taken in sorted(closing):
            given_.add((key.decode(), start))
            values = [value for value, _ in taken]
            expected.append((cause, key.decode(), start, start + 10, values, max(time for _, time in taken)))
    windows = SlidingWindows.of_time_difference_and_grace(ms(10), ms(grace))
    assert run(windows, fed, cuts, flushed, in_python=in_python) == expected


@example([Fed("in", key, 1, time) for key, time in (("a", 10), ("b", 16), ("a", 12))], [], 0, False, 0)  # joined later
@given(MOVING, CUTS, FLUSHED, st.booleans(), GRACES)
def test_sessions(fed: list[Fed], cuts: list[int], flushed: int, in_python: bool, grace: int) -> None:
    model, expected, given_ = all_values(4, grace), [], set()
    for cause, each in enumerate(fed):
        model.process(each.key, each.value, each.timestamp)
        closing = [
            (end, start, key.encode(), values)
            for key, sessions in model.sessions.items()
            for (end, start), values in sessions.items()
            if end < model.stream_time - 4 - grace and (key, start, end) not in given_
        ]
        for end, start, key, values in sorted(closing):
            given_.add((key.decode(), start, end))
            expected.append((cause, key.decode(), start, end, shown(values, in_python=in_python), end))
    windows = SessionWindows.of_inactivity_gap_and_grace(ms(4), ms(grace))
    assert run(windows, fed, cuts, flushed, in_python=in_python) == expected


def test_kip_825s_example() -> None:
    """ "count().emitStrategy(onWindowClose())": nothing until the window and its grace period are over, then one."""
    builder = StreamsBuilder("job")
    windows = TimeWindows.of_size_and_grace(ms(10), ms(5))
    builder.stream("in").group_by_key().windowed_by(windows).emit_strategy(ON_CLOSE).count().to_stream().to("out")
    flow = Flow(builder.build(), TYPES)
    told = [
        [(row.key["key"], row.value, row.timestamp) for row in flow.process([Fed("in", "k", 1, time)]).get("out", [])]
        for time in (0, 1, 12, 9, 14, 15, 3, 24, 25)
    ]
    assert told == [[], [], [], [], [], [("k", 3, 9)], [], [], [("k", 3, 15)]]
    assert flow.dropped() == 1  # the record of time 3 came when its window was closed
    assert flow.graphs[0].metrics["KSTREAM-AGGREGATE-0000000002"].counters["emit-final-records"] == 2


def test_nothing_is_lost_if_time_leaps_but_by_the_shipped_library() -> None:
    lost = {}
    for semantics in ("kip", "kafka-4.3"):
        builder = StreamsBuilder("job")
        windows = TimeWindows.of_size_with_no_grace(ms(10))
        builder.stream("in").group_by_key().windowed_by(windows).emit_strategy(ON_CLOSE).count().to_stream().to("out")
        flow = Flow(builder.build(), TYPES, semantics)  # type: ignore[arg-type]
        rows = flow.run([Fed("in", "k", 1, time) for time in (0, 5, 10, 40, 50)], [3])["out"]
        lost[semantics] = [bounds(row.key)[0] for row in rows]
        assert flow.metrics.counters.get("lost-final-result", 0) == 3 - len(rows)
    assert lost == {"kip": [0, 10, 40], "kafka-4.3": [0, 40]}


def test_a_window_that_a_function_removes_has_no_result() -> None:
    builder = StreamsBuilder("job")
    windowed = builder.stream("in").group_by_key().windowed_by(TimeWindows.of_size_with_no_grace(ms(10)))
    windowed.emit_strategy(ON_CLOSE).reduce(lambda one, other: None if other == 9 else one + other).to_stream().to(
        "out"
    )
    rows = Flow(builder.build(), TYPES).run(
        [Fed("in", k, v, t) for k, v, t in (("a", 1, 0), ("b", 1, 1), ("a", 9, 2), ("b", 2, 30))]
    )
    assert [(row.key["key"], row.value) for row in rows["out"]] == [("b", 1)]


def test_final_results_replace_nothing() -> None:
    builder = StreamsBuilder("job")
    windowed = builder.stream("in").group_by_key().windowed_by(TimeWindows.of_size_with_no_grace(ms(10)))
    counts = windowed.emit_strategy(ON_CLOSE).count()
    counts.group_by("key", "value").reduce(lambda one, new: one + new, lambda _, __: -1).to_stream().to("out")
    rows = Flow(builder.build(), TYPES).run([Fed("in", "a", 1, time) for time in (0, 1, 10, 20)], [1, 2], flush_every=1)
    assert [row.value for row in rows["out"]] == [2, 3]


def test_what_has_no_final_results_is_refused() -> None:
    grouped = StreamsBuilder("job").stream("in").group_by_key()
    with pytest.raises(ConfigurationError, match="never closes"):
        grouped.windowed_by(UnlimitedWindows.of()).emit_strategy(ON_CLOSE)
    windowed = grouped.windowed_by(TimeWindows.of_size_with_no_grace(ms(10))).emit_strategy(ON_CLOSE)
    with pytest.raises(ConfigurationError, match="cannot wait for its close"):
        windowed.distinct()
