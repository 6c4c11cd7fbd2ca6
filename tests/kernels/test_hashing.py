"""The hash of byte strings: the same wherever the bytes lie, another for other bytes."""

from __future__ import annotations

import numpy as np

from statelib.kernels.hashing import hash_spans


def hashes(values: list[bytes], pad: bytes = b"") -> list[int]:
    data = np.frombuffer(pad + b"".join(values) + b"\0", np.uint8)
    length = np.array([len(value) for value in values], np.int64)
    start = len(pad) + np.cumsum(length) - length
    out = np.empty(len(values), np.uint64)
    hash_spans(data, start, length, out)
    return [int(value) for value in out]


def test_the_place_of_the_bytes_does_not_matter() -> None:
    values = [bytes(range(n)) for n in range(40)]
    assert hashes(values) == hashes(values, pad=b"odd") == [hashes([value])[0] for value in values]


def test_every_byte_counts() -> None:
    changed = [bytes(n == at for n in range(length)) for length in range(40) for at in range(-1, length)]
    assert len(set(hashes(changed))) == len(changed)


def test_numbered_names_do_not_collide() -> None:
    for text in ("flight-{}", "{}", "{:032d}", "{:x}@example.org"):
        assert len(set(hashes([text.format(n).encode() for n in range(200_000)]))) == 200_000
