"""Where a replay begins: at a commit whose state holds nothing of what the result rests on.

State that is restored makes all that the replay forwards right, and it has the clocks. But what is in it came of
records that are not replayed. So as soon as a rule of `statelib.explanation.needed` would look further back than the
replay began, an earlier commit is tried; in the end the beginning, or the first commit since something that cannot be
replayed: a repair, another topology. What is found is then the same as from the beginning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.commits.expiry import oldest_restorable
from statelib.operators.processors.process import Process
from statelib.topology import Processor, Sink, Source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statelib.documents.manifests import Commit, CommittedTask
    from statelib.explanation.history import PastSlices, Slice
    from statelib.storage import Storage
    from statelib.topology import SubTopology

EVER = 1 << 62
"""A time behind all times; with a minus sign before all."""


class RestsOnEarlierError(Exception):
    """What was asked for may rest on records before those that are replayed."""


def starts(past: PastSlices, result: int, warehouse: Storage) -> Iterator[int]:
    """The slices to begin with, one to try after the other.

    Args:
        past: The history. Where its first slice began with a state, the last to try is the first with which one can.
        result: The slice that wrote the result.
        warehouse: Root of all durable data.
    """
    oldest: dict[str, int] = {}

    def is_kept(part: Slice) -> bool:
        before = part.before
        if before is None or not part.may_begin:
            return False
        if before.job not in oldest:
            oldest[before.job] = oldest_restorable(warehouse, before.job)
        return before.commit >= oldest[before.job]

    at, step = result, 1
    while at > 0 and is_kept(past.slices[at]):
        yield at
        at, step = at - step, 2 * step
    if past.refused is None:
        yield 0
    elif (first := next((n for n, part in enumerate(past.slices[: result + 1]) if is_kept(part)), None)) is not None:
        yield first


def state_before(part: Slice) -> Commit | None:
    """The commit whose state a slice goes on from, as its own job has it; None: there is none."""
    before = part.before
    if before is None or before.job == part.plan.job:
        return before
    tasks = {task_id: task.within_fork(before.job) for task_id, task in before.tasks.items()}
    return before.model_copy(update={"tasks": tasks})


def latest_before(sub_topology: SubTopology, restored: CommittedTask | None) -> dict[str, int]:
    """By node, the latest time of what it can have forwarded before the replay began; of others nothing came.

    Args:
        sub_topology: Of the task.
        restored: The state with which the replay began; None: with none.
    """
    times: dict[str, int] = {}
    for place, time in (restored.position.source_times if restored is not None else {}).items():
        topic = place.rpartition("/")[0]
        times[topic] = max(time, times.get(topic, time))
    latest: dict[str, int] = {}
    for node in sub_topology.nodes:
        if isinstance(node, Sink):
            continue
        above = [latest[parent] for parent in node.parents if parent in latest]
        if isinstance(node, Source) and node.topic in times:
            above = [times[node.topic]]
        if above:
            sets_times = isinstance(node, Processor) and isinstance(node.spec, Process)
            latest[node.name] = EVER if sets_times else max(above)
    return latest
