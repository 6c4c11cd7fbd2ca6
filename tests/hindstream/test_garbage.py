"""A command does not look for garbage among what its imports make."""

from __future__ import annotations

import subprocess
import sys

IMPORTS = """
import gc
from hindstream.garbage import collect_seldom
collect_seldom()
before = sum(of["collections"] for of in gc.get_stats())
import hindstream.spark.phases.pipeline, hindstream.cli.main, numba, pandas, statelib.dsl
print(sum(of["collections"] for of in gc.get_stats()) - before)
"""


def test_imports_look_for_no_garbage() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORTS], capture_output=True, text=True, check=True)
    assert done.stdout == "0\n"
