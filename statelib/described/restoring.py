"""A store that is restored from its changelog, and what each kind of store has to do for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np
import pyarrow as pa

from statelib.records.key_table import KeyTable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from statelib.described.description import StoreFacts
    from statelib.settings.semantics import Semantics
    from statelib.stores.backend import Backend, WriteBatch
    from statelib.stores.byte_columns import Column


@dataclass(frozen=True, slots=True)
class Target:
    """What is restored, as `statelib.changelog.restore.restore` is told."""

    store: StoreFacts
    schema: pa.Schema
    backend: Backend
    clock_ms: int
    clocks: Mapping[str, int]
    semantics: Semantics
    takes_late: bool

    @property
    def row(self) -> pa.Schema:
        """The columns of a stored row: those of the aggregation, else the value alone."""
        if "row" in self.schema.names:
            return pa.schema(list(self.schema.field("row").type))
        return pa.schema([("value", self.schema.field("value").type)])

    @property
    def has_run(self) -> bool:
        """Whether the node has ever run: then its store has a header, though nothing may be in it."""
        return bool(self.clocks)


class Restoring(Protocol):
    """A store that is being restored; each kind of store has one."""

    only_last: ClassVar[bool] = True
    """Whether the last record of each key is all that counts: then `put` is given no others."""

    def put(self, keys: Column, values: pa.Array, timestamp: NDArray[np.int64], write: WriteBatch) -> None:
        """Adds some records to ``write``, which is carried out before the next ones."""

    def finish(self, write: WriteBatch) -> None:
        """Adds what the end of the changelog brings."""


def last_of_each(keys: Column) -> NDArray[np.int64]:
    """int64, ascending: the place of the last record of each key."""
    codes = KeyTable().encode(keys)
    _, from_end = np.unique(codes[::-1], return_index=True)
    last: NDArray[np.int64] = np.sort(len(codes) - 1 - from_end)
    return last
