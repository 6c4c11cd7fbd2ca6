"""Iceberg tables for tests, written by pyiceberg itself; and what only other writers do to tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io.pyarrow import parquet_file_to_data_file
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestContent, ManifestWriterV2
from pyiceberg.table.snapshots import Operation, Summary
from pyiceberg.typedef import Record
from pyiceberg.utils.config import Config

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import pytest
    from pyiceberg.table import Table


def catalog_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> SqlCatalog:
    """A catalog named ``lake``, configured by the environment as a user would, with the namespace ``shop``."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in environment_of(folder).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())  # it reads the environment when it is imported
    catalog = load_catalog("lake")
    assert isinstance(catalog, SqlCatalog)
    catalog.create_namespace_if_not_exists("shop")
    return catalog


def environment_of(folder: Path) -> dict[str, str]:
    """What configures the catalog of `catalog_in`."""
    return {
        "PYICEBERG_CATALOG__LAKE__URI": f"sqlite:///{folder}/catalog.db",
        "PYICEBERG_CATALOG__LAKE__WAREHOUSE": f"file://{folder}/tables",
    }


def data_files(table: Table) -> list[DataFile]:
    """The files of the table's newest snapshot, by their paths."""
    return sorted((task.file for task in table.refresh().scan().plan_files()), key=lambda file: file.file_path)


def commit_files(
    table: Table, operation: Operation, removed: Sequence[DataFile] = (), added: Sequence[pa.Table] = ()
) -> None:
    """A snapshot of an operation, with files that come and go: as engines rewrite and overwrite tables."""
    table.refresh()
    with table.transaction() as transaction, transaction.update_snapshot().overwrite() as update:
        of_overwrite = update._summary
        update._summary = lambda given: _summary_of(of_overwrite(given), operation)  # it knows no REPLACE
        for file in removed:
            update.delete_data_file(file)
        for n, rows in enumerate(added):
            path = f"{table.location()}/data/{operation.value}-{len(table.snapshots())}-{n}.parquet"
            with table.io.new_output(path).create() as out:
                pq.write_table(rows.cast(table.schema().as_arrow()), out)
            update.append_data_file(parquet_file_to_data_file(table.io, table.metadata, path))


def _summary_of(summary: Summary, operation: Operation) -> Summary:
    return Summary(operation=operation, **summary.additional_properties)


def delete_rows(
    table: Table, positions: Mapping[str, Sequence[int]], content: DataFileContent = DataFileContent.POSITION_DELETES
) -> None:
    """A snapshot that deletes rows of files by their positions, as merge-on-read engines do."""
    table.refresh()
    path = f"{table.location()}/data/deletes-{len(table.snapshots())}.parquet"
    rows = [{"file_path": uri, "pos": n} for uri in sorted(positions) for n in positions[uri]]
    with table.io.new_output(path).create() as out:
        pq.write_table(pa.Table.from_pylist(rows), out)
    commit_deletes(table, path, FileFormat.PARQUET, len(rows), content)


def commit_deletes(table: Table, path: str, file_format: FileFormat, count: int, content: DataFileContent) -> None:
    """A snapshot with one more file of deletes."""
    file = DataFile.from_args(
        content=content,
        file_path=path,
        file_format=file_format,
        partition=Record(),
        record_count=count,
        file_size_in_bytes=len(table.io.new_input(path)),
        equality_ids=[1] if content == DataFileContent.EQUALITY_DELETES else None,
    )
    file.spec_id = table.spec().spec_id
    with table.transaction() as transaction, transaction.update_snapshot().overwrite() as update:
        update._operation = Operation.DELETE
        update.new_manifest_writer = lambda spec: _ManifestOfDeletes(
            spec, table.schema(), update.new_manifest_output(), update.snapshot_id, update._compression
        )
        update.append_data_file(file)


class _ManifestOfDeletes(ManifestWriterV2):
    """Pyiceberg writes none itself."""

    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}
