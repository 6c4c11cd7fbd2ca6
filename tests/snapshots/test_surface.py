"""Every store of the surface, at several commits: what its snapshot says is what the job's code finds in it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from statelib import ConfigurationError, InputError, StateSnapshot, open_state
from statelib.commits import CommitLog
from statelib.commits.archives import open_archive
from statelib.stores.spec import families_to_read
from statelib.task import forwarded_types
from statelib.task.type_inference import forwarded_of_nothing, types_of
from statelib.topics.partitioner import partition_for
from tests.effort import every_other
from tests.snapshots.points import one, result, rows_of, versioned_store
from tests.surface.records import GLOBAL_TOPICS, PARTITIONS, TYPES, surface_records
from tests.surface.topology import surface
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from statelib.stores.rocksdb import RocksDbBackend

pytestmark = pytest.mark.slow

TOPOLOGY = surface()
STORES = {
    store.name: (sub.index, node, store)
    for sub in TOPOLOGY.sub_topologies
    for node in sub.processors
    for store in node.spec.state_stores()
}
BY_KIND = {kind: name for name, (_, _, store) in STORES.items() if (kind := store.kind)}
UNDER_WINDOWED_KEYS = ("windows-counted", "several", "session-sizes", "final-kept")
GLOBAL = {name for name in STORES if name == "tariffs" or name.startswith("places-STATE-STORE-")}


@dataclass
class Warehouse:
    """A job with three commits."""

    folder: Path
    pipeline: Pipeline
    types: dict[str, pa.Schema]

    def open(self, commit: int | None = None) -> StateSnapshot:
        """The state as of a commit."""
        return open_state(self.folder / "warehouse", "surface", commit=commit, state_dir=self.folder / "local")


@pytest.fixture(scope="module", params=[3])
def warehouse(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Warehouse:
    folder = tmp_path_factory.mktemp("snapshots")
    pipeline = Pipeline(folder, TOPOLOGY, "surface")
    for topic, rows in surface_records(request.param, 140).items():
        pipeline.archive(topic, rows, TYPES, PARTITIONS)
    for until_ms in (150, 500, None):
        pipeline.run(until_ms)
    topics = {topic for sub in TOPOLOGY.sub_topologies for topic in sub.sources}
    readers = {topic: open_archive(pipeline.warehouse, topic).reader(0, 0, 0) for topic in topics}
    types = dict(forwarded_types(TOPOLOGY, readers))
    forwarded = forwarded_of_nothing(TOPOLOGY, readers)
    for name in UNDER_WINDOWED_KEYS:  # the others have windows beside the key
        node = STORES[name][1].name
        types[node] = types_of(forwarded[node])
    return Warehouse(folder, pipeline, types)


def tasks_of(warehouse: Warehouse, state: StateSnapshot, store: str) -> Iterator[tuple[int, RocksDbBackend, Any]]:
    """The tasks that have the store, restored apart from how a view restores them."""
    made = CommitLog(warehouse.pipeline.warehouse, "surface").read(state.commit)
    sub = STORES[store][0]
    for partition in (0,) if store in GLOBAL else range(PARTITIONS):
        task_id = f"{sub}_{partition}"
        with state._restored.open(task_id, families_to_read(STORES[store][2])) as backend:
            yield partition, backend, made.tasks[task_id]


def comparable(table: pa.Table) -> list[str]:
    """Rows without regard to their order; times as milliseconds."""
    columns = [
        table.column(i).cast(pa.int64()) if pa.types.is_timestamp(field.type) else table.column(i)
        for i, field in enumerate(table.schema)
    ]
    return sorted(map(repr, zip(*(column.to_pylist() for column in columns), strict=True)))


@pytest.mark.parametrize("commit", every_other([1, 2, 3], first=1))
def test_rows_are_those_that_the_jobs_code_finds(warehouse: Warehouse, commit: int) -> None:
    filled = set()
    with warehouse.open(commit) as state:
        assert {store.name for store in state.stores} == set(STORES)
        for store in state.stores:
            _, node, spec = STORES[store.name]
            assert store.kind == spec.kind
            expected = [
                repr((*row, partition))
                for partition, backend, task in tasks_of(warehouse, state, store.name)
                for row in rows_of(node, spec, warehouse.types, backend, task)
            ]
            table = store.read()
            assert table.schema == store.schema()
            assert comparable(table) == sorted(expected), store
            filled |= {store.kind} if table.num_rows else set()
    assert filled == set(BY_KIND) or commit == 1


@pytest.mark.parametrize("commit", [1, 3])
def test_versions_are_those_of_look_ups(warehouse: Warehouse, commit: int) -> None:
    seen = 0
    with warehouse.open(commit) as state:
        for name in [name for name, (_, _, spec) in STORES.items() if spec.kind == "versioned"]:
            _, node, spec = STORES[name]
            made = warehouse.types[node.name]
            store = state.store(name)
            lived: list[str] = []
            at: dict[int, list[str]] = {time: [] for time in range(0, 1600, 90)}
            for partition, backend, _ in tasks_of(warehouse, state, name):
                engine = versioned_store(spec, backend)
                keys = {key for time in range(0, 1600, 5) for key, _ in engine.range(as_of=time)}
                for raw in keys:
                    key = one(raw, made.field("key").type)
                    for found in engine.history(raw):
                        row = key, result(node.spec, found.value, made), found.timestamp, found.valid_to, False
                        lived.append(repr((*row, partition)))
                for time, rows in at.items():
                    rows += [
                        repr((one(raw, made.field("key").type), result(node.spec, found.value, made), found.timestamp,
                              partition))
                        for raw, found in engine.range(as_of=time)
                    ]  # fmt: skip
            history = store.read("history")
            assert comparable(history.filter(pa.compute.invert(history["is_tombstone"]))) == sorted(lived)
            dead = history.filter(history["is_tombstone"])
            assert dead["value"].null_count == dead.num_rows
            seen += dead.num_rows
            for time, rows in at.items():
                assert comparable(store.read(as_of=time)) == sorted(rows), (name, time)
    assert seen


def test_a_result_is_what_the_topic_of_results_has_last(warehouse: Warehouse) -> None:
    compared = 0
    with warehouse.open() as state:
        for topic, parent in {
            "tumbling": "window", "hopping": "window", "sliding": "window", "sessions": "session",
            "sessions-per-record": "session", "counted": "key-value", "means": "versioned", "ids": "key-value",
            "largest": "key-value", "by-other": "key-value", "reduced-by-other": "key-value",
        }.items():  # fmt: skip
            last: dict[str, Any] = {}
            for _, _, key, value, _ in warehouse.pipeline.output(topic):
                last[repr(key)] = value
            (name,) = [
                store.name
                for store in state.stores
                if store.kind == parent and topic in _sinks_below(STORES[store.name][1].name)
            ]
            for row in state.store(name).read().to_pylist():
                windowed = {"key": row["key"], "window_start": row.get("window_start"),
                            "window_end": row.get("window_end")}  # fmt: skip
                key = windowed if "window_start" in row else row["key"]
                assert last[repr(key)] == row["value"], (topic, row)
                compared += 1
    assert compared > 20


def _sinks_below(node: str) -> set[str]:
    """The topics to which a node's results go by ``to_stream().to()`` alone."""
    nodes = [known for sub in TOPOLOGY.sub_topologies for known in sub.nodes]
    streams = [n for n in nodes if n.parents == (node,) and "TOSTREAM" in n.name]
    return {n.topic for n in nodes for stream in streams if n.parents == (stream.name,) and hasattr(n, "topic")}


def test_look_ups_and_choices_are_those_of_the_whole(warehouse: Warehouse) -> None:
    with warehouse.open() as state:
        for store in state.stores:
            for view in store.views:
                whole = store.read(view)
                names = store.keys(view)
                for row in whole.to_pylist()[:: 1 + whole.num_rows // 3]:
                    where = {name: row[name] for name in names}
                    expected = [other for other in whole.to_pylist() if all(other[n] == v for n, v in where.items())]
                    found = store.read(view, where=where).to_pylist()
                    assert sorted(map(repr, found)) == sorted(map(repr, expected)), (store, where)
                    one_name = dict(list(where.items())[:1])
                    some = [other for other in whole.to_pylist() if all(other[n] == v for n, v in one_name.items())]
                    assert sorted(map(repr, store.read(view, where=one_name).to_pylist())) == sorted(map(repr, some))
                for partition in store.partitions:
                    rows = whole.filter(pa.compute.equal(whole["partition"], partition))
                    assert store.read(view, partitions=[partition]).equals(rows)
                assert store.read(view, columns=["partition"]).equals(whole.select(["partition"]))
                if (time := store.time_column(view)) is not None:
                    times = whole[time].cast(pa.int64()).fill_null(-1)
                    for since, until in ((300, None), (None, 640), (620, 660), (650, 650)):
                        keep = pa.array([(since or -9) <= t.as_py() < (until or 1 << 60) for t in times], pa.bool_())
                        assert store.read(view, since=since, until=until).equals(whole.filter(keep)), (store, since)
                if store.kind in {"window", "session"}:
                    is_open_end = store.kind == "window" and "sliding" not in str(store._described.settings)
                    for time_ms in (600, 625, 640, 700):
                        rows = [
                            row for row in whole.to_pylist()
                            if _ms(row["window_start"]) <= time_ms < _ms(row["window_end"]) + (not is_open_end)
                        ]  # fmt: skip
                        assert store.read(view, as_of=time_ms).to_pylist() == rows


def _ms(time: Any) -> int:
    return round(time.timestamp() * 1000)


def test_a_look_up_touches_one_task(warehouse: Warehouse) -> None:
    with warehouse.open() as state:
        names = state.store("names")
        assert names.read(where={"key": "hot"}).num_rows == 1
        own = partition_for(pa.array([b"hot"]), PARTITIONS)[0]
        assert list(state._restored._there) == [f"0_{own}"]
        assert not names.read(where={"key": "nobody"}).num_rows
        assert len(state._restored._there) == PARTITIONS  # wherever a producer may have placed it


def test_several_threads_may_read(warehouse: Warehouse) -> None:
    with warehouse.open() as state, ThreadPoolExecutor(4) as pool:
        stores = [store for store in state.stores if store.kind != "punctuation"]
        tables = list(pool.map(lambda store: store.read(), stores))
        assert [table.num_rows for table in tables] == [store.read().num_rows for store in stores]


def test_nothing_stays_behind_and_nothing_works_after_close(warehouse: Warehouse) -> None:
    state = warehouse.open()
    store = state.store("names")
    assert store.read().num_rows
    folder = warehouse.folder / "local" / "inspect" / "surface"
    assert list(folder.iterdir())
    store.close()
    state.close()
    assert not list(folder.iterdir())
    with pytest.raises(ConfigurationError, match="closed"):
        store.read()


def test_refusals_say_what_there_is(warehouse: Warehouse) -> None:
    where = warehouse.folder / "warehouse", "surface"
    local = {"state_dir": warehouse.folder / "local"}
    with pytest.raises(ConfigurationError, match="no such store.*one of: .*prices.*names"):
        open_state(*where, "nothing", **local)
    with pytest.raises(ConfigurationError, match="commits 1 to 3"):
        open_state(*where, commit=4, **local)
    with pytest.raises(ConfigurationError, match="no commit yet"):
        open_state(where[0], "nobody", **local)
    with open_state(*where, "names", **local) as names:
        for refused, match in (
            ({"view": "history"}, "no view 'history'.*one of: latest"),
            ({"columns": ["nothing"]}, "no column 'nothing'.*key, value, timestamp, partition"),
            ({"where": {"value": 1}}, "cannot be looked up by 'value'.*one of: key"),
            ({"partitions": [7]}, "no partition 7"),
            ({"as_of": 5}, "as of a time"),
        ):
            with pytest.raises(ConfigurationError, match=match):
                names.batches(**refused)  # type: ignore[arg-type]
        for value in (5, None):
            with pytest.raises(InputError):
                names.batches(where={"key": value})
    with pytest.raises(ConfigurationError, match="no time"), warehouse.open() as state:
        state.store(BY_KIND["subscriptions"]).batches(since=1)


def test_global_tables_are_read_once(warehouse: Warehouse) -> None:
    assert GLOBAL_TOPICS == ("places", "tariffs")
    with warehouse.open() as state:
        for name in GLOBAL:
            store = state.store(name)
            assert store.partitions == (0,)
            keys = store.read()["key"].to_pylist()
            assert keys
            assert len(keys) == len(set(keys))
