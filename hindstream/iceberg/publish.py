"""Publishes sinks to tables of Iceberg catalogs: each record once, also after rollbacks and promotions.

A table follows its sink as of one instant, in one commit of the catalog: rows that the sink no longer has go, those
that the table lacks come, and with them the position (`hindstream.iceberg.position`). The commit counts only if the
table is still as it was found. What the sink has, and who publishes it, is looked at after the table: so of two that
publish at once one does, and the other looks again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyiceberg.exceptions import CommitFailedException, ValidationError

from hindstream.iceberg.catalog import errors_told, make_table, open_table, position_of
from hindstream.iceberg.data_files import DataFiles, check_partitioned_by
from hindstream.iceberg.position import POSITION
from hindstream.iceberg.sink import sink_of
from statelib.commits.versions.publishers import publisher_of
from statelib.errors.fault_points import step
from statelib.errors.kinds import ConfigurationError, RetryableError

if TYPE_CHECKING:
    from pyiceberg.table import Table, Transaction

    from hindstream.iceberg.position import TablePosition
    from hindstream.iceberg.sink import Sink
    from statelib.job.iceberg_table import IcebergTable
    from statelib.job.job import Job
    from statelib.storage import Storage

_TRIES = 5


@dataclass(frozen=True, slots=True)
class PublishedToIceberg:
    """What was done to a table.

    Attributes:
        table: The table.
        added: How many rows came.
        removed: How many rows went, which the sink no longer has.
        left_to: The job that publishes the table instead, since readers read that one; None: this one does.
    """

    table: str
    added: int = 0
    removed: int = 0
    left_to: str | None = None


def publish_to_iceberg(job: Job, warehouse: Storage) -> tuple[PublishedToIceberg, ...]:
    """Lets the tables of the job's ``iceberg_sinks`` have what their sinks have.

    Tables that another job publishes, since it was promoted over this one or this one is a fork that was not, are left
    to that.

    Args:
        job: The job.
        warehouse: Root of all durable data.

    Returns:
        What was done, by table.

    Raises:
        ConfigurationError: The catalog is not configured, or lacks the namespace; the table holds rows of others; or it
            cannot take a field's new type.
        CorruptedDataError: A document of a job is damaged, or the table's position.
        RetryableError: The catalog or a store did not answer, or others keep changing the table.
    """
    done = []
    for table in job.iceberg_sinks:
        with errors_told(table):
            done.append(_publish(job.name, table, warehouse))
    return tuple(done)


def _publish(job: str, declared: IcebergTable, warehouse: Storage) -> PublishedToIceberg:
    for _ in range(_TRIES):
        table = open_table(declared)
        publisher = publisher_of(warehouse, job, declared.archive_name)  # who is promoted later meets a changed table
        if publisher.job != job:
            return PublishedToIceberg(declared.name, left_to=publisher.job)
        sink = sink_of(warehouse, publisher)
        if sink is None:
            return PublishedToIceberg(declared.name)
        if table is None:
            table = make_table(declared, sink.schema)
        published = position_of(table, declared.name)
        _check_ours(table, published, sink.position)
        try:
            return _follow(table, declared.name, published, sink, warehouse)
        except CommitFailedException:
            continue
    what = "others keep changing the table while it is published to"
    raise RetryableError(what, next_step="publish again when they are done")


def _check_ours(table: Table, published: TablePosition | None, wanted: TablePosition) -> None:
    """Makes sure that nobody else's rows are in the table.

    Raises:
        ConfigurationError: Some may be.
    """
    step_ = "publish to a table of another name, or drop this one: it is made anew"
    if published is None:
        snapshot = table.current_snapshot()
        told = {} if snapshot is None or snapshot.summary is None else snapshot.summary.additional_properties
        if snapshot is not None and told.get("total-records") != "0":
            raise ConfigurationError("the table holds rows that are not of this job", next_step=step_)
    elif published.readers != wanted.readers:
        raise ConfigurationError(f"the job {published.readers} publishes to the table", next_step=step_)
    elif published.made_at_ms not in {None, wanted.made_at_ms}:
        what = f"a job {published.readers} of another warehouse, or before this one, has published to the table"
        raise ConfigurationError(what, next_step=step_)


def _follow(
    table: Table, name: str, published: TablePosition | None, sink: Sink, warehouse: Storage
) -> PublishedToIceberg:
    """Takes out and adds what makes the difference, in one commit of the catalog.

    Raises:
        CommitFailedException: Somebody has changed the table meanwhile; nothing has happened.
    """
    partitions = max(sink.position.partitions, 0 if published is None else published.partitions)
    before = [0 if published is None else published.records(partition) for partition in range(partitions)]
    kept = before if published is None else sink.kept(published, warehouse)
    wanted = [sink.position.records(partition) for partition in range(partitions)]
    if kept == before == wanted:
        return PublishedToIceberg(name)
    check_partitioned_by(table)
    _let_nobody_try_again(table)
    properties = {POSITION: sink.position.encode()}
    gone = [] if kept == before else list(table.scan(_behind(kept, before)).plan_files())
    with table.transaction() as transaction:
        _widen(transaction, sink)
        transaction.set_properties(properties)
        files = DataFiles(table, transaction)
        snapshot = transaction.update_snapshot(snapshot_properties=properties)
        with snapshot.overwrite() if gone else snapshot.merge_append() as update:
            for task in gone:
                goes, rest = files.cut(task, kept)
                if goes:
                    update.delete_data_file(task.file)
                if rest is not None:
                    update.append_data_file(rest)
            for partition, count in enumerate(kept):
                for file in files.written(sink.behind(partition, count), sink.schema):
                    update.append_data_file(file)
        step("iceberg.before-commit")
    step("iceberg.committed")
    return PublishedToIceberg(name, sum(wanted) - sum(kept), sum(before) - sum(kept))


def _let_nobody_try_again(table: Table) -> None:
    """Keeps pyiceberg from adding the same rows to a newer version of the table, which may have them by then."""
    properties = {**table.metadata.properties, "commit.retry.num-retries": "0"}  # of this copy, not of the table
    table.metadata = table.metadata.model_copy(update={"properties": properties})


def _widen(transaction: Transaction, sink: Sink) -> None:
    """Gives the table the fields and widths that it lacks.

    Raises:
        ConfigurationError: Iceberg allows no such change.
    """
    try:
        with transaction.update_schema() as update:
            update.union_by_name(sink.schema)
    except (ValidationError, ValueError) as error:
        what = f"a field has changed as Iceberg does not allow: {error}"
        step_ = "publish to a table of another name, or drop this one: it is made anew"
        raise ConfigurationError(what, next_step=step_) from None


def _behind(kept: list[int], before: list[int]) -> str:
    """The rows that the sink no longer has, as a filter."""
    return " or ".join(
        f"(partition = {partition} and offset >= {first})"
        for partition, (first, end) in enumerate(zip(kept, before, strict=True))
        if first < end
    )
