"""The end of the input, sealed: what waits is let go, as by a record from the far future, and the job is at its end."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pytest

from statelib import (
    BufferConfig,
    ConfigurationError,
    EmitStrategy,
    Materialized,
    Named,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    Topology,
    sum_,
)
from statelib.commits import CommitLog, NothingToDo
from statelib.documents.manifests import Staged
from statelib.task.seal import waves
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.thorough

MINUTE = timedelta(minutes=1)
TYPES = (pa.string(), pa.struct([("x", pa.int64())]))
FAR = 10_000_000_000_000
FINAL = Suppressed.until_window_closes(BufferConfig.unbounded())
Rows = list[tuple[Any, Any, int | None]]


def records(seed: int, count: int) -> Rows:
    rng = np.random.default_rng(seed)
    time = np.maximum(0, np.arange(count) * 5_000 + rng.integers(-100_000, 1, count))
    return [(f"k{rng.integers(9)}", {"x": int(rng.integers(100))}, int(time[row])) for row in range(count)]


def final_counts(kind: Literal["tumbling", "sliding", "sessions", "time limit"], *, on_close: bool = False) -> Topology:
    """``on_close``: the aggregation gives the final results by itself."""
    builder = StreamsBuilder("job")
    stream = builder.stream("events").group_by_key()
    windowed: Any
    if kind == "sessions":
        windowed = stream.windowed_by(SessionWindows.of_inactivity_gap_and_grace(MINUTE, 30 * MINUTE))
    elif kind == "sliding":
        windowed = stream.windowed_by(SlidingWindows.of_time_difference_and_grace(MINUTE, 30 * MINUTE))
    else:
        windowed = stream.windowed_by(TimeWindows.of_size_and_grace(MINUTE, 30 * MINUTE))
    if on_close:
        windowed.emit_strategy(EmitStrategy.on_window_close()).count(Materialized.as_("counts")).to_stream().to("out")
        return builder.build()
    counts = windowed.count(Materialized.as_("counts"))
    wait = Suppressed.until_time_limit(20 * MINUTE, BufferConfig.unbounded())
    counts.suppress(wait if kind == "time limit" else FINAL).to_stream().to("out")
    return builder.build()


def two_levels() -> Topology:
    """Two suppressed branches meet, and their results are aggregated again in two further sub-topologies."""
    builder = StreamsBuilder("job")
    stream = builder.stream("events").group_by_key()
    early = TimeWindows.of_size_and_grace(MINUTE, 10 * MINUTE)
    late = TimeWindows.of_size_and_grace(MINUTE, 20 * MINUTE)
    for name, windows in (("early", early), ("late", late)):
        sums = stream.windowed_by(windows).aggregate({"x": sum_("x")}, Materialized.as_(name))
        by_sum = sums.suppress(FINAL.with_name(f"final-{name}")).to_stream().select_key("key")
        by_minute = by_sum.group_by("value.x").windowed_by(TimeWindows.of_size_and_grace(MINUTE, 5 * MINUTE))
        again = by_minute.aggregate({"x": sum_("x")}, Materialized.as_(f"{name}-2"), Named.as_(f"{name}-again"))
        again.suppress(FINAL.with_name(f"final-{name}-2")).to_stream().to(name)
    return builder.build()


def replayed(
    directory: Path, topology: Topology, cuts: list[int | None], rows: Rows, *, partitions: int = 2, **settings: Any
) -> Pipeline:
    pipeline = Pipeline(directory, topology, **settings)
    pipeline.archive("events", rows, TYPES, partitions=partitions)
    for cut in cuts:
        pipeline.run(cut)
    return pipeline


def held(staged: Staged) -> int:
    return sum(metrics.held_after for task in staged.tasks for metrics in task.metrics.values())


def counted(staged: Staged, name: str) -> int:
    return sum(metrics.counters.get(name, 0) for task in staged.tasks for metrics in task.metrics.values())


def gauge(staged: Staged, name: str) -> int:
    return sum(metrics.gauges.get(name, 0) for task in staged.tasks for metrics in task.metrics.values())


@pytest.mark.parametrize(
    ("kind", "on_close"),
    [
        *((kind, False) for kind in ("tumbling", "sliding", "sessions", "time limit")),
        *((kind, True) for kind in ("tumbling", "sliding", "sessions")),
    ],
)
def test_it_lets_go_what_a_record_from_the_far_future_would(tmp_path: Path, kind: Any, on_close: bool) -> None:
    rows, topology = records(1, 150), final_counts(kind, on_close=on_close)
    future = replayed(tmp_path / "future", topology, [None], [*rows, ("k0", {"x": 0}, FAR)], partitions=1)
    pipeline = replayed(tmp_path / "sealed", topology, [], rows, partitions=1)
    staged = pipeline.run(end_of_input="seal")
    assert isinstance(staged, Staged)
    assert pipeline.output("out") == future.output("out")
    assert counted(staged, "sealed-results") > 10
    assert held(staged) == 0


@pytest.mark.parametrize("kind", ["tumbling", "sliding", "sessions"])
def test_open_windows_are_counted_and_so_are_those_that_are_sealed(tmp_path: Path, kind: Any) -> None:
    pipeline = replayed(tmp_path, final_counts(kind), [], records(1, 500), partitions=1)
    staged = pipeline.run(2_200_000)
    assert isinstance(staged, Staged)
    merged = kind == "sessions"  # those that became one wait as tombstones
    assert held(staged) - gauge(staged, "open-windows") in ([0] if not merged else range(1, 1_000))
    assert len(pipeline.output("out")) > 10
    sealed = pipeline.run(end_of_input="seal")
    assert isinstance(sealed, Staged)
    assert counted(sealed, "sealed-results") == counted(sealed, "sealed-windows") > 50
    assert gauge(sealed, "open-windows") == 0


@pytest.mark.thorough
@pytest.mark.parametrize("topology", [final_counts("tumbling"), final_counts("sessions", on_close=True), two_levels()])
def test_it_does_not_matter_how_the_input_was_cut(tmp_path: Path, topology: Topology) -> None:
    rows, outputs = records(2, 300), []
    for number, (cuts, settings) in enumerate([
        ([], {}),
        ([], {"batch_records": 5}),
        ([200_000, 900_000], {"batch_records": 7, "memory_budget_bytes": 1}),
        ([700_000, None], {}),  # nothing new is left: the last run does nothing but seal
    ]):  # fmt: skip
        pipeline = replayed(tmp_path / str(number), topology, cuts, rows, **settings)
        assert isinstance(pipeline.run(end_of_input="seal"), Staged)
        outputs.append([pipeline.output(topic) for topic in topology.sink_topics])
    assert all(output == outputs[0] for output in outputs)


def test_nothing_is_lost_between_sub_topologies(tmp_path: Path) -> None:
    rows = records(3, 300)
    pipeline = replayed(tmp_path, two_levels(), [], rows, partitions=3)
    staged = pipeline.run(end_of_input="seal")
    assert isinstance(staged, Staged)
    assert held(staged) == 0
    total = sum(row[1]["x"] for row in rows)
    assert [sum(row[3]["x"] for row in pipeline.output(topic)) for topic in ("early", "late")] == [total, total]


def test_it_goes_in_order_of_the_time_at_which_each_would_have_left(tmp_path: Path) -> None:
    builder = StreamsBuilder("job")
    stream = builder.stream("events").group_by_key()
    branches = [
        stream.windowed_by(TimeWindows.of_size_and_grace(MINUTE, grace * MINUTE))
        .count(Materialized.as_(f"counts-{grace}"))
        .suppress(FINAL)
        .to_stream()
        for grace in (30, 32)
    ]
    merged = branches[0].map_values({"grace": "value"}, Named.as_("a"))
    merged.to("a")
    branches[1].to("b")
    pipeline = replayed(tmp_path, builder.build(), [], records(4, 100), partitions=1)
    pipeline.run(end_of_input="seal")
    for topic in ("a", "b"):
        places = [(row[2]["window_start"], row[2]["key"]) for row in pipeline.output(topic)]
        assert places == sorted(places)


def test_a_sealed_job_is_at_its_end(tmp_path: Path) -> None:
    rows = records(5, 60)
    pipeline = replayed(tmp_path, final_counts("tumbling"), [100_000], rows)
    assert isinstance(pipeline.run(200_000, "seal"), Staged)
    head = CommitLog(pipeline.warehouse, "job").head()
    assert head is not None
    assert head.end_of_input == "seal"
    with pytest.raises(ConfigurationError, match=r"sealed by commit 2.*not replayed.*a new name"):
        pipeline.run()
    with pytest.raises(ConfigurationError, match="sealed by commit 2"):
        pipeline.run(None, "seal")
    again = pipeline.run(200_000, "seal")
    assert isinstance(again, NothingToDo)
    assert again.reason == "sealed"
    assert "sealed by commit 2" in str(again)
    passed = pipeline.run(100_000)
    assert isinstance(passed, NothingToDo)
    assert passed.reason == "replayed-further"


def test_a_job_without_input_is_not_sealed(tmp_path: Path) -> None:
    nothing = replayed(tmp_path, final_counts("tumbling"), [], []).run(end_of_input="seal")
    assert isinstance(nothing, NothingToDo)
    assert nothing.reason == "no-new-records"


def test_nodes_are_sealed_after_those_above_them() -> None:
    builder = StreamsBuilder("job")
    counts = builder.stream("events").group_by_key().windowed_by(TimeWindows.of_size_with_no_grace(MINUTE)).count()
    first = counts.suppress(FINAL.with_name("first"))
    first.suppress(FINAL.with_name("second")).to_stream().to("out")
    counts.suppress(FINAL.with_name("beside")).to_stream().to("beside")
    (sub,) = builder.build().sub_topologies

    class Holding:
        def __getattr__(self, name: str) -> object:
            return lambda: None

    operators: dict[str, Any] = {
        node.name: Holding() if node.name in {"first", "second", "beside"} else object() for node in sub.processors
    }
    assert waves(sub.nodes, operators) == [["first", "beside"], ["second"]]
