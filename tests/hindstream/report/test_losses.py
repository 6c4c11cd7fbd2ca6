"""A record that several nodes have dropped is one record."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hindstream.report.documents import load_runs
from hindstream.report.losses import losses
from statelib import StreamsBuilder, TimeWindows
from statelib.metrics.node_metrics import NodeMetrics
from tests.hindstream.report.documents import TOPOLOGY
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from statelib import Topology

MINUTE = timedelta(minutes=1)


def lost(folder: Path, topology: Topology) -> dict[str, int]:
    """Of a keyless record, one that comes late for windows of a minute, and others."""
    pipeline = Pipeline(folder, topology)
    rows = [("k", 1, 0), (None, 2, 1), ("k", 3, 3_600_000), ("k", 4, 2), ("j", None, 3_600_001)]
    pipeline.archive("in", rows, (pa.string(), pa.int64()))
    pipeline.run()
    (run,) = load_runs(pipeline.warehouse, pipeline.name)
    return {kind.name: count for kind, count in losses(topology, run.nodes).items()}


def test_three_nodes_that_were_given_the_same_records(tmp_path: Path) -> None:
    builder = StreamsBuilder("job")
    stream = builder.stream("in")
    for number in range(3):
        windows = TimeWindows.of_size_with_no_grace(MINUTE * (number + 1))
        stream.group_by_key().windowed_by(windows).count().to_stream().to(f"out-{number}")
    found = lost(tmp_path, builder.build())
    assert found["null-key"] == 1
    assert found["late"] == 1


def test_branches_that_share_the_records(tmp_path: Path) -> None:
    builder = StreamsBuilder("job")
    branches = builder.stream("in").split().branch(pc.field("value") == 4).default_branch()
    for number, branch in enumerate(branches.values()):
        windows = TimeWindows.of_size_with_no_grace(MINUTE)
        branch.group_by_key().windowed_by(windows).count().to_stream().to(f"out-{number}")
    found = lost(tmp_path, builder.build())
    assert found["null-key"] == 1
    assert "late" not in found


def test_two_topics(tmp_path: Path) -> None:
    builder = StreamsBuilder("job")
    builder.stream("in").group_by_key().count().to_stream().to("out")
    builder.stream("other").group_by_key().count().to_stream().to("out-2")
    Pipeline(tmp_path, builder.build()).archive("other", [(None, 1, 1)], (pa.string(), pa.int64()))
    assert lost(tmp_path, builder.build())["null-key"] == 2


@pytest.mark.parametrize("gone", ["a node that is no more"])
def test_ledgers_of_nodes_that_the_topology_no_longer_has_count(gone: str) -> None:
    nodes = {gone: NodeMetrics(3, 0, accounts={"late": 2, "null-key": 1})}
    assert {kind.name: count for kind, count in losses(TOPOLOGY, nodes).items()} == {"late": 2, "null-key": 1}
    assert losses(TOPOLOGY, {}) == {}
