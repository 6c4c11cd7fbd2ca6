"""Puts the records of a changelog back into a store: what a Kafka Streams application does when it starts.

The layouts are in `statelib.operators.changelog`, and in the module ``changelog`` of each family. What is written are
the bytes that the job's own operators wrote, whatever the portions in which the records come.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from statelib.changelog.kinds import KINDS
from statelib.described.restoring import Target, last_of_each
from statelib.errors.kinds import ConfigurationError
from statelib.records.batch import NO_TIMESTAMP
from statelib.stores.backend import WriteBatch

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from statelib.documents.topologies import StoreDescription
    from statelib.settings.semantics import Semantics
    from statelib.stores.backend import Backend


def restore(
    store: StoreDescription,
    schema: pa.Schema,
    records: Iterable[pa.RecordBatch],
    backend: Backend,
    *,
    clock_ms: int = NO_TIMESTAMP,
    clocks: Mapping[str, int] | None = None,
    semantics: Semantics = "kip",
    takes_late: bool = False,
) -> int:
    """Writes what a changelog holds into a store that is empty.

    Args:
        store: The store.
        schema: Its types (`StoreDescription.arrow_schema`, decoded).
        records: The changelog from its beginning, in order: key (binary), value (binary, null), timestamp (int64 ms).
        backend: Where the store is.
        clock_ms: Of windows, sessions and deduplications: the clock that the store goes by, as of the end;
            `NO_TIMESTAMP`: it has none.
        clocks: Those of the node that writes the store, as of the end.
        semantics: Those of the job.
        takes_late: Whether a versioned store takes a record that is older than its retention too, if it is its key's
            latest: among records of a plain store, or in another order than they were put.

    Returns:
        How many records there were.

    Raises:
        ConfigurationError: Stores of this kind have no changelog.
        CorruptedDataError: A record is not one of this store's.
    """
    kind = KINDS.get(store.kind)
    if kind is None:
        raise ConfigurationError(f"a {store.kind} store has no changelog", store=store.name)
    is_of_processor = "store" in store.settings  # they say what class they are of
    made = kind.of_processor if is_of_processor and kind.of_processor is not None else kind.restoring
    restoring = made(Target(store, schema, backend, clock_ms, clocks or {}, semantics, takes_late))
    count = 0
    for batch in records:
        if len(batch):
            counts = batch.take(pa.array(last_of_each(batch.column("key")))) if restoring.only_last else batch
            write = WriteBatch()
            restoring.put(counts.column("key"), counts.column("value"), counts.column("timestamp").to_numpy(), write)
            backend.write(write)
            count += len(batch)
    write = WriteBatch()
    restoring.finish(write)
    backend.write(write)
    return count
