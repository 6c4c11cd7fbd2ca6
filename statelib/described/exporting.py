"""What the exporters of all kinds of stores have in common: where they read, and what they give."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import valid_of
from statelib.described.buffer_value_codec import HEADERS_TYPE, BufferValues, encode
from statelib.described.live_format import LiveKeys, LiveValues
from statelib.described.stored_values import stored_states
from statelib.records.batch import NO_OFFSET

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from statelib.described.description import Described, Place
    from statelib.described.live_format import StoreFormat


class Share(NamedTuple):
    """What a task has of a store: its state, its partition, and a folder for what does not fit into memory."""

    place: Place
    partition: int
    scratch: Path


class Records(NamedTuple):
    """Some records of a changelog, as columns of one length.

    Attributes:
        placed_by: binary: the application's key that decides in which partition each belongs: without a window.
        keys: binary.
        values: binary; null is a deletion.
        timestamp: int64, ms; None: Kafka Streams sends none.
        headers: `statelib.described.buffer_value_codec.HEADERS_TYPE`; None: there are none.
    """

    placed_by: pa.Array
    keys: pa.Array
    values: pa.Array
    timestamp: NDArray[np.int64] | None
    headers: pa.Array | None = None


class Exporter(Protocol):
    """Of one store."""

    def records(self, share: Share) -> Iterator[Records]:
        """The changelog of a task's share, some thousand records at a time."""


class PairsExporter:
    """Base of exporters: keys and values that the application's serdes write.

    Args:
        described: The store.
        declared: How the application writes keys and values.

    Raises:
        ConfigurationError: As of `LiveKeys` and `LiveValues`.
    """

    _aggregates = False
    """Whether the values may be states of an aggregation."""

    def __init__(self, described: Described, declared: StoreFormat) -> None:
        self._described, self._name = described, described.name
        self._keys = LiveKeys(described, declared.key)
        self._values = LiveValues(described, declared, aggregates=self._aggregates)


def topic_of(described: Described) -> str:
    """The first topic that the node of the store gets records from: where what waits in it is taken to be from."""
    node = described.nodes[described.store.node]
    while node.parents:
        node = described.nodes[node.parents[0]]
    topic: str = node.settings.get("topic", "")
    return topic


def without_nulls(records: Records) -> Records:
    """The records that have values: what is null as the application writes it, its store does not have."""
    if not records.values.null_count:
        return records
    there = valid_of(records.values)
    kept = pa.array(there)
    keys, values = records.keys.filter(kept), records.values.filter(kept)
    timestamp = None if records.timestamp is None else records.timestamp[there]
    return Records(records.placed_by.filter(kept), keys, values, timestamp)


def aggregates_written(described: Described, values: LiveValues) -> Callable[[pa.Array], pa.Array]:
    """What makes the application's bytes of the rows of windows and sessions, which are structs even of one column."""
    if described.is_of_processor:
        return values.written
    states = stored_states(described.schema)
    return lambda rows: values.of_states(states(rows))


def waiting_values(
    timestamp: NDArray[np.int64], topic: str, partition: int, headers: pa.Array | None, values: Mapping[str, pa.Array],
    time: NDArray[np.int64],
) -> pa.Array:  # fmt: skip
    """The values of what waits in a buffer, as `statelib.described.buffer_value_codec` has them.

    A buffer does not keep from which topic and offset a record was. What is written is the topic from which the
    operator gets its records, the task's partition, and the offset -1, by which Kafka Streams says that there is none.

    Args:
        timestamp: int64, of the records, ms.
        topic: See `topic_of`.
        partition: The task's.
        headers: Of the records; None: they have none.
        values: ``prior``, ``old`` and ``value``, in the application's bytes.
        time: int64, by which they leave, ms.
    """
    count = len(timestamp)
    return encode(
        BufferValues(
            timestamp=timestamp,
            offset=np.full(count, NO_OFFSET),
            topic=pa.array([topic] * count, pa.string()),
            partition=np.full(count, partition, np.int32),
            headers=pa.nulls(count, HEADERS_TYPE) if headers is None else headers,
            prior=values["prior"],
            old=values["old"],
            new=values["value"],
            time=time,
        )
    )
