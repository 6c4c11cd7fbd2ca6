"""The codes of a batch's keys: of windowed ones the windows are part, as they are of the bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.records.key_column import WindowedKeys

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from statelib.operators.base import OperatorContext
    from statelib.records.batch import Batch


def key_codes(batch: Batch, context: OperatorContext) -> NDArray[np.int64]:
    """``batch.key_code``, made now if an operator has changed the keys: int64, `NULL_KEY` for null keys."""
    if batch.key_code is not None:
        return batch.key_code
    return context.keys.encode(batch.keys.serialized())


def codes_without_windows(batch: Batch, context: OperatorContext) -> NDArray[np.int64]:
    """The codes of windowed keys without their windows, for operators that have those beside the key."""
    keys = batch.keys
    if isinstance(keys, WindowedKeys):
        return context.keys.encode(keys.without_windows.serialized()) if keys.code is None else keys.code
    return key_codes(batch, context)
