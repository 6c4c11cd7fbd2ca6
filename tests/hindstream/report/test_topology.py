"""The picture of a topology shows every node once, each after its parents, inside its sub-topology's frame."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from datetime import timedelta

import pytest

from hindstream.report.topology import topology_picture
from statelib import BufferConfig, Materialized, Stores, StreamsBuilder, Suppressed, TimeWindows, Topology
from tests.surface.topology import surface

SVG = "{http://www.w3.org/2000/svg}"

Box = tuple[float, float, float, float]


def topology() -> Topology:
    builder = StreamsBuilder("job")
    prices = builder.table(
        "prices", Materialized.as_(Stores.persistent_versioned_key_value_store("price-s", timedelta(hours=1)))
    )
    stream = builder.stream("orders")
    stream.join(prices, {"left": "left", "right": "right"}).to("priced")
    windows = TimeWindows.of_size_with_no_grace(timedelta(hours=1))
    counts = stream.group_by("value").windowed_by(windows).count(Materialized.as_("counts"))
    counts.suppress(Suppressed.until_window_closes(BufferConfig.unbounded())).to_stream().to("counted")
    return builder.build()


def boxes(drawing: ET.Element) -> dict[str, Box]:
    """Corners of each node's box, by what its tooltip begins with."""
    found = {}
    for group in drawing.iter(f"{SVG}g"):
        title, rect = group.find(f"{SVG}title"), group.find(f"{SVG}rect")
        assert title is not None
        assert title.text is not None
        assert rect is not None
        x, y, width, height = (float(rect.attrib[name]) for name in ("x", "y", "width", "height"))
        name = title.text.split(",")[0].split(" ")[0]
        assert name not in found
        found[name] = (x, y, x + width, y + height)
    return found


def test_every_node_is_there_and_after_its_parents() -> None:
    given = topology()
    found = boxes(ET.fromstring(topology_picture(given)))
    assert found.keys() == {node.name for node in given.nodes}
    for node in given.nodes:
        assert all(comes_before(found[parent], found[node.name]) for parent in node.parents)


def comes_before(one: Box, other: Box) -> bool:
    """As in a text: left of it, or in a row above."""
    return one[2] < other[0] or one[3] < other[1]


def long_topology() -> Topology:
    """A chain of thirteen columns, and a branch that meets it again."""
    builder = StreamsBuilder("job")
    stream = first = builder.stream("in")
    for _ in range(10):
        stream = stream.filter("value > 1")
    stream.merge(first).to("out")
    return builder.build()


@pytest.mark.parametrize("given", [long_topology(), surface()], ids=["long", "surface"])
def test_no_picture_is_wider_than_a_page(given: Topology) -> None:
    drawing = ET.fromstring(topology_picture(given))
    (svg,) = drawing.iter(f"{SVG}svg")
    width, height = map(float, svg.attrib["viewBox"].split()[2:])
    assert width <= 1160  # that of the page: see main in style.css
    assert "min-width: 720px" in drawing.attrib["style"]
    places = [
        (float(rect.attrib["x"]), float(rect.attrib["y"]), float(rect.attrib["width"]), float(rect.attrib["height"]))
        for rect in drawing.iter(f"{SVG}rect")
        if "box" in rect.attrib["class"].split()
    ]
    assert len(places) >= len(given.nodes)
    for n, (x, y, wide, high) in enumerate(places):
        assert 0 < x < x + wide < width
        assert 0 < y < y + high < height
        assert not any(x < a + c and a < x + wide and y < b + d and b < y + high for a, b, c, d in places[n + 1 :])
    edges = [path.attrib["d"] for path in drawing.iter(f"{SVG}path") if path.attrib.get("class") == "edge"]
    assert len(edges) >= sum(len(node.parents) for node in given.nodes)
    for edge in edges:
        points = [tuple(map(float, point.split(","))) for point in re.findall(r"[\d.-]+,[\d.-]+", edge)]
        assert all(0 < x < width and 0 < y < height for x, y in points)


def test_a_long_chain_goes_on_below() -> None:
    given = long_topology()
    found = boxes(ET.fromstring(topology_picture(given)))
    assert found.keys() == {node.name for node in given.nodes}
    assert len({y for _, y, _, _ in found.values()}) >= 3
    for node in given.nodes:
        assert all(comes_before(found[parent], found[node.name]) for parent in node.parents)


def test_boxes_do_not_overlap_and_lie_in_the_frames_of_their_sub_topologies() -> None:
    given = topology()
    drawing = ET.fromstring(topology_picture(given))
    found = boxes(drawing)
    places = list(found.values())
    for n, (x1, y1, x2, y2) in enumerate(places):
        assert not any(x1 < b and a < x2 and y1 < d and c < y2 for a, c, b, d in places[n + 1 :])
    frames = [rect for rect in drawing.iter(f"{SVG}rect") if rect.attrib["class"] == "frame"]
    assert len(frames) == len(given.sub_topologies) == 2
    for frame, sub in zip(frames, given.sub_topologies, strict=True):
        top = float(frame.attrib["y"])
        bottom, right = top + float(frame.attrib["height"]), float(frame.attrib["width"])
        for node in sub.nodes:
            assert top < found[node.name][1]
            assert found[node.name][3] < bottom
            assert found[node.name][2] < right


def test_an_edge_for_each_parent_and_the_text_of_stores_and_topics() -> None:
    given = topology()
    text = str(topology_picture(given))
    assert text.count('class="edge"') == sum(len(node.parents) for node in given.nodes)
    for expected in ("orders", "repartition topic", "source topic", "sink topic", "price-s", "counts"):
        assert expected in text


def test_a_global_table_is_in_each_sub_topology_that_looks_into_it() -> None:
    builder = StreamsBuilder("job")
    places = builder.global_table("places")
    visits = builder.stream("visits")
    for number, stream in enumerate([visits, visits.select_key("id").repartition()]):
        stream.join(places, "place", "right").to(f"joined-{number}")
    text = str(topology_picture(builder.build()))
    assert text.count(">global topic<") == 2
    assert text.count('class="edge"') == 6 + 4
