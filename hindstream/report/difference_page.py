"""The page of a comparison of two jobs: what a person would show in a review."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hindstream.console.differences import (
    change_text,
    interval_sentences,
    json_text,
    schema_text,
    side_name,
    sink_name,
    sink_sentences,
    store_name,
    store_sentences,
    summary,
)
from hindstream.console.numbers import count_text, duration_text, time_text
from hindstream.report import charts
from hindstream.report.charts import Figure, Series
from hindstream.report.ledger_differences import dropped, ledger_sentences
from hindstream.report.rendering import render
from statelib.errors.counted import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from statelib.comparison.difference import Difference, Example, FieldDifference
    from statelib.comparison.jobs import JobDifferences
    from statelib.comparison.times import TimeCounts

KINDS = (("changed", "changed", "s1"), ("only_a", "only in A", "s3"), ("only_b", "only in B", "s4"))
"""Of rows that differ: the name, what the page calls it, and the CSS class that colours it."""

_DAY_MS = 86_400_000
_LONGEST = 2_000
_PLACE = frozenset({"topic", "partition", "offset", "index"})


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A field of an example on both sides, as texts; None: it is not there."""

    path: str
    a: str | None
    b: str | None
    is_changed: bool


@dataclass(frozen=True, slots=True)
class _Shown:
    """An example: its key, where its records are, and its fields."""

    key: str
    places: tuple[str, ...]
    leaves: tuple[_Leaf, ...]


@dataclass(frozen=True, slots=True)
class _Part:
    """What the page says of one comparison that has found differences."""

    name: str
    sentence: str
    difference: Difference
    schema: tuple[str, ...]
    figures: tuple[Figure, ...]
    examples: tuple[tuple[str, int, tuple[_Shown, ...]], ...]


def difference_page(found: JobDifferences, reasons: Sequence[str] = ()) -> str:
    """The HTML of the page: one file, without script, that needs no network.

    Args:
        found: What was found.
        reasons: The first difference explained, as lines.
    """
    a, b = side_name(found.a), side_name(found.b)
    sinks = found.sinks.sinks
    stores = found.stores.stores if found.stores is not None else ()
    of_stores = store_sentences(found.stores) if found.stores is not None else ()
    differences = [sink.difference for sink in sinks]
    page = {
        "a": a,
        "b": b,
        "is_empty": found.is_empty,
        "within": list(interval_sentences(found.within)),
        "sentences": [*sink_sentences(found.sinks), *of_stores, *ledger_sentences(found.ledgers)],
        "tiles": [
            (title, sum(getattr(difference, name) for difference in differences))
            for name, title in (("compared", "compared"), ("equal", "equal"), *(kind[:2] for kind in KINDS))
        ],
        "kinds": KINDS,
        "legend": [(css, title) for _, title, css in KINDS],
        "compared": [(sink_name(sink), sink.difference) for sink in sinks],
        "stores": [(store_name(store), store.difference) for store in stores],
        "reasons": "\n".join(reasons),
        "dropped": dropped(found.ledgers),
        "differing": [
            _part(name, difference)
            for name, difference in [
                *((sink_name(sink), sink.difference) for sink in sinks),
                *((store_name(store), store.difference) for store in stores),
            ]
            if not difference.is_empty
        ],
    }
    return render("difference.html.j2", page)


def _part(name: str, difference: Difference) -> _Part:
    return _Part(
        name,
        summary(name, difference),
        difference,
        tuple(schema_text(field) for field in difference.schema),
        tuple(_figures(difference)),
        tuple(
            (title, getattr(difference, kind), tuple(_shown(example) for example in difference.examples[kind]))
            for kind, title, _ in KINDS
            if difference.examples[kind]
        ),
    )


def _figures(difference: Difference) -> Iterator[Figure]:
    if difference.times is not None:
        yield _over_time(difference.times)
    for field in difference.fields:
        if field.numbers is not None and len(field.numbers.bars) > 1:
            yield _distribution(field)


def _over_time(times: TimeCounts) -> Figure:
    """Every interval from the first to the last one, those without a difference too."""
    width = times.width_ms
    at = [(start - times.starts_ms[0]) // width for start in times.starts_ms]
    names = [_interval_name(times.starts_ms[0] + n * width, width) for n in range(at[-1] + 1)]
    series = []
    for kind, title, css in KINDS:
        counts = [0.0] * len(names)
        for n, count in zip(at, getattr(times, kind), strict=True):
            counts[n] = float(count)
        if any(counts):
            series.append(Series(title, counts, css))
    return Figure(
        "Over time",
        charts.columns(names, series, label="Rows that differ, over time", wide=True),
        f"Rows that differ, by {duration_text(width)}: of a window its start, else the timestamp.",
        [(s.css, s.name) for s in series],
        wide=True,
    )


def _interval_name(start_ms: int, width_ms: int) -> str:
    text = time_text(start_ms)
    return text.partition(" ")[0] if width_ms % _DAY_MS == 0 else text.removesuffix(" UTC")


def _distribution(field: FieldDifference) -> Figure:
    assert field.numbers is not None  # noqa: S101 - who calls has looked
    numbers = field.numbers
    names = [change_text(bound, field.path) for bound in numbers.bounds[:-1]]
    counts = [float(count) for count in numbers.bars]
    quantiles = ", ".join(
        f"{name} {change_text(numbers.quantiles[share], field.path)}"
        for share, name in (("0.05", "5 %"), ("0.5", "median"), ("0.95", "95 %"))
    )
    least, greatest = (change_text(number, field.path) for number in (numbers.min, numbers.max))
    sampled = sum(numbers.bars)
    of_sample = f" The columns count {count_text(sampled)} of them." if sampled < numbers.count else ""
    return Figure(
        field.path,
        charts.columns(names, [Series("changed", counts, "s1")], label=f"How much {field.path} changed"),
        f"B - A in {counted(numbers.count, 'row')}: {least} to {greatest}, {quantiles}."
        f" Each column begins at its figure.{of_sample}",
    )


def _shown(example: Example) -> _Shown:
    sides = [None if side is None else dict(_leaves(side)) for side in (example.a, example.b)]
    paths = dict.fromkeys(path for side in sides if side is not None for path in side)
    leaves = []
    for path in paths:
        a, b = (None if side is None else side.get(path) for side in sides)
        is_changed = any(path == name or path.startswith(f"{name}.") for name in example.fields) and a != b
        leaves.append(_Leaf(path, a, b, is_changed))
    places = [
        f"{name}: {_place(side)}"
        for name, side in (("A", example.a), ("B", example.b))
        if side is not None and _place(side)
    ]
    return _Shown(_text(example.key), tuple(places), tuple(leaves))


def _leaves(side: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in side.items():
        if name not in _PLACE:
            yield from _leaves_of(name, value)


def _leaves_of(path: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _leaves_of(f"{path}.{name}", inner)
    else:
        yield path, _text(value)


def _place(side: dict[str, Any]) -> str:
    if "offset" not in side:
        return ""
    return f"{side['topic']}/{side['partition']} offset {side['offset']}"


def _text(value: Any) -> str:
    text = json_text(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
