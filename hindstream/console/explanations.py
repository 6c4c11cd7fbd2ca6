"""What an explanation has found, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hindstream.console.numbers import duration_text
from statelib.columns.times import instant_text
from statelib.errors.counted import counted

if TYPE_CHECKING:
    from statelib.explanation import Dropped, Explanation, Place

_RULES = {
    "before-first-window": "before the first window",
    "empty-list": "unfolded to nothing",
    "filtered": "filtered out",
    "no-partition": "its partitioner sent it to no partition",
    "null-foreign-key": "it refers to nothing: its foreign key is null",
    "null-key": "it has no key",
    "null-value": "its value is null",
    "out-of-order": "older than what the table had",
    "quarantined": "a function failed for it",
    "refused": "older than the history that the store keeps",
    "stale": "overtaken by a newer row",
    "unmatched": "nothing to join with it was valid",
}


def place_text(place: Place) -> str:
    """``flights/1 offset 205``."""
    partition = "" if place.partition is None else f"/{place.partition}"
    return f"{place.topic}{partition} offset {place.offset}"


def reason_text(one: Dropped) -> str:
    """Why a record did not count."""
    if one.duplicate_of is not None:
        return f"duplicate of {place_text(one.duplicate_of)}"
    if one.lateness_ms is not None and one.clock_ms is not None and one.rule == "late":
        return f"late: {duration_text(one.lateness_ms)} behind {instant_text(one.clock_ms)}"
    return _RULES.get(one.rule, one.rule)


def node_text(one: Dropped) -> str:
    """Where a record ended: the node, and the line of the user's file that added it."""
    return one.node if one.line is None else f"{one.node} ({one.line.file}:{one.line.line})"


def proof_text(explanation: Explanation) -> str:
    """How well the records that made the result are known."""
    if explanation.minimal:
        return (
            "Replayed alone, with the clocks of the whole history, they give this result. Without any one they do not."
        )
    if explanation.reproduced:
        return "Replayed alone, with the clocks of the whole history, they give this result. Some may be of no effect."
    return "They had a part in it by key, window and time. They were not replayed alone, so some may be of no effect."


def extent_text(explanation: Explanation) -> str:
    """How much of the history was replayed to find them."""
    if explanation.replayed_behind is None:
        return "Replayed from the beginning."
    spared = counted(explanation.spared_slices, "slice")
    return f"Replayed from commit {explanation.replayed_behind} on: {spared} before that had no part in it."
