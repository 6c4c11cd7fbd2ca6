"""An archived topic beside a repartition topic: one that is placed by other bytes would not meet it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from statelib import ConfigurationError, Consumed, JsonSerde, Named, StreamsBuilder, per_record
from statelib.topology.copartitioned_sources import beside_repartitions
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

J = per_record(lambda left, right: f"{left}|{right}", pa.string(), "left", "right")
JSON_KEYS = Consumed.with_(key_serde=JsonSerde(pa.string()))
LETTERS = "abcdefgh"


def table(builder: StreamsBuilder) -> None:
    builder.stream("l").select_key("value").join(builder.table("r", consumed=JSON_KEYS), J).to("out")


def repartitioned_table(builder: StreamsBuilder) -> None:
    right = builder.stream("r", JSON_KEYS).repartition().to_table(Named.as_("T"))
    builder.stream("l").select_key("value").join(right, J).to("out")


def foreign_key(builder: StreamsBuilder) -> None:
    left = builder.table("l")
    left.join(builder.table("r", consumed=JSON_KEYS), J, foreign_key="value").to_stream().to("out")


def global_table(builder: StreamsBuilder) -> None:
    right = builder.global_table("r", consumed=JSON_KEYS)
    builder.stream("l").select_key("value").repartition().join(right, "key", J).to("out")


def run(folder: Path, build: Callable[[StreamsBuilder], None], partitions: int = 3) -> list[Any]:
    builder = StreamsBuilder("app")
    build(builder)
    pipeline = Pipeline(folder, builder.build())
    text = pa.string()
    pipeline.archive("r", [(f'"{of}"'.encode(), of.upper(), 0) for of in LETTERS], (pa.binary(), text), partitions)
    pipeline.archive("l", [(f"k{of}", of, 1) for of in LETTERS], (text, text), partitions)
    pipeline.run()
    return sorted(value for *_, value, _ in pipeline.output("out"))


@pytest.mark.parametrize("build", [table, foreign_key], ids=lambda build: build.__name__)
def test_it_is_refused(tmp_path: Path, build: Callable[[StreamsBuilder], None]) -> None:
    """At the first record that is elsewhere, with the way round."""
    with pytest.raises(
        ConfigurationError, match=r"key '\w' is in partition \d, but a repartition puts it into partition \d of 3"
    ) as refused:
        run(tmp_path, build)
    assert {"topic", "partition", "offset"} <= refused.value.place.keys()
    assert "repartition() this topic, too" in str(refused.value)


@pytest.mark.parametrize("build", [repartitioned_table, global_table], ids=lambda build: build.__name__)
def test_where_it_does_not_matter_all_meet(tmp_path: Path, build: Callable[[StreamsBuilder], None]) -> None:
    assert run(tmp_path, build) == [f"{of}|{of.upper()}" for of in LETTERS]


@pytest.mark.parametrize("build", [table, foreign_key], ids=lambda build: build.__name__)
def test_in_one_partition_all_meet(tmp_path: Path, build: Callable[[StreamsBuilder], None]) -> None:
    assert run(tmp_path, build, partitions=1) == [f"{of}|{of.upper()}" for of in LETTERS]


def test_only_topics_that_come_together_with_a_repartition_are_looked_at() -> None:
    builder = StreamsBuilder("app")
    one, other = builder.stream("one"), builder.stream("other")
    one.left_join(builder.table("both"), J).to("joined")
    other.select_key("value").left_join(builder.table("beside"), J).to("joined-elsewhere")
    beside = [beside_repartitions(sub.nodes) for sub in builder.build().sub_topologies]
    topics = {node.name: node.topic for sub in builder.build().sub_topologies for node in sub.all_sources}
    assert [{topics[name] for name in names} for names in beside].count({"beside"}) == 1
    assert sum(map(len, beside)) == 1
