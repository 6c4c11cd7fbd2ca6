"""What processes use, looked at from the one that has started them."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from hindstream.estimate.usage import TaskMemory
from tests.conftest import ROOT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="from /proc")

_BUSY = (
    "import sys, time\nheld = bytearray(b'x') * (100 << 20)\nwhile time.process_time() < 0.3: pass\n"
    "print('done', flush=True)\nsys.stdin.read()"
)


_LOOKS_AT_A_CHILD = f"""
import dataclasses, json, subprocess, sys
from hindstream.estimate.usage import usage
before = usage()
with subprocess.Popen([sys.executable, "-c", {_BUSY!r}], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
    child.stdout.readline()
    after = usage()
    child.communicate()
print(json.dumps([dataclasses.asdict(before), dataclasses.asdict(after)]))
"""


def test_a_child_counts_while_it_lives() -> None:
    """In a process without others, whose memory would change meanwhile."""
    done = subprocess.run([sys.executable, "-c", _LOOKS_AT_A_CHILD], check=True, capture_output=True, cwd=ROOT)
    before, after = json.loads(done.stdout)
    assert after["cpu_seconds"] - before["cpu_seconds"] > 0.25
    assert after["memory_bytes"] - before["memory_bytes"] > 90 << 20
    assert after["worker_bytes"] == 0  # it is no worker of Spark


def test_memory_of_a_task_is_what_it_takes_beyond_what_was_there() -> None:
    kept = bytearray(b"x") * (150 << 20)
    memory = TaskMemory()
    with memory.watching():
        more = bytearray(b"y") * (60 << 20)
        del more
    assert len(kept) == 150 << 20
    assert 50 << 20 < memory.peak_bytes < 140 << 20
