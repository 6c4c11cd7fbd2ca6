"""Why two versions of a job differ in a row, as text and as data: see `statelib.explanation.difference`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hindstream.cli.look.explain import explanation_data, place_data, record_text
from hindstream.console.differences import json_text, sink_name
from hindstream.console.explanations import node_text, reason_text
from hindstream.console.json_lines import json_data
from statelib.errors.counted import counted
from statelib.explanation.difference import explain_first_difference

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from statelib.explanation import Dropped
    from statelib.explanation.difference import Explained, ExplainedDifference, UsedByOne
    from statelib.job.job import Job

__all__ = ["explain_first_difference", "explained_data", "explained_lines"]


def explained_lines(found: ExplainedDifference, limit: int) -> Iterator[str]:
    """Why the two sides differ; ``limit``: how many records of each kind."""
    yield f"The first difference: {sink_name(found.sink)} {json_text(found.example.key)}"
    for name, side in (("A", found.a), ("B", found.b)):
        yield from _side(name, side, limit)
    for name, other, records in (("A", "B", found.only_a), ("B", "A", found.only_b)):
        if records:
            yield f"  Used by {name} alone: {counted(len(records), 'record')}"
            yield from _limited([line for one in records for line in _used(one, other)], 2 * limit, 2 * len(records))
    if found.a.explanation is not None and found.b.explanation is not None and not (found.only_a or found.only_b):
        yield "  Both come from the same records: what the nodes make of them is different."


def explained_data(found: ExplainedDifference, jobs: tuple[Job | None, Job | None]) -> dict[str, Any]:
    """The same for a program."""
    data: dict[str, Any] = {"sink": sink_name(found.sink), "example": json_data(found.example)}
    for name, side, job in zip("ab", (found.a, found.b), jobs, strict=True):
        if side.explanation is not None and job is not None:
            data[name] = explanation_data(job, side.explanation)
        data[f"why_not_{name}"] = side.why_not
    for name, records in (("only_a", found.only_a), ("only_b", found.only_b)):
        data[name] = [
            {
                **place_data(one.record),
                "last": one.last,
                "dropped": [{"node": drop.node, "rule": drop.rule, "reason": _reason(drop)} for drop in one.dropped],
            }
            for one in records
        ]
    return data


def _side(name: str, side: Explained, limit: int) -> Iterator[str]:
    if side.explanation is None:
        yield f"  {name} is not explained: {side.why_not}"
        return
    made, dropped = side.explanation.contributions, side.explanation.dropped
    yield f"  {name} is made by {counted(len(made), 'record')}; {counted(len(dropped), 'record')} dropped on the way"
    lines = [line for drop in dropped for line in (f"    {record_text(drop.record)}", f"      {_reason(drop)}")]
    yield from _limited(lines, 2 * limit, 2 * len(dropped))


def _used(one: UsedByOne, other: str) -> Iterator[str]:
    written = "  <- then the result was written" if one.last else ""
    yield f"    {record_text(one.record)}{written}"
    reasons = "; ".join(_reason(drop) for drop in one.dropped)
    yield f"      {other} dropped it: {reasons}" if reasons else f"      {other} did not use it"


def _limited(lines: Sequence[str], shown: int, all_of_them: int) -> Iterator[str]:
    yield from lines[:shown]
    if all_of_them > shown:
        yield f"    and {(all_of_them - shown) // 2:,} more; --limit shows them"


def _reason(drop: Dropped) -> str:
    return f"{reason_text(drop)}; at {node_text(drop)}"
