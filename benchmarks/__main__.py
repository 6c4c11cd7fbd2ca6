"""``python -m benchmarks [--records N]``: the demo's pipeline over generated records, and an all but empty slice.

What a slice costs whatever is in it (the JVM, imports, Great Expectations) is measured with a slice of one minute of
event time, and subtracted from the whole: both are printed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
from dataclasses import asdict, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.generate import HOUR_MS, START_MS, Parameters, generate
from benchmarks.measure import Cost, measure
from statelib.storage import Storage


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measures the demo's pipeline.")
    for field in fields(Parameters):
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=type(field.default), default=field.default)
    parser.add_argument("--master", default="local[2]", help="Spark's master")
    parser.add_argument(
        "--repeats", type=int, default=3, help="how often each slice is measured; the least of each figure counts"
    )
    parser.add_argument("--output", type=Path, default=Path("benchmarks.json"), help="where the figures go, as JSON")
    arguments = vars(parser.parse_args())
    master, repeats, output = (arguments.pop(name) for name in ("master", "repeats", "output"))
    parameters = Parameters(**arguments)
    print(" ".join(f"{name}={value}" for name, value in asdict(parameters).items()), f"master={master}")
    with tempfile.TemporaryDirectory(prefix="hindstream-benchmark-") as folder:
        weather = generate(Storage(f"{folder}/topics"), parameters)
        print(f"generated {parameters.records:,} flights and {weather:,} weather records")
        last = START_MS + parameters.hours * HOUR_MS
        empty, full = [], []
        for i in range(repeats):  # in turn, so that what else runs here disturbs both alike
            empty.append(_slice(Path(folder), f"empty-{i}", master, START_MS + 60_000))
            full.append(_slice(Path(folder), f"full-{i}", master, last))
    result = _result(parameters, master, _best(empty), _best(full))
    output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    _print(result)
    print(f"written to {output}")


def _slice(folder: Path, name: str, master: str, until_ms: int) -> dict[str, Any]:
    """A slice in a copy of the topics, by a process of its own."""
    warehouse, report = folder / name / "warehouse", folder / name / "report.json"
    shutil.copytree(folder / "topics", warehouse)
    command = [sys.executable, "-m", "benchmarks.run_slice", str(warehouse), str(folder / name / "state"), master]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path.cwd()), *sys.path])}
    cost = measure([*command, str(until_ms), str(report)], environment=environment)
    made = {"cost": asdict(cost), **json.loads(report.read_text(encoding="utf-8"))}
    print(f"{name}: {made['records']:,} records, {_cost_text(cost)}")
    shutil.rmtree(folder / name)
    return made


def _best(slices: list[dict[str, Any]]) -> dict[str, Any]:
    """The least of each figure, as what disturbs a measurement only adds to it; of the peak memory the largest."""
    least: dict[str, Any] = {}
    for name, value in slices[0].items():
        values = [made[name] for made in slices]
        least[name] = (
            _best(values) if isinstance(value, dict) else (max if name == "peak_memory_bytes" else min)(values)
        )
    return least


def _result(parameters: Parameters, master: str, empty: dict[str, Any], full: dict[str, Any]) -> dict[str, Any]:
    records = full["records"] - empty["records"]
    wall = full["cost"]["wall_seconds"] - empty["cost"]["wall_seconds"]
    cpu = full["cost"]["cpu_seconds"] - empty["cost"]["cpu_seconds"]
    replay = full["phases"]["replay"] - empty["phases"]["replay"]
    return {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"cpus": os.cpu_count(), "platform": platform.platform(), "python": platform.python_version()},
        "parameters": asdict(parameters),
        "master": master,
        "empty": empty,
        "full": full,
        "net": {
            "records": records,
            "records_per_second": records / wall,
            "records_per_second_of_replay": records / replay,
            "cpu_seconds_per_million_records": cpu / records * 1e6,
        },
        "gross": {
            "records_per_second": full["records"] / full["cost"]["wall_seconds"],
            "cpu_seconds_per_million_records": full["cost"]["cpu_seconds"] / full["records"] * 1e6,
            "peak_memory_bytes": full["cost"]["peak_memory_bytes"],
        },
    }


def _print(result: dict[str, Any]) -> None:
    for name in ("empty", "full"):
        phases = ", ".join(f"{phase} {seconds:.2f}" for phase, seconds in result[name]["phases"].items())
        print(f"{name}: seconds by phase: {phases}")
    tasks = ", ".join(f"{phase} {seconds:.2f}" for phase, seconds in result["full"]["tasks"].items())
    print(f"full: seconds in all tasks together: {tasks}")
    gross, net = result["gross"], result["net"]
    print(
        f"gross: {gross['records_per_second']:,.0f} records/s, "
        f"{gross['cpu_seconds_per_million_records']:.2f} CPU s a million, "
        f"{gross['peak_memory_bytes'] / 2**20:,.0f} MiB at most"
    )
    print(
        f"net of the empty slice: {net['records_per_second']:,.0f} records/s "
        f"({net['records_per_second_of_replay']:,.0f} in the replay alone), "
        f"{net['cpu_seconds_per_million_records']:.2f} CPU s a million"
    )


def _cost_text(cost: Cost) -> str:
    return f"{cost.wall_seconds:.1f} s, {cost.cpu_seconds:.1f} CPU s, {cost.peak_memory_bytes / 2**20:,.0f} MiB at most"


if __name__ == "__main__":
    main()
