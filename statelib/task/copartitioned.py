"""Looks whether an archived topic is co-partitioned with the repartition topics that it comes together with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from statelib.columns.windowed_type import is_windowed_struct
from statelib.errors.kinds import ConfigurationError
from statelib.records.key_column import KeyColumn
from statelib.topics.partitioner import partition_for

if TYPE_CHECKING:
    from statelib.task.source_records import Records

_LOOKED_AT = 1_000


@dataclass(slots=True)
class CopartitionedCheck:
    """Looks at the first records that a task takes up of a topic: if its keys are placed otherwise, some of them are.

    Attributes:
        topic: The topic.
        partition: Its partition.
        partitions: How many it has.
        beside: A repartition topic that it comes together with (`statelib.topology.copartitioned_sources`).
    """

    topic: str
    partition: int
    partitions: int
    beside: str
    _left: int = _LOOKED_AT

    def check(self, records: Records) -> None:
        """Looks at the next records.

        Raises:
            ConfigurationError: A key is in another partition than a repartition would have put it.
        """
        if not self._left or not len(records):
            return
        keys = records.keys.slice(0, self._left).plain
        self._left -= len(keys)
        if is_windowed_struct(keys.type):
            return  # another job has placed them by the key alone
        where = partition_for(KeyColumn(keys).serialized(), self.partitions)
        misplaced = np.flatnonzero((where != self.partition) & np.asarray(keys.is_valid()))
        if len(misplaced):
            row = int(misplaced[0])
            raise ConfigurationError(
                f"key {keys[row].as_py()!r} is in partition {self.partition}, but a repartition puts it into partition"
                f" {where[row]} of {self.partitions}: records of {self.beside} would not meet it",
                topic=self.topic,
                partition=self.partition,
                offset=int(records.offset[row]),
                next_step="repartition() this topic, too, before the two are joined or merged; for a table:"
                " stream(topic).repartition().to_table()",
            )
