"""``./dev bench --nexmark``: Nexmark's queries in Hindstream, side by side with other engines."""

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

from benchmarks.nexmark.answers import ANSWERS
from benchmarks.nexmark.contestants.registry import CONTESTANTS
from benchmarks.nexmark.dataset import add_parameters
from benchmarks.nexmark.events import Parameters
from benchmarks.nexmark.report import notes, table
from benchmarks.nexmark.runner import Runner
from benchmarks.nexmark.targets import verdicts


def main() -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False, prog="./dev bench --nexmark", description=__doc__)
    add_parameters(parser)
    names = [contestant.name for contestant in CONTESTANTS]
    parser.add_argument("--only", nargs="+", choices=names, default=names, help="these contestants alone")
    parser.add_argument("--queries", nargs="+", choices=list(ANSWERS), default=list(ANSWERS), help="these alone")
    parser.add_argument(
        "--repeats", type=int, default=1, help="of each pair of runs: the line through all of them counts"
    )
    parser.add_argument("--output", type=Path, default=Path("nexmark.json"), help="where the figures go, as JSON")
    arguments = vars(parser.parse_args())
    only, queries, repeats, output = (arguments.pop(name) for name in ("only", "queries", "repeats", "output"))
    parameters = Parameters(**arguments)
    print(" ".join(f"{name}={value}" for name, value in asdict(parameters).items()))
    contestants = [contestant for contestant in CONTESTANTS if contestant.name in only]
    with tempfile.TemporaryDirectory(prefix="hindstream-nexmark-") as folder:
        measured = Runner(Path(folder), parameters).run(contestants, queries, repeats)
    found = verdicts(measured)
    print(f"\n{table(measured, contestants)}\n\n{notes(contestants)}\n", *found, sep="\n")
    result = {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"cpus": os.cpu_count(), "platform": platform.platform(), "python": platform.python_version()},
        "parameters": asdict(parameters),
        "settings": {contestant.name: contestant.settings for contestant in contestants},
        "measured": [one.as_json() for one in measured],
        "targets": [verdict.as_json() for verdict in found],
    }
    output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    if any(one.differences for one in measured):
        sys.exit(1)


if __name__ == "__main__":
    main()
