"""Joins of two streams, for tests: the operator and its model, records of both sides, results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from statelib.operators.joins.stream_stream.operator import StreamStreamJoin
from statelib.operators.mappers.mapping import mapper
from tests.operators.task import Record, Task
from tests.reference.stream_stream_join import Kind, Result, Side
from tests.reference.stream_stream_join import StreamStreamJoin as Model

if TYPE_CHECKING:
    from statelib.operators.joins.stream_stream.definition import JoinWindows
    from statelib.records.batch import Batch
    from statelib.settings.semantics import Semantics

LEFT, RIGHT = 0, 1
SIDES: tuple[Side, Side] = ("left", "right")
VALUE_TYPES = (pa.int64(), pa.string())


@dataclass(frozen=True)
class Case:
    """A join."""

    kind: Kind
    windows: JoinWindows
    emit_interval_ms: int = 0

    @property
    def spec(self) -> StreamStreamJoin:
        holds = self.kind != "inner" and not self.windows.unmatched_at_once
        return StreamStreamJoin(
            mapper({"l": "left", "r": "right"}), self.windows, "left", "right", "held" if holds else None,
            keeps_left=self.kind != "inner", keeps_right=self.kind == "outer", emit_interval_ms=self.emit_interval_ms,
        )  # fmt: skip

    def task(self, semantics: Semantics = "kip") -> Task:
        return Task(self.spec, pa.string(), VALUE_TYPES, semantics=semantics)

    def model(self, semantics: Semantics = "kip") -> Model:
        windows = self.windows
        return Model(
            self.kind, windows.before_ms, windows.after_ms, windows.grace_period_ms, not windows.unmatched_at_once,
            semantics == "kafka-4.3", self.emit_interval_ms,
        )  # fmt: skip


def shown(batches: list[Batch]) -> list[tuple[int, Result]]:
    rows = []
    for batch in batches:
        columns = (batch.sequence, batch.key.to_pylist(), batch.value.to_pylist(), batch.timestamp)
        rows += [(int(s), Result(key, v["l"], v["r"], int(t))) for s, key, v, t in zip(*columns, strict=True)]
    return rows


def records_of(*rows: tuple[int, str | None, Any, int]) -> list[Record]:
    return [Record(key, value, timestamp, number, side) for number, (side, key, value, timestamp) in enumerate(rows)]
