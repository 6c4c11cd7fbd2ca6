"""Charts as SVG, drawn here: no library, no script, no network. Colours are the page's CSS variables.

Every chart has a label for screen readers, and every mark a tooltip with its exact figure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from hindstream.console.numbers import count_text

if TYPE_CHECKING:
    from datetime import date

Format = Callable[[float], str]

_WIDTH, _WIDE, _HEIGHT = 560, 1080, 226
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 12, 12, 42
_WIDEST_COLUMN = 46
_NAME_WIDTH, _FIGURE_WIDTH, _FIGURE_HEIGHT = 7.2, 6.8, 12  # of a character, in the widest of the fonts


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart with its title and what it says.

    ``legend`` pairs a CSS class with a name; ``wide``: as wide as the page.
    """

    title: str
    svg: Markup
    caption: str = ""
    legend: Sequence[tuple[str, str]] = ()
    wide: bool = False


@dataclass(frozen=True, slots=True)
class Series:
    """Numbers by category; None leaves a gap. ``css`` is the class that colours it."""

    name: str
    values: Sequence[float | None]
    css: str


def element(name: str, *children: str | Markup, **attributes: object) -> Markup:
    """One SVG element; ``class_`` is written ``class`` and underscores as hyphens."""
    given = {key.rstrip("_").replace("_", "-"): _attribute(value) for key, value in attributes.items()}
    text = "".join(f' {key}="{escape(value)}"' for key, value in given.items())
    inside = "".join(map(escape, children))
    # Attribute names and the element's are ours; everything else has been escaped.
    return Markup(f"<{name}{text}>{inside}</{name}>")  # noqa: S704


def drawing(*children: Markup, label: str, width: float = _WIDTH, height: float = _HEIGHT) -> Markup:
    """The outermost element: scales with the page."""
    return element(
        "svg", *children, viewBox=f"0 0 {width:g} {height:g}", role="img", aria_label=label,
        xmlns="http://www.w3.org/2000/svg",
    )  # fmt: skip


def tooltip(text: str) -> Markup:
    """What a pointer that rests on the parent shows."""
    return element("title", escape(text))


def columns(
    categories: Sequence[str],
    series: Sequence[Series],
    *,
    label: str,
    form: Format = count_text,
    logarithmic: bool = False,
    wide: bool = False,
) -> Markup:
    """Columns, the series stacked. Logarithmic ones take a single series, and draw nothing for 0.

    ``wide``: for a figure as wide as the page.
    """
    totals = [sum(s.values[i] or 0 for s in series) for i in range(len(categories))]
    most = max(totals, default=1)
    whole = all(float(total).is_integer() for total in totals)
    scale = _LogScale(most) if logarithmic else _Scale(0, most, whole=whole)
    frame = _Frame(categories, scale, _WIDE if wide else _WIDTH)
    width = min(_WIDEST_COLUMN, frame.step * 0.72)
    marks = []
    said = _Labels()
    for i, category in enumerate(categories):
        below = 0.0
        for s in series:
            value = s.values[i] or 0
            if not value:
                continue
            top, bottom = frame.y(below + value), frame.y(below)
            tip = f"{category}: {form(value)}" + (f" {s.name}" if s.name else "")
            marks.append(
                element(
                    "rect",
                    tooltip(tip),
                    x=frame.x(i) - width / 2,
                    y=top,
                    width=width,
                    height=max(bottom - top, 0.8),
                    class_=f"mark {s.css}",
                )
            )
            below += value
        if logarithmic and totals[i] and said.has_room(frame.x(i), frame.y(totals[i]), form(totals[i])):
            marks.append(_text(frame.x(i), frame.y(totals[i]) - 4, form(totals[i]), "value", "middle"))
    return drawing(*frame.axes(form), *marks, label=label, width=frame.width)


def lines(
    categories: Sequence[str],
    series: Sequence[Series],
    *,
    label: str,
    form: Format = count_text,
    base: int = 1,
    logarithmic: bool = False,
) -> Markup:
    """One line a series, with a dot for each value.

    Args:
        categories: Along the bottom.
        series: As long as ``categories`` each.
        label: For screen readers.
        form: How figures are written.
        base: 1024: ticks are round in KiB, MiB, ...
        logarithmic: Whether the axis has powers of ten; what is below one half is at its foot. No value is negative.
    """
    values = [value for s in series for value in s.values if value is not None]
    least, most = min([0, *values]), max([0, *values]) or 1
    frame = _Frame(categories, _LogScale(most) if logarithmic else _Scale(least, most, base))
    marks = []
    for s in series:
        for run in _runs(s.values):
            points = " ".join(f"{frame.x(i):.1f},{frame.y(s.values[i] or 0):.1f}" for i in run)
            marks.append(element("polyline", points=points, class_=f"line {s.css}"))
        marks += [
            element(
                "circle",
                tooltip(f"{s.name}, {categories[i]}: {form(value)}"),
                cx=frame.x(i),
                cy=frame.y(value),
                r=2.6,
                class_=f"mark {s.css}",
            )
            for i, value in enumerate(s.values)
            if value is not None
        ]
    return drawing(*frame.axes(form), *marks, label=label)


def calendar(days: dict[date, float], *, label: str, form: Format, steps: Sequence[float]) -> Markup:
    """A year or less, one square a day in columns of weeks, darker with each of ``steps`` that is reached."""
    cell, left, top = 19.2, 40, 20
    monday = min(days).toordinal() - min(days).weekday()
    marks, month = [], 0
    for day, value in sorted(days.items()):
        week, weekday = divmod(day.toordinal() - monday, 7)
        x, y = left + week * cell, top + weekday * cell
        level = sum(value >= step for step in steps)
        tip = tooltip(f"{day:%A %-d %B %Y}: {form(value)}")
        marks.append(element("rect", tip, x=x, y=y, width=cell - 2.4, height=cell - 2.4, rx=3, class_=f"heat h{level}"))
        if day.month != month and day.day <= 7:  # noqa: PLR2004 - the column in which a month begins
            month = day.month
            marks.append(_text(x, top - 6, f"{day:%b}", "tick", "start"))
    names = [
        _text(left - 6, top + i * cell + 12, name, "tick", "end") for i, name in ((0, "Mon"), (2, "Wed"), (4, "Fri"))
    ]
    return drawing(*names, *marks, label=label, width=_WIDE, height=top + 7 * cell + 4)


class _Scale:
    """A linear axis from ``low`` to at least ``high``, with about five ticks that are round in the best unit.

    ``whole``: what is counted has no fractions, so ticks have none.
    """

    def __init__(self, low: float, high: float, base: int = 1, *, whole: bool = False) -> None:
        span = max(high - low, 1e-9)
        raw = span / 4
        unit = base ** math.floor(math.log(max(high, 1), base)) if base > 1 else 1
        magnitude = 10.0 ** math.floor(math.log10(raw / unit)) * unit
        steps = [m * magnitude for m in (1, 2, 2.5, 5, 10) if m * magnitude >= raw]
        step = max(1.0, next(s for s in steps if s < 1 or s.is_integer())) if whole else steps[0]
        self.low = math.floor(low / step) * step
        self.high = math.ceil(max(high, low + step) / step) * step
        self.ticks = [self.low + i * step for i in range(round((self.high - self.low) / step) + 1)]

    def share(self, value: float) -> float:
        """0 at the bottom, 1 at the top."""
        return (value - self.low) / (self.high - self.low)


class _LogScale:
    """Powers of ten from below 1, so that 1 can be seen."""

    def __init__(self, high: float) -> None:
        decades = max(1, math.ceil(math.log10(max(high, 1) * 1.5)))
        self.ticks = [10.0**n for n in range(decades + 1)]
        self._bottom, self._span = -0.3, decades + 0.3

    def share(self, value: float) -> float:
        """0 at the bottom, 1 at the top; 0 for 0 and what is too small."""
        return max((math.log10(value) - self._bottom) / self._span, 0.0) if value > 0 else 0.0


class _Frame:
    """The plot area of a chart with categories along the bottom."""

    def __init__(self, categories: Sequence[str], scale: _Scale | _LogScale, width: int = _WIDTH) -> None:
        self._categories = categories
        self._scale = scale
        self.width = width
        self.step = (width - _LEFT - _RIGHT) / max(len(categories), 1)

    def x(self, i: int) -> float:
        """Middle of a category."""
        return _LEFT + (i + 0.5) * self.step

    def y(self, value: float) -> float:
        return _HEIGHT - _BOTTOM - self._scale.share(value) * (_HEIGHT - _TOP - _BOTTOM)

    def axes(self, form: Format) -> list[Markup]:
        """Grid lines with their figures, and the categories' names, as many as have room."""
        marks = []
        for tick in self._scale.ticks:
            y = self.y(tick)
            css = "axis" if tick == 0 else "grid"
            marks.append(element("line", x1=_LEFT, x2=self.width - _RIGHT, y1=y, y2=y, class_=css))
            marks.append(_text(_LEFT - 8, y + 4, form(tick), "tick", "end"))
        widest = max((len(name) for name in self._categories), default=1)
        every = max(1, math.ceil((widest * _NAME_WIDTH + 8) / self.step))
        for i, name in enumerate(self._categories):
            if i % every == 0 and (i == 0 or self.x(i) + len(name) * _NAME_WIDTH / 2 <= self.width):
                marks.append(_text(self.x(i), _HEIGHT - _BOTTOM + 18, name, "tick", "middle"))
        return marks


class _Labels:
    """Figures above columns, from left to right: one that would touch the one before is left to its tooltip."""

    def __init__(self) -> None:
        self._end, self._y = -math.inf, 0.0

    def has_room(self, x: float, y: float, content: str) -> bool:
        """Whether a figure in the middle of a column has room above it; if so, it takes that."""
        half = len(content) * _FIGURE_WIDTH / 2
        if x - half < self._end and abs(y - self._y) < _FIGURE_HEIGHT:
            return False
        self._end, self._y = x + half, y
        return True


def _runs(values: Sequence[float | None]) -> list[list[int]]:
    """The stretches without a gap."""
    runs: list[list[int]] = [[]]
    for i, value in enumerate(values):
        if value is None:
            runs.append([])
        else:
            runs[-1].append(i)
    return [run for run in runs if run]


def _text(x: float, y: float, content: str, css: str, anchor: str) -> Markup:
    return element("text", escape(content), x=x, y=y, class_=css, text_anchor=anchor)


def _attribute(value: object) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
