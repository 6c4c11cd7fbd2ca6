"""A job: a topology with a name, the expectations about its outputs, and the figures of its report."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from statelib.calls import arguments_checked, function_checked
from statelib.commits.job_names import check_job_name
from statelib.commits.layout import changelog_topic, fork_topic, late_topic, quarantine_topic
from statelib.errors.kinds import ConfigurationError
from statelib.job.user_code import load_attribute

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from statelib.job.iceberg_table import IcebergTable
    from statelib.job.kafka_topic import KafkaTopic
    from statelib.storage import Storage
    from statelib.topology import Topology


NEEDS_ALL_RECORDS = frozenset({
    "expect_table_row_count_to_be_between",
    "expect_table_row_count_to_equal",
    "expect_table_row_count_to_equal_other_table",
    "expect_column_values_to_be_unique",
    "expect_compound_columns_to_be_unique",
    "expect_column_proportion_of_unique_values_to_be_between",
    "expect_column_unique_value_count_to_be_between",
    "expect_column_sum_to_be_between",
    "expect_column_distinct_values_to_contain_set",
    "expect_column_distinct_values_to_equal_set",
})  # fmt: skip
"""Expectations that a sample of the records cannot answer, of Great Expectations' and most of its kind."""


@dataclass(frozen=True)
class Expectation:
    """One expectation of Great Expectations about the records of a source or a sink, as plain data.

    Columns are those of the topic archive with nested fields flattened by dots: ``key.window_start``,
    ``value.flights``, ``timestamp``, ``offset``, ``partition``.

    Attributes:
        type: Great Expectations' name, such as ``expect_column_values_to_be_between``.
        kwargs: Its parameters, as JSON data.
        severity: ``fail``: a run that does not meet it ends; ``warn``: it is counted and shown, and the run goes on.
    """

    type: str
    kwargs: Mapping[str, Any]
    severity: Literal["fail", "warn"] = "fail"


@function_checked
def expect(type_: str, /, *, severity: Literal["fail", "warn"] = "fail", **kwargs: Any) -> Expectation:
    """``expect("expect_column_values_to_not_be_null", column="key.key", mostly=0.99, severity="warn")``."""
    return Expectation(type_, kwargs, severity)


@arguments_checked
@dataclass(frozen=True)
class Job:
    """What is replayed: everything except the settings of a run.

    Attributes:
        name: The job's folder in the warehouse, and Kafka's application id: letters, digits, ``._-``.
        topology: The compiled topology.
        expectations: By topic, what is expected of its records in each slice. Those of a source are checked before the
            replay, those of a sink by the audit, before the run's results are published.
        source_samples: By source topic, the share of its records that is checked, more than 0 and less than 1. Of the
            same records it is always the same part. Without an entry all are checked.
        figures: A function that draws the job's own charts for its report from the warehouse, each a
            `hindstream.report.Figure`. It is called whenever the job's page is written. None: no charts.
        notes: What a reader of the report should know about the data, one sentence each.
        kafka_sinks: Sinks that are also published to topics of a Kafka cluster. ``KafkaTopic.archive`` is the sink.
        iceberg_sinks: Sinks that are also published to tables of Iceberg catalogs, ``IcebergTable.archive`` each.

    Raises:
        ConfigurationError: The name is invalid, the topology does not write a topic that has a Kafka topic or an
            Iceberg table, or neither reads nor writes one that has expectations; a share is none, or of a topic without
            expectations, or one of these takes all records; or the topology reads or writes the job's topics for
            quarantined or late records.
    """

    name: str
    topology: Topology
    expectations: Mapping[str, tuple[Expectation, ...]] = field(default_factory=dict)
    figures: Callable[[Storage], Sequence[Any]] | None = None
    notes: tuple[str, ...] = ()
    kafka_sinks: tuple[KafkaTopic, ...] = ()
    iceberg_sinks: tuple[IcebergTable, ...] = ()
    source_samples: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Checks the name and the expectations' topics."""
        check_job_name(self.name)
        self._check_topics()
        self._check_expectations()
        declared = [("a Kafka topic is", topic.archive_name) for topic in self.kafka_sinks]
        declared += [("an Iceberg table is", table.archive_name) for table in self.iceberg_sinks]
        for what, topic in declared:
            if topic not in self.topology.sink_topics:
                raise ConfigurationError(
                    f"{what} declared for a topic that the job does not write",
                    topic=topic,
                    next_step=f"declare it for one of: {', '.join(self.topology.sink_topics)}",
                )

    def as_fork(self, name: str) -> Job:
        """The same topology as the job ``name``, its sinks renamed to ``<sink>.<name>``: runs of a fork.

        Expectations, Kafka topics and Iceberg tables follow their sinks; these get nothing before the fork is promoted
        (`statelib.commits.versions.publishers`). Figures stay away, since they are drawn of sinks by name.

        Raises:
            ConfigurationError: The name is this job's, or cannot be a job's; or a sink's name would be too long.
        """
        check_job_name(name)
        if name == self.name:
            step = "give the fork another name than the job's"
            raise ConfigurationError("a job cannot be a fork of itself", job=name, next_step=step)
        names = {topic: fork_topic(topic, name) for topic in self.topology.sink_topics}
        return replace(
            self,
            name=name,
            topology=self.topology.with_sinks(names),
            expectations={names.get(topic, topic): expected for topic, expected in self.expectations.items()},
            figures=None,
            kafka_sinks=tuple(replace(topic, archive=names[topic.archive_name]) for topic in self.kafka_sinks),
            iceberg_sinks=tuple(replace(table, archive=names[table.archive_name]) for table in self.iceberg_sinks),
        )

    def _check_expectations(self) -> None:
        sources, sinks = self.topology.source_topics, self.topology.sink_topics
        for topic in self.expectations:
            if topic not in sources and topic not in sinks:
                raise ConfigurationError(
                    "expectations are declared for a topic that the job neither reads nor writes",
                    topic=topic,
                    next_step=f"declare them for one of: {', '.join([*sources, *sinks])}",
                )
        for topic, share in self.source_samples.items():
            if topic not in sources or topic not in self.expectations:
                step = "name a source that has expectations"
                raise ConfigurationError("there is nothing to check a sample for", topic=topic, next_step=step)
            if not 0 < share < 1:
                step = "give a share between 0 and 1, such as 0.01; without one all records are checked"
                raise ConfigurationError(f"{share} is no share of a source's records", topic=topic, next_step=step)
            for expectation in self.expectations[topic]:
                if expectation.type in NEEDS_ALL_RECORDS:
                    what = f"{expectation.type} is about all records, and a sample of the source is checked"
                    step = "leave the expectation out, or the source's entry in source_samples"
                    raise ConfigurationError(what, topic=topic, next_step=step)

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


def load_job(reference: str, *, fork: str | None = None) -> Job:
    """Loads the job at ``package.module:attribute`` or ``path/to/file.py:attribute``.

    The attribute is a `Job`, or a function without parameters that returns one. Without ``:attribute`` it is ``job``.

    Args:
        reference: Where it is.
        fork: The fork as which it is to run, as the setting of that name says: see `Job.as_fork`. None: as itself.

    Raises:
        ConfigurationError: There is no such module, file or attribute, or it is no job; or it cannot be such a fork.
    """
    found = load_attribute(reference, "job")
    if not isinstance(found, Job):
        next_step = "name a hindstream.Job, or a function that returns one, as FILE.py:NAME or PACKAGE.MODULE:NAME"
        raise ConfigurationError("this is not a job", job=reference, next_step=next_step)
    return found if fork is None else found.as_fork(fork)
