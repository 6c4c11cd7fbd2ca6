"""Joins of streams through archives, slices, checkpoints and commits, and sealed."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from statelib import JoinWindows, StreamsBuilder, Topology
from statelib.documents.manifests import Staged
from tests.reference.stream_stream_join import Side, StreamStreamJoin
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from statelib.settings.semantics import Semantics

pytestmark = pytest.mark.thorough

TYPES = (pa.string(), pa.int64())
BEFORE, AFTER, GRACE = 20_000, 45_000, 30_000
Rows = list[tuple[Any, Any, int]]


def records(seed: int, count: int) -> Rows:
    """Out of order; now and then later than the join's stores remember."""
    rng = np.random.default_rng(seed)
    late = rng.choice([0, 0, 5_000, 40_000, 400_000], count, p=[0.4, 0.2, 0.2, 0.15, 0.05])
    time = np.maximum(0, np.arange(count) * 5_000 - late)
    return [
        (None if n % 29 == 7 else f"k{rng.integers(40)}", None if n % 31 == 5 else n, int(time[n]))
        for n in range(count)
    ]


INPUT: dict[Side, Rows] = {"left": records(1, 200), "right": records(2, 200)}


def topology(kind: str = "outer") -> Topology:
    builder = StreamsBuilder("job")
    left, right = builder.stream("left"), builder.stream("right")
    join = {"inner": left.join, "left": left.left_join, "outer": left.outer_join}[kind]
    ms = [timedelta(milliseconds=value) for value in (BEFORE, AFTER, GRACE)]
    windows = JoinWindows.of_time_difference_with_no_grace(ms[0]).after(ms[1]).grace(ms[2])
    join(right, {"l": "left", "r": "right"}, windows).to("out")
    return builder.build()


def replayed(directory: Path, cuts: list[int | None], kind: str = "outer", **settings: Any) -> Pipeline:
    pipeline = Pipeline(directory, topology(kind), **settings)
    for topic, rows in INPUT.items():
        pipeline.archive(topic, rows, TYPES)
    for cut in cuts:
        pipeline.run(cut)
    return pipeline


def results(pipeline: Pipeline) -> list[tuple[Any, ...]]:
    return [(key, value["l"], value["r"], time) for _, _, key, value, time in pipeline.output("out")]


def merged() -> list[tuple[Side, Any]]:
    """The order in which the task takes records up: by the largest timestamp so far, left before right."""
    ordered = []
    for side, rows in INPUT.items():
        running = np.maximum.accumulate([time for _, _, time in rows]).tolist()
        ordered += [(time, side, n, row) for n, (time, row) in enumerate(zip(running, rows, strict=True))]
    return [(side, row) for _, side, _, row in sorted(ordered)]


@pytest.mark.thorough
@pytest.mark.parametrize("semantics", ["kip", "kafka-4.3"])
def test_slices_batches_and_memory_do_not_matter(tmp_path: Path, semantics: Semantics) -> None:
    model = StreamStreamJoin("outer", BEFORE, AFTER, GRACE, as_shipped=semantics == "kafka-4.3")
    expected = [tuple(result) for side, row in merged() for result in model.process(side, *row)]
    assert model.expired > 0
    assert sum(None in result[1:3] for result in expected) > 20
    whole = replayed(tmp_path / "whole", [None], semantics=semantics)
    assert results(whole) == expected
    for name, cuts, settings in (
        ("slices", [*range(100_000, 1_000_000, 130_000), None], {}),
        ("memory", [500_000, None], {"batch_records": 7, "memory_budget_bytes": 1}),
    ):
        cut = replayed(tmp_path / name, cuts, semantics=semantics, **settings)  # type: ignore[arg-type]
        assert results(cut) == expected
        assert cut.state() == whole.state()


def test_a_seal_gives_what_is_held_however_the_input_was_cut(tmp_path: Path) -> None:
    model = StreamStreamJoin("outer", BEFORE, AFTER, GRACE)
    expected = [tuple(result) for side, row in merged() for result in model.process(side, *row)]
    expected += [tuple(result) for result in model.seal()]
    for number, (cuts, settings) in enumerate([
        ([], {}),
        ([300_000, 700_000], {"batch_records": 7, "memory_budget_bytes": 1}),
        ([600_000, None], {}),  # nothing new is left: the last run does nothing but seal
    ]):  # fmt: skip
        pipeline = replayed(tmp_path / str(number), cuts, **settings)  # type: ignore[arg-type]
        sealed = pipeline.run(end_of_input="seal")
        assert isinstance(sealed, Staged)
        assert results(pipeline) == expected
        counters = [metrics.counters for task in sealed.tasks for metrics in task.metrics.values()]
        assert sum(counter.get("sealed-results", 0) for counter in counters) == len(model.seal()) > 3


def test_what_gives_nothing_since_it_is_late_goes_to_the_late_topic(tmp_path: Path) -> None:
    whole = replayed(tmp_path / "whole", [None], "inner", on_late_record="topic")
    late = whole.output("job-late")
    assert len(late) > 2
    assert {row[3]["reason"] for row in late} == {"older than the join's retention"}
    assert {row[3]["topic"] for row in late} == {"left", "right"}
    cut = replayed(tmp_path / "cut", [300_000, 500_000, None], "inner", on_late_record="topic", batch_records=3)
    assert cut.output("job-late") == late
