"""Writes what Kafka Connect's sinks write, for records of a test's own: names, folders and companions as theirs.

``test_connect_layout`` compares it with trees that the sinks themselves wrote. Where a rule is from is named beside it.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from tests.ingest.connect_trees import Sent

Format = Literal["avro", "json", "json.gz", "parquet", "snappy.parquet", "bin"]
Partitioner = Literal["default", "daily", "hourly"] | tuple[str, ...]
TOMBSTONES = "tombstone"
_AVRO_TYPES = {bool: "boolean", int: "long", float: "double", str: "string", bytes: "bytes"}
_PATHS = {"daily": "year=%Y/month=%m/day=%d", "hourly": "year=%Y/month=%m/day=%d/hour=%H"}
_HEADER = {
    "type": "record",
    "name": "io.confluent.connect.avro.ConnectDefault",
    "fields": [{"name": "key", "type": "string"}, {"name": "value", "type": "string"}],
}


@dataclass(frozen=True)
class Confluent:
    """Settings of Confluent's sink, with its defaults.

    Attributes:
        partitioner: A kind, or the fields of a FieldPartitioner.
        keys: Format of the companions with keys; None writes none, and drops tombstones.
        headers: Format of the companions with headers; None writes none.
        avro_schema: Schema of the values; by default the types of their Python values, each field nullable.
    """

    topic: str = "orders"
    format: Format = "avro"
    partitioner: Partitioner = "default"
    flush_size: int = 1000
    keys: Format | None = None
    headers: Format | None = None
    avro_codec: str = "null"
    avro_schema: Mapping[str, Any] | None = None
    prefix: str = "topics"


def write_confluent(bucket: Path, records: Sequence[Sent], sink: Confluent, *, last: bool = True) -> list[Path]:
    """Writes records as Confluent's S3 sink does: one file a folder and flush, with companions beside it.

    ``TopicPartitionWriter``: ``flush.size`` counts the records of a topic's partition over all of its folders, and
    then commits all of them.

    Args:
        bucket: The folder that stands for the bucket.
        records: Records of any partitions, each partition's by offset.
        sink: The settings.
        last: Also commits what is below ``flush_size``; the sink leaves it out of the bucket until more comes.

    Returns:
        The files with values and the companions.
    """
    written: list[Path] = []
    for partition in sorted({record.partition for record in records}):
        mine = [r for r in records if r.partition == partition and (r.value is not None or sink.keys is not None)]
        for at in range(0, len(mine), sink.flush_size):
            flush = mine[at : at + sink.flush_size]
            if last or len(flush) == sink.flush_size:
                written += _commit(bucket, flush, sink)
    return written


def write_aiven(
    bucket: Path,
    records: Sequence[Sent],
    *,
    topic: str = "orders",
    kind: Literal["jsonl", "json", "csv"] = "jsonl",
    fields: Sequence[str] = ("key", "value", "offset", "timestamp", "headers"),
    gzipped: bool = True,
    flush_size: int = 1000,
) -> list[Path]:
    """Writes records as Aiven's sinks do, by the default template of names and without endings but ``.gz``."""
    written = []
    for partition in sorted({record.partition for record in records}):
        mine = [record for record in records if record.partition == partition]
        for at in range(0, len(mine), flush_size):
            flush = mine[at : at + flush_size]
            path = bucket / f"{topic}-{partition}-{flush[0].offset}{'.gz' if gzipped else ''}"
            path.parent.mkdir(parents=True, exist_ok=True)
            content = _AIVEN[kind](flush, fields)
            path.write_bytes(gzip.compress(content, mtime=0) if gzipped else content)
            written.append(path)
    return written


def _commit(bucket: Path, flush: Sequence[Sent], sink: Confluent) -> list[Path]:
    by_folder = defaultdict(list)
    for record in flush:
        by_folder[_folder(record, sink.partitioner)].append(record)
    written = []
    for folder, rows in by_folder.items():
        stem = f"{sink.prefix}/{sink.topic}/{folder}/{sink.topic}+{rows[0].partition}+{rows[0].offset:010}"
        contents = {}
        if folder != TOMBSTONES:  # KeyValueHeaderRecordWriterProvider: a tombstone has a key and nothing else
            contents[f"{stem}.{sink.format}"] = _encoded([r.value for r in rows], sink.format, sink)
        if sink.keys is not None:
            contents[f"{stem}.keys.{sink.keys}"] = _encoded([r.key for r in rows], sink.keys, sink, "key")
        if sink.headers is not None:
            headers = [[{"key": key, "value": value} for key, value in r.headers] for r in rows]
            contents[f"{stem}.headers.{sink.headers}"] = _encoded(headers, sink.headers, sink, "headers")
        for name, content in contents.items():
            path = bucket / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            written.append(path)
    return written


def _folder(record: Sent, partitioner: Partitioner) -> str:
    if record.value is None:
        return TOMBSTONES  # TombstoneSupportedPartitioner
    if partitioner == "default":
        return f"partition={record.partition}"
    if isinstance(partitioner, str):
        return datetime.fromtimestamp(record.timestamp_ms // 1000, UTC).strftime(_PATHS[partitioner])
    assert not isinstance(record.value, bytes | str)
    return "/".join(f"{name}={_as_text(record.value.get(name))}" for name in partitioner)  # FieldPartitioner


def _as_text(value: object) -> str:
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _encoded(rows: Sequence[Any], kind: Format, sink: Confluent, companion: str | None = None) -> bytes:
    """The rows of a file; JSON wraps headers, Parquet wraps keys and headers (``RecordViews``, ``enveloped``)."""
    if kind == "avro":
        out = io.BytesIO()
        declared = sink.avro_schema if companion is None else None
        schema: Any = {"type": "array", "items": _HEADER} if companion == "headers" else declared or _avro_schema(rows)
        fastavro.writer(out, fastavro.parse_schema(schema), rows, codec=sink.avro_codec)
        return out.getvalue()
    if kind == "bin":
        return b"".join((row if isinstance(row, bytes) else str(row).encode()) + b"\n" for row in rows)
    if kind.startswith("json"):
        wrapped = [{companion: row} for row in rows] if companion == "headers" else rows
        content = b"".join(_json(row) + b"\n" for row in wrapped)
        return gzip.compress(content, mtime=0) if kind.endswith("gz") else content
    table = pa.Table.from_pylist([{companion: row} for row in rows] if companion else list(rows))
    parquet = io.BytesIO()
    pq.write_table(table, parquet, compression="snappy" if kind.startswith("snappy") else "none")
    return parquet.getvalue()


def _avro_schema(rows: Sequence[Any]) -> Mapping[str, Any] | str:
    if not isinstance(rows[0], dict):
        return _AVRO_TYPES[type(rows[0])]
    fields = []
    for name in dict.fromkeys(name for row in rows for name in row):
        kinds = {_AVRO_TYPES[type(row[name])] for row in rows if row.get(name) is not None} or {"string"}
        fields.append({"name": name, "type": ["null", *sorted(kinds)], "default": None})
    return {"type": "record", "name": "ConnectDefault", "namespace": "io.confluent.connect.avro", "fields": fields}


def _json(value: object) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=lambda b: base64.b64encode(b).decode())
    return text.encode()


def _aiven_object(record: Sent, fields: Sequence[str]) -> Mapping[str, Any]:
    """A record in JSON; the names are in the order of a Java ``HashMap`` (``JsonOutputFieldComposer``)."""
    moment = datetime.fromtimestamp(record.timestamp_ms / 1000, UTC)
    iso = moment.isoformat(timespec="milliseconds" if record.timestamp_ms % 1000 else "seconds")
    all_of_it = {
        "headers": [{"key": key, "value": value} for key, value in record.headers],
        "offset": record.offset,
        "value": record.value,
        "key": record.key,
        "timestamp": iso.replace("+00:00", "Z"),
    }
    return {name: value for name, value in all_of_it.items() if name in fields}


def _csv_line(record: Sent, fields: Sequence[str]) -> str:
    """``PlainOutputStreamWriter``: no quotes, no line of names; keys, values and headers in base64."""
    coded = {
        "key": _base64(record.key),
        "value": _base64(record.value),
        "offset": str(record.offset),
        "timestamp": str(record.timestamp_ms),
        "headers": "".join(f"{_base64(key)}:{_base64(value)};" for key, value in record.headers),
    }
    return ",".join(coded[name] for name in fields)


def _base64(value: object) -> str:
    if value is None:
        return ""
    return base64.b64encode(value if isinstance(value, bytes) else str(value).encode()).decode()


_AIVEN: Mapping[str, Callable[[Sequence[Sent], Sequence[str]], bytes]] = {
    "jsonl": lambda rows, fields: b"\n".join(_json(_aiven_object(row, fields)) for row in rows),
    "json": lambda rows, fields: b"[\n" + b",\n".join(_json(_aiven_object(row, fields)) for row in rows) + b"\n]",
    "csv": lambda rows, fields: "\n".join(_csv_line(row, fields) for row in rows).encode(),
}
