"""The hash of byte strings: the same wherever the bytes lie, another for other bytes."""

from __future__ import annotations

import numpy as np

from statelib.columns.hashing import hash_spans


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


def test_each_bit_of_the_input_turns_about_half_of_the_bits_of_the_hash() -> None:
    for length in (1, 7, 8, 15, 16, 17, 33):
        value = int.from_bytes(bytes(range(1, length + 1)), "little")
        turned = [(value ^ (1 << bit)).to_bytes(length, "little") for bit in range(8 * length)]
        (hash_of_value, *others) = hashes([value.to_bytes(length, "little"), *turned])
        assert all(16 <= (hash_of_value ^ other).bit_count() <= 48 for other in others)
