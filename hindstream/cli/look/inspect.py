"""``hindstream inspect``: what a store holds, read from the checkpoint of a commit; the job's code is not needed.

The rows are those of `hindstream.open_state`: of one key, or the first ones.
"""

from __future__ import annotations

import json
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hindstream.console.output import standard_output
from hindstream.console.rows import rows_of, write_rows
from statelib.columns.windowed_type import is_windowed_struct
from statelib.errors.counted import counted
from statelib.errors.kinds import ConfigurationError, InputError
from statelib.snapshots import open_state
from statelib.state import Windowed

if TYPE_CHECKING:
    from hindstream.console.rows import RowFormat
    from statelib.settings.settings import Settings
    from statelib.snapshots import StateSnapshot, StoreSnapshot


def print_stores(job: str, commit: int | None, settings: Settings, output: RowFormat = "table") -> None:
    """Prints which stores a job has.

    Args:
        job: The job's name.
        commit: The commit; None: the newest.
        settings: See `Settings`.
        output: See `print_rows`.

    Raises:
        ConfigurationError: There is no such job or commit, or its state has expired.
    """
    with _opened(job, commit, settings) as state:
        if not state.stores:
            raise ConfigurationError("the job has no stores", job=job, next_step="the job is stateless")
        rows = [
            {"store": store.name, "kind": store.kind, "partitions": len(store.partitions), "columns": _columns(store)}
            for store in state.stores
        ]
        write_rows(rows, list(rows[0]), f"stores of {job}, as of commit {state.commit}", output)


def print_rows(
    job: str,
    store: str,
    key: str | None,
    as_of: str | None,
    commit: int | None,
    settings: Settings,
    *,
    history: bool = False,
    limit: int | None = None,
    output: RowFormat = "table",
) -> None:
    """Prints the rows of a store: tables' values, versions, windows, sessions, or what waits.

    Args:
        job: The job's name.
        store: Name of one of its stores.
        key: The key as text; JSON if the store's keys are no text, of a windowed one ``["JFK", 0, 60000]`` (ms). For a
            deduplication by key and id both, as JSON. None: rows of all keys.
        as_of: A time for a versioned store, ISO 8601 with time zone; None: the latest version. Windows and sessions:
            those that hold the time.
        commit: The commit; None: the newest.
        settings: See `Settings`.
        history: All versions of a versioned store, tombstones included.
        limit: How many rows at most; None: all.
        output: A table, a JSON object a line (`readable_json` says how bytes and NaN are shown), or CSV; the latter
            two with times in ISO 8601.

    Raises:
        ConfigurationError: There is no such store or commit, or its state has been expired; the key is not one of the
            store's.
    """
    view = "history" if history else "latest"
    with _opened(job, commit, settings) as state:
        found = state.store(store)
        where = {} if key is None else _where(found, view, key)
        batches = found.batches(view, where=where, as_of=None if as_of is None else _time(as_of))
        rows = (row for batch in batches for row in rows_of(batch))
        what = store if key is None else f"{key} in {store}"
        title = f"{what}, as of commit {state.commit}"
        nothing = f"{store} holds nothing{'' if key is None else f' of {key}'} there."
        shown = rows if limit is None else islice(rows, limit)
        write_rows(shown, found.schema(view).names, title, output, nothing=nothing)
        if output == "table" and limit is not None and next(rows, None) is not None:
            standard_output().print(f"The first {counted(limit, 'row')}; --limit says how many.")


def _opened(job: str, commit: int | None, settings: Settings) -> StateSnapshot:
    return open_state(
        settings.warehouse,
        job,
        commit=commit,
        storage_options=settings.store_options,
        state_dir=settings.local_state_dir,
    )


def _columns(store: StoreSnapshot) -> str:
    return ", ".join(name for name in store.schema().names if name != "partition") if store.views else ""


def _where(store: StoreSnapshot, view: str, text: str) -> dict[str, Any]:
    """What the text asks for.

    Raises:
        ConfigurationError: It is no key of the store.
    """
    names, schema = store.keys(view), store.schema(view)
    if not names:
        raise ConfigurationError(f"a {store.kind} store has no keys", store=store.name, next_step="leave the key out")
    if names == ("key", "id"):
        types = " and ".join(str(schema.field(name).type) for name in names)
        step = f"""give both, of the types {types}: '["JFK", "B6 725"]'"""
        try:
            key, identifier = json.loads(text)
            where = {"key": key, "id": identifier}
            store.batches(view, where=where)
        except (ValueError, TypeError, InputError) as error:
            what = "this store is by key and id"
            raise ConfigurationError(what, store=store.name, next_step=step) from error
        return where
    key_type = schema.field(names[0]).type
    try:
        where = {names[0]: text if pa.types.is_string(key_type) else _windowed(json.loads(text), key_type)}
        store.batches(view, where=where)
    except (ValueError, InputError) as error:
        shorter = ', or as ["KEY", START, END] (ms)' if is_windowed_struct(key_type) else ""
        step = f"give it as JSON of the type {key_type}{shorter}"
        raise ConfigurationError(f"{text!r} is no key of this store", next_step=step) from error
    return where


def _windowed(given: Any, key_type: pa.DataType) -> Any:
    """A windowed key that is given as the key and its window's start and end, ms; anything else as it is."""
    if not isinstance(given, list) or not is_windowed_struct(key_type):
        return given
    key, start, end = given
    return Windowed(_windowed(key, key_type.field("key").type), start, end)


def _time(text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        step = "write it like 2013-06-01T12:00Z"
        raise ConfigurationError(f"{text!r} is no time", setting="--as-of", next_step=step) from error
    if time.tzinfo is None:
        step = "write it like 2013-06-01T12:00Z"
        raise ConfigurationError("the time has no time zone", setting="--as-of", next_step=step)
    return time
