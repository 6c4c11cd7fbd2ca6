"""What updates of an aggregation replace (Kafka's ``Change.oldValue``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa

from statelib.operators.aggregation.accumulators.kernel import NO_UPDATE, previous_update

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from statelib.operators.aggregation.aggregator import Aggregator

Priors: TypeAlias = "Callable[[pa.Array, NDArray[np.bool_]], pa.Array]"
"""Gives what each update has replaced, of the result after each and of which have removed the aggregate."""


def prior_results(
    aggregator: Aggregator,
    slots: NDArray[np.int64],
    was_there: NDArray[np.bool_],
    *,
    count: int,
    initial_of_new: bool,
) -> Priors:
    """Remembers how aggregates are before updates.

    Args:
        aggregator: Has their states.
        slots: int64, the slot of each update.
        was_there: bool, whether it had an aggregate before all of these updates.
        count: The number of slots.
        initial_of_new: Whether the first update of a slot replaces the initial aggregate, as the shipped library has
            it for aggregations of streams, instead of nothing.

    Returns:
        A function that gives what each update has replaced, of the result after each update and of which updates have
        removed the aggregate (empty: none).
    """
    before = aggregator.results(slots)

    def after(results: pa.Array, removed: NDArray[np.bool_]) -> pa.Array:
        previous = np.empty(len(slots), dtype=np.int64)
        previous_update(slots, slots, np.full(count, NO_UPDATE), previous)
        in_batch = previous != NO_UPDATE
        there = np.where(in_batch, True if len(removed) == 0 else ~removed[previous], was_there)
        source = np.where(in_batch, len(slots) + previous, np.arange(len(slots)))
        choices = [before, results]
        if initial_of_new and not there.all():  # not asked in vain: it may fail
            choices.append(aggregator.initial())
            return pa.concat_arrays(choices).take(pa.array(np.where(there, source, 2 * len(slots))))
        return pa.concat_arrays(choices).take(pa.array(source, mask=~there))

    return after
