from __future__ import annotations

import pytest

from statelib.operators.versioned.segment_interval import default_segment_interval_ms


@pytest.mark.parametrize(
    ("retention_ms", "interval_ms"),
    [
        (0, 2_000),
        (60_000, 20_000),
        (60_001, 20_000),
        (300_000, 60_000),
        (3_600_000, 300_000),
        (3_600_001, 300_000),
        (86_400_000, 3_600_000),
        (10_000_000_000, 416_666_666),
    ],
)
def test_default_segment_interval(retention_ms: int, interval_ms: int) -> None:
    assert default_segment_interval_ms(retention_ms) == interval_ms
