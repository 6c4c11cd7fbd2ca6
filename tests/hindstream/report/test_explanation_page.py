"""The page of an explanation has its records, and a drawing with what each node did."""

from __future__ import annotations

from html import unescape
from typing import TYPE_CHECKING

import pytest

from hindstream.report.explanation_page import explanation_page
from statelib.explanation import explain, find_result
from statelib.job.job import Job
from tests.explanation.jobs import OUT, elsewhere, explained, history, run, windows
from tests.hindstream.report.html import drawings_of_whole, tables_of, text_of

if TYPE_CHECKING:
    from pathlib import Path

SVG = "{http://www.w3.org/2000/svg}"


def _value(identifier: str, amount: int) -> dict[str, object]:
    return {"id": identifier, "amount": amount, "other": "<b>"}


@pytest.fixture
def page(tmp_path: Path) -> str:
    """One window, with a duplicate and a late record."""
    events = [
        ("a", _value("1", 5), 80),
        ("a", _value("1", 5), 94),
        ("b", _value("2", 1), 160),
        ("a", _value("3", 7), 100),
    ]
    pipeline = run(tmp_path, windows(), {"events": events})
    found = find_result(pipeline.warehouse, "explained", OUT, [{"key": "a"}])
    return explanation_page(
        windows(), explain(Job("explained", windows()), pipeline.warehouse, pipeline._settings, found)
    )


def boxes(page: str) -> dict[str, str]:
    """What stands in each box of the drawing, below its name."""
    (drawing,) = drawings_of_whole(page)
    found = {}
    for group in drawing.iter(f"{SVG}g"):
        name, *below = ("".join(text.itertext()) for text in group.iter(f"{SVG}text"))
        found[name] = " ".join(below)
    return found


def test_the_drawing_says_what_each_node_did(page: str) -> None:
    found = boxes(page)
    assert found["events"] == "2 records"
    assert found["once"] == "2 records, 1 dropped"
    (windowed,) = (below for name, below in found.items() if name.startswith("KSTREAM-AGG"))
    assert windowed == "2 records, 1 dropped"
    assert found["out"] == "1 record"


def test_the_records_are_there_and_escaped(page: str) -> None:
    text = unescape(text_of(page))
    assert "out/0 offset 0, by commit 1, 1970-01-01T00:00:00.080Z" in text
    assert "2 records made it. Replayed alone, with the clocks of the whole history, they give this result." in text
    assert "Without any one they do not. Replayed from the beginning." in text
    assert "<b>" not in page
    made, dropped, *_, nodes = tables_of(page)
    assert [row[0] for row in made[1:]] == ["events/0 offset 0", "events/0 offset 2"]
    assert made[2][-1] == "then the result was written"
    assert "duplicate of events/0 offset 0; at once (" in dropped[1][-1]
    assert "late: 60 ms behind 1970-01-01T00:00:00.160Z" in dropped[2][-1]
    assert [row[0] for row in nodes[1:]][1] == "once"


def test_over_a_repartition_each_sub_topology_is_drawn(tmp_path: Path) -> None:
    pipeline = run(tmp_path, elsewhere(), history(3, 20, in_order=True), [60, None])
    partition, offset, *_ = pipeline.output(OUT)[-1]
    found = boxes(explanation_page(elsewhere(), explained(pipeline, partition, offset)))
    assert all("record" in below for below in found.values())
