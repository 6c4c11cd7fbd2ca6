"""What came out, for a reader: a table for each work, and a plot."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from benchmarks.targets import FLOOR, US, US_IN_SESSION, US_LOCAL
from benchmarks.works import WORKS
from hindstream.console.numbers import bytes_text, count_text
from hindstream.report.charts import drawing, element, tooltip

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.contestants.contestant import Contestant
    from benchmarks.regression import Estimate
    from benchmarks.runner import Measured

_STYLE = """
text { font: 12px sans-serif; fill: #1f2933 } .value { font-size: 11px } .tick { fill: #616e7c; font-size: 11px }
.title { font-weight: bold } .grid { stroke: #e4e7eb } .bar { fill: #9aa5b1 } .floor { fill: #cbd2d9 }
.us { fill: #d9480f } .error { stroke: #1f2933 }
"""
_WIDTH, _LEFT, _RIGHT, _ROW, _TITLE = 860, 230, 70, 20, 34


def table(work: str, measured: Sequence[Measured], contestants: Sequence[Contestant]) -> str:
    """One work's figures as a Markdown table, aligned. CPU microseconds are a record's.

    A column for each size has gross CPU microseconds and the seconds of the whole run. ± marks what is uncertain by
    more than a fifth, ``<`` what cannot be told from nothing.
    """
    titles = {contestant.name: contestant for contestant in contestants}
    chosen = [one for one in measured if one.work == work]
    net = {one.contestant: one.net for one in chosen}
    sizes = sorted({size for one in chosen for size in one.costs})
    gross = [f"gross us; s, {_short(size)}" for size in sizes]
    rows = [("", "net us", "start CPU s", *gross, "memory", "/ Hindstream", "/ floor", "answer")]
    for one in chosen:
        ratios = [_ratio(one.net, net.get(base)) for base in (US, FLOOR)]
        cells = [_gross(one, size) for size in sizes]
        figures = (one.net.text(3), one.cpu.start.text(1), *cells, bytes_text(one.peak_memory_bytes))
        rows.append((titles[one.contestant].title, *figures, *ratios, _answer(one, titles[one.contestant])))
    return f"{work} {WORKS[work].title}\n\n{aligned(rows)}"


def _short(size: int) -> str:
    return f"{size / 1e6:g} million" if size >= 100_000 else count_text(size)


def _gross(one: Measured, size: int) -> str:
    return f"{one.gross(size).text(2)}; {one.wall_seconds(size):.1f}" if size in one.costs else ""


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """As Markdown: the first and the last column to the left, figures to the right; the first row is the header."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    last = len(widths) - 1
    rule = ["-" * w if i in {0, last} else "-" * (w - 1) + ":" for i, w in enumerate(widths)]
    lines = []
    for row in (rows[0], rule, *rows[1:]):
        cells = zip(row, widths, strict=True)
        padded = [cell.ljust(w) if i in {0, last} else cell.rjust(w) for i, (cell, w) in enumerate(cells)]
        lines.append(f"| {' | '.join(padded)} |")
    return "\n".join(lines)


def _ratio(net: Estimate, base: Estimate | None) -> str:
    if net is base:
        return "1.00"
    ratio = None if base is None else net.over(base)
    return "" if ratio is None else ratio.text(2)


def _answer(one: Measured, contestant: Contestant) -> str:
    if one.differences:
        return "WRONG: " + "; ".join(one.differences)
    if one.work not in contestant.agrees:
        return "comes near"
    return "the same" if contestant.is_exact else "same number and sums"


def plot(measured: Sequence[Measured], contestants: Sequence[Contestant]) -> str:
    """Net CPU microseconds a record with their intervals, on a logarithmic axis, as a picture of its own (SVG)."""
    titles = {contestant.name: contestant.title for contestant in contestants}
    values = [one.net_us for one in measured if one.net_us > 0] or [1.0]
    low, high = (10.0 ** round_(math.log10(v)) for round_, v in ((math.floor, min(values)), (math.ceil, max(values))))
    scale = (_WIDTH - _LEFT - _RIGHT) / max(math.log10(high / low), 1)
    marks, y = [], 0.0
    for work in dict.fromkeys(one.work for one in measured):
        y += _TITLE
        marks.append(_text(12, y - 10, f"{work} {WORKS[work].title}", "title"))
        for one in (one for one in measured if one.work == work):
            width = math.log10(one.net_us / low) * scale if one.net_us > 0 else 0.0
            css = {US: "us", US_LOCAL: "us", US_IN_SESSION: "us", FLOOR: "floor"}.get(one.contestant, "bar")
            figure, middle = one.net.text(2), y + _ROW * 0.65
            tip = tooltip(f"{titles[one.contestant]}, {work}: {one.net.text(3)} us net, {one.gross_us:.3f} gross")
            ends = [_LEFT + math.log10(max(end, low) / low) * scale for end in _interval(one.net)]
            right = min(max(ends[-1], _LEFT + width), _WIDTH - _RIGHT)
            marks += [
                _text(_LEFT - 8, middle, titles[one.contestant], "name", "end"),
                element("rect", tip, x=_LEFT, y=y, width=max(width, 1.0), height=_ROW - 5.0, class_=css),
                element("line", x1=ends[0], x2=right, y1=y + _ROW / 2 - 2.5, y2=y + _ROW / 2 - 2.5, class_="error"),
                _text(right + 6, middle, figure, "value"),
            ]
            y += _ROW
    ticks = [10.0**n for n in range(round(math.log10(low)), round(math.log10(high)) + 1)]
    grid = [_tick(_LEFT + math.log10(tick / low) * scale, y, f"{tick:g}") for tick in ticks]
    label = "Net CPU microseconds a record"
    axis = _text(12, y + 20, label, "tick")
    style = element("style", Markup(_STYLE))
    paper = element("rect", width="100%", height="100%", fill="#ffffff")
    return str(drawing(style, paper, *grid, axis, *marks, label=label, width=_WIDTH, height=y + 30))


def _interval(net: Estimate) -> tuple[float, float]:
    """From where to where it may be; an unknown error is drawn as none."""
    error = net.error if math.isfinite(net.error) else 0.0
    return net.value - error, net.value + error


def _tick(x: float, bottom: float, figure: str) -> Markup:
    line = element("line", x1=x, x2=x, y1=_TITLE - 6.0, y2=bottom, class_="grid")
    return line + _text(x, bottom + 20, figure, "tick", "middle")


def _text(x: float, y: float, content: str, css: str, anchor: str = "start") -> Markup:
    return element("text", escape(content), x=x, y=y, class_=css, text_anchor=anchor)
