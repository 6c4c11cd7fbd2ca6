"""``suppress(untilWindowCloses(...))`` behind a windowed aggregation."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa

from statelib.operators.suppress.definition import BufferConfig, Suppressed
from statelib.operators.suppress.operator import Suppress
from tests.golden.suppressing import check_chain, window_aggregate
from tests.operators.chain import Chain, Record

if TYPE_CHECKING:
    from statelib.operators.suppress.definition import StrictBufferConfig
    from tests.golden.scenario import Compare
    from tests.golden.trace import Case


def check(case: Case, compare: Compare) -> None:
    """Both branches, buffer, drops and errors of each step."""
    aggregate = window_aggregate(case)
    suppressed = Suppressed.until_window_closes(_buffer(case.params["buffer"]))

    def build() -> Chain:
        specs = [aggregate, Suppress("buffer", suppressed, aggregate.windows)]
        return Chain(specs, pa.int32(), semantics="kafka-4.3")

    records = [Record(step["key"], step["value"], step["ts"]) for step in case.steps]
    check_chain(case, compare, build, records)


def _buffer(text: str) -> StrictBufferConfig:
    bounded = re.fullmatch(r"maxRecords\((\d+)\)\.shutDownWhenFull\(\)", text)
    if bounded:
        return BufferConfig.max_records(int(bounded[1])).shut_down_when_full()
    assert text == "unbounded"
    return BufferConfig.unbounded()
