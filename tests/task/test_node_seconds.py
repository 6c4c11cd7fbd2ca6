"""How long each node of a task takes, where somebody asks."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pyarrow.compute as pc

from statelib.commits.run.plan import NothingToDo
from statelib.dsl import StreamsBuilder
from statelib.task import NodeSeconds, Stages, TaskSettings, replay_here
from tests.task.pipeline import Pipeline


def test_a_node_lasts_until_the_next_one_begins() -> None:
    times = iter([1.0, 4.0, 4.0, 5.0, 7.0, 9.0])
    spent = NodeSeconds(lambda: next(times))
    spent.begin("a")
    spent.begin("b")
    spent.end()
    spent.end()
    spent.begin("a")
    spent.end()
    assert spent.seconds == {"a": 3.0 + 2.0, "b": 1.0}


def test_every_source_and_processor_is_timed_and_tasks_add_up(tmp_path) -> None:
    builder = StreamsBuilder("timed")
    builder.stream("events").filter(pc.field("value") > 1).group_by("value").count().to_stream().to("out")
    topology = builder.build()
    pipeline = Pipeline(tmp_path, topology, "timed")
    pipeline.archive("events", [(f"k{n}", n % 3, n) for n in range(50)], (pa.string(), pa.int64()), partitions=2)
    planned = pipeline.plan()
    assert not isinstance(planned, NothingToDo)
    ticks = itertools.count()
    spent = NodeSeconds(lambda: float(next(ticks)))
    stages = Stages(
        topology, planned, None, pipeline.warehouse, TaskSettings(str(tmp_path / "warehouse"), str(tmp_path))
    )
    replay_here(stages, planned, attempt="a", clock=lambda: 0.0, spent=spent)
    nodes = {node.name for sub in topology.sub_topologies for node in sub.nodes}
    assert spent.seconds.keys() == nodes
    assert min(spent.seconds.values()) >= 2  # a tick in each of two tasks
