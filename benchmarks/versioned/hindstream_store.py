"""Our store by its Python API: ``python -m benchmarks.versioned.hindstream_store OPERATIONS FOLDER RETENTION SEGMENT``.

The retention and the segment interval are in ms. Prints, as JSON, the CPU seconds and the digest of each kind of
operation, as ``Versioned.java`` does of Kafka Streams' store.
"""

from __future__ import annotations

import json
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from benchmarks.versioned.cases import Operations
from benchmarks.versioned.digests import NOTHING, digest_of
from statelib import Stores
from statelib.state.versioned import VersionedKeyValueStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

WARM_UP = 20_000


def main(file: str, folder: str, retention_ms: str, segment_interval_ms: str) -> None:
    """Puts, reads of the latest version, reads as of a time; first some in a store that does not count."""
    asked = Operations.read(Path(file))
    for name, limit in (("warm-up", WARM_UP), ("measured", None)):
        retention, segment = (timedelta(milliseconds=int(ms)) for ms in (retention_ms, segment_interval_ms))
        supplier = Stores.persistent_versioned_key_value_store("store", retention, segment)
        store = Stores.versioned_key_value_store_builder(supplier, pa.string(), pa.int64()).build()
        with store.init(Path(folder, name)):
            figures = measured(store, asked, limit)
    print(json.dumps(figures))


def measured(store: VersionedKeyValueStore, asked: Operations, limit: int | None) -> dict[str, dict[str, float | int]]:
    """By kind of operation its CPU seconds, those of all threads of this process, and its digest."""
    names = [f"key-{n:08d}" for n in range(asked.keys)]
    puts = [
        (names[key], value, at)
        for key, value, at in zip(
            asked.put_key[:limit].tolist(),
            asked.put_value[:limit].tolist(),
            asked.put_time[:limit].tolist(),
            strict=True,
        )
    ]
    keys = [names[key] for key in asked.read_key[:limit].tolist()]
    reads = list(zip(keys, asked.read_time[:limit].tolist(), strict=True))
    put, get = store.put, store.get

    def put_all() -> list[int]:
        ends = [put(*one) for one in puts]
        store.flush()
        return ends

    return {
        "put": _timed(put_all, lambda valid_to: (valid_to,)),
        "get": _timed(lambda: [get(key) for key in keys], _answer),
        "get as of": _timed(lambda: [get(key, at) for key, at in reads], _answer),
    }


def _timed(do: Callable[[], list[Any]], answer: Callable[[Any], Iterable[int]]) -> dict[str, float | int]:
    began = time.process_time()
    found = do()
    seconds = time.process_time() - began
    return {"cpu_seconds": seconds, "digest": digest_of(number for one in found for number in answer(one))}


def _answer(record: Any) -> tuple[int, ...]:
    return (NOTHING,) if record is None else (record.value, record.timestamp)


if __name__ == "__main__":
    main(*sys.argv[1:])
