"""Arrays by slot that grow and shrink with their working set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def grown(state: NDArray[Any], slots: int, fill: int = 0) -> NDArray[Any]:
    """``state`` with room for ``slots`` slots, at least doubled if it must grow; new ones are ``fill``."""
    if slots <= len(state):
        return state
    return np.concatenate([state, np.full(max(slots, 2 * len(state)) - len(state), fill, dtype=state.dtype)])


def shrunk(state: NDArray[Any], slots: NDArray[np.int64], fill: int = 0) -> NDArray[Any]:
    """The state of ``slots`` alone, in their order. Its room stays, for those that come next, unless none is kept."""
    if len(slots) == 0:
        return np.empty(0, dtype=state.dtype)
    state[: len(slots)] = state[slots]
    state[len(slots) :] = fill
    return state
