"""Plans a load: which files are new, what their fields are, and how rows become records. Nothing is written."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pyarrow as pa

from statelib.commits.archives import open_archive_if_present
from statelib.errors.counted import counted
from statelib.errors.kinds import ConfigurationError, InputError
from statelib.ingest.envelopes import placed
from statelib.ingest.envelopes.contents import Contents
from statelib.ingest.envelopes.debezium import is_debezium
from statelib.ingest.envelopes.kcat import BYTEWISE
from statelib.ingest.fields import check_declared, has_rows, united_fields
from statelib.ingest.formats.csv import CsvDialect
from statelib.ingest.formats.read import FileReader
from statelib.ingest.lake_rows import LakeReader
from statelib.ingest.layout import laid_out
from statelib.ingest.ledger import Ledger
from statelib.ingest.new_files import known_as, new_files
from statelib.ingest.record_shape import record_shape, types_in
from statelib.ingest.sources.find import find_files
from statelib.ingest.sources.folders import OF_FILES, with_file_fields, with_folder_fields
from statelib.ingest.values.deserializers import REGISTRY, deserializer
from statelib.ingest.values.fields import OF_FILE, columns_in
from statelib.ingest.values.types import type_named

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from statelib.ingest.ledger import IngestedFile
    from statelib.ingest.records import RecordShape
    from statelib.ingest.sources.files import SourceFile
    from statelib.ingest.sources.queries import RunQuery
    from statelib.job.lake_topic import LakeTopic, Layout
    from statelib.storage import Storage
    from statelib.topics.archive import TopicArchive


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """What a load is going to do; travels to workers but for the archive.

    Attributes:
        topic: What was asked for.
        files: The new files, ordered by path.
        rewritten: Files that hold rows which had been loaded, as the ledger is going to know them.
        known: How many files were loaded before.
        moved: How many of these were loaded under another path or time.
        reader: Reads them.
        shape: Makes records of their rows.
        schema: The fields of all of them, as far as files tell beforehand.
        timestamps: How timestamps are read, in words.
    """

    topic: LakeTopic
    files: tuple[SourceFile, ...]
    rewritten: tuple[IngestedFile, ...]
    known: int
    moved: int
    reader: LakeReader
    shape: RecordShape
    schema: pa.Schema
    timestamps: str

    @property
    def size_bytes(self) -> int:
        """Of all new files."""
        return sum(file.size_bytes for file in self.files)


def plan_load(
    topic: LakeTopic, warehouse: Storage, source_options: Mapping[str, str], run_query: RunQuery | None = None
) -> tuple[LoadPlan | None, TopicArchive | None, Ledger]:
    """Plans a load.

    Args:
        topic: What is asked for.
        warehouse: The warehouse.
        source_options: Of the object store that the files are in.
        run_query: Gives the result of a query among the sources; None: nobody here can.

    Returns:
        The plan (None: no new file has a row), the newest version of the archive if there is one, and its ledger.

    Raises:
        ConfigurationError: The files do not go together with each other, with the archive, or with what was asked for.
        InputError: A file cannot be read, or has changed since it was loaded.
        RetryableError: A store did not answer.
    """
    archive = open_archive_if_present(warehouse, topic.archive_name)
    if archive is not None and topic.partitions not in {None, archive.partitions}:
        what = f"the topic has {counted(archive.partitions, 'partition')}, not {topic.partitions}"
        raise ConfigurationError(what, topic=topic.name, next_step="leave --partitions out, or load another topic")
    ledger = Ledger(warehouse, topic.archive_name, archive)
    dialect = CsvDialect(topic.delimiter, topic.encoding, topic.columns, topic.decimal_separator)
    reader = FileReader(source_options, topic.format, dialect)
    before = {file.path: (file.size_bytes, file.version) for file in ledger.known().values()}
    there = find_files(topic.sources, source_options, before, run_query)
    layout, found = laid_out(topic, [file for file in there if not file.is_rewritten], reader, before)
    asked = _columns_asked(topic)
    names_count = not asked.isdisjoint(OF_FILES)
    files, again = new_files(found, ledger.known(), source_options, names_count=names_count, topic=topic.name)
    if not files:
        return None, archive, ledger
    _check_timezone(topic)
    declared = {name: type_named(given) for name, given in topic.types.items()}
    had = types_in(archive, topic)
    given = {**had, **declared}
    lake = _reader(topic, layout, reader)
    if lake.has_plain_rows:
        reader = replace(reader, types=given, fixed=frozenset(given), declared=frozenset(declared))
        lake = replace(lake, files=reader)
    files = _with_what_paths_tell(asked, lake, files, given)
    schema, types, mixed = united_fields(lake, files, given, had or declared)
    if archive is None:
        check_declared(topic, schema, reader, files)
    if lake.has_plain_rows:
        _check_no_name_is_reserved(schema, lake, files)
        lake = replace(lake, files=replace(lake.files, types=types, declared=lake.files.declared | mixed))
    lake = replace(lake, contents=replace(lake.contents, types=types))
    told = [field for field in schema if not placed.is_beside(field.name)]
    if lake.contents.reads_bytes and all(pa.types.is_null(field.type) for field in told):
        _check_some_are_read(lake, files, topic)
    if not schema.names and not has_rows(lake, files):
        return None, archive, ledger
    try:
        shape, timestamps = record_shape(topic, lake, files, schema, archive)
    except ConfigurationError as error:
        if topic.envelope == "debezium" or not is_debezium(schema):
            raise
        step = "if they are Debezium's changes of a database's rows: --envelope debezium"
        raise ConfigurationError(f"{error.what}; rows have before and after", next_step=step, **error.place) from None
    plan = LoadPlan(
        topic=topic,
        files=tuple(files),
        rewritten=(*again, *(known_as(file) for file in there if file.is_rewritten)),
        known=len(found) - len(files),
        moved=len(again),
        reader=lake,
        shape=shape,
        schema=schema,
        timestamps=timestamps,
    )
    return plan, archive, ledger


def _check_no_name_is_reserved(schema: pa.Schema, lake: LakeReader, files: Sequence[SourceFile]) -> None:
    """Checks that what is beside the fields of values was put there by us.

    Raises:
        ConfigurationError: It is a column of a file.
    """
    ours = {name for file in files for name, _ in file.constants} | {placed.KEY_BYTES if lake.key is not None else ""}
    if reserved := [name for name in schema.names if placed.is_beside(name) and name not in ours]:
        step = "rename the field: names that begin with @ stand for parts of records"
        raise ConfigurationError("a field has a name that is reserved", field=reserved[0], next_step=step)


def _check_timezone(topic: LakeTopic) -> None:
    try:
        ZoneInfo(topic.timezone)
    except (ZoneInfoNotFoundError, ValueError):
        step = "name one such as America/New_York or UTC"
        raise ConfigurationError(
            "there is no such time zone", setting="timezone", given=topic.timezone, next_step=step
        ) from None


def _columns_asked(topic: LakeTopic) -> set[str]:
    """The columns that parts of records are made of."""
    value = [topic.value] if isinstance(topic.value, str) else topic.value
    paths = [topic.key, topic.timestamp, topic.partition, topic.offset, topic.order, *value]
    return {name for path in paths if path is not None for name in columns_in(path)}


def _with_what_paths_tell(
    asked: set[str], lake: LakeReader, files: list[SourceFile], types: Mapping[str, pa.DataType]
) -> list[SourceFile]:
    """The files with the fields that their folders tell, and with what is asked for of the files themselves.

    Of plain rows a folder's field is a field of the value. A record's value that was one already stays as it was.
    """
    files = with_file_fields(files, asked, OF_FILE)
    if lake.has_plain_rows:
        return with_folder_fields(files, types, None)
    return with_folder_fields(files, types, asked, OF_FILE)


def _reader(topic: LakeTopic, layout: Layout, files: FileReader) -> LakeReader:
    """Reads the rows, with keys and values that are bytes.

    Raises:
        ConfigurationError: There is no such serde, or it is not said which field is to be read by it.
    """
    key, value = topic.key_serde, topic.value_serde
    if topic.registry is not None and key is None and value is None:
        key = value = REGISTRY
    contents = Contents(
        key=None if key is None else deserializer(key, topic.registry),
        value=None if value is None else deserializer(value, topic.registry),
    )
    if layout == "kcat" and contents.reads_bytes:
        files = replace(files, dialect=replace(files.dialect, encoding=BYTEWISE))
    if layout != "files":
        return LakeReader(files, layout, topic.envelope, contents, topic.value_encoding)
    if contents.value is not None and not isinstance(topic.value, str):
        step = "name the field with --value, or leave --value-serde out"
        raise ConfigurationError("it is not said which field has the values' bytes", topic=topic.name, next_step=step)
    key_field = topic.key if contents.key is not None and topic.envelope == "rows" else None
    value_field = topic.value if contents.value is not None and isinstance(topic.value, str) else None
    return LakeReader(files, layout, topic.envelope, contents, key=key_field, value=value_field)


def _check_some_are_read(lake: LakeReader, files: Sequence[SourceFile], topic: LakeTopic) -> None:
    """Says why no value could be read, where a part of records is wanted that only values tell.

    Raises:
        InputError: A value could not be read.
    """
    first = next((rows for file in files for rows in lake.rows(file)), None)
    if first is None or not first.bad or (topic.key is None and placed.TIMESTAMP in first.columns.schema.names):
        return
    row = first.bad[0]
    step = "check which bytes these are: --key-serde, --value-serde, --registry"
    raise InputError(
        f"a row cannot become a record: {row.reason}", file=files[0].path, row=row.row, field=row.field, next_step=step
    )
