"""Runs a chain of operators as a task would: batches of any size, a flush and a new process between any two of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from statelib.metrics.node_metrics import NodeMetrics
from statelib.operators.base import OperatorContext, SpillingOperator
from statelib.operators.changelog import Changelog
from statelib.operators.windows.condensing import CondensingOperator, FinalResultsReader, StoringOperator
from statelib.records.batch import Batch, Uptake
from statelib.records.key_table import KeyTable
from statelib.stores.backend import WriteBatch
from statelib.stores.memory import MemoryBackend
from statelib.stores.spec import families_of
from statelib.task.source_records import HEADERS_TYPE
from tests.operators.keys import key_column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.operators.base import Operator, OperatorSpec
    from statelib.settings.semantics import Semantics
    from statelib.stores.backend import Backend

TOPIC = "in"


@dataclass(frozen=True)
class Record:
    """A record of the one source topic; its offset is its sequence.

    ``prior``: for a table, the value it replaces. ``header``: the value of its one header; None: it has none.
    """

    key: object
    value: object
    timestamp: int
    prior: object = None
    header: bytes | None = None


@dataclass(frozen=True)
class Row:
    """A record that an operator has forwarded. ``sequence``: of the source record that caused it."""

    sequence: int
    key: object
    value: Any
    timestamp: int
    window: tuple[int, int] | None = None
    prior: object = None
    headers: object = None


@dataclass
class Chain:
    """Operators, each the child of the one before.

    Attributes:
        specs: The operators.
        key_type: Arrow type of the source's keys.
        value_type: Arrow type of the source's values.
        table: Whether the source is a table, whose records carry prior values.
        headers: Whether the source's records have headers.
        condensed: Whether the first operator leaves out what the second one, its only reader, does not need.
        refers: Whether the second operator leaves windows to the store of the first one.
        logged: The stores that have a changelog; ``changelogs`` has them.
    """

    specs: Sequence[OperatorSpec]
    value_type: pa.DataType
    key_type: pa.DataType = field(default_factory=pa.string)
    table: bool = False
    semantics: Semantics = "kip"
    backend: Backend = field(default_factory=MemoryBackend)
    headers: bool = False
    condensed: bool = False
    refers: bool = False
    logged: Sequence[str] = ()
    sequence: int = 0

    def __post_init__(self) -> None:
        self.clocks: list[dict[str, int]] = [{} for _ in self.specs]
        self.finished: list[list[NodeMetrics]] = [[] for _ in self.specs]
        self.changelogs = {store: Changelog() for store in self.logged}
        self._start()

    def _start(self) -> None:
        self.keys = KeyTable()
        self.metrics = [NodeMetrics() for _ in self.specs]
        self.contexts = [
            OperatorContext(
                f"NODE-{i}",
                self.backend,
                self.keys,
                metrics,
                dict(clocks),
                self.semantics,
                (TOPIC,),
                changelogs=self.changelogs,
            )
            for i, (metrics, clocks) in enumerate(zip(self.metrics, self.clocks, strict=True))
        ]
        self.operators: list[Operator] = [
            spec.build(context) for spec, context in zip(self.specs, self.contexts, strict=True)
        ]
        if (self.condensed or self.refers) and self.contexts[0].clock() >= self.contexts[1].clock():
            self._leave_to_the_first()

    def _leave_to_the_first(self) -> None:
        """As `statelib.task.held_once`, but the one way or the other."""
        aggregate, reader = self.operators
        assert isinstance(reader, FinalResultsReader)
        if self.condensed:
            assert isinstance(aggregate, CondensingOperator)
            assert reader.takes_condensed
            windows = aggregate.condense()
            assert windows is not None
            reader.leave_in(*windows)
        else:
            assert isinstance(aggregate, StoringOperator)
            assert reader.may_refer
            in_store = aggregate.in_store()
            assert in_store is not None
            reader.refer_to(in_store)

    def process(self, records: Sequence[Record]) -> list[list[Row]]:
        """One batch through all operators; what each of them forwarded."""
        return [rows_of(batch) for batch in self.forwarded(records)]

    def forwarded(self, records: Sequence[Record]) -> list[Batch]:
        """As `process`, as batches."""
        size = len(records)
        numbers = np.arange(self.sequence, self.sequence + size)
        times = np.array([record.timestamp for record in records], dtype=np.int64)
        uptake = Uptake(
            self.sequence,
            np.maximum.accumulate(times),  # nobody here looks at the task's clock
            np.zeros(size, dtype=np.int16),
            np.zeros(size, dtype=np.int32),
            numbers,
        )
        keys = key_column([record.key for record in records], self.key_type)
        batch = Batch(
            keys,
            self.keys.encode(keys.serialized()),
            pa.array([record.value for record in records], self.value_type),
            times,
            numbers,
            prior=pa.array([record.prior for record in records], self.value_type) if self.table else None,
            headers=pa.array(map(_headers, records), HEADERS_TYPE) if self.headers else None,
        )
        self.sequence += size
        forwarded = []
        for operator in self.operators:
            batch = operator.process((batch,), uptake)
            forwarded.append(batch)
        return forwarded

    def flush(self) -> None:
        """Writes the state, as at the end of a slice or when memory is short; the process goes on."""
        write = WriteBatch()
        for operator in reversed(self.operators):
            operator.flush(write)
        self.keys.clear()
        self.backend.write(write)
        self.clocks = [dict(context.clocks) for context in self.contexts]

    def spill(self) -> None:
        """Writes what memory cannot hold, which need not be the state; the process goes on."""
        with TemporaryDirectory() as folder:
            for number, operator in reversed(list(enumerate(self.operators))):
                write = WriteBatch(passed_to=self.backend)
                if isinstance(operator, SpillingOperator):
                    operator.spill(Path(folder) / str(number), write)
                else:
                    operator.flush(write)
                self.backend.write(write)
        self.keys.clear()

    def restart(self) -> None:
        """A new run in a new process: all that was in memory is gone."""
        self.flush()
        for finished, metrics in zip(self.finished, self.metrics, strict=True):
            assert metrics.unaccounted == 0
            finished.append(metrics)
        self._start()

    def run(self, records: Sequence[Record], batch_size: int, *between: str) -> list[list[Row]]:
        """All records in batches of one size; after each, in turn, ``nothing``, ``flush``, ``spill`` or ``restart``."""
        total: list[list[Row]] = [[] for _ in self.specs]
        betweens = cycle(between or ["nothing"])
        for first in range(0, len(records), batch_size):
            for rows, more in zip(total, self.process(records[first : first + batch_size]), strict=True):
                rows.extend(more)
            then = next(betweens)
            if then != "nothing":
                getattr(self, then)()
        return total

    def content(self) -> dict[str, list[tuple[bytes, bytes]]]:
        """All bytes of all stores."""
        families = [family for spec in self.specs for family in families_of(spec.state_stores())]
        return {family: list(self.backend.scan(family)) for family in families}


def _headers(record: Record) -> list[tuple[str, bytes]] | None:
    return None if record.header is None else [("header", record.header)]


def rows_of(batch: Batch) -> list[Row]:
    """A batch's records."""
    windows = [None] * len(batch)
    if batch.windows is not None:
        windows = list(zip(batch.windows.start.tolist(), batch.windows.end.tolist(), strict=True))
    return list(
        map(
            Row,
            batch.sequence.tolist(),
            batch.key.to_pylist(),
            batch.value.to_pylist(),
            batch.timestamp.tolist(),
            windows,
            [None] * len(batch) if batch.prior is None else batch.prior.to_pylist(),
            [None] * len(batch) if batch.headers is None else batch.headers.to_pylist(),
        )
    )
