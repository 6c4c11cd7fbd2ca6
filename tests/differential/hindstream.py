"""Runs programs here: in memory, in batches of any size, or as a job does, slice by slice."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from statelib import TopologyTestDriver, Windowed
from tests.differential import functions
from tests.differential.topology import OBSERVED, topology_of, types_of
from tests.operators.flow import Fed, Flow

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from statelib.operators.processors.definition import Headers
    from statelib.settings.semantics import Semantics
    from tests.differential.kafka import Outputs
    from tests.differential.program import Program


def in_batches(program: Program, cuts: Sequence[int], *, flushed: bool, semantics: Semantics) -> Outputs:
    """What comes out of the operators, in memory.

    Args:
        program: What is run.
        cuts: How many records the batches have, but for the last.
        flushed: Whether the state is written behind each.
        semantics: See `Semantics`.
    """
    flow = Flow(
        topology_of(program),
        types_of(program),
        semantics,
        headers_of=headers,
        goes_on=_may_fail(program),
        types_first=False,
    )
    outputs: Outputs = {topic: [] for topic in flow.topology.sink_topics}
    OBSERVED.clear()
    for batch in _cut(program, cuts):
        for topic, rows in flow.process(
            [Fed(topic, functions.read(program.keys, key), *rest) for topic, key, *rest in batch]
        ).items():
            outputs[topic] += [
                [_key(row.key), _value(row.value), row.timestamp, _shown(of)]
                for row, of in zip(rows, flow.headers[topic], strict=True)
            ]
        if flushed:
            flow.flush()
    return outputs | _observed()


def in_slices(
    program: Program, folder: Path, cuts: Sequence[int], *, batch_records: int, semantics: Semantics
) -> Outputs:
    """What a job publishes.

    Args:
        program: What is run.
        folder: An empty one.
        cuts: How many records the slices have, but for the last.
        batch_records: How many records a task takes up at a time.
        semantics: See `Semantics`.
    """
    driver = TopologyTestDriver(topology_of(program), folder, semantics=semantics)
    on_error: Literal["fail", "quarantine"] = "quarantine" if _may_fail(program) else "fail"
    driver._scratch.settings = replace(
        driver._scratch.settings, batch_records=batch_records, on_processing_error=on_error
    )
    inputs = {topic: driver.create_input_topic(topic, *types) for topic, types in types_of(program).items()}
    numbers = itertools.count()
    OBSERVED.clear()
    for batch in _cut(program, cuts):
        for topic, key, value, timestamp in batch:
            inputs[topic].pipe_input(
                functions.read(program.keys, key), value, timestamp, headers=headers(next(numbers))
            )
        driver.replay()
    return {
        topic: [
            [_key(record.key), _value(record.value), record.timestamp_ms, _shown(record.headers)]
            for record in driver.create_output_topic(topic).read_records_to_list()
        ]
        for topic in driver._job.topology.sink_topics
    } | _observed()


def _observed() -> Outputs:
    return {name: [[_key(key), _value(value)] for key, value in rows] for name, rows in OBSERVED.items()}


def headers(number: int) -> Headers:
    """Of a record, by its place in the program: its number, but not of every third. As in ``Run.java``."""
    return () if number % 3 == 2 else (("number", str(number).encode()),)


def _may_fail(program: Program) -> bool:
    """Whether functions fail for some records, and the program goes on without them."""
    return any("fails" in step for step in program.steps)


def _shown(of: Headers) -> str:
    return " ".join(f"{name}={(value or b'').decode()}" for name, value in of)


def _cut(program: Program, cuts: Sequence[int]) -> list[Sequence[Any]]:
    batches, records = [], program.records
    for count in cuts:
        batches.append(records[:count])
        records = records[count:]
    return [batch for batch in (*batches, records) if batch]


def _value(value: Any) -> Any:
    """Counts of streams as one text."""
    return functions.text(value) if isinstance(value, dict) else value


def _key(key: Any) -> Any:
    """A windowed key as a list of key, which may be a windowed one, start and end in ms."""
    if isinstance(key, Windowed):
        return [_key(key.key), key.window_start, key.window_end]
    if not isinstance(key, dict):
        return functions.written(key)
    start, end = (round(key[bound].timestamp() * 1000) for bound in ("window_start", "window_end"))
    return [_key(key["key"]), start, end]
