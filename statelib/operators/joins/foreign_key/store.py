"""The subscription store of a foreign-key join: the rows that refer to each key (bytes: `codec`, beside it).

Written blindly, without looking at what is there; read by foreign key, in the order of the bytes of primary keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import valid_of
from statelib.operators.joins.foreign_key.codec import FORMAT_VERSION, decode_value, encode_prefix, encode_values
from statelib.stores.backend import end_of_prefix
from statelib.stores.header import Header

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from statelib.stores.backend import Backend, WriteBatch


@dataclass(frozen=True, slots=True)
class StoredSubscriptions:
    """Subscriptions as columns of one length.

    Attributes:
        keys: binary, as `statelib.operators.joins.foreign_key.codec.encode_key` makes them.
        number: int64, of the change that each is from.
        rows: binary, the referring rows; null: the subscription is gone.
    """

    keys: pa.Array
    number: NDArray[np.int64]
    rows: pa.Array


class SubscriptionStore:
    """See the module's docstring.

    Args:
        backend: Where the families are.
        name: Of the store; its families are ``families(name)``.

    Raises:
        ConfigurationError: The store was written in another format.
        CorruptedDataError: Its header cannot be read.
    """

    def __init__(self, backend: Backend, name: str) -> None:
        self._backend = backend
        self.name = name
        self._family, header = self.families(name)
        self.header = Header(backend, header, FORMAT_VERSION, name)

    @staticmethod
    def families(name: str) -> tuple[str, str]:
        """The backend families of the store called ``name``: the subscriptions, and the header."""
        return name, f"{name}.header"

    @property
    def is_empty(self) -> bool:
        """Whether there is no subscription at all."""
        return self._backend.is_empty(self._family)

    def load(self, foreign_keys: Sequence[bytes]) -> tuple[StoredSubscriptions, NDArray[np.int64]]:
        """The subscriptions of ``foreign_keys`` (serialised, each once), and int64, how many each has."""
        keys: list[bytes] = []
        numbers: list[int] = []
        rows: list[bytes] = []
        counts = np.zeros(len(foreign_keys), dtype=np.int64)
        for index, foreign_key in enumerate(foreign_keys):
            prefix = encode_prefix(foreign_key)
            for key, raw in self._backend.scan(self._family, prefix, end_of_prefix(prefix)):
                number, row = decode_value(raw, self.name)
                keys.append(key)
                numbers.append(number)
                rows.append(row)
            counts[index] = len(keys)
        counts[1:] -= counts[:-1].copy()
        found = StoredSubscriptions(
            pa.array(keys, pa.binary()), np.array(numbers, dtype=np.int64), pa.array(rows, pa.binary())
        )
        return found, counts

    def store(self, changed: StoredSubscriptions, schema: pa.Schema, write: WriteBatch) -> None:
        """Adds changes to ``write``.

        Args:
            changed: The subscriptions, each once.
            schema: The type of a row.
            write: The batch that also carries the task's position.
        """
        self.header.write(schema, write)
        there = valid_of(changed.rows)
        put, deleted = pa.array(there), pa.array(~there)
        values = encode_values(changed.number[there], changed.rows.filter(put))
        write.put_columns(self._family, changed.keys.filter(put), values)
        write.delete_columns(self._family, changed.keys.filter(deleted))
