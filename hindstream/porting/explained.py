"""Differences that are no mistakes of a port: those that `docs/semantics.md` tells of.

Whether one is, the answers decide, never the look of it: the job runs again as the shipped library does
(``kafka-4.3``), or the application gets records of equal time in another order. If nothing differs then, the rows of
the page are named that can be the reason in this topology. Rows that no other run can decide are named beside what
stays unexplained.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from statelib.operators.joins.foreign_key.operator import ForeignKeyJoin
from statelib.operators.joins.stream_stream.operator import StreamStreamJoin
from statelib.operators.joins.stream_stream.self_join import StreamSelfJoin
from statelib.operators.joins.stream_table.buffer import JoinBuffer
from statelib.operators.sessions.operator import SessionAggregate
from statelib.operators.sliding.operator import SlidingAggregate
from statelib.operators.suppress.operator import Suppress
from statelib.operators.windows.definition import SessionWindows, SlidingWindows
from statelib.topology import Processor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from hindstream.porting.sample import Sample
    from statelib.topology import Topology

_MOST_ORDERS = 6


@dataclass(frozen=True, slots=True)
class Reason:
    """A row of the page.

    Attributes:
        where: Its first column, up to the first comma or bracket that says more.
        applies: Whether a processor can be the reason.
    """

    where: str
    applies: Callable[[Processor], bool]


def _has_store(processor: Processor, kind: str) -> bool:
    return any(store.kind == kind for store in processor.spec.state_stores())


def _is_final(processor: Processor) -> bool:
    spec = processor.spec
    return isinstance(spec, Suppress) and spec.suppressed.final_results


SHIPPED = (
    Reason(
        "versioned store: a tombstone at exactly the timestamp of the latest value",
        lambda node: _has_store(node, "versioned"),
    ),
    Reason(
        "`until_window_closes` after sessions or sliding windows",
        lambda node: _is_final(node) and isinstance(node.spec.windows, SessionWindows | SlidingWindows),  # type: ignore[attr-defined]
    ),
    Reason("emit on window close (KIP-825)", lambda node: "emit" in node.spec.describe()),
    Reason(
        "windows of cogrouped streams: what is late", lambda node: len(node.parents) > 1 and _has_store(node, "window")
    ),
    Reason("`until_window_closes` after `until_time_limit`", lambda node: _is_final(node) and node.spec.held_ms > 0),  # type: ignore[attr-defined]
    Reason("sessions out of retention", lambda node: isinstance(node.spec, SessionAggregate)),
    Reason("sliding windows out of retention", lambda node: isinstance(node.spec, SlidingAggregate)),
    Reason(
        "left and outer join of two streams: results of unmatched records",
        lambda node: isinstance(node.spec, StreamStreamJoin),
    ),
    Reason("a stream joined with itself in one store", lambda node: isinstance(node.spec, StreamSelfJoin)),
    Reason("bytes of a suppression's buffer", lambda node: isinstance(node.spec, Suppress) and not _is_final(node)),
    Reason("the old value in the first update of a window", lambda node: _has_store(node, "window")),
    Reason("the old value in an in-place update of a session", lambda node: isinstance(node.spec, SessionAggregate)),
    Reason("the old value in a suppressed update", lambda node: isinstance(node.spec, Suppress)),
    Reason("a join of tables in a versioned store", lambda node: _has_store(node, "versioned")),
)
"""Of the table "Where the two differ"."""

SEVERAL_TOPICS = "several topics of one task"
"""Of the table "Where a replay differs from a live application"."""

ON_PURPOSE = (
    Reason("foreign-key joins", lambda node: isinstance(node.spec, ForeignKeyJoin)),
    Reason("a join with a table with a grace period", lambda node: isinstance(node.spec, JoinBuffer)),
)
"""Of the same table: what no other run can show to be the reason."""
CIRCLE = "repartition topics that form a circle"
GLOBAL_TABLES = "global tables"
"""Of the same table, but of whole topologies."""


def shipped_reasons(topology: Topology) -> tuple[str, ...]:
    """The rows of ``SHIPPED`` that can be the reason in a topology."""
    processors = [node for node in topology.nodes if isinstance(node, Processor)]
    return tuple(reason.where for reason in SHIPPED if any(map(reason.applies, processors)))


def possible_reasons(topology: Topology) -> tuple[str, ...]:
    """The rows of "Where a replay differs" that may be the reason in a topology, though nothing can show it."""
    processors = [node for node in topology.nodes if isinstance(node, Processor)]
    found = [reason.where for reason in ON_PURPOSE if any(map(reason.applies, processors))]
    if any(stage[0].returning for stage in topology.stages):
        found.append(CIRCLE)
    if any(source.is_global for sub in topology.sub_topologies for source in sub.all_sources):
        found.append(GLOBAL_TABLES)
    return tuple(found)


def other_orders(sample: Sample, places: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """The same places where records of equal order time are taken from the topics in other orders."""
    times, topics = sample.order_time[places], sample.topic[places]
    tied = np.diff(times) == 0
    if not (tied & (np.diff(topics) != 0)).any():
        return
    numbers = range(len(sample.topics))
    for order in itertools.islice(itertools.permutations(numbers), 1, _MOST_ORDERS):
        rank = np.argsort(np.array(order))
        yield places[np.lexsort((np.arange(len(places)), rank[topics], times))]
