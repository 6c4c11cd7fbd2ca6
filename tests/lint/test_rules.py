"""The rules that keep the engine pure really catch what they are there for."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent


def ruff(path: str, code: str) -> str:
    command = [BIN / "ruff", "check", "--select", "TID251", "--output-format", "concise", "--stdin-filename", path, "-"]
    return subprocess.run(command, input=code, text=True, capture_output=True, cwd=ROOT, check=False).stdout


@pytest.mark.parametrize(
    "code",
    [
        "import time\ntime.time()",
        "from time import monotonic",
        "import datetime as dt\ndt.datetime.now(dt.UTC)",
        "from datetime import datetime\ndatetime.utcnow()",
        "from datetime import date\ndate.today()",
        "import random",
        "import numpy as np\nnp.random.default_rng(1)",
        "from numpy.random import default_rng",
        "import uuid\nuuid.uuid4()",
        "import os\nos.urandom(8)",
        "import secrets",
        "import tempfile",
        "import pyspark.sql",
        "from airflow.sdk import dag",
        "import great_expectations as gx",
        "from hindstream.spark import replay",
        "def f():\n    import hindstream",
    ],
)
def test_the_engine_has_no_clock_no_chance_and_no_framework(code: str) -> None:
    assert "TID251" in ruff("statelib/operators/example.py", code)


def test_other_packages_may_use_the_clock() -> None:
    assert "TID251" not in ruff("hindstream/spark/example.py", "import time\ntime.time()")


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("statelib/kernels/example.py", "from statelib.stores import backend"),
        ("statelib/stores/example.py", "from statelib.operators import base"),
        ("statelib/operators/example.py", "from statelib import topology"),
        ("statelib/topology/example.py", "from statelib import dsl"),
        ("statelib/operators/tables/example.py", "from statelib.operators.windows import store"),
        ("statelib/operators/mappers/example.py", "from statelib.operators import base"),
        ("statelib/state/example.py", "from statelib.operators.processors import operator"),
        ("statelib/operators/example.py", "from statelib import commits"),
        ("statelib/commits/example.py", "from statelib import task"),
        ("statelib/example.py", "import pyspark"),
        ("statelib/example.py", "import hindstream"),
        ("hindstream/airflow/example.py", "from hindstream.cli import main"),
        ("hindstream/spark/phases/example.py", "from hindstream.airflow import factory"),
        ("hindstream/spark/phases/example.py", "import airflow"),
        ("hindstream/spark/session/example.py", "from hindstream.spark.phases import replay"),
        ("hindstream/kafka/example.py", "from hindstream.spark.session import session"),
        ("hindstream/report/example.py", "import pyspark"),
    ],
)
def test_an_import_against_the_arrows_is_found(module: str, line: str, tmp_path: Path) -> None:
    for package in ("statelib", "hindstream"):
        for source in (ROOT / package).rglob("*.py"):  # the contracts name some of them
            copy = tmp_path / source.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.touch()
    shutil.copy(ROOT / "pyproject.toml", tmp_path)

    def contracts() -> subprocess.CompletedProcess[str]:
        command = [BIN / "lint-imports", "--no-cache", "--no-logo"]
        return subprocess.run(command, text=True, capture_output=True, cwd=tmp_path, check=False)

    (tmp_path / module).write_text("")
    assert contracts().returncode == 0
    (tmp_path / module).write_text(line)
    result = contracts()
    assert result.returncode == 1
    assert "BROKEN" in result.stdout
