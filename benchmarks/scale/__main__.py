"""``python -m benchmarks.scale``: each measurement of scale against its target."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from dataclasses import asdict, fields, replace
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.scale.diff import Diff
from benchmarks.scale.directory import Directory
from benchmarks.scale.estimates import Estimates
from benchmarks.scale.first_answer import FirstAnswer
from benchmarks.scale.growth import Growth
from benchmarks.scale.ingest import Ingest
from benchmarks.scale.measurement import Measurement
from benchmarks.scale.memory import Memory
from benchmarks.scale.object_store import ObjectStore
from benchmarks.scale.profiling import Profile
from benchmarks.scale.scheduled import Scheduled
from benchmarks.scale.slices import Slices
from benchmarks.scale.start import Start
from benchmarks.scale.state import State
from benchmarks.scale.waiting import Waiting
from hindstream.spark.session.session import WORKER_ENVIRONMENT

MEASUREMENTS: tuple[Measurement, ...] = (
    Start(), State(), Slices(), Growth(), Memory(), ObjectStore(), Ingest(), FirstAnswer(), Waiting(), Scheduled(),
    Estimates(), Diff(), Profile(), Directory(),
)  # fmt: skip


_FLAGS = {"true": True, "false": False}


def main() -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False, prog="python -m benchmarks.scale", description=__doc__)
    names = [measurement.name for measurement in MEASUREMENTS]
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names)}; none: all")
    parser.add_argument(
        "--set", nargs="+", default=[], metavar="NAME.SIZE=N", help="other sizes: memory.records=200000"
    )
    parser.add_argument("--output", type=Path, default=Path("scale.json"), help="where the figures go, as JSON")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(names):
        parser.error(f"there is no measurement {min(unknown)}")
    for name, value in WORKER_ENVIRONMENT.items():
        os.environ.setdefault(name, value)  # of the processes that measurements start
    chosen = [resized(m, arguments.set) for m in MEASUREMENTS if m.name in (arguments.names or names)]
    results, missed, wrong = [], 0, []
    for measurement in chosen:
        print(measurement.name, *(f"{name}={value}" for name, value in asdict(measurement).items()), flush=True)
        with tempfile.TemporaryDirectory(prefix="hindstream-scale-") as folder:
            for figure in measurement.figures(Path(folder)):
                print(f"  {figure}", flush=True)
                results.append({"measurement": measurement.name, **figure.as_json()})
                missed += figure.is_met is False
                wrong += [figure.name] * (figure.is_answer and not figure.is_met)
    document = {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"cpus": os.cpu_count(), "platform": platform.platform(), "python": platform.python_version()},
        "sizes": {measurement.name: asdict(measurement) for measurement in chosen},
        "figures": results,
    }
    arguments.output.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    targets = [result for result in results if result["is_met"] is not None]
    print(f"{len(targets) - missed} of {len(targets)} targets met, {missed} missed")
    if wrong:
        sys.exit(f"wrong answers: {'; '.join(wrong)}")


def resized(measurement: Measurement, assignments: list[str]) -> Measurement:
    """The measurement with the sizes that ``assignments`` give it: ``memory.records=200000``."""
    types = {field.name: type(getattr(measurement, field.name)) for field in fields(measurement)}
    changes = {}
    for assignment in assignments:
        place, _, value = assignment.partition("=")
        name, _, size = place.partition(".")
        if name == measurement.name:
            if size not in types:
                raise SystemExit(f"{name} has no size {size!r}; it has {', '.join(types)}")
            changes[size] = _FLAGS[value.lower()] if types[size] is bool else types[size](value)
    return replace(measurement, **changes)


if __name__ == "__main__":
    main()
