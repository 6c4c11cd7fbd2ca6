"""What aggregations by time windows, sliding windows and sessions have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
import pyarrow as pa

from statelib.operators.aggregation.definition import fields_of_aggregator
from statelib.records.batch import Batch
from statelib.records.key_column import WindowedKeys

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from statelib.columns.windowed_type import KeyWindows
    from statelib.operators.aggregation.aggregator import Aggregator
    from statelib.operators.aggregation.definition import AggregatorSpec
    from statelib.operators.mappers.fields import Fields
    from statelib.operators.windows.definition import AnyWindows
    from statelib.records.key_column import Windows


@dataclass(frozen=True, slots=True)
class WindowedAggregateSpec:
    """Parameters of an aggregation by key and window.

    Attributes:
        store: Name of the store.
        windows: The windows.
        aggregator: What to compute.
        retention_ms: How long a window is asked to stay in the store; None: as long as it must.
        needs_prior: Whether updates carry the value that they replace.
    """

    operator: ClassVar[str]
    final: ClassVar[bool] = False
    """Whether final results alone are forwarded (`statelib.operators.windows.final_results`)."""

    store: str
    windows: AnyWindows
    aggregator: AggregatorSpec
    retention_ms: int | None = None
    needs_prior: bool = False

    @property
    def kept_ms(self) -> int:
        """How long a window stays in the store."""
        return self.windows.retention_ms if self.retention_ms is None else self.retention_ms

    def describe(self) -> Mapping[str, object]:
        """Kind and parameters."""
        return {
            "operator": self.operator,
            "store": self.store,
            **self.windows.describe(),
            "aggregator": self.aggregator.describe(),
            "retention_ms": self.kept_ms,
        }

    def reads(self, parent: int, wanted: Fields) -> Fields:
        """See `FieldsSpec`."""
        del wanted
        return fields_of_aggregator(self.aggregator, parent)


Piece: TypeAlias = "tuple[NDArray[Any], pa.Array, pa.Array | None]"
"""Some updates: a row each, their values, and what they replace; None: nobody asks."""


def together(
    pieces: Sequence[Piece], row: np.dtype[Any], aggregator: Aggregator
) -> tuple[NDArray[Any], pa.Array, pa.Array | None]:
    """Pieces as one; ``row``: the type of a row."""
    nothing = pa.nulls(0, aggregator.result_type)
    rows = np.concatenate([np.empty(0, row), *(rows for rows, _, _ in pieces)])
    priors = [prior for _, _, prior in pieces if prior is not None]
    values = pa.concat_arrays([nothing, *(values for _, values, _ in pieces)])
    return rows, values, pa.concat_arrays([nothing, *priors])


def updates_of(
    batch: Batch, rows: NDArray[np.int64], keys: tuple[Windows, KeyWindows, NDArray[np.int64]],
    timestamp: NDArray[np.int64], value: pa.Array, prior: pa.Array | None,
) -> Batch:  # fmt: skip
    """What is forwarded: records of the windowed table.

    Args:
        batch: The records that were aggregated.
        rows: int64, which of them each update is from.
        keys: The windows of the updates, what is known of windows of such keys, and int64: the codes of the plain keys.
        timestamp: int64, ms.
        value: The aggregates.
        prior: What they replace; None: nobody asks.
    """
    windows, of_keys, codes = keys
    chosen = pa.array(rows)
    return Batch(
        keys=WindowedKeys(batch.keys.take(chosen), windows, of_keys, codes),
        key_code=None,
        value=value,
        timestamp=timestamp,
        sequence=batch.sequence[rows],
        prior=prior,
        headers=batch.headers_at(chosen),
    )
