"""A table's store that becomes versioned, plain again, or gets another retention between two slices."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from statelib import Materialized, Stores, StreamsBuilder, count
from statelib.commits.layout import CommitLog, Runs
from statelib.documents.plans import Plan
from statelib.documents.topologies import Migration
from statelib.errors.kinds import ConfigurationError
from statelib.migration import compare_latest
from statelib.stores.backend import WriteBatch
from statelib.stores.memory import MemoryBackend
from tests.changelog.test_rebuild import head_of, rebuilt
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from statelib.topology import Topology

pytestmark = pytest.mark.thorough

MINUTE = 60_000
TYPES = (pa.string(), pa.int64())
CUT = 20 * MINUTE
RATES = [
    (f"k{i * i % 13}", None if i % 17 == 3 else i, max(0, i * 6_000 - (i % 4) * 9_000))
    for i in range(400)
]  # fmt: skip
LATE = [("rare", 1, 5 * MINUTE), ("k1", 5, CUT - 7 * MINUTE)]
"""A key that only has an old record, and a record that comes much too late for a versioned table."""


def table(retention_minutes: int | None, *, filtered: bool = False) -> Topology:
    builder = StreamsBuilder("job")
    rates = builder.table("rates", Materialized.as_(store(retention_minutes)))
    (rates.filter(pc.field("value") > 0) if filtered else rates).to_stream().to("out")
    return builder.build()


def counted(retention_minutes: int | None) -> Topology:
    builder = StreamsBuilder("job")
    grouped = builder.stream("rates").group_by_key()
    grouped.aggregate({"n": count()}, Materialized.as_(store(retention_minutes))).to_stream().to("out")
    return builder.build()


def store(retention_minutes: int | None) -> Any:
    if retention_minutes is None:
        return "s"
    return Stores.persistent_versioned_key_value_store("s", timedelta(minutes=retention_minutes))


def replayed(directory: Path, topology: Topology, *, logs: bool, late: bool = False) -> Pipeline:
    pipeline = Pipeline(directory, topology, changelogs=["s"] if logs else [])
    pipeline.archive("rates", RATES, TYPES, partitions=2)
    if late:
        first = [(key, value, time) for key, value, time in RATES if time < CUT]
        pipeline = Pipeline(directory / "late", topology, changelogs=["s"] if logs else [])
        pipeline.archive("rates", [*first, *LATE, *[rate for rate in RATES if rate[2] >= CUT]], TYPES, partitions=2)
    pipeline.run(CUT)
    return pipeline


def migrated(pipeline: Pipeline, after: Topology) -> Plan:
    """Goes on with ``after``, by a slice that takes up a single partition's worth of nothing or little."""
    pipeline.topology = after
    planned = pipeline.plan(CUT + 1, migrate_stores=["s"])
    assert isinstance(planned, Plan)
    pipeline.run(CUT + 1, migrate_stores=["s"])
    return planned


def content(pipeline: Pipeline, task: str) -> MemoryBackend:
    backend = MemoryBackend()
    write = WriteBatch()
    for family, entries in pipeline.state()[task].items():
        for key, value in entries:
            write.put(family, key, value)
    backend.write(write)
    return backend


def migration_of(pipeline: Pipeline) -> Migration:
    head = CommitLog(pipeline.warehouse, "job").head()
    assert head is not None
    assert head.evolution is not None
    (migration,) = head.evolution.migrations
    return migration


@pytest.mark.parametrize("made", [table, counted])
def test_a_store_with_a_changelog_becomes_what_it_would_have_been(tmp_path: Path, made: Any) -> None:
    """All of the history that the retention asks for is in the changelog."""
    changed = replayed(tmp_path / "changed", made(None), logs=True)
    migrated(changed, made(5))
    always = replayed(tmp_path / "always", made(5), logs=True)
    always.run(CUT + 1)
    assert changed.state() == always.state()
    changed.run(None)
    always.run(None)
    assert changed.state() == always.state()
    assert [row[2:] for row in changed.output("out")][-20:] == [row[2:] for row in always.output("out")][-20:]


@pytest.mark.thorough
@pytest.mark.parametrize("made", [table, counted])
@pytest.mark.parametrize("logs", [False, True])
@pytest.mark.parametrize(("was", "becomes"), [(None, 5), (5, None), (5, 12), (12, 2)])
def test_the_latest_values_stay(tmp_path: Path, made: Any, was: int | None, becomes: int | None, logs: bool) -> None:
    changed = replayed(tmp_path, made(was), logs=logs)
    before = {task: content(changed, task) for task in ("0_0", "0_1")}
    planned = migrated(changed, made(becomes))
    assert planned.evolution is not None
    assert [change for change in planned.evolution.changes if "store s is migrated: it" in change]
    kept = 0
    for task, backend in before.items():
        changed.topology = made(becomes)
        found = compare_latest(migration_of(changed), backend, content(changed, task))
        kept += found.equal + found.by_order
        # The slice that migrates may bring a record of its own.
        assert found.differences <= sum(CUT <= time <= CUT + 1 for _, _, time in RATES)
        assert found.oldest_ms is not None
    if logs:
        assert rebuilt(changed, head_of(changed)) == changed.state()
    assert kept >= len({key for key, *_ in RATES}) - 1


def test_what_a_versioned_store_would_have_refused_is_not_lost(tmp_path: Path) -> None:
    for logs in (False, True):
        changed = replayed(tmp_path / str(logs), table(None), logs=logs, late=True)
        before = {task: content(changed, task) for task in ("0_0", "0_1")}
        migrated(changed, table(2))
        for task, backend in before.items():
            found = compare_latest(migration_of(changed), backend, content(changed, task))
            assert found.differences <= sum(CUT <= time <= CUT + 1 for _, _, time in RATES), found.different
        keys = {key for task in ("0_0", "0_1") for key, _ in content(changed, task).scan("s.latest")}
        assert b"rare" in keys


def test_a_migration_may_be_taken_back(tmp_path: Path) -> None:
    changed = replayed(tmp_path, table(None), logs=True)
    state = changed.state()
    migrated(changed, table(5))
    changed.topology = table(None)
    changed.run(None, migrate_stores=["s"])
    plain = replayed(tmp_path / "plain", table(None), logs=True)
    assert plain.state() == state
    plain.run(None)
    assert {k: dict(v["s"]).keys() for k, v in changed.state().items()} == {
        k: dict(v["s"]).keys() for k, v in plain.state().items()
    }


def test_without_being_asked_nothing_is_migrated(tmp_path: Path) -> None:
    changed = replayed(tmp_path, table(None), logs=True)
    changed.topology = table(5)
    with pytest.raises(ConfigurationError, match=r"was a key-value store and is a versioned store.*migrate_stores=s"):
        changed.run(None)
    changed.topology = table(5, filtered=True)
    migrated(changed, table(5, filtered=True))  # other things may change with it
    assert Runs(changed.warehouse, "job").topology(table(5, filtered=True).fingerprint) is not None
