"""Whatever function of whatever operator fails, the error says node, line and record, and is the user's to mend.

All operators of the surface are walked, and all that is callable in their specifications: an operator that is added
there is asked as well. Each function in turn is replaced by one that fails, in a topology of what the operator needs.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from statelib import ConfigurationError, Processor
from statelib.commits.layout import quarantine_topic
from statelib.operators.mappers.mapping import Function, Mapper
from statelib.operators.processors.definition import FixedKeyProcessor
from statelib.topology import Processor as ProcessorNode
from statelib.topology import Sink, Source, Topology
from tests.surface.records import PARTITIONS, TYPES, surface_records
from tests.surface.topology import surface
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statelib.topology import Node

KNOWS_NO_RECORD = {"initializer"}
"""Functions that are asked before there is a record, for the type of what they give."""
ANSWERS = {"ForeignKeyJoin.joined.joiner"}
"""What it forwards belongs to other partitions than the task's, and cannot go to a sink as it is."""
NOT_OF_THE_USER = {"shared", "of_all", "stores", "windows", "arrow_type", "key_type", "value_type"}


class Planned(Exception):
    """What the functions here raise."""


class Failing:
    """A function that fails for any record; of none it gives what the one in whose place it is gives."""

    def __init__(self, of: Any) -> None:
        self.of = of

    def __call__(self, *arguments: Any) -> Any:
        if isinstance(self.of, Mapper) and not len(arguments[0]):
            return self.of.map(*arguments)
        raise Planned("by the test")  # the line


class FailingProcessor(Processor):
    def process(self, record: Any) -> None:
        Failing(None)(record)


class FailingFixedKeyProcessor(FixedKeyProcessor):
    def process(self, record: Any) -> None:
        Failing(None)(record)


class Slot(NamedTuple):
    """A function of a node: the fields that lead to it from the specification."""

    node: str
    path: tuple[str | int, ...]


def slots_of(of: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if "view" in path and path[-1] == "aggregator":  # only decodes what is stored
        return
    if isinstance(of, Mapper) or (path and path[-1] == "supplier"):
        yield path
    elif isinstance(of, tuple):
        for number, item in enumerate(of):
            yield from slots_of(item, (*path, number))
    elif dataclasses.is_dataclass(of) and not isinstance(of, type):
        for field in dataclasses.fields(of):
            if field.name not in NOT_OF_THE_USER:
                yield from slots_of(getattr(of, field.name), (*path, field.name))
    elif callable(of):
        yield path


def failing_at(of: Any, path: tuple[str | int, ...]) -> Any:
    """The same with a function that fails in that place."""
    if not path:
        return Function(Failing(of)) if isinstance(of, Mapper) else Failing(of)
    first, *rest = path
    if first == "supplier":
        return dataclasses.replace(of, supplier=FailingFixedKeyProcessor if of.fixed_key else FailingProcessor)
    if isinstance(first, int):
        return (*of[:first], failing_at(of[first], tuple(rest)), *of[first + 1 :])
    return dataclasses.replace(of, **{first: failing_at(getattr(of, first), tuple(rest))})


def reduced(topology: Topology, slot: Slot) -> Topology:
    """What a node needs, the node with a function that fails, and a sink behind it."""
    nodes = {node.name: node for node in topology.nodes}
    internal = {node.topic: node for node in topology.nodes if isinstance(node, Sink) and node.internal}
    needed, waiting = set(), [slot.node]
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed.add(name)
            node = nodes[name]
            sinks = [internal[node.topic].name] if isinstance(node, Source) and node.internal else []
            waiting += [*node.parents, *sinks]
    kept: list[Node] = []
    for node in topology.nodes:
        if node.name == slot.node and isinstance(node, ProcessorNode):
            kept.append(dataclasses.replace(node, spec=failing_at(node.spec, slot.path)))
        elif node.name in needed:
            kept.append(node)
    return Topology((*kept, Sink("SINK", (slot.node,), "out")))


def all_slots() -> dict[str, Slot]:
    """One of each kind of operator and field."""
    found: dict[str, Slot] = {}
    for node in surface().nodes:
        if isinstance(node, ProcessorNode):
            for path in slots_of(node.spec):
                kind = ".".join(part for part in path if isinstance(part, str))
                found.setdefault(f"{type(node.spec).__name__}.{kind}", Slot(node.name, path))
    return found


SLOTS = all_slots()
RECORDS = surface_records(7, 120)


def line_of(marked: str) -> int:
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(n for n, line in enumerate(lines, start=1) if line.endswith(f"  # {marked}"))


def test_the_walk_finds_functions_of_all_kinds() -> None:
    operators = {kind.partition(".")[0] for kind in SLOTS}
    assert operators >= {"Peek", "ForEach", "Filter", "FlatMap", "Split", "KeyAggregate", "StreamStreamJoin"}
    assert operators >= {"TableJoin", "ForeignKeyJoin", "ForeignKeySubscribe", "StreamLatestJoin", "Process"}


@pytest.mark.thorough
@pytest.mark.parametrize("kind", SLOTS)
def test_a_function_that_fails(tmp_path: Path, kind: str) -> None:
    slot = SLOTS[kind]
    topology = reduced(surface(), slot)
    pipeline = Pipeline(tmp_path, topology)
    for topic in topology.source_topics:
        pipeline.archive(topic, RECORDS[topic], TYPES, PARTITIONS)
    with pytest.raises(ConfigurationError, match="failed: Planned: by the test.*Next: fix") as raised:
        pipeline.run()
    place = raised.value.place
    assert place["node"] == slot.node
    assert (place["file"], place["line"]) == (__file__, line_of("the line"))
    assert raised.value.exit_code == 78
    if KNOWS_NO_RECORD.isdisjoint(slot.path):
        assert place["topic"] in {node.topic for node in topology.nodes if isinstance(node, Source)}
        assert place["partition"] in range(PARTITIONS)
        assert isinstance(place["offset"], int)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "kind", [kind for kind in SLOTS if SLOTS[kind].path[-1] not in KNOWS_NO_RECORD and kind not in ANSWERS]
)
def test_a_function_that_fails_sets_records_aside(tmp_path: Path, kind: str) -> None:
    slot = SLOTS[kind]
    topology = reduced(surface(), slot)
    pipeline = Pipeline(tmp_path, topology, on_processing_error="quarantine", batch_records=50)
    for topic in topology.source_topics:
        pipeline.archive(topic, RECORDS[topic], TYPES, PARTITIONS)
    staged = pipeline.run()
    aside = pipeline.output_if_present(quarantine_topic("job"))
    assert {row[3]["reason"].partition(": ")[0] for row in aside} == {slot.node}
    assert all("failed: Planned: by the test" in row[3]["reason"] for row in aside)
    nodes = [node for task in staged.tasks for node in task.metrics.values()]
    assert sum(node.dropped.get("quarantined", 0) for node in nodes) == len(aside)
    assert [node for node in nodes if node.unaccounted] == []
