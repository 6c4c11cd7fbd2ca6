"""`open_state` on jobs of a few stores: types, nothing, much, and what cannot be read."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from statelib import (
    ConfigurationError,
    CorruptedDataError,
    Materialized,
    StreamsBuilder,
    open_state,
)
from statelib.commits import JobLayout, Retention, maintain
from tests.task.pipeline import Pipeline

VALUE = pa.struct(
    [
        ("at", pa.timestamp("us", "UTC")),
        ("price", pa.decimal128(12, 3)),
        ("inner", pa.struct([("name", pa.string()), ("day", pa.date32())])),
        ("list", pa.list_(pa.struct([("n", pa.int16())]))),
        ("map", pa.map_(pa.string(), pa.float64())),
        ("kind", pa.dictionary(pa.int32(), pa.string())),
        ("raw", pa.binary()),
    ]
)
KEY = pa.struct([("code", pa.string()), ("number", pa.int32())])


def tables(folder: Path, types: tuple[pa.DataType, pa.DataType], rows: list[Any]) -> Pipeline:
    """A job of two tables, one of which never gets anything."""
    builder = StreamsBuilder("tables")
    builder.table("t", Materialized.as_("kept"))
    builder.table("empty", Materialized.as_("nothing"))
    pipeline = Pipeline(folder, builder.build(), "job")
    pipeline.archive("t", rows, types, 2)
    pipeline.archive("empty", [], types, 2)
    pipeline.run()
    return pipeline


def opened(folder: Path, **choice: Any) -> Any:
    return open_state(folder / "warehouse", "job", state_dir=folder / "local", **choice)


def test_types_are_those_of_the_records(tmp_path: Path) -> None:
    full = {
        "at": datetime(2020, 1, 2, 3, 4, 5, 678, tzinfo=UTC), "price": Decimal("-12.345"),
        "inner": {"name": "é", "day": datetime(2020, 1, 1).date()}, "list": [{"n": 1}, None, {"n": None}],  # noqa: DTZ001
        "map": [("a", 0.5)], "kind": "big", "raw": b"\x00\xff",
    }  # fmt: skip
    empty = dict.fromkeys(full)
    keys = [{"code": "a", "number": 1}, {"code": None, "number": None}, {"code": "", "number": -1}]
    rows = [(keys[0], full, 10), (keys[1], empty, 20), (keys[2], full, 30), (keys[2], None, 40), (None, full, 50)]
    tables(tmp_path, (KEY, VALUE), rows)
    with opened(tmp_path) as state:
        kept = state.store("kept")
        schema = kept.schema()
        plain = [field if field.name != "kind" else pa.field("kind", pa.string()) for field in VALUE]  # as in archives
        assert (schema.field("key").type, schema.field("value").type) == (KEY, pa.struct(plain))
        assert schema.field("timestamp").type == pa.timestamp("ms", "UTC")
        found = {repr(row["key"]): row["value"] for row in kept.read().to_pylist()}
        assert found == {repr(keys[0]): full, repr(keys[1]): empty}
        for key in keys[:2]:
            (row,) = kept.read(where={"key": key}).to_pylist()
            assert repr(row["key"]) == repr(key)
        nothing = state.store("nothing")
        assert nothing.read().schema == nothing.schema()
        assert nothing.read().num_rows == 0
        assert nothing.read(where={"key": keys[0]}, columns=["value"]).num_rows == 0


def test_a_large_store_comes_in_pieces(tmp_path: Path) -> None:
    count, size = 40_000, 700
    tables(tmp_path, (pa.int64(), pa.string()), [(n, f"{n:0{size}d}", n) for n in range(count)])
    before, most, seen = pa.total_allocated_bytes(), 0, []
    with opened(tmp_path, store="kept") as kept:
        for batch in kept.batches():
            assert batch.num_rows <= 1 << 14
            most = max(most, pa.total_allocated_bytes() - before)
            seen += batch["key"].to_pylist()
            assert batch["value"][0].as_py() == f"{batch['key'][0].as_py():0{size}d}"
    assert sorted(seen) == list(range(count))
    assert most < count * size * 3 // 2, "as much as if the whole store were there"


def test_a_key_is_found_wherever_its_producer_placed_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tables(tmp_path, (pa.string(), pa.int64()), [("a", 1, 1), ("b", 2, 2)])
    with opened(tmp_path, store="kept") as kept:
        for expected in (0, 1):
            monkeypatch.setattr("statelib.snapshots.store.partition_for", lambda *_, own=expected: [own])
            assert [kept.read(where={"key": key})["value"].to_pylist() for key in "ab"] == [[1], [2]]


def test_what_is_gone_is_told(tmp_path: Path) -> None:
    pipeline = tables(tmp_path, (pa.string(), pa.int64()), [("a", 1, 1)])
    pipeline.archive("t", [("a", 2, 2)], (pa.string(), pa.int64()), 2)
    pipeline.run()
    with opened(tmp_path, commit=1) as first:
        assert first.store("kept").read()["value"].to_pylist() == [1]
    maintain(pipeline.warehouse, "job", Retention(1), now_ms=1 << 50)
    with pytest.raises(ConfigurationError, match="state of commit 1 has expired"):
        opened(tmp_path, commit=1)
    with opened(tmp_path) as second:
        assert second.store("kept").read()["value"].to_pylist() == [2]
        description = pipeline.warehouse.uri(JobLayout("job").topology(second._commit.fingerprint))
    (tmp_path / "warehouse" / description.rpartition("/warehouse/")[2]).unlink()
    with pytest.raises(ConfigurationError, match="an older release made it.*run one more slice"):
        opened(tmp_path)


def test_a_damaged_file_is_named_and_the_next_reading_takes_another(tmp_path: Path) -> None:
    tables(tmp_path, (pa.string(), pa.int64()), [(f"k{n}", n, n) for n in range(500)])
    with opened(tmp_path, store="kept") as kept:
        assert kept.read().num_rows == 500
        for file in (tmp_path / "local" / "cache" / "job").glob("*/*"):
            file.chmod(0o644)
            damaged = bytearray(file.read_bytes())
            damaged[20] ^= 1
            file.write_bytes(damaged)
        with pytest.raises(CorruptedDataError) as told:
            kept.read()
        assert told.value.place["task"] == "0_0"
        assert kept.read(partitions=[0]).num_rows + _read_at_last(kept, 1) == 500


def _read_at_last(store: Any, partition: int) -> int:
    try:
        rows: int = store.read(partitions=[partition]).num_rows
    except CorruptedDataError:
        rows = store.read(partitions=[partition]).num_rows
    return rows
