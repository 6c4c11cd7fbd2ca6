"""Why two versions of a job differ: the source records that one used and the other did not, and by which rule.

Each side's result is explained as of itself (`statelib.explanation.explainer`); then the two are compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from statelib.errors.kinds import ConfigurationError
from statelib.explanation.explainer import explain
from statelib.explanation.result import result_at

if TYPE_CHECKING:
    from statelib.comparison.difference import Example
    from statelib.comparison.sinks import JobCommit, SinkDifference, SinkDifferences
    from statelib.explanation.explanation import Contribution, Dropped, Explanation, Place
    from statelib.job.job import Job
    from statelib.storage import Storage
    from statelib.task import TaskSettings


@dataclass(frozen=True, slots=True)
class Explained:
    """One side of a difference.

    Attributes:
        explanation: Where its result comes from; None: that is not known.
        why_not: Why it is not known, in a sentence; None: it is.
    """

    explanation: Explanation | None
    why_not: str | None = None


@dataclass(frozen=True, slots=True)
class UsedByOne:
    """A source record that made the result of one side and not that of the other.

    Attributes:
        record: The record.
        last: Whether the result was written when it was taken up.
        dropped: Where the other side dropped it, and by which rule; empty: it did not, or nobody knows.
    """

    record: Place
    last: bool
    dropped: tuple[Dropped, ...]


@dataclass(frozen=True, slots=True)
class ExplainedDifference:
    """Why two sides differ in one row.

    Attributes:
        sink: The sink.
        example: The row.
        a: How A came to it.
        b: How B came to it.
        only_a: Records that A alone used; empty if one side is not explained.
        only_b: Those that B alone used.
    """

    sink: SinkDifference
    example: Example
    a: Explained
    b: Explained
    only_a: tuple[UsedByOne, ...]
    only_b: tuple[UsedByOne, ...]


def explain_first_difference(
    warehouse: Storage, found: SinkDifferences, jobs: tuple[Job | None, Job | None], settings: TaskSettings
) -> ExplainedDifference | None:
    """Explains the first difference by time; None: there is none.

    Args:
        warehouse: Root of all durable data. Nothing is written there.
        found: What was compared.
        jobs: A and B with the topologies that wrote them; None: only a name was given.
        settings: See `statelib.explanation.explain`.
    """
    differing = [sink for sink in found.sinks if sink.difference.first is not None]
    if not differing:
        return None
    sink = min(differing, key=lambda sink: (sink.difference.first_ms is None, sink.difference.first_ms or 0))
    example = sink.difference.first
    assert example is not None  # noqa: S101 - these have one
    sides = [
        _explained(warehouse, job, at, row, settings)
        for job, at, row in zip(jobs, (found.a, found.b), (example.a, example.b), strict=True)
    ]
    one, other = (side.explanation for side in sides)
    only: list[tuple[UsedByOne, ...]] = [(), ()]
    if one is not None and other is not None:
        only = [_used_by_one(one, other), _used_by_one(other, one)]
    return ExplainedDifference(sink, example, sides[0], sides[1], only[0], only[1])


def _explained(
    warehouse: Storage, job: Job | None, at: JobCommit, row: dict[str, Any] | None, settings: TaskSettings
) -> Explained:
    if row is None:
        return Explained(None, "it has no such row")
    if job is None:
        return Explained(None, f"that takes its topology: give {at.job} as FILE.py:NAME")
    try:
        result = result_at(warehouse, row["topic"], row["partition"], row["offset"])
        return Explained(explain(job, warehouse, settings, result, commit=at.commit))
    except ConfigurationError as error:
        return Explained(None, error.what)


def _used_by_one(one: Explanation, other: Explanation) -> tuple[UsedByOne, ...]:
    used = {contribution.record.where for contribution in other.contributions}
    return tuple(
        UsedByOne(contribution.record, contribution.last, _drops(contribution, other))
        for contribution in one.contributions
        if contribution.record.where not in used
    )


def _drops(contribution: Contribution, other: Explanation) -> tuple[Dropped, ...]:
    return tuple(dropped for dropped in other.dropped if dropped.record.where == contribution.record.where)
