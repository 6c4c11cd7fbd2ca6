"""The same records some 53,000 years later: every operator gives the same results, as much later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from statelib.commits.archives import open_archive
from tests.surface.records import PARTITIONS, TYPES
from tests.surface.topology import surface
from tests.task.pipeline import Pipeline
from tests.task.test_invariance import INPUT

if TYPE_CHECKING:
    from pathlib import Path

CYCLE_MS = 146_097 * 86_400_000
"""400 years, after which the calendar and with it the days of a time zone repeat themselves; whole weeks."""

LATER_MS = 1_700_000_000_000_000 // CYCLE_MS * CYCLE_MS

TELL_THE_TIME = {"processed", "processed-values", "relayed-once", "relayed-twice", "relayed-anywhere"}
"""Their values are made of times."""


def published(directory: Path, later_ms: int) -> dict[str, list[tuple[Any, ...]]]:
    """What is published of the surface's records, moved by some time, with their times moved back."""
    pipeline = Pipeline(directory, surface(), "surface")
    for topic, rows in INPUT.items():
        pipeline.archive(topic, [(key, value, time + later_ms) for key, value, time in rows], TYPES, PARTITIONS)
    pipeline.run()
    sinks = {sink.topic for sub in pipeline.topology.sub_topologies for sink in sub.all_sinks if not sink.internal}
    return {topic: _moved_back(pipeline, topic, later_ms) for topic in sorted(sinks - TELL_THE_TIME)}


def _moved_back(pipeline: Pipeline, topic: str, later_ms: int) -> list[tuple[Any, ...]]:
    archive = open_archive(pipeline.warehouse, topic)
    rows = []
    for partition in range(archive.partitions):
        table = archive.reader(partition).read_all()
        columns = [[_plain(item, later_ms) for item in table[name]] for name in ("timestamp", "key", "value")]
        rows += list(zip(*columns, strict=True))
    return rows


def _plain(item: pa.Scalar, later_ms: int) -> Any:
    if not item.is_valid:
        return None
    if pa.types.is_timestamp(item.type):
        return item.cast(pa.timestamp("ms", item.type.tz)).cast(pa.int64()).as_py() - later_ms
    if pa.types.is_struct(item.type):
        return {name: _plain(item[name], later_ms) for name in item.type.names}
    return item.as_py()


@pytest.mark.thorough
def test_all_of_the_surface(tmp_path: Path) -> None:
    now, later = published(tmp_path / "now", CYCLE_MS), published(tmp_path / "later", LATER_MS)
    for rows, moved_ms in ((now, CYCLE_MS), (later, LATER_MS)):
        for row in rows["unlimited"]:  # that window begins in 1970 and ends with the year 9999, whenever it is
            row[1]["window_start"] += moved_ms
            row[1]["window_end"] += moved_ms
    assert [topic for topic in now if now[topic] != later[topic]] == []
    assert sum(map(len, now.values())) > len(now)
