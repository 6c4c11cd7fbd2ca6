from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from benchmarks.contestants.floor import Floor
from benchmarks.contestants.hindstream import Hindstream
from benchmarks.contestants.spark_batch import SparkBatch
from benchmarks.measure import Cost
from benchmarks.report import plot, table
from benchmarks.runner import Measured

CONTESTANTS = (Hindstream(), Floor(), SparkBatch())


def one(contestant: str, net_us: float, **others) -> Measured:
    """A million records, the start of which costs five seconds, and nine when the machine is slow."""
    full = [Cost(9.0, 5 + net_us, 300 << 20), Cost(8.0, 9 + net_us, 200 << 20), Cost(8.5, 9 + 2 * net_us, 1)]
    empty = [Cost(4.0, 5.0, 1), Cost(6.0, 9.0, 1), Cost(6.0, 9.0, 1)]
    return Measured(contestant, "W1", 1_000_000, full, empty, **others)


MEASURED = [one("hindstream", 1.5), one("floor", 0.5), one("spark-batch", 6.0)]


def test_a_table_has_ratios_to_hindstream_and_to_the_floor() -> None:
    lines = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table("W1", MEASURED, CONTESTANTS).split("\n")
    ]
    assert lines[0] == ["W1 deduplicate by id within 10 minutes, 1,000,000 records"]
    assert lines[4] == ["Hindstream", "1.500", "6.500", "8.0", "300.0 MiB", "1.00", "3.00", "the same"]
    assert lines[6] == ["Spark batch", "6.000", "11.000", "8.0", "300.0 MiB", "4.00", "12.00", "comes near"]


def test_a_table_says_which_answer_is_wrong() -> None:
    wrong = one("floor", 0.5, differences=["1 records instead of 2"])
    assert "WRONG: 1 records instead of 2" in table("W1", [MEASURED[0], wrong], CONTESTANTS)


def test_ratios_to_what_was_not_measured_are_left_out() -> None:
    row = table("W1", MEASURED[:1], CONTESTANTS).split("\n")[4]
    assert [cell.strip() for cell in row.strip("|").split("|")][5:7] == ["1.00", ""]


@pytest.mark.parametrize("measured", [MEASURED, MEASURED[:1], [one("hindstream", -1.0)]], ids=["all", "one", "nothing"])
def test_bars_grow_with_the_logarithm(measured) -> None:
    root = ET.fromstring(plot(measured, CONTESTANTS))
    bars = [e for e in root.iter("{http://www.w3.org/2000/svg}rect") if e.get("class")]
    widths = [float(bar.get("width")) for bar in bars]
    assert len(bars) == len(measured)
    assert sorted(range(len(bars)), key=widths.__getitem__) == sorted(
        range(len(bars)), key=lambda i: measured[i].net_us
    )
    assert max(widths) < 600
