"""A pattern's topics, slice by slice: one that comes and one that goes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from statelib import StreamsBuilder
from statelib.commits.layout import Runs
from statelib.errors.kinds import ConfigurationError
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from statelib.topology import Topology

TYPES = (pa.string(), pa.int64())


def counting(*topics: str, by: str = "key") -> Topology:
    builder = StreamsBuilder("job")
    orders = builder.stream(re.compile("orders-.*"), topics=topics)
    grouped = orders.group_by_key() if by == "key" else orders.group_by(by)
    grouped.count().to_stream().to("counts")
    return builder.build()


def counts(job: Pipeline) -> list[tuple[str, int]]:
    return [(key, value) for _, _, key, value, _ in job.output("counts")]


def test_a_topic_that_comes_is_listed_before_the_next_slice_and_the_state_goes_on(tmp_path: Path) -> None:
    job = Pipeline(tmp_path, counting("orders-eu"), on_bad_record="quarantine")
    job.archive("orders-eu", [("a", 1, 1), ("b", 1, 2)], TYPES)
    job.archive("others", [("a", 1, 1)], TYPES)
    job.run()
    job.archive("orders-us", [("a", 1, 3), ("a", 1, 5)], TYPES)
    job.archive("orders-eu", [("a", 1, 4)], TYPES)
    with pytest.raises(ConfigurationError, match=r"matches the pattern.*topic orders-us.*topics=\[\.\.\.\]"):
        job.run()
    job.topology = counting("orders-eu", "orders-us")
    job.run()
    assert counts(job) == [("a", 1), ("b", 1), ("a", 2), ("a", 3), ("a", 4)]
    planned = Runs(job.warehouse, "job").plan("00000002-1")
    assert [source.topic for source in planned.sources] == ["orders-eu", "orders-us"]
    assert planned.evolution is not None
    assert any("orders-us is new" in change for change in planned.evolution.changes)


def test_older_records_of_a_topic_that_comes_go_through_repartitions_as_late_ones(tmp_path: Path) -> None:
    job = Pipeline(tmp_path, counting("orders-eu", by="value"))
    job.archive("orders-eu", [("a", 1, 100), ("b", 2, 200)], TYPES)
    job.run()
    job.topology = counting("orders-eu", "orders-us", by="value")
    job.archive("orders-us", [("c", 1, 1), ("d", 2, 300)], TYPES)
    job.archive("orders-eu", [("a", 1, 250)], TYPES)
    job.run()
    assert [(key, value, at) for _, _, key, value, at in job.output("counts")] == [
        (1, 1, 100), (2, 1, 200), (1, 2, 100), (1, 3, 250), (2, 2, 300),
    ]  # fmt: skip


def test_a_topic_that_goes_ends_the_run_until_it_is_back(tmp_path: Path) -> None:
    """What the job has read of it is in its results, so it is not taken from the list either."""
    job = Pipeline(tmp_path, counting("orders-eu", "orders-us"))
    for topic in ("orders-eu", "orders-us"):
        job.archive(topic, [("a", 1, 1)], TYPES)
    job.run()
    folder = tmp_path / "warehouse" / "topics" / "orders-us"
    folder.rename(tmp_path / "elsewhere")
    job.archive("orders-eu", [("a", 1, 2)], TYPES)
    with pytest.raises(ConfigurationError, match="no topic archive any more.*topic orders-us"):
        job.run()
    job.topology = counting("orders-eu")
    with pytest.raises(ConfigurationError, match="source topic orders-us is gone"):
        job.run()
    (tmp_path / "elsewhere").rename(folder)
    job.topology = counting("orders-eu", "orders-us")
    job.run()
    assert counts(job) == [("a", 1), ("a", 2), ("a", 3)]


def test_topics_that_hindstream_makes_for_jobs_do_not_count(tmp_path: Path) -> None:
    job = Pipeline(tmp_path, counting("orders-eu"), name="orders-job")
    job.archive("orders-eu", [("a", 1, 1)], TYPES)
    job.run()
    for topic in ("orders-job-quarantine", "orders-job-late", "orders-job-store-changelog", "orders-eu.orders-job"):
        job.archive(topic, [("a", 1, 1)], TYPES)
    job.archive("orders-eu", [("a", 1, 2)], TYPES)
    job.run()
    assert counts(job) == [("a", 1), ("a", 2)]
    job.archive("orders-eu.other", [("a", 1, 1)], TYPES)
    with pytest.raises(ConfigurationError, match="topic orders-eu.other"):
        job.run()
