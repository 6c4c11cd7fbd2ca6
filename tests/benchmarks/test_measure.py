from __future__ import annotations

import os
import subprocess
import sys

import pytest

# In a process of its own: to measure is to become the parent of orphans.
MEASURE = """
import json, os, sys
from dataclasses import asdict
from benchmarks.measure import measure
print(json.dumps(asdict(measure([sys.executable, "-c", sys.argv[1]], environment=dict(os.environ)))))
"""
BUSY = "import time\nwhile time.process_time() < 0.8: pass"
# Its child ignores its own child, as Spark's daemon does, and ends first.
NESTED = f"""
import os, signal, time
if os.fork() == 0:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    if os.fork() == 0:
        held = bytearray(64 << 20)
        for i in range(0, len(held), 4096): held[i] = 1
        exec({BUSY!r})
        os._exit(0)
    time.sleep(0.2)
    os._exit(0)
os.wait()
"""


def measured(code: str) -> dict[str, float]:
    command = [sys.executable, "-c", MEASURE, code]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    cost: dict[str, float] = __import__("json").loads(done.stdout)
    return cost


@pytest.mark.parametrize("code", [BUSY, NESTED], ids=["child", "orphan"])
def test_cpu_time_of_any_descendant_is_counted(code) -> None:
    assert 0.7 < measured(code)["cpu_seconds"] < 3


def test_memory_of_any_descendant_is_counted() -> None:
    assert measured(NESTED)["peak_memory_bytes"] > measured(BUSY)["peak_memory_bytes"] + (50 << 20)
