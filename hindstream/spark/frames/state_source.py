"""State as data in Spark: ``spark.read.format("hindstream_state")`` reads any store as of any commit (`open_state`).

::

    register_state_source(spark)
    weather = (
        spark.read.format("hindstream_state")
        .option("warehouse", "s3://bucket/warehouse")
        .option("job", "flights")
        .option("store", "weather-by-origin")
        .load()
    )
    weather.filter("key = 'JFK'").show()

==================  ================================================================================================
option              what it says
==================  ================================================================================================
warehouse           root of all durable data
job                 the job's name
store               the store's name; without it the frame lists the stores: store, kind, view, schema
commit              its number; default: the newest when the frame is made
view                ``latest`` (default) or, of a versioned store, ``history``
as_of               of a versioned store the values valid then, windows and sessions that hold the time: ISO 8601 with
                    time zone, or milliseconds since 1970
columns             the wanted ones, with commas between them; what is not wanted is not decoded
state_dir           a local folder on each worker; default: ``.hindstream``
storage.NAME        an option of the object store; credentials stay in the workers' environment
==================  ================================================================================================

Each of the state's tasks is a partition in Spark and comes as Arrow record batches. Of filters, equality with a key
makes it one task's look-up, equality with (and ``IN`` of) ``partition`` chooses tasks, and bounds of the view's time
bound what is read; Spark looks at all filters again. Arrow types that Spark has not (unsigned integers, dictionaries,
seconds of day, ...) become the next wider ones that it has.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    EqualNullSafe,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.pandas.types import from_arrow_schema

from hindstream.spark.frames.spark_types import spark_array, spark_schema
from statelib.errors.kinds import ConfigurationError, InputError
from statelib.snapshots import DEFAULT_STATE_DIR, StateSnapshot, StoreSnapshot, open_state

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType

_NAMES = ("warehouse", "job", "store", "commit", "view", "as_of", "columns", "state_dir")
_STORAGE = "storage."
_PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
_STORES = pa.schema([("store", pa.string()), ("kind", pa.string()), ("view", pa.string()), ("schema", pa.string())])
_A_MILLISECOND = timedelta(milliseconds=1)


def register_state_source(spark: SparkSession) -> None:
    """Makes ``spark.read.format("hindstream_state")`` known to a session.

    Also lets Spark hand filters to data sources in Python (``spark.sql.python.filterPushdown.enabled``), which the
    source needs. Workers need this package, as for a replay.
    """
    spark.conf.set(_PUSHDOWN, "true")
    spark.dataSource.register(StateSource)


class StateSource(DataSource):
    """See the module's docstring; made by Spark."""

    @classmethod
    def name(cls) -> str:
        """Of the format."""
        return "hindstream_state"

    @cached_property
    def _chosen(self) -> dict[str, str]:
        """The options; the commit is fixed, so that all partitions are of the same one."""
        given = dict(self.options)
        unknown = [name for name in given if name not in _NAMES and not name.startswith(_STORAGE)]
        for name in unknown:
            step = f"one of: {', '.join(_NAMES)}, {_STORAGE}NAME"
            raise ConfigurationError("there is no such option of hindstream_state", setting=name, next_step=step)
        for name in ("warehouse", "job"):
            if name not in given:
                step = f'.option("{name}", ...)'
                raise ConfigurationError("hindstream_state needs an option", setting=name, next_step=step)
        if "commit" not in given:
            with _state(given) as state:
                given["commit"] = str(state.commit)
        return given

    def schema(self) -> StructType:
        """The columns of the view, with Spark's types."""
        with _state(self._chosen) as state:
            return from_arrow_schema(spark_schema(_schema(state, self._chosen)))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Reads one view."""
        del schema
        return _Reader(self._chosen)


class _Share(InputPartition):
    """Partitions of the state that one Spark task reads."""

    def __init__(self, partitions: tuple[int, ...]) -> None:
        super().__init__(partitions)
        self.partitions = partitions


class _Reader(DataSourceReader):
    def __init__(self, options: dict[str, str]) -> None:
        self._options = options
        self._where: dict[str, Any] = {}
        self._partitions: set[int] | None = None
        self._since_ms: int | None = None
        self._until_ms: int | None = None

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Takes from the filters what bounds the reading; Spark looks at all of them again."""
        if "store" in self._options:
            with _state(self._options) as state:
                store, view = _store(state, self._options), self._options.get("view", "latest")
                for pushed in filters:
                    self._take(pushed, store, view)
        return filters

    def _take(self, pushed: Filter, store: StoreSnapshot, view: str) -> None:
        column, *inner = getattr(pushed, "attribute", ("",))
        if inner:
            return
        value: Any = getattr(pushed, "value", None)
        is_equal = isinstance(pushed, (EqualTo, EqualNullSafe))
        if column == "partition" and (is_equal or isinstance(pushed, In)):
            wanted: set[int] = set(value) if isinstance(pushed, In) else {value}
            self._partitions = wanted if self._partitions is None else self._partitions & wanted
        elif column in store.keys(view) and is_equal and column not in self._where:
            if _is_key(store, view, column, value):
                self._where[column] = value
        elif column == store.time_column(view) and isinstance(value, datetime):
            self._bound(pushed, _milliseconds(value))

    def _bound(self, pushed: Filter, time_ms: int) -> None:
        """Rounded to milliseconds so that nothing is left out that Spark would keep."""
        if isinstance(pushed, (GreaterThan, GreaterThanOrEqual, EqualTo)):
            self._since_ms = time_ms if self._since_ms is None else max(self._since_ms, time_ms)
        if isinstance(pushed, (LessThan, LessThanOrEqual, EqualTo)):
            self._until_ms = time_ms + 1 if self._until_ms is None else min(self._until_ms, time_ms + 1)

    def partitions(self) -> Sequence[InputPartition]:
        """One for each task of the state; one altogether for a look-up, which asks one task and seldom others."""
        if "store" not in self._options:
            return [_Share(())]
        with _state(self._options) as state:
            there = _store(state, self._options).partitions
        wanted = [partition for partition in there if self._partitions is None or partition in self._partitions]
        return [_Share(tuple(wanted))] if self._where or not wanted else [_Share((one,)) for one in wanted]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a share."""
        options = self._options
        with _state(options) as state:
            wanted = spark_schema(_schema(state, options))
            if "store" not in options:
                yield _stores(state)
                return
            store, columns = _store(state, options), _columns(options)
            for batch in store.batches(
                options.get("view", "latest"),
                columns=columns,
                where=self._where,
                partitions=partition.partitions,  # type: ignore[attr-defined]
                as_of=_time(options.get("as_of")),
                since=self._since_ms,
                until=self._until_ms,
            ):
                arrays = [spark_array(array, field.type) for array, field in zip(batch.columns, wanted, strict=True)]
                yield pa.RecordBatch.from_arrays(arrays, schema=wanted)


def _state(options: dict[str, str]) -> StateSnapshot:
    commit = options.get("commit")
    if commit is not None and not commit.isdecimal():
        raise ConfigurationError(f"{commit!r} is no commit", setting="commit", next_step="give its number")
    storage = {name.removeprefix(_STORAGE): value for name, value in options.items() if name.startswith(_STORAGE)}
    return open_state(
        options["warehouse"],
        options["job"],
        commit=None if commit is None else int(commit),
        storage_options=storage,
        state_dir=options.get("state_dir", DEFAULT_STATE_DIR),
    )


def _store(state: StateSnapshot, options: dict[str, str]) -> StoreSnapshot:
    return state.store(options["store"])


def _columns(options: dict[str, str]) -> list[str] | None:
    return [name.strip() for name in options["columns"].split(",")] if "columns" in options else None


def _schema(state: StateSnapshot, options: dict[str, str]) -> pa.Schema:
    """The columns, with Arrow's types; refuses options that do not fit the store before anything is read."""
    if "store" not in options:
        return _STORES
    store, view, columns = _store(state, options), options.get("view", "latest"), _columns(options)
    store.batches(view, columns=columns, as_of=_time(options.get("as_of")))
    schema = store.schema(view)
    return schema if columns is None else pa.schema([schema.field(name) for name in columns])


def _stores(state: StateSnapshot) -> pa.RecordBatch:
    """All stores with their views."""
    rows = [
        (store.name, store.kind, view, ", ".join(f"{field.name}: {field.type}" for field in store.schema(view)))
        for store in state.stores
        for view in store.views
    ]
    return pa.RecordBatch.from_pylist([dict(zip(_STORES.names, row, strict=True)) for row in rows], _STORES)


def _is_key(store: StoreSnapshot, view: str, column: str, value: Any) -> bool:
    """Whether a value can be looked up; if not, Spark compares."""
    try:
        store.batches(view, where={column: value})
    except (InputError, ConfigurationError):
        return False
    return True


def _time(text: str | None) -> datetime | int | None:
    if text is None or text.lstrip("-").isdecimal():
        return None if text is None else int(text)
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        step = "write it like 2013-06-01T12:00Z"
        raise ConfigurationError(f"{text!r} is no time", setting="as_of", next_step=step) from error


def _milliseconds(time: datetime) -> int:
    """Down to the whole millisecond; a time without a zone is UTC, as Spark hands it over."""
    aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return (aware - datetime(1970, 1, 1, tzinfo=UTC)) // _A_MILLISECOND
