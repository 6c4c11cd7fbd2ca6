"""The files of an Iceberg table, at a snapshot of it: those that hold its rows, with what has been deleted of them.

A source is one of::

    iceberg:prod.shop.orders                      a table of a catalog that pyiceberg is configured for
    iceberg:prod.shop.orders@3051729675574597004  at a snapshot
    iceberg:s3://lake/orders                      a folder whose metadata has numbered versions: v12.metadata.json
    iceberg:s3://lake/orders/metadata/00012-....metadata.json    any table, by its metadata

A folder with metadata is a source without ``iceberg:`` too. Which file of other folders' metadata is the newest only
their catalog knows: there may be files of commits that failed. The first load takes the rows of the snapshot, and a
later one what snapshots have added since (`statelib.ingest.sources.iceberg_history`). The version of a file in the
ledger is ``iceberg <the table's UUID> <snapshot when it was loaded> <the table>``.

Source: the Iceberg specification, "Scan Planning" and "File System Tables".
"""

from __future__ import annotations

import gzip
import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import obstore
import pyarrow as pa

from statelib.errors.kinds import ConfigurationError, HindstreamError, InputError, RetryableError
from statelib.ingest.sources.files import IcebergFile, SourceFile
from statelib.ingest.sources.iceberg_history import Changes, changes_since, tasks_at
from statelib.ingest.sources.opening import StoreInputs, is_url, local_path, path_of, split_url
from statelib.storage.clients import client
from statelib.storage.errors import mapped_errors, reason_without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyiceberg.io import FileIO
    from pyiceberg.manifest import DataFile
    from pyiceberg.schema import Schema
    from pyiceberg.table import FileScanTask, Table
    from pyiceberg.table.snapshots import Snapshot

PREFIX = "iceberg:"
_VERSION = "iceberg "
_METADATA = ".metadata.json"
_NUMBERED = re.compile(r"v(\d+)(\.gz)?\.metadata\.json(\.gz)?")
_NAMES_OF_TABLE = 3
_GZIP = b"\x1f\x8b"
_MOST_SHOWN = 3

_DEFECTS = (AssertionError, AttributeError, LookupError, NameError, TypeError)
"""What no table and no catalog is to blame for."""

_FOR_FILES = ("adls.", "client.", "gcs.", "hdfs.", "hf.", "oss.", "py-io-impl", "s3.")
"""Which of a catalog's properties open files: no others travel to workers, as the catalog's token would."""


def is_iceberg_folder(source: str, options: Mapping[str, str]) -> bool:
    """Whether there is metadata of an Iceberg table in a folder's folder ``metadata``."""
    return any(name.endswith(_METADATA) for name in _metadata_files(source, options))


def is_path(name: str) -> bool:
    """Whether what stands behind ``iceberg:`` is a folder or a file of metadata, and no table of a catalog."""
    return "/" in name or name.endswith(_METADATA) or Path(local_path(name)).is_dir()


def iceberg_files(source: str, options: Mapping[str, str], loaded: Mapping[str, tuple[int, str]]) -> list[SourceFile]:
    """The files of a table that hold rows which have not been loaded, and those that have been.

    Args:
        source: See the module's docstring.
        options: Of the object store, for tables that are no catalog's.
        loaded: By path, size and version of files that were loaded before, those of the first load first.

    Raises:
        ConfigurationError: There is no such table or snapshot, pyiceberg cannot read it, or is not installed.
        InputError: Rows that were loaded have been deleted or updated since, or the table does not tell any more.
        RetryableError: The store or the catalog did not answer.
    """
    name, snapshot_id = _parts(source)
    _check_installed(source)
    with _errors_told(source, options):
        table, properties = _opened(name, options)
        snapshot = _snapshot(table, snapshot_id, source)
        called = name if properties is not None else table.metadata.location
        known = _known(loaded, str(table.metadata.table_uuid), called, source)
        if known:
            since = int([version for _, version in known.values()][-1].split()[2])
            changes = changes_since(table, snapshot, since, known)
        else:
            changes = Changes(tasks_at(table, snapshot))
        version = f"{_VERSION}{table.metadata.table_uuid} {snapshot.snapshot_id} {called}"
        schema = _schema(table, snapshot if snapshot_id else None)
        part = _Part(table, schema, properties)
        found = [SourceFile(path, size, told) for path, (size, told) in known.items()]
        found += [
            SourceFile(
                path,
                task.file.file_size_in_bytes,
                version,
                format="parquet",
                rows=task.file.record_count,
                iceberg=part(task),
            )
            for path, task in changes.new.items()
        ]
        found += [
            SourceFile(path, file.file_size_in_bytes, version, is_rewritten=True)
            for path, file in changes.rewritten.items()
        ]
    if not found:
        step = "load it when it has some, or name a snapshot: iceberg:TABLE@SNAPSHOT_ID"
        raise ConfigurationError("the Iceberg table has no rows", source=source, next_step=step)
    return sorted(found, key=lambda file: file.path)


def _parts(source: str) -> tuple[str, int | None]:
    name = source.removeprefix(PREFIX)
    head, at, snapshot = name.rpartition("@")
    return (head, int(snapshot)) if at and snapshot.isdecimal() else (name, None)


def _check_installed(source: str) -> None:
    try:
        import pyiceberg  # noqa: F401, PLC0415 - an extra
    except ImportError:
        what, step = "pyiceberg is not installed, which reads Iceberg tables", "pip install 'hindstream[lake]'"
        raise ConfigurationError(what, source=source, next_step=step) from None


@contextmanager
def _errors_told(source: str, options: Mapping[str, str]) -> Iterator[None]:
    """Turns what pyiceberg raises, or a catalog's client under it, into an error that names the table."""
    from pyiceberg import exceptions  # noqa: PLC0415 - an extra
    from pyiceberg.utils.config import Config  # noqa: PLC0415 - an extra

    configured = Config().get_catalog_config(source.removeprefix(PREFIX).partition(".")[0]) or {}
    secrets = {**options, **{name: value for name, value in configured.items() if isinstance(value, str)}}
    try:
        yield
    except HindstreamError as error:
        raise error.placed(source=source) from error
    except (exceptions.NoSuchTableError, exceptions.NoSuchNamespaceError, exceptions.NoSuchIdentifierError):
        step = "name a table of a catalog: iceberg:CATALOG.NAMESPACE.TABLE; pyiceberg --catalog CATALOG list shows them"
        raise ConfigurationError("there is no such Iceberg table", source=source, next_step=step) from None
    except FileNotFoundError as error:
        what = f"a file of the Iceberg table is not there: {reason_without_secrets(error, secrets)}"
        step = "load the table from where it was made: its metadata has the full addresses of its files"
        raise ConfigurationError(what, source=source, next_step=step) from None
    except _DEFECTS:
        raise
    except Exception as error:  # noqa: BLE001 - clients of catalogs raise what they like
        again = (OSError, exceptions.ServerError, exceptions.ServiceUnavailableError, exceptions.TooManyRequestsError)
        kind = RetryableError if isinstance(error, again) else ConfigurationError
        what = f"the Iceberg table cannot be read: {reason_without_secrets(error, secrets)}"
        step = "check the catalog's settings: .pyiceberg.yaml and PYICEBERG_CATALOG__... in the environment"
        if "equality deletes" in str(error):
            step = "compact the table (CALL system.rewrite_data_files), or load a query of Spark's (sql:SELECT ...)"
        raise kind(what, source=source, next_step=step) from None  # its text may hold credentials


def _opened(name: str, options: Mapping[str, str]) -> tuple[Table, tuple[tuple[str, str], ...] | None]:
    """The table, and the properties that open its files; None: they are opened as other sources."""
    from pyiceberg.catalog import load_catalog  # noqa: PLC0415 - an extra

    if is_path(name):
        return _by_metadata(name, options), None
    catalog, *identifier = name.split(".")
    if len(identifier) + 1 < _NAMES_OF_TABLE:
        step = "name it iceberg:CATALOG.NAMESPACE.TABLE, or give its folder: iceberg:./FOLDER"
        raise ConfigurationError("this is no Iceberg table of a catalog", given=name, next_step=step)
    table = load_catalog(catalog).load_table(tuple(identifier))
    of_files = {name: value for name, value in table.io.properties.items() if name.startswith(_FOR_FILES)}
    return table, tuple(sorted(of_files.items()))


def _by_metadata(name: str, options: Mapping[str, str]) -> Table:
    from pyiceberg.catalog.noop import NoopCatalog  # noqa: PLC0415 - an extra
    from pyiceberg.table import StaticTable  # noqa: PLC0415 - an extra
    from pyiceberg.table.metadata import TableMetadataUtil  # noqa: PLC0415 - an extra

    io = StoreInputs(options)
    place = name if is_url(name) else local_path(name)
    location = place if name.endswith(_METADATA) else _newest_metadata(place, options)
    with io.new_input(location).open() as opened:
        content = opened.read()
    metadata = TableMetadataUtil.parse_raw(
        (gzip.decompress(content) if content.startswith(_GZIP) else content).decode()
    )
    return StaticTable(
        ("iceberg", location), metadata, location, cast("FileIO", cast("object", io)), NoopCatalog("iceberg")
    )


def _newest_metadata(folder: str, options: Mapping[str, str]) -> str:
    """The metadata of a table's newest version, if that can be told by its files.

    Raises:
        ConfigurationError: Only a catalog can tell.
    """
    files = _metadata_files(folder, options)
    below = f"{folder.rstrip('/')}/metadata"
    numbered = {int(found[1]): name for name in files if (found := _NUMBERED.fullmatch(name))}
    if numbered:
        return f"{below}/{numbered[max(numbered)]}"
    others = sorted(name for name in files if name.endswith(_METADATA))
    if not others:
        step = "check the path: the folder of an Iceberg table has a folder metadata"
        raise ConfigurationError("there is no Iceberg table", next_step=step)
    what = "only a catalog can tell which version of the Iceberg table is the newest"
    step = f"name it by its catalog (iceberg:CATALOG.NAMESPACE.TABLE), or a version: iceberg:{below}/{others[-1]}"
    raise ConfigurationError(what, next_step=step)


def _metadata_files(folder: str, options: Mapping[str, str]) -> list[str]:
    """The names in a folder's folder ``metadata``."""
    if not is_url(folder):
        path = Path(local_path(folder)) / "metadata"
        return [one.name for one in path.iterdir()] if path.is_dir() else []
    root, key = split_url(folder)
    with mapped_errors("list", folder, options):
        below = obstore.list_with_delimiter(client(root, options), f"{key.rstrip('/')}/metadata".lstrip("/"))
    return [one["path"].rpartition("/")[2] for one in below["objects"]]


def _snapshot(table: Table, snapshot_id: int | None, source: str) -> Snapshot:
    if snapshot_id is None:
        current = table.current_snapshot()
        if current is None:
            step = "load it when it has some, or name a snapshot: iceberg:TABLE@SNAPSHOT_ID"
            raise ConfigurationError("the Iceberg table has no rows", source=source, next_step=step)
        return current
    found = table.metadata.snapshot_by_id(snapshot_id)
    if found is None:
        newest = [str(one.snapshot_id) for one in table.metadata.snapshots][: -_MOST_SHOWN - 1 : -1]
        step = f"leave it out, or name one that is there: {', '.join(newest) or 'there is none'}"
        raise ConfigurationError("the Iceberg table has no such snapshot", snapshot=snapshot_id, next_step=step)
    return found


def _known(loaded: Mapping[str, tuple[int, str]], uuid: str, called: str, source: str) -> dict[str, tuple[int, str]]:
    """The files of the table that were loaded before, those of the first load first.

    Raises:
        InputError: They were those of another table of this name.
    """
    of_tables = {path: of for path, of in loaded.items() if of[1].startswith(_VERSION)}
    known = {path: of for path, of in of_tables.items() if of[1].split(maxsplit=3)[1] == uuid}
    if not known and any(version.split(maxsplit=3)[3] == called for _, version in of_tables.values()):
        what = "the Iceberg table has been made anew since it was loaded"
        raise InputError(what, source=source, next_step="load it into another topic")
    return known


def _schema(table: Table, snapshot: Snapshot | None) -> Schema:
    """The columns that the table has now; of a snapshot that was asked for, those that it had then."""
    then = None if snapshot is None or snapshot.schema_id is None else table.metadata.schema_by_id(snapshot.schema_id)
    return table.schema() if then is None else then


class _Part:
    """Tells of each data file what the table says of it."""

    def __init__(self, table: Table, schema: Schema, properties: tuple[tuple[str, str], ...] | None) -> None:
        from pyiceberg.io.pyarrow import schema_to_pyarrow  # noqa: PLC0415 - an extra
        from pyiceberg.schema import index_by_id  # noqa: PLC0415 - an extra

        self._table = table
        self._properties = properties
        self._schema = schema_to_pyarrow(schema, include_field_ids=True)
        fields = index_by_id(schema)
        scalars = {
            n: schema_to_pyarrow(field.field_type) for n, field in fields.items() if field.field_type.is_primitive
        }
        self._types: dict[int, pa.DataType] = scalars
        self._defaults = {
            n: _scalar(fields[n].initial_default, type_)
            for n, type_ in scalars.items()
            if fields[n].initial_default is not None
        }

    def __call__(self, task: FileScanTask) -> IcebergFile:
        file = task.file
        if file.file_format.value.upper() != "PARQUET":
            step = "rewrite it in Parquet, or load a query of Spark's (sql:SELECT ...)"
            what = f"a file of the Iceberg table is in {file.file_format.value}, which is not read"
            raise ConfigurationError(what, file=path_of(file.file_path), next_step=step)
        return IcebergFile(
            uri=file.file_path,
            schema=self._schema,
            name_mapping=self._table.metadata.properties.get("schema.name-mapping.default"),
            absent=tuple((self._defaults | self._partition(file)).items()),
            deletes=tuple(sorted((one.file_path, one.file_format.value) for one in task.delete_files)),
            properties=self._properties,
        )

    def _partition(self, file: DataFile) -> dict[int, pa.Scalar]:
        """The values of columns that the table is partitioned by, as they are: files that Hive wrote lack them."""
        spec = self._table.specs()[file.spec_id]
        found = {
            field.source_id: file.partition[n]
            for n, field in enumerate(spec.fields)
            if str(field.transform) == "identity" and field.source_id in self._types
        }
        return {n: _scalar(value, self._types[n]) for n, value in found.items() if value is not None}


def _scalar(value: Any, type_: pa.DataType) -> pa.Scalar:
    """A value as pyiceberg gives it; that of a default may be text."""
    if isinstance(type_, pa.BaseExtensionType):  # a UUID
        return pa.scalar(getattr(value, "bytes", value), type_.storage_type)
    try:
        return pa.scalar(value, type_)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.scalar(str(value)).cast(type_)
