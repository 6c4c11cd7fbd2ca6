"""Rows of an Iceberg table's files that were deleted are not loaded."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import DataFileContent, FileFormat
from pyiceberg.table.snapshots import Operation
from pyroaring import BitMap

from statelib.errors.kinds import ConfigurationError, InputError
from tests.ingest.iceberg import commit_deletes, commit_files, data_files, delete_rows
from tests.ingest.lake import load
from tests.ingest.sources.iceberg_orders import numbers_in, rows, table_of, topic

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.thorough


def test_rows_that_are_deleted_by_their_positions(tmp_path: Path, catalog: SqlCatalog) -> None:
    table = table_of(catalog, rows(0, 4), rows(4, 4))
    first, second = sorted(data_files(table), key=lambda file: file.lower_bounds[1])
    delete_rows(table, {first.file_path: [0, 3], second.file_path: [1]})
    delete_rows(table, {second.file_path: [2]})
    assert sorted(table.refresh().scan().to_arrow()["n"].to_pylist()) == [1, 2, 4, 7]
    load(topic(value=("n", "at")), tmp_path / "w")
    assert numbers_in(tmp_path / "w") == [1, 2, 4, 7]
    table.append(rows(8, 3))
    third = max(data_files(table), key=lambda file: file.lower_bounds[1])
    delete_rows(table, {third.file_path: [1]})
    load(topic(value=("n", "at")), tmp_path / "w")
    assert numbers_in(tmp_path / "w") == [1, 2, 4, 7, 8, 10]
    delete_rows(table, {first.file_path: [1]})
    with pytest.raises(InputError, match="deleted or updated"):
        load(topic(), tmp_path / "w")


def test_deletes_are_applied_to_rows_that_were_rewritten_since(tmp_path: Path, catalog: SqlCatalog) -> None:
    """The new rows are read from the file that they were added to, where a later one holds loaded rows as well."""
    table = table_of(catalog, rows(0, 2))
    load(topic(), tmp_path / "w")
    table.append(rows(2, 3))
    new = max(data_files(table), key=lambda file: file.lower_bounds[1])
    delete_rows(table, {new.file_path: [1]})
    left = pa.concat_tables([rows(0, 2), rows(2, 1), rows(4, 1)])
    commit_files(table, Operation.REPLACE, data_files(table), [left])
    load(topic(), tmp_path / "w")
    assert numbers_in(tmp_path / "w") == [0, 1, 2, 4]


def puffin(uri: str, positions: list[int]) -> bytes:
    """A deletion vector as the specification draws it."""
    bitmap = BitMap(positions).serialize()
    vector = b"\xd1\xd3\x39\x64" + struct.pack("<qi", 1, 0) + bitmap
    blob = struct.pack(">i", len(vector)) + vector + b"\0\0\0\0"  # nobody looks at the checksum
    footer = pa.py_buffer(
        b'{"blobs":[{"type":"deletion-vector-v1","fields":[2147483546],"snapshot-id":-1,"sequence-number":-1,'
        b'"offset":4,"length":%d,"properties":{"referenced-data-file":"%s","cardinality":"%d"}}]}'
        % (len(blob), uri.encode(), len(positions))
    ).to_pybytes()
    return b"PFA1" + blob + b"PFA1" + footer + struct.pack("<i", len(footer)) + b"\0\0\0\0PFA1"


def test_rows_that_are_deleted_by_a_deletion_vector(tmp_path: Path, catalog: SqlCatalog) -> None:
    table = table_of(catalog, rows(0, 5), rows(5, 1))
    first = min(data_files(table), key=lambda file: file.lower_bounds[1])
    path = f"{table.location()}/data/deletes.puffin"
    with table.io.new_output(path).create() as out:
        out.write(puffin(first.file_path, [0, 4]))
    commit_deletes(table, path, FileFormat.PUFFIN, 2, DataFileContent.POSITION_DELETES)
    load(topic(), tmp_path / "w")
    assert numbers_in(tmp_path / "w") == [1, 2, 3, 5]


def test_rows_that_are_deleted_by_their_values_are_refused(tmp_path: Path, catalog: SqlCatalog) -> None:
    table = table_of(catalog, rows(0, 5))
    load(topic(), tmp_path / "before")
    delete_rows(table, {data_files(table)[0].file_path: [0]}, DataFileContent.EQUALITY_DELETES)
    with pytest.raises(ConfigurationError, match="equality deletes") as caught:
        load(topic(), tmp_path / "w")
    assert "rewrite_data_files" in str(caught.value.next_step)
    with pytest.raises(InputError, match="deleted or updated"):
        load(topic(), tmp_path / "before")
