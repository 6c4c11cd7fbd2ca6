"""Sends each record to the sink of the topic that an extractor chooses (Kafka's ``TopicNameExtractor``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.errors.did_you_mean import did_you_mean
from statelib.errors.kinds import ConfigurationError
from statelib.errors.user_lines import defined_at
from statelib.operators.base import StorelessOperator, StorelessSpec
from statelib.operators.mappers.fields import both, columns_for, fields_of_mapper, narrowed
from statelib.operators.mappers.mapping import Mapper, evaluate, functions_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from statelib.operators.base import OperatorContext
    from statelib.operators.mappers.fields import Fields
    from statelib.records.batch import Batch, Uptake


@dataclass(frozen=True, slots=True)
class Route(StorelessSpec):
    """Chooses each record's topic.

    Attributes:
        extractor: Gives the topic's name.
        targets: Of each topic that it may give the name, and the node to which its records go.
    """

    extractor: Mapper
    targets: tuple[tuple[str, str], ...]

    def build(self, context: OperatorContext) -> RunningRoute:
        """The running operator."""
        return RunningRoute(self, context)

    def describe(self) -> Mapping[str, object]:
        """Kind, extractor and topics."""
        topics = [topic for topic, _ in self.targets]
        return {"operator": "route", "extractor": self.extractor.describe(), "topics": topics}

    def reads(self, parent: int, wanted: Fields) -> Fields:
        """See `FieldsSpec`."""
        del parent
        return both([fields_of_mapper(self.extractor), wanted])


class RunningRoute(StorelessOperator):
    """The running operator. Account: ``forwarded``."""

    def __init__(self, spec: Route, context: OperatorContext) -> None:
        self._spec = spec
        self._context = context
        self._topics = pa.array([topic for topic, _ in spec.targets])
        self._number_of = {node: number for number, (_, node) in enumerate(spec.targets)}
        self._target: NDArray[np.int64] = np.empty(0, np.int64)

    def process(self, inputs: Sequence[Batch], uptake: Uptake) -> Batch:
        """The records as they are.

        Raises:
            ConfigurationError: The extractor gave the name of no topic that was declared.
        """
        del uptake
        (batch,) = inputs
        names = evaluate(
            self._spec.extractor, columns_for(self._spec.extractor, batch), self._context.node, batch.sequence
        )
        self._target = self._numbers(names, batch)
        metrics = self._context.metrics
        metrics.records_in += len(batch)
        metrics.records_out += len(batch)
        metrics.account("forwarded", len(batch))
        return narrowed(batch, self._context.wanted)

    def sent_to(self, child: str, forwarded: Batch) -> Batch:
        """See `RoutingOperator`; a child that is no target gets nothing."""
        return forwarded.filter(self._target == self._number_of.get(child, -1))

    def _numbers(self, names: pa.Array, batch: Batch) -> NDArray[np.int64]:
        """int64: the number of each record's topic."""
        place = defined_at(functions_of(self._spec.extractor))
        if pa.types.is_dictionary(names.type):
            names = names.dictionary_decode()
        if not (pa.types.is_string(names.type) or pa.types.is_large_string(names.type) or pa.types.is_null(names.type)):
            raise ConfigurationError(
                f"a topic name extractor gave {names.type}, not strings", next_step="give names of topics", **place
            )
        numbers = pc.index_in(names.cast(pa.string()), value_set=self._topics, skip_nulls=True)
        if numbers.null_count:
            row = int(np.flatnonzero(np.asarray(numbers.is_null()))[0])
            name, known = names[row].as_py(), self._topics.to_pylist()
            step = did_you_mean(name or "", known, "it may give one of:")
            error = ConfigurationError(
                f"a topic name extractor gave {name!r}, which to() has not been told",
                next_step=f"name it in to(extractor, topics=[...]), or filter() the record before; {step}",
                **place,
            )
            error.sequence = int(batch.sequence[row])
            raise error
        return np.asarray(numbers, dtype=np.int64)
