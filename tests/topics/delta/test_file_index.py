"""The index against plain loops over a list of files."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from statelib.errors.kinds import InputError
from statelib.topics.delta.file_index import FileIndex
from statelib.topics.files import ArchiveFile
from tests.effort import examples

PARTITIONS = 3
FILES = st.lists(
    st.builds(
        lambda partition, first, length, most, number: ArchiveFile(
            path=f"partition={partition}/{number}",
            partition=partition,
            rows=length,
            size_bytes=number,
            first_offset=first,
            last_offset=first + length - 1,
            min_timestamp_ms=None if most is None else 0,
            max_timestamp_ms=most,
        ),
        st.integers(0, PARTITIONS - 1),
        st.integers(0, 30),
        st.integers(1, 8),
        st.none() | st.integers(0, 20),
        st.integers(1, 99),
    ),
    max_size=12,
    unique_by=lambda file: (file.partition, file.first_offset),
)


def log_of(files: list[ArchiveFile]) -> pa.Table:
    """As deltalake gives it."""

    def timestamps(values: list[int | None]) -> pa.Array:
        return pa.array([None if v is None else 1000 * v for v in values], pa.int64()).cast(pa.timestamp("us", "UTC"))

    return pa.table(
        {
            "path": pa.array([file.path for file in files], pa.string()),
            "size_bytes": pa.array([file.size_bytes for file in files], pa.int64()),
            "partition.partition": pa.array([file.partition for file in files], pa.int32()),
            "num_records": pa.array([file.rows for file in files], pa.int64()),
            "min.offset": pa.array([file.first_offset for file in files], pa.int64()),
            "max.offset": pa.array([file.last_offset for file in files], pa.int64()),
            "min.timestamp": timestamps([file.min_timestamp_ms for file in files]),
            "max.timestamp": timestamps([file.max_timestamp_ms for file in files]),
            "modification_time": pa.array([100 * (file.size_bytes // 50) for file in files], pa.timestamp("ms", "UTC")),
        }
    )


@given(files=FILES, start=st.integers(0, 40), end=st.none() | st.integers(0, 40), timestamp=st.integers(0, 21))
@example(files=[], start=0, end=None, timestamp=0)
@examples(100, campaign=2_000)
def test_it_answers_as_a_loop_over_all_files_would(
    files: list[ArchiveFile], start: int, end: int | None, timestamp: int
) -> None:
    index = FileIndex(log_of(files), topic="t", uri="/t")
    assert index.rows == sum(file.rows for file in files)
    assert index.max_timestamp_ms() == max(
        (f.max_timestamp_ms for f in files if f.max_timestamp_ms is not None), default=None
    )
    for partition in range(PARTITIONS):
        own = sorted((f for f in files if f.partition == partition), key=lambda f: f.first_offset)
        assert index.start_offset(partition) == min((f.first_offset for f in own), default=0)
        assert index.end_offset(partition) == max((f.last_offset + 1 for f in own), default=0)
        assert index.in_range(partition, start, end) == [
            f for f in own if f.last_offset >= start and (end is None or f.first_offset < end)
        ]
        assert list(index.reaching(partition, timestamp)) == [
            f for f in own if f.max_timestamp_ms is None or f.max_timestamp_ms >= timestamp
        ]
        assert index.holds_before(partition, start, timestamp) == any(
            f.min_timestamp_ms is not None and f.min_timestamp_ms < timestamp for f in own if f.first_offset >= start
        )
        assert [index.archived_at_ms(f) for f in own] == [100 * (f.size_bytes // 50) or None for f in own]


def test_statistics_that_no_file_has_are_not_known() -> None:
    file = ArchiveFile(
        path="p", partition=0, rows=1, size_bytes=1, first_offset=0, last_offset=0, min_timestamp_ms=None,
        max_timestamp_ms=None,
    )  # fmt: skip
    index = FileIndex(log_of([file]).drop_columns(["min.timestamp", "max.timestamp"]), topic="t", uri="/t")
    assert index.in_range(0, 0, None) == [file]
    assert index.max_timestamp_ms() is None


def test_a_file_without_statistics_is_named() -> None:
    log = pa.table({"path": ["partition=0/x.parquet"], "size_bytes": [1], "partition.partition": [0]})
    with pytest.raises(InputError, match=r"no statistics.*topic flights, file s3://b/t/partition=0/x\.parquet"):
        FileIndex(log, topic="flights", uri="s3://b/t")
