"""What the tests' writer of Connect's layouts writes is what the sinks themselves wrote."""

from __future__ import annotations

import gzip
import io
import json
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow.parquet as pq
import pytest

from tests.ingest.connect_layout import Confluent, write_aiven, write_confluent
from tests.ingest.connect_trees import TREES, real_records, real_tree

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_SINKS = {
    "avro-default": Confluent(flush_size=4, keys="avro", headers="avro", avro_codec="deflate"),
    "json-hourly-gzip": Confluent(
        format="json.gz", partitioner="hourly", flush_size=4, keys="json.gz", headers="json.gz"
    ),
    "parquet-field": Confluent(
        format="snappy.parquet",
        partitioner=("customer",),
        flush_size=4,
        keys="snappy.parquet",
        headers="snappy.parquet",
    ),
    "parquet-none": Confluent(format="parquet", flush_size=4, keys="avro", headers="json"),
    "bytes": Confluent(format="bin", flush_size=4, keys="bin"),
}


@pytest.mark.parametrize("name", sorted(_SINKS))
def test_writes_what_confluents_sink_wrote(name: str, tmp_path: Path) -> None:
    wanted = _files(real_tree(name, tmp_path / "real"))
    write_confluent(tmp_path / "ours", real_records(name), _SINKS[name])
    assert _files(tmp_path / "ours") == wanted


@pytest.mark.parametrize(
    ("name", "kind", "gzipped"),
    [("aiven-jsonl-gzip", "jsonl", True), ("aiven-json", "json", False), ("aiven-csv", "csv", False)],
)
def test_writes_what_aivens_sink_wrote(name: str, kind: Any, *, gzipped: bool, tmp_path: Path) -> None:
    wanted = {path: _plain(content) for path, content in _contents(real_tree(name, tmp_path / "real")).items()}
    write_aiven(tmp_path / "ours", real_records(name), kind=kind, gzipped=gzipped, flush_size=4)
    assert {path: _plain(content) for path, content in _contents(tmp_path / "ours").items()} == wanted


def test_each_real_tree_is_there(tmp_path: Path) -> None:
    for name in TREES:
        assert _contents(real_tree(name, tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(TREES)


def test_leaves_out_what_is_below_the_flush_size(tmp_path: Path) -> None:
    records = real_records("json-schemaless")
    sink = Confluent(format="json", flush_size=5)
    write_confluent(tmp_path, records, sink, last=False)
    assert sorted(path.name for path in tmp_path.rglob("*.json")) == [
        "orders+0+0000000000.json",
        "orders+1+0000000100.json",
    ]


def _contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def _plain(content: bytes) -> bytes:
    return gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content


def _files(folder: Path) -> Mapping[str, list[Any]]:
    return {path: _rows(path, _plain(content)) for path, content in _contents(folder).items()}


def _rows(path: str, content: bytes) -> list[Any]:
    """The rows of a file, with times as ms since 1970, whatever the logical type."""
    if path.endswith(".avro"):
        return [_in_ms(row) for row in fastavro.reader(io.BytesIO(content))]
    if path.endswith(".parquet"):
        return [_in_ms(row) for row in pq.read_table(io.BytesIO(content)).to_pylist()]
    if path.endswith(".bin"):
        return content.split(b"\n")
    return [json.loads(line) for line in content.splitlines()]


def _in_ms(row: Any) -> Any:
    if not isinstance(row, dict) or "at" not in row or isinstance(row["at"], int):
        return row
    return row | {"at": round(row["at"].timestamp() * 1000)}
