"""A calibration in round figures, and a small topology of known shape."""

from __future__ import annotations

from hindstream.estimate.calibration import Calibration, ColumnCost, EngineCost, Machine
from hindstream.estimate.history import History, Part
from hindstream.estimate.prediction import Resources
from hindstream.estimate.shape import Columns, Shape, ShapedNode

MICROSECOND = 1e-6


def calibration(**changed) -> Calibration:
    """A record costs a microsecond wherever it comes; starts cost a second and 10 s."""
    given = {
        "measured_at_ms": 0,
        "machine": Machine(cpus=2, platform="Linux", python="3.11"),
        "engines": {
            "local": EngineCost(
                start_seconds=1,
                start_cpu_seconds=1,
                slice_seconds=0.1,
                slice_cpu_seconds=0.1,
                memory_bytes=100 << 20,
                worker_bytes=0,
            ),
            "spark": EngineCost(
                start_seconds=5,
                start_cpu_seconds=10,
                slice_seconds=0.5,
                slice_cpu_seconds=0.5,
                memory_bytes=500 << 20,
                worker_bytes=100 << 20,
            ),
        },
        "task_seconds": 0.0,
        "check_seconds": 0.01,
        "checked_record_seconds": MICROSECOND / 10,
        "read": ColumnCost(record_seconds=MICROSECOND, number_seconds=0, text_seconds=0),
        "write": ColumnCost(record_seconds=MICROSECOND, number_seconds=0, text_seconds=0),
        "operators": {"filter": MICROSECOND, "stream_aggregate": 2 * MICROSECOND},
        "call_seconds": 10 * MICROSECOND,
        "state_byte_seconds": MICROSECOND / 100,
        "state_entry_bytes": 30.0,
        "batch_bytes": 50 << 20,
    }
    return Calibration(**{**given, **changed})


NODES = (
    ShapedNode("in", "source", "source", 0, topic="events", columns=Columns(1, 1)),
    ShapedNode("few", "filter", "operator", 0, ("in",)),
    ShapedNode("out", "sink", "sink", 0, ("few",), topic="few", columns=Columns(1, 0)),
)
SHAPE = Shape(NODES, {0: 4})


def history(records: float = 4_000_000, skew: float = 0.25) -> History:
    """Of four partitions, of which the first has that share."""
    rest = (1 - skew) / 3
    parts = [Part("events", n, records * share, 10 * records * share) for n, share in enumerate((skew, *[rest] * 3))]
    return History(tuple(parts))


def resources(**changed) -> Resources:
    """Four cores of Spark, one slice."""
    given = {
        "engine": "spark",
        "cores": 4,
        "memory_budget_bytes": 512 << 20,
        "batch_records": 131_072,
        "slices": 1,
        "checks": {},
    }
    return Resources(**{**given, **changed})
