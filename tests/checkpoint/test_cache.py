"""The record of what was verified; see `test_checkpoints` for what the cache does with it."""

from __future__ import annotations

import pytest

from statelib.checkpoint.cache import Identity, decode, encode

VERIFIED = {"b" * 64: Identity(2049, 7, 1_000, 1_700_000_000_123_456_789), "a" * 64: Identity(2049, 8, 0, -1)}
GOLDEN = (
    b'{"files": {"' + b"a" * 64 + b'": [2049, 8, 0, -1], "' + b"b" * 64 + b'": [2049, 7, 1000, 1700000000123456789]},'
    b' "format_version": 1}'
)


def test_golden_bytes() -> None:
    assert encode(VERIFIED) == GOLDEN
    assert decode(GOLDEN) == VERIFIED


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"[]",
        b"7",
        b"\xff",
        GOLDEN[:-1],
        GOLDEN.replace(b'version": 1', b'version": 2'),
        GOLDEN.replace(b"8, 0, ", b"8, "),
        GOLDEN.replace(b"8, 0", b'"x", 0'),
        b'{"files": 1, "format_version": 1}',
    ],
)
def test_a_record_that_cannot_be_used_says_nothing(damaged: bytes) -> None:
    assert decode(damaged) == {}
