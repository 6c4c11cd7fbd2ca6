"""One store of a job's state as Arrow record batches."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.columns.windowed_type import WindowedType
from statelib.described.description import Place
from statelib.described.view import Ask, filtered
from statelib.errors.kinds import ConfigurationError, HindstreamError, InputError
from statelib.records.key_column import KeyColumn
from statelib.serdes.single_values import as_struct
from statelib.state.epoch_time import epoch_ms
from statelib.stores.spec import families_to_read
from statelib.topics.partitioner import partition_for

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from numpy.typing import NDArray

    from statelib.described.description import Described
    from statelib.described.view import Raw, View, ViewName
    from statelib.documents.manifests import CommittedTask
    from statelib.snapshots.restored import RestoredTasks
    from statelib.state.epoch_time import Time

PARTITION = pa.field("partition", pa.int32())


class StoreSnapshot:
    """A store of a job at a commit, as data: like interactive queries of Kafka Streams, but for any commit.

    Made by `open_state`. Rows come as Arrow record batches of some thousand rows, partition by partition (a partition
    is one task's part). Columns have the types of the job's records; times are ``timestamp[ms, UTC]``.

    ==================  ==========================================================================================
    kind of store       columns of the view ``latest`` (and ``partition``)
    ==================  ==========================================================================================
    key-value           key, value, timestamp
    versioned           key, value, timestamp: the latest values (KIP-889), or those of a time (``as_of``).
                        View ``history``: key, value, valid_from, valid_to (null: it is the latest), is_tombstone
    window              key, window_start, window_end, value, timestamp; ``as_of``: windows that hold the time
    session             key, window_start, window_end, value; ``as_of``: sessions that hold the time
    deduplication       key, id or both, timestamp, source, source_partition, source_offset, expired (KIP-655)
    suppression-buffer  key, window_start, window_end (of a windowed table), value, timestamp, leaves_at (KIP-328)
    join-buffer         key, value, timestamp, joined_after
    join-window         key, value, timestamp
    held-records        key, side, left, right, timestamp
    subscriptions       foreign_key, key, value, number (KIP-213)
    foreign-key-answers key, number, timestamp
    punctuation         due, interval_ms, cancelled, callback
    ==================  ==========================================================================================

    Windows and sessions that are out of retention by the store's own clock are not visible.
    """

    def __init__(
        self,
        described: Described,
        views: Mapping[ViewName, View],
        tasks: Mapping[int, tuple[str, CommittedTask]],
        restored: RestoredTasks,
        close: Callable[[], None],
    ) -> None:
        self._described = described
        self._views = views
        self._tasks = tasks
        self._restored = restored
        self._close = close

    def __repr__(self) -> str:
        return f"StoreSnapshot({self.name!r}, {self.kind!r}, views={list(self.views)})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Removes what was fetched, and closes the whole state that the store belongs to."""
        self._close()

    @property
    def name(self) -> str:
        """The store's name."""
        return self._described.name

    @property
    def kind(self) -> str:
        """What kind of store it is: see the class."""
        return self._described.store.kind

    @property
    def views(self) -> tuple[str, ...]:
        """The ways to look at it."""
        return tuple(self._views)

    @property
    def partitions(self) -> tuple[int, ...]:
        """The partitions that have a share of it. Of a global table, which each task has whole: one."""
        return tuple(self._tasks)

    def schema(self, view: str = "latest") -> pa.Schema:
        """The columns of a view.

        Raises:
            ConfigurationError: The store has no such view.
        """
        columns = self._view(view).columns
        return pa.schema([*(pa.field(name, column.type) for name, column in columns.items()), PARTITION])

    def keys(self, view: str = "latest") -> tuple[str, ...]:
        """The columns that ``where`` may name."""
        return tuple(self._view(view).keys)

    def time_column(self, view: str = "latest") -> str | None:
        """The column that ``since`` and ``until`` compare; None: the view has none."""
        return self._view(view).time

    def read(self, view: str = "latest", **choice: Any) -> pa.Table:
        """As `batches`, but as one table, for results that fit into memory."""
        batches = list(self.batches(view, **choice))
        names = choice.get("columns") or self.schema(view).names
        return pa.Table.from_batches(batches, pa.schema([self.schema(view).field(name) for name in names]))

    def batches(
        self,
        view: str = "latest",
        *,
        columns: Sequence[str] | None = None,
        where: Mapping[str, Any] | None = None,
        partitions: Collection[int] | None = None,
        as_of: Time | None = None,
        since: Time | None = None,
        until: Time | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a view. Memory does not grow with the store.

        Args:
            view: One of `views`.
            columns: The columns to return, in this order; None: all. Other columns are not decoded.
            where: Values that columns must have, such as ``{"key": "JFK"}``. Each column must be one of `keys`. A
                windowed key is ``Windowed("JFK", start, end)`` (ms) or the struct. A key is looked up in its own
                partition first, and in the others only if it is not there (a producer may have placed it elsewhere).
            partitions: Only these partitions; None: all.
            as_of: For a versioned store: the values valid at this time; for windows and sessions: those that contain
                it.
            since: Rows whose `time_column` is not before this time.
            until: Rows whose `time_column` is before this time.

        Yields:
            Non-empty batches. Times are given as milliseconds, or as a `datetime` with a time zone.

        Raises:
            ConfigurationError: There is no such view, column or partition; the view has no times; or a column holds
                bytes of the job's own serde.
            InputError: A value of ``where`` is not of its column's type.
            CorruptedDataError: A file of the state is missing or damaged.
        """
        chosen = self._view(view)
        names = list(self.schema(view).names if columns is None else columns)
        for name in names:
            if name not in chosen.columns and name != PARTITION.name:
                raise self._refusal(f"there is no column {name!r}", f"one of: {', '.join(self.schema(view).names)}")
        ask = Ask(
            self._where(chosen, where or {}), *(None if t is None else epoch_ms(t) for t in (as_of, since, until))
        )
        if as_of is not None and not chosen.takes_as_of:
            raise self._refusal(f"view {view} of a {self.kind} store cannot be read as of a time", "leave as_of out")
        if chosen.time is None and (since, until) != (None, None):
            raise self._refusal("its rows have no time", "leave since and until out")
        return self._batches(chosen, names, ask, self._asked(partitions))

    @property
    def described(self) -> Described:
        """The description of the store, without its content."""
        return self._described

    def content_of(self, partition: int) -> object:
        """What decides the entries of a partition: equal for stores of one description that have the same ones.

        The files of the whole task, so two stores may be equal although it differs.

        Raises:
            ConfigurationError: There is no such partition.
        """
        self._asked([partition])
        _, task = self._tasks[partition]
        clocks = task.position.clocks.get(self._described.store.node, {})
        files = sorted((file.name, file.sha256) for file in task.state.files)
        return files, clocks, task.position.stream_time

    @contextmanager
    def opened(self, partition: int) -> Iterator[Place]:
        """One task's part of the store as stored, for readers that need more than a view offers.

        Raises:
            ConfigurationError: There is no such partition, or the state has expired meanwhile.
            CorruptedDataError: A file of the state is missing or damaged.
        """
        self._asked([partition])
        task_id, task = self._tasks[partition]
        try:
            with self._restored.open(task_id, families_to_read(self._described.store)) as backend:
                clocks = task.position.clocks.get(self._described.store.node, {})
                yield Place(backend, clocks, task.position.stream_time)
        except HindstreamError as error:
            error.place.setdefault("task", task_id)
            raise

    def scratch(self) -> AbstractContextManager[Path]:
        """A folder on this host's disk for whoever sorts what a store holds; removed at the end of the ``with``."""
        return self._restored.scratch()

    def _batches(self, view: View, names: list[str], ask: Ask, partitions: list[int]) -> Iterator[pa.RecordBatch]:
        key = ask.where.get(view.routed_by or "")
        is_placed_by_key = key is not None and not self._described.is_of_processor
        if is_placed_by_key:
            own = partition_for(self._placed_by(pa.array([key], pa.binary()), view), len(self._tasks))[0]
            partitions = sorted(partitions, key=lambda partition: (partition != own, partition))
        for partition in partitions:
            found = False
            for batch in self._of_partition(view, names, ask, partition):
                yield batch
                found = True
            if found and is_placed_by_key:
                return

    def _placed_by(self, key: pa.Array, view: View) -> pa.Array:
        """What decides in which partition a key is: of a windowed one the key without its windows."""
        of = self._described.type(view.routed_by or "")
        return KeyColumn.deserialized(key, of).placed_by() if isinstance(of, WindowedType) else key

    def _of_partition(self, view: View, names: list[str], ask: Ask, partition: int) -> Iterator[pa.RecordBatch]:
        fields = [self._field(view, name) for name in names]
        with self.opened(partition) as place:
            for raw in view.scan(place, ask):
                rows = _chosen(raw, view, ask)
                count = len(next(iter(rows.values())))
                if count:
                    shares = {PARTITION.name: pa.repeat(pa.scalar(partition, pa.int32()), count)}
                    arrays = [shares[n] if n in shares else _decoded(view, n, rows[n]) for n in names]
                    yield pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))

    def _field(self, view: View, name: str) -> pa.Field:
        return PARTITION if name == PARTITION.name else pa.field(name, view.columns[name].type)

    def _view(self, name: str) -> View:
        for known, view in self._views.items():
            if known == name:
                return view
        raise self._refusal(f"a {self.kind} store has no view {name!r}", f"one of: {', '.join(self._views)}")

    def _asked(self, partitions: Collection[int] | None) -> list[int]:
        wanted = self._tasks if partitions is None else set(partitions)
        if unknown := set(wanted) - set(self._tasks):
            raise self._refusal(f"there is no partition {min(unknown)}", f"one of: {list(self._tasks)}")
        return sorted(wanted)

    def _where(self, view: View, where: Mapping[str, Any]) -> dict[str, bytes]:
        """The values' bytes."""
        found: dict[str, bytes] = {}
        for name, value in where.items():
            if name not in view.keys:
                step = f"one of: {', '.join(view.keys)}" if view.keys else "leave it out"
                raise self._refusal(f"rows cannot be looked up by {name!r}", step)
            arrow_type = view.columns[name].type
            try:
                array = pa.array([as_struct(value)], arrow_type)
            except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
                what = f"{value!r} is no {name} of this store, which are of type {arrow_type}: {error}"
                raise InputError(what, store=self.name) from error
            if array.null_count:
                raise InputError(f"no row of a store has a null {name}", store=self.name)
            found[name] = view.keys[name]().serialize(array)[0].as_py()
        return found

    def _refusal(self, what: str, next_step: str) -> ConfigurationError:
        return ConfigurationError(what, store=self.name, next_step=next_step)


def _chosen(raw: Raw, view: View, ask: Ask) -> Raw:
    """The rows that have the bytes and the time that are asked for."""
    keep: NDArray[np.bool_] | None = None
    for name, value in ask.where.items():
        keep = _both(keep, np.asarray(pc.equal(raw[name], pa.scalar(value, raw[name].type))))
    if view.time is not None and (ask.since_ms, ask.until_ms) != (None, None):
        times = pa.array(raw[view.time]).cast(pa.int64()).fill_null(-1)
        if ask.since_ms is not None:
            keep = _both(keep, np.asarray(times) >= ask.since_ms)
        if ask.until_ms is not None:
            keep = _both(keep, np.asarray(times) < ask.until_ms)
    return raw if keep is None or keep.all() else filtered(raw, keep)


def _both(one: NDArray[np.bool_] | None, other: NDArray[np.bool_]) -> NDArray[np.bool_]:
    return other if one is None else one & other


def _decoded(view: View, name: str, raw: Any) -> pa.Array:
    column = view.columns[name]
    array = column.decode(raw)
    return array if array.type == column.type else array.cast(column.type)
