"""Want of memory and of threads, as the real thing says it, is one clean error."""

from __future__ import annotations

import subprocess
import sys

import pytest

from statelib.errors.exhausted import exhaustion_told, is_exhaustion

_LIMITED = """
import resource
import numpy, pyarrow, threading
from pathlib import Path
from statelib.errors.kinds import RetryableError
from statelib.errors.exhausted import exhaustion_told

used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (2 << 20), resource.RLIM_INFINITY))
for want in (
    lambda: bytearray(1 << 30),
    lambda: numpy.empty(1 << 30, numpy.uint8),
    lambda: pyarrow.allocate_buffer(1 << 30),
    lambda: threading.Thread(target=print).start(),
    lambda: open('/dev/zero', 'rb').read(1 << 30),
):
    try:
        with exhaustion_told():
            want()
    except RetryableError as error:
        print(error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of memory is Linux's")
def test_what_libraries_say_is_told() -> None:
    done = subprocess.run([sys.executable, "-c", _LIMITED], capture_output=True, text=True, check=True)
    told = done.stdout.splitlines()
    assert len(told) == 5
    assert all("the host has no memory or no threads left" in line for line in told), told
    assert all("smaller memory_budget_bytes" in line for line in told), told


def test_other_errors_pass() -> None:
    assert not is_exhaustion(OSError(2, "No such file"))
    with pytest.raises(ZeroDivisionError), exhaustion_told():
        raise ZeroDivisionError
