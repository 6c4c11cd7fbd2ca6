"""However the input is cut, in whatever memory: the same bytes, of all operators that there are.

``SURFACE_RECORDS``, ``SURFACE_SLICES`` and ``SURFACE_SEED`` make it a longer run, of other records
(``./dev campaign invariance``).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from statelib.commits.run.plan import NothingToDo
from statelib.stores import backend, rocksdb, rows_in_order
from tests.surface.beside import beside
from tests.surface.records import PARTITIONS, TYPES, surface_records
from tests.surface.topology import surface
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from statelib import Topology

pytestmark = pytest.mark.slow

RECORDS = int(os.environ.get("SURFACE_RECORDS", "30"))
SLICES = int(os.environ.get("SURFACE_SLICES", "4"))
SEED = int(os.environ.get("SURFACE_SEED", "1"))
INPUT = surface_records(SEED, RECORDS)
TIMES = sorted({time for rows in INPUT.values() for _, _, time in rows})

Records = dict[str, list[tuple[Any, Any, int]]]
Result = tuple[dict[str, list[Any]], dict[str, dict[str, list[tuple[bytes, bytes]]]]]


def replayed(
    directory: Path,
    cuts: Sequence[int],
    records: Records = INPUT,
    topology: Callable[[], Topology] = surface,
    **settings: Any,
) -> Result:
    """What is published in the end, by topic, and all state, by task and family."""
    pipeline = Pipeline(directory, topology(), topology.__name__, **settings)
    for topic, rows in records.items():
        pipeline.archive(topic, rows, TYPES, PARTITIONS)
    for cut in [*cuts, None]:
        pipeline.run(cut)
    assert isinstance(pipeline.run(), NothingToDo)
    sinks = {sink.topic for sub in pipeline.topology.sub_topologies for sink in sub.all_sinks if not sink.internal}
    return {topic: pipeline.output(topic) for topic in sorted(sinks)}, pipeline.state()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """One slice, one batch, all in memory."""
    return replayed(tmp_path_factory.mktemp("whole"), [])


@pytest.fixture(scope="module")
def whole_beside(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """The same, of what is beside the surface."""
    return replayed(tmp_path_factory.mktemp("beside"), [], topology=beside)


@pytest.mark.parametrize("name", ["whole", "whole_beside"])
def test_every_operator_says_something(request: pytest.FixtureRequest, name: str) -> None:
    published, state = request.getfixturevalue(name)
    assert [topic for topic, records in published.items() if not records] == []
    assert any(families for families in state.values())


@pytest.mark.parametrize(
    ("slices", "settings"),
    [
        pytest.param(1, {"batch_records": 1}, marks=pytest.mark.long),
        (1, {"batch_records": 3, "memory_budget_bytes": 1}),
        pytest.param(2, {"memory_budget_bytes": 1}, marks=pytest.mark.long),
        pytest.param(SLICES - 1, {"batch_records": 3}, marks=pytest.mark.long),
        (SLICES, {"batch_records": 1, "memory_budget_bytes": 1}),
    ],
    ids=lambda value: f"{value} slices" if isinstance(value, int) else str(value),
)
def test_the_same_bytes(tmp_path: Path, whole: Result, slices: int, settings: dict[str, Any]) -> None:
    cuts = [TIMES[number * len(TIMES) // slices] for number in range(1, slices)]
    assert_same(replayed(tmp_path, cuts, **settings), whole)


@pytest.mark.parametrize(
    ("slices", "settings"),
    [(1, {"batch_records": 3, "memory_budget_bytes": 1}), (SLICES, {"batch_records": 1, "memory_budget_bytes": 1})],
    ids=["1 slice", "several slices"],
)
def test_the_same_bytes_beside(tmp_path: Path, whole_beside: Result, slices: int, settings: dict[str, Any]) -> None:
    """Circles, processors by name, and all other ways to the operators."""
    cuts = [TIMES[number * len(TIMES) // slices] for number in range(1, slices)]
    assert_same(replayed(tmp_path, cuts, topology=beside, **settings), whole_beside)


@pytest.mark.long
def test_working_sets_that_are_written_in_pieces(
    tmp_path: Path, whole: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (backend, rocksdb):
        monkeypatch.setattr(module, "PORTION", 1)
    monkeypatch.setattr(rows_in_order, "PIECE_ROWS", 2)
    assert_same(replayed(tmp_path, [TIMES[len(TIMES) // 2]], memory_budget_bytes=1), whole)


def test_many_records_a_batch_in_all_memory(tmp_path: Path) -> None:
    many = surface_records(SEED, 2_000)
    whole = replayed(tmp_path / "whole", [], many)
    assert_same(replayed(tmp_path / "cut", [], many, batch_records=500, memory_budget_bytes=1 << 40), whole)


def assert_same(result: Result, whole: Result) -> None:
    published, state = result
    assert [topic for topic in published if published[topic] != whole[0][topic]] == []
    differing = [
        (task, family)
        for task, families in state.items()
        for family in families
        if families[family] != whole[1][task].get(family)
    ]
    assert differing == []
