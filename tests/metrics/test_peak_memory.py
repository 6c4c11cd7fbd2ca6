"""The peak of this process, which begins anew in each program that it starts."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from statelib.metrics.peak_memory import peak_memory_bytes

_LARGE = 200 << 20


def test_it_holds_what_was_allocated_and_freed() -> None:
    before = peak_memory_bytes()
    held = bytearray(os.urandom(1)) * _LARGE
    assert peak_memory_bytes() > _LARGE
    del held
    assert peak_memory_bytes() >= max(before, _LARGE)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is only ru_maxrss")
def test_a_program_does_not_begin_with_the_peak_of_who_starts_it() -> None:
    held = bytearray(os.urandom(1)) * _LARGE
    code = "from statelib.metrics.peak_memory import peak_memory_bytes; print(peak_memory_bytes())"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    said = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert len(held) == _LARGE
    assert int(said.stdout) < _LARGE
