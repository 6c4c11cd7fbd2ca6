"""How the Parquet columns of a topic's file are encoded: by what its first records are like.

A dictionary is worth its while where the first values come twice on average; elsewhere it would be built, and thrown
away. Whole numbers and times are delta-encoded unless a dictionary takes less room: to write that is half the work, and
to read a third. Offsets and timestamps always are. Ids that are chosen at random (UUIDs, digests) have their lengths
apart from their bytes: between the bytes they would be what little there is to compress, which takes the compressor
half as long again. Texts that have something in common are better off with the lengths where they are. What lies in
lists and maps is taken to repeat.

Pages are compressed with zstd, but not those of differences that it would leave as long as they are.

The least and the greatest value are left out where one row group's are as good as another's, for strings and bytes that
repeat or are chosen at random: to find them takes as long as to encode them. With them Parquet leaves out how many are
missing, so that is said elsewhere (`statelib.topics.parquet.missing_counts`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from statelib.topics.parquet.leaf_columns import leaves
from statelib.topics.parquet.stored_keys import with_plain_keys

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FIRST_ROWS = 8_192
_DELTA_ENCODED = ("offset", "timestamp")
_DELTA = "DELTA_BINARY_PACKED"
_DICTIONARY = "RLE_DICTIONARY"
_LENGTHS_APART = "DELTA_LENGTH_BYTE_ARRAY"
_COMPRESSED_RANDOM_SHARE = 0.45
"""Random hexadecimal digits are compressed to half of their length, not to less."""
_COMPRESSED_SHARE = 0.95
"""Of what is not compressed more than that, pages are left alone."""
_MINIBLOCKS, _MINIBLOCK = 4, 32
_BLOCK = _MINIBLOCKS * _MINIBLOCK
"""How DELTA_BINARY_PACKED is laid out by Arrow: numbers of a block share a least difference, of a miniblock a width."""
_DICTIONARY_BYTES = 1 << 20
_INDEX_BYTES = 4
_ROWS_WORTH_A_BATCH = 1 << 12


def column_encodings(records: pa.Table) -> dict[str, Any]:
    """How `pyarrow.parquet.ParquetWriter` is to encode columns, as its parameters.

    Args:
        records: The first of the file.

    Returns:
        ``use_dictionary``, ``column_encoding``, ``compression``, ``write_statistics``.
    """
    first = with_plain_keys(records.slice(0, _FIRST_ROWS))
    columns = zip(first.column_names, first.columns, strict=True)
    values = {leaf: found for name, column in columns for leaf, found in leaves(name, column.combine_chunks())}
    encoding = {leaf: _encoding_of(leaf, found) for leaf, found in values.items()}
    differences = {leaf: found for leaf, found in values.items() if encoding[leaf] == _DELTA}
    packed = _incompressible(differences) if len(first) == _FIRST_ROWS else set()
    without_bounds = {
        leaf for leaf, found in values.items() if encoding[leaf] and found is not None and _is_text(found.type)
    }
    return {
        "use_dictionary": [leaf for leaf in values if encoding[leaf] == _DICTIONARY],
        "column_encoding": {leaf: chosen for leaf, chosen in encoding.items() if chosen not in {None, _DICTIONARY}},
        "compression": {leaf: "none" if leaf in packed else "zstd" for leaf in values},
        "write_statistics": [leaf for leaf in values if leaf not in without_bounds],
    }


def _encoding_of(leaf: str, values: pa.Array | None) -> str | None:
    """How a column is encoded, by its first values (None: they lie in a list or map); None: as they are."""
    if leaf in _DELTA_ENCODED or (values is not None and _is_smaller_with_deltas(values)):
        return _DELTA
    if values is None or len(values) >= 2 * len(values.unique()):
        return _DICTIONARY
    return _LENGTHS_APART if _are_random(values) else None


def is_encoded(metadata: pq.FileMetaData, column: str) -> bool:
    """Whether a file has a column of strings or bytes as a dictionary and indices that are worth being read so.

    Writers give a dictionary up once it is too large, and what follows takes the room of plain values. With a
    dictionary for each row group no batch goes beyond one, so they must not be too small.

    Args:
        metadata: Of the file.
        column: The Parquet column, such as ``key`` or ``key.key``.
    """
    groups, columns = metadata.num_row_groups, [metadata.schema.column(i) for i in range(metadata.num_columns)]
    places = [n for n, described in enumerate(columns) if described.path == column]
    if len(places) != 1 or columns[places[0]].physical_type != "BYTE_ARRAY":
        return False
    if columns[places[0]].logical_type.type not in {"STRING", "NONE"}:
        return False
    if groups > 1 and metadata.num_rows < _ROWS_WORTH_A_BATCH * groups:
        return False
    chunks = [metadata.row_group(group).column(places[0]) for group in range(groups)]
    return all(
        chunk.has_dictionary_page
        and chunk.total_uncompressed_size <= _DICTIONARY_BYTES + _INDEX_BYTES * chunk.num_values
        for chunk in chunks
    )


def _is_smaller_with_deltas(values: pa.Array) -> bool:
    """Whether Parquet holds these as whole numbers, and differences take no more room than a dictionary and indices."""
    type_ = values.type
    if not (pa.types.is_integer(type_) or pa.types.is_timestamp(type_) or pa.types.is_date(type_)):
        return False
    known = values.drop_null()
    if len(known) == 0:
        return False
    numbers, distinct = known.view(f"int{type_.bit_width}").to_numpy(), len(known.unique())
    dictionary_bits = distinct * max(type_.bit_width, 32) + len(numbers) * (distinct - 1).bit_length()
    return bool(_delta_bits(numbers) <= dictionary_bits)


def _delta_bits(numbers: NDArray[np.signedinteger[Any]]) -> float:
    """What the differences of at least one number take: in each block as far as they are above the least of them.

    All numbers of a miniblock have the width of its largest one.
    """
    differences = np.diff(numbers.astype(np.float64))  # exact enough, and nothing overflows
    if len(differences) == 0:
        return 0.0
    edge = np.full(-len(differences) % _BLOCK, differences[-1])
    padded = np.concatenate([differences, edge]).reshape(-1, _MINIBLOCKS, _MINIBLOCK)
    above_least = padded.max(axis=2) - padded.min(axis=(1, 2))[:, None]
    return float(_MINIBLOCK * np.ceil(np.log2(above_least + 1)).sum())


def _incompressible(columns: dict[str, pa.Array]) -> set[str]:
    """Those whose differences it is not worth while to compress."""
    described: list[pq.FileMetaData] = []
    options = {"use_dictionary": False, "column_encoding": dict.fromkeys(columns, _DELTA), "write_statistics": False}
    pq.write_table(
        pa.table(columns), pa.BufferOutputStream(), compression="zstd", metadata_collector=described, **options
    )
    group = described[0].row_group(0)
    trials = [group.column(number) for number in range(len(columns))]
    return {
        leaf
        for leaf, trial in zip(columns, trials, strict=True)
        if trial.total_compressed_size >= _COMPRESSED_SHARE * trial.total_uncompressed_size
    }


def _are_random(values: pa.Array) -> bool:
    """Whether these are strings or bytes of one length that cannot be compressed to what ids count up in."""
    if not _is_text(values.type):
        return False
    lengths = pc.min_max(pc.binary_length(values)).as_py()
    if not lengths["max"] or lengths["min"] != lengths["max"]:
        return False
    joined = b"".join(values.cast(pa.binary()).drop_null().to_pylist())
    compressed = pa.compress(joined, codec="zstd", asbytes=True)
    return len(compressed) > _COMPRESSED_RANDOM_SHARE * len(joined)


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_binary(type_))
