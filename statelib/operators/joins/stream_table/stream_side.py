"""The stream's side of its joins with tables: under which key a record is looked up, what goes on, what is counted.

Kafka's ``KStreamKTableJoinProcessor``, which all of them share: a record with a null value is dropped. One without a
match, or with a null key, is dropped by an inner join and joined with null by a left join (KIP-962). The key is the
record's, or for a global table what a mapper makes of the record.

The ledger counts the stream's records; updates are in that of the table. Accounts: ``joined``, ``unmatched``,
``null-key`` (both forwarded by left joins), ``null-value``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import valid_of
from statelib.operators.base import StorelessSpec
from statelib.operators.key_codes import key_codes
from statelib.operators.key_types import check_types
from statelib.operators.mappers.fields import ALL, NONE, both, columns_for, fields_of_mapper, pruned, reads_key
from statelib.records.batch import NULL_KEY
from statelib.records.key_column import KeyColumn, window_columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from statelib.operators.asking import Asking
    from statelib.operators.base import OperatorContext
    from statelib.operators.mappers.fields import Fields
    from statelib.operators.mappers.mapping import Mapper
    from statelib.records.batch import Batch


class StreamSideSpec(StorelessSpec):
    """Base of the parameters of such joins; the store belongs to the table.

    Attributes:
        joiner: Makes the result's value from the columns ``key``, ``left``, ``right``, ``timestamp``; where there is a
            ``key``, what it gives is the column ``mapped_key`` (KIP-1340).
        left: Whether records without a match go on, with a null ``right``.
        key: Makes the table's key of a record (global tables); None: it is the record's.
    """

    __slots__ = ()
    joiner: Mapper
    left: bool
    key: Mapper | None

    @property
    def takes_null_keys(self) -> bool:
        """Whether records without a key give results (KIP-962)."""
        return self.left

    def reads(self, parent: int, wanted: Fields) -> Fields:
        """See `FieldsSpec`: of the stream's values; the table's are kept whole."""
        joiner = pruned(self.joiner, wanted)
        return ALL if parent else both([fields_of_mapper(joiner, "left"), fields_of_mapper(self.key)])


class StreamSide:
    """See the module's docstring."""

    def __init__(self, context: OperatorContext, spec: StreamSideSpec) -> None:
        self._context = context
        self._joiner = pruned(spec.joiner, context.wanted)
        self._left = spec.left
        self._key = spec.key

    def keys_of(self, stream: Batch, table: Batch, asking: Asking) -> tuple[KeyColumn, NDArray[np.int64]]:
        """The key under which each record is looked up, and its code; ``asking``: about the records.

        Raises:
            ConfigurationError: Keys of this type cannot be the table's: none would ever be found.
        """
        node = self._context.node
        if self._key is None:
            what = "the stream's keys are of type {}, the table's of type {}: none would ever be found"
            way_round = "bring the keys of the one to the other's type with select_key() before"
            check_types(stream.keys.type, table.keys.type, node=node, what=what, way_round=way_round)
            return stream.keys, key_codes(stream, self._context)
        key = KeyColumn(asking.evaluate(self._key, columns_for(self._key, stream)))
        what = "the join looks for keys of type {}, the table's are of type {}"
        way_round = f"cast what the key mapper gives to {table.keys.type}"
        check_types(key.type, table.keys.type, node=node, what=what, way_round=way_round)
        return key, self._context.keys.encode(key.serialized())

    def joined(self, stream: Batch, key: KeyColumn, codes: NDArray[np.int64], right: pa.Array, asking: Asking) -> Batch:
        """What goes on, with the stream's keys, timestamps and headers.

        Args:
            stream: The records.
            key: The key under which each was looked up.
            codes: int64, the code of the key of each.
            right: What the table has for it; null: nothing.
            asking: About the records: those for which a function fails go no further.
        """
        has_value = valid_of(stream.value)
        usable = has_value if self._left else has_value & (codes != NULL_KEY)
        matched = valid_of(right) & usable & (codes != NULL_KEY)
        emitted = (usable if self._left else matched) & ~asking.failed
        left = stream.filter(emitted)

        def of_left(column: pa.Array) -> pa.Array:
            return column if len(left) == len(stream) else column.filter(pa.array(emitted))

        columns = {
            "left": left.value,
            "right": of_left(right),
            "timestamp": pa.array(left.timestamp),
        }
        if reads_key(self._joiner):
            columns["key"] = left.key
        if self._key is not None and fields_of_mapper(self._joiner, "mapped_key") != NONE:
            columns["mapped_key"] = of_left(key.plain)
        columns |= window_columns(left.keys)
        about_left = asking.among(emitted)
        left = replace(left, value=about_left.evaluate(self._joiner, pa.RecordBatch.from_pydict(columns)), prior=None)
        asking.failed[emitted] = about_left.failed
        if asking.failed.any():
            left = left.filter(~about_left.failed)
            usable, matched, has_value = (of & ~asking.failed for of in (usable, matched, has_value))
        metrics = self._context.metrics
        metrics.records_in += len(stream)
        metrics.records_out += len(left)
        null_key = has_value & (codes == NULL_KEY)
        metrics.account("joined", int(np.count_nonzero(matched)))
        metrics.account("unmatched", int(np.count_nonzero(usable & ~matched & ~null_key)))
        metrics.account("null-key", int(np.count_nonzero(null_key & usable)))
        metrics.drop("null-key", int(np.count_nonzero(null_key & ~usable)))
        metrics.drop("null-value", int(np.count_nonzero(~valid_of(stream.value) & ~asking.failed)))
        return left
