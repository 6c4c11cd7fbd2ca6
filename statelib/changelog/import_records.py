"""A live application's changelog into a store of ours: the inverse of `statelib.changelog.export`.

The application's keys and values become those that our own changelogs have (`statelib.operators.changelog`), and
`statelib.changelog.restore` does the rest. Three kinds cannot come back: Kafka Streams has only a hash of the rows that
subscribe to another table's keys, does not say which record of a side one is that waits for a match, and has no
deduplications.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from statelib.changelog.export import AS_KAFKA
from statelib.changelog.restore import restore
from statelib.columns.arrow_buffers import valid_of
from statelib.described.description import Described
from statelib.described.live_format import LiveKeys, LiveValues
from statelib.errors.kinds import ConfigurationError, InputError
from statelib.operators.aggregation.snapshot import results_of
from statelib.operators.joins.stream_table.changelog import HEAD as BUFFER_HEAD
from statelib.operators.joins.stream_table.changelog import TAIL as BUFFER_TAIL
from statelib.operators.windows.definition import windows_of
from statelib.records.batch import NO_TIMESTAMP
from statelib.serdes import serde_for
from statelib.stores.buffer_value_codec import VERSION_HEADER, decode, encode
from statelib.stores.byte_columns import joined, packed, split_head, split_tail

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from statelib.described.live_format import StoreFormat
    from statelib.documents.manifests import StoreDescription
    from statelib.settings.semantics import Semantics
    from statelib.stores.backend import Backend
    from statelib.stores.byte_columns import Column

ARRIVALS = 1 << 31
"""As many records an imported join has had: more than any sequence in the keys of its changelog can tell."""

_WINDOW = np.dtype([("start", ">i8"), ("sequence", ">i4")])
_SESSION = np.dtype([("end", ">i8"), ("start", ">i8")])
_WORD = np.dtype(">i8")


@dataclass(frozen=True, slots=True)
class Imported:
    """A store that was made of an application's changelog.

    Attributes:
        records: How many it had.
        clocks: Those that the node that writes the store must go on with, as far as the changelog tells: of windows and
            sessions ``store_time`` and ``stream_time``, of a side of a stream-stream join ``left`` or ``right``; and
            where arrivals are counted ``arrivals``, since the application counts anew with each start, and the job does
            not. (The application restores the stores' clocks, and forgets stream time.)
    """

    records: int
    clocks: Mapping[str, int]


def import_changelog(
    store: StoreDescription,
    schema: pa.Schema,
    records: Iterable[pa.RecordBatch],
    backend: Backend,
    form: StoreFormat = AS_KAFKA,
    *,
    clock_ms: int = NO_TIMESTAMP,
    clocks: Mapping[str, int] | None = None,
    semantics: Semantics = "kip",
) -> Imported:
    """Writes what a live application's changelog holds into a store that is empty.

    Args:
        store: The store.
        schema: Its types (`StoreDescription.arrow_schema`, decoded).
        records: A partition of the changelog, compacted or not, from its beginning, in order: key (binary), value
            (binary, null), timestamp (int64 ms, as the topic has it), and ``headers`` of those of suppress
            (`statelib.changelog.export.RECORDS`). Versioned stores take what the application's own restore would.
        backend: Where the store is.
        form: How the application writes keys and values.
        clock_ms: Of windows, sessions and deduplications: the clock that the store goes by; `NO_TIMESTAMP`: that of
            the newest window or session, as after a restore of Kafka's.
        clocks: Those of the node that writes the store.
        semantics: Those of the job.

    Returns:
        How many records there were, and the clocks that the node must go on with.

    Raises:
        ConfigurationError: A store of this kind cannot be made of Kafka's records; or keys or values have no bytes of
            Kafka's own and none are declared; or results do not tell the states of an aggregation.
        InputError: Bytes are not what the declared serde writes, or a record has another form.
        CorruptedDataError: A key is too short for a store of this kind.
    """
    importer = importer_of(store, schema, form, semantics=semantics)
    ours = (_imported(importer, batch) for batch in records)
    arrivals = {"arrivals": ARRIVALS} if store.kind in _COUNTED else {}
    begun = {**(clocks or {}), **arrivals}
    count = restore(store, schema, ours, backend, clock_ms=clock_ms, clocks=begun, semantics=semantics)
    return Imported(count, {**arrivals, **importer.clocks})


def importer_of(
    store: StoreDescription, schema: pa.Schema, form: StoreFormat = AS_KAFKA, *, semantics: Semantics = "kip"
) -> Importer:
    """What makes a store's own records of an application's. Arguments and errors as of `import_changelog`."""
    made = _IMPORTERS.get(store.kind)
    if made is None:
        raise ConfigurationError(
            f"a {store.kind} store cannot be made of what Kafka Streams logs", store=store.name, next_step=_WAY_OUT
        )
    return made(Described(store, schema, {}, semantics, results_of=results_of(store.settings)), form)


_COUNTED = ("join-buffer", "join-window")
_WAY_OUT = "begin the job early enough for what this store holds to be replayed, and let it begin empty"


class Importer(Protocol):
    """Of one store."""

    clocks: dict[str, int]
    """See `Imported`: what the records so far tell."""

    def keys(self, raws: Column) -> pa.Array:
        """Keys as our changelog has them."""

    def values(self, batch: pa.RecordBatch) -> tuple[pa.Array, pa.Array]:
        """Values, where null stays null, and timestamps (int64 ms) as our changelog has them."""


def _imported(importer: Importer, batch: pa.RecordBatch) -> pa.RecordBatch:
    keys, (values, timestamp) = importer.keys(batch.column("key")), importer.values(batch)
    return pa.RecordBatch.from_arrays([keys, values.cast(pa.binary()), timestamp], ["key", "value", "timestamp"])


class _Pairs:
    """Keys and values that the application's serdes write."""

    def __init__(self, described: Described, form: StoreFormat, *, aggregates: bool = True) -> None:
        self.clocks: dict[str, int] = {}
        self._name = described.name
        self._keys = LiveKeys(described, form.key)
        self._values = LiveValues(described, form, aggregates=aggregates)

    def keys(self, raws: Column) -> pa.Array:
        """See `Importer`."""
        return self._keys.read(raws)

    def values(self, batch: pa.RecordBatch) -> tuple[pa.Array, pa.Array]:
        """See `Importer`."""
        return self._values.read(batch.column("value")), batch.column("timestamp")

    def _advance(self, clock: str, times: np.ndarray[tuple[int], Any]) -> None:
        """Takes up some times (ms)."""
        if len(times):
            self.clocks[clock] = max(self.clocks.get(clock, NO_TIMESTAMP), int(times.max()))


class _Suffixed(_Pairs):
    """Keys that something comes behind."""

    _suffix: np.dtype[Any]

    def keys(self, raws: Column) -> pa.Array:
        """See `Importer`."""
        plain, suffixes = split_tail(raws, self._suffix, self._name)
        self._check_suffixes(suffixes)
        self._told(suffixes)
        return joined(self._keys.read(plain), packed(suffixes))

    def _check_suffixes(self, suffixes: np.ndarray[tuple[int], Any]) -> None:
        """Refuses those that are not of such a store."""

    def _told(self, suffixes: np.ndarray[tuple[int], Any]) -> None:
        """Takes up what they tell of the clocks."""


class _Windows(_Suffixed):
    """Windows: one record each."""

    _suffix = _WINDOW

    def _check_suffixes(self, suffixes: np.ndarray[tuple[int], Any]) -> None:
        if suffixes["sequence"].any():
            raise InputError(
                "a window has a sequence number: the application's store retains duplicates, ours does not"
            )

    def _told(self, suffixes: np.ndarray[tuple[int], Any]) -> None:
        self._advance("store_time", suffixes["start"])

    def values(self, batch: pa.RecordBatch) -> tuple[pa.Array, pa.Array]:
        """See `Importer`; a window has the timestamp of the newest record that it has taken up."""
        values, timestamp = super().values(batch)
        self._advance("stream_time", timestamp.to_numpy()[valid_of(batch.column("value"))])
        return values, timestamp


class _Sessions(_Suffixed):
    """Sessions: the newest record that was taken up is the end of one."""

    _suffix = _SESSION

    def _told(self, suffixes: np.ndarray[tuple[int], Any]) -> None:
        for clock in ("store_time", "stream_time"):
            self._advance(clock, suffixes["end"])


class _JoinWindow(_Suffixed):
    """A side of a stream-stream join."""

    _suffix = _WINDOW

    def __init__(self, described: Described, form: StoreFormat) -> None:
        super().__init__(described, form, aggregates=False)
        self._side = str(described.settings["side"])

    def _told(self, suffixes: np.ndarray[tuple[int], Any]) -> None:
        self._advance(self._side, suffixes["start"])


class _Buffered(_Pairs):
    """What waits: `statelib.stores.buffer_value_codec`. Its log has times of a wall clock, so records' own count."""

    def __init__(self, described: Described, form: StoreFormat) -> None:
        super().__init__(described, form, aggregates=False)
        self._own = serde_for(self._values.type)

    def values(self, batch: pa.RecordBatch) -> tuple[pa.Array, pa.Array]:
        """See `Importer`."""
        there = np.flatnonzero(valid_of(batch.column("value")))
        buffered = decode(batch.column("value").take(pa.array(there)).to_pylist(), self._name)
        parts = {name: self._own_bytes(getattr(buffered, name)) for name in ("prior", "old", "new")}
        which = np.full(len(batch), -1)
        which[there] = np.arange(len(there))
        timestamp = np.zeros(len(batch), np.int64)
        timestamp[there] = buffered.timestamp
        return encode(replace(buffered, **parts)).take(pa.array(which, mask=which < 0)), pa.array(timestamp)

    def _own_bytes(self, raws: pa.Array) -> pa.Array:
        return self._own.serialize(self._values.states_of(raws)).cast(pa.binary())


class _Suppression(_Buffered):
    """What suppress holds back."""

    def __init__(self, described: Described, form: StoreFormat) -> None:
        super().__init__(described, form)
        windows = described.settings["windows"]
        words = 0 if windows is None else windows_of(windows).key_suffix_words
        self._suffix = np.dtype((_WORD, (words,))) if words else None

    def keys(self, raws: Column) -> pa.Array:
        """See `Importer`."""
        if self._suffix is None:
            return self._keys.read(raws)
        plain, words = split_tail(raws, self._suffix, self._name)
        return joined(self._keys.read(plain), packed(words))

    def values(self, batch: pa.RecordBatch) -> tuple[pa.Array, pa.Array]:
        """See `Importer`; refuses the bytes of old versions of Kafka Streams."""
        name, version = VERSION_HEADER
        for value, headers in zip(batch.column("value"), batch.column("headers").to_pylist(), strict=True):
            if value.is_valid and {"key": name, "value": version} not in (headers or []):
                raise InputError(
                    f"a record of suppress has no header {name} = {version.hex()}: another version of Kafka Streams",
                    store=self._name,
                    next_step="let the application write its buffer anew with version 2.6 or a later one",
                )
        return super().values(batch)


class _JoinBuffer(_Buffered):
    """What waits for a table."""

    def keys(self, raws: Column) -> pa.Array:
        """See `Importer`."""
        heads, rest = split_head(raws, BUFFER_HEAD, self._name)
        plain, tails = split_tail(rest, BUFFER_TAIL, self._name)
        return joined(packed(heads), self._keys.read(plain), packed(tails))


_IMPORTERS: dict[str, Callable[[Described, StoreFormat], Importer]] = {
    "key-value": _Pairs,
    "versioned": _Pairs,
    "window": _Windows,
    "session": _Sessions,
    "suppression-buffer": _Suppression,
    "join-buffer": _JoinBuffer,
    "join-window": _JoinWindow,
}
