"""A lake for tests: files of any format with given rows, loads of them, and what a topic then holds."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import json
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from statelib.commits.archives import open_archive
from statelib.ingest.load import Load, Loaded, load_here
from statelib.ingest.stages import no_progress
from statelib.job.lake_topic import LakeTopic
from statelib.storage import Storage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from statelib.ingest.load import OnBadRecord

NOW_MS = 1_700_000_000_000
FIRST_MS = 1_356_998_400_000  # 2013
_attempts = itertools.count(1)

AVRO_TYPES = {int: "long", float: "double", str: "string", bool: "boolean"}


def write_file(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Writes rows in the format that the file's name says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    name = path.name.removesuffix(".gz").removesuffix(".zst")
    names = list(dict.fromkeys(name for row in rows for name in row))
    if name.endswith(".parquet"):
        pq.write_table(pa.Table.from_pylist([dict.fromkeys(names) | dict(row) for row in rows]), path, row_group_size=7)
        return path
    if name.endswith(".csv"):
        out = io.StringIO()
        writer = csv.DictWriter(out, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        content = out.getvalue().encode()
    elif name.endswith(".jsonl"):
        content = b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)
    elif name.endswith(".json"):
        content = json.dumps(list(rows), indent=1).encode()
    else:
        assert name.endswith(".avro")
        binary = io.BytesIO()
        fastavro.writer(
            binary, _avro_schema(rows, names), [dict.fromkeys(names) | dict(row) for row in rows], "deflate"
        )
        content = binary.getvalue()
    if path.name.endswith(".gz"):
        content = gzip.compress(content, mtime=0)
    if path.name.endswith(".zst"):
        content = pa.compress(content, codec="zstd", asbytes=True)
    path.write_bytes(content)
    return path


def _avro_schema(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Any:
    def type_of(name: str) -> str:
        values = [row[name] for row in rows if row.get(name) is not None]
        return AVRO_TYPES[type(values[0])] if values else {"price": "double"}.get(name, "string")

    fields = [{"name": name, "type": ["null", type_of(name)]} for name in names]
    return fastavro.parse_schema({"type": "record", "name": "row", "fields": fields})


def a_topic(folder: Path, **options: Any) -> LakeTopic:
    """A topic of all files in ``lake`` below a folder."""
    return LakeTopic("t", f"{folder}/lake", **{"key": "user", "timestamp": "at", "partitions": 3, **options})


def begin(
    topic: LakeTopic, warehouse: Path, on_bad_record: OnBadRecord = "fail", options: Mapping[str, str] | None = None
) -> Load:
    """A load that has been planned."""
    return Load(topic, Storage(str(warehouse)), options or {}, on_bad_record, f"{next(_attempts):015x}", NOW_MS)


def load(
    topic: LakeTopic,
    warehouse: Path,
    on_bad_record: OnBadRecord = "fail",
    *,
    budget_bytes: int = 1 << 26,
    options: Mapping[str, str] | None = None,
) -> Loaded:
    """A whole load in this process."""
    spill = Storage(str(warehouse.parent / f"{warehouse.name}-spill"))
    return load_here(begin(topic, warehouse, on_bad_record, options), spill, budget_bytes, no_progress)


def records_of(warehouse: Path, topic: str) -> list[dict[str, Any]]:
    """All records of a topic, by partition and offset; timestamps in milliseconds, null fields left out."""
    archive = open_archive(Storage(str(warehouse)), topic)
    found = []
    for partition in range(archive.partitions):
        for batch in archive.reader(partition):
            columns = batch.set_column(
                batch.schema.get_field_index("timestamp"), "timestamp", batch["timestamp"].cast(pa.int64())
            )
            found += [{"partition": partition, **record} for record in columns.to_pylist()]
    return found


def without_nulls(value: Any) -> Any:
    """The same without fields of structs that are null: a row without a field, and one where it is null, are one."""
    if isinstance(value, dict):
        return {name: without_nulls(inner) for name, inner in value.items() if inner is not None}
    return [without_nulls(inner) for inner in value] if isinstance(value, list) else value
