"""The picture of a topology shows every node once, each after its parents, inside its sub-topology's frame."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from datetime import timedelta

from hindstream.report.topology import topology_picture
from statelib import BufferConfig, Materialized, Stores, StreamsBuilder, Suppressed, TimeWindows, Topology

SVG = "{http://www.w3.org/2000/svg}"


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


def boxes(drawing: ET.Element) -> dict[str, tuple[float, float, float, float]]:
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
        assert all(found[parent][2] < found[node.name][0] for parent in node.parents)


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
