"""What processes use, looked at from the one that has started them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from hindstream.estimate.usage import TaskMemory, usage

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="from /proc")

_BUSY = (
    "import sys, time\nheld = bytearray(b'x') * (100 << 20)\nwhile time.process_time() < 0.3: pass\n"
    "print('done', flush=True)\nsys.stdin.read()"
)


def test_a_child_counts_while_it_lives() -> None:
    before = usage()
    with subprocess.Popen([sys.executable, "-c", _BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout
        child.stdout.readline()
        after = usage()
        child.communicate()
    assert after.cpu_seconds - before.cpu_seconds > 0.25
    assert after.memory_bytes - before.memory_bytes > 90 << 20
    assert before.worker_bytes or after.worker_bytes == 0  # it is no worker of Spark; other tests may have left some


def test_memory_of_a_task_is_what_it_takes_beyond_what_was_there() -> None:
    kept = bytearray(b"x") * (150 << 20)
    memory = TaskMemory()
    with memory.watching():
        more = bytearray(b"y") * (60 << 20)
        del more
    assert len(kept) == 150 << 20
    assert 50 << 20 < memory.peak_bytes < 140 << 20
