from __future__ import annotations

import numpy as np
import pytest

from benchmarks.versioned.cases import AXES, SPAN_MS, START_MS, Case, Operations, operations

CASES = {case for axis in AXES.values() for case in axis.values()}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_put_is_within_the_retention_and_so_is_every_read(case) -> None:
    asked = operations(case, 5_000, 2_000, seed=3)
    late = np.maximum.accumulate(asked.put_time) - asked.put_time
    assert (late <= case.retention_ms).all()
    assert (late > 0).mean() == pytest.approx(case.disorder, abs=0.05 + 0.1 * case.disorder)
    assert asked.read_time.min() >= max(asked.put_time.max() - case.retention_ms, START_MS)
    assert asked.put_time.max() - START_MS < SPAN_MS
    assert 0 <= asked.put_key.min() <= asked.put_key.max() < asked.keys == max(5_000 // case.versions, 1)


def test_skew_makes_some_keys_busier() -> None:
    counts = [np.bincount(operations(Case(versions=10, zipf=z), 5_000, 10, 3).put_key) for z in (0.0, 1.1)]
    assert counts[0].max() == counts[0].min() == 10
    assert counts[1].max() > 500


def test_a_file_has_what_was_written(tmp_path) -> None:
    asked = operations(Case(disorder=0.5), 1_000, 300, seed=5)
    asked.write(tmp_path / "file")
    read = Operations.read(tmp_path / "file")
    assert read.keys == asked.keys
    for name in ("put_key", "put_time", "put_value", "read_key", "read_time"):
        assert np.array_equal(getattr(read, name), getattr(asked, name)), name
        assert getattr(read, name).dtype == getattr(asked, name).dtype
