"""What Kafka Streams logs of a subscription of a foreign-key join (``SubscriptionWrapperSerde``, version 1).

All integers are big-endian::

    +----------------+-----------------+-------------------------+--------------+------------------------+
    | version u8 = 1 | instruction u8  | hash: 16 bytes          | primary key  | primary partition i32  |
    +----------------+-----------------+-------------------------+--------------+------------------------+

The hash is that of the referring row (`statelib.operators.joins.foreign_key.murmur3`), by which an answer is known that
is still wanted; the partition is that of the referring row, to which answers go. In its join nobody looks at a stored
instruction. The layout is Kafka's; its version is in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from statelib.operators.joins.foreign_key.murmur3 import hash128
from statelib.stores.byte_columns import joined, packed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from statelib.operators.joins.foreign_key.subscribe import Instruction
    from statelib.stores.byte_columns import Column

_VERSION = 1


def encode(instruction: Instruction, primary_keys: Column, rows: Column, partition: NDArray[np.int32]) -> Column:
    """The bytes of many subscriptions.

    Args:
        instruction: Of all.
        primary_keys: Serialised.
        rows: The referring rows, serialised as the application does.
        partition: int32, in which partition each referring row is.
    """
    heads = packed(np.full((len(partition), 2), (_VERSION, instruction), np.uint8))
    return joined(heads, packed(hash128(rows)), primary_keys, packed(partition.astype(">i4")))
