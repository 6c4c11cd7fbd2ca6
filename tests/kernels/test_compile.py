"""Kernels are compiled once a machine, also when several processes begin at the same time."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from statelib.kernels.compile import compile_all

ROOT = Path(__file__).parents[2]
USE = """
import numpy as np
from statelib.operators.deduplication.kernel import NO_ENTRY, deduplicate
one = np.zeros(1, np.int64)
entries = [np.full(1, NO_ENTRY), one.copy(), one.copy()]
forwarded, set_entry = np.empty(1, np.bool_), np.empty(0, np.bool_)
sources, partitions = one.astype(np.int16), one.astype(np.int32)
deduplicate(one, one, one, 0, one, sources, partitions, one, 0, *entries, forwarded, set_entry)
assert forwarded[0]
print(sum(deduplicate.dispatcher.stats.cache_hits.values()))
"""
FIRST_KERNEL = """
import sys
import numpy as np
import hindstream
import statelib.task
from statelib.columns.counting import repeated_numbers
hindstream.StreamsBuilder
print("imported", "numba" in sys.modules)
print(repeated_numbers(np.array([1, 2, 1])).tolist(), "numba" in sys.modules)
"""


def start(cache: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT)}
    return subprocess.Popen([sys.executable, "-c", USE], env=environment, stdout=subprocess.PIPE, text=True)


def test_processes_that_compile_at_once_leave_a_good_cache(tmp_path: Path) -> None:
    both = [start(tmp_path), start(tmp_path)]
    for process in both:
        process.communicate()
    assert [process.returncode for process in both] == [0, 0]
    later = start(tmp_path)
    assert later.communicate()[0] == "1\n"


def test_all_kernels_are_found() -> None:
    sources = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in (ROOT / "statelib").rglob("*.py")
    }
    decorated = {
        name for name, path in sources.items() if re.search(r"^@(compiled|helper)\b", path.read_text(), re.MULTILINE)
    }
    assert {*compile_all()} >= decorated - {"statelib.kernels.compiled"}
    assert len(decorated) > 30


def test_the_first_kernel_that_runs_loads_numba() -> None:
    done = subprocess.run([sys.executable, "-c", FIRST_KERNEL], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["imported", "False", "[1]", "True"]
