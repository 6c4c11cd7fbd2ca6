"""``./dev bench``: Hindstream side by side with its peers and with the machine's limit."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from dataclasses import asdict, fields
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.contestants.registry import CONTESTANTS
from benchmarks.dataset import Parameters
from benchmarks.guard import check, record
from benchmarks.report import plot, table
from benchmarks.runner import Runner
from benchmarks.targets import summary, verdicts
from benchmarks.works import WORKS

LEAST_SIZES = 4
SIZES = (500_000, 1_000_000, 2_000_000, 4_000_000)


def main() -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False, prog="./dev bench", description=__doc__)
    parser.add_argument(
        "--sizes",
        nargs="+",
        type=int,
        default=SIZES,
        help=f"clicks of each dataset, {LEAST_SIZES} at least: the line through the runs is what a record costs; "
        "with a single one, gross figures alone",
    )
    for field in (field for field in fields(Parameters) if field.name != "records"):
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=type(field.default), default=field.default)
    names = [contestant.name for contestant in CONTESTANTS]
    parser.add_argument("--only", nargs="+", choices=names, default=names, help="these contestants alone")
    parser.add_argument("--works", nargs="+", choices=list(WORKS), default=list(WORKS), help="these works alone")
    parser.add_argument(
        "--repeats",
        type=int,
        default=3,
        help="of each run: the more, the smaller the error",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("benchmarks.json"),
        help="where the figures go, as JSON, and beside it as SVG",
    )
    parser.add_argument("--scale", nargs=argparse.REMAINDER, help="python -m benchmarks.scale with these arguments")
    parser.add_argument("--nexmark", nargs=argparse.REMAINDER, help="python -m benchmarks.nexmark with these arguments")
    parser.add_argument(
        "--versioned", nargs=argparse.REMAINDER, help="python -m benchmarks.versioned with these arguments"
    )
    guard = parser.add_mutually_exclusive_group()
    guard.add_argument("--check", action="store_true", help="hold small jobs against recorded.json, nothing else")
    guard.add_argument("--record", action="store_true", help="write recorded.json anew, nothing else")
    arguments = vars(parser.parse_args())
    if arguments.pop("record"):
        record(arguments["repeats"])
        return
    if arguments.pop("check"):
        sys.exit(0 if check(arguments["repeats"]) else 1)
    for other in ("scale", "nexmark", "versioned"):
        theirs = arguments.pop(other)
        if theirs is not None:  # in place of this process, since what it has imported would count as theirs
            os.execv(sys.executable, [sys.executable, "-m", f"benchmarks.{other}", *theirs])
    only, works, repeats, output, sizes = (
        arguments.pop(name) for name in ("only", "works", "repeats", "output", "sizes")
    )
    sizes = sorted(set(sizes))
    if 1 < len(sizes) < LEAST_SIZES:
        parser.error(f"--sizes: a single one, or {LEAST_SIZES} different ones at least")
    parameters = Parameters(**arguments)
    described = {name: value for name, value in asdict(parameters).items() if name != "records"}
    print(" ".join(f"{name}={value}" for name, value in {"sizes": sizes, **described}.items()))
    with tempfile.TemporaryDirectory(prefix="hindstream-benchmark-") as folder:
        runner = Runner(Path(folder), parameters, sizes)
        contestants = [c for c in CONTESTANTS if c.name in {*only, "hindstream"}]
        measured = runner.run(contestants, [WORKS[name] for name in works], repeats)
    for name in works:
        print(f"\n{table(name, measured, contestants)}")
    print(*(f"\n{contestant.title}: {contestant.settings}." for contestant in contestants), sep="")
    found = verdicts(measured)
    result = {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"cpus": os.cpu_count(), "platform": platform.platform(), "python": platform.python_version()},
        "sizes": sizes,
        "parameters": described,
        "settings": {contestant.name: contestant.settings for contestant in contestants},
        "measured": [one.as_json() for one in measured],
        "targets": [verdict.as_json() for verdict in found],
    }
    output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    if len(sizes) > 1:
        output.with_suffix(".svg").write_text(plot(measured, contestants), encoding="utf-8")
    print(f"\n{summary(found)}")
    if any(one.differences for one in measured):
        sys.exit(1)


if __name__ == "__main__":
    main()
