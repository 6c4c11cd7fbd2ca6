"""A process of its own, as a scheduler starts it: a small slice through all phases on Spark, or Spark alone.

``python -m benchmarks.scale.fresh FOLDER`` starts Spark, lets a Python worker do nothing, and ends;
``... FOLDER WORK KEYS HOURLY HOURS HOUR`` replays that hour of `KeptKeys`, as ``hindstream run`` does it.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.contestants.hindstream import MASTER
from benchmarks.scale.kept_keys import KeptKeys
from statelib.settings.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Iterable


def seconds_of_spark(folder: Path) -> float:
    """From the start to the end of a process that does nothing on Spark."""
    return _seconds([folder])


def seconds_of_slice(kept: KeptKeys, hour: int, folder: Path) -> float:
    """From the start to the end of a process that replays an hour of the job that ``kept`` has begun in ``folder``."""
    return _seconds([folder, kept.work, kept.keys, kept.hourly, kept.hours, hour])


def _seconds(arguments: Iterable[object]) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", __name__, *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def main(folder: str, work: str | None = None, *numbers: str) -> None:
    """See the module's docstring."""
    places = {"warehouse": f"{folder}/warehouse", "state_dir": f"{folder}/state", "spark_master": MASTER}
    settings = load_settings(places, environ={})
    if work is None:
        from hindstream.spark.session.session import spark_context  # noqa: PLC0415 - as late as the other process imports it

        spark_context(settings).parallelize([0], 1).map(abs).collect()
        return
    from hindstream.spark.phases.pipeline import run_slice  # noqa: PLC0415

    keys, hourly, hours, hour = map(int, numbers)
    kept = KeptKeys(work, keys, hourly, hours)
    run_slice(kept.job, settings, kept.end_ms(hour))


if __name__ == "__main__":
    main(*sys.argv[1:])
