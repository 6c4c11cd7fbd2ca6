"""The page of a comparison says what the comparison has found: all counts, all examples, all of its charts."""

from __future__ import annotations

import tempfile
from html import unescape
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hindstream.report.difference_page import KINDS, difference_page
from statelib.comparison.compare import compare
from statelib.comparison.fields import Rules
from statelib.comparison.jobs import JobDifferences
from statelib.comparison.ledgers import LedgerDifferences, NodeLedgers
from statelib.comparison.matches import Resources
from statelib.comparison.sinks import JobCommit, SinkDifference, SinkDifferences
from statelib.serdes.json import readable_json
from tests.comparison.tables import KEYS, VALUE, mutated, rows_of, side
from tests.effort import examples
from tests.hindstream.report.html import drawings_of_whole, tables_of, text_of

TEXT = pa.string()
NOTHING = LedgerDifferences(None, 0, 0, (), ())


def compared(a, b, types, way="latest", **options):
    with tempfile.TemporaryDirectory() as folder:
        return compare(side([], a, types), side([], b, types), way, Resources(Path(folder)), **options)


def page_of(*differences, ledgers=NOTHING, **alone):
    sinks = tuple(SinkDifference(f"sink{n}", f"sink{n}.b", found) for n, found in enumerate(differences))
    alone = {"only_a": (), "only_b": (), **alone}
    found = SinkDifferences(JobCommit("job", 7), JobCommit("b", 2), sinks, **alone)
    return difference_page(JobDifferences(found, ledgers))


def tips(drawing):
    return [mark.text or "" for mark in drawing.iter("{http://www.w3.org/2000/svg}title")]


def number(text):
    return int(text.replace(",", ""))


def texts(value, path):
    """By path the texts of a value's fields, as the page has to have them."""
    if isinstance(value, dict) and value:
        return {p: text for name, inner in value.items() for p, text in texts(inner, f"{path}.{name}").items()}
    return {path: readable_json(value, separators=(", ", ": "))}


def rows_of_example(example):
    sides = [
        {} if side is None else {p: t for name in ("value", "timestamp", "headers") if name in side
                                 for p, t in texts(side[name], name).items()}
        for side in (example.a, example.b)
    ]  # fmt: skip
    return [[path, *(side.get(path, "") for side in sides)] for path in dict.fromkeys([*sides[0], *sides[1]])]


@st.composite
def histories(draw):
    type_, keys = KEYS[draw(st.sampled_from(sorted(KEYS)))]
    a = draw(rows_of(keys))
    return type_, a, draw(mutated(a)) + draw(rows_of(keys, 2))


@given(histories(), st.sampled_from(["latest", "set"]))
@examples(30, 500)
def test_all_that_was_found_is_on_the_page(history, way):
    key, a, b = history
    found = compared(a, b, (key, VALUE), way)
    html = page_of(found)
    sinks, *rest = tables_of(html)
    shown = [found.compared, found.equal, *(getattr(found, kind) for kind, _, _ in KINDS)]
    assert [number(cell) for cell in sinks[1][2:7]] == shown
    assert sinks[1][0] == "sink0 = sink0.b"
    drawings = drawings_of_whole(html)
    if found.is_empty:
        assert not drawings
        assert "equal" in text_of(html)
        return
    if found.fields:
        fields, *rest = rest
        assert [(row[0], number(row[1])) for row in fields[1:]] == [(f.path, f.changed) for f in found.fields]
    kinds = [kind for kind, _, _ in KINDS if found.examples[kind]]
    for kind, table in zip(kinds, rest, strict=True):
        expected = []
        for example in found.examples[kind]:
            expected += [[readable_json(example.key, separators=(", ", ": "))], *rows_of_example(example)]
        assert [row if len(row) > 1 else [row[0].split("   ")[0]] for row in table[1:]] == expected
    over_time, *distributions = drawings
    for kind, title, _ in KINDS:
        of_kind = [tip for tip in tips(over_time) if tip.endswith(f" {title}")]
        assert sum(number(tip.split(": ")[1].split(" ")[0]) for tip in of_kind) == getattr(found, kind)
    of_numbers = [field for field in found.fields if field.numbers is not None and len(field.numbers.bars) > 1]
    for field, drawing in zip(of_numbers, distributions, strict=True):
        assert field.path in drawing.attrib["aria-label"]
        counted = [number(tip.split(": ")[1].split(" ")[0]) for tip in tips(drawing)]
        assert counted == [bar for bar in field.numbers.bars if bar]


def test_the_first_sentence_is_of_what_differs():
    types = (TEXT, pa.int64())
    rows = [(f"k{n}", n, n, None) for n in range(4)]
    html = page_of(compared(rows, rows, types), compared(rows, [("k0", 9, 0, None), *rows[1:]], types))
    text = text_of(html)
    assert "A is job@7, B is b@2. 25.0 % of sink1 = sink1.b differ (1 of 4). sink0 = sink0.b is equal" in text
    assert "8 compared" in text
    assert "1 changed" in text


def test_a_timestamp_changes_by_a_span_of_time():
    rows = [[(f"k{n}", 0, n * later, None) for n in range(3)] for later in (60_000, 300_000)]
    html = page_of(compared(rows[0], rows[1], (TEXT, pa.int64())))
    assert [row[:5] for row in tables_of(html)[1][1:]] == [["timestamp", "2", "+4 min", "+4 min", "+8 min"]]
    (_, drawing) = drawings_of_whole(html)
    assert tips(drawing)[0] == "+4 min: 1 changed"


def test_examples_are_under_the_side_that_has_them():
    rows = [("k0", 0, 0, None)]
    text = text_of(page_of(compared(rows, [], (TEXT, pa.int64())), compared([], rows, (TEXT, pa.int64()))))
    assert "Only in A, 1 of 1" in text
    assert "Only in B, 1 of 1" in text


def test_what_was_dropped():
    nodes = (
        NodeLedgers("once", "once", 100, 100, {"duplicate": (7, 7), "forwarded": (93, 93)}),
        NodeLedgers("totals-1", "totals-2", 93, 93, {"late": (1_027, 1_019), "quarantined": (0, 2)}),
        NodeLedgers("gone", None, 5, 0, {"odd": (5, 0)}),
    )
    html = page_of(ledgers=LedgerDifferences(JobCommit("job", 6), 100, 101, nodes, (JobCommit("b", 2),)))
    text = text_of(html)
    assert "Since job@6, A took up 100 records, and B 101." in text
    assert "B dropped 8 fewer as late, 2 more as quarantined, 5 fewer as odd." in text
    assert "Not counted: b@2, whose ledgers have not been kept." in text
    (table,) = [table for table in tables_of(html) if table[0][0] == "Node"]
    assert [[*row[:2], *row[3:]] for row in table[1:]] == [
        ["totals-2", "late", "1,027", "1,019", "-8"],
        ["totals-2", "quarantined", "0", "2", "+2"],
        ["gone", "odd", "5", "0", "-5"],
        ["once", "duplicate", "7", "7", "0"],
    ]
    assert "Both dropped as many, for the same reasons." in text_of(page_of())


def test_hours_without_a_difference_are_gaps_in_the_chart():
    types = (TEXT, pa.int64())
    rows = [(f"k{n}", n, n * 3_600_000, None) for n in (0, 7)]
    (over_time,) = drawings_of_whole(page_of(compared(rows, [], types)))
    first, second = (float(m.attrib["x"]) for m in over_time.iter() if "s3" in m.attrib.get("class", "").split())
    assert [tip.split(": ")[0] for tip in tips(over_time)] == ["1970-01-01 00:00", "1970-01-01 07:00"]
    width = float(over_time.attrib["viewBox"].split()[2])
    assert (second - first) / width == pytest.approx(7 / 8, abs=0.1)


def test_what_data_says_is_text_not_markup():
    types = (TEXT, pa.struct([("x", TEXT)]))
    evil = "<script>alert('&')</script>"
    html = page_of(compared([(evil, {"x": evil}, 0, None)], [(evil, {"x": "b"}, 0, None)], types), only_a=(evil,))
    drawings_of_whole(html)
    assert evil not in html
    assert unescape(html).count(evil) == 3


def test_values_of_any_length_leave_the_page_small():
    types = (TEXT, TEXT)
    html = page_of(compared([("k", "x" * 10**6, 0, None)], [], types))
    assert len(html) < 100_000
    assert "x..." in html


def test_other_fields_and_what_one_side_has_alone():
    a, b = (pa.struct([("n", pa.int64()), (name, TEXT)]) for name in ("old", "new"))
    rows = [("k", {"n": 1}, 0, None)]
    with tempfile.TemporaryDirectory() as folder:
        found = compare(
            side([], rows, (TEXT, a)), side([], rows, (TEXT, b)), "latest", Resources(Path(folder)), rules=Rules()
        )
    text = text_of(page_of(found, only_a=("more",), only_b=("most",), empty_a=("none",)))
    assert "value.old: string in A, not there in B; not compared" in text
    assert "value.new: not there in A, string in B; not compared" in text
    assert "Only A has more." in text
    assert "Only B has most." in text
    assert "Only A has none, without records: no difference." in text
