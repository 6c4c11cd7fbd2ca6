"""The benchmark of a comparison: both contestants find what was changed, and the figures are of that size."""

from __future__ import annotations

import pytest

from benchmarks.scale.diff import Diff


@pytest.mark.slow
def test_both_find_what_was_changed(tmp_path) -> None:
    figures = list(Diff(rows=5_000, every=100, pairs=1).figures(tmp_path))
    assert [figure.name.split(" ")[0] for figure in figures] == ["CPU", "wall-clock", "peak"]
    assert all(figure.value > 0 and "5,000 rows a side" in figure.name for figure in figures)
