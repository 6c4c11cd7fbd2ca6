"""``./dev bench --versioned``: our versioned store beside Kafka Streams' own, by API and in a job."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.versioned.cases import AXES
from benchmarks.versioned.report import plot, table
from benchmarks.versioned.runner import OPERATIONS, OURS, THEIRS, run


def main() -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False, prog="./dev bench --versioned", description=__doc__)
    parser.add_argument("--axes", nargs="+", choices=list(AXES), default=list(AXES), help="vary these alone")
    parser.add_argument("--puts", type=int, default=60_000, help="of each case")
    parser.add_argument("--reads", type=int, default=60_000, help="of the latest version, as of a time, and in a join")
    parser.add_argument("--repeats", type=int, default=3, help="of each case, from an empty store")
    parser.add_argument("--seed", type=int, default=7, help="of keys, times and disorder")
    parser.add_argument(
        "--output", type=Path, default=Path("versioned.json"), help="where the figures go; pictures go beside it"
    )
    arguments = parser.parse_args()
    sizes = {name: getattr(arguments, name) for name in ("puts", "reads", "repeats", "seed")}
    busy = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="hindstream-versioned-") as folder:
        measured = run(Path(folder), arguments.axes, **sizes)
    print(f"\nCPU microseconds an operation, of all threads, {OURS} / {THEIRS}: the mean of the repeats")
    print("± marks what is uncertain by over a fifth. put, get and get as of are calls; the others are jobs")
    for n, axis in enumerate(arguments.axes):
        print(f"\n{table(axis, measured)}")
        picture = arguments.output.with_name(f"{arguments.output.stem}-{n}.svg")
        picture.write_text(plot(axis, measured), encoding="utf-8")
    result = {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {
            "cpus": os.cpu_count(),
            "platform": platform.platform(),
            "load": {"at start": busy, "at end": os.getloadavg()[0]},
        },
        "sizes": sizes,
        "measured": [
            {
                "case": asdict(one.case),
                "us": {f"{what}, {store}": one.us[store, what] for what in OPERATIONS for store in (OURS, THEIRS)},
                "differences": one.differences,
            }
            for one in measured.values()
        ],
    }
    arguments.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    if any(one.differences for one in measured.values()):
        sys.exit(1)


if __name__ == "__main__":
    main()
