"""What the exporters of all kinds of stores have in common: where they read, and what they give."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from statelib.described.description import Described, Place


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
        headers: `statelib.stores.buffer_value_codec.HEADERS_TYPE`; None: there are none.
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


def topic_of(described: Described) -> str:
    """The first topic that the node of the store gets records from: where what waits in it is taken to be from."""
    node = described.nodes[described.store.node]
    while node.parents:
        node = described.nodes[node.parents[0]]
    topic: str = node.settings.get("topic", "")
    return topic
