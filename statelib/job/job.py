"""A job: a topology with a name, the expectations about its outputs, and the figures of its report."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from statelib.calls import arguments_checked, function_checked
from statelib.commits.layout import changelog_topic, late_topic, quarantine_topic
from statelib.errors.kinds import ConfigurationError
from statelib.job.user_code import load_attribute

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from statelib.job.kafka_topic import KafkaTopic
    from statelib.storage import Storage
    from statelib.topology import Topology

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class Expectation:
    """One expectation of Great Expectations about a sink's records, as plain data.

    Columns are those of the topic archive with nested fields flattened by dots: ``key.window_start``,
    ``value.flights``, ``timestamp``, ``offset``, ``partition``.

    Attributes:
        type: Great Expectations' name, such as ``expect_column_values_to_be_between``.
        kwargs: Its parameters, as JSON data.
    """

    type: str
    kwargs: Mapping[str, Any]


@function_checked
def expect(type_: str, /, **kwargs: Any) -> Expectation:
    """``expect("expect_column_values_to_not_be_null", column="key.key")``."""
    return Expectation(type_, kwargs)


@arguments_checked
@dataclass(frozen=True)
class Job:
    """What is replayed: everything except the settings of a run.

    Attributes:
        name: The job's folder in the warehouse, and Kafka's application id: letters, digits, ``._-``.
        topology: The compiled topology.
        expectations: By sink topic, what the audit checks before the run's results are published.
        figures: A function that draws the job's own charts for its report from the warehouse, each a
            `hindstream.report.Figure`. It is called whenever the job's page is written. None: no charts.
        notes: What a reader of the report should know about the data, one sentence each.
        kafka_sinks: Sinks that are also published to topics of a Kafka cluster. ``KafkaTopic.archive`` is the sink.

    Raises:
        ConfigurationError: The name is invalid, the topology does not write a topic that has expectations or a Kafka
            topic, or it reads or writes the job's topics for quarantined or late records.
    """

    name: str
    topology: Topology
    expectations: Mapping[str, tuple[Expectation, ...]] = field(default_factory=dict)
    figures: Callable[[Storage], Sequence[Any]] | None = None
    notes: tuple[str, ...] = ()
    kafka_sinks: tuple[KafkaTopic, ...] = ()

    def __post_init__(self) -> None:
        """Checks the name and the expectations' topics."""
        if not _NAME.fullmatch(self.name):
            next_step = "use letters, digits, '.', '_' and '-', beginning with a letter or digit, at most 100"
            raise ConfigurationError("this cannot be a job's name", job=self.name, next_step=next_step)
        self._check_topics()
        declared = [("expectations are", topic) for topic in self.expectations]
        declared += [("a Kafka topic is", topic.archive_name) for topic in self.kafka_sinks]
        for what, topic in declared:
            if topic not in self.topology.sink_topics:
                raise ConfigurationError(
                    f"{what} declared for a topic that the job does not write",
                    topic=topic,
                    next_step=f"declare it for one of: {', '.join(self.topology.sink_topics)}",
                )

    def _check_topics(self) -> None:
        """Some topics are the job's own, and it must not read or write them itself."""
        topics = {*self.topology.source_topics, *self.topology.sink_topics}
        stores = [store.name for sub in self.topology.sub_topologies for store in sub.stores]
        changelogs = [changelog_topic(self.name, store) for store in stores]
        for taken in (quarantine_topic(self.name), late_topic(self.name), *changelogs):
            if taken in topics:
                raise ConfigurationError(
                    "the topology uses a topic that is reserved for the job's quarantined or late records or changelog",
                    topic=taken,
                    job=self.name,
                    next_step="write to a topic of another name, or read it in another job",
                )


def load_job(reference: str) -> Job:
    """Loads the job at ``package.module:attribute`` or ``path/to/file.py:attribute``.

    The attribute is a `Job`, or a function without parameters that returns one. Without ``:attribute`` it is ``job``.

    Raises:
        ConfigurationError: There is no such module, file or attribute, or it is no job.
    """
    found = load_attribute(reference, "job")
    if not isinstance(found, Job):
        next_step = "name a hindstream.Job, or a function that returns one, as FILE.py:NAME or PACKAGE.MODULE:NAME"
        raise ConfigurationError("this is not a job", job=reference, next_step=next_step)
    return found
