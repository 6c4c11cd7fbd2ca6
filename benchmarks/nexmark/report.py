"""What came out, for a reader: one table of all queries."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from benchmarks.nexmark.answers import ANSWERS
from benchmarks.nexmark.contestants.contestant import Contestant
from benchmarks.nexmark.published import PUBLISHED
from benchmarks.report import aligned
from benchmarks.runner import Measured
from benchmarks.targets import US
from hindstream.console.numbers import bytes_text, count_text


def table(measured: Sequence[Measured], contestants: Sequence[Contestant]) -> str:
    """CPU microseconds an event, net of the start and gross, and memory, as a Markdown table.

    At the end, geometric means of how many times more than Hindstream a contestant takes, over the queries of both.
    """
    found = {(one.work, one.contestant): one for one in measured}
    queries = [query for query in ANSWERS if any(one.work == query for one in measured)]
    rows = [["", *(c.title for c in contestants), *(published.title for published in PUBLISHED)]]
    for query in queries:
        cells = [_cell(found.get((query, contestant.name)), contestant, query) for contestant in contestants]
        rows.append([query, *cells, *(_figure(published.us(query)) for published in PUBLISHED)])
    ours = {query: found[query, US] for query in queries if (query, US) in found}
    for what in ("net_us", "gross_us"):
        base = {query: getattr(one, what) for query, one in ours.items() if not one.failed}
        theirs = [
            {q: getattr(one, what) for q in queries if (one := found.get((q, c.name))) and not one.failed}
            for c in contestants
        ]
        theirs += [{q: us for q in queries if (us := published.us(q)) is not None} for published in PUBLISHED]
        label = what.removesuffix("_us")
        rows.append([f"{label} / Hindstream", *(_ratio(them, base) for them in theirs)])
    events = count_text(max(one.largest for one in measured if one.costs))
    legend = (
        f"{events} events; CPU microseconds an event, net / gross; peak memory; ± marks what is uncertain by more "
        "than a fifth, with a question mark where more repeats have to tell"
    )
    return f"{legend}\n\n{aligned(rows)}"


def notes(contestants: Iterable[Contestant]) -> str:
    """How all are set up, which answers differ, and where published figures come from."""
    lines = []
    for contestant in contestants:
        lines.append(f"{contestant.title}: {contestant.settings}.")
        lines += [f"{contestant.title}, {query}: {why}." for query, why in contestant.differs.items()]
    return "\n".join([*lines, *(f"{published.title}: {published.source}." for published in PUBLISHED)])


def _cell(one: Measured | None, contestant: Contestant, query: str) -> str:
    if one is None:
        return ""
    if one.failed:
        return f"failed: {one.failed}"
    mark = " WRONG" if one.differences else " *" if query in contestant.differs else ""
    return f"{one.net.text(2)} / {one.gross_us:.2f}, {bytes_text(one.peak_memory_bytes)}{mark}"


def _figure(us: float | None) -> str:
    return "" if us is None else f"{us:.2f}"


def _ratio(theirs: dict[str, float], ours: dict[str, float]) -> str:
    """The geometric mean, where both are above 0."""
    logs = [math.log(theirs[q] / ours[q]) for q in ours if theirs.get(q, 0) > 0 and ours[q] > 0]
    return f"{math.exp(sum(logs) / len(logs)):.2f} ({len(logs)})" if logs else ""
