"""What a comparison has found, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hindstream.console.numbers import count_text, duration_text, percent_text
from statelib.columns.times import instant_text
from statelib.comparison.fields import TIMESTAMP
from statelib.errors.counted import counted
from statelib.serdes.json import readable_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from statelib.comparison.difference import Difference, FieldDifference
    from statelib.comparison.fields import SchemaDifference
    from statelib.comparison.sinks import JobCommit, SinkDifference, SinkDifferences
    from statelib.comparison.stores import StoreDifference, StoreDifferences
    from statelib.comparison.times import Interval


@dataclass(frozen=True, slots=True)
class Told:
    """How two versions differ, in words, for a person who is asked about it.

    Attributes:
        is_empty: Whether they do not.
        subject: The first sentence.
        text: All of them, a line each.
    """

    is_empty: bool
    subject: str
    text: str


def told_of_sinks(found: SinkDifferences, besides: Iterable[str]) -> Told:
    """What was found of sinks, then other sentences, then each field that differs."""
    first, *others = sink_sentences(found)
    fields = [f"{sink_name(of)}: {field_text(field)}" for of in found.sinks for field in of.difference.fields]
    sides = f"A is {side_name(found.a)}, B is {side_name(found.b)}."
    return Told(found.is_empty, first, "\n".join([sides, first, *others, *besides, *fields]))


def summary(name: str, difference: Difference) -> str:
    """One sentence, as a person would say it in a review."""
    if not difference.is_compared:
        return f"{name} cannot be compared: its keys are of other types"
    differing = difference.only_a + difference.only_b + difference.changed
    if not differing:
        what = "has other fields; all that both sides have is equal" if difference.schema else "is equal"
        return f"{name} {what} ({count_text(difference.compared)} compared)"
    share = percent_text(differing, difference.compared)
    common = [f"{path} = {json_text(value)}" for path, value in difference.common_key.items()]
    behind = f", all of them of {' and '.join(common)}" if common and differing > 1 else ""
    return f"{share} of {name} differ ({count_text(differing)} of {count_text(difference.compared)}){behind}"


def interval_sentences(within: Interval) -> Iterator[str]:
    """Which rows were compared, unless all were."""
    bounds = [
        f"{word} {instant_text(time_ms)}"
        for word, time_ms in (("from", within.since_ms), ("before", within.until_ms))
        if time_ms is not None
    ]
    if bounds:
        yield f"Compared are rows {' and '.join(bounds)}: of a window its start counts, else the timestamp."
    if within.keys is not None:
        keys = f": {counted(len(within.keys.seen), 'key')}" if within.keys.seen else ""  # Spark's tasks do not tell
        yield f"This compares a sample of {percent_text(within.keys.share, 1)} of the keys{keys}."


def sink_sentences(found: SinkDifferences) -> Iterator[str]:
    """What is to be said of the sinks of two jobs: a sentence for each that both have, then what one has alone.

    What differs comes first.
    """
    if not found.sinks:
        yield "They have no sink in common. --sink A=B names two that are to be compared."
    for sink in sorted(found.sinks, key=lambda sink: sink.difference.is_empty):
        yield f"{summary(sink_name(sink), sink.difference)}."
    for side, topics, empty in (("A", found.only_a, found.empty_a), ("B", found.only_b, found.empty_b)):
        if topics:
            yield f"Only {side} has {', '.join(topics)}."
        if empty:
            yield f"Only {side} has {', '.join(empty)}, without records: no difference."


def behind_sentences(found: SinkDifferences, split_ms: int) -> Iterator[str]:
    """How many of the differences are of a time or later, sink by sink."""
    for sink in found.sinks:
        differing = sink.difference.only_a + sink.difference.only_b + sink.difference.changed
        if differing:
            behind = sink.difference.behind or 0
            of = f"{count_text(behind)} of {count_text(differing)}"
            why = ": state carries the interval on" if behind else ""
            yield f"Of {sink_name(sink)}, {of} are of {instant_text(split_ms)} or later{why}."


def store_sentences(found: StoreDifferences) -> Iterator[str]:
    """The same of stores."""
    if not found.stores:
        yield "They have no store in common."
    for store in sorted(found.stores, key=lambda store: store.difference.is_empty):
        if store.shared_partitions == store.partitions:
            yield f"{store_name(store)} is equal: both share its files."
        else:
            yield f"{summary(store_name(store), store.difference)}."
    for side, stores in (("A", found.only_a), ("B", found.only_b)):
        if stores:
            yield f"Only {side} has the {'store' if len(stores) == 1 else 'stores'} {', '.join(stores)}."


def store_name(store: StoreDifference) -> str:
    """``store totals``, or what both sides call it."""
    return f"store {store.a}" if store.a == store.b else f"store {store.a} = {store.b}"


def side_name(side: JobCommit) -> str:
    """``flight-delays@12``."""
    return side.job if side.commit is None else f"{side.job}@{side.commit}"


def sink_name(sink: SinkDifference) -> str:
    """The sink, or what both sides call it."""
    return sink.a if sink.a == sink.b else f"{sink.a} = {sink.b}"


def schema_text(field: SchemaDifference) -> str:
    """A field that one side has alone, or in another type."""
    compared = "" if field.is_compared else "; not compared"
    return f"{field.path}: {field.a or 'not there'} in A, {field.b or 'not there'} in B{compared}"


def field_text(field: FieldDifference) -> str:
    """A field that changed: how often, and numbers by how much."""
    by = ""
    if field.numbers is not None:
        numbers = field.numbers
        told = (numbers.min, numbers.quantiles["0.5"], numbers.max, numbers.sum)
        low, middle, high, total = (change_text(number, field.path) for number in told)
        by = f", B - A from {low} to {high}, median {middle}, sum {total}"
    return f"{field.path}: changed in {count_text(field.changed)}{by}"


def change_text(number: float, path: str = "") -> str:
    """By how much a field has changed: ``+621``; by how much a timestamp (ms) is later: ``+4 min``."""
    if path == TIMESTAMP:
        return f"{'-' if number < 0 else '+'}{duration_text(abs(round(number)))}"
    return f"{number:+.6g}"


def json_text(value: Any) -> str:
    """A key or a value."""
    return readable_json(value, separators=(", ", ": "))
