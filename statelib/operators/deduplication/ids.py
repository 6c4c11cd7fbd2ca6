"""The ids that a deduplication compares: their codes, and the bytes under which the store has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from statelib.columns.windowed_type import archived
from statelib.operators.deduplication.codec import parts_of_ids
from statelib.operators.key_codes import key_codes
from statelib.operators.mappers.fields import columns_for
from statelib.operators.mappers.mapping import evaluate
from statelib.records.key_table import KeyTable
from statelib.serdes import serde_for
from statelib.stores.byte_columns import joined

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from statelib.operators.base import OperatorContext
    from statelib.operators.mappers.mapping import Mapper
    from statelib.records.batch import Batch
    from statelib.serdes import Serde
    from statelib.stores.byte_columns import Column, Spans


Kind = Literal["by_key", "by_key_value", "by_id"]
"""What makes two records duplicates: the key, key and id, or the id."""


class DeduplicationIds:
    """The ids seen since the last flush, by code.

    The ids of ``by_key`` are the task's record keys and have the same codes, unless a serde says otherwise. Those of
    ``by_key_value`` are told apart by the code of the key and the bytes of the id: the two are only joined for what is
    looked up or written.

    Args:
        kind: What makes two records duplicates.
        id: Gives the id; None for ``by_key``.
        serde: Gives the bytes in which ids are compared and stored; None: `serde_for` their type.
        context: The operator's.
    """

    def __init__(self, kind: Kind, id: Mapper | None, serde: Serde | None, context: OperatorContext) -> None:  # noqa: A002
        self._id = id
        self._serde = serde
        self._context = context
        self._has_keys = kind == "by_key_value"
        self._own = KeyTable(scoped=self._has_keys)
        self.are_keys = kind == "by_key" and serde is None
        """Whether the ids are the task's keys; the task alone forgets those."""

    def __len__(self) -> int:
        return len(self._context.keys if self.are_keys else self._own)

    def encode(self, batch: Batch) -> NDArray[np.int64]:
        """int64: the code of each record's id, `NULL_KEY` for a null one."""
        context = self._context
        if self.are_keys:
            return key_codes(batch, context)
        ids = (
            archived(batch.keys.array)
            if self._id is None
            else evaluate(self._id, columns_for(self._id, batch), context.node, batch.sequence)
        )
        scopes = key_codes(batch, context) if self._has_keys else None
        return self._own.encode((self._serde or serde_for(ids.type)).serialize(ids), scopes)

    def take(self, codes: NDArray[np.int64]) -> Column:
        """The id bytes of ``codes``, of which none is null."""
        return joined(*self.parts(codes))

    def parts(self, codes: NDArray[np.int64]) -> tuple[Spans, ...]:
        """What `joined` makes `take` of; good as long as no id is added or forgotten."""
        if self.are_keys:
            return (self._context.keys.spans(codes),)
        ids = self._own.spans(codes)
        if not self._has_keys:
            return (ids,)
        return parts_of_ids(self._context.keys.spans(self._own.scopes[codes]), ids)

    def keep(self, codes: NDArray[np.int64]) -> None:
        """Forgets all ids but those of ``codes`` (int64, ascending), now 0, 1, 2, ...; not where `are_keys`."""
        self._own.keep(codes)

    def clear(self) -> None:
        """Forgets all ids; the task forgets the keys at the same time."""
        self._own.clear()

    def memory_bytes(self, more: int) -> int:
        """What they take, or will with so many more, except for the task's keys."""
        return 0 if self.are_keys else self._own.memory_bytes(more)
