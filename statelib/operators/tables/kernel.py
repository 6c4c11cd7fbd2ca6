"""The hot loop of plain tables: rows put and looked up by key, in task order.

A table is one row number a key code; rows stay outside. Row `NOTHING` is what a key has that has nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.kernels.compiled import Int64s, Int64sOut, compiled, nothing
from statelib.records.batch import NULL_KEY

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NOTHING = 0


@compiled(nothing(*[Int64s] * 5, *[Int64sOut] * 3))
def put_and_look_up(
    put_sequences: NDArray[np.int64],
    put_codes: NDArray[np.int64],
    put_rows: NDArray[np.int64],
    ask_sequences: NDArray[np.int64],
    ask_codes: NDArray[np.int64],
    latest: NDArray[np.int64],
    replaced: NDArray[np.int64],
    found: NDArray[np.int64],
) -> None:
    """Carries out puts and look-ups in order of sequence; of the same one the puts first.

    Args:
        put_sequences: Ascending.
        put_codes: Key codes, none of them `NULL_KEY`.
        put_rows: What each puts; `NOTHING` deletes.
        ask_sequences: Ascending.
        ask_codes: Key codes; a `NULL_KEY` finds `NOTHING`.
        latest: By key code, the row that the key has; kept up to date.
        replaced: By put, the row that it replaces.
        found: By look-up, the row.
    """
    put = 0
    for ask in range(len(ask_codes)):
        while put < len(put_codes) and put_sequences[put] <= ask_sequences[ask]:
            replaced[put] = latest[put_codes[put]]
            latest[put_codes[put]] = put_rows[put]
            put += 1
        found[ask] = NOTHING if ask_codes[ask] == NULL_KEY else latest[ask_codes[ask]]
    while put < len(put_codes):
        replaced[put] = latest[put_codes[put]]
        latest[put_codes[put]] = put_rows[put]
        put += 1
