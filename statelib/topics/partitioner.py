"""Kafka's default partitioner: murmur2 of the serialised key, modulo the number of partitions.

Source: ``BuiltInPartitioner.partitionForKey`` and ``Utils.toPositive`` of kafka-clients. A windowed key is partitioned
by its plain key, without the window (``WindowedStreamPartitioner``).

For a null key Kafka's producer picks partitions by load and by chance. Here the n-th null key goes to partition
``n mod partitions``, so that the same records are always spread in the same way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import indices_of
from statelib.columns.murmur2 import murmur2

if TYPE_CHECKING:
    from numpy.typing import NDArray

_POSITIVE = 0x7FFF_FFFF


def partition_for(keys: pa.Array, partitions: int, *, null_keys_before: int = 0) -> NDArray[np.int32]:
    """The partition of each key.

    Args:
        keys: Serialised keys: binary, large_binary or (as UTF-8) string, or a dictionary of these; may hold nulls.
        partitions: Number of partitions of the topic.
        null_keys_before: How many null keys the topic was given before these.

    Returns:
        int32, 0 to ``partitions - 1``.
    """
    chosen: NDArray[np.int32]
    if isinstance(keys, pa.DictionaryArray):
        of_keys = partition_for(keys.dictionary, partitions) if len(keys.dictionary) else np.zeros(1, np.int32)
        chosen = of_keys[indices_of(keys)]
    else:
        chosen = ((hash_keys(keys) & _POSITIVE) % partitions).astype(np.int32)
    if keys.null_count:
        missing = np.flatnonzero(keys.is_null().to_numpy(zero_copy_only=False))
        chosen[missing] = (null_keys_before + np.arange(len(missing))) % partitions
    return chosen


def hash_keys(keys: pa.Array) -> NDArray[np.int64]:
    """Murmur2 of each key as an unsigned 32-bit number; meaningless for a null.

    Args:
        keys: As for `partition_for`, but no dictionary.
    """
    spans_type: type[np.int32 | np.int64] = np.int64
    if not (pa.types.is_large_binary(keys.type) or pa.types.is_large_string(keys.type)):
        keys = keys.cast(pa.binary())
        spans_type = np.int32
    hashes = np.empty(len(keys), np.int64)
    if len(keys):
        _, spans_buffer, data_buffer = keys.buffers()
        spans: NDArray[Any] = np.frombuffer(spans_buffer, spans_type)[keys.offset : keys.offset + len(keys) + 1]
        murmur2(np.frombuffer(data_buffer or b"", np.uint8), spans, hashes)
    return hashes
