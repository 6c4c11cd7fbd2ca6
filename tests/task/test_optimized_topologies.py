"""Jobs whose topologies are optimised as Kafka Streams does it (`statelib.dsl.optimization`)."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from statelib import JoinWindows, Materialized, StreamsBuilder
from statelib.commits.layout import Runs
from statelib.errors.kinds import ConfigurationError
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from statelib.topology import Topology

TEXTS = (pa.string(), pa.string())
WINDOWS = JoinWindows.of_time_difference_and_grace(timedelta(milliseconds=10), timedelta(milliseconds=10))


def priced(optimization: str) -> Topology:
    builder = StreamsBuilder("job")
    prices = builder.table("prices", Materialized.as_("prices-store"))
    builder.stream("orders").join(prices, {"order": "left", "price": "right"}).to("priced")
    return builder.build({"topology.optimization": optimization})


def paired(optimization: str) -> Topology:
    builder = StreamsBuilder("job")
    stream = builder.stream("in")
    stream.join(stream, {"left": "left", "right": "right"}, WINDOWS).to("pairs")
    return builder.build({"topology.optimization": optimization})


def test_a_job_that_comes_to_reuse_its_source_topics_goes_on_with_its_state(tmp_path: Path) -> None:
    plain = Pipeline(tmp_path, priced("none"))
    plain.archive("prices", [("a", "1", 1)], TEXTS)
    plain.archive("orders", [("a", "x", 2)], TEXTS)
    plain.run(None)
    reusing = Pipeline(tmp_path, priced("all"))
    reusing.archive("orders", [("a", "y", 3)], TEXTS)
    reusing.run(None)
    assert [value for *_, value, _ in reusing.output("priced")] == [
        {"order": "x", "price": "1"},
        {"order": "y", "price": "1"},
    ]
    described = Runs(reusing.warehouse, "job").topology(reusing.topology.fingerprint)
    assert described is not None
    topics = {node.name: node.settings.get("changelog_topic") for node in described.nodes}
    assert [topic for topic in topics.values() if topic] == ["prices"]


def test_a_job_that_comes_to_keep_one_store_of_a_self_join_says_which_is_gone(tmp_path: Path) -> None:
    plain = Pipeline(tmp_path, paired("none"))
    plain.archive("in", [("a", "1", 1)], TEXTS)
    plain.run(None)
    one_store = Pipeline(tmp_path, paired("all"))
    one_store.archive("in", [("a", "2", 2)], TEXTS)
    with pytest.raises(ConfigurationError, match="KSTREAM-JOIN(THIS|OTHER)"):
        one_store.run(None)
