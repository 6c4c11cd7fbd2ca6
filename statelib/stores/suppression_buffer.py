"""The suppression buffer's store: what suppress holds back between two runs, by key and in order of buffer time.

The whole buffer is in memory while a slice runs; the index by time lets it be read from the oldest key on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.errors import CorruptedDataError
from statelib.stores.header import Header
from statelib.stores.suppression_codec import (
    FORMAT_VERSION,
    BufferedRow,
    BufferKey,
    decode,
    encode_key,
    encode_time_key,
    encode_value,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from statelib.stores.backend import Backend, WriteBatch


class SuppressionBufferStore:
    """See the module's docstring.

    Args:
        backend: Where the families are.
        name: Of the store; its families are ``families(name)``.
        suffix_words: How many integers follow the key's bytes in a buffer key.

    Raises:
        ConfigurationError: The store was written in another format.
        CorruptedDataError: Its header cannot be read.
    """

    def __init__(self, backend: Backend, name: str, *, suffix_words: int) -> None:
        self._backend = backend
        self._name = name
        self._rows, self._by_time = self.families(name)
        self._suffix_words = suffix_words
        self.header = Header(backend, self._by_time, FORMAT_VERSION, name)

    @staticmethod
    def families(name: str) -> tuple[str, str]:
        """The backend families of the store called ``name``: the rows, and their index by time."""
        return name, f"{name}.by-time"

    def all(self) -> Iterator[BufferedRow]:
        """All that is held, by buffer key."""
        for raw_key, raw_value in self._backend.scan(self._rows):
            yield decode(raw_key, raw_value, self._suffix_words, self._name)

    def oldest(self) -> Iterator[BufferedRow]:
        """All that is held, in the order in which it leaves."""
        for raw, _ in self._backend.scan(self._by_time, encode_time_key(0, b"")):
            raw_key = raw[8:]
            raw_value = self._backend.get(self._rows, raw_key)
            if raw_value is None:
                raise CorruptedDataError("a suppression buffer's index names a key that is not there", store=self._name)
            yield decode(raw_key, raw_value, self._suffix_words, self._name)

    def store(
        self,
        removed: Iterable[tuple[BufferKey, int]],
        moved: Iterable[tuple[BufferKey, int]],
        changed: Iterable[BufferedRow],
        schema: pa.Schema,
        write: WriteBatch,
    ) -> None:
        """Adds what has changed to ``write``.

        Args:
            removed: Keys that have left, with the buffer time under which they were stored, ms.
            moved: Keys that have another buffer time now, with the stored one, ms.
            changed: Keys that are new or have another row, after all changes.
            schema: The types of a row.
            write: The batch that also carries the task's position.
        """
        self.header.write(schema, write)
        for key, time_ms in removed:
            raw_key = encode_key(key, self._suffix_words)
            write.delete(self._rows, raw_key)
            write.delete(self._by_time, encode_time_key(time_ms, raw_key))
        for key, time_ms in moved:
            write.delete(self._by_time, encode_time_key(time_ms, encode_key(key, self._suffix_words)))
        for buffered in changed:
            raw_key = encode_key(buffered.key, self._suffix_words)
            write.put(self._rows, raw_key, encode_value(buffered))
            write.put(self._by_time, encode_time_key(buffered.time_ms, raw_key), b"")
