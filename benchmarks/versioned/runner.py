"""Runs both stores over each case, each in a process of its own, and compares what they answer."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from benchmarks.contestants.kafka_streams import KafkaStreams, java
from benchmarks.regression import Estimate, mean_of
from benchmarks.versioned.cases import AXES, operations

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from benchmarks.versioned.cases import Case

OURS, THEIRS = "Hindstream", "Kafka Streams"
BY_API, IN_A_JOB = ("put", "get", "get as of"), ("put in a job", "join")
OPERATIONS = BY_API + IN_A_JOB
_PUTS = ("put", "put in a job")
_PROGRAMS = {
    BY_API: ("benchmarks.versioned.hindstream_store", "Versioned"),
    IN_A_JOB: ("benchmarks.versioned.hindstream_job", "VersionedJob"),
}
"""Ours and theirs; each prints figures of the operations."""


@dataclass
class Measured:
    """Of one case.

    Attributes:
        us: CPU microseconds an operation, of each repeat, by store and operation.
        differences: Operations whose answers differ.
    """

    case: Case
    us: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    differences: list[str] = field(default_factory=list)

    def mean(self, store: str, operation: str) -> Estimate:
        """The mean of the repeats."""
        return mean_of(self.us[store, operation])

    def add(self, answers: Mapping[str, Mapping[str, Any]], puts: int, reads: int) -> None:
        """Takes down what each store has printed."""
        for store, figures in answers.items():
            for operation, figure in figures.items():
                us = figure["cpu_seconds"] / (puts if operation in _PUTS else reads) * 1e6
                self.us.setdefault((store, operation), []).append(us)
        for operation in next(iter(answers.values())):
            digests = {figures[operation]["digest"] for figures in answers.values()}
            if len(digests) > 1 and operation not in self.differences:
                self.differences.append(operation)


def run(folder: Path, axes: Iterable[str], *, puts: int, reads: int, repeats: int, seed: int) -> dict[Case, Measured]:
    """Each case of the axes once, though several may have it; in turn, so that what else runs disturbs all alike."""
    KafkaStreams().build()
    measured = {case: Measured(case) for axis in axes for case in AXES[axis].values()}
    for _ in range(repeats):
        for case, into in measured.items():
            asked = operations(case, puts, reads, seed)
            file = folder / "operations"
            asked.write(file)
            arguments = (str(file), str(folder / "stores"), str(case.retention_ms), str(case.segment_interval_ms))
            for ours, theirs in _PROGRAMS.values():
                answers = {}
                for store, command in (
                    (OURS, [sys.executable, "-m", ours, *arguments]),
                    (THEIRS, java(theirs, *arguments)),
                ):
                    answers[store] = _printed(command)
                    shutil.rmtree(folder / "stores")
                into.add(answers, puts, reads)
            print(case, *(f"{store}, {operation}: {us[-1]:.2f} us" for (store, operation), us in into.us.items()),
                  *(f"WRONG: {operation}" for operation in into.differences), sep="; ", flush=True)  # fmt: skip
    return measured


def _printed(command: Sequence[str]) -> dict[str, Any]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    said = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, text=True).stdout
    figures: dict[str, Any] = json.loads(said)
    return figures
