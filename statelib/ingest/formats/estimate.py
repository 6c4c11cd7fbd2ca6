"""About how many rows a file has, without reading it to its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from statelib.ingest.formats.avro import avro_row_count
from statelib.ingest.formats.compression import compressed_by, open_content
from statelib.ingest.formats.parquet import parquet_row_count
from statelib.ingest.formats.unreadable import unreadable
from statelib.ingest.sources.opening import open_stream

if TYPE_CHECKING:
    from statelib.ingest.formats.read import FileReader
    from statelib.ingest.sources.files import SourceFile

_BEGINNING_BYTES = 1 << 20


def estimated_rows(file: SourceFile, reader: FileReader) -> int:
    """Exact for Parquet and small files; else what the beginning of the file has, in proportion.

    Raises:
        InputError: The file cannot be read.
    """
    if file.rows is not None:
        return file.rows
    kind = reader.format_of(file)
    if kind == "parquet":
        return parquet_row_count(file, reader.options)
    if kind == "avro":
        return avro_row_count(file, reader.options)
    with unreadable(file, kind), open_content(file, reader.options) as opened:
        beginning = bytes(opened.read(_BEGINNING_BYTES))
    lines = beginning.count(b"\n")
    if len(beginning) < _BEGINNING_BYTES:
        return max(lines - (kind == "csv"), 0)
    return round(lines * _content_bytes(file, reader) / len(beginning))


def _content_bytes(file: SourceFile, reader: FileReader) -> float:
    """About how long a file is when it is decompressed, by what its first part of 1 MiB comes to."""
    codec = compressed_by(file, reader.options)
    if codec is None or codec in {"zip", "xz", "snappy"}:
        return file.size_bytes * (1 if codec is None else 4)
    with open_stream(file, reader.options) as raw:
        head = bytes(raw.read(_BEGINNING_BYTES))
    content = 0
    try:
        with pa.CompressedInputStream(pa.BufferReader(head), codec) as opened:
            while part := opened.read(_BEGINNING_BYTES):
                content += len(part)
    except (OSError, pa.ArrowException):
        pass  # it ends within what follows
    return file.size_bytes * content / max(len(head), 1)
