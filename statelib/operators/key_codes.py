"""The codes of a batch's keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from statelib.batch import Batch
    from statelib.operators.base import OperatorContext


def key_codes(batch: Batch, context: OperatorContext) -> NDArray[np.int64]:
    """``batch.key_code``, made now if an operator has changed the keys: int64, `NULL_KEY` for null keys."""
    if batch.key_code is not None:
        return batch.key_code
    return context.keys.encode(batch.keys.serialized())
