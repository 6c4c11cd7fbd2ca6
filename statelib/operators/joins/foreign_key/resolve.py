"""The end of a foreign-key join: the answers to a row of the left table, without those that were overtaken (KIP-213).

(Kafka's ``ResponseJoinProcessorSupplier``.) When the foreign key of a row changes, the row is answered from another
place than before. An answer that is still on its way from the old place must not overwrite the one from the new place:
it is *stale*. Kafka tells by the hash of the row; here each answer has the number of the row's change that it is to
(`statelib.operators.joins.foreign_key.subscribe`), and one that comes after an answer to a younger change is stale.

An answer for which the joiner has failed (`failed_number`) goes no further; it may be stale, too. The record that has
caused it has been set aside where it was joined.

Accounts: ``forwarded``, ``stale``, ``failed``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.columns.growing import grown
from statelib.operators.aggregation.key_slots import KeySlots
from statelib.operators.joins.foreign_key.kernel import not_overtaken
from statelib.operators.key_codes import key_codes
from statelib.operators.tables.store import KeyValueStore
from statelib.operators.tables.stored_latest import Found, StoredPlain
from statelib.stores.spec import StoreSpec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from statelib.operators.base import OperatorContext
    from statelib.records.batch import Batch, Uptake
    from statelib.stores.backend import WriteBatch

_NO_NUMBER = -1


def failed_number(number: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64: what an answer for which the joiner has failed has for the number of a change; and the other way round."""
    return ~number


def have_failed(answers: Batch) -> NDArray[np.bool_]:
    """bool, of answers: for which the joiner has failed."""
    failed: NDArray[np.bool_] = np.asarray(pc.struct_field(answers.value, ["number"])) < 0
    return failed


@dataclass(frozen=True, slots=True)
class ForeignKeyResolve:
    """Drops stale answers.

    Attributes:
        store: Name of the store that has, of each primary key, the number of the youngest change that was answered.
    """

    store: str

    def build(self, context: OperatorContext) -> RunningForeignKeyResolve:
        """The running operator."""
        return RunningForeignKeyResolve(self, context)

    def describe(self) -> Mapping[str, object]:
        """Kind and store."""
        return {"operator": "foreign_key_resolve", "store": self.store}

    def state_stores(self) -> Sequence[StoreSpec]:
        """The store's."""
        return (StoreSpec(self.store, "foreign-key-answers", KeyValueStore.families(self.store)),)


class RunningForeignKeyResolve:
    """The running operator: the youngest numbers of the keys named since the last flush, as arrays by slot."""

    def __init__(self, spec: ForeignKeyResolve, context: OperatorContext) -> None:
        self._spec = spec
        self._context = context
        self._changelog = context.changelogs.get(spec.store)
        self._stored: StoredPlain | None = None
        self._start_over()

    def _start_over(self) -> None:
        self._slots = KeySlots()
        self._number = np.empty(0, dtype=np.int64)
        self._since = np.empty(0, dtype=np.int64)

    def process(self, inputs: Sequence[Batch], uptake: Uptake) -> Batch:
        """The joined values as updates of a table."""
        del uptake
        (responses,) = inputs
        codes = key_codes(responses, self._context)
        slots = self._slots_of(codes)
        told, failed = np.asarray(pc.struct_field(responses.value, ["number"])), have_failed(responses)
        number = np.where(failed, failed_number(told), told)
        keep = np.empty(len(responses), dtype=np.bool_)
        not_overtaken(slots, number, self._number, keep)
        self._since[slots[keep]] = responses.timestamp[keep]
        if self._changelog is not None:
            answered = responses.filter(keep)
            self._changelog.add(answered.keys.serialized(), pa.array(number[keep]), answered.timestamp)
        kept = replace(responses, key_code=codes).filter(keep & ~failed)
        metrics = self._context.metrics
        metrics.records_in += len(responses)
        metrics.records_out += len(kept)
        metrics.account("forwarded", len(kept))
        metrics.drop("stale", int(np.count_nonzero(~keep)))
        metrics.account("failed", int(np.count_nonzero(keep & failed)))
        return replace(kept, value=pc.struct_field(kept.value, ["value"]))

    def flush(self, write: WriteBatch) -> None:
        """Writes the numbers."""
        if self._stored is not None and len(self._slots):
            keys = self._context.keys.take(self._slots.key_code)
            count = len(self._slots)
            self._stored.put(keys, Found(pa.array(self._number[:count]), self._since[:count]), write)
        self._stored = None
        self._start_over()

    def memory_bytes(self) -> int:
        """Size of the working set."""
        return self._slots.memory_bytes() + self._number.nbytes + self._since.nbytes

    def _slots_of(self, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """The slots of keys; numbers of those that are named for the first time are looked up."""
        if self._stored is None:  # opened here, after the last flush has been written
            self._stored = StoredPlain(self._context, self._spec.store, pa.int64())
        known = len(self._slots)
        slots = self._slots.find(codes)
        self._number = grown(self._number, len(self._slots), _NO_NUMBER)
        self._since = grown(self._since, len(self._slots))
        new = self._slots.key_code[known:]
        if len(new) and not self._stored.is_empty:
            found = self._stored.load(self._context.keys.take(new).to_pylist())
            self._number[known : len(self._slots)] = np.asarray(found.value.fill_null(_NO_NUMBER))
            self._since[known : len(self._slots)] = found.timestamp
        return slots
