"""Plans a load: which files are new, what their fields are, and how rows become records. Nothing is written."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pyarrow as pa

from statelib.commits.archives import open_archive_if_present
from statelib.errors.counted import counted
from statelib.errors.kinds import ConfigurationError, InputError
from statelib.ingest.envelopes import placed
from statelib.ingest.envelopes.contents import Contents
from statelib.ingest.envelopes.kcat import BYTEWISE
from statelib.ingest.fields import check_declared, has_rows, united_fields
from statelib.ingest.formats.csv import CsvDialect
from statelib.ingest.formats.read import FileReader
from statelib.ingest.lake_rows import LakeReader
from statelib.ingest.layout import laid_out
from statelib.ingest.ledger import Ledger
from statelib.ingest.records import RecordShape
from statelib.ingest.sources.find import find_files
from statelib.ingest.sources.folders import with_file_fields, with_folder_fields
from statelib.ingest.values.deserializers import REGISTRY, deserializer
from statelib.ingest.values.fields import OF_FILE, check_known, columns_in, type_at, value_at
from statelib.ingest.values.times import TimeRule, described, resolved
from statelib.ingest.values.types import storable, type_named
from statelib.job.lake_topic import DEFAULT_PARTITIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from statelib.ingest.sources.files import SourceFile
    from statelib.ingest.sources.queries import RunQuery
    from statelib.ingest.values.deserializers import Deserializer
    from statelib.job.lake_topic import LakeTopic, Layout
    from statelib.serdes import Serde
    from statelib.storage import Storage
    from statelib.topics.archive import TopicArchive

_MOST_TIMED = 8


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """What a load is going to do; travels to workers but for the archive.

    Attributes:
        topic: What was asked for.
        files: The new files, ordered by path.
        rewritten: Files of tables that hold rows which were loaded from others.
        known: How many files were loaded before.
        reader: Reads them.
        shape: Makes records of their rows.
        schema: The fields of all of them, as far as files tell beforehand.
        timestamps: How timestamps are read, in words.
    """

    topic: LakeTopic
    files: tuple[SourceFile, ...]
    rewritten: tuple[SourceFile, ...]
    known: int
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
    dialect = CsvDialect(topic.delimiter, topic.encoding, topic.columns)
    reader = FileReader(source_options, topic.format, dialect)
    before = {file.path: (file.size_bytes, file.version) for file in ledger.known().values()}
    there = find_files(topic.sources, source_options, before, run_query)
    layout, found = laid_out(topic, [file for file in there if not file.is_rewritten], reader, before)
    files = _new_files(found, ledger, topic)
    if not files:
        return None, archive, ledger
    _check_timezone(topic)
    declared = {name: type_named(given) for name, given in topic.types.items()}
    had = _types_of(archive, topic)
    given = {**had, **declared}
    if layout == "files" and topic.envelope == "rows":
        reader = replace(reader, types=given, fixed=frozenset(given), declared=frozenset(declared))
    lake = _reader(topic, layout, reader)
    files = _with_what_paths_tell(topic, layout, files, given)
    schema, types, mixed = united_fields(lake, files, given, had or declared)
    if archive is None:
        check_declared(topic, schema, reader, files)
    if layout == "files" and topic.envelope == "rows":
        lake = replace(lake, files=replace(lake.files, types=types, declared=lake.files.declared | mixed))
    lake = replace(lake, contents=replace(lake.contents, types=types))
    if (
        layout == "files"
        and topic.envelope == "rows"
        and (reserved := [n for n in schema.names if n in placed.RESERVED])
    ):
        step = "rename the field: names that begin with @ stand for parts of records"
        raise ConfigurationError("a field has a name that is reserved", field=reserved[0], next_step=step)
    told = [field for field in schema if not placed.is_beside(field.name)]
    if lake.contents.reads_bytes and all(pa.types.is_null(field.type) for field in told):
        _check_some_are_read(lake, files, topic)
    if not schema.names and not has_rows(lake, files):
        return None, archive, ledger
    shape, sample = _shape(topic, lake, files, schema, archive)
    plan = LoadPlan(
        topic=topic,
        files=tuple(files),
        rewritten=tuple(file for file in there if file.is_rewritten),
        known=len(found) - len(files),
        reader=lake,
        shape=shape,
        schema=schema,
        timestamps=_timestamps_described(shape, sample),
    )
    return plan, archive, ledger


def _check_timezone(topic: LakeTopic) -> None:
    try:
        ZoneInfo(topic.timezone)
    except (ZoneInfoNotFoundError, ValueError):
        step = "name one such as America/New_York or UTC"
        raise ConfigurationError(
            "there is no such time zone", setting="timezone", given=topic.timezone, next_step=step
        ) from None


def _with_what_paths_tell(
    topic: LakeTopic, layout: Layout, files: list[SourceFile], types: Mapping[str, pa.DataType]
) -> list[SourceFile]:
    """The files with the fields that their folders tell, and with what is asked for of the files themselves.

    Of plain rows a folder's field is a field of the value. A record's value that was one already stays as it was.
    """
    value = [topic.value] if isinstance(topic.value, str) else topic.value
    paths = [topic.key, topic.timestamp, topic.partition, topic.offset, topic.order, *value]
    asked = {name for path in paths if path is not None for name in columns_in(path)}
    files = with_file_fields(files, asked, OF_FILE)
    if layout == "files" and topic.envelope == "rows":
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


def _shape(
    topic: LakeTopic, reader: LakeReader, files: Sequence[SourceFile], schema: pa.Schema, archive: TopicArchive | None
) -> tuple[RecordShape, pa.Array]:
    """How rows become records, and a sample of what their timestamps are read from."""
    timestamp = _timestamp(topic, schema)
    key = topic.key or (placed.KEY if placed.KEY in schema.names else None)
    value = () if reader.value is not None and reader.envelope == "debezium" else topic.value
    tells_offsets = topic.offset is not None or placed.OFFSET in schema.names
    order = topic.order or ("offset" if tells_offsets else "timestamp")
    if order == "offset" and not tells_offsets:
        step = "name the field that has them (--offset), or choose --order timestamp, arrival or a field"
        raise ConfigurationError("the files tell no offsets", setting="order", topic=topic.name, next_step=step)
    order_field = {"timestamp": None, "arrival": None, "offset": topic.offset or placed.OFFSET}.get(order, order)
    if not all(file.place is not None and file.place.is_tombstones for file in files):
        for option, path in (
            ("timestamp", timestamp),
            ("partition", topic.partition),
            ("offset" if order == "offset" else "order", order_field),
        ):
            if path is not None:
                check_known(path, [schema], option)
        known = [schema, pa.schema(list(_types_of(archive, topic).items()))]
        if key is not None:
            check_known(key, known, "key")
        for path in [value] if isinstance(value, str) else value:
            check_known(path, known, "value")
    rule = TimeRule(topic.timestamp_unit, topic.timestamp_format, topic.timezone)
    sample = _sample(reader, files, timestamp)
    rule = TimeRule(unit="ms") if timestamp == placed.TIMESTAMP else resolved(rule, sample, timestamp)
    shape = RecordShape(
        key=key,
        key_type=_key_type(key, schema, archive),
        value=value,
        timestamp=timestamp,
        time_rule=rule,
        order=order,
        partitions=_partitions(topic, reader, files, archive),
        partition=topic.partition,
        offset=topic.offset,
        key_serde=_serializer(reader.contents.key),
    )
    return shape, sample


def _serializer(key: Deserializer | None) -> Serde | None:
    """What writes keys, to choose their partition; of a registry's keys their own bytes do that."""
    return cast("Serde", key) if hasattr(key, "serialize") else None


def _timestamps_described(shape: RecordShape, sample: pa.Array) -> str:
    if shape.timestamp == placed.TIMESTAMP:
        return "of the records themselves"
    return f"{shape.timestamp}: {described(shape.time_rule, sample.type)}"


def _partitions(topic: LakeTopic, reader: LakeReader, files: Sequence[SourceFile], archive: TopicArchive | None) -> int:
    told = [file.place.partition + 1 for file in files if file.place is not None]
    field = topic.partition or placed.PARTITION
    if reader.layout == "kcat" or (topic.partition is not None and not told):
        firsts = (next(iter(reader.rows(file)), None) for file in files)
        samples = [value_at(rows.columns, field).drop_null() for rows in firsts if rows is not None]
        told = [1 + max((one for one in sample.to_pylist() if isinstance(one, int)), default=0) for sample in samples]
    return archive.partitions if archive is not None else topic.partitions or max(told, default=DEFAULT_PARTITIONS)


def _new_files(found: Sequence[SourceFile], ledger: Ledger, topic: LakeTopic) -> list[SourceFile]:
    """Those that have not been loaded.

    Raises:
        InputError: One that has been loaded is not what it was.
    """
    loaded = ledger.known()
    for file in found:
        before = loaded.get(file.path)
        if before is not None and (before.size_bytes, before.version) != (file.size_bytes, file.version):
            what = "a file has changed since it was loaded: its records are in the topic as they were"
            step = "put what is new into a file of its own, or load all of them into another topic"
            raise InputError(what, topic=topic.name, file=file.path, next_step=step)
    return [file for file in found if file.path not in loaded]


def _types_of(archive: TopicArchive | None, topic: LakeTopic) -> dict[str, pa.DataType]:
    """The types that fields have in the topic already: text files are read as these."""
    if archive is None or archive.is_empty:
        return {}
    key, value = (archive.schema.field(name).type for name in ("key", "value"))
    types: dict[str, pa.DataType] = {}
    if isinstance(topic.value, str):
        types[topic.value] = value
    elif pa.types.is_struct(value):
        types = {field.name: field.type for field in value}
    if topic.key is not None:
        types[topic.key] = key
    return types


def _timestamp(topic: LakeTopic, schema: pa.Schema) -> str:
    if topic.timestamp is not None:
        return topic.timestamp
    if placed.TIMESTAMP in schema.names:
        return placed.TIMESTAMP
    names = [name for name in schema.names if not placed.is_beside(name)]
    likely = [name for name in names if pa.types.is_temporal(schema.field(name).type)]
    likely += [name for name in names if any(word in name.lower() for word in ("time", "date", "_at"))]
    shown = ", ".join(dict.fromkeys(likely)) or ", ".join(names)
    what = "it is not said which field has the records' timestamps"
    raise ConfigurationError(
        what, topic=topic.name, next_step=f"name it with --timestamp: one of {shown}; or file.modified"
    )


def _sample(reader: LakeReader, files: Sequence[SourceFile], path: str) -> pa.Array:
    """Values of a field from some of the files, of the first type that has values."""
    found: list[pa.Array] = []
    step = max(1, len(files) // _MOST_TIMED)
    for file in files[::step]:
        columns = [path, *columns_in(path), *(name.partition(".")[0] for name in columns_in(path))]
        rows = next(iter(reader.rows(file, columns)), None)
        if rows is not None and len(rows.numbers):
            values = value_at(rows.columns, path)
            found.append(values.dictionary_decode() if pa.types.is_dictionary(values.type) else values)
    typed = [values for values in found if not pa.types.is_null(values.type)]
    if not typed:
        return pa.nulls(0)
    return pa.concat_arrays([values for values in typed if values.type.equals(typed[0].type)])


def _key_type(key: str | None, schema: pa.Schema, archive: TopicArchive | None) -> pa.DataType:
    if archive is not None and not archive.is_empty:
        return archive.schema.field("key").type
    type_ = None if key is None else type_at(schema, key)
    if type_ is None or pa.types.is_null(type_):
        return pa.string()
    found = storable(type_)
    if found is None:
        step = "name a field that has values: --key FIELD"
        raise ConfigurationError(f"a field of type {type_} has no values", setting="key", field=key, next_step=step)
    return found
