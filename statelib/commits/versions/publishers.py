"""Who publishes a sink to a topic of Kafka, or to an Iceberg table: the job that its readers read.

Both belong to a job that is no fork, and that job publishes them until a fork is promoted over it. The fork's sink
``x.FORK`` then goes where ``x`` went. A fork with sinks of other names publishes these to topics and tables of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from statelib.commits.forks import ancestors
from statelib.commits.layout import fork_topic
from statelib.commits.versions.promotion import serving

if TYPE_CHECKING:
    from statelib.storage import Storage


@dataclass(frozen=True, slots=True)
class Publisher:
    """Who publishes.

    Attributes:
        readers: The job whose readers these are.
        sink: What that job calls the sink.
        job: The job that publishes it.
    """

    readers: str
    sink: str
    job: str


def publisher_of(warehouse: Storage, job: str, sink: str) -> Publisher:
    """Who publishes what a job has in one of its sinks.

    Raises:
        CorruptedDataError: A document of the job is damaged.
    """
    *_, first = ancestors(warehouse, job)
    if job == first:
        return Publisher(job, sink, serving(warehouse, job))
    suffix = fork_topic("", job)
    if sink.endswith(suffix):
        return Publisher(first, sink.removesuffix(suffix), serving(warehouse, first))
    return Publisher(job, sink, job)
