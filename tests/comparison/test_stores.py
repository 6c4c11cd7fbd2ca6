"""The stores of two jobs at commits: what differs is what a comparison in plain Python finds."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pytest

from statelib import Materialized, Stores, StreamsBuilder, TimeWindows, count, sum_
from statelib.commits.versions.fork import fork
from statelib.comparison.fields import Rules
from statelib.comparison.jobs import StoresAsked, compare_jobs
from statelib.comparison.matches import Resources
from statelib.comparison.sinks import JobCommit
from statelib.comparison.stores import compare_stores
from statelib.comparison.times import Interval
from statelib.errors.kinds import ConfigurationError
from statelib.snapshots import open_state
from tests.comparison.brute_stores import brute, counts_of
from tests.comparison.jobs import HOUR, VALUE, events, topology
from tests.effort import every_other
from tests.surface.records import PARTITIONS, TYPES, surface_records
from tests.surface.topology import surface
from tests.task.pipeline import Pipeline


def tables(suffix="", hours=1):
    """A key-value store with times, a versioned one, windows and sessions."""
    builder = StreamsBuilder("job")
    versions = Stores.persistent_versioned_key_value_store("versions", timedelta(hours=40))
    builder.table("prices", Materialized.as_(versions))
    grouped = builder.stream("events").group_by_key()
    grouped.aggregate({"n": count(), "total": sum_("amount")}, Materialized.as_("counts"))
    windows = TimeWindows.of_size_and_grace(timedelta(hours=hours), timedelta(hours=4))
    table = grouped.windowed_by(windows).aggregate({"n": count()}, Materialized.as_("windows"))
    table.to_stream().to(f"out{suffix}")
    return builder.build()


@pytest.fixture
def first(tmp_path):
    made = Pipeline(tmp_path, tables(), "first")
    made.archive("events", events(), (pa.string(), VALUE), partitions=2)
    prices = [
        (key, None if n % 7 == 3 else {"amount": float(n), "item": "x"}, n * HOUR) for n in range(70) for key in "ab"
    ]
    made.archive("prices", prices, (pa.string(), VALUE), partitions=2)
    made.run(20 * HOUR)
    made.run(50 * HOUR)
    return made


def state(folder, job, commit=None):
    return open_state(folder / "warehouse", job, commit=commit, state_dir=folder / "state")


def compared(folder, pipeline, a, b, **options):
    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    resources = Resources(scratch, **options.pop("resources", {}))
    found = compare_stores(
        pipeline.warehouse, JobCommit(*a), JobCommit(*b), resources, folder / "state", examples=10_000, **options
    )
    assert not list(scratch.iterdir())
    return found


def check(folder, found, a, b, skipped=()):
    with state(folder, *a) as one, state(folder, *b) as other:
        for store in found.stores:
            partitions = {*one.store(store.a).partitions, *other.store(store.b).partitions} - {*skipped}
            assert counts_of(store.difference) == brute(one.store(store.a), other.store(store.b), partitions), store.a


@pytest.mark.slow
@pytest.mark.parametrize("resources", [{}, {"budget_bytes": 1, "rows_a_bucket": 1}])
def test_two_commits_of_a_job(tmp_path, first, resources):
    found = compared(tmp_path, first, ("first", 1), ("first", 2), resources=resources)
    check(tmp_path, found, ("first", 1), ("first", 2))
    of = {store.a: store for store in found.stores}
    assert {name: of[name].kind for name in of} == {"versions": "versioned", "counts": "key-value", "windows": "window"}
    counts = of["counts"].difference
    assert {field.path for field in counts.fields} == {"value.n", "value.total", "timestamp"}
    assert counts.changed == 3
    example = counts.examples["changed"][0]
    assert example.key == "a"
    assert example.a["value"]["n"] < example.b["value"]["n"]
    versions = of["versions"].difference
    assert versions.only_a > 0  # of the history that is out of retention now
    assert versions.only_b > 0
    assert {field.path for field in versions.fields} == {"valid_to"}
    assert any(example.b["is_tombstone"] for example in versions.examples["only_b"])
    windows = of["windows"].difference
    assert set(windows.examples["only_b"][0].key) == {"key", "window_start", "window_end"}
    assert sum(windows.times.only_b) == windows.only_b


def test_what_both_share_is_not_read(tmp_path, first, monkeypatch):
    fork(first.warehouse, "first", "forked", 1, now_ms=0)
    with monkeypatch.context() as patched:
        patched.setattr("statelib.snapshots.store.StoreSnapshot.batches", None)
        found = compared(tmp_path, first, ("first", 1), ("forked", 1))
    assert found.is_empty
    assert [(store.shared_partitions, store.partitions) for store in found.stores] == [(2, 2)] * 3
    again = compared(tmp_path, first, ("first", 2), ("forked", 1))
    check(tmp_path, again, ("first", 2), ("forked", 1))
    assert not again.is_empty


def test_a_fork_that_ran_as_its_job_has_the_same_stores(tmp_path, first):
    fork(first.warehouse, "first", "forked", 1, now_ms=0)
    Pipeline(tmp_path, tables(".forked"), "forked", warehouse=str(tmp_path / "warehouse")).run(50 * HOUR)
    found = compared(tmp_path, first, ("first", 2), ("forked", 2))
    assert found.is_empty
    assert all(store.difference.equal > 0 for store in found.stores)


def test_entries_of_some_time(tmp_path, first):
    within = Interval(10 * HOUR, 30 * HOUR)
    found = compared(tmp_path, first, ("first", 1), ("first", 2), within=within)
    whole = compared(tmp_path, first, ("first", 1), ("first", 2))
    with state(tmp_path, "first", 1) as one, state(tmp_path, "first", 2) as other:
        for store, all_of_it in zip(found.stores, whole.stores, strict=True):
            view = "history" if store.a == "versions" else "latest"
            rows = [side.store(store.a).read(view, since=10 * HOUR, until=30 * HOUR).num_rows for side in (one, other)]
            assert (store.difference.rows_a, store.difference.rows_b) == tuple(rows)
            assert store.difference.compared <= all_of_it.difference.compared
    assert (
        sum(store.difference.compared for store in found.stores)
        < 100
        < sum(store.difference.compared for store in whole.stores)
    )


def test_rules_hold_for_stores_and_names_may_differ(tmp_path, first):
    def told(**rules):
        found = compared(tmp_path, first, ("first", 1), ("first", 2), stores=["counts"], rules=Rules(**rules))
        return found.stores[0].difference

    assert told(ignored=frozenset({"value", "timestamp"})).is_empty
    assert {field.path for field in told(ignored=frozenset({"value"})).fields} == {"timestamp"}
    assert {field.path for field in told(tolerances={"value.n": 1e9}).fields} == {"value.total", "timestamp"}
    (pair,) = compared(tmp_path, first, ("first", 2), ("first", 2), stores=["counts=counts"]).stores
    assert pair.difference.is_empty


@pytest.mark.parametrize(("stores", "message"), [
    (["count"], "did you mean counts"),
    (["counts=windows"], "key-value store in A and a window store"),
])  # fmt: skip
def test_mistakes(tmp_path, first, stores, message):
    with pytest.raises(ConfigurationError, match=message):
        compared(tmp_path, first, ("first", 1), ("first", 2), stores=stores)


def test_a_store_that_one_side_has_alone_is_a_difference(tmp_path):
    first = Pipeline(tmp_path, tables(), "first")
    first.archive("events", events(), (pa.string(), VALUE))
    first.archive("prices", [], (pa.string(), VALUE))
    first.run()
    warehouse = str(tmp_path / "warehouse")
    Pipeline(tmp_path, topology(".second"), "second", warehouse=warehouse).run()
    found = compared(tmp_path, first, ("first",), ("second",))
    assert (found.stores, found.only_a, found.only_b) == ((), ("counts", "versions", "windows"), ("totals",))
    assert not found.is_empty
    scratch = Resources(tmp_path / "scratch")
    pair = JobCommit("first"), JobCommit("first")
    whole = compare_jobs(first.warehouse, *pair, scratch, stores=StoresAsked(tmp_path / "state"))
    assert whole.is_empty
    assert len(whole.stores.stores) == 3
    assert compare_jobs(first.warehouse, *pair, scratch).stores is None


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("seed", every_other(range(3), first=1))
def test_stores_of_every_kind(tmp_path, seed):
    pipeline = Pipeline(tmp_path, surface(), "surface")
    for topic, rows in surface_records(seed, 140).items():
        pipeline.archive(topic, rows, TYPES, PARTITIONS)
    for until_ms in (150, 500):
        pipeline.run(until_ms)
    found = compared(tmp_path, pipeline, ("surface", 1), ("surface", 2))
    assert len({store.kind for store in found.stores}) > 6
    check(tmp_path, found, ("surface", 1), ("surface", 2))
    assert compared(tmp_path, pipeline, ("surface", 2), ("surface", 2)).is_empty
