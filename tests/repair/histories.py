"""A job that went wrong, the same job that never did, and what readers of either have."""

from __future__ import annotations

import random
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from statelib import BufferConfig, Materialized, StreamsBuilder, Suppressed, TimeWindows, count, sum_
from statelib.commits.archives import open_archive_if_present
from statelib.commits.layout import fork_topic
from statelib.commits.versions.fork import fork
from statelib.repair.corrections import RETRACTS
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from statelib.topology import Topology

HOUR = 3_600_000
EVENT = pa.struct([("amount", pa.int64()), ("item", pa.string())])
NAME = pa.struct([("name", pa.string())])
TABLES = ("so-far", "by-hour", "by-item")
"""Sinks of which readers keep the newest value of each key."""

STREAMS = ("large", "once", "named")
"""Sinks of which readers keep each record."""


def events(seed: int, n: int = 240) -> list[tuple[str, dict[str, Any], int]]:
    """Some days of events, in which some come late and some twice."""
    chance = random.Random(seed)
    rows = []
    for number in range(n):
        time = max(number * HOUR // 4 - chance.choice([0, 0, 0, 1, 3]) * HOUR, 0)
        rows.append(
            (chance.choice("abcdef"), {"amount": chance.randrange(100), "item": f"i{chance.randrange(9)}"}, time)
        )
    return rows


def names(seed: int, n: int = 60) -> list[tuple[str, dict[str, Any], int]]:
    """Names of the keys, which change now and then."""
    chance = random.Random(seed + 1)
    return [(chance.choice("abcdef"), {"name": f"n{number}"}, number * HOUR + HOUR // 2) for number in range(n)]


def topology(least: int = 20) -> Topology:
    """Operators of all kinds; ``least`` is what somebody gets wrong."""
    builder = StreamsBuilder("job")
    large = builder.stream("events").filter(pc.field("value", "amount") >= least)
    large.to("large")
    large.deduplicate_by_key_value("value.item", timedelta(hours=3)).to("once")
    grouped = large.group_by_key()
    grouped.aggregate({"events": count(), "total": sum_("amount")}, Materialized.as_("so-far-store")).to_stream().to(
        "so-far"
    )
    hours = TimeWindows.of_size_and_grace(timedelta(hours=1), timedelta(hours=2))
    by_hour = grouped.windowed_by(hours).count(Materialized.as_("by-hour-store"))
    by_hour.suppress(Suppressed.until_window_closes(BufferConfig.unbounded())).to_stream().to("by-hour")
    names = builder.table("names")
    large.join(names, {"amount": "left.amount", "name": "right.name"}).to("named")
    large.group_by(pc.field("value", "item")).count(Materialized.as_("by-item-store")).to_stream().to("by-item")
    return builder.build()


def archive(job: Pipeline, seed: int, partitions: int = 2) -> None:
    """Archives both topics, whole."""
    job.archive("events", events(seed), (pa.string(), EVENT), partitions)
    job.archive("names", names(seed), (pa.string(), NAME), partitions)


def forked(job: Pipeline, directory: Path, name: str, commit: int, topology: Topology) -> Pipeline:
    """A fork of the job at a commit, which runs a topology."""
    fork(job.warehouse, job.name, name, commit, now_ms=0)
    return as_fork(job, directory, name, topology)


def as_fork(job: Pipeline, directory: Path, name: str, topology: Topology) -> Pipeline:
    """What runs a topology as a fork of the job."""
    renamed = topology.with_sinks({topic: fork_topic(topic, name) for topic in topology.sink_topics})
    options = job.warehouse.options
    return Pipeline(directory, renamed, name, warehouse=job.warehouse.uri(""), storage_options=options)


def read(job: Pipeline) -> dict[str, Any]:
    """What readers have who follow the sinks from the beginning."""
    found: dict[str, Any] = {}
    for topic in (*TABLES, *STREAMS):
        archive = open_archive_if_present(job.warehouse, topic)
        newest: dict[Any, Any] = {}
        standing: dict[str, Any] = {}
        for partition in range(archive.partitions if archive else 0):
            for row in archive.reader(partition).read_all().to_pylist():
                content = repr(row["key"]), row["timestamp"], repr(row["value"])
                named = [header["value"].decode() for header in row["headers"] or () if header["key"] == RETRACTS]
                newest[partition, content[0]] = None if row["value"] is None else content
                for name in named:
                    wrong = standing.pop(name)
                    assert (wrong[0], wrong[1], None) == (content[0], content[1], row["value"])
                if not named:
                    standing[f"{topic}/{partition}@{row['offset']}"] = content
        if topic in TABLES:
            found[topic] = {key: content for key, content in newest.items() if content is not None}
        else:
            found[topic] = Counter((name.partition("@")[0], content) for name, content in standing.items())
    return found
