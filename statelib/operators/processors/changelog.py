"""Collects what a processor puts into one of its stores, for the store's changelog."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import numpy as np
import pyarrow as pa

from statelib.described.restoring import Restoring
from statelib.errors.kinds import ConfigurationError
from statelib.operators.processors.codec import KEY

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from statelib.described.restoring import Target
    from statelib.operators.changelog import Changelog
    from statelib.stores.backend import WriteBatch
    from statelib.stores.byte_columns import Column


class NotInInit:
    """Refuses puts: ``init`` runs in each slice, so what it puts would be logged as often as there are slices."""

    def __init__(self, store: str) -> None:
        self._store = store

    def add(self, key: bytes, value: bytes | None, timestamp: int | None) -> NoReturn:
        """See `statelib.state.log.StoreLog`."""
        del key, value, timestamp
        raise ConfigurationError(
            "init() puts into a store that has a changelog",
            store=self._store,
            next_step="put with the first record, or leave the store out of `changelogs` and give the job a new name",
        )


class StoreLog:
    """See `statelib.state.log.StoreLog`.

    Args:
        changelog: Takes the records, a batch at a time.
        now: The timestamp of the record that is being processed, ms.
    """

    def __init__(self, changelog: Changelog, now: Callable[[], int]) -> None:
        self._changelog = changelog
        self._now = now
        self._collected: list[tuple[bytes, bytes | None, int]] = []

    def add(self, key: bytes, value: bytes | None, timestamp: int | None) -> None:
        """Takes one record; without ``timestamp`` at that of the record that is being processed."""
        self._collected.append((key, value, self._now() if timestamp is None else timestamp))

    def hand_over(self) -> None:
        """Gives the changelog what was collected since the last call."""
        if self._collected:
            keys, values, timestamps = zip(*self._collected, strict=True)
            columns = (pa.array(keys, pa.binary()), pa.array(values, pa.binary()))
            self._changelog.add(*columns, np.array(timestamps, np.int64))
            self._collected = []


class RestoringSchedule(Restoring):
    """What a processor had scheduled at last."""

    only_last = False

    def __init__(self, target: Target) -> None:
        (self._family,) = target.store.families

    def put(self, keys: Column, values: pa.Array, timestamp: NDArray[np.int64], write: WriteBatch) -> None:
        """See `Restoring`."""
        del keys, timestamp
        write.put(self._family, KEY, values[-1].as_py())
