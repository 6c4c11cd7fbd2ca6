"""One Python value at a time through a serde: what the point access of stores is made of, the slow way.

Text, bytes and numbers go directly, without an array of one element, to the very same bytes.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from statelib.errors.kinds import InputError
from statelib.serdes import BytesSerde, FixedWidthSerde, StringSerde

if TYPE_CHECKING:
    from collections.abc import Callable

    from statelib.serdes import Serde

_STRUCTS = {
    pa.int8(): ">b",
    pa.int16(): ">h",
    pa.int32(): ">i",
    pa.int64(): ">q",
    pa.uint8(): ">B",
    pa.uint16(): ">H",
    pa.uint32(): ">I",
    pa.uint64(): ">Q",
    pa.float64(): ">d",
}


class _Direct(NamedTuple):
    """How values of exactly one Python type become bytes, and back."""

    kind: type
    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]


def to_bytes(item: Any, serde: Serde | None) -> bytes | None:
    """The bytes of ``item``; None stays None. Without a serde the item is bytes already.

    Raises:
        InputError: The item is not of the serde's type.
    """
    if serde is None or item is None:
        unchanged: bytes | None = item
        return unchanged
    direct = _direct(serde)
    try:
        if direct is not None and type(item) is direct.kind:
            return direct.encode(item)
        array = pa.array([as_struct(item)], serde.arrow_type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError, struct.error) as error:
        raise InputError(f"{item!r} is no value of type {serde.arrow_type}: {error}") from error
    raw: bytes = serde.serialize(array)[0].as_py()
    return raw


def as_struct(item: Any) -> Any:
    """A named tuple, such as ``Windowed``, as the dict that Arrow makes a struct of; anything else as it is."""
    if isinstance(item, tuple) and hasattr(item, "_asdict"):
        return {name: as_struct(part) for name, part in item._asdict().items()}
    return item


def from_bytes(raw: bytes | None, serde: Serde | None) -> Any:
    """The value of which ``raw`` are the bytes.

    Raises:
        InputError: They are not those of a value; what else the serde raises.
    """
    if serde is None or raw is None:
        return raw
    direct = _direct(serde)
    if direct is not None:
        try:
            return direct.decode(raw)
        except (ValueError, struct.error):
            pass  # the serde says what is wrong
    return serde.deserialize(pa.array([raw], pa.binary()))[0].as_py()


def encoder(serde: Serde | None) -> Callable[[Any], bytes | None]:
    """`to_bytes` for one serde: the way is found once, not for each item."""
    direct = None if serde is None else _direct(serde)
    if direct is None:
        return lambda item: to_bytes(item, serde)
    kind, encode, _ = direct

    def encoded(item: Any) -> bytes | None:
        if type(item) is kind:
            try:
                return encode(item)
            except (ValueError, struct.error):
                pass  # to_bytes says what is wrong
        return to_bytes(item, serde)

    return encoded


def decoder(serde: Serde | None) -> Callable[[bytes], Any]:
    """`from_bytes` for one serde: the way is found once, not for each value."""
    direct = None if serde is None else _direct(serde)
    if direct is None:
        return lambda raw: from_bytes(raw, serde)
    decode = direct.decode
    if isinstance(serde, FixedWidthSerde):
        unpack = struct.Struct(_STRUCTS[serde.arrow_type]).unpack  # one call less: most of a look-up are calls

        def number(raw: bytes) -> Any:
            try:
                return unpack(raw)[0]
            except struct.error:
                return from_bytes(raw, serde)

        return number

    def decoded(raw: bytes) -> Any:
        try:
            return decode(raw)
        except (ValueError, struct.error):
            return from_bytes(raw, serde)

    return decoded


def _direct(serde: Serde) -> _Direct | None:
    return _direct_of(serde) if isinstance(serde, (StringSerde, BytesSerde, FixedWidthSerde)) else None


@lru_cache
def _direct_of(serde: StringSerde | BytesSerde | FixedWidthSerde) -> _Direct | None:
    if isinstance(serde, StringSerde):
        return _Direct(str, str.encode, bytes.decode)
    if isinstance(serde, BytesSerde):
        return _Direct(bytes, bytes, bytes)
    if serde.arrow_type not in _STRUCTS:
        return None
    number = struct.Struct(_STRUCTS[serde.arrow_type])
    kind = float if pa.types.is_floating(serde.arrow_type) else int
    return _Direct(kind, number.pack, lambda raw: number.unpack(raw)[0])
