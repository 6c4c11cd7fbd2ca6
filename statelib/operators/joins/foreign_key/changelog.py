"""What a foreign-key join logs: its subscriptions, and the numbers of its answers.

Subscriptions have Kafka's keys and timestamps, and deletions where Kafka has them. Their values are ours, since the row
itself travels here (`statelib.operators.joins.foreign_key.subscribe`)::

    key    as `statelib.operators.joins.foreign_key.codec` has it (Kafka's ``CombinedKeySchema``)
    value  as it has it too: number, row; Kafka's ``SubscriptionWrapper`` has a hash of the row
    time   of the left row's change

The numbers of the answers (`statelib.operators.joins.foreign_key.resolve`), which Kafka has no store for, are logged as
any table: the primary key, the number i64, the answer's timestamp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import valid_of
from statelib.columns.scatter import scatter
from statelib.described.exporting import PairsExporter, Records
from statelib.described.live_format import LiveKeys
from statelib.described.restoring import Restoring
from statelib.errors.kinds import ConfigurationError
from statelib.operators.joins.foreign_key.codec import decode_keys, decode_values
from statelib.operators.joins.foreign_key.store import StoredSubscriptions, SubscriptionStore
from statelib.operators.joins.foreign_key.subscribe import Instruction
from statelib.operators.joins.foreign_key.subscription_wrapper import encode
from statelib.stores.byte_columns import joined, packed
from statelib.stores.column_scan import scan_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from statelib.described.description import Described
    from statelib.described.exporting import Share
    from statelib.described.live_format import StoreFormat
    from statelib.described.restoring import Target
    from statelib.stores.backend import WriteBatch
    from statelib.stores.byte_columns import Column

    Partitioner = Callable[[pa.Array, int], NDArray[np.int32]]
    """The partition of each of some keys, given how many there are."""


class SubscriptionExporter(PairsExporter):
    """The subscriptions of a foreign-key join, in the order of their keys.

    The hash of a referring row is that of the bytes in which the application writes the left table's values: the format
    of this store must be that of the left table's. The referring row's partition is the one that Kafka's partitioner
    gives its key. Its timestamp is not kept: the task's stream time stands for it. An inner join's instruction may have
    been the other one of the two that subscribe. Nobody looks at either once they are stored.
    """

    def __init__(self, described: Described, declared: StoreFormat, *, partitioner: Partitioner) -> None:
        super().__init__(described, declared)
        self._partitioner = partitioner
        self._foreign_keys = LiveKeys(described, None, "foreign_key")
        self._left_partitions = _left_partitions(described)

    def records(self, share: Share) -> Iterator[Records]:
        """See `statelib.described.exporting`."""
        SubscriptionStore(share.place.backend, self._name)  # refuses another format
        family, _ = SubscriptionStore.families(self._name)
        for raw_keys, raws in scan_columns(share.place.backend, family):
            stored_foreign, stored_keys = decode_keys(raw_keys, self._name)
            foreign_keys, keys = self._foreign_keys.written(stored_foreign), self._keys.written(stored_keys)
            rows = self._values.written(decode_values(raws, self._name)[1])
            partition = self._partitioner(self._keys.without_windows(keys), self._left_partitions)
            values = encode(Instruction.PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE, keys, rows, partition)
            lengths = packed(np.array(pa.compute.binary_length(foreign_keys), ">i4"))
            timestamp = np.full(len(keys), share.place.stream_time_ms)
            yield Records(foreign_keys, joined(lengths, foreign_keys, keys), values, timestamp)


def _left_partitions(described: Described) -> int:
    """How many partitions the referring table has."""
    nodes = described.nodes
    source = nodes[nodes[described.store.node].parents[0]]
    for node in nodes.values():
        if node.settings.get("node") == "sink" and node.settings["topic"] == source.settings.get("topic"):
            return described.tasks[node.sub_topology]
    raise ConfigurationError("nothing tells from which partitions subscriptions come", store=described.name)


class RestoringSubscriptions(Restoring):
    """Of each subscription the last row."""

    def __init__(self, target: Target) -> None:
        self._store = SubscriptionStore(target.backend, target.store.name)
        self._schema = target.row

    def put(self, keys: Column, values: pa.Array, timestamp: NDArray[np.int64], write: WriteBatch) -> None:
        """See `Restoring`."""
        del timestamp
        decode_keys(keys, self._store.name)  # a damaged one is told
        there = valid_of(values)
        numbers, rows = decode_values(values.filter(pa.array(there)), self._store.name)
        number = np.zeros(len(there), np.int64)
        number[there] = numbers
        self._store.store(StoredSubscriptions(keys, number, scatter(rows, there)), self._schema, write)
