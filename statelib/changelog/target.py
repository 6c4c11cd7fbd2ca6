"""A store that is restored from its changelog, and what each kind of store has to do for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from statelib.documents.manifests import StoreDescription
    from statelib.settings.semantics import Semantics
    from statelib.stores.backend import Backend, WriteBatch
    from statelib.stores.byte_columns import Column


@dataclass(frozen=True, slots=True)
class Target:
    """What is restored, as `statelib.changelog.restore.restore` is told."""

    store: StoreDescription
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


class Restoring(Protocol):
    """A store that is being restored."""

    def put(self, keys: Column, values: pa.Array, timestamp: NDArray[np.int64], write: WriteBatch) -> None:
        """Adds some records to ``write``, which is carried out before the next ones."""

    def finish(self, write: WriteBatch) -> None:
        """Adds what the end of the changelog brings."""
