"""What nodes forwarded while a task was replayed: the rows that may matter."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.operators.mappers.fields import columns_for
from statelib.operators.mappers.mapping import evaluate
from statelib.serdes import serde_for

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from statelib.operators.deduplication.operator import DeduplicateSpec
    from statelib.records.batch import Batch
    from statelib.records.key_column import KeyColumn

RowKey = tuple[bytes | None, int | None]
"""The bytes of a plain key, and the start of its window."""

Id = tuple[bytes | None, ...] | None
"""What a deduplication compares; None: a record that has none."""


def key_bytes(keys: KeyColumn) -> pa.Array:
    """The bytes of each plain key (binary)."""
    found = keys.without_windows.serialized()
    return (found.dictionary_decode() if isinstance(found, pa.DictionaryArray) else found).cast(pa.binary())


@dataclass
class Rows:
    """Rows of one node, in order.

    Attributes:
        batches: They, with the sequences of the source records that caused them.
    """

    batches: list[Batch] = field(default_factory=list)

    def __len__(self) -> int:
        return sum(map(len, self.batches))

    @cached_property
    def sequence(self) -> NDArray[np.int64]:
        """int64."""
        return self._numbers([batch.sequence for batch in self.batches])

    @cached_property
    def timestamp(self) -> NDArray[np.int64]:
        """int64, ms."""
        return self._numbers([batch.timestamp for batch in self.batches])

    @cached_property
    def keys(self) -> list[RowKey]:
        """Of each row."""
        found: list[RowKey] = []
        for batch in self.batches:
            found += row_keys(batch)
        return found

    @cached_property
    def ends(self) -> list[int | None]:
        """The end of each window."""
        return [
            end
            for batch in self.batches
            for end in ([None] * len(batch) if batch.windows is None else batch.windows.end.tolist())
        ]

    @cached_property
    def by_sequence(self) -> dict[int, list[int]]:
        """The rows that each source record caused."""
        found: dict[int, list[int]] = {}
        for row, sequence in enumerate(self.sequence.tolist()):
            found.setdefault(sequence, []).append(row)
        return found

    @cached_property
    def by_key(self) -> dict[bytes | None, NDArray[np.int64]]:
        """The rows of each plain key, ascending."""
        found: dict[bytes | None, list[int]] = {}
        for row, (key, _) in enumerate(self.keys):
            found.setdefault(key, []).append(row)
        return {key: np.array(rows, np.int64) for key, rows in found.items()}

    @staticmethod
    def _numbers(columns: list[NDArray[np.int64]]) -> NDArray[np.int64]:
        return np.concatenate([np.empty(0, np.int64), *columns])


def row_keys(batch: Batch) -> list[RowKey]:
    """The key of each row."""
    starts = [None] * len(batch) if batch.windows is None else batch.windows.start.tolist()
    return list(zip(key_bytes(batch.keys).to_pylist(), starts, strict=True))


def ids_of(node: str, spec: DeduplicateSpec, batch: Batch) -> list[Id]:
    """What makes each record of a batch a duplicate of others; None: it has no id."""
    keys = key_bytes(batch.keys).to_pylist()
    if spec.id is None:
        return [None if key is None else (key,) for key in keys]
    ids = evaluate(spec.id, columns_for(spec.id, batch), node, batch.sequence)
    found = (spec.id_serde or serde_for(ids.type)).serialize(ids).to_pylist()
    if spec.kind == "by_id":
        return [None if one is None else (one,) for one in found]
    return [None if None in pair else pair for pair in zip(keys, found, strict=True)]


class Watch:
    """Keeps the rows of some keys or ids, and those that some source records caused; a `Tap`.

    Args:
        keys: The bytes of plain keys.
        sequences: int64, of source records.
        ids: By the parent of a deduplication: its name, its parameters, the ids.
    """

    def __init__(
        self,
        keys: set[bytes | None],
        sequences: NDArray[np.int64],
        ids: Mapping[str, tuple[str, DeduplicateSpec, set[Id]]],
    ) -> None:
        self._ids = ids
        self._keys = pa.array(sorted(key for key in keys if key is not None), pa.binary())
        self._sequences = sequences
        self.rows: dict[str, Rows] = {}

    def __call__(self, node: str, batch: Batch) -> None:
        """See `Tap`."""
        rows = self.rows.setdefault(node, Rows())
        if not len(batch):
            return
        keep = np.isin(batch.sequence, self._sequences)
        if len(self._keys):
            keep |= pc.is_in(key_bytes(batch.keys), self._keys).to_numpy(zero_copy_only=False)
        if node in self._ids:
            name, spec, wanted = self._ids[node]
            keep |= np.array([found in wanted for found in ids_of(name, spec, batch)])
        if keep.any():
            rows.batches.append(batch.take(np.flatnonzero(keep)))


def look_away(node: str, batch: Batch) -> None:
    """A `Tap` that keeps nothing."""
    del node, batch
