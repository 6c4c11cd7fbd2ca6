"""What came out, for a reader: one table of all queries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchmarks.nexmark.answers import ANSWERS
from benchmarks.nexmark.contestants.contestant import Contestant
from benchmarks.nexmark.published import PUBLISHED
from benchmarks.nexmark.targets import QUANTITIES, geometric_mean, microseconds
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
    for quantity in QUANTITIES:
        ours = microseconds(measured, US, quantity)
        theirs = [microseconds(measured, contestant.name, quantity) for contestant in contestants]
        theirs += [{q: us for q in queries if (us := published.us(q)) is not None} for published in PUBLISHED]
        rows.append([f"{quantity} / Hindstream", *(_ratio(them, ours) for them in theirs)])
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
    mean = geometric_mean(theirs, ours)
    return "" if mean is None else f"{mean[0]:.2f} ({mean[1]})"
