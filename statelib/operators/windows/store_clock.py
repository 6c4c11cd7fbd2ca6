"""The clock of a window or session store that stands for itself, beside its data.

(That of a windowed aggregation is in the task's position.) Family ``<store>.clock``, one entry, under the key 0x00::

    value  +-------------+----------------------+
           | format u8   | stream time i64, ms  |
           +-------------+----------------------+
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from statelib.errors.kinds import ConfigurationError, CorruptedDataError
from statelib.records.batch import NO_TIMESTAMP

if TYPE_CHECKING:
    from statelib.stores.backend import Backend, WriteBatch

FORMAT_VERSION = 1

_KEY = b"\x00"
_CLOCK = struct.Struct(">Bq")


class StoreClock:
    """A clock as it is stored.

    Args:
        backend: Where the family is.
        store: Name of the store.

    Raises:
        ConfigurationError: The clock was written in another format.
        CorruptedDataError: It cannot be read.
    """

    def __init__(self, backend: Backend, store: str) -> None:
        self._family = self.family(store)
        raw = backend.get(self._family, _KEY)
        self.stream_time = NO_TIMESTAMP if raw is None else decode_clock(raw, store)

    @staticmethod
    def family(store: str) -> str:
        """The backend family of the clock of ``store``."""
        return f"{store}.clock"

    def advance(self, stream_time: int, write: WriteBatch) -> None:
        """Adds the clock to ``write`` if it has moved."""
        if stream_time > self.stream_time:
            self.stream_time = stream_time
            write.put(self._family, _KEY, encode_clock(stream_time))


def encode_clock(stream_time: int) -> bytes:
    """The clock's bytes."""
    return _CLOCK.pack(FORMAT_VERSION, stream_time)


def decode_clock(raw: bytes, store: str) -> int:
    """The stream time in ms.

    Raises:
        ConfigurationError: Another format.
        CorruptedDataError: No clock.
    """
    if raw and raw[0] != FORMAT_VERSION:
        raise ConfigurationError(
            f"the store's clock is written in format {raw[0]}, and this release reads format {FORMAT_VERSION}",
            store=store,
            next_step="use the release that wrote it, or migrate the state",
        )
    if len(raw) != _CLOCK.size:
        raise CorruptedDataError(f"a store's clock has {len(raw)} bytes", store=store)
    stream_time: int = _CLOCK.unpack(raw)[1]
    return stream_time
