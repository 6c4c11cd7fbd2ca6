"""What came out, for a reader: a table and a picture for each thing that was varied."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from benchmarks.report import aligned
from benchmarks.versioned.cases import AXES
from benchmarks.versioned.runner import OPERATIONS, OURS, THEIRS
from hindstream.report.charts import drawing, element, tooltip

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from benchmarks.versioned.cases import Case
    from benchmarks.versioned.runner import Measured

_STYLE = """
text { font: 12px sans-serif; fill: #1f2933 } .tick { fill: #616e7c; font-size: 11px } .grid { stroke: #e4e7eb }
.title { font-weight: bold } .ours { stroke: #d9480f; fill: #d9480f } .theirs { stroke: #486581; fill: #486581 }
polyline { fill: none !important; stroke-width: 2 } text.ours, text.theirs { stroke: none }
"""
_PANEL, _HEIGHT, _LEFT, _TOP, _GAP = 220, 150, 44, 64, 44
_CSS = {OURS: "ours", THEIRS: "theirs"}


def table(axis: str, measured: Mapping[Case, Measured]) -> str:
    """CPU microseconds an operation, ours / theirs, as a Markdown table; ± marks what is uncertain by over a fifth."""
    rows = [(axis, *OPERATIONS, "answers")]
    for value, case in AXES[axis].items():
        one = measured[case]
        cells = [" / ".join(one.mean(store, what).text(2) for store in (OURS, THEIRS)) for what in OPERATIONS]
        rows.append((value, *cells, f"WRONG: {', '.join(one.differences)}" if one.differences else "the same"))
    return aligned(rows)


def plot(axis: str, measured: Mapping[Case, Measured]) -> str:
    """A panel for each operation: CPU microseconds, on a logarithmic axis that all share, by what is varied (SVG)."""
    values = list(AXES[axis])
    means = {
        (store, what): [measured[case].mean(store, what).value for case in AXES[axis].values()]
        for what in OPERATIONS
        for store in (OURS, THEIRS)
    }
    figures = [max(figure, 0.01) for row in means.values() for figure in row]
    low, high = math.floor(math.log10(min(figures))), math.ceil(math.log10(max(figures)))
    high = max(high, low + 1)

    def y(us: float) -> float:
        return _TOP + _HEIGHT * (high - math.log10(max(us, 10.0**low))) / (high - low)

    marks = [_text(_LEFT, 20, f"CPU microseconds an operation, by {axis}", "title")]
    for i, what in enumerate(OPERATIONS):
        left = _LEFT + i * (_PANEL + _GAP)
        xs = [left + _PANEL * (n + 0.5) / len(values) for n in range(len(values))]
        marks += [
            element("line", x1=left, x2=left + _PANEL, y1=y(10.0**n), y2=y(10.0**n), class_="grid")
            + _text(left - 6, y(10.0**n) + 4, f"{10.0**n:g}", "tick", "end")
            for n in range(low, high + 1)
        ]
        marks += [_text(x, _TOP + _HEIGHT + 18, value, "tick", "middle") for x, value in zip(xs, values, strict=True)]
        marks.append(_text(left, _TOP - 14, what, "title"))
        for store in (OURS, THEIRS):
            marks += _line(store, xs, means[store, what], y, values)
    legend = [_text(_LEFT + n * 120, _TOP + _HEIGHT + 44, store, _CSS[store]) for n, store in enumerate(_CSS)]
    style = element("style", Markup(_STYLE))
    paper = element("rect", width="100%", height="100%", fill="#ffffff")
    width, height = _LEFT + len(OPERATIONS) * (_PANEL + _GAP), _TOP + _HEIGHT + 60
    return str(drawing(style, paper, *marks, *legend, label=f"Versioned stores by {axis}", width=width, height=height))


def _line(
    store: str, xs: Sequence[float], figures: Sequence[float], y: Callable[[float], float], values: Sequence[str]
) -> list[Markup]:
    points = " ".join(f"{x:.1f},{y(us):.1f}" for x, us in zip(xs, figures, strict=True))
    dots = [
        element("circle", tooltip(f"{store}, {value}: {us:.2f} us"), cx=x, cy=y(us), r=3.5, class_=_CSS[store])
        for x, us, value in zip(xs, figures, values, strict=True)
    ]
    return [element("polyline", points=points, class_=_CSS[store]), *dots]


def _text(x: float, y: float, content: str, css: str, anchor: str = "start") -> Markup:
    return element("text", escape(content), x=x, y=y, class_=css, text_anchor=anchor)
