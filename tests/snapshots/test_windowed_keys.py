"""Stores under windowed keys are read, looked into, exported and imported with the whole key."""

from __future__ import annotations

import struct
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from statelib import Materialized, SessionWindows, StreamsBuilder, TimeWindows, Windowed, open_state
from statelib.changelog import StoreFormat, export_changelog, import_changelog
from statelib.errors.kinds import ConfigurationError
from statelib.serdes.json import JsonSerde
from statelib.stores.memory import MemoryBackend
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from statelib import StateSnapshot

NUMBERS = pa.struct([("n", pa.int64())])
TEN = TimeWindows.of_size_and_grace(timedelta(milliseconds=10), timedelta(milliseconds=50))
SESSIONS = SessionWindows.of_inactivity_gap_and_grace(timedelta(milliseconds=4), timedelta(milliseconds=50))
EVENTS = [("a", 1, 0), ("b", 2, 3), ("a", 3, 11), ("a", 4, 12), ("c", 5, 25)]
STRING = pa.string()
TIME = pa.timestamp("ms", "UTC")
KEY = pa.struct([("key", pa.string()), ("window_start", TIME), ("window_end", TIME)])


def at(time_ms: int) -> datetime:
    return datetime.fromtimestamp(time_ms / 1000, UTC)


def key(of: Any, start: int, end: int) -> dict[str, Any]:
    return {"key": of, "window_start": at(start), "window_end": at(end)}


def job(folder: Path, key_type: pa.DataType = STRING) -> Pipeline:
    """Tables and windows behind windows, in two partitions."""
    builder = StreamsBuilder("job")
    grouped = builder.stream("events").group_by_key()
    results = grouped.windowed_by(TEN).count(Materialized.as_("windows")).to_stream()
    results.to_table(materialized=Materialized.as_("table")).to_stream().to("out")
    results.group_by_key().windowed_by(SESSIONS).count(Materialized.as_("again")).to_stream().to("again-out")
    results.repartition().to_table(materialized=Materialized.as_("elsewhere")).to_stream().to("elsewhere-out")
    grouped.windowed_by(SESSIONS).count().to_stream().group_by_key().count(Materialized.as_("sessions"))
    pipeline = Pipeline(folder, builder.build())
    events = [({"n": ord(k)}, v, t) if pa.types.is_struct(key_type) else (k, v, t) for k, v, t in EVENTS]
    pipeline.archive("events", events, (key_type, pa.int64()), 2)
    pipeline.run()
    return pipeline


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateSnapshot]:
    """Of the job."""
    job(tmp_path)
    with open_state(tmp_path / "warehouse", "job", state_dir=tmp_path / "local") as opened:
        yield opened


def test_keys_show_as_topics_have_them(state: StateSnapshot) -> None:
    table = state.store("table")
    assert table.schema().field("key").type == KEY
    rows = sorted(table.read(columns=["key", "value"]).to_pylist(), key=str)
    assert rows == sorted(
        [
            {"key": key("a", 0, 10), "value": 1},
            {"key": key("a", 10, 20), "value": 2},
            {"key": key("b", 0, 10), "value": 1},
            {"key": key("c", 20, 30), "value": 1},
        ],
        key=str,
    )
    again = state.store("again").read(columns=["key", "window_start", "value"]).to_pylist()
    assert {"key": key("a", 10, 20), "window_start": at(11), "value": 2} in again


@pytest.mark.parametrize("name", ["table", "elsewhere"])
@pytest.mark.parametrize("asked", [Windowed("a", 10, 20), key("a", 10, 20), Windowed("a", at(10), at(20))])
def test_a_window_is_looked_up(state: StateSnapshot, name: str, asked: Any) -> None:
    store = state.store(name)
    assert store.read(where={"key": asked}, columns=["value"]).to_pylist() == [{"value": 2}]
    assert store.read(where={"key": Windowed("a", 20, 30)}).num_rows == 0


def test_the_windows_themselves_have_plain_keys(state: StateSnapshot) -> None:
    found = state.store("windows").read(where={"key": "a"}, columns=["window_start", "value"]).to_pylist()
    assert found == [{"window_start": at(0), "value": 1}, {"window_start": at(10), "value": 2}]


def test_changelogs_have_the_bytes_of_kafka(state: StateSnapshot) -> None:
    def keys(name: str) -> set[bytes]:
        store = state.store(name)
        batches = [batch for partition in store.partitions for batch in export_changelog(store, partition)]
        return {raw for batch in batches for raw in batch.column("key").to_pylist()}

    def times(*of: int) -> bytes:
        return struct.pack(f">{len(of)}q", *of)

    assert keys("table") == {
        b"a" + times(0), b"a" + times(10), b"b" + times(0), b"c" + times(20),
    }  # fmt: skip
    assert b"a" + times(10) + times(12, 11) in keys("again")  # the inner window, then the session: end and start
    assert b"a" + times(12, 11) in keys("sessions")


def test_what_kafka_places_otherwise_is_not_exported(state: StateSnapshot) -> None:
    store = state.store("elsewhere")

    def exported(form: StoreFormat) -> list[pa.RecordBatch]:
        return [batch for partition in store.partitions for batch in export_changelog(store, partition, form)]

    with pytest.raises(ConfigurationError, match="as the application writes it, belongs to partition"):
        exported(StoreFormat())
    assert sum(map(len, exported(StoreFormat(placed_by_key=False)))) == 4


def test_keys_in_the_applications_own_bytes_keep_their_windows(tmp_path: Path) -> None:
    job(tmp_path, NUMBERS)
    with open_state(tmp_path / "warehouse", "job", "table", state_dir=tmp_path / "local") as store:
        form = StoreFormat(key=JsonSerde(NUMBERS), placed_by_key=False)
        for partition in store.partitions:
            batches = list(export_changelog(store, partition, form))
            raws = [raw for batch in batches for raw in batch.column("key").to_pylist()]
            assert all(raw.startswith(b'{"n":') and len(raw.partition(b"}")[2]) == 8 for raw in raws)
            backend = MemoryBackend()
            described = store.described
            import_changelog(described.store, described.schema, batches, backend, form)
            with store.opened(partition) as place:
                for family in described.store.families:
                    assert list(backend.scan(family)) == list(place.backend.scan(family))
