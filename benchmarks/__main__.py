"""``./dev bench``: Hindstream side by side with its peers and with the machine's limit."""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
from dataclasses import asdict, fields
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.contestants.registry import CONTESTANTS
from benchmarks.dataset import Parameters
from benchmarks.runner import Runner
from benchmarks.works import WORKS


def main() -> None:
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__)
    for field in fields(Parameters):
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=type(field.default), default=field.default)
    names = [contestant.name for contestant in CONTESTANTS]
    parser.add_argument("--only", nargs="+", choices=names, default=names, help="these contestants alone")
    parser.add_argument("--works", nargs="+", choices=list(WORKS), default=list(WORKS), help="these works alone")
    parser.add_argument("--repeats", type=int, default=3, help="the least of each figure counts")
    parser.add_argument("--output", type=Path, default=Path("benchmarks.json"), help="where the figures go, as JSON")
    arguments = vars(parser.parse_args())
    only, works, repeats, output = (arguments.pop(name) for name in ("only", "works", "repeats", "output"))
    parameters = Parameters(**arguments)
    print(" ".join(f"{name}={value}" for name, value in asdict(parameters).items()))
    with tempfile.TemporaryDirectory(prefix="hindstream-benchmark-") as folder:
        runner = Runner(Path(folder), parameters)
        contestants = [c for c in CONTESTANTS if c.name in {*only, "hindstream"}]
        measured = runner.run(contestants, [WORKS[name] for name in works], repeats)
    for one in measured:
        figures = f"net {one.net_us:7.3f} gross {one.gross_us:7.3f} us/record"
        print(f"{one.work} {one.contestant:12} {figures}, {one.peak_memory_bytes >> 20} MiB", one.details)
    result = {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"cpus": os.cpu_count(), "platform": platform.platform(), "python": platform.python_version()},
        "parameters": asdict(parameters),
        "measured": [one.as_json() for one in measured],
    }
    output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
