"""How far ``hindstream estimate`` is off: the demo and three of Nexmark's queries, estimated, then run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from benchmarks.measure import measure
from benchmarks.nexmark.contestants.hindstream import EXAMPLES
from benchmarks.scale.measurement import Figure, Measurement
from benchmarks.scale.processes import in_fresh_process

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

QUERIES = ("q4", "q5", "q20")
"""A table joined, aggregated and regrouped; windows of which many overlap; a join of two streams."""

_HINDSTREAM: Sequence[str] = (sys.executable, "-m", "hindstream", "--quiet")
_MOST = 1.5
_MIB = 1 << 20


@dataclass(frozen=True)
class _Case:
    name: str
    reference: str
    job: str
    warehouse: Path


@dataclass
class Estimates(Measurement):
    """Before a job's first run (by a sample and a calibration) and after it (by its own documents).

    Both hold for the whole history in one slice. Times depend on what else the machine does: on a busy one, measure it
    first (``estimate.calibrated=1``).

    Attributes:
        events: Of Nexmark.
        engine: ``local`` or ``spark``.
        calibrated: 1: by a calibration that is measured now; 0: by the recorded one.
    """

    name: ClassVar[str] = "estimate"

    events: int = 1_000_000
    engine: str = "local"
    calibrated: int = 0

    def figures(self, folder: Path) -> Iterator[Figure]:
        """See `Measurement`."""
        self._environment = {
            **os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "HINDSTREAM_DATA_DOCS": "failed",
            "HINDSTREAM_STATE_DIR": str(folder / "state"), "HINDSTREAM_ENGINE": self.engine,
        }  # fmt: skip
        if self.calibrated:
            self._told(folder, "estimate", "--calibrate")
        for case in self._cases(folder):
            before = self._estimated(case, folder)
            command = [*_HINDSTREAM, "run", case.reference, "--warehouse", str(case.warehouse)]
            cost = measure(command, environment=self._environment, log=folder / "log")
            (run,) = self._told(folder, "status", case.job, "--warehouse", str(case.warehouse))["runs"]
            written = sum(run["records_by_topic"].values())
            measured = {
                "CPU, s": cost.cpu_seconds,
                "time, s": cost.wall_seconds,
                "memory, MiB": cost.peak_memory_bytes / _MIB,
                "state, MiB": run["state_bytes"] / _MIB,
                "records written": float(written),
            }
            by_sample, after = _figures(before), _figures(self._estimated(case, folder))
            for what, found in measured.items():
                yield _off(f"{case.name}, {what}", by_sample[what], found)
            yield _off(f"{case.name}, CPU, s, by its own run", after["CPU, s"], cost.cpu_seconds)

    def _cases(self, folder: Path) -> Iterator[_Case]:
        demo = folder / "demo"
        in_fresh_process(_archive_demo, str(demo))
        yield _Case("the demo's year", "hindstream.demo.job:job", "flight-delays", demo)
        events = folder / "nexmark"
        in_fresh_process(_archive_nexmark, events, self.events)
        for query in QUERIES:
            warehouse = folder / query
            shutil.copytree(events / "topics", warehouse / "topics", copy_function=os.link)
            yield _Case(f"Nexmark {query}", f"{EXAMPLES / query}.py:job", f"nexmark-{query}", warehouse)

    def _estimated(self, case: _Case, folder: Path) -> dict[str, Any]:
        return self._told(folder, "estimate", case.reference, "--warehouse", str(case.warehouse))

    def _told(self, folder: Path, *arguments: str) -> dict[str, Any]:
        command = [*_HINDSTREAM, *arguments, "--output", "json"]
        said = subprocess.run(
            command, env=self._environment, cwd=folder, check=True, stdout=subprocess.PIPE, text=True
        ).stdout
        return json.loads(said.splitlines()[-1])


def _figures(estimate: dict[str, Any]) -> dict[str, float]:
    return {
        "CPU, s": estimate["cpu_seconds"],
        "time, s": estimate["seconds"],
        "memory, MiB": estimate["peak_memory_bytes"] / _MIB,
        "state, MiB": estimate["state_bytes"] / _MIB,
        "records written": sum(output["records"] for output in estimate["outputs"]),
    }


def _off(name: str, estimated: float, measured: float) -> Figure:
    """By which factor, whichever is larger. State below a MiB, mostly the frames of its files, has no target."""
    least = min(estimated, measured)
    factor = max(estimated, measured) / least if least > 0 else (1.0 if estimated == measured else float("inf"))
    details = {"estimated": float(estimated), "measured": float(measured)}
    is_little = "MiB" in name and measured < 1
    return Figure(f"estimate of {name}", factor, "times", at_most=None if is_little else _MOST, details=details)


def _archive_demo(warehouse: str) -> None:
    from hindstream.demo.archives import prepare_topics  # noqa: PLC0415
    from statelib.storage import Storage  # noqa: PLC0415

    prepare_topics(Storage(warehouse), announce=bool)


def _archive_nexmark(folder: Path, events: int) -> None:
    from benchmarks.nexmark.dataset import Dataset  # noqa: PLC0415
    from benchmarks.nexmark.events import Parameters  # noqa: PLC0415

    Dataset.generate(folder, Parameters(events=events))
