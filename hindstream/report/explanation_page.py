"""The page of an explanation: the way of a result through the topology, and the records that made it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hindstream.console.differences import json_text
from hindstream.console.explanations import extent_text, node_text, place_text, proof_text, reason_text
from hindstream.report.rendering import render
from hindstream.report.topology import path_picture
from statelib.columns.times import instant_text
from statelib.errors.counted import counted
from statelib.topology.leading import path_to

if TYPE_CHECKING:
    from statelib.explanation import Explanation, Place
    from statelib.topology import Topology

_MOST_ROWS = 500
_LONGEST = 2_000


def explanation_page(topology: Topology, explanation: Explanation) -> str:
    """The HTML of the page: one file, without script, that needs no network.

    Args:
        topology: The job's.
        explanation: What was found.
    """
    result = explanation.result.place
    dropped: dict[str, int] = {}
    for one in explanation.dropped:
        dropped[one.node] = dropped.get(one.node, 0) + 1
    notes = {
        step.node: counted(step.forwarded, "record") + _dropped(dropped.get(step.node, 0)) for step in explanation.steps
    }
    page = {
        "topic": result.topic,
        "where": place_text(result),
        "commit": explanation.result.commit,
        "time": instant_text(result.timestamp_ms),
        "key": json_text(result.key),
        "value": json_text(result.value),
        "proof": f"{proof_text(explanation)} {extent_text(explanation)}",
        "drawing": path_picture(path_to(topology, topics=[result.topic]), notes),
        "tables": [
            _table("Made by", [(one.record, _last(last=one.last)) for one in explanation.contributions]),
            _table(
                "Dropped on the way",
                [(one.record, f"{reason_text(one)}; at {node_text(one)}") for one in explanation.dropped],
            ),
            _table("Looked at, and of no effect", [(one, "") for one in explanation.looked_at]),
        ],
        "drops_known": explanation.drops_known,
        "steps": [
            (
                step.node,
                step.kind if step.topic is None else f"{step.kind} {step.topic}",
                "" if step.line is None else f"{step.line.file}:{step.line.line}",
                step.forwarded,
                "" if step.last is None else _cut(f"{json_text(step.last['key'])} {json_text(step.last['value'])}"),
            )
            for step in explanation.steps
        ],
    }
    return render("explanation.html.j2", page)


def _dropped(count: int) -> str:
    return f", {count} dropped" if count else ""


def _last(*, last: bool) -> str:
    return "then the result was written" if last else ""


def _table(title: str, rows: list[tuple[Place, str]]) -> dict[str, object]:
    return {
        "title": title,
        "count": len(rows),
        "has_notes": any(note for _, note in rows),
        "rows": [
            (place_text(one), instant_text(one.timestamp_ms), json_text(one.key), _cut(json_text(one.value)), note)
            for one, note in rows[:_MOST_ROWS]
        ],
    }


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
