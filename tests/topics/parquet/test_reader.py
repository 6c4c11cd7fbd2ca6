from __future__ import annotations

import io
from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.errors.kinds import ConfigurationError, InputError
from statelib.records.key_column import KeyColumn
from statelib.storage import Storage, row_groups
from statelib.topics.append import append_records
from statelib.topics.archive import TopicArchive
from statelib.topics.files import ArchiveFile
from statelib.topics.parquet.reader import PartitionReader
from statelib.topics.parquet.schema import topic_schema
from statelib.topics.parquet.writer import FileLimits, PartitionWriter
from tests.topics.data import SCHEMA, topic_records

SMALL = FileLimits(row_group_rows=8, file_rows=24)


def write(storage, records, attempt="a", limits=SMALL):
    with PartitionWriter(storage, SCHEMA, 0, attempt=attempt, limits=limits) as writer:
        writer.write(records)
    return list(writer.close())


def reader(storage, files, **settings):
    return PartitionReader(storage, files, SCHEMA, topic="flights", partition=0, **settings)


offsets_with_holes = st.lists(st.integers(0, 3), min_size=1, max_size=80).map(
    lambda steps: np.cumsum(np.array(steps) + 1).tolist()
)


offsets_without_holes = st.tuples(st.integers(0, 90), st.integers(1, 80)).map(
    lambda ends: list(range(sum(ends)))[ends[0] :]
)


@given(
    offsets_with_holes | offsets_without_holes,
    st.integers(0, 330),
    st.none() | st.integers(0, 330),
    st.integers(1, 100),
    st.randoms(),
)
def test_any_range_in_any_batches(offsets, start, end, batch_rows, random):
    storage = Storage("memory://")
    records = topic_records(offsets)
    files = write(storage, records)
    random.shuffle(files)
    some = reader(storage, files, start_offset=start, end_offset=end, batch_rows=batch_rows)
    batches = list(some)
    assert all(0 < batch.num_rows <= batch_rows for batch in batches)
    wanted = pc.and_(
        pc.greater_equal(records["offset"], start),
        pc.less(records["offset"], 2**62 if end is None else end),
    )
    assert some.read_all().equals(records.filter(wanted))
    assert some.read_all().equals(records.filter(wanted)), "a reader can be used again"


@pytest.mark.parametrize(
    "columns",
    [["offset"], ["timestamp"], ["key", "value.amount"], ["value.id", "value.tags"], ["value", "headers", "offset"]],
)
def test_projection(tmp_path, columns):
    storage = Storage(str(tmp_path))
    records = topic_records(range(40))
    some = reader(storage, write(storage, records), columns=columns, start_offset=3)
    table = some.read_all()
    assert table.schema == some.schema
    assert table.schema.names == [n for n in SCHEMA.names if any(c.split(".")[0] == n for c in columns)]
    rows = records.slice(3).to_pylist()
    for column in columns:
        name, _, field = column.partition(".")
        values = table[name].to_pylist()
        if field:
            values = [None if value is None else value[field] for value in values]
            assert values == [None if row[name] is None else row[name][field] for row in rows]
        else:
            assert values == [row[name] for row in rows]


NESTED = pa.struct([("at", pa.struct([("x", pa.int64()), ("y", pa.struct([("z", pa.int64())]))])), ("n", pa.int64())])
PATHS = ["value.at", "value.at.x", "value.at.y", "value.at.y.z", "value.n"]


@pytest.mark.parametrize("columns", [c for n in (1, 2, 3) for c in combinations(PATHS, n)], ids="+".join)
def test_fields_within_fields(tmp_path, columns):
    values = [{"at": {"x": 1, "y": {"z": 2}}, "n": 3}, {"at": {"x": 4, "y": None}, "n": 5}, {"at": None, "n": 6}, None]
    schema = topic_schema(pa.string(), NESTED)
    archive = TopicArchive.ensure(str(tmp_path / "t"), schema, 1)
    rows = {
        "key": ["a"] * 4,
        "value": pa.array(values, NESTED),
        "timestamp": pa.array(range(4), pa.timestamp("ms", "UTC")),
    }
    append_records(archive, pa.table(rows), attempt="t", app_id="test", app_version=1)
    archive = archive.refresh()

    def part(value, fields):
        """The value as far as the fields are asked for."""
        heads = {path.partition(".")[0] for path in fields}
        if value is None or "" in heads:
            return value
        return {
            head: part(value[head], [path.partition(".")[2] for path in fields if path.partition(".")[0] == head])
            for head in value
            if head in heads
        }

    found = archive.reader(0, columns=columns).read_all()["value"].to_pylist()
    assert found == [part(value, [column.removeprefix("value.") for column in columns]) for value in values]


def test_unknown_columns_are_refused():
    with pytest.raises(ConfigurationError, match="no column colour"):
        reader(Storage("memory://"), [], columns=["colour"])


def test_only_needed_files_and_row_groups_are_read(tmp_path, monkeypatch):
    storage = Storage(str(tmp_path))
    files = write(storage, topic_records(range(72)))
    assert len(files) == 3
    for file in (files[0], files[2]):
        storage.delete(file.path)
    groups = []
    original = pq.ParquetFile.iter_batches
    monkeypatch.setattr(
        pq.ParquetFile,
        "iter_batches",
        lambda self, *args, **settings: groups.append(settings["row_groups"]) or original(self, *args, **settings),
    )
    some = reader(storage, files, start_offset=33, end_offset=40)
    assert some.read_all()["offset"].to_pylist() == list(range(33, 40))
    assert groups == [[1]]


def damage(storage, file, how):
    path = storage.local_path(file.path)
    content = bytearray(path.read_bytes())
    if how == "missing":
        path.unlink()
    elif how == "truncated":
        path.write_bytes(content[:-10])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "footer":
        content[-6] ^= 0xFF
        path.write_bytes(content)
    elif how == "flipped bit":
        column = pq.read_metadata(path).row_group(0).column(4)
        position = column.data_page_offset + column.total_compressed_size - 1
        if column.has_dictionary_page:
            position += column.dictionary_page_offset - column.data_page_offset
        content[position] ^= 0x10
        path.write_bytes(content)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("missing", "is missing"),
        ("truncated", "bytes instead of"),
        ("empty", "bytes instead of|cannot be read"),
        ("footer", "cannot be read"),
        ("flipped bit", "cannot be read"),
    ],
)
def test_a_damaged_file_is_named(tmp_path, how, message):
    storage = Storage(str(tmp_path))
    files = write(storage, topic_records(range(30)))
    damage(storage, files[0], how)
    with pytest.raises(InputError, match=message) as error:
        reader(storage, files).read_all()
    place = {"topic": "flights", "partition": 0, "file": str(storage.local_path(files[0].path))}
    assert error.value.place == place
    assert "restore the file" in error.value.next_step


def foreign_file(storage, table, name="x.parquet", **written):
    """A file of another writer, described as the Delta log would."""
    with storage.open_output(name) as output:
        pq.write_table(table, output, **written)
    offsets = table["offset"].to_pylist()
    return ArchiveFile(
        path=name, partition=0, rows=len(offsets), size_bytes=storage.size(name), first_offset=min(offsets),
        last_offset=max(offsets), min_timestamp_ms=None, max_timestamp_ms=None,
    )  # fmt: skip


@pytest.mark.parametrize("encoded_keys", [False, True])
@pytest.mark.parametrize("indices", [pa.int8(), pa.int32()])
def test_categories_of_another_writer_are_plain_strings(indices, encoded_keys):
    storage, schema = Storage("memory://"), topic_schema(pa.string(), pa.string())
    names = pa.array(["a", "b", None, "a"])
    categories = names.dictionary_encode().cast(pa.dictionary(indices, pa.string()))
    records = topic_records([1, 2, 3, 4]).set_column(2, "key", categories).set_column(3, "value", categories)
    file = foreign_file(storage, records)
    some = PartitionReader(storage, [file], schema, topic="t", partition=0, encoded_keys=encoded_keys)
    (batch,) = some
    assert KeyColumn(batch.column("key")).plain.equals(names)
    assert batch.column("value").equals(names)
    if not encoded_keys:
        assert some.read_all().schema == schema


def test_a_row_group_of_another_writer_is_not_fetched_whole(monkeypatch):
    storage, numbers = Storage("memory://"), np.arange(1 << 20)
    records = pa.table(dict.fromkeys(("offset", "key", "value"), numbers))
    records = records.add_column(1, "timestamp", pa.array(numbers, pa.timestamp("ms", "UTC")))
    file = foreign_file(storage, records, use_dictionary=False, compression="none")
    reads, real = [], Storage.open_input

    class Recorded(io.BytesIO):
        def read(self, size=-1):
            reads.append(size)
            return super().read(size)

    def open_input(self, path, **others):
        return pa.PythonFile(Recorded(real(self, path, **others).read()), "r")

    monkeypatch.setattr(Storage, "open_input", open_input)
    for large, whole in ((1 << 16, 1), (1 << 40, 2)):
        monkeypatch.setattr(row_groups, "LARGE_GROUP_BYTES", large)
        monkeypatch.setattr(row_groups, "PIECE_BYTES", 1 << 16)
        read = PartitionReader(storage, [file], topic_schema(pa.int64(), pa.int64()), topic="t", partition=0).read_all()
        assert read["value"].to_numpy().tolist() == numbers.tolist()
        assert min(sum(size > 1 << 20 for size in reads), 2) == whole  # of offsets, to see whether they ascend
        reads.clear()


@pytest.mark.parametrize("offsets", [range(5, 45), [*range(5, 44), 46]])
def test_offsets_without_holes_are_not_read(offsets):
    storage, records = Storage("memory://"), topic_records(offsets)
    (file,) = write(storage, records, limits=FileLimits(row_group_rows=16))
    with storage.open_input(file.path) as source:
        data = bytearray(source.read())
    column = pq.read_metadata(pa.BufferReader(bytes(data))).row_group(1).column(0)
    assert column.path_in_schema == "offset"
    data[column.data_page_offset + column.total_compressed_size - 1] ^= 1
    storage.put(file.path, bytes(data))
    if offsets[-1] == 46:
        with pytest.raises(InputError, match="cannot be read"):
            reader(storage, [file]).read_all()
    else:
        assert reader(storage, [file]).read_all().equals(records)


@pytest.mark.parametrize("offsets", [[1, 1, 2], [2, 1, 2], [3, 1, 2, 1]])
def test_an_offset_that_is_there_twice(offsets):
    storage = Storage("memory://")
    file = foreign_file(storage, topic_records(offsets))
    with pytest.raises(InputError, match="do not ascend"):
        reader(storage, [file]).read_all()


@given(
    st.lists(st.integers(0, 60), min_size=1, max_size=40, unique=True),
    st.integers(1, 4),
    st.integers(0, 60),
    st.none() | st.integers(0, 60),
    st.integers(1, 20),
    st.booleans(),
)
def test_files_of_other_writers_are_read_in_the_order_of_offsets(offsets, files, start, end, batch_rows, by_offset):
    """Whatever an OPTIMIZE or ZORDER of another program has merged, and in which order it has put it."""
    storage = Storage("memory://")
    parts = [part for n in range(files) if (part := offsets[n::files])]
    written = [foreign_file(storage, topic_records(part), f"{n}.parquet") for n, part in enumerate(parts)]
    columns = ["key"] if by_offset else None
    some = reader(storage, written, start_offset=start, end_offset=end, batch_rows=batch_rows, columns=columns)
    wanted = [offset for offset in sorted(offsets) if start <= offset and (end is None or offset < end)]
    expected = topic_records(wanted)
    assert some.read_all().equals(expected.select(["key"]) if by_offset else expected)
    assert all(batch.num_rows <= batch_rows for batch in some)


def test_a_log_that_says_other_things_than_the_file():
    storage = Storage("memory://")
    file = foreign_file(storage, topic_records([1, 2, 3]))
    for change, message in (
        ({"rows": 4}, "3 records instead of 4"),
        ({"first_offset": 2}, "do not ascend"),
        ({"last_offset": 2}, "after 2"),
    ):
        with pytest.raises(InputError, match=message):
            reader(storage, [file.model_copy(update=change)]).read_all()


def test_a_record_without_offset():
    storage = Storage("memory://")
    table = topic_records([1, 2])
    file = foreign_file(storage, table)
    table = table.set_column(0, "offset", pa.array([1, None], pa.int64()))
    with storage.open_output("y.parquet") as output:
        pq.write_table(table, output)
    file = file.model_copy(update={"path": "y.parquet", "size_bytes": storage.size("y.parquet")})
    with pytest.raises(InputError, match="without an offset"):
        reader(storage, [file]).read_all()


def test_files_that_overlap():
    storage = Storage("memory://")
    files = write(storage, topic_records(range(10))) + write(storage, topic_records(range(9, 20)), "b")
    with pytest.raises(InputError, match=r"are in partition=0/0+-a\.parquet as well"):
        reader(storage, files)


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.drop_columns(["key"]),
        lambda table: table.set_column(2, "key", pa.array([1, 2])),
        lambda table: table.rename_columns(["offset", "timestamp", "key", "data", "headers"]),
        lambda table: table.set_column(3, "value", table["value"].combine_chunks().field("id")),
    ],
    ids=["no key", "another key type", "another name", "another value type"],
)
def test_a_file_with_other_columns(change):
    storage = Storage("memory://")
    file = foreign_file(storage, change(topic_records([1, 2])))
    with pytest.raises(InputError, match="other columns than the topic"):
        reader(storage, [file]).read_all()


def test_what_is_the_same_to_delta_is_cast():
    """Spark writes microseconds."""
    storage = Storage("memory://")
    table = topic_records([1, 2])
    micros = table.set_column(1, "timestamp", table["timestamp"].cast(pa.timestamp("us", "UTC")))
    assert reader(storage, [foreign_file(storage, micros)]).read_all().equals(table)
    lost = table.set_column(1, "timestamp", pa.array([1, 2], pa.timestamp("us", "UTC")))
    with pytest.raises(InputError, match=r"cannot be read.*lose data"):
        reader(storage, [foreign_file(storage, lost, "y.parquet")]).read_all()
