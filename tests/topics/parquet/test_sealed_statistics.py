from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.topics.parquet.schema import TIMESTAMP
from statelib.topics.parquet.sealed_statistics import first_of_dense_offsets, timestamp_bounds

if TYPE_CHECKING:
    from pathlib import Path


def footer_of(groups: list[list[int]], unit: str = "ms") -> pq.FileMetaData:
    """Of a file with these offsets, by row group; timestamps are ten times as large, ms."""
    sink = pa.BufferOutputStream()
    schema = pa.schema([("offset", pa.int64()), ("timestamp", pa.timestamp(unit, "UTC"))])
    with pq.ParquetWriter(sink, schema) as writer:
        for offsets in groups:
            times = pa.array([10 * offset for offset in offsets], TIMESTAMP).cast(schema.field("timestamp").type)
            writer.write_table(pa.table([pa.array(offsets, pa.int64()), times], schema=schema))
    return pq.read_metadata(pa.BufferReader(sink.getvalue()))


@given(st.lists(st.lists(st.integers(-3, 12), min_size=1, max_size=4, unique=True).map(sorted), min_size=1, max_size=4))
def test_offsets_are_known_if_they_have_no_holes(groups: list[list[int]]) -> None:
    """Those of each row group ascend, as the writer sees to."""
    offsets = [offset for group in groups for offset in group]
    dense = offsets == list(range(offsets[0], offsets[0] + len(offsets)))
    assert first_of_dense_offsets(footer_of(groups), range(len(groups))) == (offsets[0] if dense else None)


def test_some_row_groups() -> None:
    footer = footer_of([[1, 2], [3, 5], [6], [7]])
    assert first_of_dense_offsets(footer, [2, 3]) == 6
    assert first_of_dense_offsets(footer, [0, 2]) is None
    assert first_of_dense_offsets(footer, [1]) is None


@pytest.mark.parametrize("unit", ["ms", "us"])
def test_bounds_of_timestamps_are_in_milliseconds(unit: str) -> None:
    footer = footer_of([[1, 2], [3, 5], [6]], unit)
    assert timestamp_bounds(footer, [0, 1, 2]) == (10, 60)
    assert timestamp_bounds(footer, [1]) == (30, 50)


def test_a_file_without_statistics_tells_nothing(tmp_path: Path) -> None:
    table = pa.table({"offset": [1, 2], "timestamp": pa.array([1, 2], TIMESTAMP)})
    pq.write_table(table, tmp_path / "f", write_statistics=False)
    footer = pq.read_metadata(tmp_path / "f")
    assert first_of_dense_offsets(footer, [0]) is None
    assert timestamp_bounds(footer, [0]) is None
