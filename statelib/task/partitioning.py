"""To which partitions of a repartition topic records go."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.columns.lists import lengths_of
from statelib.errors.kinds import ConfigurationError
from statelib.errors.user_lines import defined_at
from statelib.operators.mappers.mapping import evaluate, functions_of
from statelib.records.key_column import KeyColumn
from statelib.topics.partitioner import partition_for
from statelib.topology.partitioners import NUM_PARTITIONS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from statelib.operators.mappers.mapping import Mapper
    from statelib.records.batch import Batch
    from statelib.topology import Sink


_OF_KEYS = {"key", "window_start", "window_end"}


class Placement(NamedTuple):
    """Where the records of a batch go, one of the same record after the other.

    Attributes:
        rows: int64, ascending: of each that is sent, its row in the batch. A record may be sent to several partitions.
        partitions: int64: to which partition each goes.
    """

    rows: NDArray[np.int64]
    partitions: NDArray[np.int64]


def placement_of(sink: Sink, batch: Batch, partitions: int, home: int) -> Placement:
    """Where the records of a batch go.

    Args:
        sink: Of a repartition topic.
        batch: The records.
        partitions: How many the topic has.
        home: Where records without a key go, if nobody says otherwise. Kafka spreads them at random; here they stay
            together, whatever the batches and slices are.

    Raises:
        ConfigurationError: The sink's partitioner fails, or gives no partition of the topic; names the record.
    """
    by = batch.keys
    if sink.partition_by is not None:
        by = KeyColumn(evaluate(sink.partition_by, batch.as_record_batch(), sink.name, batch.sequence))
    default = np.where(by.valid(), partition_for(by.placed_by(), partitions), home)
    rows = np.arange(len(batch))
    if sink.partitioner is None:
        return Placement(rows, default)
    chosen = _chosen(sink, sink.partitioner, batch, partitions)
    if not pa.types.is_list(chosen.type):
        return _checked(rows, _with_default(chosen, default), partitions, sink.partitioner, batch)
    is_null = np.asarray(chosen.is_null())
    lengths = np.where(is_null, 1, lengths_of(chosen))
    rows = np.repeat(rows, lengths)
    where = default[rows].astype(np.int64)
    given = chosen.flatten()
    if given.null_count:
        raise _error("gave a list with a null in it", sink.partitioner, batch, int(np.flatnonzero(~is_null)[0]))
    where[~is_null[rows]] = np.asarray(given)
    return _checked(rows, where, partitions, sink.partitioner, batch)


def _chosen(sink: Sink, partitioner: Mapper, batch: Batch, partitions: int) -> pa.Array:
    """int64, or lists of int64: what a sink's partitioner gives."""
    columns, node = batch.as_record_batch(), sink.name
    if sink.places_keys:
        columns = columns.select([name for name in columns.schema.names if name in _OF_KEYS])
        columns = columns.append_column("value", pa.nulls(len(batch)))
    number = pa.repeat(pa.scalar(partitions, pa.int32()), len(batch))
    chosen = evaluate(partitioner, columns.append_column(NUM_PARTITIONS, number), node, batch.sequence)
    is_list = any(is_kind(chosen.type) for is_kind in (pa.types.is_list, pa.types.is_large_list))
    of_items = chosen.type.value_type if is_list else chosen.type
    if is_list and sink.places_keys:
        raise ConfigurationError(
            f"a partitioner of a foreign-key join gave {chosen.type}, not one partition for each key",
            node=node,
            next_step="give whole numbers from 0: Kafka Streams takes no more than one here, either",
            **defined_at(functions_of(partitioner)),
        )
    if not (pa.types.is_integer(of_items) or pa.types.is_null(of_items)):
        raise ConfigurationError(
            f"a partitioner gave {chosen.type}, not whole numbers",
            node=node,
            next_step="give numbers of partitions from 0, or lists of them",
            **defined_at(functions_of(partitioner)),
        )
    return chosen.cast(pa.list_(pa.int64()) if is_list else pa.int64())


def _with_default(chosen: pa.Array, default: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.asarray(pc.coalesce(chosen, pa.array(default, pa.int64())))


def _checked(
    rows: NDArray[np.int64], where: NDArray[np.int64], partitions: int, partitioner: Mapper, batch: Batch
) -> Placement:
    outside = np.flatnonzero((where < 0) | (where >= partitions))
    if len(outside):
        first = int(outside[0])
        what = f"chose partition {where[first]}, and the topic has partitions 0 to {partitions - 1}"
        raise _error(what, partitioner, batch, int(rows[first]))
    return Placement(rows, where)


def _error(what: str, partitioner: Mapper, batch: Batch, row: int) -> ConfigurationError:
    error = ConfigurationError(
        f"a partitioner {what}",
        next_step=f"give a number below {NUM_PARTITIONS}, which it sees as a column, or null for the default",
        **defined_at(functions_of(partitioner)),
    )
    error.sequence = int(batch.sequence[row])
    return error
