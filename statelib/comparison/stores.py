"""Compares the stores of two jobs, each at a commit: by key, and by window or version."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.columns.windowed_type import archived_type
from statelib.comparison.compare import EXAMPLES, compare
from statelib.comparison.fields import VALUE, Rules
from statelib.comparison.sides import PARTITION_BITS, Side
from statelib.comparison.times import ALL_TIMES
from statelib.errors.did_you_mean import did_you_mean
from statelib.errors.kinds import ConfigurationError
from statelib.snapshots import open_state

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from statelib.comparison.difference import Difference, Example
    from statelib.comparison.matches import Resources
    from statelib.comparison.sinks import JobCommit
    from statelib.comparison.times import Interval
    from statelib.snapshots import StateSnapshot, StoreSnapshot
    from statelib.storage import Storage

_IDENTITY = ("key", "id", "foreign_key", "window_start", "window_end", "valid_from")
"""Columns that say which entry it is, in this order."""

_PREFIX = f"{VALUE}."
_NO_RULES = Rules()


@dataclass(frozen=True, slots=True)
class StoreDifference:
    """What was found of a store.

    Attributes:
        a: What A calls it.
        b: What B calls it.
        kind: See `statelib.snapshots.StoreSnapshot`.
        partitions: How many partitions have a share of it.
        shared_partitions: Those of which both have the same files, so that nobody need read them.
        difference: See `Difference`. Its fields are the store's columns: ``value.total``, ``timestamp``.
    """

    a: str
    b: str
    kind: str
    partitions: int
    shared_partitions: int
    difference: Difference


@dataclass(frozen=True, slots=True)
class StoreDifferences:
    """What was found of the stores of two jobs.

    Attributes:
        stores: Those that both have.
        only_a: Stores of A that B does not have, or of another kind; none if stores were named.
        only_b: The same of B.
    """

    stores: tuple[StoreDifference, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        """Whether both have the same stores with the same entries."""
        return not self.only_a and not self.only_b and all(store.difference.is_empty for store in self.stores)


def compare_stores(
    warehouse: Storage,
    a: JobCommit,
    b: JobCommit,
    resources: Resources,
    state_dir: Path,
    *,
    stores: Sequence[str] = (),
    rules: Rules = _NO_RULES,
    examples: int = EXAMPLES,
    within: Interval = ALL_TIMES,
) -> StoreDifferences:
    """Compares the stores of two jobs. A partition whose files both share is not read.

    Args:
        warehouse: Root of all durable data.
        a: One job at a commit.
        b: The other one, or another commit of the same.
        resources: What the comparison may use.
        state_dir: A local folder for fetched state, as in the setting of that name.
        stores: Those to compare, as the name in A, or ``A=B`` with both names; none: all that have the same name.
        rules: What counts as equal.
        examples: How many entries are shown of each kind.
        within: Entries of another time are left out: of a window its start counts, of a version from when it is valid,
            else the timestamp. Stores without any of these are compared whole.

    Raises:
        ConfigurationError: There is no such job, commit or store; the state of a commit has expired; a store has
            another kind in B, or holds bytes of the job's own serde.
        CorruptedDataError: A file of the state is missing or damaged.
    """
    with _opened(warehouse, a, b, state_dir) as (one, other):
        pairs = _pairs(stores, one, other)
        found = tuple(_compared(*pair, resources, rules, examples, within) for pair in pairs)
        left = [
            () if stores else tuple(sorted({store.name for store in state.stores} - {pair[n].name for pair in pairs}))
            for n, state in enumerate((one, other))
        ]
    return StoreDifferences(found, left[0], left[1])


def store_columns(
    warehouse: Storage, a: JobCommit, b: JobCommit, state_dir: Path, stores: Sequence[str] = ()
) -> list[pa.Field]:
    """The columns of stores that rules may name: those that do not say which entry it is.

    Args and errors raised: see `compare_stores`.
    """
    with _opened(warehouse, a, b, state_dir) as (one, other):
        return [
            column
            for pair in _pairs(stores, one, other)
            for store in pair
            for column in _columns(store.schema(_view_of(store)))[1]
        ]


@contextmanager
def _opened(
    warehouse: Storage, a: JobCommit, b: JobCommit, state_dir: Path
) -> Iterator[tuple[StateSnapshot, StateSnapshot]]:
    root, options = warehouse.uri(""), warehouse.options
    with (
        open_state(root, a.job, commit=a.commit, storage_options=options, state_dir=state_dir) as one,
        open_state(root, b.job, commit=b.commit, storage_options=options, state_dir=state_dir) as other,
    ):
        yield one, other


def _pairs(stores: Sequence[str], a: StateSnapshot, b: StateSnapshot) -> list[tuple[StoreSnapshot, StoreSnapshot]]:
    return _named(stores, a, b) if stores else _matched(a, b)


def _matched(a: StateSnapshot, b: StateSnapshot) -> list[tuple[StoreSnapshot, StoreSnapshot]]:
    of_b = {store.name: store for store in b.stores}
    return [
        (store, of_b[store.name]) for store in a.stores if store.name in of_b and of_b[store.name].kind == store.kind
    ]


def _named(stores: Sequence[str], a: StateSnapshot, b: StateSnapshot) -> list[tuple[StoreSnapshot, StoreSnapshot]]:
    pairs = []
    for given in stores:
        name, _, other = given.partition("=")
        one, two = _store(a, name), _store(b, other or name)
        if one.kind != two.kind:
            what = f"the store is a {one.kind} store in A and a {two.kind} store in B"
            raise ConfigurationError(what, store=given, next_step="name two stores of one kind: --store A=B")
        pairs.append((one, two))
    return pairs


def _store(state: StateSnapshot, name: str) -> StoreSnapshot:
    for store in state.stores:
        if store.name == name:
            return store
    step = did_you_mean(name, [store.name for store in state.stores], "one of:")
    raise ConfigurationError("the job has no such store", job=state.job, store=name, next_step=step)


@dataclass(frozen=True, slots=True)
class _Entries:
    """The entries of a partition of a store; see `statelib.comparison.sides.Stretch`."""

    store: StoreSnapshot
    view: str
    partition: int
    within: Interval
    start: int = 0
    end: int | None = None

    def read(self, start: int, end: int | None) -> Iterator[pa.RecordBatch]:
        at = 0
        for batch in self.store.batches(
            self.view, partitions=[self.partition], since=self.within.since_ms, until=self.within.until_ms
        ):
            first, last = max(start - at, 0), len(batch) if end is None else min(end - at, len(batch))
            at += len(batch)
            if first < last:
                yield _as_rows(batch.slice(first, last - first))
            if end is not None and at >= end:
                return


def _compared(
    a: StoreSnapshot, b: StoreSnapshot, resources: Resources, rules: Rules, examples: int, within: Interval
) -> StoreDifference:
    shared = _shared_partitions(a, b)
    of_entries = Rules(
        rules.tolerance,
        {f"{_PREFIX}{path}": tolerance for path, tolerance in rules.tolerances.items()},
        frozenset(f"{_PREFIX}{path}" for path in rules.ignored),
    )
    found = compare(
        _side(a, shared, within), _side(b, shared, within), "set", resources, rules=of_entries, examples=examples
    )
    return StoreDifference(a.name, b.name, a.kind, len({*a.partitions, *b.partitions}), len(shared), _of_columns(found))


def _shared_partitions(a: StoreSnapshot, b: StoreSnapshot) -> set[int]:
    """The partitions of which both have the same bytes, and look at them in the same way."""
    if a.described.store != b.described.store or a.partitions != b.partitions:
        return set()
    return {partition for partition in a.partitions if a.content_of(partition) == b.content_of(partition)}


def _view_of(store: StoreSnapshot) -> str:
    return "history" if "history" in store.views else "latest"


def _side(store: StoreSnapshot, shared: Collection[int], within: Interval) -> Side:
    view = _view_of(store)
    own = tuple(
        _Entries(store, view, partition, within if store.time_column(view) is not None else ALL_TIMES)
        for partition in store.partitions
        if partition not in shared
    )
    identity, content = _columns([field for field in store.schema(view) if field.name != "partition"])
    key = archived_type(identity[0].type) if len(identity) == 1 else pa.struct(identity)
    return Side(
        key, pa.struct(content), own, has_times=False, place_of=lambda place: {"partition": place >> PARTITION_BITS}
    )


def _columns(fields: Sequence[pa.Field]) -> tuple[list[pa.Field], list[pa.Field]]:
    """The columns that say which entry it is, and all others."""
    by_name = {field.name: field for field in fields}
    identity = [by_name[name] for name in _IDENTITY if name in by_name] or list(fields)
    return identity, [field for field in fields if field not in identity]


def _as_rows(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch of a view as columns ``key`` and ``value``."""
    identity, content = _columns([field for field in batch.schema if field.name != "partition"])
    keys = [batch.column(field.name) for field in identity]
    key = keys[0] if len(keys) == 1 else pa.StructArray.from_arrays(keys, fields=identity)
    columns = [batch.column(field.name) for field in content]
    value = (
        pa.StructArray.from_arrays(columns, fields=content)
        if columns
        else pa.array(np.full(len(batch), None), pa.struct([]))
    )
    return pa.RecordBatch.from_arrays([key, value], ["key", "value"])


def _of_columns(found: Difference) -> Difference:
    """The same with the names that the store's columns have."""

    def path(name: str) -> str:
        return name.removeprefix(_PREFIX)

    def side(of: Mapping[str, object] | None) -> dict[str, object] | None:
        if of is None:
            return None
        value = of[VALUE]
        return {**(value if isinstance(value, dict) else {}), **{n: v for n, v in of.items() if n != VALUE}}

    def example(one: Example) -> Example:
        return replace(one, a=side(one.a), b=side(one.b), fields=tuple(map(path, one.fields)))

    return replace(
        found,
        rows_a=found.equal + found.changed + found.only_a,
        rows_b=found.equal + found.changed + found.only_b,
        schema=tuple(replace(field, path=path(field.path)) for field in found.schema),
        fields=tuple(replace(field, path=path(field.path)) for field in found.fields),
        first=None if found.first is None else example(found.first),
        examples={kind: tuple(map(example, rows)) for kind, rows in found.examples.items()},
    )
