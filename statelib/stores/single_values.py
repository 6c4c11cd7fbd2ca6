"""One Python value at a time through a serde: what the point access of stores is made of, the slow way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from statelib.errors import InputError

if TYPE_CHECKING:
    from statelib.serdes import Serde


def to_bytes(item: Any, serde: Serde | None) -> bytes | None:
    """The bytes of ``item``; None stays None. Without a serde the item is bytes already.

    Raises:
        InputError: The item is not of the serde's type.
    """
    if serde is None or item is None:
        raw: bytes | None = item
    else:
        try:
            array = pa.array([item], serde.arrow_type)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise InputError(f"{item!r} is no value of type {serde.arrow_type}: {error}") from error
        raw = serde.serialize(array)[0].as_py()
    return raw


def from_bytes(raw: bytes | None, serde: Serde | None) -> Any:
    """The value of which ``raw`` are the bytes."""
    if serde is None or raw is None:
        return raw
    return serde.deserialize(pa.array([raw], pa.binary()))[0].as_py()
