"""What becomes of records for which the user's functions fail, where the job does not end at the first (KIP-1033).

Such a record is left out where its function fails: at that node and below it, and nowhere else, as with Kafka Streams'
``LogAndContinueProcessingExceptionHandler``. The source record that caused it goes to the job's quarantine topic, with
the node and what was raised (KIP-1034's dead letter queue).

That holds for nodes that call functions before they do anything (`statelib.operators.base.CallingFirst`): steps without
state, and tables that are made of one other. What a custom processor has put and forwarded before it failed stays, as
with Kafka Streams. A function that fails inside a join or an aggregation, or in a scheduled call, ends the run: what
the node has done for the record before could not be taken back, or there is no record.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Self

import numpy as np

from statelib.task.numbering import Passing, in_task

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from statelib.metrics.node_metrics import NodeMetrics
    from statelib.operators.mappers.function_errors import UserFunctionError
    from statelib.operators.processors.visits import Visit
    from statelib.records.batch import Batch, Uptake
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
        fails = _rows_that_fail(given.batch, error)
        if not fails.any():
            raise error
        failed = replace(given, batch=given.batch.filter(fails))
        metrics.records_in += len(failed.batch)
        metrics.drop("quarantined", len(failed.batch))
        self._set_aside(in_task(failed).sequence, f"{node}: {error.what}")
        return replace(given, batch=given.batch.filter(~fails))

    def of_processor(
        self, node: str, uptake: Uptake, metrics: NodeMetrics
    ) -> Callable[[UserFunctionError, Visit], None]:
        """What a custom processor tells of a record for which it fails.

        Args:
            node: The processor.
            uptake: What its visits are numbered in.
            metrics: The processor's.
        """

        def failed(error: UserFunctionError, visit: Visit) -> None:
            metrics.drop("quarantined", 1)
            self._set_aside(np.array([uptake.cause_of(visit.sequence)]), f"{node}: {error.what}")

        return failed

    def _set_aside(self, causes: NDArray[np.int64], reason: str) -> None:
        """Sets source records aside.

        Args:
            causes: int64: their sequences in the task, ascending; one that has caused several is there as often.
            reason: Where and why.
        """
        for row in (causes - self._uptake.first_sequence).tolist():
            source = int(self._uptake.source[row])
            place = int(np.searchsorted(self._ranks[source], row))
            records = self._parts[source].slice(place, place + 1)
            self._quarantine.add_failed(self._topics[source], int(self._uptake.partition[row]), records, reason)


def _rows_that_fail(batch: Batch, error: UserFunctionError) -> NDArray[np.bool_]:
    """bool, one a record: for which of those that a node got its function fails; none: that cannot be found out."""
    fails = np.zeros(len(batch), np.bool_)
    if error.failing is not None and error.failing.of == len(batch):
        fails[error.failing.rows()] = True
    return fails
