"""Tests a topology with a few records, in this process (Kafka's ``TopologyTestDriver``).

Nothing is mocked. Input records become a topic archive, and before outputs or stores are read, a slice is planned,
replayed, committed and published, with real stores. So a test sees the results of a real job, across slices too::

    def test_clicks():
        driver = TopologyTestDriver(builder.build())
        clicks = driver.create_input_topic("clicks")
        clicks.pipe_input("user", "page", 1_000)
        assert driver.create_output_topic("clicks-per-minute").read_key_values_to_list() == [...]
        assert driver.get_key_value_store("clicks-by-user").get("user") == {"clicks": 1}

As in any slice, records of several topics are processed in the order of their timestamps, not in the order in which
they were piped in. Call ``replay()`` in between to force an order.
"""

from __future__ import annotations

import shutil
import tempfile  # noqa: TID251 - nothing that a topology does depends on the folder's name
import weakref
from collections import defaultdict, deque
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

import pyarrow as pa

from statelib.calls import KafkasNames, arguments_checked, constructor_checked
from statelib.commits import CommitLog, late_topic, quarantine_topic
from statelib.commits.archives import open_archive, open_archive_if_present
from statelib.described.headers import has_headers
from statelib.errors.kinds import ConfigurationError
from statelib.job.job import Job
from statelib.settings.durations import milliseconds
from statelib.snapshots import open_state
from statelib.state.epoch_time import epoch_ms
from statelib.task import TaskSettings
from statelib.testing.metrics import MetricsOfNodes
from statelib.testing.records import TestRecord, check_fits, header_rows, records_of
from statelib.testing.scratch import ScratchJob
from statelib.testing.stores import (
    KEY_VALUE,
    OF_KIND,
    SESSION,
    VERSIONED,
    WINDOW,
    ReadOnlyKeyValueStore,
    ReadOnlySessionStore,
    ReadOnlySessionStoreWithHeaders,
    ReadOnlyStore,
    ReadOnlyTimestampedKeyValueStore,
    ReadOnlyTimestampedKeyValueStoreWithHeaders,
    ReadOnlyTimestampedWindowStore,
    ReadOnlyTimestampedWindowStoreWithHeaders,
    ReadOnlyVersionedKeyValueStore,
    ReadOnlyWindowStore,
)
from statelib.testing.topics import TestInputTopic, TestOutputTopic
from statelib.topics.archive import topic_schema

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

    from statelib.settings.semantics import Semantics
    from statelib.state.epoch_time import Time
    from statelib.stores.spec import StoreSpec
    from statelib.topology import Topology

_JOB = "topology-test-driver"
_Store = TypeVar("_Store", bound=ReadOnlyStore)


@dataclass(slots=True)
class _Piped:
    """What has been piped into a topic since the last slice, and the topic's columns."""

    schema: pa.Schema
    records: list[dict[str, Any]] = field(default_factory=list)


@constructor_checked
@arguments_checked
class TopologyTestDriver(KafkasNames):
    """Kafka's ``TopologyTestDriver``: see the module's docstring.

    Args:
        topology: The topology to test.
        folder: Where the warehouse and the state are to stay, such as pytest's ``tmp_path``. None: in a temporary
            folder, which is deleted with the driver.
        semantics: See `Semantics`.
        partitions: The number of partitions of each input topic.
        on_bad_record: As the setting: a record that cannot be used ends a replay, or can be read with
            `read_quarantined_records`.
        on_processing_error: As the setting: the same for records for which a function fails.

    Raises:
        ConfigurationError: Another driver has used the folder: this one would go on with its topics and state.
    """

    def __init__(
        self,
        topology: Topology,
        folder: Path | str | None = None,
        *,
        semantics: Semantics = "kip",
        partitions: int = 1,
        on_bad_record: Literal["fail", "quarantine"] = "fail",
        on_processing_error: Literal["fail", "quarantine"] = "fail",
    ) -> None:
        folder = _temporary_folder(self) if folder is None else _unused_folder(folder)
        settings = TaskSettings(
            f"{folder}/warehouse",
            f"{folder}/state",
            semantics=semantics,
            on_bad_record=on_bad_record,
            on_processing_error=on_processing_error,
            on_late_record="topic",
        )
        self._job = Job(_JOB, topology)
        self._scratch = ScratchJob(self._job, settings)
        self._warehouse = self._scratch.warehouse
        self._partitions = partitions
        self._piped: dict[str, _Piped] = {}
        self._read: dict[tuple[str, int], int] = {}
        self._waiting: defaultdict[str, deque[TestRecord]] = defaultdict(deque)
        self._metrics = MetricsOfNodes()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Deletes the temporary folder, which is deleted with the driver otherwise; a folder of yours stays."""
        finalizer = _temporary_folders.pop(self, None)
        if finalizer is not None:
            finalizer()

    def create_input_topic(
        self,
        topic: str,
        key_type: pa.DataType | None = None,
        value_type: pa.DataType | None = None,
        *,
        start: int | datetime = 0,
        auto_advance: timedelta = timedelta(0),
    ) -> TestInputTopic:
        """Declares a source topic.

        Args:
            topic: Its name.
            key_type: Arrow type of its keys; None: string.
            value_type: Arrow type of its values; None: string.
            start: The time of the first record that is piped in without one. (Kafka's default is the wall clock.)
            auto_advance: How much later each next one is.

        Raises:
            ConfigurationError: The topology does not read this topic.
        """
        if topic not in self._job.topology.source_topics:
            step = f"one of: {', '.join(self._job.topology.source_topics)}"
            raise ConfigurationError("the topology does not read this topic", topic=topic, next_step=step)
        schema = topic_schema(key_type or pa.string(), value_type or pa.string())
        self._scratch.declare(topic, schema, self._partitions)
        self._piped[topic] = _Piped(schema)
        advance_ms = milliseconds(auto_advance, "auto_advance")
        return TestInputTopic(self, topic, epoch_ms(start), advance_ms)

    def create_output_topic(self, topic: str) -> TestOutputTopic:
        """Gives access to a topic that the topology writes.

        Raises:
            ConfigurationError: The topology does not write this topic.
        """
        if topic not in self._job.topology.sink_topics:
            known = ", ".join(self._job.topology.sink_topics)
            raise ConfigurationError(
                "the topology does not write this topic", topic=topic, next_step=f"one of: {known}"
            )
        return TestOutputTopic(self, topic)

    def pipe(
        self,
        topic: str,
        key: object,
        value: object,
        timestamp_ms: int,
        headers: Sequence[tuple[str, bytes | None]] = (),
    ) -> None:
        """Adds a record to a source topic.

        Raises:
            ConfigurationError: The topic's types cannot hold it.
        """
        given = {"key": key, "value": value, "timestamp": timestamp_ms}
        for name, part in given.items():
            check_fits(part, self._piped[topic].schema.field(name).type, topic=topic, part=name)
        self._piped[topic].records.append({**given, "headers": header_rows(headers)})

    def replay(self) -> None:
        """Replays the records piped in since the last replay, as one slice.

        Raises:
            ConfigurationError: A source topic has not been declared.
            HindstreamError: As in a real run.
        """
        for topic in self._job.topology.source_topics:
            if topic not in self._piped:
                step = "declare it with create_input_topic()"
                raise ConfigurationError("the topology reads a topic that is not declared", topic=topic, next_step=step)
        piped = {topic: self._taken(topic) for topic in self._job.topology.source_topics}
        staged = self._scratch.replay(piped)
        if staged is not None:
            self._metrics.add(task.metrics for task in staged.tasks)

    def metrics(self) -> dict[str, dict[str, float]]:
        """What the nodes have counted, by node and name: ``driver.metrics()[node]["dropped-records-total"]``.

        Names are Kafka's: see docs/semantics.md. Totals are those of all that was piped in, other figures those of the
        last slice.
        """
        self.replay()
        return self._metrics.figures()

    def waiting(self, topic: str) -> deque[TestRecord]:
        """Replays what has been piped in; the records of a topic that nobody has taken out yet, for who takes them."""
        self.replay()
        waiting = self._waiting[topic]
        archive = open_archive_if_present(self._warehouse, topic)
        for partition in range(archive.partitions if archive else 0):
            first = self._read.get((topic, partition), 0)
            found = records_of(open_archive(self._warehouse, topic).reader(partition, first).read_all(), partition)
            self._read[topic, partition] = first + len(found)
            waiting.extend(found)
        return waiting

    def produced_topic_names(self) -> set[str]:
        """The sink topics that have got records."""
        self.replay()
        archives = {topic: open_archive_if_present(self._warehouse, topic) for topic in self._job.topology.sink_topics}
        return {topic for topic, archive in archives.items() if archive and any(archive.end_offsets().values())}

    def read_quarantined_records(self) -> list[TestRecord]:
        """Records that could not be used, each once, with ``on_bad_record="quarantine"``.

        Keys are bytes; values say ``topic``, ``partition``, ``offset``, ``timestamp``, ``reason`` and the ``value``'s
        bytes, as in the topic ``<job>-quarantine`` of a job.
        """
        return TestOutputTopic(self, quarantine_topic(_JOB)).read_records_to_list()

    def read_late_records(self) -> list[TestRecord]:
        """Records that came too late for an operator, each once.

        Keys are bytes; values say ``node``, ``reason``, ``lateness_ms``, ``key`` and ``value`` as JSON and more, as in
        the topic ``<job>-late`` of a job.
        """
        return TestOutputTopic(self, late_topic(_JOB)).read_records_to_list()

    def get_all_state_stores(self) -> dict[str, ReadOnlyStore]:
        """The stores by name, operators' own too: those of keys, windows, sessions and versions with their methods."""
        return {name: self._store(name, OF_KIND.get(kind, ReadOnlyStore)) for name, kind in self._store_kinds().items()}

    def get_state_store(self, name: str) -> ReadOnlyStore:
        """One of `get_all_state_stores`.

        Raises:
            ConfigurationError: There is no store of this name.
        """
        return self._store(name, OF_KIND.get(self._kind(name), ReadOnlyStore))

    def get_key_value_store(self, name: str) -> ReadOnlyKeyValueStore:
        """The last values of a store's keys.

        Raises:
            ConfigurationError: There is no store of this name, or it is of another kind.
        """
        return self._store(name, ReadOnlyKeyValueStore, KEY_VALUE)

    def get_timestamped_key_value_store(self, name: str) -> ReadOnlyTimestampedKeyValueStore:
        """As `get_key_value_store`, with the values' timestamps, -1 where the store keeps none."""
        return self._store(name, ReadOnlyTimestampedKeyValueStore, KEY_VALUE)

    def get_timestamped_key_value_store_with_headers(self, name: str) -> ReadOnlyTimestampedKeyValueStoreWithHeaders:
        """As `get_timestamped_key_value_store`, with the headers that a processor's store keeps.

        Raises:
            ConfigurationError: There is no store of this name, it is of another kind, or it keeps no headers.
        """
        return self._store_with_headers(name, ReadOnlyTimestampedKeyValueStoreWithHeaders, KEY_VALUE)

    def get_versioned_key_value_store(self, name: str) -> ReadOnlyVersionedKeyValueStore:
        """The versions of a store's keys. Raises as `get_key_value_store` does."""
        return self._store(name, ReadOnlyVersionedKeyValueStore, VERSIONED)

    def get_window_store(self, name: str) -> ReadOnlyWindowStore:
        """The windows of a store. Raises as `get_key_value_store` does."""
        return self._store(name, ReadOnlyWindowStore, WINDOW)

    def get_timestamped_window_store(self, name: str) -> ReadOnlyTimestampedWindowStore:
        """As `get_window_store`, with the values' timestamps, -1 where the store keeps none."""
        return self._store(name, ReadOnlyTimestampedWindowStore, WINDOW)

    def get_timestamped_window_store_with_headers(self, name: str) -> ReadOnlyTimestampedWindowStoreWithHeaders:
        """As `get_timestamped_window_store`, with headers. Raises as `get_timestamped_key_value_store_with_headers`."""
        return self._store_with_headers(name, ReadOnlyTimestampedWindowStoreWithHeaders, WINDOW)

    def get_session_store(self, name: str) -> ReadOnlySessionStore:
        """The sessions of a store. Raises as `get_key_value_store` does."""
        return self._store(name, ReadOnlySessionStore, SESSION)

    def get_session_store_with_headers(self, name: str) -> ReadOnlySessionStoreWithHeaders:
        """As `get_session_store`, with headers. Raises as `get_timestamped_key_value_store_with_headers` does."""
        return self._store_with_headers(name, ReadOnlySessionStoreWithHeaders, SESSION)

    def _store_with_headers(self, name: str, shown_as: type[_Store], kind: str) -> _Store:
        found = self._store(name, shown_as, kind)
        if not any(has_headers(store.settings) for store in self._stores() if store.name == name):
            step = f"use {_GETTERS[kind]}({name!r}); Stores.*_with_headers_builder makes stores that keep them"
            raise ConfigurationError("the store keeps no headers", store=name, next_step=step)
        return found

    def _store(self, name: str, shown_as: type[_Store], kind: str | None = None) -> _Store:
        found = self._kind(name)
        if kind not in {None, found}:
            step = f"use {_GETTERS.get(found, 'get_state_store')}({name!r})"
            raise ConfigurationError(f"the store is of kind {found}, not {kind}", store=name, next_step=step)
        return shown_as(name, found, partial(self._read_store, name))

    def _store_kinds(self) -> dict[str, str]:
        return {store.name: store.kind for store in self._stores()}

    def _stores(self) -> list[StoreSpec]:
        processors = [node for sub in self._job.topology.sub_topologies for node in sub.processors]
        return [store for node in processors for store in node.spec.state_stores()]

    def _kind(self, name: str) -> str:
        kinds = self._store_kinds()
        if name not in kinds:
            step = f"one of: {', '.join(kinds)}" if kinds else "the topology is stateless"
            raise ConfigurationError("the topology has no such store", store=name, next_step=step)
        return kinds[name]

    def _read_store(
        self, name: str, view: str = "latest", *, where: Mapping[str, Any] | None = None, as_of: Time | None = None
    ) -> pa.Table:
        self.replay()
        if CommitLog(self._warehouse, _JOB).head_number() == 0:  # nothing has come: its types are not known either
            return pa.table({"key": pa.nulls(0), "value": pa.nulls(0)})
        settings = self._scratch.settings
        with open_state(settings.warehouse, _JOB, name, state_dir=settings.state_dir) as store:
            return store.read(view, where=where, as_of=as_of)

    def _taken(self, topic: str) -> pa.Table:
        """What has been piped into a topic, which is taken away."""
        piped = self._piped[topic]
        columns = pa.schema([piped.schema.field(name) for name in ("key", "value", "timestamp", "headers")])
        records = pa.Table.from_pylist(piped.records, columns)
        piped.records.clear()
        return records


_GETTERS = {
    KEY_VALUE: "get_key_value_store",
    WINDOW: "get_window_store",
    SESSION: "get_session_store",
    VERSIONED: "get_versioned_key_value_store",
}

_temporary_folders: weakref.WeakKeyDictionary[TopologyTestDriver, weakref.finalize[Any, Any]] = (
    weakref.WeakKeyDictionary()
)


def _temporary_folder(driver: TopologyTestDriver) -> Path:
    """A folder that is deleted when the driver is."""
    folder = Path(tempfile.mkdtemp(prefix="hindstream-test-"))
    _temporary_folders[driver] = weakref.finalize(driver, shutil.rmtree, folder, ignore_errors=True)
    return folder


def _unused_folder(folder: Path | str) -> Path:
    """The folder itself.

    Raises:
        ConfigurationError: Another driver has used it.
    """
    folder = Path(folder)
    if any((folder / name).exists() for name in ("warehouse", "state")):
        step = "leave the folder out, or give each driver its own, such as pytest's tmp_path"
        raise ConfigurationError(f"the folder {folder} has another test driver's topics and state", next_step=step)
    return folder
