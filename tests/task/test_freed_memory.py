"""What has been freed leaves the process where the C library can be asked for it, and nothing happens elsewhere."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from statelib.task import freed_memory

_SMALL = 64 << 10  # below glibc's threshold for mappings of their own


def _resident_bytes() -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmRSS:"))


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="another C library than glibc")
def test_freed_memory_goes_back_to_the_system() -> None:
    kept = [bytearray(_SMALL) for _ in range(2_000)]
    last = kept[-1]
    full = _resident_bytes()
    del kept
    freed_memory.release_freed_memory()
    assert _resident_bytes() < full - 1_000 * _SMALL
    assert len(last) == _SMALL


def test_a_library_that_cannot_be_asked_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freed_memory.ctypes, "CDLL", lambda _: object())
    monkeypatch.setattr(freed_memory, "_trim", freed_memory._trim_function())
    freed_memory.release_freed_memory()
    assert freed_memory._trim(0) == 0
