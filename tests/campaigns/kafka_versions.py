"""Hand-over, take-over and switch-over with real applications and brokers of several versions of Kafka.

Each row of the matrix is a version and settings of the applications. ``--kafka`` takes other versions, ``--settings``
other settings (``NAME=VALUE NAME=VALUE``), and what follows goes to pytest.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from typing import TYPE_CHECKING, NamedTuple

from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence

_TRANSACTIONAL = "enable.transactional.statestores=true processing.guarantee=exactly_once_v2"
_TESTS = (
    "tests/kafka/test_streams_app.py",
    "tests/kafka/test_streams_groups.py",
    "tests/kafka/test_exported_changelogs.py",
    "tests/kafka/test_changelogs_of_versions.py",
    "tests/kafka/test_headers.py",
    "tests/kafka/test_handover.py",
    "tests/kafka/test_state_directory.py",
    "tests/kafka/test_takeover.py",
    "tests/kafka/test_switch_over.py",
    "tests/kafka/test_switch_over_refused.py",
    "tests/kafka/test_live_migration.py",
)


class Row(NamedTuple):
    """A row of the matrix: a version of Kafka, and settings of the applications beside their defaults."""

    kafka: str
    settings: str = ""


MATRIX = (
    Row("4.3.0"),
    Row("4.4.0"),
    Row("4.3.0", "group.protocol=streams"),
    Row("4.4.0", "group.protocol=streams"),
    Row("4.4.0", "dsl.store.format=HEADERS"),
    Row("4.4.0", _TRANSACTIONAL),
)


def main(arguments: Sequence[str]) -> int:
    """Runs the tests of each row; 1 if any fails."""
    parser = argparse.ArgumentParser(
        allow_abbrev=False,
        prog="./dev campaign kafka-versions",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--kafka", action="append", help="a version, with --settings, or several; default: the matrix")
    parser.add_argument("--settings", default="", help="of the applications of --kafka")
    given, others = parser.parse_known_args(arguments)
    matrix = [Row(version, given.settings) for version in given.kafka] if given.kafka else MATRIX
    results = [(row, _run(row, others)) for row in matrix]
    for row, code in results:
        print(f"Kafka {row.kafka:<8} {'passed' if code == 0 else 'FAILED'}  {row.settings}")
    return int(any(code for _, code in results))


def _run(row: Row, arguments: Sequence[str]) -> int:
    """In a process of its own: the version is that of all servers and applications of it."""
    variables = {"KAFKA_VERSION": row.kafka, "KAFKA_STREAMS_SETTINGS": row.settings}
    told = " ".join(f"{name}='{value}'" for name, value in variables.items())
    tests = [] if any(not argument.startswith("-") for argument in arguments) else _TESTS
    print(f"\n{told} pytest -m '' {' '.join(tests or arguments)}", flush=True)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-m",
        "",
        "-q",
        "-n",
        "2",
        "--dist",
        "loadfile",
        "-p",
        "no:cacheprovider",
    ]
    return subprocess.run([*command, *tests, *arguments], cwd=ROOT, env=os.environ | variables, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
