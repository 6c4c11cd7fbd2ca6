"""The versioned key-value store of KIP-889: several versions of a key, found by time.

A version is valid from its timestamp (inclusive) to the timestamp of the key's next version (exclusive); a tombstone is
a version too. The latest version of each key lives in the family ``<name>.latest`` and never expires; older versions
live in ``<name>.segments``, in the segment of the time at which they ended, and expire segment by segment (Kafka:
``RocksDBVersionedStore``; bytes: `statelib.operators.versioned.codec`).

Point access (KIP-889, KIP-960, KIP-968)::

    store = VersionedKeyValueStore(backend, "rates", history_retention_ms=86_400_000)
    store.put(b"EUR", b"1.08", 1_000)  # -> VALID_TO_UNDEFINED: nothing later
    store.get(b"EUR", as_of=1_500)  # -> VersionedRecord(b"1.08", 1000)
    store.flush()  # until then others do not see what was put: `statelib.operators.versioned.open_timelines`

Batch access, over the same bytes::

    loaded = store.load(keys, from_ms)  # loaded.versions: flat arrays, what a compiled kernel walks
    ...  # the kernel inserts versions and answers look-ups
    store.store(loaded, versions, stream_time, write)

**The rule for a put**, which a kernel over a `VersionSet` must follow (``ts`` is the new version's timestamp):

1. ``ts < stream_time - history_retention_ms``: refused; nothing moves. Else ``stream_time = max(stream_time, ts)``.
2. A version at exactly ``ts`` is replaced, with one exception: a tombstone that hits the key's latest version while
   that is a value with ``remembered`` false removes the version and leaves nothing.
3. Else the version is inserted in its place, a tombstone even if the version before it is one.
4. ``remembered`` (one flag a key, of the latest version, only looked at while that is a value):
   ``semantics="kip"``: always true. ``"kafka-4.3"``: a value put after all others sets it to whether the version before
   it is a value; a value that replaces a latest tombstone sets it; a version put right before the latest sets it,
   whether it is inserted or replaces another; nothing else changes it. (It is true when the shipped store has an
   interval that ends at the latest version's timestamp: only then does deleting that version leave a trace.)

A look-up ``as_of < stream_time - history_retention_ms`` sees only the latest version, and only if that is a value whose
timestamp is <= ``as_of``.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from statelib.errors.kinds import ConfigurationError, InputError
from statelib.operators.versioned import many_keys as versioned_batch
from statelib.operators.versioned.codec import Interval, decode_latest
from statelib.operators.versioned.kafka_4_3 import shipped_history
from statelib.operators.versioned.open_timelines import OpenTimelines
from statelib.operators.versioned.segment_interval import default_segment_interval_ms
from statelib.operators.versioned.segments import VersionedFamilies
from statelib.operators.versioned.timeline import VALID_TO_UNDEFINED
from statelib.operators.versioned.version_set import VersionSet
from statelib.serdes.single_values import decoder, encoder, from_bytes
from statelib.stores.backend import end_of_prefix

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from statelib.metrics.node_metrics import NodeMetrics
    from statelib.operators.versioned.many_keys import Loaded
    from statelib.serdes import Serde
    from statelib.settings.semantics import Semantics
    from statelib.stores.backend import Backend, WriteBatch
    from statelib.stores.byte_columns import Column

__all__ = [
    "NOT_PUT",
    "VALID_TO_UNDEFINED",
    "VersionSet",
    "VersionedKeyValueStore",
    "VersionedRecord",
]

NOT_PUT = -9223372036854775808
"""What put gives when it is refused (Kafka: ``PUT_RETURN_CODE_NOT_PUT``)."""

_END_OF_TIME = (1 << 63) - 1
_record = tuple.__new__  # makes a `VersionedRecord` in half the time that its own constructor takes
_log = logging.getLogger(__name__)


class VersionedRecord(NamedTuple):
    """A value, the time from which it is valid, and, where the query tells, the time at which it ended (KIP-960)."""

    value: Any
    timestamp: int
    valid_to: int | None = None


class VersionedKeyValueStore:
    """See the module's docstring.

    Keys and values of the point API are bytes, or what the serdes take. Two objects may be open on one store: each
    sees what has been written, so whoever has put flushes before another one reads or writes.

    Args:
        backend: Where the families are.
        name: Of the store; its families are ``families(name)``.
        history_retention_ms: How long older versions can be asked for, and how late a version may be put.
        segment_interval_ms: Width of a segment; default: `default_segment_interval_ms`.
        semantics: See `Semantics`.
        metrics: Where refused puts are counted, as ``dropped-records``.
        key_serde: Default: keys are bytes.
        value_serde: Default: values are bytes.

    Raises:
        ConfigurationError: A negative retention, a segment interval that is not positive or not that of the stored
            segments, or a store in another format.
    """

    def __init__(
        self,
        backend: Backend,
        name: str,
        *,
        history_retention_ms: int,
        segment_interval_ms: int | None = None,
        semantics: Semantics = "kip",
        metrics: NodeMetrics | None = None,
        key_serde: Serde | None = None,
        value_serde: Serde | None = None,
    ) -> None:
        if segment_interval_ms is None:
            segment_interval_ms = default_segment_interval_ms(history_retention_ms)
        if history_retention_ms < 0 or segment_interval_ms < 1:
            raise ConfigurationError(
                f"history retention {history_retention_ms} ms and segment interval {segment_interval_ms} ms "
                "must not be negative, and the latter not zero",
                store=name,
            )
        self.history_retention_ms = history_retention_ms
        self.segment_interval_ms = segment_interval_ms
        self._backend = backend
        self._name = name
        self._families = VersionedFamilies(backend, name, history_retention_ms, segment_interval_ms)
        self._kip = semantics == "kip"
        self._metrics = metrics
        self._key_serde = key_serde
        self._encoded_key, self._encoded_value = encoder(key_serde), encoder(value_serde)
        self._decoded_value = decoder(value_serde)
        self._open = OpenTimelines(self._families, kip=self._kip)
        self._warned_of_expired_get = False
        self._families.header  # noqa: B018 - refuses a store that was written with other settings

    @staticmethod
    def families(name: str) -> tuple[str, str]:
        """The backend families of the store called ``name``."""
        return f"{name}.latest", f"{name}.segments"

    @property
    def stream_time(self) -> int:
        """The largest timestamp that was put, -1 if none; saved with the versions."""
        return self._open.stream_time

    def flush(self) -> None:
        """Writes what was put; until then it is in memory, and only this object sees it."""
        self._open.flush()

    # Point access

    def put(self, key: Any, value: Any, timestamp: int) -> int:
        """Adds a version; None as the value is a tombstone.

        Returns:
            The timestamp of the key's next version, tombstones included; `VALID_TO_UNDEFINED` if there is none;
            `NOT_PUT` if the timestamp is older than the retention.

        Raises:
            InputError: The key is null, or the timestamp negative.
        """
        raw_key = self._raw_key(key)
        raw_value = self._encoded_value(value)
        return self._open.put(raw_key, raw_value, timestamp) if self._accepts(timestamp) else NOT_PUT

    def put_if_latest(self, key: Any, value: Any, timestamp: int) -> bool:
        """Puts a version that may be older than the retention, unless the key has a later one; says whether it did.

        Kafka's store takes such a version when it is restored (``RocksDBVersionedStore.restoreBatch``): it is what the
        key has now, however long that has been so.

        Raises:
            InputError: The key is null.
        """
        raw_key = self._raw_key(key)
        begins = self._open.at(raw_key, timestamp).timeline.valid_from
        if begins and begins[-1] > timestamp:
            return False
        self._open.put(raw_key, self._encoded_value(value), timestamp)
        return True

    def delete(self, key: Any, timestamp: int) -> VersionedRecord | None:
        """Puts a tombstone, and gives the value that was valid at ``timestamp`` before; None also if it is refused.

        Raises:
            InputError: The key is null, or the timestamp negative.
        """
        raw_key = self._raw_key(key)
        if not self._accepts(timestamp):
            return None
        before = self._open.at(raw_key, timestamp).timeline.at(timestamp)
        self._open.put(raw_key, None, timestamp)
        return None if before is None else VersionedRecord(self._value(before.value), before.valid_from)

    def get(self, key: Any, as_of: int | None = None) -> VersionedRecord | None:
        """The value valid at ``as_of``, or the latest one; None if there is none.

        A time older than the retention finds only a latest value that was valid already, and is logged once.

        Raises:
            InputError: The key is null.
        """
        raw_key = self._encoded_key(key)
        if raw_key is None:
            raise self._null_key()
        if as_of is None:
            opened = self._open.get(raw_key)
            if opened is not None:
                if (value := opened.timeline.latest) is None:
                    return None
                timestamp = opened.timeline.valid_from[-1]
            else:
                if (raw := self._backend.get(self._families.latest, raw_key)) is None:
                    return None
                timestamp, value, _ = decode_latest(raw, self._name)
        else:
            found = self._valid_at(raw_key, as_of)
            if found is None:
                return None
            timestamp, _, value = found
        return _record(VersionedRecord, (self._decoded_value(value), timestamp, None))

    def versioned_key_query(self, key: Any, as_of: int | None = None) -> VersionedRecord | None:
        """As `get`, but tells when the value ended, unless it is the latest (KIP-960, ``VersionedKeyQuery``)."""
        if as_of is None:
            return self.get(key)
        found = self._valid_at(self._raw_key(key), as_of)
        if found is None:
            return None
        valid_from, valid_to, value = found
        return VersionedRecord(self._decoded_value(value), valid_from, valid_to)

    def history(
        self,
        key: Any,
        from_ms: int | None = None,
        to_ms: int | None = None,
        *,
        order: Literal["ascending", "descending"] = "descending",
    ) -> list[VersionedRecord]:
        """The values valid at any time from ``from_ms`` to ``to_ms``, both inclusive.

        KIP-968, ``MultiVersionedKeyQuery``. Of a range that ended before the retention only a latest value that was
        valid then. Else kip: those valid within the retention; kafka-4.3: those that ended in a live segment not after
        that of ``to_ms``, and the latest value, which misses some and shows some that are older.

        Raises:
            InputError: The key is null, or ``from_ms`` is after ``to_ms``.
        """
        raw_key = self._raw_key(key)
        self.flush()
        first = -_END_OF_TIME if from_ms is None else from_ms
        last = _END_OF_TIME if to_ms is None else to_ms
        if first > last:
            raise InputError(f"the range ends at {last}, before it begins at {first}", store=self._name)
        horizon = self._horizon
        if last >= horizon and not self._kip:
            found = shipped_history(self._families, raw_key, first, last, ascending=order == "ascending")
        else:
            found = self._valid_between(raw_key, first if last < horizon else max(first, horizon), last)
            found.sort(reverse=order == "descending")
        return [
            VersionedRecord(self._value(value), start, None if end == _END_OF_TIME else end)
            for start, end, value in found
        ]

    def range(
        self, first: Any = None, last: Any = None, as_of: int | None = None
    ) -> Iterator[tuple[Any, VersionedRecord]]:
        """Keys from ``first`` to ``last``, both included, in bytewise order, each with what `get` gives for it.

        Each key is read when the iterator comes to it.

        Args:
            first: None: from the first key.
            last: None: to the last key.
            as_of: None: the latest values.
        """
        end = None if last is None else self._raw_key(last) + b"\x00"
        return self._scan(b"" if first is None else self._raw_key(first), end, as_of)

    def prefix_scan(self, prefix: bytes, as_of: int | None = None) -> Iterator[tuple[Any, VersionedRecord]]:
        """As `range`, of the keys whose bytes begin with ``prefix``."""
        return self._scan(prefix, end_of_prefix(prefix), as_of)

    def approximate_num_entries(self) -> int:
        """Roughly how many keys have a latest value."""
        self.flush()
        return self._backend.approximate_keys(self.families(self._name)[0])

    # Batch access

    def load(self, keys: Column, from_ms: NDArray[np.int64] | None = None) -> Loaded:
        """The versions of ``keys`` that matter for what is asked or put at ``from_ms`` or later.

        Segments are read only where they can matter: not for a key whose latest version is older than its ``from_ms``.

        Args:
            keys: Serialised keys, each once.
            from_ms: int64[n]: for each key the smallest time at which it will be asked for or put. None: anything
                within retention, now and later.

        Returns:
            For each key, in the same order, all versions valid at or after its ``from_ms``; older ones may be there
            or not. A key without versions has none. And what `store` needs to write only what has changed.
        """
        self.flush()
        horizon = max(self._horizon, 0)
        earliest = np.full(len(keys), horizon) if from_ms is None else np.maximum(from_ms, horizon)
        return versioned_batch.load(self._families, keys, earliest)

    def advance(self, stream_time: int, write: WriteBatch) -> None:
        """Moves the clock, as accepted puts of keys that are left out would; it never goes back."""
        self._families.advance(max(stream_time, self.stream_time), write)

    def store(self, loaded: Loaded, versions: VersionSet, stream_time: int, write: WriteBatch) -> None:
        """Adds to ``write`` what makes the stored versions of the loaded keys those of ``versions``.

        Versions older than those that `load` gave stay as they are. Segments that ``stream_time`` has expired are
        dropped as a whole. Nothing is visible before the backend has carried out ``write``, which must come before
        any other use of the store.

        Args:
            loaded: What `load` gave since the store was last written.
            versions: The versions of its keys, in their order.
            stream_time: The store's clock after all accepted puts (`stream_time` if there was none).
            write: The batch that also carries the task's position.

        Raises:
            InternalError: A key was changed at a time before the one for which it was loaded.
        """
        if self._kip:
            versions = replace(versions, remembered=np.ones(len(versions), np.bool_))
        self._families.advance(stream_time, write)
        versioned_batch.store(self._families, loaded, versions, stream_time, write)

    @property
    def _horizon(self) -> int:
        """The earliest time within retention."""
        return self.stream_time - self.history_retention_ms

    def _valid_at(self, key: bytes, time: int) -> tuple[int, int | None, bytes] | None:
        found = self._open.valid_at(key, time)
        if found is None and time < self._horizon:
            self._warn_of_expired_get(time)
        return found

    def _accepts(self, timestamp: int) -> bool:
        if timestamp < 0:
            raise InputError(f"timestamp {timestamp} is negative", store=self._name)
        accepted = timestamp >= self._horizon
        if not accepted and self._metrics is not None:
            self._metrics.count("dropped-records", 1)
        return accepted

    def _valid_between(self, key: bytes, first: int, last: int) -> list[Interval]:
        timeline, _ = self._families.read(key, max(first, 0) if last >= self._horizon else _END_OF_TIME)
        ends = [*timeline.valid_from, _END_OF_TIME][1:]
        versions = map(Interval, timeline.valid_from, ends, timeline.values)
        return [v for v in versions if v.value is not None and v.valid_from <= last and v.valid_to > first]

    def _scan(self, first: bytes, end: bytes | None, as_of: int | None) -> Iterator[tuple[Any, VersionedRecord]]:
        self.flush()
        time = _END_OF_TIME if as_of is None else as_of
        from_ms = _END_OF_TIME if time < self._horizon else max(time, 0)
        for raw_key in self._families.keys(first, end, from_ms):
            self.flush()  # what was put since the last key
            found = self._families.read(raw_key, from_ms)[0].at(time)
            if found is not None:
                yield from_bytes(raw_key, self._key_serde), VersionedRecord(self._value(found.value), found.valid_from)

    def _warn_of_expired_get(self, time: int) -> None:
        if not self._warned_of_expired_get:
            self._warned_of_expired_get = True
            _log.warning(
                "store %s was asked for %d, which is older than its history retention: no result (logged once)",
                self._name,
                time,
            )

    def _raw_key(self, key: Any) -> bytes:
        raw = self._encoded_key(key)
        if raw is None:
            raise self._null_key()
        return raw

    def _null_key(self) -> InputError:
        return InputError("a versioned store has no null key", store=self._name)

    def _value(self, raw: bytes | None) -> Any:
        return None if raw is None else self._decoded_value(raw)
