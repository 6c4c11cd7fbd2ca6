"""Jobs whose topologies are optimised as Kafka Streams does it (`statelib.dsl.optimization`)."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
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


def counted_twice(optimization: str) -> Topology:
    builder = StreamsBuilder("job")
    renamed = builder.stream("in").select_key("value")
    for name in ("one", "two"):
        renamed.group_by_key().count(Materialized.as_(name)).to_stream().to(f"out-{name}")
    return builder.build({"topology.optimization": optimization})


def counted_behind_a_filter(optimization: str) -> Topology:
    """Its repartition topic moves above the filter."""
    builder = StreamsBuilder("job")
    kept = builder.stream("in").select_key("value").filter(pc.field("value") != "v1")
    kept.group_by_key().count(Materialized.as_("one")).to_stream().to("out-one")
    return builder.build({"topology.optimization": optimization})


MANY = [(f"k{n % 5}", f"v{n % 4}", n * 3 - (n % 7) * 4) for n in range(10, 200)]


def replayed(directory: Path, topology: Topology) -> Pipeline:
    """Two slices of three."""
    job = Pipeline(directory, topology)
    job.archive("in", MANY, TEXTS, partitions=2)
    job.run(200)
    job.run(400)
    return job


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        ("none", "all", r"2, 2, 2 and are 2, 2 .*build it without merge\.repartition\.topics .*as before"),
        ("all", "none", r"2, 2 and are 2, 2, 2 .*build it with merge\.repartition\.topics .*if it had that"),
    ],
)
def test_a_job_whose_topics_merge_or_part_is_told_to_be_built_as_before(
    before: str, now: str, said: str, tmp_path: Path
) -> None:
    job = replayed(tmp_path / "changed", counted_twice(before))
    job.topology = counted_twice(now)
    with pytest.raises(ConfigurationError, match=said):
        job.run()
    job.topology = counted_twice(before)
    job.run()
    always = replayed(tmp_path / "always", counted_twice(before))
    always.run()
    assert job.output("out-one") == always.output("out-one")
    assert job.state() == always.state()


@pytest.mark.parametrize(("before", "now"), [("none", "all"), ("all", "none")])
def test_a_job_whose_topic_moves_goes_on(before: str, now: str, tmp_path: Path) -> None:
    jobs = [replayed(tmp_path / setting, counted_behind_a_filter(setting)) for setting in (before, now)]
    jobs[0].topology = jobs[1].topology
    for job in jobs:
        job.run()
    assert jobs[0].output("out-one") == jobs[1].output("out-one")
    assert jobs[0].state() == jobs[1].state()


@pytest.mark.parametrize(("before", "now"), [("none", "all"), ("all", "none")])
def test_the_way_on_that_the_refusal_names_works(before: str, now: str, tmp_path: Path) -> None:
    changed, always = (replayed(tmp_path / setting, paired(setting)) for setting in (before, now))
    changed.topology = always.topology
    with pytest.raises(ConfigurationError) as refused:
        changed.run()
    asked = re.search(
        r"from the job's history \(--set fill_stores=(\S+?)(?: --set reset_stores=(\S+?))?\)", str(refused.value)
    )
    assert asked is not None, str(refused.value)
    fill, reset = ((given or "").split(",") for given in asked.groups())
    changed.run(fill_stores=fill, reset_stores=[name for name in reset if name])
    always.run()
    assert changed.output("pairs") == always.output("pairs")
    assert changed.state() == always.state()


def test_a_job_that_comes_to_keep_one_store_of_a_self_join_says_which_is_gone(tmp_path: Path) -> None:
    plain = Pipeline(tmp_path, paired("none"))
    plain.archive("in", [("a", "1", 1)], TEXTS)
    plain.run(None)
    one_store = Pipeline(tmp_path, paired("all"))
    one_store.archive("in", [("a", "2", 2)], TEXTS)
    with pytest.raises(ConfigurationError, match="KSTREAM-JOIN(THIS|OTHER)"):
        one_store.run(None)
