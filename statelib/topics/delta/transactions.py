"""What applications have committed last (Delta's application transactions), all of it from one look at a table's log.

delta-rs answers for one application at a time, and reads the log anew for each: up to ten entries and a checkpoint,
which are as many requests where the table is in an object store. A plan asks some ten times for each partition.

What is read, as Delta's protocol has it::

    _delta_log/_last_checkpoint                  {"version": n, ...}: the newest checkpoint; none: n = -1
    _delta_log/<n>.checkpoint.parquet            its column txn: what was said up to version n
    _delta_log/<n + 1>.json ... <version>.json   a line each that says more: {"txn": {"appId": ..., "version": ...}}

Numbers have 20 digits. Where checkpoints are in parts, of Delta's second kind, or newer than what is asked for,
delta-rs is asked after all.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from statelib.storage import ObjectNotFoundError
from statelib.storage.transfers import in_parallel

if TYPE_CHECKING:
    from deltalake import DeltaTable

    from statelib.storage import Storage

_OTHER_CHECKPOINTS = frozenset({"parts", "v2Checkpoint"})


class Transactions:
    """The application transactions of one version of a table.

    Args:
        table: The version.
        storage: Rooted at the table.

    Raises:
        ValueError: The log is damaged.
        RetryableError: The store did not answer.
    """

    def __init__(self, table: DeltaTable, storage: Storage) -> None:
        self._table = table
        self._last = read_transactions(storage, table.version())

    def last(self, app_id: str) -> int | None:
        """The version that an application committed last; None: none."""
        return self._table.transaction_version(app_id) if self._last is None else self._last.get(app_id)


def read_transactions(storage: Storage, version: int) -> dict[str, int] | None:
    """By app id, the version that was committed last up to ``version`` of the table; None: see the module.

    Raises:
        ValueError: The log is damaged.
        RetryableError: The store did not answer.
    """
    base = _last_checkpoint(storage)
    if base is None or base > version:
        return None
    last: dict[str, int] = {}
    paths = [f"_delta_log/{n:020d}.json" for n in range(base + 1, version + 1)]
    try:
        if base >= 0:
            last |= _of_checkpoint(storage, f"_delta_log/{base:020d}.checkpoint.parquet")
        for entry in in_parallel(storage.get, paths, storage.requests_at_once):
            last |= _of_entry(entry)
    except ObjectNotFoundError:
        return None
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"a transaction cannot be understood: {error!r}") from error
    return last


def _last_checkpoint(storage: Storage) -> int | None:
    """The version of the newest checkpoint, -1 where there is none, and None where it is not of the usual kind."""
    said = storage.get_if_present("_delta_log/_last_checkpoint")
    if said is None:
        return -1
    try:
        pointer = json.loads(said)
        return None if _OTHER_CHECKPOINTS & pointer.keys() else int(pointer["version"])
    except (AttributeError, KeyError, TypeError, ValueError):
        return None  # it only helps: the checkpoints themselves can be listed


def _of_checkpoint(storage: Storage, path: str) -> dict[str, int]:
    with storage.open_input(path) as file:
        try:
            with pq.ParquetFile(file) as checkpoint:
                if "txn" not in checkpoint.schema_arrow.names:
                    return {}
                said = checkpoint.read(["txn.appId", "txn.version"]).column("txn").combine_chunks().drop_null()
        except (pa.ArrowException, OSError) as error:  # what the store has to say comes as a HindstreamError
            raise ValueError(f"a checkpoint cannot be read: {error}") from error
    app_ids, versions = (said.field(name).to_pylist() for name in ("appId", "version"))
    return dict(zip(app_ids, versions, strict=True))


def _of_entry(entry: bytes) -> dict[str, int]:
    actions = (json.loads(line) for line in entry.splitlines() if b'"txn"' in line)
    return {action["txn"]["appId"]: action["txn"]["version"] for action in actions if "txn" in action}
