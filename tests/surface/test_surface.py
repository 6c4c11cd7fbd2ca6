"""The surface is complete: nobody adds an operator, or a way to one, and forgets it there."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from typing import TYPE_CHECKING

from statelib import dsl, operators
from tests.dsl.public_methods import called_from_tests, public_methods
from tests.surface.beside import beside
from tests.surface.topology import surface

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    import pytest

    from tests.dsl.public_methods import Methods

OF_A_SPECIFICATION = ("build", "describe", "state_stores")


SUGAR = "aggregate() with one function, of which the surface has all"
NOT_USED = {
    **{f"KGroupedTable.{name}": SUGAR for name in ("sum", "mean")},
    **{
        f"{of}.{name}": SUGAR
        for of in ("KGroupedStream", "TimeWindowedKStream", "SessionWindowedKStream")
        for name in ("sum", "min", "max", "mean")
    },
    "KStream.print": "writes to standard output or a file, and is a foreach()",
    "Topology.describe": "describes nodes, and adds none",
    "Topology.matched_by_pattern": "tells of topics, and adds no node",
    "Topology.partitions": "tells of tasks, and adds no node",
    "Topology.repartition_partitions": "tells of topics, and adds no node",
    "Topology.with_sinks": "gives topics other names: forks are tested with the surface (tests/task/test_fork.py)",
}
"""Public methods of what describes a topology that neither the surface nor what is beside it calls, and why."""


def classes_of(room: ModuleType) -> Iterator[type]:
    for found in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
        for _, of in inspect.getmembers(importlib.import_module(found.name), inspect.isclass):
            if of.__module__ == found.name:
                yield of


def specifications() -> set[type]:
    """Classes that are an `OperatorSpec`; what others are derived from is none of its own."""
    classes = {
        of
        for of in classes_of(operators)
        if all(hasattr(of, method) for method in OF_A_SPECIFICATION) and not getattr(of, "_is_protocol", False)
    }
    return {of for of in classes if not any(of in other.__mro__[1:] for other in classes)}


def test_every_operator_is_in_it() -> None:
    used = {type(node.spec) for sub in surface().sub_topologies for node in sub.processors}
    assert len(used) > 30
    assert [of.__name__ for of in specifications() - used] == []


def steps() -> Methods:
    """The public methods of what streams, tables, groups and topologies are described with."""
    ends = ("KStream", "KTable", "GroupedStream", "GroupedTable", "StreamsBuilder", "Topology")
    internal = {"InternalStreamsBuilder", "WindowedKTable"}  # the latter is a KTable by another name
    return public_methods(
        of
        for of in classes_of(dsl)
        if of.__name__.endswith(ends) and not of.__name__.startswith("_") and of.__name__ not in internal
    )


def test_every_way_to_describe_a_step_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for those of a list: whoever adds a method adds it to the surface, or says there why not."""
    every = steps()
    used = called_from_tests(monkeypatch, every, lambda: (surface(), beside()))
    assert len(every) > 80
    assert every.keys() - used == NOT_USED.keys()
