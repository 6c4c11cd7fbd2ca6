"""What becomes of records for which the user's functions fail, where the job does not end at the first (KIP-1033).

Such a record is left out where its function fails: at that node and below it, and nowhere else, as with Kafka Streams'
``LogAndContinueProcessingExceptionHandler``. The source record that caused it goes to the job's quarantine topic, with
the node and what was raised (KIP-1034's dead letter queue).

What a node has put and forwarded for the record before it failed stays, as there. Nodes that call functions before they
do anything (`statelib.operators.base.CallingFirst`) are called again without such records. Custom processors, joins and
aggregations leave them out themselves, and tell of them (`OperatorContext.on_failure`). A scheduled call that fails is
counted: there is no record.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Self

import numpy as np

from statelib.operators.asking import failing_records

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from statelib.metrics.node_metrics import NodeMetrics
    from statelib.operators.mappers.function_errors import OnFailure, UserFunctionError
    from statelib.records.batch import Uptake
    from statelib.task.numbering import Passing
    from statelib.task.quarantine import Quarantine
    from statelib.task.source_records import Records
    from statelib.task.work import TaskWork


class ProcessingErrors:
    """Sets source records aside that have caused what a function failed for.

    Args:
        quarantine: Where they go.
        topics: The task's source topics, by `Uptake.source`.
    """

    def __init__(self, quarantine: Quarantine, topics: Sequence[str]) -> None:
        self._quarantine = quarantine
        self._topics = topics
        self._parts: Sequence[Records] = ()
        self._ranks: Sequence[NDArray[np.int64]] = ()
        self._uptake: Uptake

    @classmethod
    def of(cls, work: TaskWork, quarantine: Quarantine) -> Self | None:
        """For a task; None: its run ends at the first."""
        topics = [source.topic for source in work.sub_topology.all_sources]
        return cls(quarantine, topics) if work.settings.on_processing_error == "quarantine" else None

    def take_up(self, parts: Sequence[Records], ranks: Sequence[NDArray[np.int64]], uptake: Uptake) -> None:
        """Says what is processed now. Args as of `statelib.task.graph.Graph.process`."""
        self._parts, self._ranks, self._uptake = parts, ranks, uptake

    def without_failing(self, node: str, given: Passing, error: UserFunctionError, metrics: NodeMetrics) -> Passing:
        """What a node gets, without the records for which its function fails: they are counted and set aside.

        Args:
            node: The node.
            given: What it has got.
            error: The function's.
            metrics: The node's.

        Raises:
            UserFunctionError: ``error``: it is not known for which, or it fails for none of them alone.
        """
        batch = given.batch
        found = failing_records(error, len(batch))
        if not found:
            raise error
        metrics.records_in += len(found)
        left_out = self.of_node(node, given.numbering.uptake, metrics)
        for row, what in found.items():
            left_out(int(batch.sequence[row]), what)
        return replace(given, batch=batch.take(np.setdiff1d(np.arange(len(batch)), [*found])))

    def of_node(self, node: str, uptake: Uptake, metrics: NodeMetrics) -> OnFailure:
        """What a node tells of a record for which it fails: it is counted, and its source record set aside.

        Args:
            node: The node.
            uptake: What its records are numbered in.
            metrics: The node's.
        """

        def failed(sequence: int, what: str) -> None:
            metrics.drop("quarantined", 1)
            self._set_aside(uptake.cause_of(sequence), f"{node}: {what}")

        return failed

    def _set_aside(self, cause: int, reason: str) -> None:
        """Sets the source record of a sequence in the task aside; it may be the second time."""
        row = cause - self._uptake.first_sequence
        source = int(self._uptake.source[row])
        place = int(np.searchsorted(self._ranks[source], row))
        records = self._parts[source].slice(place, place + 1)
        self._quarantine.add_failed(self._topics[source], int(self._uptake.partition[row]), records, reason)
