"""Several streams as one (Kafka's ``merge``).

Records come in the order in which Kafka Streams would pass them, wherever they come from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from statelib.errors.kinds import ConfigurationError
from statelib.operators.base import StorelessOperator, StorelessSpec
from statelib.operators.key_types import check_types, with_keys_of_one_type, with_values_of_one_type
from statelib.operators.mappers.fields import narrowed
from statelib.records.batch import Batch, concat_in_order

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from statelib.operators.base import OperatorContext
    from statelib.operators.mappers.fields import Fields
    from statelib.records.batch import Uptake


@dataclass(frozen=True, slots=True)
class Merge(StorelessSpec):
    """Forwards what all of its parents forward."""

    def build(self, context: OperatorContext) -> RunningMerge:
        """The running operator."""
        return RunningMerge(context)

    def describe(self) -> Mapping[str, object]:
        """Kind alone."""
        return {"operator": "merge"}

    def reads(self, parent: int, wanted: Fields) -> Fields:
        """See `FieldsSpec`."""
        del parent
        return wanted


class RunningMerge(StorelessOperator):
    """The running operator. Account: ``forwarded``."""

    def __init__(self, context: OperatorContext) -> None:
        self._context = context

    def process(self, inputs: Sequence[Batch], uptake: Uptake) -> Batch:
        """All inputs in order of sequence.

        Raises:
            ConfigurationError: They differ in the type of keys or values, or only some have windowed keys.
        """
        del uptake
        inputs = [narrowed(batch, self._context.wanted) for batch in inputs]  # each parent may have read more
        for batch in inputs[1:]:
            self._check(inputs[0], batch)
        merged, _ = concat_in_order(with_values_of_one_type(with_keys_of_one_type(inputs)))
        metrics = self._context.metrics
        metrics.records_in += len(merged)
        metrics.records_out += len(merged)
        metrics.account("forwarded", len(merged))
        return merged

    def _check(self, one: Batch, other: Batch) -> None:
        keys = one.keys.without_windows.type, other.keys.without_windows.type
        types = {"keys": keys, "values": (one.value.type, other.value.type)}
        for name, (left, right) in types.items():
            what = f"streams whose {name} differ in type cannot be merged: {{}} and {{}}"
            way_round = f"map the {name} of one stream to the other's type before"
            check_types(left, right, node=self._context.node, what=what, way_round=way_round)
        if (one.windows is None) != (other.windows is None):
            raise ConfigurationError(
                "a stream with windowed keys cannot be merged with one without",
                node=self._context.node,
                next_step="give the windowed stream plain keys with select_key() before",
            )
