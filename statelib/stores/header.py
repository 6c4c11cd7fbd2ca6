"""The header record of a store: which version of its format it is written in, and the Arrow types of what it holds.

A store whose payload is serialised rows keeps one header in one of its families, under the key ``HEADER_KEY``, which
is shorter than all others there, so that the family can be read without the topology that wrote it::

    +--------------------+------------------------------------------------+
    | format version u8  | Arrow schema, as an IPC message                |
    +--------------------+------------------------------------------------+

The schema's fields are the columns of a row. An unknown version is refused; a store of a version that is still written
keeps it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from statelib.errors.kinds import ConfigurationError, CorruptedDataError

if TYPE_CHECKING:
    from collections.abc import Collection

    from statelib.stores.backend import Backend, WriteBatch

HEADER_KEY = b"\x00"


def encode_header(version: int, schema: pa.Schema) -> bytes:
    """The header's bytes."""
    message: bytes = schema.remove_metadata().serialize().to_pybytes()
    return bytes([version]) + message


def decode_header(raw: bytes, versions: Collection[int], store: str) -> tuple[int, pa.Schema]:
    """The version of a header, and its schema.

    Raises:
        ConfigurationError: The store was written in another format than one of ``versions``.
        CorruptedDataError: The header is not one.
    """
    if not raw:
        raise CorruptedDataError("a store's header is empty", store=store)
    if raw[0] not in versions:
        readable = " and ".join(map(str, sorted(versions)))
        raise ConfigurationError(
            f"the store is written in format {raw[0]}, and this release reads format {readable}",
            store=store,
            next_step="use the release that wrote it, or migrate the state",
        )
    try:
        return raw[0], pa.ipc.read_schema(pa.py_buffer(raw[1:]))
    except (pa.ArrowException, OSError, EOFError) as error:
        raise CorruptedDataError(f"a store's header cannot be read: {error}", store=store) from error


class Header:
    """The header of one store: read once, written once.

    Args:
        backend: Where the family is.
        family: The family that holds the header.
        version: The format that the caller reads and writes.
        store: Name of the store, for errors.
        others: Formats that the caller reads and writes where a store is in one of them.
    """

    def __init__(
        self, backend: Backend, family: str, version: int, store: str, *, others: Collection[int] = ()
    ) -> None:
        self._family = family
        self._store = store
        self.version = version
        """The format of the store."""
        self.schema: pa.Schema | None = None
        """The types of a row; None: nothing was ever written."""
        raw = backend.get(family, HEADER_KEY)
        if raw is not None:
            self.version, self.schema = decode_header(raw, {version, *others}, store)

    def check(self, schema: pa.Schema) -> None:
        """Refuses rows of other types than those in the store.

        Raises:
            ConfigurationError: ``schema`` differs from the stored one.
        """
        if self.schema is not None and self.schema != schema.remove_metadata():
            raise ConfigurationError(
                f"the types of a store's rows have changed: stored ({named(self.schema)}), now ({named(schema)})",
                store=self._store,
                next_step="bring the records to the old type with map_values(), or start the job over",
            )

    def write(self, schema: pa.Schema, write: WriteBatch) -> None:
        """Adds the header to ``write`` unless it is stored already."""
        if self.schema is None:
            self.schema = schema.remove_metadata()
            write.put(self._family, HEADER_KEY, encode_header(self.version, schema))

    def change(self, version: int, schema: pa.Schema, write: WriteBatch) -> None:
        """Adds the header to ``write`` if the store is not in that format yet: it is from now on."""
        if self.schema is None or self.version != version:
            self.version, self.schema = version, schema.remove_metadata()
            write.put(self._family, HEADER_KEY, encode_header(version, self.schema))


def named(schema: pa.Schema) -> str:
    """Names and types in one line."""
    return ", ".join(f"{field.name}: {field.type}" for field in schema)
