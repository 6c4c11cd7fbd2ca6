"""How the Parquet columns of a topic's file are encoded: by what its first records are like.

A dictionary is worth its while where the first values come twice on average; elsewhere it would be built, and thrown
away. Whole numbers and times without one are delta-encoded: smaller, and a third of the work to read. Offsets
and timestamps always are. Ids that are chosen at random (UUIDs, digests) have their lengths apart from their bytes:
between the bytes they would be what little there is to compress, which takes the compressor half as long again. Texts
that have something in common are better off with the lengths where they are. What lies in lists and maps is taken to
repeat.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow.parquet as pq

_FIRST_ROWS = 8_192
_DELTA_ENCODED = ("offset", "timestamp")
_DELTA = "DELTA_BINARY_PACKED"
_LENGTHS_APART = "DELTA_LENGTH_BYTE_ARRAY"
_COMPRESSED_RANDOM_SHARE = 0.45
"""Random hexadecimal digits are compressed to half of their length, not to less."""
_DICTIONARY_BYTES = 1 << 20
_INDEX_BYTES = 4
_ROWS_WORTH_A_BATCH = 1 << 12


def column_encodings(records: pa.Table) -> dict[str, Any]:
    """The parameters ``use_dictionary`` and ``column_encoding`` of `pyarrow.parquet.ParquetWriter`.

    Args:
        records: The first of the file.
    """
    repeating: list[str] = []
    encodings: dict[str, str] = {}
    first = records.slice(0, _FIRST_ROWS)
    for name, column in zip(first.column_names, first.columns, strict=True):
        for leaf, values in _leaves(name, column.combine_chunks()):
            if leaf in _DELTA_ENCODED:
                encodings[leaf] = _DELTA
            elif values is None or len(values) >= 2 * len(values.unique()):
                repeating.append(leaf)
            elif _is_delta_encodable(values.type):
                encodings[leaf] = _DELTA
            elif _are_random(values):
                encodings[leaf] = _LENGTHS_APART
    return {"use_dictionary": repeating, "column_encoding": encodings}


def has_encoded_keys(metadata: pq.FileMetaData) -> bool:
    """Whether a file holds its keys, strings or bytes, as a dictionary and indices that are worth being read so.

    Writers give a dictionary up once it is too large, and what follows takes the room of plain keys. With a dictionary
    for each row group no batch goes beyond one, so they must not be too small.
    """
    groups, columns = metadata.num_row_groups, [metadata.schema.column(i) for i in range(metadata.num_columns)]
    keys = [n for n, column in enumerate(columns) if column.path == "key"]
    if not keys or columns[keys[0]].physical_type != "BYTE_ARRAY":
        return False
    if columns[keys[0]].logical_type.type not in {"STRING", "NONE"}:
        return False
    if groups > 1 and metadata.num_rows < _ROWS_WORTH_A_BATCH * groups:
        return False
    chunks = [metadata.row_group(group).column(keys[0]) for group in range(groups)]
    return all(
        chunk.has_dictionary_page
        and chunk.total_uncompressed_size <= _DICTIONARY_BYTES + _INDEX_BYTES * chunk.num_values
        for chunk in chunks
    )


def leaf_columns(schema: pa.Schema) -> list[str]:
    """The names of the Parquet columns of ``schema``, such as ``value.amount`` or ``headers.list.element.key``."""
    return [leaf for field in schema for leaf in _leaves_of_type(field.name, field.type)]


def _leaves(path: str, array: pa.Array) -> Iterator[tuple[str, pa.Array | None]]:
    """The names of a column's Parquet columns, each with its values; those in lists and maps without."""
    if pa.types.is_struct(array.type):
        for field, values in zip(array.type, array.flatten(), strict=True):
            yield from _leaves(f"{path}.{field.name}", values)
    elif pa.types.is_nested(array.type):
        yield from ((leaf, None) for leaf in _leaves_of_type(path, array.type))
    else:
        yield path, array


def _leaves_of_type(path: str, type_: pa.DataType) -> Iterator[str]:
    if pa.types.is_struct(type_):
        for field in type_:
            yield from _leaves_of_type(f"{path}.{field.name}", field.type)
    elif pa.types.is_map(type_):
        yield from _leaves_of_type(f"{path}.key_value.key", type_.key_type)
        yield from _leaves_of_type(f"{path}.key_value.value", type_.item_type)
    elif pa.types.is_list(type_):
        yield from _leaves_of_type(f"{path}.list.element", type_.value_type)
    else:
        yield path


def _is_delta_encodable(type_: pa.DataType) -> bool:
    """Whether Parquet holds values of this type as whole numbers of 32 or 64 bits."""
    return bool(pa.types.is_integer(type_) or pa.types.is_timestamp(type_) or pa.types.is_date(type_))


def _are_random(values: pa.Array) -> bool:
    """Whether these are strings or bytes of one length that cannot be compressed to what ids count up in."""
    if not (pa.types.is_string(values.type) or pa.types.is_binary(values.type)):
        return False
    lengths = pc.min_max(pc.binary_length(values)).as_py()
    if not lengths["max"] or lengths["min"] != lengths["max"]:
        return False
    joined = b"".join(values.cast(pa.binary()).drop_null().to_pylist())
    compressed = pa.compress(joined, codec="zstd", asbytes=True)
    return len(compressed) > _COMPRESSED_RANDOM_SHARE * len(joined)
