"""What is exported of a commit's state comes back as that state, however it was made, and however it is written."""

from __future__ import annotations

import json
import pickle
import struct
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from statelib import AvroSerde, Materialized, StreamsBuilder, TimeWindows, open_state
from statelib.changelog import StoreFormat, export_changelog, import_changelog
from statelib.changelog.export import RECORDS, oldest_last
from statelib.changelog.import_records import ARRIVALS
from statelib.described.description import Place
from statelib.described.view import EVERYTHING
from statelib.errors.kinds import ConfigurationError, InputError
from statelib.records.batch import NO_TIMESTAMP
from statelib.serdes import BytesSerde, StringSerde, serde_for
from statelib.serdes.json import JsonSerde
from statelib.snapshots.kinds import views_of
from statelib.stores.memory import MemoryBackend
from tests.changelog.test_rebuild import (
    IN_EACH_MODE,
    MINUTE,
    NOT_OF_RESULTS,
    OF_EACH_SORT,
    SALES,
    TYPES,
    counts,
    first_of_each_key,
    head_of,
    joined_by_a_foreign_key,
    made,
    plain_table,
    streams_outer_joined,
    suppressed_table,
    totals,
    windows,
)
from tests.effort import one_in
from tests.task.pipeline import Pipeline
from tests.task.test_process import CLICKS
from tests.task.test_process import topology as everything

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from statelib.documents.manifests import Commit
    from statelib.snapshots import StateSnapshot, StoreSnapshot

pytestmark = pytest.mark.thorough

DAY = timedelta(days=1)
Families = dict[str, list[tuple[bytes, bytes]]]

AVERAGE = pa.struct([("seen", pa.int64()), ("total", pa.float64()), ("of", pa.int64())])
REFUSED = ("deduplication", "foreign-key-answers", "punctuation")


def average_of(states: pa.StructArray) -> pa.StructArray:
    return pa.StructArray.from_arrays(states.flatten(), fields=list(AVERAGE))


def state_of(averages: pa.StructArray) -> pa.StructArray:
    return pa.StructArray.from_arrays(averages.flatten(), names=["n", "mean.sum", "mean.count"])


def form_of(store: StoreSnapshot) -> StoreFormat:
    """Structs as JSON, all else as Kafka has it."""
    value = store.described.type("value")
    if store.kind == "held-records":
        left, right = (JsonSerde(field.type) for field in store.described.type("row"))
        return StoreFormat(value=left, right_value=right)
    if "aggregator" in store.described.settings and pa.types.is_struct(value) and "mean" in {f.name for f in value}:
        return StoreFormat(value=JsonSerde(AVERAGE), to_live=average_of, from_live=state_of)
    return StoreFormat(value=JsonSerde(value)) if pa.types.is_struct(value) else StoreFormat()


def replayed(directory: Path, build: Callable[[StreamsBuilder], None], *ends: int | None, **settings: Any) -> Pipeline:
    pipeline = Pipeline(directory, made(build), **settings)
    pipeline.archive("sales", SALES, TYPES, partitions=2)
    for end in ends:
        pipeline.run(end)
    return pipeline


def opened(directory: Path) -> StateSnapshot:
    return open_state(directory / "warehouse", "job", state_dir=directory / "read")


def shares(state: StateSnapshot) -> Iterator[tuple[StoreSnapshot, int]]:
    for store in state.stores:
        if store.kind not in REFUSED:
            yield from ((store, partition) for partition in store.partitions)


def came_back(
    store: StoreSnapshot, partition: int, form: StoreFormat, commit: Commit, batches: list[pa.RecordBatch]
) -> MemoryBackend:
    described, backend = store.described, MemoryBackend()
    clocks = commit.tasks[f"{described.store.sub_topology}_{partition}"].position.clocks.get(described.store.node, {})
    imported = import_changelog(
        described.store,
        described.schema,
        batches,
        backend,
        form,
        clock_ms=clocks.get("store_time", NO_TIMESTAMP),
        clocks=clocks,
        semantics=described.semantics,
    )
    assert imported.records == sum(map(len, batches))
    return backend


def without_update_times(families: Families) -> Families:
    """A suppression buffer without when keys were updated by stream time: that is only measured, and no log has it."""

    def without(key: bytes, value: bytes) -> bytes:
        return value[:8] + bytes(8) + value[16:] if len(value) > 32 and len(key) > 1 else value

    return {family: [(key, without(key, value)) for key, value in rows] for family, rows in families.items()}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("build", "semantics"), one_in(4, ((build, mode) for build, mode in IN_EACH_MODE if build not in NOT_OF_RESULTS))
)
def test_what_was_exported_comes_back(tmp_path: Path, build: Callable[[StreamsBuilder], None], semantics: str) -> None:
    pipeline = replayed(tmp_path, build, 5 * MINUTE, 6 * MINUTE, None, semantics=semantics)
    stored, commit = pipeline.state(), head_of(pipeline)
    with opened(tmp_path) as state:
        for store, partition in shares(state):
            if store.kind in ("subscriptions", "held-records"):
                continue
            form = form_of(store)
            batches = list(export_changelog(store, partition, form))
            assert all(batch.schema == RECORDS for batch in batches)
            backend = came_back(store, partition, form, commit, batches)
            assert_same(store, partition, backend, stored[f"{store.described.store.sub_topology}_{partition}"])
            assert sum(map(len, batches)) > 0


def assert_same(store: StoreSnapshot, partition: int, backend: MemoryBackend, stored: Families) -> None:
    """What came back is what was stored, as far as a log can tell."""
    wanted = {family: stored[family] for family in store.described.store.families}
    found = {family: list(backend.scan(family)) for family in wanted}
    match store.kind:
        case "versioned":  # what is out of retention goes segment by segment, and may be there yet
            assert found[f"{store.name}.latest"] == wanted[f"{store.name}.latest"]
            assert rows_of(store, "history", Place(backend, {}, -1)) == history_in(store, partition)
        case "suppression-buffer":
            assert without_update_times(found) == without_update_times(wanted)
        case _:
            assert found == wanted


def rows_of(store: StoreSnapshot, view: Any, place: Place) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for raw in views_of(store.described)[view].scan(place, EVERYTHING):
        rows += pa.table({name: pa.array(column) for name, column in raw.items()}).to_pylist()
    return rows


def history_in(store: StoreSnapshot, partition: int) -> list[dict[str, Any]]:
    with store.opened(partition) as place:
        return rows_of(store, "history", place)


@pytest.mark.thorough
@pytest.mark.parametrize("build", OF_EACH_SORT, ids=lambda build: build.__name__)
def test_slices_batches_and_memory_do_not_matter(tmp_path: Path, build: Callable[[StreamsBuilder], None]) -> None:
    replayed(tmp_path / "one", build, None)
    many = [MINUTE, 5 * MINUTE, 9 * MINUTE, None]
    replayed(tmp_path / "many", build, *many, batch_records=17, memory_budget_bytes=1 << 10)
    exported = []
    for directory in (tmp_path / "one", tmp_path / "many"):
        with opened(directory) as state:
            records = [list(export_changelog(store, partition, form_of(store))) for store, partition in shares(state)]
            exported.append([pa.Table.from_batches(batches, RECORDS) for batches in records])
    assert exported[0] == exported[1]


def test_stores_of_processors_come_back(tmp_path: Path) -> None:
    """In the bytes of the job's serdes, which are taken to be the application's."""
    pipeline = Pipeline(tmp_path, everything())
    pipeline.archive("clicks", CLICKS, (pa.string(), pa.string()))
    pipeline.run(None)
    stored, commit = pipeline.state(), head_of(pipeline)
    with opened(tmp_path) as state:
        kinds = set()
        for store, partition in shares(state):
            batches = list(export_changelog(store, partition))
            backend = came_back(store, partition, StoreFormat(), commit, batches)
            task = stored[f"{store.described.store.sub_topology}_{partition}"]
            if store.kind != "versioned":
                assert {f: list(backend.scan(f)) for f in store.described.store.families} == {
                    f: task[f] for f in store.described.store.families
                }
            kinds.add(store.kind)
        assert kinds == {"key-value", "versioned", "window", "session"}


def test_another_serde_writes_other_bytes_that_come_back(tmp_path: Path) -> None:
    """Keys as JSON, which lie elsewhere by their bytes: so the application's partitioner has to be another."""
    pipeline = replayed(tmp_path, counts, None)
    stored, commit = pipeline.state(), head_of(pipeline)
    form = StoreFormat(key=QuotedSerde(), value=serde_for(pa.int32()), placed_by_key=False)
    with opened(tmp_path) as state:
        store = state.store("s")
        for partition in store.partitions:
            batches = list(export_changelog(store, partition, form))
            plain = list(export_changelog(store, partition))
            assert [row["key"] for row in rows_in(batches)] == [b'"%s"' % row["key"] for row in rows_in(plain)]
            assert [row["value"] for row in rows_in(batches)] == [row["value"][4:] for row in rows_in(plain)]
            backend = came_back(store, partition, form, commit, batches)
            task = stored[f"0_{partition}"]
            assert list(backend.scan("s")) == task["s"]


class QuotedSerde(StringSerde):
    """Strings as JSON has them."""

    def serialize(self, values: pa.Array) -> pa.BinaryArray:
        return pc.binary_join_element_wise('"', values, '"', "").cast(pa.binary())

    def deserialize(self, data: pa.BinaryArray) -> pa.Array:
        return pc.utf8_trim(data.cast(pa.string()), '"')

    def describe(self) -> dict[str, object]:
        return {"serde": "quoted"}


def rows_in(batches: list[pa.RecordBatch]) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch.to_pylist()]


def test_an_aggregate_is_written_as_results_or_as_a_function_makes_it(tmp_path: Path) -> None:
    replayed(tmp_path, totals, None)
    with opened(tmp_path) as state:
        store = state.store("s")
        shown = store.read(partitions=[0]).to_pylist()
        results = JsonSerde(store.described.type("value"))
        (row,) = rows_in(list(export_changelog(store, 0, StoreFormat(value=results))))
        assert results.deserialize(pa.array([row["value"]])).to_pylist() == [shown[0]["value"]]
        assert (row["key"], row["timestamp"]) == (b"k4", round(shown[0]["timestamp"].timestamp() * 1000))
        (row,) = rows_in(list(export_changelog(store, 0, form_of(store))))
        (average,) = JsonSerde(AVERAGE).deserialize(pa.array([row["value"]])).to_pylist()
        assert average["total"] / average["of"] == shown[0]["value"]["mean"]
        assert average["seen"] == shown[0]["value"]["n"]


@pytest.mark.parametrize("function", ["mean", "max"])
def test_what_is_null_for_the_application_is_not_in_its_store(tmp_path: Path, function: str) -> None:
    """Of a window without amounts the state is there, its result is null; to Kafka Streams a put of null deletes."""

    def build(builder: StreamsBuilder) -> None:
        windowed = builder.stream("sales").group_by_key().windowed_by(TimeWindows.of_size_with_no_grace(DAY))
        getattr(windowed, function)("amount", Materialized.as_("s")).to_stream().to("out")

    pipeline = Pipeline(tmp_path, made(build))
    sales = [("a", {"amount": None}, 1), ("a", {"amount": 4}, 2), ("b", {"amount": None}, 3)]
    pipeline.archive("sales", sales, TYPES)
    pipeline.run(None)
    with opened(tmp_path) as state:
        shown = state.store("s").read().to_pylist()
        records = rows_in(list(export_changelog(state.store("s"), 0)))
    assert [(row["key"], row["value"]) for row in shown] == [("a", 4), ("b", None)]
    four = struct.pack(">d" if function == "mean" else ">q", 4)
    assert [(row["key"][:1], row["value"], row["timestamp"]) for row in records] == [(b"a", four, 2)]


def test_values_may_be_in_avro(tmp_path: Path) -> None:
    pipeline = replayed(tmp_path, windows, None)
    fields = [{"name": name, "type": ["null", "long"]} for name in ("n", "sum")]
    form = StoreFormat(value=AvroSerde(json.dumps({"type": "record", "name": "Sales", "fields": fields})))
    stored, commit = pipeline.state(), head_of(pipeline)
    with opened(tmp_path) as state:
        store = state.store("s")
        for partition in store.partitions:
            batches = list(export_changelog(store, partition, pickle.loads(pickle.dumps(form))))
            assert_same(store, partition, came_back(store, partition, form, commit, batches), stored[f"0_{partition}"])


def test_what_kafka_has_no_bytes_for_has_to_be_declared(tmp_path: Path) -> None:
    replayed(tmp_path, plain_table, None)
    with opened(tmp_path) as state, pytest.raises(ConfigurationError, match=r"struct.*store s.*StoreFormat\(value="):
        export_changelog(state.store("s"), 0)
    replayed(tmp_path / "w", windows, None)
    with opened(tmp_path / "w") as state:
        with pytest.raises(ConfigurationError, match=r"values, whose type is struct<n: int64, sum: int64>.*store s"):
            export_changelog(state.store("s"), 0)
        with pytest.raises(ConfigurationError, match="there is no partition 7"):
            export_changelog(state.store("s"), 7)
        wrong = export_changelog(state.store("s"), 0, StoreFormat(value=JsonSerde(pa.struct([("m", pa.int64())]))))
        with pytest.raises(ConfigurationError, match="but struct<m: int64> is needed"):
            list(wrong)
        with pytest.raises(ConfigurationError, match="no serde for the values that it converts"):
            export_changelog(state.store("s"), 0, StoreFormat(to_live=average_of))


def nothing(states: pa.Array) -> pa.Array:
    return pa.nulls(len(states), pa.string())


def test_a_function_must_not_delete(tmp_path: Path) -> None:
    replayed(tmp_path, totals, None)
    with opened(tmp_path) as state, pytest.raises(InputError, match="to_live returned null"):
        list(export_changelog(state.store("s"), 0, StoreFormat(value=StringSerde(), to_live=nothing)))


def test_results_that_do_not_tell_the_state_need_a_function(tmp_path: Path) -> None:
    pipeline = replayed(tmp_path, totals, None)
    with opened(tmp_path) as state:
        store = state.store("s")
        form = StoreFormat(value=JsonSerde(store.described.type("value")))
        batches = list(export_changelog(store, 0, form))
        with pytest.raises(ConfigurationError, match=r"cannot be computed from its results.*from_live"):
            came_back(store, 0, form, head_of(pipeline), batches)
        bad = [batch.set_column(1, "value", pa.array([b"{"], pa.binary())) for batch in batches]
        with pytest.raises(InputError, match="a value cannot be decoded"):
            came_back(store, 0, form_of(store), head_of(pipeline), bad)


@pytest.mark.parametrize("build", [counts, suppressed_table], ids=lambda build: build.__name__)
def test_a_key_that_belongs_elsewhere_is_refused(tmp_path: Path, build: Callable[[StreamsBuilder], None]) -> None:
    """Keys would lie elsewhere by their declared bytes: an application would not look for them there."""
    replayed(tmp_path, build, None)
    with opened(tmp_path) as state:
        store = state.stores[-1]
        form = StoreFormat(key=QuotedSerde(), value=form_of(store).value)
        everything_of = (batch for partition in store.partitions for batch in export_changelog(store, partition, form))
        with pytest.raises(ConfigurationError, match=r"belongs to partition [01] of 2.*placed_by_key=False"):
            list(everything_of)


@pytest.mark.parametrize(
    ("build", "step"),
    [
        (first_of_each_key, "KIP-655 never came"),
        (joined_by_a_foreign_key, "has no such store"),
    ],
)
def test_other_kinds_are_refused(tmp_path: Path, build: Callable[[StreamsBuilder], None], step: str) -> None:
    replayed(tmp_path, build, None)
    with opened(tmp_path) as state:
        refused = [store for store in state.stores if store.kind in REFUSED]
        assert refused
        for store in refused:
            with pytest.raises(ConfigurationError, match=step):
                export_changelog(store, 0)


def test_a_global_table_is_refused(tmp_path: Path) -> None:
    builder = StreamsBuilder("job")
    table = builder.global_table("sales", Materialized.as_("g"))
    builder.stream("others").left_join(table, "key", "right.amount").to("out")
    pipeline = Pipeline(tmp_path, builder.build())
    for topic in ("sales", "others"):
        pipeline.archive(topic, SALES, TYPES, partitions=2)
    pipeline.run(None)
    with opened(tmp_path) as state, pytest.raises(ConfigurationError, match="a global table has no changelog"):
        export_changelog(state.store("g"), 0)


def test_held_records_are_lists_of_values(tmp_path: Path) -> None:
    """As ``ListValueStore`` has them; what Kafka makes of them is in ``tests/kafka``."""
    replayed(tmp_path, streams_outer_joined, None, semantics="kafka-4.3")
    with opened(tmp_path) as state:
        (store,) = [store for store in state.stores if store.kind == "held-records"]
        with pytest.raises(ConfigurationError, match=r"StoreFormat\(value=JsonSerde"):
            export_changelog(store, 0)
        with pytest.raises(ConfigurationError, match=r"StoreFormat\(right_value=JsonSerde"):
            export_changelog(store, 0, StoreFormat(value=form_of(store).value))
        shown = store.read().to_pylist()
        records = [r for p in store.partitions for r in rows_in(list(export_changelog(store, p, form_of(store))))]
        for row, record in zip(shown, records, strict=True):  # no two of one key, side and time
            time, side = struct.unpack_from(">qB", record["key"])
            strategy, count, length, side_of_entry = struct.unpack_from(">BiiB", record["value"])
            assert (strategy, count, record["timestamp"]) == (1, 1, time)
            assert side == side_of_entry == (row["side"] == "left")
            assert record["key"][9:] == row["key"].encode()
            assert json.loads(record["value"][10 : 9 + length]) == row[row["side"]]
        assert len(shown) > 1


def test_subscriptions_do_not_come_back(tmp_path: Path) -> None:
    pipeline = replayed(tmp_path, joined_by_a_foreign_key, None)
    with opened(tmp_path) as state:
        (store,) = [store for store in state.stores if store.kind == "subscriptions"]
        with pytest.raises(ConfigurationError, match="cannot be restored from Kafka Streams"):
            came_back(store, 0, form_of(store), head_of(pipeline), [])


def test_old_versions_of_the_buffer_are_refused(tmp_path: Path) -> None:
    pipeline = replayed(tmp_path, suppressed_table, None)
    with opened(tmp_path) as state:
        store = state.stores[-1]
        batches = list(export_changelog(store, 0, form_of(store)))
        bare = [batch.set_column(3, RECORDS.field(3), pa.nulls(len(batch), RECORDS.field(3).type)) for batch in batches]
        with pytest.raises(InputError, match="no header v = 03"):
            came_back(store, 0, form_of(store), head_of(pipeline), bare)


def test_a_format_can_be_sent_to_workers() -> None:
    form = StoreFormat(key=BytesSerde(), value=JsonSerde(AVERAGE), to_live=average_of, from_live=state_of)
    assert pickle.loads(pickle.dumps(form)) == form
    assert ARRIVALS == 1 << 31


@pytest.mark.parametrize("at_once", [1, 2, 3, 100])
def test_the_oldest_record_of_windows_comes_last(at_once: int) -> None:
    times = [5, 3, 8, 3, 1, 9, 1, 4]
    records = pa.RecordBatch.from_pydict({"key": [f"{n}" for n in range(len(times))], "timestamp": times})
    batches = [records.slice(start, at_once) for start in range(0, len(times), at_once)]
    moved = [row for batch in oldest_last(batches) for row in batch.to_pylist()]
    assert [(row["key"], row["timestamp"]) for row in moved] == [
        ("0", 5), ("2", 8), ("3", 3), ("1", 3), ("5", 9), ("6", 1), ("7", 4), ("4", 1)
    ]  # fmt: skip
    assert list(oldest_last([])) == []
