from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from statelib.records.row_pool import RowPool

SCHEMA = pa.schema([("number", pa.int64()), ("row", pa.struct([("text", pa.string())]))])


def rows(numbers: list[int]) -> pa.RecordBatch:
    texts = [None if number % 3 == 0 else {"text": str(number)} for number in numbers]
    return pa.RecordBatch.from_pydict({"number": numbers, "row": texts}, schema=SCHEMA)


@given(st.lists(st.integers(0, 9), max_size=12), st.data())
def test_like_one_long_list(sizes: list[int], data: st.DataObject) -> None:
    pool = RowPool(SCHEMA)
    everything: list[int] = []
    for size in sizes:
        more = list(range(1000 + len(everything), 1000 + len(everything) + size))
        assert pool.append(rows(more)) == len(everything)
        everything += more
        there = st.integers(0, len(everything) - 1)
        chosen = data.draw(st.lists(there, max_size=8)) if everything else []
        numbers, expected = np.array(chosen, dtype=np.int64), rows([everything[i] for i in chosen])
        assert pool.take(numbers) == expected
        if data.draw(st.booleans()) and chosen:
            pool.keep(numbers)
            everything = [everything[i] for i in chosen]
    assert len(pool) == len(everything)
    assert len(pool._pieces) <= max(1, len(everything)).bit_length()
