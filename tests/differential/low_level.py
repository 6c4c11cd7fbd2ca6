"""Builds a program of the Processor API, as ``LowLevel.java`` does."""

from __future__ import annotations

import re
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from statelib import Topology
from tests.differential.own_stores import builder_of
from tests.differential.telling import Filling, Telling, key_value_builder, lists_builder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.differential.program import Program, Step


def is_low_level(program: Program) -> bool:
    """Whether it is one of the Processor API."""
    return bool(program.steps) and program.steps[0]["op"].startswith("add_")


def low_level_topics(program: Program) -> list[str]:
    """The topics that are read, in the order of declaration."""
    read = (
        [step["topic"]] if step["op"] in {"add_global", "add_read_only"} else step.get("topics", ())
        for step in program.steps
    )
    return list(chain.from_iterable(read))


def low_level_topology(program: Program) -> Topology:
    """The topology."""
    topology = Topology("app")
    connected: dict[str, list[str]] = {}
    for step in program.steps:
        match step["op"]:
            case "add_source" if "pattern" in step:
                topology.add_source(step["name"], re.compile(step["pattern"]), topics=step["topics"])
            case "add_source":
                topology.add_source(step["name"], *step["topics"])
            case "add_processor":
                topology.add_processor(step["name"], _supplier(step), *step["parents"])
                if "uses" in step:
                    connected.setdefault(step["uses"], []).append(step["name"])
            case "add_global" | "add_read_only" as kind:
                is_global, store = kind == "add_global", step["store"]
                add = topology.add_global_store if is_global else topology.add_read_only_state_store
                builder, supplier = key_value_builder(store), partial(Filling, store)
                add(builder, f"{store}-source", step["topic"], f"{store}-writer", supplier)
            case "add_sink":
                topology.add_sink(step["name"], step["topic"], *step["parents"])
    _add_stores(topology, program, connected)
    return topology


def _add_stores(topology: Topology, program: Program, connected: Mapping[str, Sequence[str]]) -> None:
    for step in program.steps:
        if "read_only" in step:
            topology.connect_processor_and_state_stores(step["name"], step["read_only"])
        if "own" in step:
            topology.add_state_store(builder_of(step["own"]))
            topology.connect_processor_and_state_stores(step["name"], step["own"]["name"])
        if "lists" in step:
            topology.add_state_store(lists_builder(step["lists"]), step["name"])
    for store, processors in connected.items():
        topology.add_state_store(key_value_builder(store), *processors)


def _supplier(step: Step) -> Any:
    return lambda: Telling(step)
