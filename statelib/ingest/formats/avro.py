"""Avro container files: their schema from the header, their rows one block after the other.

The rows of a block stand one behind the other, as the items of an array do. So a block is read as an array of one
block, by the decoder of the Avro serde: the number of its rows, the rows, and 0 for the end.

Source: the Avro specification 1.12, "Object Container Files" and "Arrays".
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from statelib.errors.kinds import ConfigurationError
from statelib.ingest.formats.rows import Rows
from statelib.ingest.formats.unreadable import unreadable
from statelib.ingest.sources.opening import open_python
from statelib.serdes.avro.decode import Decoder
from statelib.serdes.avro.schema import parse
from statelib.serdes.spans import Spans

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from statelib.ingest.sources.files import SourceFile

_ONLY_COLUMN = "value"
"""The field of files whose rows are no records."""


def avro_schema(file: SourceFile, options: Mapping[str, str]) -> pa.Schema:
    """The fields of a file's rows, with Arrow's types.

    Raises:
        InputError: It is no Avro container file, or damaged.
        ConfigurationError: fastavro is not installed.
    """
    with _blocks(file, options) as blocks:
        type_ = _decoder(blocks).arrow_type.value_type
    return pa.schema(list(type_) if pa.types.is_struct(type_) else [(_ONLY_COLUMN, type_)])


def avro_rows(file: SourceFile, options: Mapping[str, str]) -> Iterator[Rows]:
    """The rows of a file.

    Args:
        file: The file.
        options: Of the object store.

    Raises:
        InputError: It is no Avro container file, or damaged.
        ConfigurationError: fastavro is not installed.
    """
    done = 0
    with _blocks(file, options) as blocks:
        decoder = _decoder(blocks)
        for block in blocks:
            rows = _decoded(decoder, block.num_records, block.bytes_.read())
            yield Rows(rows, np.arange(done + 1, done + len(rows) + 1))
            done += len(rows)


def avro_row_count(file: SourceFile, options: Mapping[str, str]) -> int:
    """How many rows a file has, by its blocks. Errors as `avro_schema`."""
    with _blocks(file, options) as blocks:
        return sum(int(block.num_records) for block in blocks)


@contextmanager
def _blocks(file: SourceFile, options: Mapping[str, str]) -> Iterator[Any]:
    try:
        import fastavro  # noqa: PLC0415 - only who reads Avro needs it
    except ImportError:
        step = "pip install 'hindstream[lake]'"
        raise ConfigurationError(
            "fastavro is not installed, which reads Avro", file=file.path, next_step=step
        ) from None
    with unreadable(file, "Avro"), open_python(file, options) as opened:
        yield fastavro.block_reader(opened)


def _decoder(blocks: Any) -> Decoder:
    schema = parse(json.dumps({"type": "array", "items": json.loads(blocks.metadata["avro.schema"])}))
    return Decoder(schema, schema)


def _decoded(decoder: Decoder, count: int, data: bytes) -> pa.RecordBatch:
    block = b"".join((_long(count), data, _long(0) if count else b""))
    content = np.frombuffer(block, np.uint8)
    read = decoder.decode(Spans(content, np.zeros(1, np.int64), np.array([len(block)], np.int64)))
    if read.bad.any():
        raise ValueError(f"a block is damaged: {read.reasons[0].as_py()}")
    rows = read.values.flatten()
    if pa.types.is_struct(rows.type):
        return pa.RecordBatch.from_struct_array(rows)
    return pa.RecordBatch.from_arrays([rows], [_ONLY_COLUMN])


def _long(number: int) -> bytes:
    """A number that is not negative, as Avro writes it."""
    number <<= 1
    written = bytearray()
    while number > 0x7F:  # noqa: PLR2004 - seven bits a byte
        written.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*written, number])
