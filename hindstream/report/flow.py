"""The topology as a flow: nodes as bars and what they forward as ribbons, all as wide as there were records."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hindstream.console.numbers import count_text, percent_text
from hindstream.report.accounts import shares
from hindstream.report.charts import drawing, element, tooltip
from statelib.metrics.node_metrics import NodeMetrics
from statelib.operators.tables.source import TableSource
from statelib.topology import Processor, Sink, Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from markupsafe import Markup

    from hindstream.report.accounts import Account
    from statelib.topology import Node, Topology

_WIDTH = 1080.0
_BAR = 14.0
_TALLEST = 190.0
_THINNEST = 2.0
_NARROWEST = 118.0  # of a layer: room for the shortest texts that still say something
_MARGIN = 8.0  # right of a text
_BOLD_EM, _PLAIN_EM = 13.0, 12.0
_SMALLEST_SCALE = 0.8
_TITLE, _LINE, _GAP = 34.0, 15.0, 26.0
_FADE = 46.0


@dataclass
class _Box:
    """A node's place: its bar's corner and height, and how much of its sides has been used by ribbons."""

    node: Node
    metrics: NodeMetrics
    layer: int
    notes: list[tuple[Account, int]] = field(default_factory=list)
    x: float = 0.0
    y: float = 0.0
    height: float = 0.0
    flow_in: int = 0
    used_left: float = 0.0
    used_right: float = 0.0

    @property
    def records(self) -> int:
        """What its height stands for: a join's ledger leaves out the table's updates, its bar does not."""
        return max(self.metrics.records_in, self.flow_in, self.flow_out)

    @property
    def flow_out(self) -> int:
        """What goes on to each child."""
        return self.metrics.records_out

    @property
    def full_height(self) -> float:
        """With its title above and its notes below."""
        return _TITLE + self.height + len(self.notes) * _LINE


def flow(topology: Topology, nodes: Mapping[str, NodeMetrics]) -> Markup:
    """Draws the topology with the ledgers of its nodes.

    Args:
        topology: The job's.
        nodes: Ledgers by node; a node that is not there had no records.
    """
    boxes = _place(topology, nodes)
    most = max((box.records for box in boxes.values()), default=0)
    scale = _TALLEST / max(most, 1)
    for box in boxes.values():
        box.height = max(box.records * scale, _THINNEST)
    height = _arrange(boxes)
    ribbons = [
        _ribbon(boxes[parent], box, scale)
        for box in boxes.values()
        for parent in box.node.parents
        if boxes[parent].flow_out
    ]
    fades = [_fade(box, scale) for box in boxes.values()]
    layers = len({box.layer for box in boxes.values()})
    bars = [_bar(box, _step(layers) - _MARGIN) for box in boxes.values()]
    width = max(_WIDTH, _BAR + layers * _step(layers))
    svg = drawing(
        _gradients(boxes.values()),
        *ribbons,
        *fades,
        *bars,
        label="Records from node to node",
        width=width,
        height=height,
    )
    return element("div", svg, style=f"min-width: {width * _SMALLEST_SCALE:.0f}px")


def _place(topology: Topology, nodes: Mapping[str, NodeMetrics]) -> dict[str, _Box]:
    """One box a node, in the layer after the last of its parents; a node is drawn as late as its children allow.

    What reads a repartition topic comes after what writes it, except where that closes a circle.
    """
    boxes: dict[str, _Box] = {}
    written: dict[str, int] = {}  # by repartition topic, the last layer that writes it so far
    in_order = [node for sub in topology.sub_topologies for node in sub.nodes]
    for node in {node.name: node for node in (*in_order, *topology.nodes)}.values():
        before = [boxes[parent].layer for parent in node.parents]
        if isinstance(node, Source) and node.topic in written:
            before.append(written[node.topic])
        metrics = nodes.get(node.name, NodeMetrics())
        box = _Box(node, metrics, max(before, default=-1) + 1)
        box.notes = [(kind, count) for kind, count in shares(metrics) if kind.fate != "on"]
        box.flow_in = sum(boxes[parent].flow_out for parent in node.parents)
        boxes[node.name] = box
        if isinstance(node, Sink) and node.internal:
            written[node.topic] = max(box.layer, written.get(node.topic, 0))
    for box in reversed(boxes.values()):
        children = [other.layer for other in boxes.values() if box.node.name in other.node.parents]
        if children:
            box.layer = min(children) - 1
    return boxes


def _arrange(boxes: Mapping[str, _Box]) -> float:
    """Gives every box its corner; returns the height of the drawing."""
    layers: dict[int, list[_Box]] = {}
    for box in boxes.values():
        layers.setdefault(box.layer, []).append(box)
    step = _step(len(layers))
    heights = {n: sum(box.full_height + _GAP for box in layer) - _GAP for n, layer in layers.items()}
    tallest = max(heights.values(), default=0.0)
    for n, layer in layers.items():
        layer.sort(key=lambda box: -box.records)
        y = 8.0
        for box in layer:
            box.x, box.y = 2 + n * step, y + _TITLE
            y += box.full_height + _GAP
    return tallest + 16


def _step(layers: int) -> float:
    """How far layers are apart: what is right of the last one has as much room for its texts as the others."""
    return max((_WIDTH - _BAR) / max(layers, 1), _NARROWEST)


def _ribbon(parent: _Box, child: _Box, scale: float) -> Markup:
    """What ``parent`` forwards to ``child``."""
    width = max(parent.flow_out * scale, _THINNEST / 2)
    x1, x2 = parent.x + _BAR, child.x
    y1, y2 = parent.y, child.y + min(child.used_left, max(child.height - width, 0))
    parent.used_right = max(parent.used_right, width)
    child.used_left += width
    middle = (x1 + x2) / 2
    y3, y4 = y2 + width, y1 + width
    path = (
        f"M{x1:.1f},{y1:.1f} C{middle:.1f},{y1:.1f} {middle:.1f},{y2:.1f} {x2:.1f},{y2:.1f} "
        f"L{x2:.1f},{y3:.1f} C{middle:.1f},{y3:.1f} {middle:.1f},{y4:.1f} {x1:.1f},{y4:.1f} Z"
    )
    tip = f"{parent.node.name} to {child.node.name}: {count_text(parent.flow_out)}"
    return element("path", tooltip(tip), d=path, class_="ribbon")


def _gradients(boxes: Iterable[_Box]) -> Markup:
    """One gradient for each colour that fades."""
    colours = sorted({kind.css for box in boxes for kind, _ in box.notes})
    return element(
        "defs",
        *(
            element(
                "linearGradient",
                element("stop", offset="0", class_=f"stop {css}", stop_opacity="0.75"),
                element("stop", offset="1", class_=f"stop {css}", stop_opacity="0"),
                id=f"fade-{css}",
            )
            for css in colours
        ),
    )


def _fade(box: _Box, scale: float) -> Markup:
    """What ends at a node, below what goes on, as short ribbons that thin out."""
    x, y = box.x + _BAR, box.y + min(box.used_right, box.height)
    marks = []
    for kind, count in box.notes:
        if kind.fate == "kept" and kind.name == "unmatched" and box.metrics.records_out >= box.metrics.records_in:
            continue  # a left join passes these on
        width = max(count * scale, _THINNEST / 2)
        tip = tooltip(f"{count_text(count)} {kind.label}: {kind.meaning}")
        fill = f"url(#fade-{kind.css})"
        marks.append(element("rect", tip, x=x, y=y, width=_FADE, height=width, fill=fill))
        y += width
    return element("g", *marks)


def _bar(box: _Box, room: float) -> Markup:
    metrics = box.metrics
    title = fitting(display_name(box.node), room / _BOLD_EM)
    records = f"{count_text(metrics.records_in)} in"
    marks = [
        element("rect", tooltip(f"{box.node.name}: {records}, {count_text(metrics.records_out)} out"), x=box.x, y=box.y,
                width=_BAR, height=box.height, rx=2, class_="node"),
        element("text", title, x=box.x, y=box.y - 20, class_="node-name"),
        element("text", records, x=box.x, y=box.y - 6, class_="tick"),
    ]  # fmt: skip
    y = box.y + box.height + _LINE
    for kind, count in box.notes:
        marks.append(element("circle", cx=box.x + 4, cy=y - 4, r=3.6, class_=f"mark {kind.css}"))
        whole = metrics.records_in + metrics.held_before
        text = fitting(f"{count_text(count)} {kind.label}", (room - 12) / _PLAIN_EM)
        tip = tooltip(f"{count_text(count)} {kind.label}, {percent_text(count, whole)}: {kind.meaning}")
        marks.append(element("text", tip, text, x=box.x + 12, y=y, class_="note"))
        y += _LINE
    return element("g", *marks)


def display_name(node: Node) -> str:
    """A topic's name; a table's store; or the name of the operator's node."""
    if not isinstance(node, Processor):
        return node.topic
    return node.spec.store if isinstance(node.spec, TableSource) else node.name


def display_names(topology: Topology) -> dict[str, str]:
    """By node, what it is called in a report, and what it is where its own name does not say so."""
    names: dict[str, str] = {}
    for node in topology.nodes:
        kind = "source" if isinstance(node, Source) else "sink" if isinstance(node, Sink) else ""
        kind = "table" if isinstance(node, Processor) and isinstance(node.spec, TableSource) else kind
        names[node.name] = f"{display_name(node)} ({kind})" if kind else node.name
    return names


def fitting(text: str, room_em: float) -> str:
    """The text as far as there is room; of a generated name the end tells it apart.

    Args:
        text: A name.
        room_em: In ems; a letter is taken to be as wide as it is in a bold and wide font.
    """
    if sum(map(_width_em, text)) <= room_em:
        return text
    kept = [*text]
    while len(kept) > 2 and sum(map(_width_em, kept)) + 1.05 > room_em:  # noqa: PLR2004 - the first and the last letter
        del kept[len(kept) // 2]
    middle = (len(kept) + 1) // 2
    return f"{''.join(kept[:middle])}…{''.join(kept[middle:])}"


def _width_em(letter: str) -> float:
    return 1.05 if letter in "MW…" else 0.8 if letter.isupper() else 0.4 if letter in "-.,:;' " else 0.69


def order(topology: Topology, nodes: Mapping[str, NodeMetrics]) -> Sequence[str]:
    """Names of the nodes from the sources on."""
    return [node.name for node in topology.nodes if node.name in nodes]
