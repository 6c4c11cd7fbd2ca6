"""A versioned table and its join with a stream, run together as in a task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from statelib.operators.stream_table_join import StreamTableJoin
from statelib.operators.table_source import TableSource

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.batch import Batch, Uptake
    from statelib.operators.base import Operator, OperatorContext
    from statelib.operators.mapping import Mapper
    from statelib.stores.backend import WriteBatch

STREAM, TABLE = 0, 1


@dataclass(frozen=True)
class JoinedTable:
    """A table and a join of a stream with it, as one operator whose inputs are `STREAM` and `TABLE`."""

    joiner: Mapper
    retention_ms: int
    segment_interval_ms: int | None = None
    left: bool = False

    @property
    def table(self) -> TableSource:
        return TableSource("t", self.retention_ms, self.segment_interval_ms)

    def build(self, context: OperatorContext) -> Both:
        join = StreamTableJoin(self.joiner, "t", self.retention_ms, self.segment_interval_ms, self.left)
        return Both(self.table.build(context), join.build(context))

    def describe(self) -> dict[str, object]:
        return {}

    def families(self) -> Sequence[str]:
        return self.table.families()


class Both:
    def __init__(self, table: Operator, join: Operator) -> None:
        self.operators = (table, join)

    def process(self, inputs: Sequence[Batch], uptake: Uptake) -> Batch:
        table, join = self.operators
        return join.process([inputs[STREAM], table.process([inputs[TABLE]], uptake)], uptake)

    def flush(self, write: WriteBatch) -> None:
        for operator in self.operators:
            operator.flush(write)

    def memory_bytes(self) -> int:
        return sum(operator.memory_bytes() for operator in self.operators)
