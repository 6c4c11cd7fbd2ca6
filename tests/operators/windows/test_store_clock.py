from __future__ import annotations

import pytest

from statelib.errors.kinds import ConfigurationError, CorruptedDataError
from statelib.operators.windows.store_clock import StoreClock, decode_clock, encode_clock
from statelib.stores.backend import WriteBatch
from statelib.stores.memory import MemoryBackend


def test_golden_bytes() -> None:
    assert encode_clock(258) == bytes.fromhex("01 0000000000000102")
    assert decode_clock(bytes.fromhex("010000000000000102"), "s") == 258


def test_damaged_bytes_and_other_formats_are_refused() -> None:
    for raw in (b"", b"\x01", encode_clock(1) + b"\x00"):
        with pytest.raises(CorruptedDataError, match="clock has"):
            decode_clock(raw, "s")
    with pytest.raises(ConfigurationError, match="written in format 2, and this release reads format 1"):
        decode_clock(b"\x02" + encode_clock(1)[1:], "s")


def test_it_only_moves_on() -> None:
    backend = MemoryBackend()
    clock = StoreClock(backend, "s")
    assert clock.stream_time == -1
    for time, written in ((5, 1), (5, 0), (3, 0), (9, 1)):
        write = WriteBatch()
        clock.advance(time, write)
        assert len(write) == written
        backend.write(write)
    assert StoreClock(backend, "s").stream_time == 9
