"""Tests a topology with a few records, in this process (Kafka's ``TopologyTestDriver``).

Nothing is mocked. Input records become a topic archive, and before outputs are read, a slice is planned, replayed,
committed and published, with real stores. So a test sees the results of a real job, across slices too::

    def test_clicks():
        driver = TopologyTestDriver(builder.build())
        clicks = driver.create_input_topic("clicks")
        clicks.pipe_input("user", "page", 1_000)
        assert driver.create_output_topic("clicks-per-minute").read_records_to_list() == [...]

As in any slice, records of several topics are processed in the order of their timestamps, not in the order in which
they were piped in. Call ``replay()`` in between to force an order.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile  # noqa: TID251 - nothing that a topology does depends on the folder's name
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from statelib.calls import KafkasNames, arguments_checked, constructor_checked
from statelib.columns.time_columns import python_values
from statelib.commits import CommitLog, NothingToDo, commit, plan, publish, record_audit, stage, topic_path
from statelib.commits.archives import open_archive, open_archive_if_present
from statelib.documents.manifests import Audit
from statelib.errors.kinds import ConfigurationError
from statelib.job.job import Job
from statelib.state.epoch_time import epoch_ms
from statelib.storage import Storage
from statelib.task import Stages, TaskSettings, replay_here
from statelib.topics.append import append_records
from statelib.topics.archive import TopicArchive, topic_schema

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from statelib.settings.semantics import Semantics
    from statelib.topology import Topology


_LONGEST_SHOWN = 60


@dataclass(frozen=True, slots=True)
class TestRecord:
    """An output record (Kafka's ``TestRecord``).

    Attributes:
        key: As Python data; a windowed key is a dict with ``key``, ``window_start`` and ``window_end``.
        value: As Python data; None: a tombstone.
        timestamp_ms: Its timestamp.
        partition: The partition of the output topic.
    """

    __test__ = False  # pytest is not to collect it

    key: Any
    value: Any
    timestamp_ms: int
    partition: int = 0


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
    ) -> None:
        folder = _temporary_folder(self) if folder is None else _unused_folder(folder)
        self._warehouse = Storage(f"{folder}/warehouse")
        self._settings = TaskSettings(f"{folder}/warehouse", f"{folder}/state", semantics=semantics)
        self._job = Job("topology-test-driver", topology)
        self._partitions = partitions
        self._piped: dict[str, _Piped] = {}
        self._read: dict[tuple[str, int], int] = {}
        self._slices = itertools.count(1)

    def create_input_topic(
        self, topic: str, key_type: pa.DataType | None = None, value_type: pa.DataType | None = None
    ) -> TestInputTopic:
        """Declares a source topic.

        Args:
            topic: Its name.
            key_type: Arrow type of its keys; None: string.
            value_type: Arrow type of its values; None: string.

        Raises:
            ConfigurationError: The topology does not read this topic.
        """
        if topic not in self._job.topology.source_topics:
            step = f"one of: {', '.join(self._job.topology.source_topics)}"
            raise ConfigurationError("the topology does not read this topic", topic=topic, next_step=step)
        schema = topic_schema(key_type or pa.string(), value_type or pa.string())
        TopicArchive.ensure(self._warehouse.uri(topic_path(topic)), schema, self._partitions, topic=topic)
        self._piped[topic] = _Piped(schema)
        return TestInputTopic(self, topic)

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

    def pipe(self, topic: str, key: object, value: object, timestamp_ms: int) -> None:
        """Adds a record to a source topic.

        Raises:
            ConfigurationError: The topic's types cannot hold it.
        """
        given = {"key": key, "value": value, "timestamp": timestamp_ms}
        for name, part in given.items():
            _check_fits(part, self._piped[topic].schema.field(name).type, topic=topic, part=name)
        self._piped[topic].records.append(given)

    def replay(self) -> None:
        """Replays the records piped in since the last replay, as one slice.

        Raises:
            ConfigurationError: A source topic has not been declared.
            HindstreamError: As in a real run.
        """
        number = next(self._slices)
        for topic in self._job.topology.source_topics:
            if topic not in self._piped:
                step = "declare it with create_input_topic()"
                raise ConfigurationError("the topology reads a topic that is not declared", topic=topic, next_step=step)
            self._archive(topic, number)
        planned = plan(self._job, self._warehouse, now_ms=0)
        if isinstance(planned, NothingToDo):
            return
        previous = CommitLog(self._warehouse, self._job.name).read(planned.commit - 1) if planned.commit > 1 else None
        stages = Stages(self._job.topology, planned, previous, self._warehouse, self._settings)
        replayed = replay_here(stages, planned, attempt=str(number), clock=lambda: 0.0)
        stage(self._warehouse, planned, replayed)
        passed = Audit(run_id=planned.run_id, success=True, checks=(), data_docs=None, seconds=0.0)
        record_audit(self._warehouse, planned, passed)
        commit(self._warehouse, planned, now_ms=0)
        publish(self._warehouse, self._job.name)

    def read(self, topic: str) -> list[TestRecord]:
        """Replays what has been piped in, and returns the records of a sink topic that have not been read yet."""
        self.replay()
        archive = open_archive_if_present(self._warehouse, topic)
        records = []
        for partition in range(archive.partitions if archive else 0):
            first = self._read.get((topic, partition), 0)
            table = open_archive(self._warehouse, topic).reader(partition, first).read_all()
            times = table["timestamp"].cast(pa.int64()).to_pylist()
            rows = python_values(table.select(["key", "value"]).to_struct_array())
            self._read[topic, partition] = first + len(rows)
            records += [
                TestRecord(row["key"], row["value"], time, partition) for row, time in zip(rows, times, strict=True)
            ]
        return records

    def _archive(self, topic: str, number: int) -> None:
        piped = self._piped[topic]
        columns = pa.schema([piped.schema.field(name) for name in ("key", "value", "timestamp")])
        archive = TopicArchive.open(self._warehouse.uri(topic_path(topic)))
        records = pa.Table.from_pylist(piped.records, columns)
        append_records(archive, records, attempt=f"a{number}", app_id="topology-test-driver", app_version=number)
        piped.records.clear()


@arguments_checked
@dataclass(frozen=True, slots=True)
class TestInputTopic(KafkasNames):
    """Made by `TopologyTestDriver.create_input_topic` (Kafka's ``TestInputTopic``)."""

    __test__ = False

    driver: TopologyTestDriver
    topic: str

    def pipe_input(self, key: object, value: object, timestamp: int | datetime) -> None:
        """Adds a record; ``timestamp`` in ms since 1970, or with a time zone.

        Raises:
            ConfigurationError: The timestamp is a `datetime` without a time zone, which differs between machines; or
                the topic's types cannot hold the record.
        """
        self.driver.pipe(self.topic, key, value, epoch_ms(timestamp))

    def pipe_record_list(self, records: Iterable[tuple[object, object, int | datetime]]) -> None:
        """Adds records, each (key, value, timestamp)."""
        for record in records:
            self.pipe_input(*record)


@arguments_checked
@dataclass(frozen=True, slots=True)
class TestOutputTopic(KafkasNames):
    """Made by `TopologyTestDriver.create_output_topic` (Kafka's ``TestOutputTopic``)."""

    __test__ = False

    driver: TopologyTestDriver
    topic: str

    def read_records_to_list(self) -> list[TestRecord]:
        """The output records since the last read, ordered by partition and offset."""
        return self.driver.read(self.topic)

    def read_key_values_to_list(self) -> list[tuple[Any, Any]]:
        """As `read_records_to_list`, keys and values only."""
        return [(record.key, record.value) for record in self.driver.read(self.topic)]


def _temporary_folder(driver: TopologyTestDriver) -> Path:
    """A folder that is deleted when the driver is."""
    folder = Path(tempfile.mkdtemp(prefix="hindstream-test-"))
    weakref.finalize(driver, shutil.rmtree, folder, ignore_errors=True)
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


def _check_fits(value: object, type_: pa.DataType, **where: object) -> None:
    """Looks whether Arrow takes a value for what it is: no number is cut, no field of another name left out.

    Raises:
        ConfigurationError: It does not.
    """
    shown = repr(value) if len(repr(value)) <= _LONGEST_SHOWN else f"the {type(value).__name__}"
    try:
        pa.array([value], type_)
        misfit = _misfit(value, type_)
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        misfit = str(error).partition("\n")[0]
    if misfit is not None:
        step = "give another value, or declare the topic's types: create_input_topic(topic, key_type, value_type)"
        raise ConfigurationError(f"{shown} is not of type {type_}: {misfit}", next_step=step, **where)


def _misfit(value: Any, type_: pa.DataType) -> str | None:
    """What Arrow would lose of a value that it takes; None: nothing."""
    if pa.types.is_integer(type_) and isinstance(value, float):
        return "it is no int"
    if pa.types.is_struct(type_) and isinstance(value, Mapping):
        unknown = [str(name) for name in value if type_.get_field_index(str(name)) < 0]
        parts = [_misfit(part, type_.field(name).type) for name, part in value.items() if name not in unknown]
        return f"it has no field {unknown[0]}" if unknown else next((part for part in parts if part), None)
    if pa.types.is_list(type_) and isinstance(value, (list, tuple)):
        return next((part for item in value if (part := _misfit(item, type_.value_type))), None)
    return None
