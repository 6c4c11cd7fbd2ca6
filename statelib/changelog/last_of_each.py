"""The record of each key that counts: a changelog's last one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from statelib.records.key_table import KeyTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from statelib.stores.byte_columns import Column


def last_of_each(keys: Column) -> NDArray[np.int64]:
    """int64, ascending: the place of the last record of each key."""
    codes = KeyTable().encode(keys)
    _, from_end = np.unique(codes[::-1], return_index=True)
    last: NDArray[np.int64] = np.sort(len(codes) - 1 - from_end)
    return last
