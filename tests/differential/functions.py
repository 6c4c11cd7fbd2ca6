"""What programs compute, as in ``Functions.java``. Values are strings or counts."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.differential.program import Step

KEYS: dict[str, tuple[Any, ...]] = {
    "string": ("a", "b", "ab"), "long": (3, -1, 70), "integer": (3, -1, 70), "short": (3, -1, 70),
    "double": (0.5, -2.0, 1000.25), "bytes": (b"\x03", b"\xff\x00", b"\x03\x03"),
}  # fmt: skip
"""By the type of a program's keys, those that there are."""
KEY_TYPES = {
    "string": pa.string(), "long": pa.int64(), "integer": pa.int32(), "short": pa.int16(), "double": pa.float64(),
    "bytes": pa.binary(),
}  # fmt: skip
EXTRACTORS = ("bounded", "ascending", "for some")
_LONGEST = 48
_keys = [*KEYS["string"]]


def text(value: Any) -> str:
    """As Java shows it; counts of streams, which are a struct here, as it has them; bytes are digits of 16."""
    if isinstance(value, dict):
        return ":".join(map(str, value.values()))
    if isinstance(value, bytes):
        return value.hex()
    return "null" if value is None else str(value)


def cut(value: str) -> str:
    """Long values are cut: what they end with is told by a checksum."""
    return value if len(value) <= _LONGEST else f"{value[:8]}#{zlib.crc32(value.encode()):08x}"


def _sum(value: Any) -> int:
    return sum(text(value).encode())


def suffixed(value: Any, suffix: str) -> str | None:
    """The value with a suffix; nothing stays nothing."""
    return None if value is None else cut(text(value) + suffix)


def fail_for_some(value: Any) -> None:
    """Fails for a fourth of the values that are there."""
    if passes(value, 4, 1):
        raise ValueError(text(value))


def checked(step: Step, made: str) -> str:
    """What a function has made; the step may say that it fails for some."""
    if "fails" in step:
        fail_for_some(made)
    return made


def key_text(key: Any, start: int | None = None, end: int | None = None) -> str:
    """A key, with the bounds of its window in ms if it has one."""
    return text(key) if start is None else f"{text(key)}[{start},{end})"


def passes(value: Any, modulus: int, rest: int) -> bool:
    """Whether it is there, and one of those."""
    return value is not None and _sum(value) % modulus == rest


def topic(value: Any, topics: Sequence[str]) -> str:
    """One of some topics, chosen by a value."""
    return topics[_sum(value) % len(topics)]


def use_keys(kind: str) -> None:
    """Makes functions give keys of a type from here on: programs run one at a time."""
    _keys[:] = KEYS[kind]


def key(value: Any, shift: int) -> Any:
    """A key made of a value."""
    return _keys[(_sum(value) + shift) % len(_keys)]


def written(key: Any) -> Any:
    """A key as programs write it."""
    return key.hex() if isinstance(key, bytes) else key


def read(kind: str, key: Any) -> Any:
    """A key of a type that a program has written."""
    return bytes.fromhex(key) if kind == "bytes" and key is not None else key


def told_keys() -> tuple[Any, Any]:
    """Those under which processors forward when they are called."""
    return _keys[0], _keys[1]


def partition(key: Any, count: int) -> int:
    """Where a key is."""
    return _sum(key) % count


def start(value: Any, advance: int) -> int:
    """The start of a window, made of a value."""
    return _sum(value) % 6 * advance


def key_or_none(value: Any, shift: int, none: int | None) -> Any:
    """The same, but of a fourth of the values none; ``none``: which, None: of no value."""
    return None if none is not None and _sum(value) % 4 == none else key(value, shift)


def pieces(value: Any, most: int) -> list[str]:
    """None to ``most`` values made of one."""
    count = 0 if value is None else _sum(value) % (most + 1)
    return [cut(f"{text(value)}{number}") for number in range(count)]


def joined(left: Any, right: Any) -> str:
    """A value made of two."""
    return cut(f"{text(left)}|{text(right)}")


def extracted(extractor: str, value: Any, timestamp: int, partition_time: int) -> int:
    """The timestamp that one of `EXTRACTORS` gives, by the time of the partition before; negative: the record goes."""
    match extractor:
        case "bounded":
            return timestamp if partition_time < 0 else min(timestamp, partition_time + 7)
        case "ascending":
            return max(timestamp, partition_time + 1)
        case _:
            return partition_time if value is None or passes(value, 3, 0) else timestamp


def added(aggregate: Any, value: Any) -> str:
    """An aggregate and one more value."""
    return cut(f"{text(aggregate)}+{text(value)}")


def taken(aggregate: Any, value: Any) -> str:
    """An aggregate from which a value is taken back."""
    return cut(f"{text(aggregate)}-{text(value)}")


def merged(one: Any, other: Any) -> str:
    """An aggregate made of those of two sessions."""
    return cut(f"{text(one)}&{text(other)}")
