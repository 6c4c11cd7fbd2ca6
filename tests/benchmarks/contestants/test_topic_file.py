from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.contestants import topic_file
from benchmarks.contestants.topic_file import Cells, Records, big_endian, joined


def _records(timestamp: list[int], keys: list[str], values: list[bytes]) -> Records:
    return Records(np.array(timestamp, np.int64), Cells.of(pa.array(keys)), Cells.of(pa.array(values)))


def test_what_is_written_is_read(tmp_path) -> None:
    blocks = [_records([5, -3], ["a", "bcd"], [b"", b"xy"]), _records([1 << 40], [""], [b"z"])]
    topic_file.write(tmp_path / "one", blocks)
    read = topic_file.read(tmp_path / "one")
    assert read.timestamp.tolist() == [5, -3, 1 << 40]
    assert read.keys.text(read.keys.begins, read.keys.ends).to_pylist() == ["a", "bcd", ""]
    assert read.values.text(read.values.begins, read.values.ends).to_pylist() == ["", "xy", "z"]


def test_a_file_without_records(tmp_path) -> None:
    topic_file.write(tmp_path / "one", [])
    read = topic_file.read(tmp_path / "one")
    assert len(read.timestamp) == len(read.keys.ends) == len(read.values.begins) == 0
    assert read.keys.text(read.keys.begins, read.keys.ends).to_pylist() == []


def test_cells_of_a_slice() -> None:
    cells = Cells.of(pa.array(["ab", "cde", "f"]).slice(1))
    assert cells.text(cells.begins, cells.ends).to_pylist() == ["cde", "f"]


@pytest.mark.parametrize("dtype", [">i4", ">i8"])
def test_numbers_keep_their_sign_and_size(dtype) -> None:
    numbers = [0, 1, -1, 2**31 - 1, -(2**31)]
    cells = Cells.of(joined(big_endian(pa.array(numbers), dtype), pa.array(["text"] * len(numbers))))
    found = cells.int32(cells.begins) if dtype == ">i4" else cells.int64(cells.begins)
    assert found.to_pylist() == numbers
