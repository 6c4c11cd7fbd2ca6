"""KIP-328's two examples give what the KIP says of them."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from statelib import BufferConfig, Job, StrictBufferConfig
from statelib.documents.manifests import Staged
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Sequence

EXAMPLES = Path(__file__).parents[2] / "examples"
HOUR, MINUTE, SECOND = 3_600_000, 60_000, 1_000


def replayed(directory: Path, example: dict[str, Any], job: Job, cuts: Sequence[int | None] = (None,)) -> Pipeline:
    """The example's own data and job, slice by slice; every record accounted for."""
    example["main"](str(directory / "warehouse"))
    pipeline = Pipeline(directory, job.topology, name=job.name)
    for cut in cuts:
        assert isinstance(pipeline.run(cut), Staged)
    return pipeline


@pytest.mark.parametrize(
    "buffer",
    [
        None,
        BufferConfig.unbounded(),
        BufferConfig.max_bytes(5_000_000).shut_down_when_full(),
        BufferConfig.max_records(3).spill_to_disk_when_full(),
    ],
    ids=["as it is", "option 1", "option 2", "much on disk"],
)
def test_one_alert_for_each_quiet_hour(tmp_path: Path, buffer: StrictBufferConfig | None) -> None:
    example = runpy.run_path(str(EXAMPLES / "quiet_users.py"))
    job = example["job"]() if buffer is None else example["job"](buffer)
    counts: dict[tuple[int, int], int] = {}
    for row in example["events"]().to_pylist():
        hour = int(row["timestamp"].timestamp()) // 3600
        counts[row["key"], hour] = counts.get((row["key"], hour), 0) + 1
    quiet = {place: events for place, events in counts.items() if events < 3 and place[1] < 23}
    pipeline = replayed(tmp_path, example, job, [7 * HOUR + 5 * MINUTE, None])
    alerts = [
        ((key["key"], int(key["window_start"].timestamp()) // 3600), value["events"])
        for _, _, key, value, _ in pipeline.output("alerts")
    ]
    assert len(alerts) == len(dict(alerts))
    assert dict(alerts) == quiet
    assert len(quiet) > 400


def test_one_update_every_thirty_seconds(tmp_path: Path) -> None:
    example = runpy.run_path(str(EXAMPLES / "calm_prices.py"))
    pipeline = replayed(tmp_path, example, example["job"](), [5 * MINUTE + 7, None])
    latest = {(row["key"], int(row["timestamp"].timestamp())): row["value"] for row in example["prices"]().to_pylist()}
    times: dict[str, list[int]] = {}
    for _, _, key, value, timestamp in pipeline.output("calm-prices"):
        assert value == latest[key, timestamp // SECOND]
        times.setdefault(key, []).append(timestamp)
    assert times.pop("stock-09") == [100 * SECOND]
    assert len(times) == 39
    # The first record of a second moves the clock. What has waited for 30 seconds leaves before its own next change;
    # only the stock that moves the clock, one in each partition, leaves with the change that it has just made.
    moving = list(range(30 * SECOND, 15 * MINUTE, 31 * SECOND))
    others = list(range(29 * SECOND, 15 * MINUTE - SECOND, 30 * SECOND))
    assert sorted(times.values()) == [others] * 37 + [moving] * 2
