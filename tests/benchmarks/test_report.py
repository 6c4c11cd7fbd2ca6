from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from benchmarks.contestants.floor import Floor
from benchmarks.contestants.hindstream import Hindstream
from benchmarks.contestants.spark_batch import SparkBatch
from benchmarks.measure import Cost
from benchmarks.report import plot, table
from benchmarks.runner import Measured

CONTESTANTS = (Hindstream(), Floor(), SparkBatch())


def one(contestant: str, net_us: float, scatter: float = 0.001, **others) -> Measured:
    """Starts take five CPU seconds."""
    factors = (1 - scatter, 1, 1 + scatter)
    costs = {
        n: [Cost(8 + n / 1e6, (5 + net_us * n / 1e6) * factor, 300 << 20) for factor in factors]
        for n in (1_000_000, 2_000_000, 5_000_000)
    }
    return Measured(contestant, "W1", costs, **others)


MEASURED = [one("hindstream", 1.5), one("floor", 0.5), one("spark-batch", 6.0)]


def test_a_table_has_ratios_to_hindstream_and_to_the_floor() -> None:
    lines = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table("W1", MEASURED, CONTESTANTS).split("\n")
    ]
    assert lines[0] == ["W1 deduplicate by id within 10 minutes"]
    assert lines[2][:3] == ["", "net us", "start CPU s"]
    assert lines[2][3:6] == ["gross us; s, 1 million", "gross us; s, 2 million", "gross us; s, 5 million"]
    gross = ["6.50; 9.0", "4.00; 10.0", "2.50; 13.0"]
    assert lines[4] == ["Hindstream", "1.500", "5.0", *gross, "300.0 MiB", "1.00", "3.00", "the same"]
    assert lines[6][:3] == ["Spark batch", "6.000", "5.0"]
    assert lines[6][6:] == ["300.0 MiB", "4.00", "12.00", "comes near"]


def test_what_is_uncertain_is_marked_and_what_may_be_nothing_too() -> None:
    shaky, nothing = one("floor", 0.5, scatter=0.1), one("spark-batch", 0.01, scatter=0.1)
    rows = table("W1", [MEASURED[0], shaky, nothing], CONTESTANTS).split("\n")
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    assert re.fullmatch(r"0\.\d{3} ±\d\d %", cells[5][1])
    assert re.fullmatch(r"\d\.\d\d ±\d\d %", cells[5][7])
    assert cells[6][1].startswith("< ")
    assert cells[6][7] == ""


def test_a_table_says_which_answer_is_wrong() -> None:
    wrong = one("floor", 0.5, differences=["1 records instead of 2"])
    assert "WRONG: 1 records instead of 2" in table("W1", [MEASURED[0], wrong], CONTESTANTS)


def test_ratios_to_what_was_not_measured_are_left_out() -> None:
    row = table("W1", MEASURED[:1], CONTESTANTS).split("\n")[4]
    assert [cell.strip() for cell in row.strip("|").split("|")][7:9] == ["1.00", ""]


def test_of_one_size_a_table_has_gross_figures_alone() -> None:
    us = Measured("hindstream", "W1", {2_000_000: MEASURED[0].costs[2_000_000]})
    row = table("W1", [us], CONTESTANTS).split("\n")[4]
    assert [cell.strip() for cell in row.strip("|").split("|")] == [
        *("Hindstream", "", "", "4.00; 10.0", "300.0 MiB", "", "", "the same")
    ]


@pytest.mark.parametrize("measured", [MEASURED, MEASURED[:1], [one("hindstream", -0.1)]], ids=["all", "one", "nothing"])
def test_bars_grow_with_the_logarithm(measured) -> None:
    root = ET.fromstring(plot(measured, CONTESTANTS))
    bars = [e for e in root.iter("{http://www.w3.org/2000/svg}rect") if e.get("class")]
    widths = [float(bar.get("width")) for bar in bars]
    assert len(bars) == len(measured)
    assert sorted(range(len(bars)), key=widths.__getitem__) == sorted(
        range(len(bars)), key=lambda i: measured[i].net_us
    )
    assert max(widths) < 600
