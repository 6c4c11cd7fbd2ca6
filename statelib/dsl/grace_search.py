"""When the windows of a table's keys close (Kafka's ``GraphGraceSearchUtil``).

A table that is made of a stream keeps the windows that its keys have, but nothing of it says when they close. The
windowed aggregations above do, however far: the longest grace period of the nearest ones counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from statelib.errors.kinds import ConfigurationError
from statelib.operators.sessions.operator import SessionAggregate
from statelib.operators.sliding.operator import SlidingAggregate
from statelib.operators.suppress.operator import Suppress
from statelib.operators.windows.definition import UnlimitedWindows
from statelib.operators.windows.operator import WindowAggregate
from statelib.topology.nodes import Processor, Sink, Source, senders

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.operators.windows.definition import AnyWindows
    from statelib.topology.nodes import Node


@dataclass(frozen=True, slots=True)
class Closing:
    """When windows close.

    Attributes:
        windows: Those that close last.
        held_ms: How long time limits on the way hold a change back.
    """

    windows: AnyWindows
    held_ms: int


def closing_windows(nodes: Sequence[Node], table: str, suppression: str | None) -> Closing:
    """When the windows of a table's keys close.

    Args:
        nodes: All that the topology has so far.
        table: The table's node.
        suppression: The name of what asks, for errors.

    Raises:
        ConfigurationError: A way leads up to a topic without a windowed aggregation on it, or their windows differ in
            kind, or never close.
    """
    by_name = {node.name: node for node in nodes}
    sinks = {node.topic: node for node in nodes if isinstance(node, Sink) and node.internal}
    found: list[AnyWindows] = []
    held_ms = 0
    todo, seen = [table], {table}
    while todo:
        node = by_name[todo.pop()]
        if isinstance(node, Processor) and isinstance(node.spec, WindowAggregate | SessionAggregate | SlidingAggregate):
            found.append(node.spec.windows)
            continue
        if isinstance(node, Processor) and isinstance(node.spec, Suppress):
            held_ms = max(held_ms, node.spec.suppressed.time_limit_ms or 0)
        if isinstance(node, Source):
            if node.topic not in sinks:
                raise _no_windows(node, suppression)
            above: Sequence[str] = sinks[node.topic].parents
        else:
            above = senders(node) if isinstance(node, Processor) else node.parents
        todo += [name for name in above if name not in seen]
        seen.update(above)
    _check(found, suppression)
    return Closing(max(found, key=lambda windows: windows.final_after_ms("kip")), held_ms)


def _check(found: Sequence[AnyWindows], suppression: str | None) -> None:
    if any(isinstance(windows, UnlimitedWindows) for windows in found):
        raise ConfigurationError(
            "a window without end never closes, so it has no final result",
            node=suppression,
            next_step="suppress with until_time_limit, or aggregate by TimeWindows",
        )
    if len({windows.of_keys for windows in found}) > 1:
        raise ConfigurationError(
            "until_window_closes comes after windows of different kinds or sizes, which close at different times",
            node=suppression,
            next_step="suppress each windowed table before they are joined or merged",
        )


def _no_windows(source: Source, suppression: str | None) -> ConfigurationError:
    return ConfigurationError(
        f"until_window_closes needs a windowed table: no operator makes windows between it and topic {source.topic}",
        node=suppression,
        next_step="use until_time_limit, or aggregate by windows first",
    )
