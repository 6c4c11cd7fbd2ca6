"""Stores that are filled: they hold what they would hold if the job had always had them, and so is all that follows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.surface.records import PARTITIONS, TYPES, surface_records
from tests.surface.topology import surface
from tests.task.pipeline import Pipeline
from tests.task.test_fork import fork_of, records

if TYPE_CHECKING:
    from pathlib import Path

INPUT = surface_records(3, 24)
TIMES = sorted({time for rows in INPUT.values() for _, _, time in rows})
CUTS = [TIMES[number * len(TIMES) // 4] for number in range(1, 4)]


def stores_of(topology):
    return sorted({store.name for sub in topology.sub_topologies for store in sub.stores})


@pytest.mark.slow
def test_every_store_of_every_operator(tmp_path: Path) -> None:
    pipeline = Pipeline(tmp_path, surface(), "surface")
    for topic, rows in INPUT.items():
        pipeline.archive(topic, rows, TYPES, PARTITIONS)
    for cut in [*CUTS, None]:
        pipeline.run(cut)
    expected = records(pipeline), pipeline.state()
    for n in (1, 3):
        forked = fork_of(pipeline, tmp_path / f"f{n}", f"f{n}", n)
        stores = stores_of(forked.topology)
        planned = forked.plan(CUTS[2] if n == 1 else None, fill_stores=stores)
        assert sorted(planned.evolution.filled) == stores
        assert not planned.evolution.nodes
        forked.run(CUTS[2] if n == 1 else None, fill_stores=stores)
        forked.run()
        assert records(forked) == expected[0]
        state = forked.state()
        assert [(t, f) for t in state for f in state[t] if state[t][f] != expected[1][t].get(f)] == []
