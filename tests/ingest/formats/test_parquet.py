"""Row groups of any size: the rows are the same, and none is held whole."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import numpy as np
import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from statelib.ingest.formats import parquet
from statelib.ingest.sources.files import SourceFile
from statelib.storage import row_groups
from statelib.storage.clients import client

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

BUCKET = "warehouse"
MIB = 1 << 20


def written(path: Path, rows: int, row_group_size: int) -> pa.Table:
    random = np.random.default_rng(1)
    values = {"n": np.arange(rows), "x": random.random(rows), "text": random.integers(0, 1 << 60, rows).astype(str)}
    table = pa.table({**values, "list": pa.array([[n, n + 1] for n in range(rows)])} if rows < MIB else values)
    pq.write_table(table, path, compression="none", use_dictionary=False, row_group_size=row_group_size)
    return table


def read(path: str, size_bytes: int, options: Mapping[str, str]) -> pa.Table:
    return pa.Table.from_batches(
        [rows.columns for rows in parquet.parquet_rows(SourceFile(path, size_bytes, ""), options)]
    )


@pytest.mark.parametrize("row_group_size", [1_000, 300_000])
def test_rows_read_piece_by_piece_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row_group_size: int
) -> None:
    table = written(tmp_path / "a.parquet", 200_000, row_group_size)
    size_bytes = (tmp_path / "a.parquet").stat().st_size
    for large in (0, 1 << 40):
        monkeypatch.setattr(row_groups, "LARGE_GROUP_BYTES", large)
        assert read(str(tmp_path / "a.parquet"), size_bytes, {}).combine_chunks().equals(table)


def test_rows_in_an_object_store_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, s3_options: Mapping[str, str]
) -> None:
    table = written(tmp_path / "a.parquet", 50_000, 50_000)
    data, name = (tmp_path / "a.parquet").read_bytes(), f"{uuid.uuid4().hex}.parquet"
    obstore.put(client(f"s3://{BUCKET}", s3_options), name, data)
    monkeypatch.setattr(row_groups, "LARGE_GROUP_BYTES", 0)
    monkeypatch.setattr(row_groups, "PIECE_BYTES", 1 << 14)
    assert read(f"s3://{BUCKET}/{name}", len(data), s3_options).combine_chunks().equals(table)


def test_a_row_group_is_not_held_whole(tmp_path: Path) -> None:
    written(tmp_path / "a.parquet", 4 * MIB, 4 * MIB)
    size_bytes = (tmp_path / "a.parquet").stat().st_size
    assert size_bytes > 140 * MIB
    before, most = pa.total_allocated_bytes(), 0
    for _ in parquet.parquet_rows(SourceFile(str(tmp_path / "a.parquet"), size_bytes, ""), {}):
        most = max(most, pa.total_allocated_bytes() - before)
    assert most < 48 * MIB
