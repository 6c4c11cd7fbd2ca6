"""``distinct()`` against the record-at-a-time model, in every cut of the input."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib import ConfigurationError, Materialized, StreamsBuilder, TopologyTestDriver
from statelib.operators.deduplication.distinct import Distinct
from statelib.operators.windows.definition import SessionWindows, TimeWindows
from tests.golden.scenarios.distinct import windows_opened
from tests.operators.task import Record, Task
from tests.reference.distinct import DistinctInSessions, DistinctInTime

if TYPE_CHECKING:
    from pathlib import Path

    from statelib.dsl import TimeWindowedKStream
    from statelib.operators.base import OperatorSpec

TUMBLING = st.builds(lambda size, grace: TimeWindows(size, size, grace), st.integers(1, 12), st.integers(0, 15))
SESSIONS = st.builds(SessionWindows, st.integers(0, 12), st.integers(0, 15))
STEPS = st.tuples(
    st.sampled_from(["a"] * 4 + ["b", "", None]), st.integers(0, 8), st.sampled_from([0, 0, 3, 20]), st.booleans()
)


def records_of(steps: list[tuple[str | None, int, int, bool]]) -> list[Record]:
    """Times move on by some milliseconds a record; some are late, and some pass the operator by."""
    now, records = 0, []
    for row, (key, moved, late, here) in enumerate(steps):
        now += moved
        records.append(Record(key, f"v{row}", max(0, now - late), row, 0 if here or row % 3 else None))
    return records


@given(windows=TUMBLING | SESSIONS, steps=st.lists(STEPS, max_size=60))
def test_the_models_answer_in_every_cut(
    windows: TimeWindows | SessionWindows, steps: list[tuple[str | None, int, int, bool]]
) -> None:
    records = records_of(steps)
    model = DistinctInTime(windows) if isinstance(windows, TimeWindows) else DistinctInSessions(windows)
    expected = {}
    for row, record in enumerate(records):
        window = model.opened(record.key if record.parent == 0 else None, record.timestamp)
        if window is not None:
            expected[row] = (*window, record.value, record.timestamp)
    for cut, flush_every in ((60, 0), (7, 1), (1, 0), (1, 1), (3, 2)):
        assert windows_opened(windows, records, cut, flush_every) == expected


@pytest.mark.parametrize("windows", [TimeWindows(10, 10, 0), SessionWindows(5, 0)])
def test_every_record_is_accounted_for(windows: TimeWindows | SessionWindows) -> None:
    rows = [("k", 1), ("k", 2), ("m", 3), ("k", 40), ("k", 2), (None, 3), ("k", 41)]
    task = Task(Distinct("store", windows), pa.string(), [pa.string()])
    batch = task.process([Record(key, "v", at, row) for row, (key, at) in enumerate(rows)])
    assert batch.sequence.tolist() == [0, 2, 3]
    assert task.metrics.accounts == {"forwarded": 3, "duplicate": 2, "late": 1, "null-key": 1}
    assert (task.metrics.records_in, task.metrics.records_out, task.metrics.unaccounted) == (7, 3, 0)


def test_headers_are_those_of_the_record() -> None:
    task = Task(Distinct("store", TimeWindows(10, 10, 0)), pa.string(), [pa.string()])
    records = [Record("k", "v", at, row) for row, at in enumerate([1, 2, 11])]
    headers = pa.array([[{"key": "n", "value": bytes([row])}] for row in range(3)])
    batch = replace(task.input_of(records, 0), headers=headers)
    result = task.operator.process([batch], task.uptake_of(records))
    assert result.headers is not None
    assert result.headers.equals(headers.take(pa.array([0, 2])))
    assert np.array_equal(result.timestamp, [1, 11])


def test_in_a_topology(tmp_path: Path) -> None:
    builder = StreamsBuilder("app")
    visits = builder.stream("visits").group_by_key()
    sessions = SessionWindows.of_inactivity_gap_with_no_grace(timedelta(milliseconds=5))
    visits.windowed_by(sessions).distinct(Materialized.as_("first")).to("out")
    driver = TopologyTestDriver(builder.build(), tmp_path)
    topic = driver.create_input_topic("visits", value_type=pa.string())
    topic.pipe_record_list([("a", "one", 1), ("a", "two", 3), ("a", "three", 20), ("b", "four", 21)])
    out = driver.create_output_topic("out").read_records_to_list()
    assert [(record.value, record.timestamp_ms) for record in out] == [("one", 1), ("three", 20), ("four", 21)]


def test_windows_that_overlap_are_refused() -> None:
    grouped = StreamsBuilder("app").stream("visits").group_by_key()
    second = timedelta(seconds=1)
    hopping: TimeWindowedKStream = grouped.windowed_by(TimeWindows.of_size_with_no_grace(3 * second).advance_by(second))
    with pytest.raises(ConfigurationError, match="tumbling windows, days or sessions"):
        hopping.distinct()


@pytest.mark.parametrize("windows", [TimeWindows(10, 10, 5), SessionWindows(10, 5)])
def test_the_description_is_its_own(windows: TimeWindows | SessionWindows) -> None:
    spec: OperatorSpec = Distinct("store", windows)
    assert spec.describe()["operator"] == "distinct"
    with pytest.raises(ConfigurationError, match="retention"):
        Distinct("store", windows, retention_ms=3).check("node")
