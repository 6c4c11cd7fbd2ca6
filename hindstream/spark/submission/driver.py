"""What is submitted to a cluster: one phase of one run. Its failure is written down for whoever waits for it.

usage: spark-submit driver.py --job JOB --name JOB_NAME --run RUN_ID --phase replay|audit --number N --settings JSON
"""

from __future__ import annotations

import argparse
import importlib
import json
import logging
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

PHASES = ("replay", "audit")
"""Those that work on Spark."""


def main(argv: Sequence[str] | None = None) -> int:
    """Does the phase; the exit code of its error, or 0."""
    from hindstream.runs import open_warehouse  # noqa: PLC0415 - only when our own folder has left the search path
    from hindstream.spark.submission.record import Submissions  # noqa: PLC0415
    from hindstream.spark.submission.same_code import load_same  # noqa: PLC0415
    from statelib.errors.exhausted import exhaustion_told  # noqa: PLC0415
    from statelib.errors.kinds import HindstreamError  # noqa: PLC0415
    from statelib.settings.settings import load_settings  # noqa: PLC0415
    from statelib.settings.value_sources import TASK_ARGUMENTS  # noqa: PLC0415

    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__)
    for name in ("job", "name", "run", "settings"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--phase", required=True, choices=PHASES)
    parser.add_argument("--number", required=True, type=int)
    given = parser.parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    for library in ("py4j", "great_expectations"):
        logging.getLogger(library).setLevel(logging.ERROR)
    settings = load_settings(json.loads(given.settings), given_by=TASK_ARGUMENTS)
    submissions = Submissions(open_warehouse(settings), given.name, given.run, given.phase)
    try:
        with exhaustion_told():
            submission = submissions.check_newest(given.number)
            job = load_same(given.job, settings.fork, None if submission is None else submission.code)
            importlib.import_module(f"hindstream.spark.phases.{given.phase}").run(job, settings, given.run)
    except HindstreamError as error:
        sys.stderr.write(f"{error}\n")
        submissions.end(given.number, error.exit_code, str(error))
        return error.exit_code
    except Exception as error:
        traceback.print_exc()
        submissions.end(given.number, 1, f"{type(error).__name__}: {error}")
        raise
    return 0


if __name__ == "__main__":
    here = Path(__file__).resolve().parent
    sys.path[:] = [place for place in sys.path if Path(place).resolve() != here]  # none of our files is a module there
    sys.exit(main())
