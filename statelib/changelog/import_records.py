"""A live application's changelog into a store of ours: the inverse of `statelib.changelog.export`.

The application's keys and values become those that our own changelogs have (`statelib.operators.changelog`), and
`statelib.changelog.restore` does the rest. Three kinds cannot come back: Kafka Streams has only a hash of the rows that
subscribe to another table's keys, does not say which record of a side one is that waits for a match, and has no
deduplications.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from statelib.changelog.export import AS_KAFKA
from statelib.changelog.kinds import KINDS
from statelib.changelog.restore import restore
from statelib.described.description import Described
from statelib.described.headers import HeadersImporter, has_headers
from statelib.errors.kinds import ConfigurationError
from statelib.operators.aggregation.snapshot import results_of
from statelib.records.batch import NO_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from statelib.described.importing import Importer
    from statelib.described.live_format import StoreFormat
    from statelib.documents.topologies import StoreDescription
    from statelib.settings.semantics import Semantics
    from statelib.stores.backend import Backend

ARRIVALS = 1 << 31
"""As many records an imported join has had: more than any sequence in the keys of its changelog can tell."""


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
    kind = KINDS.get(store.kind)
    if kind is None or kind.importer is None:
        raise ConfigurationError(
            f"a {store.kind} store cannot be restored from Kafka Streams", store=store.name, next_step=_WAY_OUT
        )
    described = Described(store, schema, {}, semantics, results_of=results_of(store.settings))
    if has_headers(store.settings):
        return HeadersImporter(kind.importer, described, form)
    return kind.importer(described, form)


_COUNTED = ("join-buffer", "join-window")
_WAY_OUT = "begin the job early enough to replay what this store holds, and let it begin empty"


def _imported(importer: Importer, batch: pa.RecordBatch) -> pa.RecordBatch:
    keys, (values, timestamp) = importer.keys(batch.column("key")), importer.values(batch)
    return pa.RecordBatch.from_arrays([keys, values.cast(pa.binary()), timestamp], ["key", "value", "timestamp"])
