"""A table and its join with a stream, run together as in a task."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from statelib.metrics.node_metrics import NodeMetrics
from statelib.operators.joins.stream_table.buffer import JoinBuffer
from statelib.operators.joins.stream_table.latest import StreamLatestJoin
from statelib.operators.joins.stream_table.operator import StreamTableJoin
from statelib.operators.tables.source import PlainTableSource, TableSource
from statelib.operators.tables.view import TableView
from statelib.operators.tables.writer import PlainStore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.operators.base import Operator, OperatorContext
    from statelib.operators.joins.stream_table.buffer import RunningJoinBuffer
    from statelib.operators.mappers.mapping import Mapper
    from statelib.operators.tables.steps import TableStep
    from statelib.records.batch import Batch, Uptake
    from statelib.stores.backend import WriteBatch
    from statelib.stores.spec import StoreSpec

STREAM, TABLE = 0, 1


@dataclass(frozen=True)
class JoinedTable:
    """A table and a join of a stream with it, as one operator whose inputs are `STREAM` and `TABLE`."""

    joiner: Mapper
    retention_ms: int | None  # None: the table is plain
    segment_interval_ms: int | None = None
    left: bool = False
    grace_ms: int | None = None
    steps: tuple[TableStep, ...] = ()
    key: Mapper | None = None

    @property
    def table(self) -> TableSource | PlainTableSource:
        if self.retention_ms is None:
            return PlainTableSource("t")
        return TableSource("t", self.retention_ms, self.segment_interval_ms)

    @property
    def join(self) -> StreamTableJoin | StreamLatestJoin:
        if self.retention_ms is None:
            return StreamLatestJoin(self.joiner, TableView(PlainStore("t"), self.steps), self.left, self.key)
        return StreamTableJoin(
            self.joiner, "t", self.retention_ms, self.segment_interval_ms, self.left, steps=self.steps, key=self.key
        )

    def build(self, context: OperatorContext) -> Both:
        join = self.join
        if self.grace_ms is None:
            return Both(self.table.build(context), join.build(context))
        buffer = JoinBuffer("b", self.grace_ms)
        beside = replace(context, metrics=NodeMetrics())  # a node of its own in a task
        return Both(self.table.build(context), join.build(context), buffer.build(beside))

    def describe(self) -> dict[str, object]:
        return {}

    def state_stores(self) -> Sequence[StoreSpec]:
        buffers = () if self.grace_ms is None else JoinBuffer("b", self.grace_ms).state_stores()
        return (*self.table.state_stores(), *buffers)


class Both:
    def __init__(self, table: Operator, join: Operator, *buffer: RunningJoinBuffer) -> None:
        self.operators: tuple[Operator, ...] = (table, join, *buffer)
        self.buffer = buffer[0] if buffer else None

    def process(self, inputs: Sequence[Batch], uptake: Uptake) -> Batch:
        table, join, *_ = self.operators
        stream = self.buffer.process([inputs[STREAM]], uptake) if self.buffer else inputs[STREAM]
        return join.process([stream, table.process([inputs[TABLE]], uptake)], uptake)

    def flush(self, write: WriteBatch) -> None:
        for operator in self.operators:
            operator.flush(write)

    def memory_bytes(self) -> int:
        return sum(operator.memory_bytes() for operator in self.operators)
