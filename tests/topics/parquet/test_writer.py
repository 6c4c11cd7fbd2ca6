from __future__ import annotations

import hashlib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.errors.kinds import ConfigurationError, InputError, InternalError
from statelib.storage import Storage
from statelib.topics.parquet.reader import PartitionReader
from statelib.topics.parquet.schema import topic_schema
from statelib.topics.parquet.writer import FileLimits, PartitionWriter, payload_bytes
from tests.topics.data import SCHEMA, batch_sizes, in_batches, topic_records, with_keys_encoded

SMALL = FileLimits(row_group_rows=16, row_group_bytes=1 << 20, file_rows=40, file_bytes=1 << 20)


def write(storage, batches, attempt="a", limits=SMALL, schema=SCHEMA):
    with PartitionWriter(storage, schema, 2, attempt=attempt, limits=limits) as writer:
        for batch in batches:
            writer.write(batch)
    return writer.close()


def test_descriptions():
    storage = Storage("memory://")
    offsets = [10, 11, 12, 20, *range(30, 80)]
    files = write(storage, [topic_records(offsets, [5, 3, None, *range(51)])])
    first, second = files
    assert first.path == "partition=2/00000000000000000010-a.parquet"
    assert (first.partition, first.rows, first.first_offset, first.last_offset) == (2, 48, 10, 73)
    assert (first.min_timestamp_ms, first.max_timestamp_ms) == (0, 44)
    assert (second.rows, second.first_offset, second.last_offset) == (6, 74, 79)
    records = topic_records(offsets)
    assert first.null_keys + second.null_keys == records["key"].null_count > 0
    assert first.null_values + second.null_values == records["value"].null_count > 0
    for file in files:
        content = storage.get(file.path)
        assert (file.size_bytes, file.sha256) == (len(content), hashlib.sha256(content).hexdigest())


def test_a_file_without_timestamps_has_no_bounds():
    (file,) = write(Storage("memory://"), [topic_records([1, 2], [None, None])])
    assert (file.min_timestamp_ms, file.max_timestamp_ms) == (None, None)


def test_nothing_written_makes_no_file():
    storage = Storage("memory://")
    assert write(storage, [topic_records([])]) == ()
    assert storage.list() == []


@given(st.data())
def test_equal_records_give_equal_bytes_however_handed_over(data):
    rows = data.draw(st.integers(1, 120))
    records = topic_records(range(rows))
    storage = Storage("memory://")
    limits = FileLimits(row_group_rows=16, row_group_bytes=data.draw(st.integers(1, 3000)), file_rows=40)
    files = [
        write(storage, in_batches(records, data.draw(batch_sizes(rows))), attempt, limits) for attempt in ("a", "b")
    ]
    files.append(write(storage, [records], "c", limits))
    encoded = [
        with_keys_encoded(batch, backwards=data.draw(st.booleans())) if data.draw(st.booleans()) else batch
        for batch in in_batches(records, data.draw(batch_sizes(rows)))
    ]
    files.append(write(storage, encoded, "d", limits))
    first, *others = ([file.model_copy(update={"path": ""}) for file in some] for some in files)
    assert all(other == first for other in others)
    tables = [pq.read_table(pa.BufferReader(storage.get(file.path)), partitioning=None) for file in files[0]]
    assert pa.concat_tables(tables).equals(records)


@given(st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=60), st.data())
def test_windowed_keys_give_equal_bytes_plain_or_encoded(keys: list[str], data: st.DataObject) -> None:
    time = pa.timestamp("ms", "UTC")
    schema = topic_schema(pa.struct([("key", pa.string()), ("window_start", time)]), pa.int64())
    rows = len(keys)

    def records(inner: pa.Array) -> pa.RecordBatch:
        key = pa.StructArray.from_arrays([inner, pa.array(range(rows), time)], ["key", "window_start"])
        columns = {"offset": range(rows), "key": key, "value": range(rows), "timestamp": pa.array(range(rows), time)}
        return pa.RecordBatch.from_pydict(columns)

    plain = pa.array(keys)
    others = pa.array(data.draw(st.permutations(["a", "b", "c", "d"])))
    encoded = pa.DictionaryArray.from_arrays(pa.array([others.to_pylist().index(key) for key in keys], "int32"), others)
    storage, files = Storage("memory://"), []
    for attempt, inner in (("a", plain), ("b", encoded)):
        batches = in_batches(pa.table(records(inner)), data.draw(batch_sizes(rows)))
        files.append(write(storage, batches, attempt, FileLimits(row_group_rows=16), schema))
    first, other = ([file.model_copy(update={"path": ""}) for file in some] for some in files)
    assert first == other
    tables = [pq.read_table(pa.BufferReader(storage.get(file.path)), partitioning=None) for file in files[1]]
    assert pa.concat_tables(tables)["key"].combine_chunks().field("key").to_pylist() == keys


def test_row_groups_are_bounded_by_bytes():
    storage = Storage("memory://")
    schema = topic_schema(pa.string(), pa.string())
    records = pa.table({
        "offset": range(64), "timestamp": [0] * 64, "key": ["k"] * 64, "value": ["x" * 1000] * 64,
    })  # fmt: skip
    limits = FileLimits(row_group_rows=8, row_group_bytes=3000, file_bytes=20_000)
    files = write(storage, [records], limits=limits, schema=schema)
    assert [file.rows for file in files] == [24, 24, 16]
    metadata = pq.read_metadata(pa.BufferReader(storage.get(files[0].path)))
    assert [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)] == [8, 8, 8]


@pytest.mark.parametrize("batches", [[[3, 2]], [[3, 3]], [[3], [3]], [[-1]], [[3], [], [1]]])
def test_offsets_must_ascend(batches):
    storage = Storage("memory://")
    with pytest.raises(InternalError, match="do not ascend"):
        write(storage, [topic_records(offsets) for offsets in batches])


def test_an_error_leaves_nothing_behind(tmp_path):
    storage = Storage(str(tmp_path))
    writer = PartitionWriter(storage, SCHEMA, 0, attempt="a", limits=SMALL)

    def fail_in_the_middle():
        with writer:
            writer.write(topic_records(range(100)))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_in_the_middle()
    assert storage.list() == []


def test_a_name_is_used_once(tmp_path):
    storage = Storage(str(tmp_path))
    (first,) = write(storage, [topic_records([1])])
    with pytest.raises(InputError, match="already"):
        write(storage, [topic_records([1])])
    assert len(storage.get(first.path)) == first.size_bytes
    with pytest.raises(ConfigurationError, match="file name"):
        PartitionWriter(storage, SCHEMA, 0, attempt="a/b")


def test_files_are_compressed_and_checksummed():
    storage = Storage("memory://")
    (file,) = write(storage, [topic_records(range(30))])
    metadata = pq.read_metadata(pa.BufferReader(storage.get(file.path)))
    group = metadata.row_group(0)
    columns = {group.column(i).path_in_schema: group.column(i) for i in range(group.num_columns)}
    assert {column.compression for column in columns.values()} == {"ZSTD"}
    assert "DELTA_BINARY_PACKED" in columns["offset"].encodings
    assert "DELTA_BINARY_PACKED" in columns["timestamp"].encodings


@given(st.integers(0, 20), st.integers(0, 20), st.integers(0, 8))
def test_payload_depends_on_values_alone(rows, start, length):
    whole = topic_records(range(rows + 30)).slice(start, length)
    for column in whole.columns:
        rebuilt = pa.array(column.to_pylist(), column.type)
        assert sum(payload_bytes(chunk) for chunk in column.chunks) == payload_bytes(rebuilt)
    (batch,) = whole.combine_chunks().to_batches() or [None]
    if batch is not None:
        assert payload_bytes(with_keys_encoded(batch)["key"]) == payload_bytes(batch["key"])


def test_many_keys_are_read_as_they_were_written():
    """More than the Parquet writer takes at once, some missing, in a row group whose dictionary is joined of two."""
    records = topic_records(range(30_000)).combine_chunks()
    halves = [records.slice(0, 17_000), records.slice(17_000)]
    (first,), (second,) = (half.combine_chunks().to_batches() for half in halves)
    encoded = [with_keys_encoded(first), with_keys_encoded(second, backwards=True)]
    storage = Storage("memory://")
    files = write(storage, encoded, limits=FileLimits())
    read = PartitionReader(storage, files, SCHEMA, topic="t", partition=2).read_all()
    assert read.equals(records)
    plain = write(storage, [records], "b", FileLimits())
    assert [file.sha256 for file in files] == [file.sha256 for file in plain]


def without_headers(records: pa.Table) -> pa.Table:
    return records.set_column(4, "headers", pa.nulls(records.num_rows, SCHEMA.field("headers").type))


def test_a_file_has_headers_from_the_first_row_group_that_has_some():
    storage, none = Storage("memory://"), without_headers(topic_records(range(10)))
    some, none_again = topic_records(range(10, 20)), without_headers(topic_records(range(20, 30)))
    limits = FileLimits(row_group_rows=10)
    files = write(storage, [none, some, none_again], limits=limits)
    columns = [pq.read_schema(pa.BufferReader(storage.get(file.path))).names for file in files]
    assert columns == [SCHEMA.names[:-1], SCHEMA.names]
    assert [file.rows for file in files] == [10, 20]
    read = PartitionReader(storage, files, SCHEMA, topic="t", partition=0).read_all()
    assert read.equals(pa.concat_tables([none, some, none_again]))


@given(st.lists(st.booleans(), min_size=1, max_size=12), batch_sizes(40))
def test_which_files_have_headers_depends_on_the_records_alone(has_headers, sizes):
    runs = [topic_records(range(5 * n, 5 * n + 5)) for n in range(len(has_headers))]
    runs = [run if has else without_headers(run) for run, has in zip(runs, has_headers, strict=True)]
    limits = FileLimits(row_group_rows=5, file_rows=20)
    at_once, in_parts = Storage("memory://"), Storage("memory://")
    records = pa.concat_tables(runs)
    files = write(at_once, [records], limits=limits)
    assert write(in_parts, in_batches(records, sizes), limits=limits) == files
    read = PartitionReader(in_parts, files, SCHEMA, topic="t", partition=0).read_all()
    assert read.equals(records)


def test_the_payload_of_a_slice_is_what_it_shows() -> None:
    whole = pa.array(["abc", "de", None, "f"])
    assert [payload_bytes(whole[i:]) for i in range(5)] == [16 + 6, 12 + 3, 8 + 1, 4 + 1, 0]
    assert payload_bytes(whole[:2]) == 8 + 5
