"""Which fields of rows are the parts of records: what a declaration asks for, or layout, envelope and archive tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pyarrow as pa

from statelib.errors.kinds import ConfigurationError
from statelib.ingest.envelopes import placed
from statelib.ingest.records import RecordShape
from statelib.ingest.values.fields import check_known, columns_in, type_at, value_at
from statelib.ingest.values.times import TimeRule, described, resolved
from statelib.ingest.values.types import storable
from statelib.job.lake_topic import DEFAULT_PARTITIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.ingest.lake_rows import LakeReader
    from statelib.ingest.sources.files import SourceFile
    from statelib.ingest.values.deserializers import Deserializer
    from statelib.job.lake_topic import LakeTopic
    from statelib.serdes import Serde
    from statelib.topics.archive import TopicArchive

_MOST_TIMED = 8
"""Files of which timestamps are looked at."""


def record_shape(
    topic: LakeTopic, reader: LakeReader, files: Sequence[SourceFile], schema: pa.Schema, archive: TopicArchive | None
) -> tuple[RecordShape, str]:
    """How rows become records, and in words how their timestamps are read.

    Args:
        topic: What is asked for.
        reader: Reads the files.
        files: All new ones.
        schema: The fields of all of them, as far as files tell beforehand.
        archive: The topic as it is; None: it is not there yet.

    Raises:
        ConfigurationError: It is not said which field has the timestamps, or how they are read; there is no such field.
        InputError: A file cannot be read.
    """
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
        known = [schema, pa.schema(list(types_in(archive, topic).items()))]
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
    return shape, _timestamps_described(shape, sample)


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


def types_in(archive: TopicArchive | None, topic: LakeTopic) -> dict[str, pa.DataType]:
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
