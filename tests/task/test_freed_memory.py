"""Freed memory stays or leaves the process as the C library is told, and nothing happens where it cannot be told."""

from __future__ import annotations

import ctypes
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from statelib.task import freed_memory
from statelib.task.freed_memory import MAPPED_BYTES

_GLIBC = pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="another C library than glibc")
_SMALL = 64 << 10  # below glibc's threshold for mappings of their own


def resident_bytes() -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmRSS:"))


@_GLIBC
def test_freed_memory_goes_back_to_the_system() -> None:
    kept = [bytearray(_SMALL) for _ in range(2_000)]
    last = kept[-1]
    full = resident_bytes()
    del kept
    freed_memory.release_freed_memory()
    assert resident_bytes() < full - 1_000 * _SMALL
    assert len(last) == _SMALL


_CYCLES = """
import ctypes, resource, sys
from statelib.task.freed_memory import reuse_freed_memory
from tests.task.test_freed_memory import resident_bytes

size_bytes, count, cycles = map(int, sys.argv[1:])
reuse_freed_memory()
c = ctypes.CDLL(None)
c.malloc.restype, c.malloc.argtypes, c.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
faults, full = [], 0
for _ in range(cycles):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    blocks = [c.malloc(size_bytes) for _ in range(count)]
    for block in blocks:
        ctypes.memset(block, 1, size_bytes)
    full = resident_bytes()
    for block in reversed(blocks):
        c.free(block)
    faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
print(sum(faults[1:]), full - resident_bytes())
"""


def _faults_and_released_bytes(size_bytes: int, count: int, **environment: str) -> tuple[int, int]:
    """Page faults of nine rounds of allocating and freeing after a first one, and what the last one gave back."""
    command = [sys.executable, "-c", _CYCLES, str(size_bytes), str(count), "10"]
    environment = {**os.environ, **environment}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    faults, released_bytes = map(int, done.stdout.split())
    return faults, released_bytes


@_GLIBC
def test_what_batches_free_stays_and_larger_pieces_go_back() -> None:
    count, pages = 16, 16 * (1 << 20) // resource.getpagesize()
    faults, _ = _faults_and_released_bytes(1 << 20, count)
    assert faults < pages, "in nine rounds less than in one that begins with nothing"
    _, released_bytes = _faults_and_released_bytes(MAPPED_BYTES, count)
    assert released_bytes > (count - 1) * MAPPED_BYTES


@_GLIBC
def test_an_allocator_that_was_set_up_stays_so() -> None:
    all_stays = {"MALLOC_MMAP_THRESHOLD_": str(8 * MAPPED_BYTES), "MALLOC_TRIM_THRESHOLD_": str(1 << 30)}
    _, released_bytes = _faults_and_released_bytes(MAPPED_BYTES, 4, **all_stays)
    assert released_bytes < MAPPED_BYTES


def test_a_library_that_cannot_be_asked_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    monkeypatch.setattr(freed_memory, "_trim", freed_memory._glibc_function("malloc_trim", ctypes.c_size_t))
    freed_memory.release_freed_memory()
    assert freed_memory._trim(0) == 0
