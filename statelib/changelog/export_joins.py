"""Changelogs of what joins remember: see `statelib.changelog.export`."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import chain, groupby, islice
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.changelog import held_lists
from statelib.changelog.subscription_wrapper import encode
from statelib.described.exporting import Records
from statelib.described.live_format import LiveKeys, LiveValues, StoreFormat
from statelib.errors.kinds import ConfigurationError
from statelib.operators.joins.foreign_key.codec import decode_keys as decode_subscriptions
from statelib.operators.joins.foreign_key.codec import decode_values
from statelib.operators.joins.foreign_key.store import SubscriptionStore
from statelib.operators.joins.foreign_key.subscribe import Instruction
from statelib.operators.joins.stream_stream.changelog import window_keys
from statelib.operators.joins.stream_stream.codec import decode_keys
from statelib.operators.joins.stream_stream.store import HeldStore, JoinWindowStore
from statelib.stores.byte_columns import joined, packed
from statelib.stores.column_scan import scan_columns
from statelib.topics.partitioner import partition_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statelib.described.description import Described
    from statelib.described.exporting import Share
    from statelib.operators.joins.stream_stream.store import JoinRow

_LISTS_AT_ONCE = 1 << 12


class JoinWindowExporter:
    """The records of one side that those of the other may meet, in bytewise order of keys and then in order of time."""

    def __init__(self, described: Described, declared: StoreFormat) -> None:
        self._name = described.name
        self._keys = LiveKeys(described, declared.key)
        self._values = LiveValues(described, declared, aggregates=False)

    def records(self, share: Share) -> Iterator[Records]:
        """See `statelib.described.exporting`."""
        JoinWindowStore(share.place.backend, self._name)  # refuses another format
        for raw_keys, values in scan_columns(share.place.backend, JoinWindowStore.families(self._name)[0]):
            stored_keys, timestamp, arrival = decode_keys(raw_keys, self._name)
            keys = self._keys.written(stored_keys)
            placed_by = self._keys.placed_by(keys)
            yield Records(placed_by, window_keys(keys, timestamp, arrival), self._values.written(values), timestamp)


class HeldExporter:
    """The records that wait for a match: of each time, side and key the list of values, in order of time.

    Right before left, then in the order in which the first record of each list has come. Both sides have their own
    values: of the right ones `StoreFormat.right_value` tells. Kafka Streams logs the timestamp of the record that was
    processed, which is that of the list.
    """

    def __init__(self, described: Described, declared: StoreFormat) -> None:
        self._name = described.name
        self._keys = LiveKeys(described, declared.key)
        sides = {field.name: field.type for field in described.type("row")}
        of_side = {side: replace(described, schema=pa.schema([("value", sides[side])])) for side in sides}
        right = StoreFormat(value=declared.right_value)
        self._values = {
            True: LiveValues(of_side["left"], declared, aggregates=False),
            False: LiveValues(of_side["right"], right, aggregates=False, named="right_value"),
        }

    def records(self, share: Share) -> Iterator[Records]:
        """See `statelib.described.exporting`; has the records of one time and side in memory."""
        held = HeldStore(share.place.backend, self._name).all()
        lists = chain.from_iterable(
            self._lists(time, is_left=is_left, rows=[row.row for row in rows])
            for (time, is_left), rows in groupby(held, lambda row: (row.row.timestamp_ms, row.is_left))
        )
        while some := list(islice(lists, _LISTS_AT_ONCE)):
            times, placed_by, keys, values = zip(*some, strict=True)
            columns = [pa.array(column, pa.binary()) for column in (placed_by, keys, values)]
            yield Records(self._keys.placed_by(columns[0]), columns[1], columns[2], np.array(times, np.int64))

    def _lists(self, time_ms: int, *, is_left: bool, rows: list[JoinRow]) -> Iterator[tuple[int, bytes, bytes, bytes]]:
        keys = self._keys.written(pa.array([row.key for row in rows], pa.binary())).to_pylist()
        values = self._values[is_left].written(pa.array([row.value for row in rows], pa.binary())).to_pylist()
        of_key: defaultdict[bytes, list[bytes]] = defaultdict(list)
        for key, value in zip(keys, values, strict=True):
            of_key[key].append(value)
        for key, there in of_key.items():
            list_key = held_lists.encode_key(time_ms, key, is_left=is_left)
            yield time_ms, key, list_key, held_lists.encode_values(there, is_left=is_left)


class SubscriptionExporter:
    """The subscriptions of a foreign-key join, in the order of their keys.

    The hash of a referring row is that of the bytes in which the application writes the left table's values: the format
    of this store must be that of the left table's. The referring row's partition is the one that Kafka's partitioner
    gives its key. Its timestamp is not kept: the task's stream time stands for it. An inner join's instruction may have
    been the other one of the two that subscribe. Nobody looks at either once they are stored.
    """

    def __init__(self, described: Described, declared: StoreFormat) -> None:
        self._name = described.name
        self._foreign_keys = LiveKeys(described, None, "foreign_key")
        self._keys = LiveKeys(described, declared.key)
        self._values = LiveValues(described, declared, aggregates=False)
        self._left_partitions = _left_partitions(described)

    def records(self, share: Share) -> Iterator[Records]:
        """See `statelib.described.exporting`."""
        SubscriptionStore(share.place.backend, self._name)  # refuses another format
        family, _ = SubscriptionStore.families(self._name)
        for raw_keys, raws in scan_columns(share.place.backend, family):
            stored_foreign, stored_keys = decode_subscriptions(raw_keys, self._name)
            foreign_keys, keys = self._foreign_keys.written(stored_foreign), self._keys.written(stored_keys)
            rows = self._values.written(decode_values(raws, self._name)[1])
            partition = partition_for(self._keys.without_windows(keys), self._left_partitions)
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
