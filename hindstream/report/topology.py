"""A topology as a picture: a frame a sub-topology, in it the nodes from left to right, each after its parents.

What is longer than a page is wide goes on in a row below, from the left, as text does.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hindstream.report.charts import drawing, element, tooltip
from statelib.errors.counted import counted
from statelib.topology import Processor, Sink, Source

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from markupsafe import Markup

    from statelib.topology import Node, SubTopology, Topology

_BOX, _TALL, _ACROSS, _DOWN = 186.0, 40.0, 226.0, 54.0
_EDGE, _TITLE, _BETWEEN = 28.0, 30.0, 18.0
_COLUMNS = 5  # of boxes: as many as the page shows in a size that can be read
_BETWEEN_ROWS, _TURN = 32.0, 24.0
_LONGEST = 24
_NARROWEST = 720.0


@dataclass(slots=True)
class _Place:
    """The room of a node, or of an edge on its way past a column: the upper left corner of a box.

    Above the row that it is in is a lane for the edges that come from the row before.
    """

    node: Node | None
    column: int
    before: list[_Place] = field(default_factory=list)
    x: float = 0.0
    y: float = 0.0
    lane: float = 0.0

    @property
    def middle(self) -> float:
        return self.y + _TALL / 2


def topology_picture(topology: Topology) -> Markup:
    """Draws the topology, never wider than a page."""
    parts = counted(len(topology.sub_topologies), "sub-topology", "sub-topologies")
    label = f"The topology: {parts}, {counted(len(topology.nodes), 'node')}"
    return _picture(topology.sub_topologies, label, {})


def path_picture(path: Sequence[SubTopology], notes: Mapping[str, str]) -> Markup:
    """Draws what leads to something.

    Args:
        path: The sub-topologies, each without what does not lead there.
        notes: By node, what stands in its box below its name.
    """
    nodes = sum(len(sub.nodes) for sub in path)
    return _picture(path, f"The path: {counted(nodes, 'node')}", notes)


def _picture(sub_topologies: Sequence[SubTopology], label: str, notes: Mapping[str, str]) -> Markup:
    frames, top, width = [], 0.0, _NARROWEST
    for sub in sub_topologies:
        places = _places(sub, top)
        width = max(width, max(place.x for place in places) + _BOX + _EDGE)
        bottom = max(place.y for place in places) + _TALL + _EDGE
        frames.append((sub, places, top, bottom))
        top = bottom + _BETWEEN
    drawn = [part for sub, places, first, last in frames for part in _frame(sub, places, (first, last, width), notes)]
    svg = drawing(_arrowhead(), *drawn, label=label, width=width, height=max(top - _BETWEEN, 1.0))
    return element("div", svg, style=f"min-width: {_NARROWEST:.0f}px")


def _places(sub: SubTopology, top: float) -> list[_Place]:
    """Each node a column further than the last of its parents, and the ways of edges that pass columns."""
    of_nodes: dict[str, _Place] = {}
    places: list[_Place] = []
    for node in sub.nodes:
        column = max((of_nodes[parent].column + 1 for parent in node.parents), default=0)
        place = of_nodes[node.name] = _Place(node, column)
        for parent in node.parents:
            last = of_nodes[parent]
            for passed in range(last.column + 1, column):
                last = _Place(None, passed, [last])
                places.append(last)
            place.before.append(last)
        places.append(place)
    columns: dict[int, list[_Place]] = {}
    for place in places:
        columns.setdefault(place.column, []).append(place)
    for number in sorted(columns):
        _stack(columns[number], _EDGE + number % _COLUMNS * _ACROSS, top + _TITLE)
    _break(places)
    return places


def _break(places: Sequence[_Place]) -> None:
    """Puts each row of columns below the one before."""
    lowest = 0.0
    rows: dict[int, list[_Place]] = {}
    for place in places:
        rows.setdefault(place.column // _COLUMNS, []).append(place)
    for number in sorted(rows):
        row = rows[number]
        down = lowest + _BETWEEN_ROWS - min(place.y for place in row) if number else 0.0
        for place in row:
            place.y += down
            place.lane = lowest + _BETWEEN_ROWS / 2
        lowest = max(place.y for place in row) + _TALL


def _stack(column: Sequence[_Place], x: float, top: float) -> None:
    """Places beside what comes before them, as far as there is room."""

    def wanted(place: _Place) -> float:
        return sum(before.y for before in place.before) / len(place.before) if place.before else top

    y = top
    for place in sorted(column, key=wanted):
        place.x, place.y = x, max(y, wanted(place))
        y = place.y + _DOWN


def _frame(
    sub: SubTopology, places: Sequence[_Place], room: tuple[float, float, float], notes: Mapping[str, str]
) -> Sequence[Markup]:
    top, bottom, width = room
    frame = element("rect", x=1, y=top + 1, width=width - 2, height=bottom - top - 2, rx=8, class_="frame")
    title = element("text", f"Sub-topology {sub.index}", x=_EDGE, y=top + 20, class_="tick")
    edges = [_edge(before, place) for place in places if place.node for before in place.before]
    boxes = [_box(place, place.node, notes.get(place.node.name)) for place in places if place.node]
    return [frame, title, *edges, *boxes]


def _edge(before: _Place, child: _Place) -> Markup:
    """From the parent, past the columns between, to the child."""
    stops = [child, before]
    while stops[-1].node is None:
        stops.append(stops[-1].before[0])
    path, (parent, *others) = "", stops[::-1]
    for start, end in itertools.pairwise([parent, *others]):
        x1, x2 = start.x + _BOX, end.x - (2 if end is child else 0)
        path += f"L{x1:.1f},{start.middle:.1f} " if path else f"M{x1:.1f},{start.middle:.1f} "
        path += _turn(x1, start, x2, end) if end.x < start.x else _curve(x1, start.middle, x2, end.middle)
    names = [stop.node.name for stop in (parent, child) if stop.node]
    return element("path", tooltip(" to ".join(names)), d=path, class_="edge", marker_end="url(#arrowhead)")


def _curve(x1: float, y1: float, x2: float, y2: float) -> str:
    middle = (x1 + x2) / 2
    return f"C{middle:.1f},{y1:.1f} {middle:.1f},{y2:.1f} {x2:.1f},{y2:.1f} "


def _turn(x1: float, start: _Place, x2: float, end: _Place) -> str:
    """From the end of a row to the beginning of the next, by the lane between them."""
    lane, right, left = end.lane, x1 + _TURN, x2 - _TURN
    down = f"C{right:.1f},{start.middle:.1f} {right:.1f},{lane:.1f} {x1:.1f},{lane:.1f} "
    return f"{down}L{x2:.1f},{lane:.1f} C{left:.1f},{lane:.1f} {left:.1f},{end.middle:.1f} {x2:.1f},{end.middle:.1f} "


def _arrowhead() -> Markup:
    tip = element("path", d="M0,0 L7,3.5 L0,7 Z", class_="edge-tip")
    marker = element("marker", tip, id="arrowhead", markerWidth=7, markerHeight=7, refX=6, refY=3.5, orient="auto")
    return element("defs", marker)


def _box(place: _Place, node: Node, note: str | None) -> Markup:
    round_ = _TALL / 2 if not isinstance(node, Processor) else 5
    css = "box processor" if isinstance(node, Processor) else "box topic"
    rect = element("rect", x=place.x, y=place.y, width=_BOX, height=_TALL, rx=round_, class_=css)
    name, of_node = _texts(node)
    below = of_node if note is None else note
    middle = place.x + _BOX / 2
    lines = [element("text", _short(name), x=middle, y=place.y + (17 if below else 24), class_="box-name")]
    if below:
        lines.append(element("text", _short(below), x=middle, y=place.y + 31, class_="box-note"))
    return element("g", tooltip(_tip(node)), rect, *lines)


def _texts(node: Node) -> tuple[str, str]:
    """What stands in the box: a topic and what is done with it, or a node and its stores."""
    match node:
        case Source():
            kind = "repartition" if node.internal else "global" if node.is_global else "source"
            return node.topic, f"{kind} topic"
        case Processor():
            return node.name, ", ".join(node.stores)
        case Sink():
            return node.topic, "repartition topic" if node.internal else "sink topic"


def _tip(node: Node) -> str:
    match node:
        case Source():
            return f"{node.name} takes up {node.topic}"
        case Processor():
            return f"{node.name}, stores: {', '.join(node.stores) or 'none'}"
        case Sink():
            return f"{node.name} writes {node.topic}"


def _short(text: str) -> str:
    """The text as far as there is room; of a generated name the end tells it apart."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2 - 1]}…{text[-_LONGEST // 2 :]}"
