"""What is known of a file of a lake before it is read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Place:
    """Where the records of a file stand in a topic, and what is in files beside it.

    Attributes:
        partition: Their partition.
        first_offset: The offset of the first one; the others follow without gaps.
        keys: The file of their keys; None: there is none.
        headers: The file of their headers.
        is_tombstones: Whether the file itself has keys, of records without a value.
    """

    partition: int
    first_offset: int
    keys: SourceFile | None = None
    headers: SourceFile | None = None
    is_tombstones: bool = False


@dataclass(frozen=True, slots=True)
class IcebergFile:
    """What an Iceberg table says of a data file of its own, and the file does not.

    Attributes:
        uri: Its address in the table's metadata, by which deletes name it.
        schema: The table's columns, with the ids that columns of the file have too, whatever their names.
        name_mapping: Which names have which ids in a file without ids, as JSON; None: the table does not say.
        absent: By the id of a column that the file may lack, the value that all its rows have in it.
        deletes: Address and format of the files that say which of its rows have been deleted.
        properties: For pyiceberg, to open files as the table's catalog says; None: they are opened as all others.
    """

    uri: str
    schema: pa.Schema
    name_mapping: str | None
    absent: tuple[tuple[int, pa.Scalar], ...]
    deletes: tuple[tuple[str, str], ...]
    properties: tuple[tuple[str, str], ...] | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of a lake as it was when it was found.

    Attributes:
        path: Its absolute path, or its URL.
        size_bytes: Its size.
        version: What changes when its content does: the object's ETag, or the time in nanoseconds of its last change.
        place: Where its records stand in a topic, if its name tells.
        constants: Columns that all its rows have, and the value: those that a table is partitioned by, or that its
            folders tell (`statelib.ingest.sources.folders`).
        is_rewritten: Whether all its rows are in files that were loaded before, which a table has rewritten into it.
        format: Of its content, where it is known; None: the file's name says it, or what it begins with.
        rows: How many rows it has, or is a sample of, where that is known.
        options: Of the object store that it is in; None: it is in that of the sources.
        iceberg: What an Iceberg table says of it; None: it is of none.
        modified_ms: When it was written, or changed for the last time; None: it is of a table.
    """

    path: str
    size_bytes: int
    version: str
    place: Place | None = None
    constants: tuple[tuple[str, pa.Scalar], ...] = ()
    is_rewritten: bool = False
    format: Literal["parquet"] | None = None
    rows: int | None = None
    options: tuple[tuple[str, str], ...] | None = None
    iceberg: IcebergFile | None = field(default=None, compare=False)
    modified_ms: int | None = None

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.rpartition("/")[2]
