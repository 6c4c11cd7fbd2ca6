"""Whatever walks over a topology does so where a repartition topic is read before it is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from hindstream.cli.look.describe import print_topology
from hindstream.cli.look.estimate import print_estimate
from hindstream.cli.look.inspect import print_rows, print_stores
from hindstream.estimate.estimate import Asked
from hindstream.report.documents import load_runs
from hindstream.report.losses import losses
from hindstream.report.topology import topology_picture
from hindstream.report.write import write_job_report
from statelib import Job, StreamsBuilder, per_record
from statelib.commits.archives import open_archive
from statelib.settings.settings import load_settings
from statelib.topology.column_lineage import column_lineage
from tests.surface.circles import CIRCLES, circle, read_first
from tests.surface.records import TYPES, surface_records
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from pathlib import Path

EVENTS = surface_records(7, 100)["events"]


@pytest.mark.parametrize("of", [*CIRCLES, read_first])
def test_it_is_drawn_described_followed_and_estimated(tmp_path: Path, capsys: Any, of: Any) -> None:
    topology = circle(of)
    pipeline, job = Pipeline(tmp_path, topology), Job("job", topology)
    pipeline.archive("events", EVENTS, TYPES, 2)
    pipeline.run(EVENTS[len(EVENTS) // 2][2])
    pipeline.run()
    page = pipeline.warehouse.get(write_job_report(pipeline.warehouse, job)).decode()
    assert all(node.topic in page for sub in topology.sub_topologies for node in (*sub.all_sources, *sub.all_sinks))
    picture = str(topology_picture(topology))
    assert picture.count('class="edge"') == sum(len(node.parents) for node in topology.nodes)
    print_topology(job, "json")
    print_topology(job, "table")
    given = {"warehouse": str(tmp_path / "warehouse"), "state_dir": tmp_path / "own", "engine": "local"}
    settings = load_settings(given, environ={})
    print_stores("job", None, settings)
    stores = [store.name for sub in topology.sub_topologies for store in sub.stores]
    for store in stores:
        print_rows("job", store, None, None, None, settings)
    shown = capsys.readouterr().out
    assert all(shown.count(store) > 1 for store in stores)
    print_estimate(job, settings, Asked(), "table")
    schemas = {topic: open_archive(pipeline.warehouse, topic).schema for topic in ("events", *topology.sink_topics)}
    lineage = column_lineage(topology, schemas, schemas)
    assert lineage.keys() == {*topology.sink_topics}
    assert all(found.decided_by or found.fields for found in lineage.values())


def test_records_that_are_lost_in_a_circle_count(tmp_path: Path) -> None:
    builder = StreamsBuilder("app")
    back = builder.stream("back").merge(builder.stream("in"))
    back.filter(per_record(lambda value: value > 0, pa.bool_(), "value")).map_values(
        per_record(lambda value: value - 1, pa.int64(), "value")
    ).to("back")
    back.group_by_key().count().to_stream().to("out")
    topology = builder.build()
    pipeline = Pipeline(tmp_path, topology)
    pipeline.archive("in", [("k", 2, 0), (None, 0, 1), ("k", 0, 3)], (pa.string(), pa.int64()))
    pipeline.run()
    (run,) = load_runs(pipeline.warehouse, "job")
    found = {kind.name: count for kind, count in losses(topology, run.nodes).items()}
    assert found == {"null-key": 1, "filtered": 3}
