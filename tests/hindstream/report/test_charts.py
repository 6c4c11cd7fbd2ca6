from __future__ import annotations

import xml.etree.ElementTree as ET
from datetime import date, timedelta

import pytest

from hindstream.report import charts
from hindstream.report.charts import Series
from hindstream.report.flow import fitting, flow
from statelib import StreamsBuilder, Topology
from statelib.metrics.node_metrics import NodeMetrics
from tests.hindstream.report.documents import TOPOLOGY
from tests.surface.topology import surface

SVG = "{http://www.w3.org/2000/svg}"


def marks(drawing: str, tag: str, css: str) -> list[ET.Element]:
    return [e for e in ET.fromstring(drawing).iter(f"{SVG}{tag}") if css in e.attrib.get("class", "").split()]


def tip(element: ET.Element) -> str:
    return element.findtext(f"{SVG}title") or ""


def test_columns_are_as_tall_as_their_numbers_and_stand_on_each_other() -> None:
    drawing = charts.columns(["a", "b"], [Series("x", [10, 40], "s1"), Series("y", [30, 0], "s2")], label="l")
    first, second = marks(drawing, "rect", "s1")
    (above,) = marks(drawing, "rect", "s2")
    assert float(second.attrib["height"]) == pytest.approx(4 * float(first.attrib["height"]), rel=0.02)
    assert float(above.attrib["y"]) + float(above.attrib["height"]) == pytest.approx(float(first.attrib["y"]), abs=0.2)
    assert tip(above) == "a: 30 y"


def test_a_logarithmic_column_of_one_can_be_seen_and_of_none_is_not_there() -> None:
    drawing = charts.columns(["a", "b", "c"], [Series("", [1, 0, 100_000], "s1")], label="l", logarithmic=True)
    small, large = marks(drawing, "rect", "s1")
    assert 5 < float(small.attrib["height"]) < float(large.attrib["height"])


def test_a_gap_breaks_a_line() -> None:
    drawing = charts.lines(["a", "b", "c", "d"], [Series("x", [1, None, 2, 3], "s1")], label="l")
    assert [len(line.attrib["points"].split()) for line in marks(drawing, "polyline", "s1")] == [1, 2]
    assert len(marks(drawing, "circle", "s1")) == 3


@pytest.mark.parametrize("values", [[0.0], [], [-3.0, 5.0], [1e-9], [1e12]])
def test_any_numbers_can_be_drawn(values) -> None:
    names = [str(i) for i in range(len(values))]
    for drawing in (charts.lines(names, [Series("x", values, "s1")], label="l"), charts.columns(names, [], label="l")):
        assert ET.fromstring(drawing).attrib["viewBox"]


def test_a_calendar_has_a_square_for_each_day_with_the_level_that_it_reached() -> None:
    days = {date(2013, 1, 1) + timedelta(days=i): float(i) for i in range(365)}
    drawing = charts.calendar(days, label="l", form=str, steps=(10.0, 100.0))
    assert [len(marks(drawing, "rect", f"h{level}")) for level in range(3)] == [10, 90, 265]
    assert tip(marks(drawing, "rect", "heat")[0]) == "Tuesday 1 January 2013: 0.0"


def test_a_flow_is_as_wide_as_there_are_records() -> None:
    source = TOPOLOGY.sub_topologies[0].all_sources[1].name
    nodes = {
        source: NodeMetrics(1000, 1000, accounts={"forwarded": 1000}),
        "flights-once": NodeMetrics(1000, 500, accounts={"forwarded": 500, "duplicate": 500}),
        "flights-and-weather": NodeMetrics(500, 500, accounts={"joined": 500}),
    }
    drawing = flow(TOPOLOGY, nodes)
    heights = {tip(bar).partition(":")[0]: float(bar.attrib["height"]) for bar in marks(drawing, "rect", "node")}
    assert heights["flights-once"] == pytest.approx(2 * heights["flights-and-weather"], rel=0.01)
    assert "500 duplicate" in drawing
    assert len(marks(drawing, "path", "ribbon")) == 4  # one to each child


def test_a_flow_without_any_record_can_be_drawn() -> None:
    (svg,) = ET.fromstring(flow(TOPOLOGY, {})).iter(f"{SVG}svg")
    assert svg.attrib["viewBox"]


def long_topology() -> Topology:
    """Eleven layers, with names that are generated and long."""
    builder = StreamsBuilder("job")
    stream = builder.stream("a-topic-with-a-name-that-is-long-enough")
    for _ in range(9):
        stream = stream.filter("value > 1")
    stream.to("another-topic-with-quite-a-long-name")
    return builder.build()


@pytest.mark.parametrize("topology", [TOPOLOGY, surface(), long_topology()], ids=["demo", "surface", "long"])
def test_the_texts_of_a_flow_do_not_overlap(topology: Topology) -> None:
    nodes = {
        node.name: NodeMetrics(123_456, 1, accounts={"before-first-window": 123_000, "out-of-order": 455})
        for node in topology.nodes
    }
    drawing = flow(topology, nodes)
    (svg,) = ET.fromstring(drawing).iter(f"{SVG}svg")
    right = float(svg.attrib["viewBox"].split()[2])
    bars = sorted({float(bar.attrib["x"]) for bar in marks(drawing, "rect", "node")})
    texts = [*marks(drawing, "text", "node-name"), *marks(drawing, "text", "note")]
    assert len(texts) == 3 * len(topology.nodes)
    for text in texts:
        x, shown = float(text.attrib["x"]), text.text or "".join(text.itertext()).removeprefix(tip(text))
        after = min([bar for bar in bars if bar > x], default=right)
        assert x + bold_width(shown) * (13 if "node-name" in text.attrib["class"] else 12) <= after, shown


def bold_width(text: str) -> float:
    """In ems, as bold DejaVu Sans has it, the widest of the fonts that pages are shown in."""
    return sum(0.38 if c in "-.,:' " else 1.05 if c in "MW…" else 0.78 if c.isupper() else 0.68 for c in text)


@pytest.mark.parametrize("room", [3.0, 6.0, 12.0, 40.0])
def test_a_text_is_cut_in_its_middle(room: float) -> None:
    text = "KTABLE-TOSTREAM-0000000008"
    cut = fitting(text, room)
    assert bold_width(cut) <= max(room, 3)
    first, _, last = cut.partition("…")
    assert text.startswith(first)
    assert text.endswith(last)
    assert (cut == text) == (room == 40)


def test_counts_have_whole_ticks() -> None:
    for most, ticks in (
        (1, ["0", "1"]),
        (2, ["0", "1", "2"]),
        (9, ["0", "5", "10"]),
        (35, ["0", "10", "20", "30", "40"]),
    ):
        drawing = charts.columns(["a"], [Series("x", [most], "s1")], label="l")
        assert [e.text for e in marks(drawing, "text", "tick")][:-1] == ticks
    drawing = charts.columns(["a"], [Series("x", [0.5], "s1")], label="l", form=str)
    assert "0.2" in [e.text for e in marks(drawing, "text", "tick")]


def test_figures_above_columns_do_not_touch_each_other() -> None:
    values = [198_253, 12_031, 33_453, 29_933, 20_797, 19_903, 14_969, 54]
    drawing = charts.columns(
        [f"c{n}" for n in range(20)], [Series("", [*values, *[0] * 12], "s1")], label="l", logarithmic=True
    )
    placed = [(float(e.attrib["x"]), len(e.text or "")) for e in marks(drawing, "text", "value")]
    assert 3 <= len(placed) < len(values)
    assert len(marks(drawing, "rect", "s1")) == len(values)


def test_a_name_that_would_be_cut_at_the_edge_is_left_out() -> None:
    names = [f"2013-12-{n:02d}" for n in range(1, 27)]
    drawing = charts.columns(names, [Series("x", [1.0] * len(names), "s1")], label="l")
    shown = [e for e in marks(drawing, "text", "tick") if e.text in names]
    assert [e.text for e in shown] == names[:21:5]
    assert max(float(e.attrib["x"]) for e in shown) < 520
