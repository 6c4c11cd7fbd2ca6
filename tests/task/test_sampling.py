"""A sample of the keys gives, of these keys, the results that all keys give."""

from __future__ import annotations

import random
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from statelib import (
    BufferConfig,
    EmitStrategy,
    Materialized,
    SessionWindows,
    Stores,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    count,
    max_,
    sum_,
)
from statelib.commits.archives import open_archive_if_present
from statelib.commits.layout import fork_topic
from statelib.commits.versions.fork import fork, fork_from_beginning
from statelib.commits.versions.promotion import promote
from statelib.comparison.matches import Resources
from statelib.documents.manifests import Staged
from statelib.errors.kinds import ConfigurationError
from statelib.records.key_column import KeyColumn
from statelib.records.key_sample import LEFT_OUT, MOVES_TIME, TAKEN, KeySample
from statelib.repair.repair import repair
from tests.surface.records import PARTITIONS, TYPES, surface_records
from tests.surface.topology import surface
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from statelib import Topology

Rows = dict[tuple[str, int], list[Any]]
VALUE = pa.struct([("amount", pa.int64()), ("item", pa.string())])


def written(job: Pipeline, share: float | None = None) -> Rows:
    """What a job has written, by topic and partition, in order; ``share``: of the keys of that sample alone."""
    found: Rows = {}
    for sink in (sink for sub in job.topology.sub_topologies for sink in sub.all_sinks if not sink.internal):
        archive = open_archive_if_present(job.warehouse, sink.topic)
        for partition in range(archive.partitions if archive else 0):
            rows = archive.reader(partition).read_all().drop_columns("offset")
            if share is not None:
                keys = KeyColumn(rows.column("key").combine_chunks())
                rows = rows.filter(pa.array(KeySample(share).has(keys)))
            if len(rows):
                found[sink.topic, partition] = [repr(row) for row in rows.to_pylist()]
    return found


def replayed(
    folder: Path,
    topology: Topology,
    records: Mapping[str, Sequence[tuple[Any, Any, int]]],
    types: Any,
    cuts: Sequence[int | None] = (None,),
    **options: Any,
) -> Pipeline:
    """A job that has replayed records, slice by slice."""
    job = Pipeline(folder, topology, **options)
    for topic, rows in records.items():
        job.archive(topic, rows, types, PARTITIONS)
    for cut in cuts:
        job.run(cut)
    return job


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in (2, 3))])
def test_every_operator_there_is(tmp_path: Path, seed: int) -> None:
    records = surface_records(seed, 60)
    whole = replayed(tmp_path / "all", surface(), records, TYPES)
    for share in (0.3, 0.6):
        some = replayed(tmp_path / f"{share}", surface(), records, TYPES, sample_keys=share, batch_records=7)
        assert written(some) == written(whole, share)


def events(seed: int, n: int) -> dict[str, list[tuple[Any, Any, int]]]:
    """Events and prices of many keys; some come late, some have no key or no value."""
    chance = random.Random(seed)
    topics: dict[str, list[tuple[Any, Any, int]]] = {"events": [], "prices": []}
    now = 0
    for _ in range(n):
        now += chance.choice([0, 1, 1, 3, 40])
        time = max(now - chance.choice([0, 0, 0, 2, 30, 90]), 0)
        key = None if chance.random() < 0.04 else f"k{chance.randrange(25)}"
        value = {"amount": chance.randrange(100), "item": f"i{chance.randrange(5)}"}
        topic = "prices" if chance.random() < 0.4 else "events"
        topics[topic].append((key, None if chance.random() < 0.1 else value, time))
    return {topic: rows or [("k0", None, 0)] for topic, rows in topics.items()}


def ms(count_: int) -> timedelta:
    return timedelta(milliseconds=count_)


FINAL = Suppressed.until_window_closes(BufferConfig.unbounded())
WINDOWS = TimeWindows.of_size_and_grace(ms(50), ms(40))
EAGER = TimeWindows.of_size_with_no_grace(ms(20))
SESSIONS = SessionWindows.of_inactivity_gap_and_grace(ms(20), ms(30))


def sampled_from_the_source() -> Topology:
    """What looks at one key only, and has clocks, from where the records come in."""
    builder = StreamsBuilder("sampled")
    events = builder.stream("events")
    grouped = events.group_by_key()
    grouped.windowed_by(WINDOWS).aggregate({"n": count(), "total": sum_("amount")}).suppress(FINAL).to_stream().to(
        "final"
    )
    grouped.windowed_by(SESSIONS).count().suppress(FINAL).to_stream().to("sessions")
    closed = grouped.windowed_by(SESSIONS).emit_strategy(EmitStrategy.on_window_close()).count()
    closed.to_stream().to("closed-sessions")
    store = Stores.persistent_versioned_key_value_store("prices-store", ms(60))
    prices = builder.table("prices", Materialized.as_(store))
    joined = events.left_join(prices, {"amount": "left.amount", "price": "right.amount"})
    joined.to("joined")
    by_window = joined.group_by_key().windowed_by(WINDOWS).aggregate({"n": count(), "most": max_("price")})
    by_window.suppress(FINAL).to_stream().to("joined-final")
    return builder.build()


def sampled_further_down() -> Topology:
    """What looks at several keys before, or leaves records out that would have moved time."""
    builder = StreamsBuilder("sampled")
    events = builder.stream("events")
    large = events.filter(pc.field("value", "amount") >= 30)
    once = large.deduplicate_by_key_value("value.item", ms(60))
    once.group_by_key().windowed_by(WINDOWS).count().suppress(FINAL).to_stream().to("final")
    limited = large.group_by_key().count().suppress(Suppressed.until_time_limit(ms(70), BufferConfig.unbounded()))
    limited.to_stream().to("limited")
    limited.to_stream().group_by_key().windowed_by(EAGER).count().to_stream().to("limited-again")
    large.merge(builder.stream("prices")).group_by_key().windowed_by(EAGER).count().to_stream().to("merged")
    both = large.group_by_key().cogroup({"n": count()}).cogroup(builder.stream("prices").group_by_key(), {"m": count()})
    both.windowed_by(WINDOWS).aggregate().suppress(FINAL).to_stream().to("cogrouped")
    by_item = large.select_key(pc.field("value", "item")).group_by_key().windowed_by(WINDOWS).count()
    by_item.suppress(FINAL).to_stream().to("by-item")
    return builder.build()


@pytest.mark.parametrize("topology", [sampled_from_the_source, sampled_further_down])
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long), pytest.param(3, marks=pytest.mark.long)])
def test_time_is_that_of_all_keys(tmp_path: Path, topology: Any, seed: int) -> None:
    records, types = events(seed, 2000), (pa.string(), VALUE)
    whole = replayed(tmp_path / "all", topology(), records, types)
    for share, cuts, batch in ((0.15, (None,), 500), (0.4, (4000, 9000, None), 50)):
        some = replayed(tmp_path / f"{share}", topology(), records, types, cuts, sample_keys=share, batch_records=batch)
        wanted = written(whole, share)
        assert {topic for topic, _ in wanted} == set(some.topology.sink_topics)
        assert written(some) == wanted


def test_what_moves_time_is_hardly_more_than_the_sample(tmp_path: Path) -> None:
    job = replayed(tmp_path, sampled_from_the_source(), events(1, 2000), (pa.string(), VALUE), (), sample_keys=0.04)
    staged = job.run()
    assert isinstance(staged, Staged)
    counted: Counter[str] = Counter()
    for task in staged.tasks:
        counted.update(task.metrics["KSTREAM-AGGREGATE-0000000002"].counters)
    assert 0 < counted[TAKEN] < 0.2 * counted[LEFT_OUT]
    assert 0 < counted[MOVES_TIME] <= 3 * counted[TAKEN] + PARTITIONS


def test_a_sealed_job(tmp_path: Path) -> None:
    records, types = events(5, 300), (pa.string(), VALUE)
    jobs = [
        replayed(tmp_path / f"{share}", sampled_from_the_source(), records, types, (), sample_keys=share)
        for share in (None, 0.2)
    ]
    for job in jobs:
        job.run(end_of_input="seal")
    assert written(jobs[1]) == written(jobs[0], 0.2)


def test_a_fork_of_a_sample_is_for_nothing_else(tmp_path: Path) -> None:
    topology = sampled_from_the_source()
    job = replayed(tmp_path, topology, events(1, 50), (pa.string(), VALUE))
    fork_from_beginning(job.warehouse, "job", "some")
    names = {topic: fork_topic(topic, "some") for topic in topology.sink_topics}
    uri = job.warehouse.uri("")
    Pipeline(tmp_path, topology.with_sinks(names), "some", warehouse=uri, sample_keys=0.01).run()
    for use in (
        lambda: fork(job.warehouse, "some", "another", now_ms=0),
        lambda: promote(job.warehouse, "some", "job", now_ms=0),
        lambda: repair(job.warehouse, "job", "some", Resources(tmp_path), attempt="a", now_ms=0),
    ):
        with pytest.raises(ConfigurationError, match="a part of the keys only"):
            use()
