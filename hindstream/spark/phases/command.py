"""The command line of a phase: the job, the run, and every setting under its own name."""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_origin

from statelib.errors.exhausted import exhaustion_told
from statelib.errors.kinds import HindstreamError
from statelib.job.job import load_job
from statelib.settings.settings import Settings, load_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from statelib.job.job import Job


def phase_main(
    phase: Callable[[Job, Settings, str | None], object], argv: Sequence[str] | None, *, description: str
) -> None:
    """Parses ``argv`` (None: that of the process), runs a phase and says what came of it.

    An error ends the process with its class's exit code and one message, without a traceback.
    """
    parser = argparse.ArgumentParser(allow_abbrev=False, description=description)
    parser.add_argument("--job", required=True, metavar="FILE.py:NAME", help="the job, or PACKAGE.MODULE:NAME")
    parser.add_argument("--run", metavar="RUN_ID", help="the run; without it the newest")
    for name, field in Settings.model_fields.items():
        repeated = {"action": "append", "metavar": "NAME=VALUE"} if _is_mapping(name) else {"metavar": "VALUE"}
        options: dict[str, Any] = {"dest": name, "help": (field.description or "").replace("%", "%%"), **repeated}
        parser.add_argument(f"--{name.replace('_', '-')}", **options)
    arguments = vars(parser.parse_args(argv))
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    for library in ("py4j", "great_expectations"):
        logging.getLogger(library).setLevel(logging.ERROR)
    reference, run_id = arguments.pop("job"), arguments.pop("run")
    if reference.partition(":")[0].endswith(".py"):
        _leave_folder_of_script()
    try:
        with exhaustion_told():
            settings = load_settings({name: _value(parser, name, value) for name, value in arguments.items()})
            phase(load_job(reference, fork=settings.fork), settings, run_id)
    except HindstreamError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)


def _leave_folder_of_script() -> None:
    """Lets no import find what lies beside the script: the job's own ``report.py`` is no other script's rival."""
    script = getattr(sys.modules["__main__"], "__file__", None)
    if script and sys.path and Path(sys.path[0]).resolve() == Path(script).resolve().parent:
        del sys.path[0]


def _is_mapping(setting: str) -> bool:
    return get_origin(Settings.model_fields[setting].annotation) is dict


def _value(parser: argparse.ArgumentParser, setting: str, given: str | list[str] | None) -> object:
    if not isinstance(given, list):
        return given
    pairs = [pair.partition("=") for pair in given]
    if odd := [name for name, equals, _ in pairs if not equals]:
        parser.error(f"--{setting.replace('_', '-')} takes NAME=VALUE, not {odd[0]}")
    return {name: value for name, _, value in pairs}
