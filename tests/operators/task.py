"""Runs one operator as a task would: batches of any size, flushes and restarts between any two of them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from statelib.metrics.node_metrics import NodeMetrics
from statelib.operators.base import OperatorContext, SpillingOperator
from statelib.records.batch import Batch, Uptake
from statelib.records.key_table import KeyTable
from statelib.stores.backend import WriteBatch
from statelib.stores.memory import MemoryBackend
from statelib.stores.spec import families_of
from tests.operators.keys import key_column

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from statelib.operators.base import Operator, OperatorSpec
    from statelib.settings.semantics import Semantics
    from statelib.stores.backend import Backend


@dataclass(frozen=True)
class Record:
    """A source record. ``parent``: the input of the operator that it reaches; None: it goes elsewhere in the task."""

    key: Any
    value: Any
    timestamp: int
    offset: int
    parent: int | None = 0
    source: int = 0


@dataclass
class Task:
    """One operator under test.

    Attributes:
        spec: The operator.
        key_type: Arrow type of all keys.
        value_types: Arrow type of the values of each input.
    """

    spec: OperatorSpec
    key_type: pa.DataType
    value_types: Sequence[pa.DataType]
    backend: Backend = field(default_factory=MemoryBackend)
    semantics: Semantics = "kip"
    metrics: NodeMetrics = field(default_factory=NodeMetrics)
    clocks: dict[str, int] = field(default_factory=dict)
    stream_time: int = -1
    sequence: int = 0
    files: Iterator[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """A new process: all that is in memory is gone."""
        self.keys = KeyTable()
        context = OperatorContext(
            "NODE", self.backend, self.keys, self.metrics, dict(self.clocks), semantics=self.semantics
        )
        self.context = context
        self.operator: Operator = self.spec.build(context)

    def process(self, records: Sequence[Record]) -> Batch:
        """One batch."""
        uptake = self.uptake_of(records)
        inputs = [self.input_of(records, parent) for parent in range(len(self.value_types))]
        self.sequence += len(records)
        self.stream_time = int(uptake.stream_time[-1]) if len(records) else self.stream_time
        return self.operator.process(inputs, uptake)

    def uptake_of(self, records: Sequence[Record]) -> Uptake:
        """What the task knows of the records."""
        times = np.array([record.timestamp for record in records], dtype=np.int64)
        stream_times = np.maximum.accumulate(np.concatenate([[self.stream_time], times]))[1:].astype(np.int64)
        return Uptake(
            self.sequence,
            stream_times,
            np.array([record.source for record in records], dtype=np.int16),
            np.zeros(len(records), dtype=np.int32),
            np.array([record.offset for record in records], dtype=np.int64),
        )

    def flush(self) -> None:
        """Writes the state, as at the end of a slice."""
        write = WriteBatch()
        self.operator.flush(write)
        self.keys.clear()
        self.backend.write(write)
        self.clocks = dict(self.context.clocks)

    def spill(self, folder: Path) -> None:
        """Puts the working set aside, as a task does whose memory budget is exceeded."""
        assert isinstance(self.operator, SpillingOperator)
        write = WriteBatch()
        self.operator.spill(folder / f"{next(self.files)}", write)
        self.keys.clear()
        self.backend.write(write)

    def run(
        self,
        records: Sequence[Record],
        cuts: Sequence[int] = (),
        *,
        flush_every: int = 0,
        spill_every: int = 0,
        folder: Path | None = None,
    ) -> list[Batch]:
        """All records, cut into batches before the indices ``cuts``.

        After so many batches comes a flush and restart, after so many others it spills into ``folder``.
        """
        results = []
        bounds = [0, *sorted(cut for cut in set(cuts) if 0 < cut < len(records)), len(records)]
        for number, (start, end) in enumerate(itertools.pairwise(bounds), start=1):
            results.append(self.process(records[start:end]))
            if flush_every and number % flush_every == 0:
                self.flush()
                self.restart()
            elif folder is not None and spill_every and number % spill_every == 0:
                self.spill(folder)
        self.flush()
        return results

    def content(self) -> dict[str, list[tuple[bytes, bytes]]]:
        """All bytes of the operator's state."""
        return {family: list(self.backend.scan(family)) for family in families_of(self.spec.state_stores())}

    def input_of(self, records: Sequence[Record], parent: int) -> Batch:
        """What reaches one input of the operator."""
        rows = [row for row, record in enumerate(records) if record.parent == parent]
        keys = key_column([records[row].key for row in rows], self.key_type)
        return Batch(
            keys,
            self.keys.encode(keys.serialized()),
            pa.array([records[row].value for row in rows], self.value_types[parent]),
            np.array([records[row].timestamp for row in rows], dtype=np.int64),
            self.sequence + np.array(rows, dtype=np.int64),
        )
