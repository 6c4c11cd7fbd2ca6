"""A table on disk against a dictionary, its bytes, and what it takes in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.columns.key_filter import hashes_of
from statelib.stores import rows_in_order, spilled_table
from statelib.stores.byte_columns import cut
from statelib.stores.spilled_table import SpilledTable

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from statelib.stores.byte_columns import Column

KEYS = st.binary(max_size=20) | st.sampled_from([b"\0", b"\0\0", b"12345678", b"123456789", b"x" * 100])
VALUES = st.integers(-(1 << 63), (1 << 63) - 1)
CONTENTS = st.integers(0, 4).flatmap(
    lambda words: st.dictionaries(KEYS, st.lists(VALUES, min_size=words, max_size=words), min_size=1, max_size=60)
)


def binary(keys: list[bytes]) -> Column:
    return pa.array(keys, pa.binary())


def table_of(content: dict[bytes, list[int]], file: Path) -> SpilledTable:
    keys, values = binary(list(content)), np.array(list(content.values()), np.int64).reshape(len(content), -1)
    return SpilledTable(file, len(content), keys.take, values.__getitem__)


def take_out(table: SpilledTable, keys: list[bytes]) -> dict[bytes, list[int]]:
    found, values = table.take_out(binary(keys), hashes_of(binary(keys)))
    return {keys[row]: some for row, some in zip(found.tolist(), values.tolist(), strict=True)}


def left(table: SpilledTable, words: int) -> dict[bytes, list[int]]:
    places = table.left()
    columns: list[NDArray[np.int64]] = [table.values(places, word) for word in range(words)]
    keys = cut(*table.keys(places)).to_pylist()
    return {key: [int(column[row]) for column in columns] for row, key in enumerate(keys)}


@given(
    content=CONTENTS,
    asked=st.lists(st.lists(KEYS, max_size=30, unique=True), max_size=4),
    bucket_rows=st.integers(1, 20),
    piece_rows=st.integers(1, 20),
)
def test_it_is_a_dictionary_that_gives_each_key_once(
    tmp_path_factory: pytest.TempPathFactory,
    content: dict[bytes, list[int]],
    asked: list[list[bytes]],
    bucket_rows: int,
    piece_rows: int,
) -> None:
    words = len(next(iter(content.values())))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spilled_table, "_BUCKET_ROWS", bucket_rows)
        patch.setattr(rows_in_order, "PIECE_ROWS", piece_rows)
        table = table_of(content, tmp_path_factory.mktemp("spilled") / "file")
    model = dict(content)
    for keys in [*asked, list(content)[::2]]:
        assert take_out(table, keys) == {key: model.pop(key) for key in keys if key in model}
        assert len(table) == len(model)
        assert left(table, words) == model
    assert take_out(table, list(content)) == model
    assert len(table.left()) == 0


def test_its_rows(tmp_path: Path) -> None:
    """A head, of which the upper half is the key's hash; the words; the key."""
    table_of({b"key-1": [7, -1]}, tmp_path / "file")
    written = (tmp_path / "file").read_bytes()
    tag = int(hashes_of(binary([b"key-1"]))[0]) & 0xFFFFFFFF
    assert np.frombuffer(written[:24], np.int64).tolist() == [np.uint64(tag << 32 | 5).astype(np.int64), 7, -1]
    assert written[24:] == b"key-1"


def test_large_keys_are_written_some_at_a_time(tmp_path: Path) -> None:
    keys = [bytes([number]) * (1 << 20) for number in range(40)]
    most = 0

    def some(rows: NDArray[np.int64]) -> Column:
        nonlocal most
        most = max(most, len(rows))
        return binary([keys[row] for row in rows.tolist()])

    table = SpilledTable(tmp_path / "file", len(keys), some, lambda rows: rows.reshape(-1, 1))
    assert most == 32  # of which their size is judged
    assert take_out(table, [*keys[::-1], b""]) == {key: [number] for number, key in enumerate(keys)}


def test_a_row_takes_a_few_bytes_of_memory(tmp_path: Path) -> None:
    keys = np.char.add("user-", np.arange(200_000).astype(str)).astype("S")
    column = binary(keys.tolist())
    table = SpilledTable(tmp_path / "file", len(keys), column.take, lambda rows: rows.reshape(-1, 1))
    assert table.memory_bytes() < 4 * len(keys)
    found, values = table.take_out(column, hashes_of(column))
    assert (values.ravel() == found).all()
    assert len(found) == len(keys)


def test_a_file_is_its_own(tmp_path: Path) -> None:
    table = table_of({b"a": [1]}, tmp_path / "file")
    with pytest.raises(FileExistsError):
        table_of({b"b": [1]}, tmp_path / "file")
    table.close()
    assert list(tmp_path.iterdir()) == []
    table_of({b"b": [1]}, tmp_path / "file")
